// Products with sparse rows: checks, GIL release; nothing else.
#include "solvers/sparse_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "bindings/problem.hpp"
#include "support/sparse_indices.hpp"

namespace pairgram {

namespace {

// `SparsePairs` of Python, whatever the types of the values and the indices.
struct any_sparse_pairs {
    virtual ~any_sparse_pairs() = default;
    virtual array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                                  int n_threads) const = 0;
    virtual array<bool> counted(py::ssize_t system) const = 0;
    virtual py::tuple diagonal(py::ssize_t system) const = 0;
};

// Rows that were checked once, and their systems. Nothing changes it, so that threads may share
// one.
template <class T, class I>
class bound_sparse_pairs : public any_sparse_pairs {
  public:
    bound_sparse_pairs(const array<I>& bounds, const array<I>& columns, const array<T>& values,
                       py::ssize_t n_columns, const std::vector<py::object>& problems);
    array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                          int n_threads) const override;
    array<bool> counted(py::ssize_t system) const override;
    py::tuple diagonal(py::ssize_t system) const override;

  private:
    const laplacian& laplacian_of(py::ssize_t system) const {
        check(0 <= system && size_of(system) < laplacians_.size(),
              "system must be the number of a problem");
        return laplacians_[system];
    }

    array<I> bounds_, columns_;
    array<T> values_;
    std::vector<py::object> problems_;  // whose arrays the Laplacians read
    sparse_rows<T, I> rows_;
    buffer<laplacian> laplacians_;
    pieces_of_rows pieces_;
};

bool same_queries(const query_rows& a, const query_rows& b) {
    const auto n = a.n_rows();
    return a.n_queries == b.n_queries && n == b.n_rows() && !a.order == !b.order &&
           std::equal(a.offsets, a.offsets + a.n_queries + 1, b.offsets) &&
           (!a.order || std::equal(a.order, a.order + n, b.order));
}

template <class T, class I>
bound_sparse_pairs<T, I>::bound_sparse_pairs(const array<I>& bounds, const array<I>& columns,
                                             const array<T>& values, py::ssize_t n_columns,
                                             const std::vector<py::object>& problems)
    : bounds_(bounds), columns_(columns), values_(values), problems_(problems), rows_{} {
    check(bounds.ndim() == 1 && bounds.size() > 0, "indptr must be 1-d, one more than rows");
    check(columns.ndim() == 1 && values.ndim() == 1 && columns.size() == values.size(),
          "indices and values must be 1-d and equally long");
    check(!problems.empty(), "problems must not be empty");
    rows_ = {bounds.size() - 1, n_columns, pointer(bounds), pointer(columns), pointer(values)};
    std::vector<std::function<laplacian()>> makers;
    for (const auto& problem : problems) {
        if (py::isinstance<comparisons>(problem)) {
            const auto& pairs = problem.cast<const comparisons&>();
            makers.push_back([&pairs] { return laplacian(pairs); });
        } else {
            const auto& view = problem.cast<const bound_problem&>().view;
            makers.push_back([&view] { return laplacian(view); });
        }
    }
    const auto n_entries = columns.size(), n_bounds = bounds.size();
    const without_gil release;
    check(rows_.bounds[0] == 0 && first_descent(n_bounds, rows_.bounds) < 0 &&
              rows_.bounds[rows_.n_rows] <= n_entries &&
              first_outside(rows_.begin(rows_.n_rows), rows_.columns, n_columns) < 0,
          "indptr and indices must be those of CSR");
    for (const auto& make : makers) {
        laplacians_.push_back(make());
        const auto& rows = laplacians_.back().rows();
        check(rows.n_rows() == rows_.n_rows, "problems must have an entry per row of the matrix");
        check(same_queries(rows, laplacians_[0].rows()), "problems must have the same queries");
    }
    pieces_ = cut_rows(rows_, laplacians_[0].rows());
}

template <class T, class I>
array<double> bound_sparse_pairs<T, I>::product(const array<double>& vectors,
                                                const array<std::int64_t>& systems,
                                                int n_threads) const {
    check(vectors.ndim() == 2 && vectors.shape(1) == rows_.n_columns,
          "vectors must be (n_vectors, n_columns)");
    const auto n_vectors = vectors.shape(0);
    check(systems.ndim() == 1 && systems.size() == n_vectors, "systems: 1-d, one per vector");
    const auto n_systems = static_cast<std::int64_t>(laplacians_.size());
    const double* in = pointer(vectors);
    const auto* of = pointer(systems);
    check_all(
        n_vectors, of, [&](std::int64_t s) { return 0 <= s && s < n_systems; },
        "systems must be numbers of problems");
    array<double> result({n_vectors, rows_.n_columns});
    double* out = result.mutable_data();
    const without_gil release;
    sparse_pair_product(rows_, laplacians_, pieces_, n_vectors, in, of, out, n_threads);
    return result;
}

template <class T, class I>
array<bool> bound_sparse_pairs<T, I>::counted(py::ssize_t system) const {
    const auto& of = laplacian_of(system);
    array<bool> counted(of.rows().n_queries);
    bool* out = counted.mutable_data();
    for (std::ptrdiff_t q = 0; q < of.rows().n_queries; ++q) out[q] = of.counts(q);
    return counted;
}

template <class T, class I>
py::tuple bound_sparse_pairs<T, I>::diagonal(py::ssize_t system) const {
    const auto& of = laplacian_of(system);
    array<double> squares(rows_.n_columns), size(rows_.n_columns);
    double *out = squares.mutable_data(), *size_out = size.mutable_data();
    {
        const without_gil release;
        sparse_pair_diagonal(rows_, of, out, size_out);
    }
    return py::make_tuple(squares, size);
}

template <class T, class I>
std::unique_ptr<any_sparse_pairs> make_pairs(const array<I>& bounds, const array<I>& columns,
                                             const array<T>& values, py::ssize_t n_columns,
                                             const std::vector<py::object>& problems) {
    return std::make_unique<bound_sparse_pairs<T, I>>(bounds, columns, values, n_columns, problems);
}

template <class T, class I>
void define(py::module_& m) {
    m.def("sparse_pairs", &make_pairs<T, I>, py::arg("indptr").noconvert(),
          py::arg("indices").noconvert(), py::arg("values").noconvert(), py::arg("n_columns"),
          py::arg("problems"));
}

}  // namespace

void bind_sparse_pairs(py::module_& m) {
    py::class_<any_sparse_pairs>(m, "SparsePairs")
        .def("counted", &any_sparse_pairs::counted, py::arg("system"))
        .def("diagonal", &any_sparse_pairs::diagonal, py::arg("system"))
        .def("product", &any_sparse_pairs::product, py::arg("vectors").noconvert(),
             py::arg("systems").noconvert(), py::arg("n_threads") = 1);
    define<double, std::int32_t>(m);
    define<double, std::int64_t>(m);
    define<float, std::int32_t>(m);
    define<float, std::int64_t>(m);
}

}  // namespace pairgram
