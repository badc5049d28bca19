// The ranking problem and its Laplacian: checks, GIL release, m.def; nothing else.
#include "bindings/problem.hpp"

#include <string>

#include "data/laplacian_root.hpp"
#include "data/laplacian_solve.hpp"

namespace pairgram {

namespace {

// The pairs and their weights; an omega has its levels, or is the sum of labels.
pair_rule rule_of(const std::string& pairs, const std::string& weighting,
                  const optional_array<double>& level_values, const optional_array<double>& omega) {
    const auto kind = named<pair_kind>("pairs", pairs,
                                       {{"none", pair_kind::none},
                                        {"kept", pair_kind::kept},
                                        {"dropped", pair_kind::dropped},
                                        {"omega", pair_kind::omega}});
    const auto weights = named<weighting_kind>("weighting", weighting,
                                               {{"pairs", weighting_kind::pairs},
                                                {"documents", weighting_kind::documents},
                                                {"queries", weighting_kind::queries}});
    if (kind != pair_kind::omega || (!level_values && !omega)) return {kind, weights};
    check(level_values && omega, "omega needs its levels");
    const auto n_levels = level_values->size();
    check(level_values->ndim() == 1, "level_values must be 1-d");
    check(has_shape(*omega, {n_levels, n_levels}), "omega must be (n_levels, n_levels)");
    return {kind, weights, n_levels, pointer(level_values), pointer(omega)};
}

bound_problem make_problem(const array<double>& labels, const array<std::int64_t>& offsets,
                           const optional_array<std::int64_t>& order,
                           const optional_array<double>& row_weights,
                           const optional_array<double>& query_weights, const std::string& pairs,
                           const std::string& weighting, const optional_array<double>& level_values,
                           const optional_array<double>& omega) {
    check(labels.ndim() == 1, "labels must be 1-d");
    const auto n_rows = labels.size();
    auto rows = queries_of(offsets, order, n_rows);
    check_one_per("row_weights: 1-d, one per row", row_weights, n_rows);
    check_one_per("query_weights: 1-d, one per query", query_weights, rows.n_queries);
    rows.labels = pointer(labels);
    rows.row_weights = pointer(row_weights);
    rows.query_weights = pointer(query_weights);
    const ranking_problem view{rule_of(pairs, weighting, level_values, omega), rows};
    unlocked_for(n_rows, check_labels, view);
    return {py::make_tuple(labels, offsets, order, row_weights, query_weights, level_values, omega),
            view};
}

double weight_of_pairs(const bound_problem& problem) {
    return unlocked_for(problem.n_rows(), pair_weight, problem.view);
}

// (n, n_vectors) vectors in columns, or (n_vectors, n) in rows.
void apply_half_laplacian(const bound_problem& problem, array<double>& vectors, int axis,
                          bool adjoint, int n_threads) {
    check(vectors.ndim() == 2, "vectors must be 2-d");
    check(axis == 0 || axis == 1, "axis must be 0 or 1");
    check(vectors.shape(axis) == problem.n_rows(), "vectors must have an entry per row");
    const auto width = vectors.shape(1);
    auto* data = writable(vectors);
    const vector_view columns{width, width, 1, data};
    const vector_view rows{vectors.shape(0), 1, width, data};
    const without_gil release;
    apply_root(problem.view, adjoint, axis == 0 ? columns : rows, n_threads);
}

py::tuple rows_of_runs(const array<std::int64_t>& ids, const array<std::int64_t>& bounds) {
    check(ids.ndim() == 1, "ids must be 1-d");
    check_one_per("bounds: 1-d, one more than ids", bounds, ids.size() + 1);
    const auto* const bound = pointer(bounds);
    check(bound[0] == 0 && std::is_sorted(bound, bound + bounds.size()),
          "bounds must ascend from 0");
    const auto found = unlocked_for(bound[ids.size()], group_runs, ids.size(), pointer(ids), bound);
    return py::make_tuple(as_array(found.first_run), as_array(found.offsets),
                          as_array(found.order));
}

array<double> diagonal_of_laplacian(const bound_problem& problem) {
    return as_array(unlocked_for(problem.n_rows(), laplacian_diagonal, problem.view));
}

array<std::int64_t> pivots_of_laplacian(const bound_problem& problem, double largest) {
    return as_array(unlocked_for(problem.n_rows(), laplacian_pivots, problem.view, largest));
}

// (n, width) columns L z, changed to z.
void solve_in_place(const bound_problem& problem, array<double>& columns,
                    const array<double>& known, double largest, int n_threads) {
    check(columns.ndim() == 2 && known.ndim() == 2, "columns and known must be 2-d");
    check(columns.shape(0) == problem.n_rows(), "columns must have an entry per row");
    check(columns.shape(1) == known.shape(1), "columns and known must be equally wide");
    const auto width = columns.shape(1), n_given = known.shape(0);
    auto* data = writable(columns);
    const auto* given = pointer(known);
    const without_gil release;
    const auto pivots = laplacian_pivots(problem.view, largest);
    std::int64_t row = 0;
    const auto n_known = std::count_if(pivots.begin(), pivots.end(),
                                       [&](std::int64_t pivot) { return pivot == row++; });
    check(n_given == n_known, "known must have the rows that are their own pivot");
    solve_laplacian(problem.view, pivots, width, given, data, n_threads);
}

}  // namespace

void bind_problem(py::module_& m) {
    m.def("group_runs", &rows_of_runs, "ids"_a, "bounds"_a);
    py::class_<bound_problem>(m, "RankingProblem")
        .def(py::init(&make_problem), "labels"_a, "offsets"_a, py::kw_only(),
             "order"_a = py::none(), "row_weights"_a = py::none(), "query_weights"_a = py::none(),
             "pairs"_a, "weighting"_a, "level_values"_a = py::none(), "omega"_a = py::none());
    m.def("pair_weight", &weight_of_pairs, "problem"_a);
    m.def("apply_half_laplacian", &apply_half_laplacian, "problem"_a, "vectors"_a, py::kw_only(),
          "axis"_a = 0, "adjoint"_a = false, "n_threads"_a = 1);
    m.def("laplacian_diagonal", &diagonal_of_laplacian, "problem"_a);
    m.def("laplacian_pivots", &pivots_of_laplacian, "problem"_a, py::kw_only(), "largest"_a = 0.0);
    m.def("solve_laplacian", &solve_in_place, "problem"_a, "columns"_a, "known"_a, py::kw_only(),
          "largest"_a = 0.0, "n_threads"_a = 1);
}

}  // namespace pairgram
