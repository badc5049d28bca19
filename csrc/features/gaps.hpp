// Gaps: missing values of a matrix, which are NaN, and what takes their place.
#pragma once

#include <cstddef>

namespace pairgram {

// out (n, d) = X (n, d), with fill (d,) in the place of NaN.
template <class T>
void fill_gaps(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const T* fill, T* out,
               int n_threads);

// out (d,): the medians of the columns of X (n, d), over the rows that have a value, which is not
// NaN, and a weight above 0; NaN if there is none. weights (n,) may be null, for ones.
//
// A median is the middle of two values: the least up to which the values have half of the weight,
// and the least up to which they have more. A row of weight 2 is as two rows. Sums of weights that
// differ by less than 1e-12 of all weight are equal, so that rounding chooses no value. About 10 ns
// a value, and 40 ns with weights; scratch for every thread: 16 n values, with their weights.
template <class T>
void find_known_medians(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                        double* out, int n_threads);

// out (2, d): of every column of X (n, d), over the rows that have a value, Σ w and
// Σ w (x − pivot). weights (n,) may be null, for ones. The same bits for any n_threads.
template <class T>
void find_known_sums(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                     const double* pivot, double* out, int n_threads);

// rows (n, d) of d columns of length n. A NaN of column j becomes fill[j]; without fill it stays.
// missing[j] tells whether column j has a NaN. Columns are read once, in strips whose rows lie in
// cache.
template <class T>
void interleave_columns(std::ptrdiff_t n, std::ptrdiff_t d, const T* const* columns, const T* fill,
                        T* rows, bool* missing, int n_threads);

}  // namespace pairgram
