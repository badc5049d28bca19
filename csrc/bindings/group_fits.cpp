// Fits of many groups: checks, GIL release, m.def.
#include "solvers/group_fits.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bindings/problem.hpp"

namespace pairgram {

namespace {

// Dense rows in one block, or a block for each group.
template <class T>
given_rows<T> rows_of(const std::vector<array<T>>& blocks, const bound_problem& problem,
                      const array<std::int64_t>& queries) {
    const auto n_groups = queries.size() - 1;
    const auto n_blocks = static_cast<py::ssize_t>(blocks.size());
    check(n_blocks == 1 || n_blocks == n_groups, "rows must be one block, or one for each group");
    given_rows<T> rows{0, {}};
    const auto begin = [&](py::ssize_t g) {
        return problem.view.rows.begin(static_cast<std::ptrdiff_t>(queries.data()[g]));
    };
    for (py::ssize_t b = 0; b < n_blocks; ++b) {
        const auto& block = blocks[size_of(b)];
        check(block.ndim() == 2, "rows must be 2-d");
        if (b == 0) rows.n_columns = block.shape(1);
        check(block.shape(1) == rows.n_columns, "all blocks must have as many columns");
        const auto n_rows = n_blocks == 1 ? problem.n_rows() : begin(b + 1) - begin(b);
        check(block.shape(0) == n_rows, "rows must be those of the problem");
        rows.blocks.push_back(pointer(block));
    }
    return rows;
}

// Whether the rows of every group stand together.
bool have_own_rows(const query_rows& rows, const array<std::int64_t>& queries) {
    const auto* const first = queries.data();
    for (py::ssize_t g = 0; rows.order && g + 1 < queries.size(); ++g) {
        const auto begin = rows.begin(first[g]), end = rows.begin(first[g + 1]);
        for (auto i = begin; i < end; ++i)
            if (rows.row(i) < begin || rows.row(i) >= end) return false;
    }
    return true;
}

template <class T>
py::tuple fit(const bound_problem& problem, const array<std::int64_t>& queries,
              const array<std::int64_t>& n_targets, const array<double>& targets,
              const given_rows<T>& rows, const py::object& map, double alpha, bool tells,
              int n_threads) {
    const auto& view = problem.view;
    check(queries.ndim() == 1 && queries.size() > 1, "queries must be 1-d, one more than groups");
    const auto n_groups = queries.size() - 1;
    const auto* const first = pointer(queries);
    check(first[0] == 0 && std::is_sorted(first, first + n_groups + 1) &&
              first[n_groups] == view.rows.n_queries,
          "queries must ascend from 0 to the number of queries");
    check(n_targets.ndim() == 1 && n_targets.size() == n_groups, "n_targets: 1-d, one a group");
    check(targets.ndim() == 1, "targets must be 1-d");
    py::ssize_t n_values = 0, n_models = 0;
    for (py::ssize_t g = 0; g < n_groups; ++g) {
        const auto n = n_targets.data()[g];
        check(n > 0, "a group must have a target or more");
        n_values += n * (view.rows.begin(first[g + 1]) - view.rows.begin(first[g]));
        n_models += n;
    }
    check(targets.size() == n_values, "targets must have the rows and targets of the groups");
    check((n_models == n_groups && rows.blocks.size() == 1) || have_own_rows(view.rows, queries),
          "groups with several targets, or blocks of their own, need rows that stand together");
    check(map.is_none() || py::isinstance<bound_node_map<double>>(map),
          "map must be None or a NodeMap of float64");
    const auto* own = map.is_none() ? nullptr : &map.cast<const bound_node_map<double>*>()->map;
    check(!own || own->n_inputs == rows.n_columns, "rows must be the map's inputs");
    const auto n_features = own ? own->n_outputs : rows.n_columns;
    array<double> weights({n_models, static_cast<py::ssize_t>(n_features)});
    array<std::int8_t> states(n_groups);
    auto* const out = weights.mutable_data();
    auto* const state = reinterpret_cast<group_state*>(states.mutable_data());
    group_sums sums;
    array<double> squares({tells ? n_groups : 0, static_cast<py::ssize_t>(n_features)}),
        products({tells ? n_groups : 0, static_cast<py::ssize_t>(n_features)}),
        pair_weights(tells ? n_groups : 0);
    if (tells)
        sums = {squares.mutable_data(), products.mutable_data(), pair_weights.mutable_data()};
    const query_groups groups{n_groups, first, pointer(n_targets), pointer(targets)};
    {
        const without_gil release(n_values * n_features);
        fit_groups(view, groups, rows, own, alpha, out, state, sums, n_threads);
    }
    return py::make_tuple(weights, states, squares, products, pair_weights);
}

template <class T>
py::tuple fit_dense(const bound_problem& problem, const array<std::int64_t>& queries,
                    const array<std::int64_t>& n_targets, const array<double>& targets,
                    const std::vector<array<T>>& blocks, const py::object& map, double alpha,
                    bool tells, int n_threads) {
    return fit(problem, queries, n_targets, targets, rows_of(blocks, problem, queries), map, alpha,
               tells, n_threads);
}

template <class T>
void bind_fit(py::module_& m) {
    m.def("fit_groups", &fit_dense<T>, py::arg("problem"), py::arg("queries").noconvert(),
          py::arg("n_targets").noconvert(), py::arg("targets").noconvert(),
          py::arg("blocks").noconvert(), py::kw_only(), py::arg("map") = py::none(),
          py::arg("alpha"), py::arg("tells") = false, py::arg("n_threads"));
}

}  // namespace

void bind_group_fits(py::module_& m) {
    bind_fit<double>(m);
    bind_fit<float>(m);
}

}  // namespace pairgram
