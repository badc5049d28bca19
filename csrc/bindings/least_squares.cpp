// Statistics of pairs, held-out scores and factorisations: checks, GIL release, m.def; nothing
// else.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "bindings/problem.hpp"
#include "linear_algebra/cholesky.hpp"
#include "solvers/cross_gram.hpp"
#include "solvers/cross_hold_out.hpp"
#include "solvers/gram.hpp"

namespace pairgram {

namespace {

template <class T>
py::tuple gram_array(const bound_problem& problem, const array<T>& features,
                     const array<double>& targets, const py::object& map, py::ssize_t block_rows,
                     std::optional<array<std::int64_t>> varying, int n_threads) {
    const auto rows = features_of(problem, features, targets, map);
    check(block_rows >= 0, "block_rows must be at least 0");
    check(rows.width() > 0, "features and targets must have a column or more");
    check(!varying || (varying->ndim() == 1 && varying->size() == rows.n_features + 1),
          "varying must be (n_features + 1,)");
    pointer(varying);  // aligned
    auto* counts = varying ? varying->mutable_data() : nullptr;
    array<double> out({rows.width(), rows.width()});
    auto* data = out.mutable_data();
    double pair_weight = 0;
    {
        const without_gil release;
        pair_weight = gram(problem.view, rows, block_rows, data, counts, n_threads);
    }
    return py::make_tuple(out, pair_weight);
}

ridge_path path_of(const array<double>& eigenvalues, const array<double>& projection,
                   const array<double>& alphas, py::ssize_t rank) {
    check_one_per("eigenvalues: 1-d, one a column", eigenvalues, rank);
    check_one_per("projection: 1-d, one a column", projection, rank);
    check(alphas.ndim() == 1, "alphas must be 1-d");
    return {rank, pointer(eigenvalues), pointer(projection), alphas.size(), pointer(alphas)};
}

// None where the features are not products of left sides that are the same within queries.
template <class T>
py::object cross_hold_out_array(const bound_problem& problem, const array<T>& features,
                                const array<double>& targets, const array<double>& basis,
                                const array<double>& eigenvalues, const array<double>& projection,
                                const array<double>& alphas,
                                const optional_array<std::int64_t>& folds, const py::object& map,
                                int n_threads) {
    const auto rows = features_of(problem, features, targets, map);
    check(rows.n_targets == 1, "targets must have one column");
    check(basis.ndim() == 2 && basis.shape(0) == rows.n_features,
          "basis must be (n_features, rank)");
    const auto path = path_of(eigenvalues, projection, alphas, basis.shape(1));
    buffer<std::int64_t> bounds(problem.view.rows.n_queries + 1);  // every query is a fold
    std::iota(bounds.begin(), bounds.end(), std::int64_t{0});
    if (folds) {
        const auto own = queries_of(*folds, std::nullopt, problem.view.rows.n_queries);
        bounds.assign(own.offsets, own.offsets + own.n_queries + 1);
    }
    array<double> scores({alphas.size(), problem.n_rows()}), held(problem.n_rows());
    auto *out = scores.mutable_data(), *of_rows = held.mutable_data();
    const auto* of_basis = pointer(basis);
    bool is_cross = false;
    {
        const without_gil release;
        std::fill_n(of_rows, problem.n_rows(), 0.0);
        is_cross = is_cross_of_queries(problem.view, rows, n_threads);
        if (is_cross)
            cross_hold_out(problem.view, rows, bounds, of_basis, path, out, of_rows, n_threads);
    }
    if (!is_cross) return py::none();
    return py::make_tuple(scores, held);
}

py::tuple hold_out_arrays(const array<double>& eigenvalues, const array<double>& projection,
                          const array<double>& alphas, const array<double>& lost,
                          const array<double>& scored, const array<std::int64_t>& offsets,
                          const optional_array<double>& scales, int n_threads) {
    check(scored.ndim() == 2, "scored must be (n_rows, rank)");
    const auto n_rows = scored.shape(0), rank = scored.shape(1);
    const auto path = path_of(eigenvalues, projection, alphas, rank);
    check(lost.ndim() == 2 && lost.shape(0) == n_rows && lost.shape(1) == rank + 1,
          "lost must be (n_rows, rank + 1)");
    const auto of_units = queries_of(offsets, std::nullopt, n_rows);
    if (scales) check_one_per("scales: 1-d, one a unit", *scales, of_units.n_queries);
    const given_units units{of_units.n_queries, of_units.offsets, pointer(lost), pointer(scored),
                            pointer(scales)};
    array<double> scores({alphas.size(), n_rows}), held(of_units.n_queries);
    auto *out = scores.mutable_data(), *of_held = held.mutable_data();
    {
        const without_gil release;
        hold_out(path, units, out, of_held, n_threads);
    }
    return py::make_tuple(scores, held);
}

py::tuple hold_out_sums_array(const array<double>& eigenvalues, const array<double>& projection,
                              const array<double>& alphas, const array<double>& sums,
                              int n_threads) {
    const auto rank = eigenvalues.size(), n_units = sums.ndim() == 3 ? sums.shape(0) : 0;
    const auto path = path_of(eigenvalues, projection, alphas, rank);
    check(sums.ndim() == 3 && sums.shape(1) == rank + 1 && sums.shape(2) == rank + 1,
          "sums must be (n_units, rank + 1, rank + 1)");
    array<double> models({n_units, alphas.size(), rank}), held(n_units);
    const auto* of_units = pointer(sums);
    auto *out = models.mutable_data(), *of_held = held.mutable_data();
    {
        const without_gil release;
        hold_out_sums(path, n_units, of_units, out, of_held, n_threads);
    }
    return py::make_tuple(models, held);
}

// Overwrites the lower triangle of a symmetric matrix; see cholesky.hpp.
py::ssize_t cholesky_in_place(array<double>& matrix, int n_threads) {
    check(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), "matrix must be square");
    pointer(matrix);  // aligned
    const auto n = matrix.shape(0);
    auto* data = matrix.mutable_data();
    const without_gil release;
    return cholesky(n, data, n_threads);
}

array<double> inverse_transposed(const array<double>& factor, int n_threads) {
    check(factor.ndim() == 2 && factor.shape(0) == factor.shape(1), "factor must be square");
    const auto n = factor.shape(0);
    const double* const l = pointer(factor);
    array<double> out({n, n});
    double* const data = out.mutable_data();
    const without_gil release(n * n);
    invert_transposed(n, l, data, n_threads);
    return out;
}

template <class T>
void define_least_squares(py::module_& m) {
    m.def("gram", &gram_array<T>, py::arg("problem"), py::arg("features").noconvert(),
          py::arg("targets").noconvert(), py::kw_only(), py::arg("map") = py::none(),
          py::arg("block_rows") = 0, py::arg("varying").noconvert() = py::none(),
          py::arg("n_threads") = 1);
    m.def("cross_hold_out", &cross_hold_out_array<T>, py::arg("problem"),
          py::arg("features").noconvert(), py::arg("targets").noconvert(), py::kw_only(),
          py::arg("basis").noconvert(), py::arg("eigenvalues").noconvert(),
          py::arg("projection").noconvert(), py::arg("alphas").noconvert(),
          py::arg("folds").noconvert() = py::none(), py::arg("map") = py::none(),
          py::arg("n_threads") = 1);
}

}  // namespace

void bind_least_squares(py::module_& m) {
    define_least_squares<double>(m);
    define_least_squares<float>(m);
    m.def("hold_out", &hold_out_arrays, py::arg("eigenvalues").noconvert(),
          py::arg("projection").noconvert(), py::arg("alphas").noconvert(),
          py::arg("lost").noconvert(), py::arg("scored").noconvert(),
          py::arg("offsets").noconvert(), py::arg("scales").noconvert().none(true),
          py::arg("n_threads"));
    m.def("hold_out_sums", &hold_out_sums_array, py::arg("eigenvalues").noconvert(),
          py::arg("projection").noconvert(), py::arg("alphas").noconvert(),
          py::arg("sums").noconvert(), py::arg("n_threads"));
    m.def("cholesky", &cholesky_in_place, py::arg("matrix").noconvert(), py::arg("n_threads") = 1);
    m.def("invert_transposed", &inverse_transposed, py::arg("factor").noconvert(),
          py::arg("n_threads"));
}

}  // namespace pairgram
