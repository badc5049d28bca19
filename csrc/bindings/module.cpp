// The Python module: SciPy's BLAS, Python's signals, and what the other files bind.
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <optional>
#include <string>

#include "bindings/bindings.hpp"
#include "linear_algebra/blas.hpp"
#include "support/interrupt.hpp"

namespace pg = pairgram;
namespace py = pybind11;
using namespace py::literals;

namespace {

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

// Ends what this thread computes once so many seconds are over, by a TimeoutError; None lifts it.
void set_deadline(std::optional<double> seconds) {
    using clock = pg::interrupt::clock;
    pg::check(!seconds || std::isfinite(*seconds), "seconds must be finite or None");
    constexpr double longest = 1e9;
    auto& deadline = pg::interrupt::this_thread().deadline;
    deadline = clock::time_point::max();
    if (seconds && *seconds < longest)
        deadline = clock::now() + std::chrono::duration_cast<clock::duration>(
                                      std::chrono::duration<double>(*seconds));
}

void answer_deadlines(py::module_& m) {
    m.def("set_deadline", &set_deadline, "seconds"_a);
    py::register_exception_translator([](std::exception_ptr error) {
        try {
            if (error) std::rethrow_exception(error);
        } catch (const pg::past_deadline&) {
            PyErr_SetString(PyExc_TimeoutError, "the time for this computation is over");
        }
    });
}

}  // namespace

// The GIL stays in use: no interpreter without it has tested the module.
PYBIND11_MODULE(_core, m) {
    m.attr("__version__") = PAIRGRAM_VERSION;

    take_blas_of_scipy();
    answer_signals();
    answer_deadlines(m);
    pg::bind_metrics(m);
    pg::bind_letor(m);
    pg::bind_inputs(m);
    pg::bind_feature_maps(m);
    pg::bind_problem(m);
    pg::bind_band(m);
    pg::bind_least_squares(m);
    pg::bind_group_fits(m);
    pg::bind_svm(m);
    pg::bind_comparisons(m);
    pg::bind_pair_products(m);
}
