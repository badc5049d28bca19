// Products with the pairgram of products of columns: checks, GIL release; nothing else.
#include "solvers/cross_pairs.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "bindings/pair_systems.hpp"

namespace pairgram {

namespace {

// `CrossPairs` of Python, whatever the type of the rows.
struct any_cross_pairs {
    virtual ~any_cross_pairs() = default;
    virtual array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                                  int n_threads) const = 0;
    virtual array<bool> counted(py::ssize_t system) const = 0;
    virtual array<double> transposed(const array<double>& z, int n_threads) const = 0;
    virtual py::tuple squares(py::ssize_t system, bool of_left, int n_threads) const = 0;
    virtual bool is_constant() const = 0;
};

// Rows that were laid out once, and their systems. Nothing changes it, so that threads may share
// one.
template <class T>
class bound_cross_pairs : public any_cross_pairs {
  public:
    bound_cross_pairs(const array<T>& inputs, const bound_node_map<T>& map,
                      const std::vector<py::object>& problems, int n_threads)
        : systems_(problems, inputs.ndim() == 2 ? inputs.shape(0) : -1) {
        check(cross_of(map.map) != nullptr, "the map must be a cross");
        check(inputs.shape(1) == map.map.n_inputs, "rows must be the inputs of the map");
        const T* in = pointer(inputs);
        const without_gil release;
        rows_ = lay_out(systems_.rows(), systems_.makes_differences(), in, map.map, n_threads);
    }

    array<double> product(const array<double>& vectors, const array<std::int64_t>& systems,
                          int n_threads) const override {
        return systems_.product(
            vectors, systems, rows_.n_features(),
            [&](py::ssize_t n, const double* in, const std::int64_t* of, double* out) {
                cross_pair_product(rows_, systems_.laplacians(), n, in, of, out, n_threads);
            });
    }

    array<bool> counted(py::ssize_t system) const override { return systems_.counted(system); }

    array<double> transposed(const array<double>& z, int n_threads) const override {
        const auto& rows = systems_.rows();
        check_one_per("z: 1-d, one per row", z, rows.n_rows());
        const double* in = pointer(z);
        array<double> result(rows_.n_features());
        double* out = result.mutable_data();
        const without_gil release;
        buffer<double> by_position(rows.n_rows());
        for (std::ptrdiff_t i = 0; i < rows.n_rows(); ++i) by_position[i] = in[rows.row(i)];
        cross_transposed(rows_, by_position.data(), out, n_threads);
        return result;
    }

    py::tuple squares(py::ssize_t system, bool of_left, int n_threads) const override {
        const auto& pairs = systems_[system];
        array<double> diagonal(rows_.n_features()), size(rows_.n_features());
        std::optional<array<double>> left;
        if (of_left) left.emplace(array<double>({rows_.n_left, rows_.n_left}));
        double *out = diagonal.mutable_data(), *size_out = size.mutable_data();
        double* const left_out = left ? left->mutable_data() : nullptr;
        {
            const without_gil release;
            cross_pair_squares(rows_, pairs, out, size_out, left_out, n_threads);
        }
        return py::make_tuple(diagonal, size, left);
    }

    bool is_constant() const override {
        if (!systems_.makes_differences()) return true;  // squares are those of rows
        for (const auto constant : rows_.is_constant)
            if (!constant) return false;
        return true;
    }

  private:
    bound_systems systems_;
    cross_rows<T> rows_{};
};

template <class T>
std::unique_ptr<any_cross_pairs> make_cross_pairs(const array<T>& rows,
                                                  const bound_node_map<T>& map,
                                                  const std::vector<py::object>& problems,
                                                  int n_threads) {
    return std::make_unique<bound_cross_pairs<T>>(rows, map, problems, n_threads);
}

template <class T>
void define_cross_pairs(py::module_& m) {
    m.def("cross_pairs", &make_cross_pairs<T>, py::arg("rows").noconvert(), py::arg("map"),
          py::arg("problems"), py::arg("n_threads") = 1);
}

}  // namespace

void bind_cross_pairs(py::module_& m) {
    py::class_<any_cross_pairs>(m, "CrossPairs")
        .def_property_readonly("is_constant", &any_cross_pairs::is_constant)
        .def("counted", &any_cross_pairs::counted, py::arg("system"))
        .def("squares", &any_cross_pairs::squares, py::arg("system"), py::arg("of_left") = false,
             py::arg("n_threads") = 1)
        .def("transposed", &any_cross_pairs::transposed, py::arg("z").noconvert(),
             py::arg("n_threads") = 1)
        .def("product", &any_cross_pairs::product, py::arg("vectors").noconvert(),
             py::arg("systems").noconvert(), py::arg("n_threads") = 1);
    define_cross_pairs<double>(m);
    define_cross_pairs<float>(m);
}

}  // namespace pairgram
