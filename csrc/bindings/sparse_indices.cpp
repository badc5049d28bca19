// The checks of sparse matrices' index arrays, and what their rows vary in.
#include "support/sparse_indices.hpp"

#include "bindings/bindings.hpp"
#include "data/varying_columns.hpp"

namespace pairgram {

namespace {

template <class I>
std::ptrdiff_t first_outside_of(const array<I>& values, py::ssize_t limit) {
    check(values.ndim() == 1, "values must be 1-d");
    check(limit >= 0, "limit must be at least 0");
    const auto n = values.size();
    const auto* data = pointer(values);
    const without_gil release;
    return first_outside(n, data, limit);
}

template <class I>
std::ptrdiff_t first_descent_of(const array<I>& values) {
    check(values.ndim() == 1, "values must be 1-d");
    const auto n = values.size();
    const auto* data = pointer(values);
    const without_gil release;
    return first_descent(n, data);
}

template <class I>
void count_varying_rows(const array<I>& indptr, const array<I>& indices,
                        const array<double>& values, array<std::int64_t>& counts,
                        const array<std::int64_t>& offsets,
                        const optional_array<std::int64_t>& order,
                        const optional_array<double>& row_weights, const array<bool>& counted,
                        bool pointwise) {
    check(indptr.ndim() == 1 && indptr.size() > 0, "indptr must be 1-d, one more than rows");
    check(indices.ndim() == 1 && values.ndim() == 1 && indices.size() == values.size(),
          "indices and values must be 1-d and equally long");
    check(counts.ndim() == 1 && counts.size() > 0, "counts must be (n_features + 1,)");
    const auto n_rows = indptr.size() - 1, n_features = counts.size() - 1;
    const auto queries = queries_of(offsets, order, n_rows);
    check(!row_weights || (row_weights->ndim() == 1 && row_weights->size() == n_rows),
          "row_weights: 1-d, one per row");
    check(counted.ndim() == 1 && counted.size() == queries.n_queries,
          "counted: 1-d, one per query");
    const auto *bounds = pointer(indptr), *columns = pointer(indices);
    pointer(counts);  // aligned
    auto* out = counts.mutable_data();
    const auto *entries = pointer(values), *weights = pointer(row_weights);
    const auto* seen = pointer(counted);
    const auto n_entries = indices.size(), n_bounds = indptr.size();
    const without_gil release;
    check(bounds[0] == 0 && first_descent(n_bounds, bounds) < 0 && bounds[n_rows] <= n_entries &&
              first_outside(bounds[n_rows], columns, n_features) < 0,
          "indptr and indices must be those of CSR");
    count_varying(queries.n_queries, queries.offsets, queries.order, weights, seen, pointwise,
                  n_features, bounds, columns, entries, out);
}

template <class I>
void define_sparse_indices(py::module_& m) {
    m.def("first_outside", &first_outside_of<I>, py::arg("values").noconvert(), py::arg("limit"));
    m.def("first_descent", &first_descent_of<I>, py::arg("values").noconvert());
    m.def("count_varying", &count_varying_rows<I>, py::arg("indptr").noconvert(),
          py::arg("indices").noconvert(), py::arg("values").noconvert(),
          py::arg("counts").noconvert(), py::arg("offsets").noconvert(), py::kw_only(),
          py::arg("order").noconvert() = py::none(),
          py::arg("row_weights").noconvert() = py::none(), py::arg("counted").noconvert(),
          py::arg("pointwise"));
}

}  // namespace

void bind_sparse_indices(py::module_& m) {
    define_sparse_indices<std::int32_t>(m);
    define_sparse_indices<std::int64_t>(m);
}

}  // namespace pairgram
