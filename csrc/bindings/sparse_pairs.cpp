// Products with sparse rows: checks, GIL release; nothing else.
#include "solvers/sparse_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bindings/problem.hpp"
#include "support/sparse_indices.hpp"

namespace pairgram {

namespace {

// Rows that were checked once, and their systems. Nothing changes it, so that threads may share
// one.
template <class T, class I>
struct bound_sparse_pairs {
    array<I> bounds, columns;
    array<T> values;
    std::vector<py::object> problems;  // whose arrays the Laplacians read
    sparse_rows<T, I> rows;
    buffer<laplacian> laplacians;
};

bool same_queries(const query_rows& a, const query_rows& b) {
    const auto n = a.n_rows();
    return a.n_queries == b.n_queries && n == b.n_rows() && !a.order == !b.order &&
           std::equal(a.offsets, a.offsets + a.n_queries + 1, b.offsets) &&
           (!a.order || std::equal(a.order, a.order + n, b.order));
}

template <class T, class I>
std::unique_ptr<bound_sparse_pairs<T, I>> make_pairs(const array<I>& indptr,
                                                     const array<I>& indices,
                                                     const array<T>& values, py::ssize_t n_columns,
                                                     std::vector<py::object> problems) {
    check(indptr.ndim() == 1 && indptr.size() > 0, "indptr must be 1-d, one more than rows");
    check(indices.ndim() == 1 && values.ndim() == 1 && indices.size() == values.size(),
          "indices and values must be 1-d and equally long");
    check(!problems.empty(), "problems must not be empty");
    const sparse_rows<T, I> rows{indptr.size() - 1, n_columns, pointer(indptr), pointer(indices),
                                 pointer(values)};
    std::vector<const ranking_problem*> views;
    for (const auto& problem : problems) {
        views.push_back(&problem.cast<const bound_problem&>().view);
        check(views.back()->rows.n_rows() == rows.n_rows,
              "problems must have an entry per row of the matrix");
    }
    const auto n_entries = indices.size(), n_bounds = indptr.size();
    buffer<laplacian> laplacians;
    {
        const without_gil release;
        check(rows.bounds[0] == 0 && first_descent(n_bounds, rows.bounds) < 0 &&
                  rows.bounds[rows.n_rows] <= n_entries &&
                  first_outside(rows.begin(rows.n_rows), rows.columns, n_columns) < 0,
              "indptr and indices must be those of CSR");
        for (const auto* view : views) {
            check(same_queries(view->rows, views[0]->rows), "problems must have the same queries");
            laplacians.emplace_back(*view);
        }
    }
    return std::make_unique<bound_sparse_pairs<T, I>>(bound_sparse_pairs<T, I>{
        indptr, indices, values, std::move(problems), rows, std::move(laplacians)});
}

template <class T, class I>
array<double> product(const bound_sparse_pairs<T, I>& pairs, const array<double>& vectors,
                      const array<std::int64_t>& systems, int n_threads) {
    check(vectors.ndim() == 2 && vectors.shape(1) == pairs.rows.n_columns,
          "vectors must be (n_vectors, n_columns)");
    const auto n_vectors = vectors.shape(0);
    check(systems.ndim() == 1 && systems.size() == n_vectors, "systems: 1-d, one per vector");
    const auto n_systems = static_cast<std::int64_t>(pairs.laplacians.size());
    const double* in = pointer(vectors);
    const auto* of = pointer(systems);
    check_all(
        n_vectors, of, [&](std::int64_t s) { return 0 <= s && s < n_systems; },
        "systems must be numbers of problems");
    array<double> result({n_vectors, pairs.rows.n_columns});
    double* out = result.mutable_data();
    const without_gil release;
    sparse_pair_product(pairs.rows, pairs.laplacians, n_vectors, in, of, out, n_threads);
    return result;
}

template <class T, class I>
const laplacian& laplacian_of(const bound_sparse_pairs<T, I>& pairs, py::ssize_t system) {
    check(0 <= system && size_of(system) < pairs.laplacians.size(),
          "system must be the number of a problem");
    return pairs.laplacians[system];
}

template <class T, class I>
array<bool> counted_queries(const bound_sparse_pairs<T, I>& pairs, py::ssize_t system) {
    const auto& of = laplacian_of(pairs, system);
    array<bool> counted(of.rows().n_queries);
    bool* out = counted.mutable_data();
    for (std::ptrdiff_t q = 0; q < of.rows().n_queries; ++q) out[q] = of.counts(q);
    return counted;
}

template <class T, class I>
py::tuple diagonal(const bound_sparse_pairs<T, I>& pairs, py::ssize_t system) {
    const auto& of = laplacian_of(pairs, system);
    array<double> squares(pairs.rows.n_columns), size(pairs.rows.n_columns);
    double *out = squares.mutable_data(), *size_out = size.mutable_data();
    {
        const without_gil release;
        sparse_pair_diagonal(pairs.rows, of, out, size_out);
    }
    return py::make_tuple(squares, size);
}

template <class T, class I>
void define(py::module_& m, const char* name) {
    using bound = bound_sparse_pairs<T, I>;
    py::class_<bound>(m, name)
        .def("counted", &counted_queries<T, I>, py::arg("system"))
        .def("diagonal", &diagonal<T, I>, py::arg("system"))
        .def("product", &product<T, I>, py::arg("vectors").noconvert(),
             py::arg("systems").noconvert(), py::arg("n_threads") = 1);
    m.def("sparse_pairs", &make_pairs<T, I>, py::arg("indptr").noconvert(),
          py::arg("indices").noconvert(), py::arg("values").noconvert(), py::arg("n_columns"),
          py::arg("problems"));
}

}  // namespace

void bind_sparse_pairs(py::module_& m) {
    define<double, std::int32_t>(m, "SparsePairs");
    define<double, std::int64_t>(m, "SparsePairsLong");
    define<float, std::int32_t>(m, "SparsePairsFloat");
    define<float, std::int64_t>(m, "SparsePairsFloatLong");
}

}  // namespace pairgram
