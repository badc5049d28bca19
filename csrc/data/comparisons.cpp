#include "data/comparisons.hpp"

#include <algorithm>
#include <numeric>

#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t task_places = 1 << 13;  // about so many a task
// Columns are taken in panels of the rows that a cache holds, but of whole cache lines.
constexpr std::ptrdiff_t panel_values = 1 << 19, narrowest_panel = 32;

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

void comparisons::multiply(std::ptrdiff_t width, const double* rows, const double* targets,
                           double* out, int n_threads) const {
    const auto per_item =
        std::max<std::ptrdiff_t>(1, 2 * n_pairs() / std::max<std::ptrdiff_t>(1, n_items()));
    const auto step = std::max<std::ptrdiff_t>(1, task_places / per_item);
    const auto n_parts = (n_items() + step - 1) / step;
    const auto panel =
        std::max(narrowest_panel, panel_values / std::max<std::ptrdiff_t>(1, n_items()));
    const auto n_panels = std::max<std::ptrdiff_t>(1, (width + panel - 1) / panel);
    parallel_for(n_panels * n_parts, n_threads, [&](std::ptrdiff_t task) {
        const auto column = task / n_parts * panel, n_columns = std::min(panel, width - column);
        const auto first = task % n_parts * step;
        for (auto i = first; i < std::min(first + step, n_items()); ++i) {
            double* const sum = out + i * (width + 1) + column;
            const double* const own = rows + i * width + column;
            std::fill_n(sum, n_columns, 0.0);
            for (auto k = offsets[i]; k < offsets[i + 1]; ++k) {
                const auto& at = places[k];
                if (k + 4 < offsets[i + 1]) prefetch(rows + places[k + 4].partner * width + column);
                add_difference(n_columns, weight[at.pair], own, rows + at.partner * width + column,
                               sum);
            }
            if (column > 0) continue;
            double& pull = out[i * (width + 1) + width];
            pull = 0;
            for (auto k = offsets[i]; k < offsets[i + 1]; ++k)
                pull += weight[places[k].pair] * places[k].sign * targets[places[k].pair];
        }
    });
}

}  // namespace pairgram
