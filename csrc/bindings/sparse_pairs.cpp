// Products with sparse rows: checks, GIL release; nothing else.
#include "solvers/sparse_pairs.hpp"

#include <memory>
#include <vector>

#include "bindings/pair_systems.hpp"

namespace pairgram {

namespace {

// `SparsePairs` of Python, whatever the type of the values.
struct any_sparse_pairs {
    virtual ~any_sparse_pairs() = default;
    virtual array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                                  int n_threads) const = 0;
    virtual array<bool> counted(py::ssize_t system) const = 0;
    virtual py::tuple diagonal(py::ssize_t system, int n_threads) const = 0;
};

// Rows that were checked once, and their systems. Nothing changes it, so that threads may share
// one.
template <class T>
class bound_sparse_pairs : public any_sparse_pairs {
  public:
    bound_sparse_pairs(const array<std::int64_t>& bounds, const array<std::int32_t>& columns,
                       const array<T>& values, py::ssize_t n_columns,
                       const std::vector<py::object>& problems);
    array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                          int n_threads) const override;
    array<bool> counted(py::ssize_t system) const override;
    py::tuple diagonal(py::ssize_t system, int n_threads) const override;

  private:
    array<std::int64_t> bounds_;
    array<std::int32_t> columns_;
    array<T> values_;
    sparse_rows<T> rows_;
    std::unique_ptr<bound_systems> systems_;
    pieces_of_rows pieces_;
};

template <class T>
bound_sparse_pairs<T>::bound_sparse_pairs(const array<std::int64_t>& bounds,
                                          const array<std::int32_t>& columns,
                                          const array<T>& values, py::ssize_t n_columns,
                                          const std::vector<py::object>& problems)
    : bounds_(bounds),
      columns_(columns),
      values_(values),
      rows_(sparse_rows_of(bounds, columns, values, n_columns)) {
    systems_ = std::make_unique<bound_systems>(problems, rows_.n_rows);
    const without_gil release;
    pieces_ = cut_rows(rows_, systems_->rows());
}

template <class T>
array<double> bound_sparse_pairs<T>::product(const array<double>& vectors,
                                             const array<std::int64_t>& systems,
                                             int n_threads) const {
    return systems_->product(
        vectors, systems, rows_.n_columns,
        [&](py::ssize_t n, const double* in, const std::int64_t* of, double* out) {
            sparse_pair_product(rows_, systems_->laplacians(), pieces_, n, in, of, out, n_threads);
        });
}

template <class T>
array<bool> bound_sparse_pairs<T>::counted(py::ssize_t system) const {
    return systems_->counted(system);
}

template <class T>
py::tuple bound_sparse_pairs<T>::diagonal(py::ssize_t system, int n_threads) const {
    const auto& of = (*systems_)[system];
    array<double> squares(rows_.n_columns), size(rows_.n_columns);
    double *out = squares.mutable_data(), *size_out = size.mutable_data();
    {
        const without_gil release;
        sparse_pair_diagonal(rows_, of, out, size_out, n_threads);
    }
    return py::make_tuple(squares, size);
}

template <class T>
std::unique_ptr<any_sparse_pairs> make_sparse_pairs(const array<std::int64_t>& bounds,
                                                    const array<std::int32_t>& columns,
                                                    const array<T>& values, py::ssize_t n_columns,
                                                    const std::vector<py::object>& problems) {
    return std::make_unique<bound_sparse_pairs<T>>(bounds, columns, values, n_columns, problems);
}

template <class T>
void define_sparse_pairs(py::module_& m) {
    m.def("sparse_pairs", &make_sparse_pairs<T>, py::arg("indptr").noconvert(),
          py::arg("indices").noconvert(), py::arg("values").noconvert(), py::arg("n_columns"),
          py::arg("problems"));
}

}  // namespace

void bind_sparse_pairs(py::module_& m) {
    py::class_<any_sparse_pairs>(m, "SparsePairs")
        .def("counted", &any_sparse_pairs::counted, py::arg("system"))
        .def("diagonal", &any_sparse_pairs::diagonal, py::arg("system"), py::arg("n_threads") = 1)
        .def("product", &any_sparse_pairs::product, py::arg("vectors").noconvert(),
             py::arg("systems").noconvert(), py::arg("n_threads") = 1);
    define_sparse_pairs<double>(m);
    define_sparse_pairs<float>(m);
}

}  // namespace pairgram
