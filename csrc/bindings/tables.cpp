// Tables: rows of columns that stand one after the other.
#include "bindings/bindings.hpp"
#include "support/buffer.hpp"
#include "tables/columns.hpp"

namespace pairgram {

namespace {

// (rows (n, d), which columns have a NaN (d,)). A NaN becomes fill[j] if there is a fill.
template <class T>
py::tuple interleaved(const py::list& columns, const optional_array<T>& fill, int n_threads) {
    const auto d = static_cast<py::ssize_t>(columns.size());
    check(d > 0, "there must be a column or more");
    check(!fill || (fill->ndim() == 1 && fill->size() == d), "fill must be (n_columns,)");
    buffer<array<T>> kept;
    buffer<const T*> at;
    for (const auto& column : columns) {
        check(py::isinstance<array<T>>(column), "columns must be contiguous, and of one type");
        kept.push_back(py::reinterpret_borrow<array<T>>(column));
        check(kept.back().ndim() == 1 && kept.back().size() == kept.front().size(),
              "columns must be 1-d and of one length");
        at.push_back(pointer(kept.back()));
    }
    const auto n = kept.front().size();
    array<T> rows({n, d});
    array<bool> missing(d);
    T* const out = rows.mutable_data();
    bool* const found = missing.mutable_data();
    const T* const filled = pointer(fill);
    {
        const without_gil release(n * d);
        interleave_columns(n, d, at.data(), filled, out, found, n_threads);
    }
    return py::make_tuple(rows, missing);
}

}  // namespace

void bind_tables(py::module_& m) {
    m.def("interleave_columns32", &interleaved<float>, py::arg("columns"),
          py::arg("fill").noconvert(), py::arg("n_threads"));
    m.def("interleave_columns64", &interleaved<double>, py::arg("columns"),
          py::arg("fill").noconvert(), py::arg("n_threads"));
}

}  // namespace pairgram
