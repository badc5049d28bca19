// The Python module: array types, checks, GIL release, m.def; nothing else.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>

#include "blas.hpp"

namespace py = pybind11;
namespace pg = pairgram;

namespace {

// Every array that crosses the boundary: C-contiguous, the exact dtype, never silently copied.
template <class T>
using array = py::array_t<T, py::array::c_style>;

}  // namespace

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
    m.attr("__version__") = PAIRGRAM_VERSION;

    const auto table = py::module_::import("pairgram._scipy_blas").attr("table");
    pg::blas::set_table(static_cast<const pairgram_blas_table*>(
        PyCapsule_GetPointer(table.ptr(), "pairgram.blas_table")));
}
