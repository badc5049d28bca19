// The pairgram: [H, Y]ᵀ L [H, Y] summed over queries, block by block; H and L are never stored.
#pragma once

#include <cstddef>

#include "blocks.hpp"

namespace pairgram {

// Fills gram (width, width) = H̃ᵀH̃ for the half-Laplacian rows H̃ of [features, targets] and returns
// Σ W_ij. block_rows = 0 chooses a block that fits the cache.
//
// n·width² flops; memory O(width² + block) besides the input, plus 1 / block_rows of it for queries
// longer than a block. The result has the same bits for any n_threads. BLAS must be held to one
// thread. Source: Pahikkala et al. 2007, eq. 11 and §2.3.
template <class T>
double gram(const pair_rule& rule, const query_rows& rows, const feature_rows<T>& features,
            std::ptrdiff_t block_rows, double* gram, int n_threads);

}  // namespace pairgram
