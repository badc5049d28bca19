// The checks of sparse matrices' index arrays.
#include "bindings.hpp"
#include "sparse_indices.hpp"

namespace pairgram {

namespace {

template <class I>
void define(py::module_& m) {
    m.def(
        "first_outside",
        [](const array<I>& values, py::ssize_t limit) {
            check(values.ndim() == 1, "values must be 1-d");
            check(limit >= 0, "limit must be at least 0");
            const auto n = values.size();
            const auto* data = pointer(values);
            const without_gil release;
            return first_outside(n, data, limit);
        },
        py::arg("values").noconvert(), py::arg("limit"));
    m.def(
        "first_descent",
        [](const array<I>& values) {
            check(values.ndim() == 1, "values must be 1-d");
            const auto n = values.size();
            const auto* data = pointer(values);
            const without_gil release;
            return first_descent(n, data);
        },
        py::arg("values").noconvert());
}

}  // namespace

void bind_sparse_indices(py::module_& m) {
    define<std::int32_t>(m);
    define<std::int64_t>(m);
}

}  // namespace pairgram
