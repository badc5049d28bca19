// Householder reflections of the rows of a panel, as one block reflector.
#pragma once

#include <cstddef>

namespace pairgram {

// Makes row-major P (n_rows, m) lower trapezoidal by orthogonal H from the right, P = [L 0] Hᵀ,
// with H = H_1 ... H_k = I - V T Vᵀ and k = min(n_rows, m). L stays in P, and where P became 0 are
// the reflectors: row i holds column i of V, without the 0 before entry i and the 1 there. The same
// with these goes into rows (k, m), and T, upper triangular, into t, with row stride n_rows.
// 4 n_rows² m flops, by halves of the rows, so that most of them are products. Entries must be
// about 1 or smaller: what is below 1e-140 counts as 0.
void factor_panel(std::ptrdiff_t n_rows, std::ptrdiff_t m, double* p, std::ptrdiff_t ld,
                  double* rows, double* t);

}  // namespace pairgram
