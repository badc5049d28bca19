// Exact leave-query-out scores of products ũ ⊗ v of which ũ is the same for all rows of a query:
// exact scores for people who were never seen, if a query is a person.
#pragma once

#include <cstdint>

#include "solvers/blocks.hpp"
#include "solvers/hold_out.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// scores (n_alphas, n): for every row, indexed as the caller's, the score of the model that is
// fitted without the row's fold, a range of queries: fold f holds queries [folds[f], folds[f + 1]);
// and held (n,), what the fold holds, see unit_models. `is_cross_of_queries` must hold of the
// features, whose n_targets is 1. With P_q = (I ⊕
// ũ_q ⊗ I)ᵀ basis, of r rows, the half-Laplacian of a query is that of [kept, v], times P_q. Where
// a query has more than r rows, the Cholesky factor of their products takes their place, so that
// everything is done in r dimensions. Rows score by [kept, v] P_q w.
//
// q (2 p r·rank + 2 r²·rank + 4 r·rank·n_alphas·iterations) flops for q queries, p products and r
// columns of [kept, v]; memory O(r·rank) per thread for each of up to 16 queries.
template <class T>
void cross_hold_out(const ranking_problem& problem, const feature_rows<T>& features,
                    const buffer<std::int64_t>& folds, const double* basis, const ridge_path& path,
                    double* scores, double* held, int n_threads);

}  // namespace pairgram
