// What the binding files share: array types, checks, and the functions that fill the module.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/query_rows.hpp"
#include "features/input_columns.hpp"
#include "features/node_map.hpp"
#include "support/interrupt.hpp"

namespace pybind11::detail {

// Every array that crosses the boundary: C-contiguous, the exact dtype, never silently copied.
template <class T>
struct pyobject_caster<array_t<T, array::c_style>> {
    using type = array_t<T, array::c_style>;

    bool load(handle from, bool) {
        if (!type::check_(from)) return false;
        value = reinterpret_borrow<type>(from);
        return true;
    }
    static handle cast(const handle& from, return_value_policy, handle) { return from.inc_ref(); }
    PYBIND11_TYPE_CASTER(type, handle_type_name<type>::name);
};

}  // namespace pybind11::detail

namespace pairgram {

namespace py = pybind11;
using namespace py::literals;

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

// The elements of an array that compiled code writes.
template <class T>
T* writable(array<T>& values) {
    pointer(values);  // aligned
    return values.mutable_data();
}

inline bool has_shape(const py::array& values, std::initializer_list<py::ssize_t> shape) {
    return std::equal(shape.begin(), shape.end(), values.shape(), values.shape() + values.ndim());
}

// Lets other Python threads run while compiled code works on n values: where these are few, the
// work takes less time than it would to hand the GIL over.
class without_gil {
  public:
    explicit without_gil(py::ssize_t n = PY_SSIZE_T_MAX) {
        constexpr py::ssize_t few = 1 << 14;
        interrupt::begin_call();
        if (n > few) release_.emplace();
    }

  private:
    std::optional<py::gil_scoped_release> release_;
};

// Calls compiled code that works on n values. The arguments, such as the pointers of arrays, are
// taken before.
template <class Function, class... Arguments>
auto unlocked_for(py::ssize_t n, const Function& function, Arguments&&... arguments) {
    const without_gil release(n);
    return function(std::forward<Arguments>(arguments)...);
}

template <class Function, class... Arguments>
auto unlocked(const Function& function, Arguments&&... arguments) {
    return unlocked_for(PY_SSIZE_T_MAX, function, std::forward<Arguments>(arguments)...);
}

// An object that its calls change, and a call that uses it. One thread may use it at a time: a call
// while another runs would see half of a change, so it is refused. It is not delayed, for what it
// returns would depend on which call came first.
template <class T>
struct one_user {
    template <class... Arguments>
    explicit one_user(Arguments&&... arguments) : object(std::forward<Arguments>(arguments)...) {}

    T object;
    std::atomic_flag in_use = ATOMIC_FLAG_INIT;
};

template <class T>
class use_of {
  public:
    explicit use_of(one_user<T>& shared) : shared_(shared) {
        if (shared.in_use.test_and_set(std::memory_order_acquire))
            throw std::runtime_error("another thread is using this object: give each its own");
    }
    use_of(const use_of&) = delete;
    use_of& operator=(const use_of&) = delete;
    ~use_of() { shared_.in_use.clear(std::memory_order_release); }

    T& operator*() const { return shared_.object; }
    T* operator->() const { return &shared_.object; }

  private:
    one_user<T>& shared_;
};

// Checks that a condition holds for each of n values.
template <class T, class Condition>
void check_all(py::ssize_t n, const T* values, const Condition& holds, const char* what) {
    const without_gil release(n);
    check(std::all_of(values, values + n, holds), what);
}

// The value that an option's name stands for.
template <class E, std::size_t N>
E named(const char* option, const std::string& name, const std::pair<const char*, E> (&values)[N]) {
    std::string known;
    for (const auto& [key, value] : values) {
        if (name == key) return value;
        known += (known.empty() ? "'" : ", '") + std::string(key) + "'";
    }
    throw std::invalid_argument(std::string(option) + " must be one of " + known + "; got '" +
                                name + "'");
}

inline void check_one_per(const char* what, const py::array& values, py::ssize_t n) {
    check(has_shape(values, {n}), what);
}
template <class T>
void check_one_per(const char* what, const optional_array<T>& values, py::ssize_t n) {
    if (values) check_one_per(what, *values, n);
}

// The queries of n_rows rows, checked; without labels and weights.
inline query_rows queries_of(const array<std::int64_t>& offsets,
                             const optional_array<std::int64_t>& order, py::ssize_t n_rows) {
    check(offsets.ndim() == 1 && offsets.size() > 0, "offsets must be 1-d, one more than queries");
    check_one_per("order must be 1-d with a value per row", order, n_rows);
    const query_rows queries{offsets.size() - 1, pointer(offsets), pointer(order)};
    unlocked_for(n_rows, check_rows, queries, n_rows);
    return queries;
}

template <class T>
array<T> as_array(const std::vector<T>& values) {
    return array<T>(length_of(values), values.data());
}

// A map of rows to hidden nodes that keeps its arrays and other maps alive.
template <class T>
struct bound_node_map {
    py::object kept;
    node_map<T> map;
    std::shared_ptr<cross_columns> cross = {};
};

// Columns that are made of rows, which keep their arrays alive.
struct bound_input_columns {
    py::object kept;
    input_columns columns;
};

void bind_problem(py::module_& m);
void bind_band(py::module_& m);
void bind_least_squares(py::module_& m);
void bind_metrics(py::module_& m);
void bind_letor(py::module_& m);
void bind_inputs(py::module_& m);
void bind_feature_maps(py::module_& m);
void bind_group_fits(py::module_& m);
void bind_comparisons(py::module_& m);
void bind_svm(py::module_& m);
void bind_pair_products(py::module_& m);

}  // namespace pairgram
