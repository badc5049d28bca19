// Batches of small problems: checks, GIL release, m.def.
#include "solvers/small_problems.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/problem.hpp"

namespace pairgram {

namespace {

// A problem with features, whose arrays have been checked and are kept alive.
struct bound_batch_problem {
    array<double> features, targets;
    py::object map;
    batch_problem problem;
};

bound_batch_problem make_batch_problem(const bound_problem& ranking, const array<double>& features,
                                       const array<double>& targets, const py::object& map) {
    const auto rows = features_of(ranking, features, targets, map);
    check(ranking.n_rows() > 0 && rows.n_features > 0, "features must not be empty");
    return {features, targets, map, {ranking.view, rows}};
}

std::vector<batch_problem> problems_of(const std::vector<const bound_batch_problem*>& bound) {
    std::vector<batch_problem> problems;
    problems.reserve(bound.size());
    for (const auto* b : bound) {
        check(b != nullptr, "problems must be BatchProblems");
        problems.push_back(b->problem);
    }
    return problems;
}

// Row numbers and the bounds of every split's among them.
using row_lists = std::tuple<array<std::int64_t>, array<std::int64_t>>;

void check_lists(const row_lists& lists, std::ptrdiff_t n_rows) {
    const auto& [rows, bounds] = lists;
    check(bounds.ndim() == 1 && bounds.size() > 0 && rows.ndim() == 1,
          "splits must be 1-d rows and bounds");
    const auto* bound = pointer(bounds);
    check(bound[0] == 0 && std::is_sorted(bound, bound + bounds.size()) &&
              bound[bounds.size() - 1] == rows.size(),
          "bounds of splits must ascend from 0 to the number of rows");
    const auto* row = pointer(rows);
    check_all(
        rows.size(), row, [&](std::int64_t r) { return 0 <= r && r < n_rows; },
        "rows of splits must be those of the problem");
}

buffer<row_split> splits_of(const row_lists& train, const row_lists& test, std::ptrdiff_t n_rows) {
    check_lists(train, n_rows);
    check_lists(test, n_rows);
    const auto n_splits = std::get<1>(train).size() - 1;
    check(std::get<1>(test).size() - 1 == n_splits, "training and test rows: as many splits");
    buffer<row_split> splits;
    const auto *train_bound = pointer(std::get<1>(train)), *test_bound = pointer(std::get<1>(test));
    for (py::ssize_t s = 0; s < n_splits; ++s)
        splits.push_back(
            {train_bound[s + 1] - train_bound[s], pointer(std::get<0>(train)) + train_bound[s],
             test_bound[s + 1] - test_bound[s], pointer(std::get<0>(test)) + test_bound[s]});
    return splits;
}

// (problem, training rows, test rows, alphas, damping, relative).
using task_fields = std::tuple<const bound_batch_problem*, row_lists, row_lists, array<double>,
                               array<double>, bool>;

py::list hold_out(const std::vector<task_fields>& fields, int n_threads) {
    std::vector<batch_problem> problems;
    std::vector<held_out_task> tasks;
    std::vector<array<double>> scores;
    for (const auto& [bound, train, test, alphas, damping, relative] : fields) {
        check(bound != nullptr, "tasks must have BatchProblems");
        const auto& problem = bound->problem;
        check(alphas.ndim() == 1 && damping.ndim() == 1 && alphas.size() == damping.size(),
              "alphas and damping must be 1-d, of equal size");
        auto splits = splits_of(train, test, problem.n_rows());
        scores.emplace_back(std::vector<py::ssize_t>{problem.features.n_targets, alphas.size(),
                                                     std::get<0>(test).size()});
        problems.push_back(problem);
        tasks.push_back({std::move(splits),
                         {alphas.size(), pointer(alphas), pointer(damping), relative},
                         scores.back().mutable_data()});
    }
    {
        const without_gil release;
        hold_out_all(static_cast<std::ptrdiff_t>(problems.size()), problems.data(), tasks.data(),
                     n_threads);
    }
    py::list out;
    for (std::size_t i = 0; i < tasks.size(); ++i)
        out.append(tasks[i].failure == batch_failure::none ? py::object(scores[i])
                                                           : py::object(py::none()));
    return out;
}

py::list decompose(const std::vector<const bound_batch_problem*>& bound, int n_threads) {
    const auto problems = problems_of(bound);
    std::vector<decomposition> found(problems.size());
    {
        const without_gil release;
        decompose_all(static_cast<std::ptrdiff_t>(problems.size()), problems.data(), found.data(),
                      n_threads);
    }
    const auto as_array = [](const std::vector<double>& values, std::vector<py::ssize_t> shape) {
        return array<double>(std::move(shape), values.data());
    };
    py::list out;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto& d = found[i];
        if (d.failure != batch_failure::none) {
            out.append(py::none());
            continue;
        }
        const auto& f = problems[i].features;
        out.append(py::make_tuple(as_array(d.eigenvalues, {d.rank}),
                                  as_array(d.vectors, {d.rank, f.n_features}),
                                  as_array(d.projection, {f.n_targets, d.rank}), d.pair_weight));
        found[i] = {};
    }
    return out;
}

}  // namespace

void bind_batch(py::module_& m) {
    py::class_<bound_batch_problem>(m, "BatchProblem")
        .def(py::init(&make_batch_problem), py::keep_alive<1, 2>(), py::arg("problem"),
             py::arg("features").noconvert(), py::arg("targets").noconvert(), py::kw_only(),
             py::arg("map") = py::none());
    m.def("hold_out_batch", &hold_out, py::arg("tasks"), py::arg("n_threads"));
    m.def("decompose_batch", &decompose, py::arg("problems"), py::arg("n_threads"));
}

}  // namespace pairgram
