#include "data/comparisons.hpp"

#include <algorithm>
#include <numeric>

#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t task_places = 1 << 13;  // about so many a task

// sum += weight (row − other)
PAIRGRAM_CLONES void add_difference(std::ptrdiff_t width, double weight, const double* row,
                                    const double* other, double* sum) {
    for (std::ptrdiff_t j = 0; j < width; ++j) sum[j] += weight * (row[j] - other[j]);
}

}  // namespace

comparisons::comparisons(std::ptrdiff_t n_items, std::ptrdiff_t n_pairs,
                         const std::int64_t* winners, const std::int64_t* losers,
                         const double* weights)
    : winner(winners, winners + n_pairs),
      loser(losers, losers + n_pairs),
      weight(n_pairs, 1.0),
      offsets(n_items + 1, std::ptrdiff_t{0}),
      places(2 * n_pairs) {
    if (weights) std::copy_n(weights, n_pairs, weight.begin());
    for (std::ptrdiff_t p = 0; p < n_pairs; ++p) {
        ++offsets[winner[p] + 1];
        ++offsets[loser[p] + 1];
    }
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    buffer<std::ptrdiff_t> next(offsets.begin(), offsets.end() - 1);
    for (std::ptrdiff_t p = 0; p < n_pairs; ++p) {
        places[next[winner[p]]++] = {p, loser[p], 1.0};
        places[next[loser[p]]++] = {p, winner[p], -1.0};
    }
}

void comparisons::connected(std::int64_t* roots) const {
    std::iota(roots, roots + n_items(), std::int64_t{0});
    const auto root_of = [&](std::int64_t item) {
        while (roots[item] != item) {
            roots[item] = roots[roots[item]];
            item = roots[item];
        }
        return item;
    };
    for (std::ptrdiff_t p = 0; p < n_pairs(); ++p) {
        if (weight[p] == 0) continue;
        const auto a = root_of(winner[p]), b = root_of(loser[p]);
        roots[std::max(a, b)] = std::min(a, b);
    }
    for (std::ptrdiff_t i = 0; i < n_items(); ++i) roots[i] = root_of(i);
}

void comparisons::multiply(std::ptrdiff_t width, const double* rows, const double* targets,
                           double* out, int n_threads) const {
    const auto per_item =
        std::max<std::ptrdiff_t>(1, 2 * n_pairs() / std::max<std::ptrdiff_t>(1, n_items()));
    const auto step = std::max<std::ptrdiff_t>(1, task_places / per_item);
    parallel_for((n_items() + step - 1) / step, n_threads, [&](std::ptrdiff_t task) {
        for (auto i = task * step; i < std::min((task + 1) * step, n_items()); ++i) {
            double* const sum = out + i * (width + 1);
            std::fill_n(sum, width + 1, 0.0);
            for (auto k = offsets[i]; k < offsets[i + 1]; ++k) {
                const auto& at = places[k];
                const double w = weight[at.pair];
                if (k + 4 < offsets[i + 1]) prefetch(rows + places[k + 4].partner * width);
                add_difference(width, w, rows + i * width, rows + at.partner * width, sum);
                sum[width] += w * at.sign * targets[at.pair];
            }
        }
    });
}

}  // namespace pairgram
