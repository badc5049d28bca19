// Rows of columns that stand one after the other, as in tables.
#pragma once

#include <cstddef>

namespace pairgram {

// rows (n, d) of d columns of length n. A NaN of column j becomes fill[j]; without fill it stays.
// missing[j] tells whether column j has a NaN. Columns are read once, in strips whose rows lie in
// cache.
template <class T>
void interleave_columns(std::ptrdiff_t n, std::ptrdiff_t d, const T* const* columns, const T* fill,
                        T* rows, bool* missing, int n_threads);

}  // namespace pairgram
