// Comparisons of two items each, with the lists of every item: sums over the comparisons of items
// are then taken item by item, in the same order for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/buffer.hpp"

namespace pairgram {

class comparisons {
  public:
    // Winners and losers (n_pairs,) are numbers in [0, n_items); weights (n_pairs,), or null for
    // ones. Copies all of them. O(n_items + n_pairs).
    comparisons(std::ptrdiff_t n_items, std::ptrdiff_t n_pairs, const std::int64_t* winner,
                const std::int64_t* loser, const double* weights);

    std::ptrdiff_t n_items() const { return length_of(offsets) - 1; }
    std::ptrdiff_t n_pairs() const { return length_of(winner); }

    // One of the two places of a comparison: that of its winner, or of its loser.
    struct place {
        std::int64_t pair, partner;
        double sign;  // 1 for the winner
    };

    buffer<std::int64_t> winner, loser;  // (n_pairs,)
    buffer<double> weight;               // (n_pairs,)
    buffer<std::ptrdiff_t> offsets;      // (n_items + 1,) of the places of each item
    buffer<place> places;                // (2 n_pairs,)

    // out (n_items, width + 1) = [A'DA H, A'D targets] for rows H (n_items, width) and targets
    // (n_pairs,), where A has a row e_winner − e_loser for each comparison. 4 n_pairs width flops.
    void multiply(std::ptrdiff_t width, const double* rows, const double* targets, double* out,
                  int n_threads) const;
};

}  // namespace pairgram
