// The Python module and its least-squares kernels: checks, GIL release, m.def; nothing else.
#include "bindings.hpp"

#include <cstdint>
#include <string>

#include "bindings_ranking.hpp"
#include "blas.hpp"
#include "blocks.hpp"
#include "gram.hpp"
#include "half_laplacian.hpp"
#include "laplacian_root.hpp"
#include "leave_query_out.hpp"

namespace pg = pairgram;
namespace py = pybind11;
using pg::array;
using pg::check;
using pg::features_of;
using pg::optional_array;
using pg::pointer;
using pg::ranking_arrays;
using pg::rule_of;

namespace {

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

// (n, n_vectors) vectors in columns, or (n_vectors, n) in rows.
void apply_half_laplacian(array<double>& vectors, const array<double>& labels,
                          const array<std::int64_t>& offsets,
                          const optional_array<std::int64_t>& order,
                          const optional_array<double>& row_weights,
                          const optional_array<double>& query_weights, const std::string& pairs,
                          const std::string& weighting, const optional_array<double>& level_values,
                          const optional_array<double>& omega, int axis, bool adjoint,
                          int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    check(vectors.ndim() == 2, "vectors must be 2-d");
    check(axis == 0 || axis == 1, "axis must be 0 or 1");
    pointer(vectors);  // aligned
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(rule, vectors.shape(axis));
    const auto width = vectors.shape(1);
    auto* data = vectors.mutable_data();
    const pg::vector_view columns{width, width, 1, data};
    const pg::vector_view rows{vectors.shape(0), 1, width, data};
    const py::gil_scoped_release release;
    pg::apply_root(rule, view, adjoint, axis == 0 ? columns : rows, n_threads);
}

// Rows as half_laplacian writes them, query after query, to rows of the caller's order.
array<double> half_laplacian_adjoint(const array<double>& rows, const array<double>& labels,
                                     const array<std::int64_t>& offsets,
                                     const optional_array<std::int64_t>& order,
                                     const optional_array<double>& row_weights,
                                     const optional_array<double>& query_weights,
                                     const std::string& pairs, const std::string& weighting,
                                     const optional_array<double>& level_values,
                                     const optional_array<double>& omega, int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    check(rows.ndim() == 2, "rows must be 2-d");
    const auto n = rows.shape(0), width = rows.shape(1);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(rule, n);
    const auto* source = pointer(rows);
    array<double> out({n, width});
    auto* data = out.mutable_data();
    const py::gil_scoped_release release;
    for (py::ssize_t i = 0; i < n; ++i)
        std::copy_n(source + i * width, width, data + view.row(i) * width);
    pg::apply_root(rule, view, true, {width, width, 1, data}, n_threads);
    return out;
}

template <class T>
array<double> leave_query_out(
    const array<T>& features, const array<double>& targets, const array<double>& labels,
    const array<std::int64_t>& offsets, const optional_array<std::int64_t>& order,
    const optional_array<double>& row_weights, const optional_array<double>& query_weights,
    const std::string& pairs, const std::string& weighting,
    const optional_array<double>& level_values, const optional_array<double>& omega,
    const optional_array<double>& basis, const array<double>& eigenvalues,
    const array<double>& projection, const array<double>& alphas,
    const optional_array<double>& left, py::ssize_t n_free, const py::object& map, int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const auto rows = features_of(features, targets, map);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(rule, features.shape(0));
    check(rows.n_targets == 1, "targets must have one column");
    check(!basis || (basis->ndim() == 2 && basis->shape(0) == rows.n_features),
          "basis must be (n_features, rank)");
    const auto rank = basis ? basis->shape(1) : rows.n_features;
    check(n_free >= 0 && n_free < std::max<py::ssize_t>(rank, 1), "n_free must be in [0, rank)");
    check(eigenvalues.ndim() == 1 && eigenvalues.size() == rank, "eigenvalues: 1-d, one a column");
    check(projection.ndim() == 1 && projection.size() == rank, "projection: 1-d, one a column");
    check(alphas.ndim() == 1, "alphas must be 1-d");
    check(!left ||
              (left->ndim() == 2 && left->shape(0) == rank && left->shape(1) == features.shape(0)),
          "left must be (rank, n_rows)");
    const pg::ridge_path path{
        rank,          pointer(basis),  pointer(eigenvalues), pointer(projection),
        alphas.size(), pointer(alphas), pointer(left),        n_free};
    array<double> out({alphas.size(), features.shape(0)});
    auto* data = out.mutable_data();
    const py::gil_scoped_release release;
    pg::leave_query_out(rule, view, rows, path, data, n_threads);
    return out;
}

template <class T>
void define_least_squares(py::module_& m) {
    m.def("gram", &gram<T>, PAIRGRAM_RANKING_ARGUMENTS, py::arg("map") = py::none(),
          py::arg("block_rows") = 0, py::arg("n_threads") = 1);
    m.def("half_laplacian", &half_laplacian<T>, PAIRGRAM_RANKING_ARGUMENTS);
    m.def("leave_query_out", &leave_query_out<T>, PAIRGRAM_RANKING_ARGUMENTS,
          py::arg("basis").noconvert().none(true), py::arg("eigenvalues").noconvert(),
          py::arg("projection").noconvert(), py::arg("alphas").noconvert(),
          py::arg("left").noconvert() = py::none(), py::arg("n_free") = 0,
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
    pg::bind_batch(m);
    pg::bind_pair_operator(m);
    define_least_squares<double>(m);
    define_least_squares<float>(m);
    m.def("apply_half_laplacian", &apply_half_laplacian, py::arg("vectors").noconvert(),
          PAIRGRAM_QUERY_ARGUMENTS, py::arg("axis") = 0, py::arg("adjoint") = false,
          py::arg("n_threads") = 1);
    m.def("half_laplacian_adjoint", &half_laplacian_adjoint, py::arg("rows").noconvert(),
          PAIRGRAM_QUERY_ARGUMENTS, py::arg("n_threads") = 1);
}
