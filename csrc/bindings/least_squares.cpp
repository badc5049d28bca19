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
    check_one_per("varying must be (n_features + 1,)", varying, rows.n_features + 1);
    array<double> out({rows.width(), rows.width()});
    const double pair_weight = unlocked(gram<T>, problem.view, rows, block_rows, writable(out),
                                        varying ? writable(*varying) : nullptr, n_threads);
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
    if (!unlocked(is_cross_of_queries<T>, problem.view, rows, n_threads)) return py::none();
    array<double> scores({alphas.size(), problem.n_rows()}), held(problem.n_rows());
    std::fill_n(writable(held), problem.n_rows(), 0.0);
    unlocked(cross_hold_out<T>, problem.view, rows, bounds, pointer(basis), path, writable(scores),
             writable(held), n_threads);
    return py::make_tuple(scores, held);
}

py::tuple hold_out_arrays(const array<double>& eigenvalues, const array<double>& projection,
                          const array<double>& alphas, const array<double>& lost,
                          const array<double>& scored, const array<std::int64_t>& offsets,
                          const optional_array<double>& scales, int n_threads) {
    check(scored.ndim() == 2, "scored must be (n_rows, rank)");
    const auto n_rows = scored.shape(0), rank = scored.shape(1);
    const auto path = path_of(eigenvalues, projection, alphas, rank);
    check(has_shape(lost, {n_rows, rank + 1}), "lost must be (n_rows, rank + 1)");
    const auto of_units = queries_of(offsets, std::nullopt, n_rows);
    check_one_per("scales: 1-d, one a unit", scales, of_units.n_queries);
    const given_units units{of_units.n_queries, of_units.offsets, pointer(lost), pointer(scored),
                            pointer(scales)};
    array<double> scores({alphas.size(), n_rows}), held(of_units.n_queries);
    unlocked(hold_out, path, units, writable(scores), writable(held), n_threads);
    return py::make_tuple(scores, held);
}

// Overwrites the lower triangle of a symmetric matrix; see cholesky.hpp.
py::ssize_t cholesky_in_place(array<double>& matrix, int n_threads) {
    check(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), "matrix must be square");
    return unlocked(cholesky, matrix.shape(0), writable(matrix), n_threads);
}

array<double> inverse_transposed(const array<double>& factor, int n_threads) {
    check(factor.ndim() == 2 && factor.shape(0) == factor.shape(1), "factor must be square");
    const auto n = factor.shape(0);
    array<double> out({n, n});
    unlocked_for(n * n, invert_transposed, n, pointer(factor), writable(out), n_threads);
    return out;
}

template <class T>
void define_least_squares(py::module_& m) {
    m.def("gram", &gram_array<T>, "problem"_a, "features"_a, "targets"_a, py::kw_only(),
          "map"_a = py::none(), "block_rows"_a = 0, "varying"_a = py::none(), "n_threads"_a = 1);
    m.def("cross_hold_out", &cross_hold_out_array<T>, "problem"_a, "features"_a, "targets"_a,
          py::kw_only(), "basis"_a, "eigenvalues"_a, "projection"_a, "alphas"_a,
          "folds"_a = py::none(), "map"_a = py::none(), "n_threads"_a = 1);
}

}  // namespace

void bind_least_squares(py::module_& m) {
    define_least_squares<double>(m);
    define_least_squares<float>(m);
    m.def("hold_out", &hold_out_arrays, "eigenvalues"_a, "projection"_a, "alphas"_a, "lost"_a,
          "scored"_a, "offsets"_a, "scales"_a, "n_threads"_a);
    m.def("cholesky", &cholesky_in_place, "matrix"_a, "n_threads"_a = 1);
    m.def("invert_transposed", &inverse_transposed, "factor"_a, "n_threads"_a);
}

}  // namespace pairgram
