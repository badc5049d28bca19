// The ranking problem and its features, as the bindings take them.
#pragma once

#include <cstdint>

#include "bindings/bindings.hpp"
#include "data/ranking_problem.hpp"
#include "solvers/blocks.hpp"

namespace pairgram {

// `RankingProblem` of Python: arrays that were checked once, kept alive, and the view of them that
// the compiled code takes. Nothing changes it, so that threads may share one.
struct bound_problem {
    array<double> labels;
    array<std::int64_t> offsets;
    optional_array<std::int64_t> order;
    optional_array<double> row_weights, query_weights, level_values, omega;
    ranking_problem view;

    py::ssize_t n_rows() const { return labels.size(); }
};

template <class T>
feature_rows<T> features_of(const bound_problem& problem, const array<T>& features,
                            const array<double>& targets, const py::object& node_map) {
    check(features.ndim() == 2 && targets.ndim() == 2, "features and targets must be 2-d");
    check(features.shape(0) == problem.n_rows() && targets.shape(0) == problem.n_rows(),
          "features and targets must have the rows of the problem");
    if (!node_map.is_none() && !py::isinstance<bound_node_map<T>>(node_map))
        throw py::type_error("map must be None or a NodeMap of the features' type");
    const auto* map = node_map.is_none() ? nullptr : node_map.cast<const bound_node_map<T>*>();
    check(!map || map->map.n_inputs == features.shape(1), "features must be the map's inputs");
    return {map ? map->map.n_outputs : features.shape(1), pointer(features), targets.shape(1),
            pointer(targets), map ? &map->map : nullptr};
}

}  // namespace pairgram
