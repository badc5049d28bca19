// Inputs: columns that are made of rows, and the statistics of columns that they need.
#include <algorithm>
#include <cmath>

#include "bindings/bindings.hpp"
#include "features/column_statistics.hpp"
#include "features/input_columns.hpp"
#include "features/interleaved_columns.hpp"
#include "features/list_columns.hpp"

namespace pairgram {

namespace {

bound_input_columns scaled_columns(const array<double>& centres, const array<double>& factors) {
    check(centres.ndim() == 1 && has_shape(factors, {centres.size()}),
          "centres and factors must be (n_inputs,)");
    return {py::make_tuple(centres, factors),
            {centres.size(), false, pointer(centres), pointer(factors), {}}};
}

bound_input_columns function_columns(const array<double>& knots, const array<double>& values,
                                     const array<std::int64_t>& ends, bool keeps_inputs) {
    check(knots.ndim() == 1 && has_shape(values, {knots.size()}),
          "knots and values must be (n_knots,)");
    check(ends.ndim() == 1, "ends must be (n_inputs,)");
    const double *const at = pointer(knots), *const value = pointer(values);
    bound_input_columns bound;
    bound.columns.n_inputs = ends.size();
    bound.columns.keeps_inputs = keeps_inputs;
    std::int64_t begin = 0;
    buffer<piecewise_linear> functions;
    for (py::ssize_t j = 0; j < ends.size(); ++j) {
        const auto end = ends.data()[j];
        check(begin < end && end <= knots.size() && end - begin <= 256,
              "every input needs 1 to 256 knots");
        for (auto k = begin; k + 1 < end; ++k) check(at[k] < at[k + 1], "knots must ascend");
        check(std::isfinite(at[end - 1] - at[begin]), "knots must have a finite range");
        functions.emplace_back(end - begin, at + begin, value + begin);
        begin = end;
    }
    check(begin == knots.size(), "ends must be those of the knots");
    constexpr std::ptrdiff_t most = function_strip::most;
    for (std::ptrdiff_t j = 0; j < ends.size(); j += most)
        bound.columns.functions.emplace_back(std::min<std::ptrdiff_t>(most, ends.size() - j),
                                             functions.data() + j);
    return bound;
}

template <class T>
void check_matrix(const array<T>& X) {
    check(X.ndim() == 2 && X.shape(0) > 0, "X must be (n_rows, n_columns) with a row or more");
}

// The lowest and the highest value, the pivot, the mean less the pivot, and the squares of every
// column, (5, n_columns).
template <class T>
array<double> moments_of(const array<T>& X, const optional_array<double>& weights, int n_threads) {
    check_matrix(X);
    check_one_per("weights must be (n_rows,)", weights, X.shape(0));
    const auto n = X.shape(0), d = X.shape(1);
    array<double> out({py::ssize_t{5}, d});
    unlocked_for(n * d, find_moments<T>, n, d, pointer(X), pointer(weights), writable(out),
                 n_threads);
    return out;
}

template <class T>
array<double> order_statistics_of(const array<T>& X, const array<std::int64_t>& ranks,
                                  int n_threads) {
    check_matrix(X);
    check(ranks.ndim() == 1, "ranks must be (n_ranks,)");
    std::int64_t last = 0;
    for (py::ssize_t r = 0; r < ranks.size(); ++r) {
        check(last <= ranks.data()[r] && ranks.data()[r] < X.shape(0),
              "ranks must ascend within the rows");
        last = ranks.data()[r];
    }
    array<double> out({X.shape(1), ranks.size()});
    unlocked_for(X.size(), find_order_statistics<T>, X.shape(0), X.shape(1), pointer(X),
                 ranks.size(), pointer(ranks), writable(out), n_threads);
    return out;
}

// The columns of lists, (n_rows, n_columns).
template <class T>
array<T> list_columns_of(const std::string& kind, bool keeps_inputs, const array<T>& X,
                         const array<std::int64_t>& offsets,
                         const optional_array<std::int64_t>& order, int n_threads) {
    check_matrix(X);
    const list_columns columns{named<list_kind>("kind", kind,
                                                {{"rank", list_kind::rank},
                                                 {"standard", list_kind::standard},
                                                 {"runs", list_kind::runs}}),
                               keeps_inputs};
    const auto n = X.shape(0), d = X.shape(1);
    const auto lists = queries_of(offsets, order, n);
    array<T> out({n, py::ssize_t{columns.n_columns(d)}});
    unlocked_for(X.size(), make_list_columns<T>, columns, lists, d, pointer(X), writable(out),
                 n_threads);
    return out;
}

// (rows (n, d), which columns have a NaN (d,)) of a table's columns, which stand one after the
// other. A NaN becomes fill[j] if there is a fill.
template <class T>
py::tuple interleaved(const std::vector<array<T>>& columns, const optional_array<T>& fill,
                      int n_threads) {
    const auto d = length_of(columns);
    check(d > 0, "there must be a column or more");
    check_one_per("fill must be (n_columns,)", fill, d);
    const auto n = columns.front().size();
    buffer<const T*> at;
    for (const auto& column : columns) {
        check_one_per("columns must be 1-d and of one length", column, n);
        at.push_back(pointer(column));
    }
    array<T> rows({n, d});
    array<bool> missing(d);
    unlocked_for(n * d, interleave_columns<T>, n, d, at.data(), pointer(fill), writable(rows),
                 writable(missing), n_threads);
    return py::make_tuple(rows, missing);
}

template <class T>
void bind_statistics(py::module_& m) {
    m.def("list_columns", &list_columns_of<T>, "kind"_a, "keeps_inputs"_a, "X"_a, "offsets"_a,
          "order"_a, "n_threads"_a);
    m.def("column_moments", &moments_of<T>, "X"_a, "weights"_a, "n_threads"_a);
    m.def("order_statistics", &order_statistics_of<T>, "X"_a, "ranks"_a, "n_threads"_a);
    m.def("interleave_columns", &interleaved<T>, "columns"_a, "fill"_a, "n_threads"_a);
}

}  // namespace

void bind_inputs(py::module_& m) {
    py::class_<bound_input_columns>(m, "InputColumns")
        .def_static("scaled", &scaled_columns, "centres"_a, "factors"_a)
        .def_static("functions", &function_columns, "knots"_a, "values"_a, "ends"_a,
                    "keeps_inputs"_a);
    bind_statistics<double>(m);
    bind_statistics<float>(m);
}

}  // namespace pairgram
