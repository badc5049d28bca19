// What the binding files share: array types, checks, and the functions that fill the module.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "feature_maps/node_map.hpp"
#include "problem/half_laplacian.hpp"
#include "support/interrupt.hpp"
#include "support/query_rows.hpp"

namespace pairgram {

namespace py = pybind11;

// Every array that crosses the boundary: C-contiguous, the exact dtype, never silently copied.
template <class T>
using array = py::array_t<T, py::array::c_style>;
template <class T>
using optional_array = std::optional<array<T>>;

inline void check(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// The elements of an array, which NumPy does not promise to be aligned.
template <class T>
const T* pointer(const array<T>& values) {
    const auto address = reinterpret_cast<std::uintptr_t>(values.data());
    check(values.size() == 0 || address % alignof(T) == 0,
          "arrays must be aligned: np.require(a, None, 'CA')");
    return values.data();
}

template <class T>
const T* pointer(const optional_array<T>& values) {
    return values ? pointer(*values) : nullptr;
}

// The queries of n_rows rows, checked.
inline query_offsets queries_of(const array<std::int64_t>& offsets,
                                const optional_array<std::int64_t>& order, py::ssize_t n_rows) {
    check(offsets.ndim() == 1 && offsets.size() > 0, "offsets must be 1-d, one more than queries");
    check(!order || (order->ndim() == 1 && order->size() == n_rows),
          "order must be 1-d with a value per row");
    const query_offsets queries{offsets.size() - 1, pointer(offsets), pointer(order)};
    check_rows(queries, n_rows);
    return queries;
}

inline weighting_kind weighting_of(const std::string& name) {
    check(name == "pairs" || name == "documents" || name == "queries",
          "weighting must be 'pairs', 'documents' or 'queries'");
    return name == "pairs"       ? weighting_kind::pairs
           : name == "documents" ? weighting_kind::documents
                                 : weighting_kind::queries;
}

// A map of rows to hidden nodes that keeps its arrays alive.
template <class T>
struct bound_node_map {
    array<T> bias;
    optional_array<T> square, origin, plain_weights;
    node_map<T> map;
    py::object wide = py::none();
};

// Lets other Python threads run while compiled code works.
class without_gil {
  public:
    without_gil() { interrupt::begin_call(); }

  private:
    py::gil_scoped_release release_;
};

void bind_metrics(py::module_& m);
void bind_letor(py::module_& m);
void bind_feature_maps(py::module_& m);
void bind_batch(py::module_& m);
void bind_pair_operator(py::module_& m);
void bind_sparse_indices(py::module_& m);

}  // namespace pairgram
