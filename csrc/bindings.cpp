// The Python module: array types, checks, GIL release, m.def; nothing else.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "blas.hpp"
#include "blocks.hpp"
#include "gram.hpp"
#include "half_laplacian.hpp"
#include "leave_query_out.hpp"
#include "metrics.hpp"

namespace py = pybind11;
namespace pg = pairgram;

namespace {

// Every array that crosses the boundary: C-contiguous, the exact dtype, never silently copied.
template <class T>
using array = py::array_t<T, py::array::c_style>;
template <class T>
using optional_array = std::optional<array<T>>;

void check(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class T>
const T* pointer(const optional_array<T>& values) {
    return values ? values->data() : nullptr;
}

// The pairs and their weights, as src/pairgram/gram.py hands them over.
pg::pair_rule rule_of(const std::string& pairs, const std::string& weighting,
                      const optional_array<double>& level_values,
                      const optional_array<double>& omega) {
    const auto kind = pairs == "none"      ? pg::pair_kind::none
                      : pairs == "kept"    ? pg::pair_kind::kept
                      : pairs == "dropped" ? pg::pair_kind::dropped
                                           : pg::pair_kind::omega;
    const auto weights = weighting == "pairs"       ? pg::weighting_kind::pairs
                         : weighting == "documents" ? pg::weighting_kind::documents
                                                    : pg::weighting_kind::queries;
    check(kind != pg::pair_kind::omega || (level_values && omega), "omega needs its levels");
    const auto n_levels = level_values ? level_values->size() : 0;
    check(!omega || omega->size() == n_levels * n_levels, "omega must be (n_levels, n_levels)");
    return {kind, weights, n_levels, pointer(level_values), pointer(omega)};
}

struct ranking_arrays {
    array<double> labels;
    array<std::int64_t> offsets;
    optional_array<std::int64_t> order;
    optional_array<double> row_weights, query_weights;

    pg::query_rows view(py::ssize_t n_rows) const {
        const auto n_queries = offsets.size() - 1;
        check(n_queries >= 0 && offsets.data()[n_queries] == n_rows, "offsets must end at n_rows");
        check(labels.size() == n_rows, "labels must have a value per row");
        check(!order || order->size() == n_rows, "order must have a value per row");
        check(!row_weights || row_weights->size() == n_rows, "row_weights: one per row");
        check(!query_weights || query_weights->size() == n_queries, "query_weights: one per query");
        return {n_queries,     offsets.data(),       pointer(order),
                labels.data(), pointer(row_weights), pointer(query_weights)};
    }
};

template <class T>
pg::feature_rows<T> features_of(const array<T>& features, const array<double>& targets) {
    check(features.ndim() == 2 && targets.ndim() == 2, "features and targets must be 2-d");
    check(features.shape(0) == targets.shape(0), "features and targets must have equal rows");
    return {features.shape(1), features.data(), targets.shape(1), targets.data()};
}

template <class T>
py::tuple gram(const array<T>& features, const array<double>& targets, const array<double>& labels,
               const array<std::int64_t>& offsets, const optional_array<std::int64_t>& order,
               const optional_array<double>& row_weights,
               const optional_array<double>& query_weights, const std::string& pairs,
               const std::string& weighting, const optional_array<double>& level_values,
               const optional_array<double>& omega, py::ssize_t block_rows, int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const auto rows = features_of(features, targets);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(features.shape(0));
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
    const auto view = arrays.view(n);
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
                              const array<double>& alphas, int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const auto rows = features_of(features, targets);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(features.shape(0));
    const auto width = rows.n_features;
    check(rows.n_targets == 1, "targets must have one column");
    check(basis.ndim() == 2 && basis.shape(0) == width && basis.shape(1) == width,
          "basis must be (n_features, n_features)");
    check(eigenvalues.size() == width && projection.size() == width, "one value per eigenvector");
    const pg::ridge_path path{width,         basis.data(), eigenvalues.data(), projection.data(),
                              alphas.size(), alphas.data()};
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
    m.def("gram", &gram<T>, PAIRGRAM_RANKING_ARGUMENTS, py::arg("block_rows") = 0,
          py::arg("n_threads") = 1);
    m.def("half_laplacian", &half_laplacian<T>, PAIRGRAM_RANKING_ARGUMENTS);
    m.def("leave_query_out", &leave_query_out<T>, PAIRGRAM_RANKING_ARGUMENTS,
          py::arg("basis").noconvert(), py::arg("eigenvalues").noconvert(),
          py::arg("projection").noconvert(), py::arg("alphas").noconvert(),
          py::arg("n_threads") = 1);
}

// One metric: kind, cut, gain, discount, ties, empty, relevant, max_grade, divide_by_cut.
using metric_spec = std::tuple<int, std::int64_t, int, int, int, double, double, double, bool>;

array<double> evaluate_metrics(const array<double>& labels, const array<double>& scores,
                               const array<std::int64_t>& offsets,
                               const std::optional<array<std::int64_t>>& order,
                               const std::vector<metric_spec>& specs, int n_threads) {
    if (labels.ndim() != 1 || scores.ndim() != 2 || scores.shape(1) != labels.size() ||
        offsets.ndim() != 1 || offsets.size() < 1 || offsets.data()[0] != 0 ||
        offsets.data()[offsets.size() - 1] != labels.size() ||
        (order && (order->ndim() != 1 || order->size() != labels.size()))) {
        throw std::invalid_argument("labels, scores, offsets and order do not fit each other");
    }
    std::vector<pg::Metric> metrics;
    for (const auto& [kind, cut, gain, discount, ties, empty, relevant, max_grade, by_cut] :
         specs) {
        metrics.push_back({static_cast<pg::MetricKind>(kind), static_cast<std::ptrdiff_t>(cut),
                           static_cast<pg::Gain>(gain), static_cast<pg::Discount>(discount),
                           static_cast<pg::Ties>(ties), empty, relevant, max_grade, by_cut});
    }
    const auto n_metrics = static_cast<py::ssize_t>(metrics.size());
    array<double> out({n_metrics, scores.shape(0), offsets.size() - 1});
    const pg::QueryRows queries{offsets.size() - 1, offsets.data(),
                                order ? order->data() : nullptr};
    double* const out_data = out.mutable_data();
    {
        const py::gil_scoped_release release;
        pg::evaluate_metrics(labels.size(), scores.shape(0), n_metrics, queries, labels.data(),
                             scores.data(), metrics.data(), out_data, n_threads);
    }
    return out;
}

}  // namespace

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
    m.attr("__version__") = PAIRGRAM_VERSION;

    const auto table = py::module_::import("pairgram._scipy_blas").attr("table");
    pg::blas::set_table(static_cast<const pairgram_blas_table*>(
        PyCapsule_GetPointer(table.ptr(), "pairgram.blas_table")));

    define_least_squares<double>(m);
    define_least_squares<float>(m);
    m.def("evaluate_metrics", &evaluate_metrics, py::arg("labels").noconvert(),
          py::arg("scores").noconvert(), py::arg("offsets").noconvert(),
          py::arg("order").noconvert(), py::arg("specs"), py::arg("n_threads"));
}
