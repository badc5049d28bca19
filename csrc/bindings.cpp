// The Python module: array types, checks, GIL release, m.def; nothing else.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "blas.hpp"
#include "metrics.hpp"

namespace py = pybind11;
namespace pg = pairgram;

namespace {

// Every array that crosses the boundary: C-contiguous, the exact dtype, never silently copied.
template <class T>
using array = py::array_t<T, py::array::c_style>;

// One metric: kind, cut, gain, discount, ties, empty, relevant, max_grade, divide_by_cut.
using metric_spec = std::tuple<int, std::int64_t, int, int, int, double, double, double, bool>;

array<double> evaluate_metrics(const array<double>& labels, const array<double>& scores,
                               const array<std::int64_t>& offsets,
                               const std::optional<array<std::int64_t>>& order,
                               const std::vector<metric_spec>& specs, int n_threads) {
    const std::int64_t* const bounds = offsets.data();
    const auto n = static_cast<std::int64_t>(labels.size());
    const auto in_range = [n](std::int64_t row) { return row >= 0 && row < n; };
    if (labels.ndim() != 1 || scores.ndim() != 2 || scores.shape(1) != n || offsets.ndim() != 1 ||
        offsets.size() < 1 || bounds[0] != 0 || bounds[offsets.size() - 1] != n ||
        !std::is_sorted(bounds, bounds + offsets.size()) ||
        (order && (order->ndim() != 1 || order->size() != n ||
                   !std::all_of(order->data(), order->data() + n, in_range)))) {
        throw std::invalid_argument("labels, scores, offsets and order do not fit each other");
    }
    std::vector<pg::Metric> metrics;
    for (const auto& [kind, cut, gain, discount, ties, empty, relevant, max_grade, by_cut] :
         specs) {
        metrics.push_back({static_cast<pg::MetricKind>(kind), static_cast<std::ptrdiff_t>(cut),
                           static_cast<pg::Gain>(gain), static_cast<pg::Discount>(discount),
                           static_cast<pg::Ties>(ties), empty, relevant, max_grade, by_cut});
    }
    const auto n_metrics = static_cast<py::ssize_t>(metrics.size());
    array<double> out({n_metrics, scores.shape(0), offsets.size() - 1});
    const pg::QueryRows queries{offsets.size() - 1, bounds, order ? order->data() : nullptr};
    double* const out_data = out.mutable_data();
    {
        const py::gil_scoped_release release;
        pg::evaluate_metrics(labels.size(), scores.shape(0), n_metrics, queries, labels.data(),
                             scores.data(), metrics.data(), out_data, n_threads);
    }
    return out;
}

}  // namespace

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
    m.attr("__version__") = PAIRGRAM_VERSION;

    const auto table = py::module_::import("pairgram._scipy_blas").attr("table");
    pg::blas::set_table(static_cast<const pairgram_blas_table*>(
        PyCapsule_GetPointer(table.ptr(), "pairgram.blas_table")));

    m.def("evaluate_metrics", &evaluate_metrics, py::arg("labels").noconvert(),
          py::arg("scores").noconvert(), py::arg("offsets").noconvert(),
          py::arg("order").noconvert(), py::arg("specs"), py::arg("n_threads"));
}
