// The pairgram of products ũ ⊗ v of which ũ is the same for all rows of a query.
#pragma once

#include <cstddef>
#include <cstdint>

#include "solvers/blocks.hpp"

namespace pairgram {

// Whether the map of the features makes products, and the left columns have the same values in all
// rows of every query.
template <class T>
bool is_cross_of_queries(const ranking_problem& problem, const feature_rows<T>& features,
                         int n_threads);

// The problem of one query alone. Its rows are still those of the whole problem.
ranking_problem problem_of_query(const ranking_problem& problem, std::ptrdiff_t query);

// What `gram` fills and returns, for features that are such products: with S_q = [K, V, Y]ᵀ L_q
// [K, V, Y] for the rows of a query,
//
//   Σ_q (ũ_q ũ_qᵀ) ⊗ S_q[V, V],   Σ_q ũ_q ⊗ S_q[V, KY],   Σ_q S_q[KY, KY].
//
// Products are never made. n z² + q (p r)² / 2 flops for q queries, with p products of r columns
// and z = r + kept columns + targets; memory besides the input: a quarter of gram, and the S_q of
// up to 256 queries. Source: Pahikkala et al. 2013, §4, for a complete list; here every list has
// its own L_q.
template <class T>
double cross_gram(const ranking_problem& problem, const feature_rows<T>& features, double* gram,
                  std::int64_t* varying, int n_threads);

}  // namespace pairgram
