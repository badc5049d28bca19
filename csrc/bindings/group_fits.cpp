// Fits of many groups: checks, GIL release, m.def.
#include "solvers/group_fits.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/losses.hpp"
#include "solvers/group_search.hpp"
#include "solvers/group_svms.hpp"

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

// Groups of the rows of a problem, with their targets, a map of the rows or none, and the rows.
template <class T>
struct checked_groups {
    query_groups groups;
    given_rows<T> rows;
    const node_map<double>* map;
    py::ssize_t n_features, n_values = 0, n_models = 0;

    checked_groups(const bound_problem& problem, const array<std::int64_t>& queries,
                   const array<std::int64_t>& n_targets, const array<double>& targets,
                   const std::vector<array<T>>& blocks, const py::object& given_map) {
        const auto& all = problem.view.rows;
        check(queries.ndim() == 1 && queries.size() > 1,
              "queries must be 1-d, one more than groups");
        const auto n_groups = queries.size() - 1;
        const auto* const first = pointer(queries);
        check(first[0] == 0 && std::is_sorted(first, first + n_groups + 1) &&
                  first[n_groups] == all.n_queries,
              "queries must ascend from 0 to the number of queries");
        check(n_targets.ndim() == 1 && n_targets.size() == n_groups, "n_targets: 1-d, one a group");
        check(targets.ndim() == 1, "targets must be 1-d");
        for (py::ssize_t g = 0; g < n_groups; ++g) {
            const auto n = pointer(n_targets)[g];
            check(n > 0 && n <= std::max<py::ssize_t>(targets.size(), 1),
                  "a group must have a target or more, and a number for each of them");
            n_values += n * (all.begin(first[g + 1]) - all.begin(first[g]));
            n_models += n;
        }
        check(targets.size() == n_values, "targets must have the rows and targets of the groups");
        rows = rows_of(blocks, problem, queries);
        check((n_models == n_groups && rows.blocks.size() == 1) || have_own_rows(all, queries),
              "groups with several targets, or blocks of their own, need rows that stand together");
        check(given_map.is_none() || py::isinstance<bound_node_map<double>>(given_map),
              "map must be None or a NodeMap of float64");
        map = given_map.is_none() ? nullptr : &given_map.cast<const bound_node_map<double>*>()->map;
        check(!map || map->n_inputs == rows.n_columns, "rows must be the map's inputs");
        n_features = map ? map->n_outputs : rows.n_columns;
        groups = {n_groups, first, pointer(n_targets), pointer(targets)};
    }
};

// What fits of groups write.
struct fitted_groups {
    array<double> weights, squares, products, pair_weights;
    array<std::int8_t> states;
    group_sums sums;

    template <class T>
    fitted_groups(const checked_groups<T>& given, bool tells)
        : weights({given.n_models, given.n_features}),
          squares({tells ? given.groups.n_groups : 0, given.n_features}),
          products({tells ? given.groups.n_groups : 0, given.n_features}),
          pair_weights(tells ? given.groups.n_groups : 0),
          states(given.groups.n_groups) {
        if (tells)
            sums = {squares.mutable_data(), products.mutable_data(), pair_weights.mutable_data()};
    }

    py::tuple told() const {
        return py::make_tuple(weights, states, py::make_tuple(squares, products, pair_weights));
    }
    group_state* state() { return reinterpret_cast<group_state*>(states.mutable_data()); }
};

template <class T>
py::tuple fit(const bound_problem& problem, const array<std::int64_t>& queries,
              const array<std::int64_t>& n_targets, const array<double>& targets,
              const std::vector<array<T>>& blocks, const py::object& map, double alpha, bool tells,
              int n_threads) {
    const checked_groups<T> given(problem, queries, n_targets, targets, blocks, map);
    fitted_groups found(given, tells);
    unlocked_for(given.n_values * given.n_features, fit_groups<T>, problem.view, given.groups,
                 given.rows, given.map, alpha, found.weights.mutable_data(), found.state(),
                 found.sums, n_threads);
    return found.told();
}

template <class T>
py::tuple fit_svms(const bound_problem& problem, const array<std::int64_t>& queries,
                   const array<std::int64_t>& n_targets, const array<double>& offsets,
                   const std::vector<array<T>>& blocks, const py::object& map,
                   const std::string& loss, double C, double steepness, double tol,
                   py::ssize_t max_iter, const optional_array<double>& origin, bool tells,
                   int n_threads) {
    const checked_groups<T> given(problem, queries, n_targets, offsets, blocks, map);
    check(given.n_models == given.groups.n_groups, "n_targets must be ones");
    if (origin) check_one_per("origin must be 1-d, one per feature", *origin, given.n_features);
    const svm_settings settings{loss_of(problem, loss), C, tol, steepness, max_iter,
                                pointer(origin)};
    fitted_groups found(given, tells);
    std::vector<newton_history> histories(size_of(given.groups.n_groups));
    unlocked_for(given.n_values * given.n_features, fit_group_svms<T>, problem.view, given.groups,
                 given.rows, given.map, settings, found.weights.mutable_data(), found.state(),
                 histories.data(), found.sums, n_threads);
    return py::make_tuple(found.told(), std::move(histories));
}

template <class T>
py::tuple search(const bound_problem& problem, const array<std::int64_t>& queries,
                 const array<double>& targets, const std::vector<array<T>>& blocks,
                 std::pair<py::ssize_t, py::ssize_t> range, const optional_array<double>& alphas,
                 const array<double>& multiples, const array<double>& powers, bool started,
                 std::tuple<double, double, double> limits, const py::object& map, bool tells,
                 int n_threads) {
    const array<std::int64_t> n_targets(std::max<py::ssize_t>(queries.size() - 1, 0));
    auto* const of_each = const_cast<std::int64_t*>(n_targets.data());
    std::fill_n(of_each, n_targets.size(), std::int64_t{1});
    const checked_groups<T> given(problem, queries, n_targets, targets, blocks, map);
    const auto [first, last] = range;
    check(0 <= first && first < last && last <= given.groups.n_groups, "range must have groups");
    check(!alphas || (alphas->ndim() == 1 && alphas->size() > 0), "alphas must be 1-d");
    check(multiples.ndim() == 1 && powers.ndim() == 1, "multiples and powers must be 1-d");
    const auto m = alphas ? alphas->size() : multiples.size() + powers.size();
    const search_grid grid{
        m,       pointer(alphas),     multiples.size(),    pointer(multiples), pointer(powers),
        started, std::get<0>(limits), std::get<1>(limits), std::get<2>(limits)};
    const auto& all = problem.view.rows;
    const auto* const bounds = queries.data();
    const auto n_positions = all.begin(bounds[last]) - all.begin(bounds[first]);
    const auto n = last - first, d = given.n_features;
    array<double> found_alphas({n, m}), models({n, m, d}), scores({m, n_positions});
    array<double> grams({tells ? n : 0, d, d}), pair_weights(tells ? n : 0);
    array<std::int8_t> states(n);
    std::fill_n(scores.mutable_data(), scores.size(), std::numeric_limits<double>::quiet_NaN());
    const found_paths out{first,
                          last,
                          found_alphas.mutable_data(),
                          models.mutable_data(),
                          scores.mutable_data(),
                          tells ? grams.mutable_data() : nullptr,
                          pair_weights.mutable_data(),
                          reinterpret_cast<group_state*>(states.mutable_data())};
    unlocked(search_groups<T>, problem.view, given.groups, given.rows, given.map, grid, out,
             n_threads);
    return py::make_tuple(states, found_alphas, models, scores, grams, pair_weights);
}

template <class T>
void bind_fit(py::module_& m) {
    m.def("fit_groups", &fit<T>, "problem"_a, "queries"_a, "n_targets"_a, "targets"_a, "blocks"_a,
          py::kw_only(), "map"_a = py::none(), "alpha"_a, "tells"_a = false, "n_threads"_a);
    m.def("fit_group_svms", &fit_svms<T>, "problem"_a, "queries"_a, "n_targets"_a, "offsets"_a,
          "blocks"_a, py::kw_only(), "map"_a = py::none(), "loss"_a, "C"_a, "steepness"_a, "tol"_a,
          "max_iter"_a, "origin"_a = py::none(), "tells"_a = false, "n_threads"_a);
    m.def("search_groups", &search<T>, "problem"_a, "queries"_a, "targets"_a, "blocks"_a,
          py::kw_only(), "range"_a, "alphas"_a, "multiples"_a, "powers"_a, "started"_a, "limits"_a,
          "map"_a = py::none(), "tells"_a = false, "n_threads"_a);
}

}  // namespace

void bind_group_fits(py::module_& m) {
    bind_fit<double>(m);
    bind_fit<float>(m);
}

}  // namespace pairgram
