// Cholesky factorisation over own threads.
#pragma once

#include <cstddef>

namespace pairgram {

// Lower triangle of symmetric A (n, n), row-major = its Cholesky factor L, A = L Lᵀ, in place; what
// is above the diagonal is neither read nor written. Returns how many pivots are positive: n, or,
// where A is not numerically positive definite, the row of the first that is not (or is NaN); the
// lower triangle is then lost. n³ / 3 flops, O(n) memory besides; the same bits for any n_threads.
//
// By tiles, left-looking (Golub & Van Loan, Matrix Computations, 4th ed., §4.2.5 and §4.2.9), with
// BLAS, which is to run on one thread, within a tile.
std::ptrdiff_t cholesky(std::ptrdiff_t n, double* a, int n_threads);

}  // namespace pairgram
