// Statistics of the columns of a matrix, from which scales and quantiles are made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pairgram {

// Of every column, over the rows whose weight is not 0. A value that is not finite makes the mean
// or the squares of its column not finite. Each array has length n_columns.
struct column_moments {
    double* lowest;
    double* highest;
    double* pivot;    // the values of the first row that counts
    double* mean;     // of the differences from the pivot
    double* squares;  // the weighted sum of squared differences from the mean
};

// moments of X (n, d). weights (n,) may be null. X is read once; sums are of differences from the
// pivot, in blocks that are joined by Chan's formula, so that a large offset of a
// column costs no digits. The same bits for any number of threads. Scratch: 5 d numbers for every
// 4,096 rows.
template <class T>
void find_moments(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                  const column_moments& moments, int n_threads);

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

// Each array (d, n_places).
struct weighted_places {
    double* below;
    double* above;
    double* share;  // of the way from below to above
};

// The same for rows that each stand as often as their weight says, which is 0 or 1 or more, and not
// 0 for all. A row of the sorted column stands from the place V to the place V + v - 1, where V is
// the weight before it. A place between two rows has a share of the way; others have share 0.
// places, at least 0, ascend. X must be finite. Scratch for every thread: 12 n numbers.
template <class T>
void find_weighted_places(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                          std::ptrdiff_t n_places, const double* places, const weighted_places& out,
                          int n_threads);

}  // namespace pairgram
