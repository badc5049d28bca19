// The way back from L z to z, and what the Laplacian L = RᵀR of the pairs does not see.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/half_laplacian.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// Σ_ij W_ij over all queries, both orders and the diagonal.
double pair_weight(const ranking_problem& problem);

// L_ii = v_i f_l² of every row, as the caller's, with f_l as in half_laplacian.hpp.
buffer<double> laplacian_diagonal(const ranking_problem& problem);

// L sees no constant of rows that pairs join, and nothing of rows without pairs. For every row, the
// row beside which L z tells its z, one for all of a query whose rows pairs join; itself for that
// row and where L z tells nothing, or too little; -1 where it tells all (pointwise).
//
// Too little is what rounding error would swamp: L z errs by about eps sqrt(λ_max L_ii), so that z
// is told where L_ii > 1e-10 · largest, with the largest L_ii of the whole problem, and levels are
// joined where what is left of their weights in the elimination is above 1e-5 · largest. With
// largest = 0, whatever is above 0. O(n log n + levels³) per query.
buffer<std::int64_t> laplacian_pivots(const ranking_problem& problem, double largest);

// Every column b = L z of the row-major matrix (n, width), rows as the caller's, becomes z. Rows
// that are their own pivot are given in `known`, (those rows ascending, width). With f_l as in
// half_laplacian.hpp and S_l = Σ b over the rows of level l, up to a constant per query
//
//   z_i = (b_i / v_i − S_l / V_l) / f_l² + μ_l,   Σ_k c V_l V_k ω(l, k) (μ_l − μ_k) = S_l
//
// with μ by elimination, in which only positive terms are added. z comes with its digits even where
// it is small, unlike from a product with K. O(n·width), one pass over the memory; O(levels²·width)
// more for omega. Tasks are strips of columns of a query; the
void solve_laplacian(const ranking_problem& problem, const buffer<std::int64_t>& pivots,
                     std::ptrdiff_t width, const double* known, double* matrix, int n_threads);

}  // namespace pairgram
