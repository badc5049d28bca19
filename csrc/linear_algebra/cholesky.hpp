// Cholesky factorisation, and the inverse of a factor, over own threads.
#pragma once

#include <cstddef>

namespace pairgram {

// Lower triangle of symmetric A (n, n), row-major = its Cholesky factor L, A = L Lᵀ, in place; what
// is above the diagonal is neither read nor written. Returns how many pivots are positive: n, or,
// where A is not numerically positive definite, the row of the first that is not (or is NaN); the
// lower triangle is then lost. n³ / 3 flops, O(n) memory besides; the
//
// By tiles of a width that depends on n alone, each a task that waits for those it needs (Buttari,
// Langou, Kurzak, Dongarra. A class of parallel tiled linear algebra algorithms for multicore
// architectures. Parallel Computing 35, 2009), here left-looking: a tile is written by one task.
// BLAS, which works within tiles, must be held to one thread.
std::ptrdiff_t cholesky(std::ptrdiff_t n, double* a, int n_threads);

// out (n, n), row-major = L⁻ᵀ for the lower triangle L of l (n, n); the rest of l is not read. Its
// rows are solved for, some at a time. n³ / 3 flops; the
void invert_transposed(std::ptrdiff_t n, const double* l, double* out, int n_threads);

}  // namespace pairgram
