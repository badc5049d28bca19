// Pairwise least squares of one ridge for each of many groups of queries: users, assays, targets.
//
// A group never leaves the cache: its rows are gathered, mapped and transformed, and of the smaller
// of G = H̃ᵀH̃ and K = H̃H̃ᵀ a Cholesky factor solves
//
//   (G + alpha I) w = H̃ᵀỹ,   or   w = H̃ᵀ (K + alpha I)⁻¹ ỹ   where rows are fewer than features.
//
// Which form a group takes follows from its own rows, so a group alone has the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "solvers/group_rows.hpp"

namespace pairgram {

// Writes the weights (n_targets, n_features) of group after group, and the state of each. A group
// is left `unsolved`, with NaN, where it has more than 2^19 values, or more than 256 rows and more
// than 256 features; where its rows or sums are not finite or nearly vanish; and where its system
// is numerically singular: other code finds out more. Groups with several targets must have pairs
// without labels, and rows without weights.
//
// n d² + d³ / 3 flops for n ≥ d, n² d + n³ / 3 otherwise; memory: one group for each thread.
// Source: Pahikkala et al. 2009, eq. 8, and its dual, by the half-Laplacian.
void fit_groups(const query_groups& groups, double alpha, double* weights, group_state* states,
                const group_sums& sums, int n_threads);

}  // namespace pairgram
