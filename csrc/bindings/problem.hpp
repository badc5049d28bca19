// The ranking problem and its features, as the bindings take them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "bindings/bindings.hpp"
#include "data/ranking_problem.hpp"
#include "solvers/blocks.hpp"
#include "solvers/sparse_pairs.hpp"

namespace pairgram {

// `RankingProblem` of Python: arrays that were checked once, kept alive, and the view of them that
// the compiled code takes. Nothing changes it, so that threads may share one.
struct bound_problem {
    py::object kept;
    ranking_problem view;

    py::ssize_t n_rows() const { return view.rows.n_rows(); }
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

// The rows of CSR arrays, checked.
template <class T>
sparse_rows<T> sparse_rows_of(const array<std::int64_t>& bounds, const array<std::int32_t>& columns,
                              const array<T>& values, py::ssize_t n_columns) {
    check(bounds.ndim() == 1 && bounds.size() > 0, "indptr must be 1-d, one more than rows");
    check(columns.ndim() == 1 && has_shape(values, {columns.size()}),
          "indices and values must be 1-d and equally long");
    check(n_columns <= std::numeric_limits<std::int32_t>::max(),
          "n_columns must be less than 2^31: the numbers of columns are int32");
    const sparse_rows<T> rows{bounds.size() - 1, n_columns, pointer(bounds), pointer(columns),
                              pointer(values)};
    const without_gil release;
    check(rows.bounds[0] == 0 && std::is_sorted(rows.bounds, rows.bounds + rows.n_rows + 1) &&
              rows.begin(rows.n_rows) <= columns.size() &&
              std::all_of(rows.columns, rows.columns + rows.begin(rows.n_rows),
                          [=](std::int32_t j) { return 0 <= j && j < n_columns; }),
          "indptr and indices must be those of CSR");
    return rows;
}

}  // namespace pairgram
