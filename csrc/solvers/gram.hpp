// The pairgram: [H, Y]ᵀ L [H, Y] summed over queries, block by block; H and L are never stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "solvers/blocks.hpp"

namespace pairgram {

// Fills gram (width, width) = H̃ᵀH̃ for the half-Laplacian rows H̃ of [features, targets] and returns
// Σ W_ij. block_rows = 0 chooses a block that fits the cache.
//
// n·width² flops. Memory besides the input: up to 32 MiB of partial sums, a block for each thread
// (beyond a width of 1,024: six blocks and no partial sums), and 1 / block_rows of the input for
// queries longer than a block. Adds to varying (n_features + 1), if given, the number of queries in
// which each feature varies, and in which any does. Products with a left side that is constant
// within queries are never made: see cross_gram.hpp. Source: Pahikkala et al. 2007, eq. 11 and
// §2.3.
template <class T>
double gram(const ranking_problem& problem, const feature_rows<T>& features,
            std::ptrdiff_t block_rows, double* gram, std::int64_t* varying, int n_threads);

}  // namespace pairgram
