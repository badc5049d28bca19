// The index arrays of sparse matrices, looked through before anything follows them.
#pragma once

#include <cstddef>

namespace pairgram {

// Returns the place of the first of n values that is below 0 or not below limit, or -1. One pass;
// memory bandwidth bounds it.
template <class I>
std::ptrdiff_t first_outside(std::ptrdiff_t n, const I* values, std::ptrdiff_t limit);

// Returns the first i with values[i] > values[i + 1], or -1.
template <class I>
std::ptrdiff_t first_descent(std::ptrdiff_t n, const I* values);

}  // namespace pairgram
