// Exact leave-query-out scores of the whole ridge path from one eigendecomposition.
#pragma once

#include <cstdint>

#include "solvers/blocks.hpp"
#include "solvers/hold_out.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// scores (n_alphas, n): for every row, indexed as the caller's, the score of the model that is
// fitted without the row's fold, a range of queries: fold f holds queries [folds[f], folds[f + 1]).
// features.n_targets is 1.
//
// Per fold, with Z_q, E_q = half-Laplacian of Z_q, ỹ_q, A = Λ + λ: solves
// (I − E_q A⁻¹ E_qᵀ) x = ỹ_q − E_q w and scores Z_q (w − A⁻¹ E_qᵀ x). All λ together by conjugate
// gradients, two products per iteration. Where these do not converge (high leverage), and for
// λ < 1e-10 λ_max, by Cholesky in min(n, rank) dimensions; NaN where its pivots say that the
// solution would be rounding error.
//
// About 2n·width·rank + 4n·rank·n_alphas·iterations flops; memory O(n (width + n_alphas) +
// min(n, rank)²) per thread for a fold of n rows, at least 128: neighbouring folds share the
// product with the basis, which would else be read anew for every fold. Same bits for any
// n_threads. BLAS must be held to one thread. The relative error of a score is about 1e-16 λ_max /
// λ at worst.
//
// held (n,) is for every row the largest eigenvalue of a direction in which the row's
// fold has all but 1e-4 of the squares, or 0. Without the fold the direction is a small difference
// of large numbers, and refits keep more digits. Source: the block hold-out identity of Pahikkala
// et al. 2006, on half-Laplacian rows.
template <class T>
void leave_query_out(const ranking_problem& problem, const feature_rows<T>& features,
                     const buffer<std::int64_t>& folds, const double* basis, const ridge_path& path,
                     double* scores, double* held, int n_threads);

}  // namespace pairgram
