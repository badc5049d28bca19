// Statistics of the columns of a matrix, from which scales and quantiles are made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pairgram {

// out (5, d): of every column of X (n, d), over the rows whose weight is not 0, the lowest and the
// highest value, a pivot, which is the value of the first row that counts, the mean of differences
// from it, and the weighted sum of squared differences from the mean. A value that is not finite
// makes the last two not finite. weights (n,) may be null. X is read once, in blocks that are
// joined by Chan's formula, so that a large offset of a column costs no digits. The same bits for
// any number of threads. Scratch: 5 d numbers for every 4,096 rows.
template <class T>
void find_moments(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                  double* out, int n_threads);

// out (d, n_ranks): of every column of X (n, d), the values that stand at the given places, which
// ascend from 0, when the column is sorted. A column with a value that is not finite gets NaN.
//
// A value's place is narrowed down by a grid of cells, whose values are counted; then the values of
// the cells in which a place falls are kept and sorted out. X is read twice, some columns at a
// time; a third time where many values share a cell. About 2.5 ns a value; scratch: 4 n numbers at
// most for every thread, and what recursion takes of them.
template <class T>
void find_order_statistics(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, std::ptrdiff_t n_ranks,
                           const std::int64_t* ranks, double* out, int n_threads);

}  // namespace pairgram
