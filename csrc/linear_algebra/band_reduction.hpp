// A symmetric matrix as Q B Qᵀ with a band B and orthogonal Q, over own threads.
#pragma once

#include <cstddef>

namespace pairgram {

// BLAS, which works within tasks, must be held to one thread in all of these. The results have the

// How many blocks of reflectors the reduction of order n to a band of this width has.
std::ptrdiff_t n_reflector_blocks(std::ptrdiff_t n, std::ptrdiff_t width);

// Reduces symmetric A (n, n), row-major, of which the upper triangle is read, to A = Q B Qᵀ with
// Q = H_1 H_2 ... of the blocks H = I - V T Vᵀ of `width` reflectors each.
//
//   band (n, width + 1): row j holds B(j, j), B(j, j + 1), ..., B(j, j + width)
//   factors (n_reflector_blocks, width, width): the T
//
// V stays in the upper triangle of A, beyond the band; what is below the diagonal is neither read
// nor written. (4/3) n³ flops in products of matrices, and about 4 n width words of work space.
// Entries of A must be about 1 or smaller, see factor_panel.
//
// The first step of: Bischof, Lang, Sun. A framework for symmetric band reduction. ACM Transactions
// on Mathematical Software 26, 2000. While the rows of a block are reflected, other threads still
// apply the block before it.
void reduce_to_band(std::ptrdiff_t n, std::ptrdiff_t width, double* a, double* band,
                    double* factors, int n_threads);

// Rows of X (n_vectors, n), row-major = Q times each, or Qᵀ times each. 2 n² flops each.
void apply_band_basis(std::ptrdiff_t n, std::ptrdiff_t width, const double* a,
                      const double* factors, bool transposed, std::ptrdiff_t n_vectors, double* x,
                      int n_threads);

// A, as reduce_to_band leaves it, = Qᵀ, row-major, in (4/3) n³ flops and O(n width) words.
void form_band_basis(std::ptrdiff_t n, std::ptrdiff_t width, double* a, const double* factors,
                     int n_threads);

}  // namespace pairgram
