// Products with the pairgram of sparse rows, and of products of columns: checks, GIL release;
// nothing else.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bindings/problem.hpp"
#include "solvers/cross_pairs.hpp"
#include "solvers/sparse_pairs.hpp"

namespace pairgram {

namespace {

bool same_queries(const query_rows& a, const query_rows& b) {
    const auto n = a.n_rows();
    return a.n_queries == b.n_queries && n == b.n_rows() && !a.order == !b.order &&
           std::equal(a.offsets, a.offsets + a.n_queries + 1, b.offsets) &&
           (!a.order || std::equal(a.order, a.order + n, b.order));
}

// Systems over the same n_rows rows, each with the pairs of a ranking problem, or of comparisons.
// Nothing changes them, so that threads may share them.
class pair_systems {
  public:
    pair_systems(const std::vector<py::object>& problems, py::ssize_t n_rows)
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
                makes_differences_ = view.rule.kind != pair_kind::none;
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

    array<bool> counted(py::ssize_t system) const {
        const auto& of = (*this)[system];
        array<bool> counted(rows().n_queries);
        bool* out = counted.mutable_data();
        for (std::ptrdiff_t q = 0; q < rows().n_queries; ++q) out[q] = of.counts(q);
        return counted;
    }

  protected:
    // What multiply(n_vectors, vectors, systems, out) makes of vectors of so many features.
    template <class Multiply>
    array<double> products(py::ssize_t n_features, const array<double>& vectors,
                           const array<std::int64_t>& systems, const Multiply& multiply) const {
        check(vectors.ndim() == 2 && vectors.shape(1) == n_features,
              "vectors must be (n_vectors, n_features)");
        const auto n_vectors = vectors.shape(0);
        const auto n_systems = static_cast<std::int64_t>(laplacians_.size());
        check_one_per("systems: 1-d, one per vector", systems, n_vectors);
        check_all(
            n_vectors, pointer(systems), [&](std::int64_t s) { return 0 <= s && s < n_systems; },
            "systems must be numbers of problems");
        array<double> out({n_vectors, n_features});
        unlocked(multiply, n_vectors, pointer(vectors), pointer(systems), writable(out));
        return out;
    }

    const buffer<laplacian>& laplacians() const { return laplacians_; }
    const query_rows& rows() const { return laplacians_[0].rows(); }
    bool makes_differences() const { return makes_differences_; }

    const laplacian& operator[](py::ssize_t system) const {
        check(0 <= system && size_of(system) < laplacians_.size(),
              "system must be the number of a problem");
        return laplacians_[system];
    }

  private:
    std::vector<py::object> problems_;  // whose arrays the Laplacians read
    buffer<laplacian> laplacians_;
    bool makes_differences_ = true;  // rows do not count one by one
};

template <class T>
class sparse_pairs : public pair_systems {
  public:
    sparse_pairs(const array<std::int64_t>& bounds, const array<std::int32_t>& columns,
                 const array<T>& values, py::ssize_t n_columns,
                 const std::vector<py::object>& problems)
        : pair_systems(problems, bounds.size() - 1),
          arrays_{bounds, columns, values},
          of_rows_(sparse_rows_of(bounds, columns, values, n_columns)),
          pieces_(unlocked(cut_rows<T>, of_rows_, rows())) {}

    array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                          int n_threads) const {
        return products(of_rows_.n_columns, vectors, systems, [&](auto... arguments) {
            sparse_pair_product(of_rows_, laplacians(), pieces_, arguments..., n_threads);
        });
    }

    py::tuple diagonal(py::ssize_t system, int n_threads) const {
        array<double> squares(of_rows_.n_columns), size(of_rows_.n_columns);
        unlocked(sparse_pair_diagonal<T>, of_rows_, (*this)[system], writable(squares),
                 writable(size), n_threads);
        return py::make_tuple(squares, size);
    }

  private:
    std::vector<py::object> arrays_;
    sparse_rows<T> of_rows_;
    pieces_of_rows pieces_;
};

template <class T>
class cross_pairs : public pair_systems {
  public:
    cross_pairs(const array<T>& inputs, const bound_node_map<T>& map,
                const std::vector<py::object>& problems, int n_threads)
        : pair_systems(problems, inputs.ndim() == 2 ? inputs.shape(0) : -1) {
        check(cross_of(map.map) != nullptr, "the map must be a cross");
        check(inputs.shape(1) == map.map.n_inputs, "rows must be the inputs of the map");
        of_rows_ =
            unlocked(lay_out<T>, rows(), makes_differences(), pointer(inputs), map.map, n_threads);
    }

    array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                          int n_threads) const {
        return products(of_rows_.n_features(), vectors, systems, [&](auto... arguments) {
            cross_pair_product(of_rows_, laplacians(), arguments..., n_threads);
        });
    }

    array<double> transposed(const array<double>& z, int n_threads) const {
        check_one_per("z: 1-d, one per row", z, rows().n_rows());
        buffer<double> by_position(rows().n_rows());
        for (std::ptrdiff_t i = 0; i < rows().n_rows(); ++i)
            by_position[i] = pointer(z)[rows().row(i)];
        array<double> out(of_rows_.n_features());
        unlocked(cross_transposed<T>, of_rows_, by_position.data(), writable(out), n_threads);
        return out;
    }

    py::tuple squares(py::ssize_t system, bool of_left, int n_threads) const {
        array<double> diagonal(of_rows_.n_features()), size(of_rows_.n_features());
        std::optional<array<double>> left;
        if (of_left) left.emplace(array<double>({of_rows_.n_left, of_rows_.n_left}));
        unlocked(cross_pair_squares<T>, of_rows_, (*this)[system], writable(diagonal),
                 writable(size), left ? writable(*left) : nullptr, n_threads);
        return py::make_tuple(diagonal, size, left);
    }

    bool is_constant() const {
        if (!makes_differences()) return true;  // squares are those of rows
        const auto& constant = of_rows_.is_constant;
        return std::all_of(constant.begin(), constant.end(), [](auto is) { return is != 0; });
    }

  private:
    cross_rows<T> of_rows_{};
};

// Adds to counts, see varying_columns.hpp.
void count_varying_rows(const array<std::int64_t>& indptr, const array<std::int32_t>& indices,
                        const array<double>& values, array<std::int64_t>& counts,
                        const array<std::int64_t>& offsets,
                        const optional_array<std::int64_t>& order,
                        const optional_array<double>& row_weights, const array<bool>& counted,
                        bool pointwise) {
    check(counts.ndim() == 1 && counts.size() > 0, "counts must be (n_features + 1,)");
    const auto rows = sparse_rows_of(indptr, indices, values, counts.size() - 1);
    auto queries = queries_of(offsets, order, rows.n_rows);
    check_one_per("row_weights: 1-d, one per row", row_weights, rows.n_rows);
    check_one_per("counted: 1-d, one per query", counted, queries.n_queries);
    queries.row_weights = pointer(row_weights);
    unlocked(count_varying, queries, pointer(counted), pointwise, rows, writable(counts));
}

template <class Pairs, class... Arguments>
std::unique_ptr<Pairs> make(Arguments... arguments) {
    return std::make_unique<Pairs>(arguments...);
}

// The methods that all classes have.
template <class Pairs>
py::class_<Pairs> define_pairs(py::module_& m, const char* name) {
    return py::class_<Pairs>(m, name)
        .def("counted", &Pairs::counted, "system"_a)
        .def("product", &Pairs::product, "vectors"_a, "systems"_a, "n_threads"_a = 1);
}

template <class T>
void define_pair_products(py::module_& m, const char* sparse_name, const char* cross_name) {
    using sparse = sparse_pairs<T>;
    using cross = cross_pairs<T>;
    using problems = const std::vector<py::object>&;
    define_pairs<sparse>(m, sparse_name)
        .def("diagonal", &sparse::diagonal, "system"_a, "n_threads"_a = 1);
    m.def("sparse_pairs",
          &make<sparse, const array<std::int64_t>&, const array<std::int32_t>&, const array<T>&,
                py::ssize_t, problems>,
          "indptr"_a, "indices"_a, "values"_a, "n_columns"_a, "problems"_a);
    define_pairs<cross>(m, cross_name)
        .def_property_readonly("is_constant", &cross::is_constant)
        .def("squares", &cross::squares, "system"_a, "of_left"_a = false, "n_threads"_a = 1)
        .def("transposed", &cross::transposed, "z"_a, "n_threads"_a = 1);
    m.def("cross_pairs", &make<cross, const array<T>&, const bound_node_map<T>&, problems, int>,
          "rows"_a, "map"_a, "problems"_a, "n_threads"_a = 1);
}

}  // namespace

void bind_pair_products(py::module_& m) {
    define_pair_products<double>(m, "SparsePairs64", "CrossPairs64");
    define_pair_products<float>(m, "SparsePairs32", "CrossPairs32");
    m.def("count_varying", &count_varying_rows, "indptr"_a, "indices"_a, "values"_a, "counts"_a,
          "offsets"_a, py::kw_only(), "order"_a = py::none(), "row_weights"_a = py::none(),
          "counted"_a, "pointwise"_a);
}

}  // namespace pairgram
