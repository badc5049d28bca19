// Queries, pairs and features as the bindings of the least-squares kernels take them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "bindings/bindings.hpp"
#include "least_squares/blocks.hpp"
#include "problem/half_laplacian.hpp"

namespace pairgram {

// The pairs and their weights, as src/pairgram/data.py hands them over.
inline pair_rule rule_of(const std::string& pairs, const std::string& weighting,
                         const optional_array<double>& level_values,
                         const optional_array<double>& omega) {
    check(pairs == "none" || pairs == "kept" || pairs == "dropped" || pairs == "omega",
          "pairs must be 'none', 'kept', 'dropped' or 'omega'");
    const auto kind = pairs == "none"      ? pair_kind::none
                      : pairs == "kept"    ? pair_kind::kept
                      : pairs == "dropped" ? pair_kind::dropped
                                           : pair_kind::omega;
    const auto weights = weighting_of(weighting);
    if (kind != pair_kind::omega) return {kind, weights, 0, nullptr, nullptr};
    check(level_values && omega, "omega needs its levels");
    const auto n_levels = level_values->size();
    check(level_values->ndim() == 1, "level_values must be 1-d");
    check(omega->ndim() == 2 && omega->shape(0) == n_levels && omega->shape(1) == n_levels,
          "omega must be (n_levels, n_levels)");
    return {kind, weights, n_levels, pointer(level_values), pointer(omega)};
}

// Levels are found by sorting and searching, which a label outside their order would lead astray.
inline void check_labels(const pair_rule& rule, const double* labels, py::ssize_t n_rows) {
    const auto* const end = labels + n_rows;
    if (rule.kind == pair_kind::dropped) {
        check(std::none_of(labels, end, [](double y) { return std::isnan(y); }),
              "labels must not be NaN");
    }
    if (rule.kind != pair_kind::omega) return;
    const auto* const last = rule.level_values + rule.n_levels;
    check(std::is_sorted(rule.level_values, last), "level_values must ascend");
    check(std::all_of(labels, end,
                      [&](double y) {
                          const auto* const level = std::lower_bound(rule.level_values, last, y);
                          return level != last && *level == y;
                      }),
          "every label must be one of level_values");
}

struct ranking_arrays {
    array<double> labels;
    array<std::int64_t> offsets;
    optional_array<std::int64_t> order;
    optional_array<double> row_weights, query_weights;

    query_rows view(const pair_rule& rule, py::ssize_t n_rows) const {
        const auto queries = queries_of(offsets, order, n_rows);
        const auto one_per = [](const array<double>& values, py::ssize_t n) {
            return values.ndim() == 1 && values.size() == n;
        };
        check(one_per(labels, n_rows), "labels must be 1-d with a value per row");
        check(!row_weights || one_per(*row_weights, n_rows), "row_weights: 1-d, one per row");
        check(!query_weights || one_per(*query_weights, queries.n_queries),
              "query_weights: 1-d, one per query");
        check_labels(rule, pointer(labels), n_rows);
        return {queries.n_queries, queries.offsets,      queries.order,
                pointer(labels),   pointer(row_weights), pointer(query_weights)};
    }
};

template <class T>
feature_rows<T> features_of(const array<T>& features, const array<double>& targets,
                            const py::object& node_map = py::none()) {
    check(features.ndim() == 2 && targets.ndim() == 2, "features and targets must be 2-d");
    check(features.shape(0) == targets.shape(0), "features and targets must have equal rows");
    if (!node_map.is_none() && !py::isinstance<bound_node_map<T>>(node_map))
        throw py::type_error("map must be None or a NodeMap of the features' type");
    const auto* map = node_map.is_none() ? nullptr : node_map.cast<const bound_node_map<T>*>();
    check(!map || map->map.n_inputs == features.shape(1), "features must be the map's inputs");
    return {map ? map->map.n_outputs : features.shape(1), pointer(features), targets.shape(1),
            pointer(targets), map ? &map->map : nullptr};
}

// The arguments that say which rows form queries, and which pairs count.
#define PAIRGRAM_QUERY_ARGUMENTS                                                                   \
    py::arg("labels").noconvert(), py::arg("offsets").noconvert(), py::kw_only(),                  \
        py::arg("order").noconvert() = py::none(),                                                 \
        py::arg("row_weights").noconvert() = py::none(),                                           \
        py::arg("query_weights").noconvert() = py::none(), py::arg("pairs"), py::arg("weighting"), \
        py::arg("level_values").noconvert() = py::none(),                                          \
        py::arg("omega").noconvert() = py::none()
#define PAIRGRAM_RANKING_ARGUMENTS \
    py::arg("features").noconvert(), py::arg("targets").noconvert(), PAIRGRAM_QUERY_ARGUMENTS

}  // namespace pairgram
