#include "data/ranking_problem.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace pairgram {

void check_labels(const ranking_problem& problem) {
    const auto& rule = problem.rule;
    const auto *const labels = problem.rows.labels, *const end = labels + problem.rows.n_rows();
    if (rule.kind == pair_kind::dropped &&
        std::any_of(labels, end, [](double y) { return std::isnan(y); }))
        throw std::invalid_argument("labels must not be NaN");
    if (rule.sums_labels() &&
        !std::all_of(labels, end, [](double y) { return y >= 0 && std::isfinite(y); }))
        throw std::invalid_argument("labels must be finite and not negative");
    if (rule.kind != pair_kind::omega || rule.sums_labels()) return;
    const auto* const last = rule.level_values + rule.n_levels;
    if (!std::is_sorted(rule.level_values, last))
        throw std::invalid_argument("level_values must ascend");
    const auto is_level = [&](double y) {
        const auto* const level = std::lower_bound(rule.level_values, last, y);
        return level != last && *level == y;
    };
    if (!std::all_of(labels, end, is_level))
        throw std::invalid_argument("every label must be one of level_values");
}

}  // namespace pairgram
