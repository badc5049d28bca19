// The Python module and its least-squares kernels: checks, GIL release, m.def; nothing else.
#include "bindings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "blas.hpp"
#include "blocks.hpp"
#include "gram.hpp"
#include "half_laplacian.hpp"
#include "leave_query_out.hpp"

namespace pg = pairgram;
namespace py = pybind11;
using pg::array;
using pg::check;
using pg::optional_array;
using pg::pointer;

namespace {

// The pairs and their weights, as src/pairgram/data.py hands them over.
pg::pair_rule rule_of(const std::string& pairs, const std::string& weighting,
                      const optional_array<double>& level_values,
                      const optional_array<double>& omega) {
    check(pairs == "none" || pairs == "kept" || pairs == "dropped" || pairs == "omega",
          "pairs must be 'none', 'kept', 'dropped' or 'omega'");
    check(weighting == "pairs" || weighting == "documents" || weighting == "queries",
          "weighting must be 'pairs', 'documents' or 'queries'");
    const auto kind = pairs == "none"      ? pg::pair_kind::none
                      : pairs == "kept"    ? pg::pair_kind::kept
                      : pairs == "dropped" ? pg::pair_kind::dropped
                                           : pg::pair_kind::omega;
    const auto weights = weighting == "pairs"       ? pg::weighting_kind::pairs
                         : weighting == "documents" ? pg::weighting_kind::documents
                                                    : pg::weighting_kind::queries;
    if (kind != pg::pair_kind::omega) return {kind, weights, 0, nullptr, nullptr};
    check(level_values && omega, "omega needs its levels");
    const auto n_levels = level_values->size();
    check(level_values->ndim() == 1, "level_values must be 1-d");
    check(omega->ndim() == 2 && omega->shape(0) == n_levels && omega->shape(1) == n_levels,
          "omega must be (n_levels, n_levels)");
    return {kind, weights, n_levels, pointer(level_values), pointer(omega)};
}

// Levels are found by sorting and searching, which a label outside their order would lead astray.
void check_labels(const pg::pair_rule& rule, const double* labels, py::ssize_t n_rows) {
    const auto* const end = labels + n_rows;
    if (rule.kind == pg::pair_kind::dropped) {
        check(std::none_of(labels, end, [](double y) { return std::isnan(y); }),
              "labels must not be NaN");
    }
    if (rule.kind != pg::pair_kind::omega) return;
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

    pg::query_rows view(const pg::pair_rule& rule, py::ssize_t n_rows) const {
        const auto queries = pg::queries_of(offsets, order, n_rows);
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
pg::feature_rows<T> features_of(const array<T>& features, const array<double>& targets,
                                const py::object& node_map = py::none()) {
    check(features.ndim() == 2 && targets.ndim() == 2, "features and targets must be 2-d");
    check(features.shape(0) == targets.shape(0), "features and targets must have equal rows");
    if (!node_map.is_none() && !py::isinstance<pg::bound_node_map<T>>(node_map))
        throw py::type_error("map must be None or a NodeMap of the features' type");
    const auto* map = node_map.is_none() ? nullptr : node_map.cast<const pg::bound_node_map<T>*>();
    check(!map || map->map.n_inputs == features.shape(1), "features must be the map's inputs");
    return {map ? map->map.n_outputs : features.shape(1), pointer(features), targets.shape(1),
            pointer(targets), map ? &map->map : nullptr};
}

template <class T>
py::tuple gram(const array<T>& features, const array<double>& targets, const array<double>& labels,
               const array<std::int64_t>& offsets, const optional_array<std::int64_t>& order,
               const optional_array<double>& row_weights,
               const optional_array<double>& query_weights, const std::string& pairs,
               const std::string& weighting, const optional_array<double>& level_values,
               const optional_array<double>& omega, const py::object& map, py::ssize_t block_rows,
               int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const auto rows = features_of(features, targets, map);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(rule, features.shape(0));
    check(block_rows >= 0, "block_rows must be at least 0");
    array<double> out({rows.width(), rows.width()});
    auto* data = out.mutable_data();
    double pair_weight = 0;
    {
        const py::gil_scoped_release release;
        pair_weight = pg::gram(rule, view, rows, block_rows, data, n_threads);
    }
    return py::make_tuple(out, pair_weight);
}

template <class T>
array<T> half_laplacian(const array<T>& features, const array<double>& targets,
                        const array<double>& labels, const array<std::int64_t>& offsets,
                        const optional_array<std::int64_t>& order,
                        const optional_array<double>& row_weights,
                        const optional_array<double>& query_weights, const std::string& pairs,
                        const std::string& weighting, const optional_array<double>& level_values,
                        const optional_array<double>& omega) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const auto rows = features_of(features, targets);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto n = features.shape(0);
    const auto view = arrays.view(rule, n);
    array<T> out({n, rows.width()});
    auto* data = out.mutable_data();
    const py::gil_scoped_release release;
    pg::half_laplacian_blocks<T> blocks(rule, view, rows, n);
    if (blocks.n_blocks() > 0) blocks.transform(0, data, rows.width());
    return out;
}

template <class T>
array<double> leave_query_out(const array<T>& features, const array<double>& targets,
                              const array<double>& labels, const array<std::int64_t>& offsets,
                              const optional_array<std::int64_t>& order,
                              const optional_array<double>& row_weights,
                              const optional_array<double>& query_weights, const std::string& pairs,
                              const std::string& weighting,
                              const optional_array<double>& level_values,
                              const optional_array<double>& omega, const array<double>& basis,
                              const array<double>& eigenvalues, const array<double>& projection,
                              const array<double>& alphas, const py::object& map, int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const auto rows = features_of(features, targets, map);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(rule, features.shape(0));
    check(rows.n_targets == 1, "targets must have one column");
    check(basis.ndim() == 2 && basis.shape(0) == rows.n_features,
          "basis must be (n_features, rank)");
    const auto rank = basis.shape(1);
    check(eigenvalues.ndim() == 1 && eigenvalues.size() == rank, "eigenvalues: 1-d, one a column");
    check(projection.ndim() == 1 && projection.size() == rank, "projection: 1-d, one a column");
    check(alphas.ndim() == 1, "alphas must be 1-d");
    const pg::ridge_path path{
        rank,          pointer(basis), pointer(eigenvalues), pointer(projection),
        alphas.size(), pointer(alphas)};
    array<double> out({alphas.size(), features.shape(0)});
    auto* data = out.mutable_data();
    const py::gil_scoped_release release;
    pg::leave_query_out(rule, view, rows, path, data, n_threads);
    return out;
}

// The arguments that say which rows form queries, and which pairs count.
#define PAIRGRAM_RANKING_ARGUMENTS                                                                 \
    py::arg("features").noconvert(), py::arg("targets").noconvert(),                               \
        py::arg("labels").noconvert(), py::arg("offsets").noconvert(), py::kw_only(),              \
        py::arg("order").noconvert() = py::none(),                                                 \
        py::arg("row_weights").noconvert() = py::none(),                                           \
        py::arg("query_weights").noconvert() = py::none(), py::arg("pairs"), py::arg("weighting"), \
        py::arg("level_values").noconvert() = py::none(),                                          \
        py::arg("omega").noconvert() = py::none()

template <class T>
void define_least_squares(py::module_& m) {
    m.def("gram", &gram<T>, PAIRGRAM_RANKING_ARGUMENTS, py::arg("map") = py::none(),
          py::arg("block_rows") = 0, py::arg("n_threads") = 1);
    m.def("half_laplacian", &half_laplacian<T>, PAIRGRAM_RANKING_ARGUMENTS);
    m.def("leave_query_out", &leave_query_out<T>, PAIRGRAM_RANKING_ARGUMENTS,
          py::arg("basis").noconvert(), py::arg("eigenvalues").noconvert(),
          py::arg("projection").noconvert(), py::arg("alphas").noconvert(),
          py::arg("map") = py::none(), py::arg("n_threads") = 1);
}

// SciPy's BLAS with 64-bit integers (ILP64) has other signatures, which Cython refuses by
// TypeError.
void take_blas_of_scipy() {
    try {
        const auto table = py::module_::import("pairgram._scipy_blas").attr("table");
        pg::blas::set_table(static_cast<const pairgram_blas_table*>(
            PyCapsule_GetPointer(table.ptr(), "pairgram.blas_table")));
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_TypeError)) throw;
        throw py::import_error(
            std::string(
                "pairgram needs a SciPy whose BLAS takes 32-bit integers (LP64), as SciPy's "
                "own wheels have; this one differs: ") +
            error.what());
    }
}

}  // namespace

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
    m.attr("__version__") = PAIRGRAM_VERSION;

    take_blas_of_scipy();
    pg::bind_metrics(m);
    pg::bind_letor(m);
    pg::bind_feature_maps(m);
    define_least_squares<double>(m);
    define_least_squares<float>(m);
}
