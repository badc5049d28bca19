// The Python module and its least-squares kernels: checks, GIL release, m.def; nothing else.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/problem.hpp"
#include "least_squares/blocks.hpp"
#include "least_squares/gram.hpp"
#include "least_squares/hold_out_folds.hpp"
#include "linear_algebra/blas.hpp"
#include "linear_algebra/cholesky.hpp"
#include "problem/half_laplacian.hpp"
#include "problem/laplacian_root.hpp"
#include "problem/laplacian_solve.hpp"

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
               std::optional<array<std::int64_t>> varying, int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const auto rows = features_of(features, targets, map);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(rule, features.shape(0));
    check(block_rows >= 0, "block_rows must be at least 0");
    check(!varying || (varying->ndim() == 1 && varying->size() == rows.n_features + 1),
          "varying must be (n_features + 1,)");
    pointer(varying);  // aligned
    auto* counts = varying ? varying->mutable_data() : nullptr;
    array<double> out({rows.width(), rows.width()});
    auto* data = out.mutable_data();
    double pair_weight = 0;
    {
        const pg::without_gil release;
        pair_weight = pg::gram(rule, view, rows, block_rows, data, counts, n_threads);
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
    const pg::without_gil release;
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
    const pg::without_gil release;
    pg::apply_root(rule, view, adjoint, axis == 0 ? columns : rows, n_threads);
}

template <class T>
array<T> as_array(const std::vector<T>& values) {
    return array<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

array<double> laplacian_diagonal(const array<double>& labels, const array<std::int64_t>& offsets,
                                 const optional_array<std::int64_t>& order,
                                 const optional_array<double>& row_weights,
                                 const optional_array<double>& query_weights,
                                 const std::string& pairs, const std::string& weighting,
                                 const optional_array<double>& level_values,
                                 const optional_array<double>& omega) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    return as_array(pg::laplacian_diagonal(rule, arrays.view(rule, labels.size())));
}

py::tuple null_space(const array<double>& labels, const array<std::int64_t>& offsets,
                     const optional_array<std::int64_t>& order,
                     const optional_array<double>& row_weights,
                     const optional_array<double>& query_weights, const std::string& pairs,
                     const std::string& weighting, const optional_array<double>& level_values,
                     const optional_array<double>& omega, double largest) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto null = pg::null_space_of(rule, arrays.view(rule, labels.size()), largest);
    return py::make_tuple(as_array(null.pivot), as_array(null.vector), as_array(null.value));
}

// (n, width) columns L z, changed to z.
void solve_laplacian(array<double>& columns, const array<double>& known,
                     const array<double>& labels, const array<std::int64_t>& offsets,
                     const optional_array<std::int64_t>& order,
                     const optional_array<double>& row_weights,
                     const optional_array<double>& query_weights, const std::string& pairs,
                     const std::string& weighting, const optional_array<double>& level_values,
                     const optional_array<double>& omega, double largest, int n_threads) {
    const auto rule = rule_of(pairs, weighting, level_values, omega);
    check(columns.ndim() == 2 && known.ndim() == 2, "columns and known must be 2-d");
    check(columns.shape(1) == known.shape(1), "columns and known must be equally wide");
    pointer(columns);  // aligned
    const ranking_arrays arrays{labels, offsets, order, row_weights, query_weights};
    const auto view = arrays.view(rule, columns.shape(0));
    const auto null = pg::null_space_of(rule, view, largest);
    std::int64_t row = 0;
    const auto n_known = std::count_if(null.pivot.begin(), null.pivot.end(),
                                       [&](std::int64_t pivot) { return pivot == row++; });
    check(known.shape(0) == n_known, "known must have the rows that are their own pivot");
    auto* data = columns.mutable_data();
    const auto* given = pointer(known);
    const pg::without_gil release;
    pg::solve_laplacian(rule, view, null, columns.shape(1), given, data, n_threads);
}

template <class T>
array<double> leave_query_out(const array<T>& features, const array<double>& targets,
                              const array<double>& labels, const array<std::int64_t>& offsets,
                              const optional_array<std::int64_t>& order,
                              const optional_array<double>& row_weights,
                              const optional_array<double>& query_weights, const std::string& pairs,
                              const std::string& weighting,
                              const optional_array<double>& level_values,
                              const optional_array<double>& omega,
                              const optional_array<double>& basis, const array<double>& eigenvalues,
                              const array<double>& projection, const array<double>& alphas,
                              const optional_array<std::int64_t>& folds, py::ssize_t n_free,
                              const py::object& map, int n_threads) {
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
    std::vector<std::int64_t> bounds(static_cast<std::size_t>(view.n_queries + 1));
    std::iota(bounds.begin(), bounds.end(), std::int64_t{0});
    if (folds) {
        const auto fold_queries = pg::queries_of(*folds, std::nullopt, view.n_queries);
        bounds.assign(fold_queries.offsets, fold_queries.offsets + fold_queries.n_queries + 1);
    }
    const pg::ridge_path path{rank,
                              pointer(basis),
                              pointer(eigenvalues),
                              pointer(projection),
                              alphas.size(),
                              pointer(alphas),
                              n_free};
    array<double> out({alphas.size(), features.shape(0)});
    auto* data = out.mutable_data();
    const pg::without_gil release;
    pg::leave_query_out(rule, view, rows, bounds, path, data, n_threads);
    return out;
}

// Takes the upper triangle of a symmetric matrix (n, n), which is overwritten; returns eigenvalues,
// ascending, and eigenvectors in rows.
py::tuple lean_eigen(array<double>& matrix) {
    check(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), "matrix must be square");
    pointer(matrix);  // aligned
    const auto n = matrix.shape(0);
    array<double> eigenvalues(n), vectors({n, n});
    auto *a = matrix.mutable_data(), *values = eigenvalues.mutable_data(),
         *rows = vectors.mutable_data();
    {
        const pg::without_gil release;
        if (!pg::blas::lean_eigen(n, a, values, rows))
            throw std::runtime_error("LAPACK found no eigendecomposition");
    }
    return py::make_tuple(eigenvalues, vectors);
}

// Overwrites the lower triangle of a symmetric matrix; see cholesky.hpp.
py::ssize_t cholesky(array<double>& matrix, int n_threads) {
    check(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), "matrix must be square");
    pointer(matrix);  // aligned
    const auto n = matrix.shape(0);
    auto* data = matrix.mutable_data();
    const pg::without_gil release;
    return pg::cholesky(n, data, n_threads);
}

template <class T>
void define_least_squares(py::module_& m) {
    m.def("gram", &gram<T>, PAIRGRAM_RANKING_ARGUMENTS, py::arg("map") = py::none(),
          py::arg("block_rows") = 0, py::arg("varying").noconvert() = py::none(),
          py::arg("n_threads") = 1);
    m.def("half_laplacian", &half_laplacian<T>, PAIRGRAM_RANKING_ARGUMENTS);
    m.def("leave_query_out", &leave_query_out<T>, PAIRGRAM_RANKING_ARGUMENTS,
          py::arg("basis").noconvert().none(true), py::arg("eigenvalues").noconvert(),
          py::arg("projection").noconvert(), py::arg("alphas").noconvert(),
          py::arg("folds").noconvert() = py::none(), py::arg("n_free") = 0,
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

std::atomic<unsigned long> main_thread{0};

// Python runs signal handlers in its main thread alone; that of Ctrl-C raises KeyboardInterrupt.
void look_for_signals() {
    if (PyThread_get_thread_ident() != main_thread.load()) return;
    const py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void answer_signals() {
    main_thread =
        py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
    const auto os = py::module_::import("os");
    if (py::hasattr(os, "register_at_fork"))  // the thread that forks is the child's main thread
        os.attr("register_at_fork")(py::arg("after_in_child") = py::cpp_function(
                                        [] { main_thread = PyThread_get_thread_ident(); }));
    pg::interrupt::check = look_for_signals;
}

}  // namespace

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
    m.attr("__version__") = PAIRGRAM_VERSION;

    take_blas_of_scipy();
    answer_signals();
    pg::bind_metrics(m);
    pg::bind_letor(m);
    pg::bind_feature_maps(m);
    pg::bind_batch(m);
    pg::bind_pair_operator(m);
    pg::bind_sparse_indices(m);
    define_least_squares<double>(m);
    define_least_squares<float>(m);
    m.def("apply_half_laplacian", &apply_half_laplacian, py::arg("vectors").noconvert(),
          PAIRGRAM_QUERY_ARGUMENTS, py::arg("axis") = 0, py::arg("adjoint") = false,
          py::arg("n_threads") = 1);
    m.def("lean_eigen", &lean_eigen, py::arg("matrix").noconvert());
    m.def("laplacian_diagonal", &laplacian_diagonal, PAIRGRAM_QUERY_ARGUMENTS);
    m.def("null_space", &null_space, PAIRGRAM_QUERY_ARGUMENTS, py::arg("largest") = 0.0);
    m.def("solve_laplacian", &solve_laplacian, py::arg("columns").noconvert(),
          py::arg("known").noconvert(), PAIRGRAM_QUERY_ARGUMENTS, py::arg("largest") = 0.0,
          py::arg("n_threads") = 1);
    m.def("cholesky", &cholesky, py::arg("matrix").noconvert(), py::arg("n_threads") = 1);
}
