// Systems over the same rows, each with pairs of its own, as the bindings take them.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "bindings/problem.hpp"
#include "data/comparisons.hpp"
#include "solvers/sparse_pairs.hpp"
#include "support/sparse_indices.hpp"

namespace pairgram {

inline bool same_queries(const query_rows& a, const query_rows& b) {
    const auto n = a.n_rows();
    return a.n_queries == b.n_queries && n == b.n_rows() && !a.order == !b.order &&
           std::equal(a.offsets, a.offsets + a.n_queries + 1, b.offsets) &&
           (!a.order || std::equal(a.order, a.order + n, b.order));
}

// The rows of checked CSR arrays.
template <class T>
sparse_rows<T> sparse_rows_of(const array<std::int64_t>& bounds, const array<std::int32_t>& columns,
                              const array<T>& values, py::ssize_t n_columns) {
    check(bounds.ndim() == 1 && bounds.size() > 0, "indptr must be 1-d, one more than rows");
    check(columns.ndim() == 1 && values.ndim() == 1 && columns.size() == values.size(),
          "indices and values must be 1-d and equally long");
    check(n_columns <= std::numeric_limits<std::int32_t>::max(),
          "n_columns must be less than 2^31: the numbers of columns are int32");
    const sparse_rows<T> rows{bounds.size() - 1, n_columns, pointer(bounds), pointer(columns),
                              pointer(values)};
    const auto n_entries = columns.size(), n_bounds = bounds.size();
    const without_gil release;
    check(rows.bounds[0] == 0 && first_descent(n_bounds, rows.bounds) < 0 &&
              rows.bounds[rows.n_rows] <= n_entries &&
              first_outside(rows.begin(rows.n_rows), rows.columns, n_columns) < 0,
          "indptr and indices must be those of CSR");
    return rows;
}

// The pairs of ranking problems, or of comparisons, of n_rows rows. Nothing changes them, so that
// threads may share them.
class bound_systems {
  public:
    bound_systems(const std::vector<py::object>& problems, py::ssize_t n_rows)
        : problems_(problems) {
        check(!problems.empty(), "problems must not be empty");
        std::vector<std::function<laplacian()>> makers;
        for (const auto& problem : problems) {
            if (py::isinstance<comparisons>(problem)) {
                const auto& pairs = problem.cast<const comparisons&>();
                makers.push_back([&pairs] { return laplacian(pairs); });
            } else {
                const auto& view = problem.cast<const bound_problem&>().view;
                makers.push_back([&view] { return laplacian(view); });
                counts_one_by_one_ = view.rule.kind == pair_kind::none;
            }
        }
        const without_gil release;
        for (const auto& make : makers) {
            laplacians_.push_back(make());
            check(rows().n_rows() == n_rows, "problems must have an entry per row of the matrix");
            check(same_queries(laplacians_.back().rows(), rows()),
                  "problems must have the same queries");
        }
    }

    const buffer<laplacian>& laplacians() const { return laplacians_; }
    const query_rows& rows() const { return laplacians_[0].rows(); }
    bool makes_differences() const { return !counts_one_by_one_; }

    const laplacian& operator[](py::ssize_t system) const {
        check(0 <= system && size_of(system) < laplacians_.size(),
              "system must be the number of a problem");
        return laplacians_[system];
    }

    array<bool> counted(py::ssize_t system) const {
        const auto& of = (*this)[system];
        array<bool> counted(of.rows().n_queries);
        bool* out = counted.mutable_data();
        for (std::ptrdiff_t q = 0; q < of.rows().n_queries; ++q) out[q] = of.counts(q);
        return counted;
    }

    // A product out = multiply(n_vectors, vectors, systems) of vectors (n_vectors, n_columns).
    template <class Multiply>
    array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                          py::ssize_t n_columns, const Multiply& multiply) const {
        check(vectors.ndim() == 2 && vectors.shape(1) == n_columns,
              "vectors must be (n_vectors, n_columns)");
        const auto n_vectors = vectors.shape(0);
        check(systems.ndim() == 1 && systems.size() == n_vectors, "systems: 1-d, one per vector");
        const auto n_systems = static_cast<std::int64_t>(laplacians_.size());
        const double* in = pointer(vectors);
        const auto* of = pointer(systems);
        check_all(
            n_vectors, of, [&](std::int64_t s) { return 0 <= s && s < n_systems; },
            "systems must be numbers of problems");
        array<double> result({n_vectors, n_columns});
        double* out = result.mutable_data();
        const without_gil release;
        multiply(n_vectors, in, of, out);
        return result;
    }

  private:
    std::vector<py::object> problems_;  // whose arrays the Laplacians read
    buffer<laplacian> laplacians_;
    bool counts_one_by_one_ = false;
};

}  // namespace pairgram
