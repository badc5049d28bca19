// The Python module: array types, checks, GIL release, m.def; nothing else.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "blocks.hpp"
#include "gram.hpp"
#include "half_laplacian.hpp"
#include "leave_query_out.hpp"
#include "letor.hpp"
#include "metrics.hpp"
#include "vmath.hpp"

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
    const std::int64_t* const bounds = offsets.data();
    const auto n = static_cast<std::int64_t>(labels.size());
    const auto in_range = [n](std::int64_t row) { return row >= 0 && row < n; };
    if (labels.ndim() != 1 || scores.ndim() != 2 || scores.shape(1) != n || offsets.ndim() != 1 ||
        offsets.size() < 1 || bounds[0] != 0 || bounds[offsets.size() - 1] != n ||
        !std::is_sorted(bounds, bounds + offsets.size()) ||
        (order && (order->ndim() != 1 || order->size() != n ||
                   !std::all_of(order->data(), order->data() + n, in_range)))) {
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
    const pg::QueryRows queries{offsets.size() - 1, bounds, order ? order->data() : nullptr};
    double* const out_data = out.mutable_data();
    {
        const py::gil_scoped_release release;
        pg::evaluate_metrics(labels.size(), scores.shape(0), n_metrics, queries, labels.data(),
                             scores.data(), metrics.data(), out_data, n_threads);
    }
    return out;
}

// Gives memory that a kernel has filled to NumPy, without a copy.
template <class T>
array<T> give(pg::growing_array<T>&& data, std::vector<py::ssize_t> shape) {
    auto* owner = new pg::growing_array<T>(std::move(data));
    const py::capsule free(owner, [](void* p) { delete static_cast<pg::growing_array<T>*>(p); });
    return array<T>(std::move(shape), owner->data(), free);
}

template <class T>
array<T> copy(const pg::growing_array<T>& data) {
    return array<T>(data.size(), data.data());
}

template <class T>
array<T> take_dense(pg::letor_parser<T>& parser) {
    pg::growing_array<T> values;
    {
        const py::gil_scoped_release release;
        values = parser.take_dense();
    }
    return give(std::move(values), {parser.n_rows(), parser.n_features()});
}

template <class T>
py::tuple take_csr(pg::letor_parser<T>& parser) {
    pg::growing_array<T> values;
    pg::growing_array<std::int32_t> indices;
    {
        const py::gil_scoped_release release;
        values = parser.take_csr(indices);
    }
    const py::ssize_t n_values = values.size();
    array<std::int64_t> indptr(parser.n_rows() + 1);
    indptr.mutable_data()[0] = 0;
    std::copy_n(parser.rows().value_ends.data(), parser.n_rows(), indptr.mutable_data() + 1);
    return py::make_tuple(give(std::move(values), {n_values}), give(std::move(indices), {n_values}),
                          indptr);
}

template <class T>
py::list comments_of(const pg::letor_parser<T>& parser) {
    py::list out;
    const auto& rows = parser.rows();
    std::int64_t begin = 0;
    for (std::ptrdiff_t row = 0; row < rows.comment_ends.size(); ++row) {
        const std::int64_t end = rows.comment_ends[row];
        out.append(py::str(rows.comments.data() + begin, static_cast<std::size_t>(end - begin)));
        begin = end;
    }
    return out;
}

template <class T>
void bind_letor_parser(py::module_& m, const char* class_name) {
    using parser_t = pg::letor_parser<T>;
    py::class_<parser_t>(m, class_name)
        .def(py::init([](std::string name, std::int64_t n_features, bool zero_based,
                         bool keep_comments, std::ptrdiff_t piece_size, int n_threads) {
                 return parser_t(std::move(name), {n_features, zero_based, keep_comments},
                                 piece_size, n_threads);
             }),
             py::kw_only(), py::arg("name"), py::arg("n_features"), py::arg("zero_based"),
             py::arg("keep_comments"), py::arg("piece_size"), py::arg("n_threads"))
        .def("feed",
             [](parser_t& parser, const py::buffer& data) {
                 const py::buffer_info info = data.request();
                 if (info.itemsize != 1 || info.ndim != 1 || info.strides[0] != 1) {
                     throw std::invalid_argument("feed wants contiguous bytes");
                 }
                 const py::gil_scoped_release release;
                 parser.feed(static_cast<const char*>(info.ptr), info.size);
             })
        .def("finish", &parser_t::finish, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("n_rows", &parser_t::n_rows)
        .def_property_readonly("n_features", &parser_t::n_features)
        .def_property_readonly("n_lines", &parser_t::n_lines)
        .def_property_readonly("n_values", [](const parser_t& p) { return p.rows().values.size(); })
        .def_property_readonly("largest_index_line",
                               [](const parser_t& p) { return p.rows().largest_index_line; })
        .def("labels", [](const parser_t& p) { return copy(p.rows().labels); })
        .def("ids",
             [](const parser_t& p) {
                 return p.has_ids() ? py::object(copy(p.rows().ids)) : py::none();
             })
        .def("named_ids",
             [](const parser_t& p) {
                 py::list out;
                 for (const auto& run : p.rows().names) {
                     out.append(py::make_tuple(run.first, run.count, run.id));
                 }
                 return out;
             })
        .def("comments", &comments_of<T>)
        .def("take_dense", &take_dense<T>)
        .def("take_csr", &take_csr<T>);
}

template <class T>
py::bytes format_letor(const array<T>& values, const std::optional<array<std::int64_t>>& indptr,
                       const std::optional<array<std::int64_t>>& indices,
                       const array<double>& labels, std::ptrdiff_t first, std::ptrdiff_t n_rows,
                       const std::optional<std::string>& ids,
                       const std::optional<std::string>& comments, bool zero_based) {
    const bool dense =
        !indptr && !indices && values.ndim() == 2 && values.shape(0) >= labels.size();
    const bool csr = indptr && indices && values.ndim() == 1 &&
                     indptr->size() == labels.size() + 1 && indices->size() == values.size();
    if (first < 0 || n_rows < 0 || first + n_rows > labels.size() || dense == csr) {
        throw std::invalid_argument("format_letor: the shapes disagree");
    }
    const pg::letor_source<T> source{first,
                                     n_rows,
                                     dense ? values.shape(1) : 0,
                                     values.data(),
                                     indptr ? indptr->data() : nullptr,
                                     indices ? indices->data() : nullptr,
                                     labels.data(),
                                     ids ? &*ids : nullptr,
                                     comments ? &*comments : nullptr,
                                     zero_based};
    std::string text;
    {
        const py::gil_scoped_release release;
        text = pg::format_letor(source);
    }
    return py::bytes(text);
}

template <class T>
void bind_format_letor(py::module_& m) {
    m.def("format_letor", &format_letor<T>, py::arg("values").noconvert(),
          py::arg("indptr").noconvert(), py::arg("indices").noconvert(),
          py::arg("labels").noconvert(), py::kw_only(), py::arg("first"), py::arg("n_rows"),
          py::arg("ids"), py::arg("comments"), py::arg("zero_based"));
}

template <class T>
void apply_activation(const std::string& name, array<T> values) {
    static constexpr std::pair<const char*, pg::activation> activations[] = {
        {"exp", pg::activation::exp},         {"gaussian", pg::activation::gaussian},
        {"sigmoid", pg::activation::sigmoid}, {"tanh", pg::activation::tanh},
        {"cos", pg::activation::cos},         {"sin", pg::activation::sin},
        {"relu", pg::activation::relu},       {"hardlim", pg::activation::hardlim}};
    const auto* const found = std::find_if(std::begin(activations), std::end(activations),
                                           [&](const auto& entry) { return name == entry.first; });
    check(found != std::end(activations), "unknown activation");
    T* const data = values.mutable_data();
    const py::gil_scoped_release release;
    pg::apply(found->second, values.size(), data);
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
    define_least_squares<double>(m);
    define_least_squares<float>(m);
    m.def("evaluate_metrics", &evaluate_metrics, py::arg("labels").noconvert(),
          py::arg("scores").noconvert(), py::arg("offsets").noconvert(),
          py::arg("order").noconvert(), py::arg("specs"), py::arg("n_threads"));
    bind_letor_parser<float>(m, "LetorParser32");
    bind_letor_parser<double>(m, "LetorParser64");
    bind_format_letor<float>(m);
    bind_format_letor<double>(m);
    m.def("apply_activation", &apply_activation<double>, py::arg("name"),
          py::arg("values").noconvert());
    m.def("apply_activation", &apply_activation<float>, py::arg("name"),
          py::arg("values").noconvert());
}
