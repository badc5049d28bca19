// Exact scores of comparisons by models without all comparisons of an item, for a ridge path.
#pragma once

#include <cstddef>

#include "data/comparisons.hpp"

namespace pairgram {

// The ridge path of comparisons in the basis of its eigenvectors, (Λ + alpha) w = projection.
struct item_path {
    std::ptrdiff_t rank;
    const double* rows;         // (n_items, rank) items in the basis
    const double* eigenvalues;  // (rank,) ≥ 0
    const double* projection;   // (rank,)
    std::ptrdiff_t n_alphas;
    const double* alphas;  // (n_alphas,) ≥ 0
};

// scores (n_alphas, n_places) of the places of items [first, last), from offsets[first] on: the
// difference of scores of the comparison, winner less loser, by the model without the item.
//
// Per item with n comparisons Z, weights W and targets t: M = Λ − ZᵀWZ = Q T Qᵀ with tridiagonal T,
// and w(alpha) = Q (T + alpha)⁻¹ Qᵀ (projection − ZᵀWt), which takes O(rank) flops an alpha once
// Qᵀ has been applied. About n rank (rank + 2 n_alphas) + 2 rank³ + 4 rank² n_alphas flops. NaN
// where a pivot of T + alpha is rounding error of Λ.
//
// held (last − first,) is for every item the largest eigenvalue of a direction of which its
// comparisons hold all but 1e-4, or 0: refits without the item keep more digits. BLAS must be held
// to one thread. The same bits for any n_threads.
void leave_items_out(const comparisons& pairs, const double* targets, const item_path& path,
                     std::ptrdiff_t first, std::ptrdiff_t last, double* scores, double* held,
                     int n_threads);

}  // namespace pairgram
