// Fits of many groups: checks, GIL release, m.def.
#include "solvers/group_fits.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/losses.hpp"
#include "solvers/group_search.hpp"
#include "solvers/group_svms.hpp"

namespace pairgram {

namespace {

// Dense rows in one block, or a block for each group.
using row_blocks = std::variant<std::vector<array<double>>, std::vector<array<float>>>;

template <class T>
void take_rows(const std::vector<array<T>>& blocks, query_groups& groups) {
    const auto n_blocks = length_of(blocks);
    check(n_blocks == 1 || n_blocks == groups.n_groups,
          "rows must be one block, or one for each group");
    auto& taken = groups.blocks.emplace<buffer<const T*>>();
    for (py::ssize_t b = 0; b < n_blocks; ++b) {
        const auto& block = blocks[size_of(b)];
        check(block.ndim() == 2, "rows must be 2-d");
        if (b == 0) groups.n_columns = block.shape(1);
        check(block.shape(1) == groups.n_columns, "all blocks must have as many columns");
        const auto n_rows = n_blocks == 1 ? groups.problem.rows.n_rows() : groups.n_rows(b);
        check(block.shape(0) == n_rows, "rows must be those of the problem");
        taken.push_back(pointer(block));
    }
}

// Whether the rows of every group stand together.
bool have_own_rows(const query_groups& groups) {
    const auto& rows = groups.problem.rows;
    for (py::ssize_t g = 0; rows.order && g < groups.n_groups; ++g) {
        const auto begin = groups.begin(g), end = groups.begin(g + 1);
        for (auto i = begin; i < end; ++i)
            if (rows.row(i) < begin || rows.row(i) >= end) return false;
    }
    return true;
}

// Groups of the rows of a problem, with their targets, a map of the rows or none, and the rows.
struct checked_groups : query_groups {
    py::ssize_t n_values = 0, n_models = 0;

    checked_groups(const bound_problem& of, const array<std::int64_t>& first_queries,
                   const array<std::int64_t>& numbers, const array<double>& all_targets,
                   const row_blocks& rows, const py::object& given_map)
        : query_groups{of.view} {
        const auto& all = problem.rows;
        check(first_queries.ndim() == 1 && first_queries.size() > 1,
              "queries must be 1-d, one more than groups");
        n_groups = first_queries.size() - 1;
        queries = pointer(first_queries);
        check(queries[0] == 0 && std::is_sorted(queries, queries + n_groups + 1) &&
                  queries[n_groups] == all.n_queries,
              "queries must ascend from 0 to the number of queries");
        check(numbers.ndim() == 1 && numbers.size() == n_groups, "n_targets: 1-d, one a group");
        n_targets = pointer(numbers);
        check(all_targets.ndim() == 1, "targets must be 1-d");
        targets = pointer(all_targets);
        for (py::ssize_t g = 0; g < n_groups; ++g) {
            const auto n = n_targets[g];
            check(n > 0 && n <= std::max<py::ssize_t>(all_targets.size(), 1),
                  "a group must have a target or more, and a number for each of them");
            n_values += n * n_rows(g);
            n_models += n;
        }
        check(all_targets.size() == n_values,
              "targets must have the rows and targets of the groups");
        std::visit([&](const auto& given) { take_rows(given, *this); }, rows);
        const bool in_one_block = std::visit([](const auto& it) { return it.size() == 1; }, rows);
        check((n_models == n_groups && in_one_block) || have_own_rows(*this),
              "groups with several targets, or blocks of their own, need rows that stand together");
        const auto kind = problem.rule.kind;
        check(n_models == n_groups ||
                  (!all.row_weights && (kind == pair_kind::kept || kind == pair_kind::none)),
              "groups with several targets need pairs without labels, and rows without weights");
        check(given_map.is_none() || py::isinstance<bound_node_map<double>>(given_map),
              "map must be None or a NodeMap of float64");
        map = given_map.is_none() ? nullptr : &given_map.cast<const bound_node_map<double>*>()->map;
        check(!map || map->n_inputs == n_columns, "rows must be the map's inputs");
    }
};

// What fits of groups write.
struct fitted_groups {
    array<double> weights, squares, products, pair_weights;
    array<std::int8_t> states;
    group_sums sums;

    fitted_groups(const checked_groups& given, bool tells)
        : weights({given.n_models, given.n_features()}),
          squares({tells ? given.n_groups : 0, given.n_features()}),
          products({tells ? given.n_groups : 0, given.n_features()}),
          pair_weights(tells ? given.n_groups : 0),
          states(given.n_groups) {
        if (tells)
            sums = {squares.mutable_data(), products.mutable_data(), pair_weights.mutable_data()};
    }

    py::tuple told() const {
        return py::make_tuple(weights, states, py::make_tuple(squares, products, pair_weights));
    }
    group_state* state() { return reinterpret_cast<group_state*>(states.mutable_data()); }
};

py::tuple fit(const bound_problem& problem, const array<std::int64_t>& queries,
              const array<std::int64_t>& n_targets, const array<double>& targets,
              const row_blocks& blocks, const py::object& map, double alpha, bool tells,
              int n_threads) {
    const checked_groups given(problem, queries, n_targets, targets, blocks, map);
    fitted_groups found(given, tells);
    unlocked_for(given.n_values * given.n_features(), fit_groups, given, alpha,
                 found.weights.mutable_data(), found.state(), found.sums, n_threads);
    return found.told();
}

// The settings of a solver: loss, steepness, tol and max_iter.
using solver_settings = std::tuple<std::string, double, double, py::ssize_t>;

svm_settings settings_of(const bound_problem& problem, const solver_settings& given,
                         const double* origin) {
    const auto& [loss, steepness, tol, max_iter] = given;
    return {loss_of(problem, loss), tol, steepness, max_iter, origin};
}

// A target for each of n groups.
array<std::int64_t> ones(py::ssize_t n) {
    array<std::int64_t> found(std::max<py::ssize_t>(n, 0));
    std::fill_n(found.mutable_data(), found.size(), std::int64_t{1});
    return found;
}

py::tuple fit_svms(const bound_problem& problem, const array<std::int64_t>& queries,
                   const array<double>& offsets, const row_blocks& blocks, const py::object& map,
                   const solver_settings& given_settings, const array<double>& Cs,
                   const optional_array<double>& origin, bool tells, int n_threads) {
    const auto n_targets = ones(queries.size() - 1);
    const checked_groups given(problem, queries, n_targets, offsets, blocks, map);
    check_one_per("origin must be 1-d, one per feature", origin, given.n_features());
    check_one_per("Cs must be 1-d, one per group", Cs, given.n_groups);
    fitted_groups found(given, tells);
    std::vector<newton_history> histories(size_of(given.n_groups));
    const fitted_svms out{found.weights.mutable_data(), found.state(), histories.data(),
                          found.sums};
    unlocked_for(given.n_values * given.n_features(), fit_group_svms, given,
                 settings_of(problem, given_settings, pointer(origin)), pointer(Cs), out,
                 n_threads);
    return py::make_tuple(found.told(), std::move(histories));
}

// Some groups of one target each, with room for what a search finds of them.
struct searched_groups {
    array<std::int64_t> n_targets;
    checked_groups given;
    std::ptrdiff_t first, last, n_positions;
    array<double> values, scores;
    array<std::int8_t> states;

    searched_groups(const bound_problem& problem, const array<std::int64_t>& queries,
                    const array<double>& targets, const row_blocks& blocks, const py::object& map,
                    std::pair<py::ssize_t, py::ssize_t> range,
                    const optional_array<std::int64_t>& units, py::ssize_t n_values)
        : n_targets(ones(queries.size() - 1)),
          given(problem, queries, n_targets, targets, blocks, map),
          first(range.first),
          last(range.second) {
        const auto& all = problem.view.rows;
        check(0 <= first && first < last && last <= given.n_groups, "range must have groups");
        check_one_per("units must be 1-d, one per row", units, all.n_rows());
        n_positions = given.begin(last) - given.begin(first);
        values = array<double>({last - first, n_values});
        scores = array<double>({n_values, n_positions});
        states = array<std::int8_t>(last - first);
        std::fill_n(values.mutable_data(), values.size(), 0.0);
        std::fill_n(scores.mutable_data(), scores.size(), std::numeric_limits<double>::quiet_NaN());
    }

    group_state* state() { return reinterpret_cast<group_state*>(states.mutable_data()); }
};

py::tuple search_svms(const bound_problem& problem, const array<std::int64_t>& queries,
                      const array<double>& offsets, const row_blocks& blocks,
                      std::pair<py::ssize_t, py::ssize_t> range, const array<double>& Cs,
                      bool relative, const array<std::int64_t>& units,
                      const solver_settings& given_settings, const py::object& map, int n_threads) {
    check(Cs.ndim() == 1 && Cs.size() > 0, "Cs must be 1-d");
    searched_groups found(problem, queries, offsets, blocks, map, range, units, Cs.size());
    const searched_svms out{found.first, found.last, found.values.mutable_data(),
                            found.scores.mutable_data(), found.state()};
    unlocked(search_group_svms, found.given, settings_of(problem, given_settings, nullptr),
             svm_grid{Cs.size(), pointer(Cs), relative, pointer(units)}, out, n_threads);
    return py::make_tuple(found.states, found.values, found.scores);
}

py::tuple search(const bound_problem& problem, const array<std::int64_t>& queries,
                 const array<double>& targets, const row_blocks& blocks,
                 std::pair<py::ssize_t, py::ssize_t> range, const optional_array<double>& alphas,
                 const array<double>& multiples, const array<double>& powers, bool started,
                 std::tuple<double, double, double> limits,
                 const optional_array<std::int64_t>& units, const py::object& map, bool tells,
                 int n_threads) {
    check(!alphas || (alphas->ndim() == 1 && alphas->size() > 0), "alphas must be 1-d");
    check(multiples.ndim() == 1 && powers.ndim() == 1, "multiples and powers must be 1-d");
    const auto m = alphas ? alphas->size() : multiples.size() + powers.size();
    searched_groups found(problem, queries, targets, blocks, map, range, units, m);
    const auto [rounding, most_held, least_share] = limits;
    const search_grid grid{
        m,       pointer(alphas), multiples.size(), pointer(multiples), pointer(powers),
        started, rounding,        most_held,        least_share,        pointer(units)};
    const auto n = found.last - found.first, d = found.given.n_features();
    array<double> models({n, m, d}), grams({tells ? n : 0, d, d}), pair_weights(tells ? n : 0);
    const found_paths out{found.first,
                          found.last,
                          found.values.mutable_data(),
                          models.mutable_data(),
                          found.scores.mutable_data(),
                          tells ? grams.mutable_data() : nullptr,
                          pair_weights.mutable_data(),
                          found.state()};
    unlocked(search_groups, found.given, grid, out, n_threads);
    return py::make_tuple(found.states, found.values, models, found.scores, grams, pair_weights);
}

}  // namespace

void bind_group_fits(py::module_& m) {
    m.attr("LARGEST_OWN") = largest_own;
    m.def("fit_groups", &fit, "problem"_a, "queries"_a, "n_targets"_a, "targets"_a, "blocks"_a,
          py::kw_only(), "map"_a = py::none(), "alpha"_a, "tells"_a = false, "n_threads"_a);
    m.def("fit_group_svms", &fit_svms, "problem"_a, "queries"_a, "offsets"_a, "blocks"_a,
          py::kw_only(), "map"_a = py::none(), "settings"_a, "Cs"_a, "origin"_a = py::none(),
          "tells"_a = false, "n_threads"_a);
    m.def("search_group_svms", &search_svms, "problem"_a, "queries"_a, "offsets"_a, "blocks"_a,
          py::kw_only(), "range"_a, "Cs"_a, "relative"_a, "units"_a, "settings"_a,
          "map"_a = py::none(), "n_threads"_a);
    m.def("search_groups", &search, "problem"_a, "queries"_a, "targets"_a, "blocks"_a,
          py::kw_only(), "range"_a, "alphas"_a, "multiples"_a, "powers"_a, "started"_a, "limits"_a,
          "units"_a = py::none(), "map"_a = py::none(), "tells"_a = false, "n_threads"_a);
}

}  // namespace pairgram
