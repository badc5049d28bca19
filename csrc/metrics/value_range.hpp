// The range of labels.
#pragma once

#include <cstddef>

namespace pairgram {

struct value_range {
    double lowest, highest;
};

// Of n > 0 values; both are NaN if a value is.
value_range find_range(std::ptrdiff_t n, const double* values);

}  // namespace pairgram
