// The band form of symmetric matrices: checks, GIL release, m.def; nothing else.
#include "bindings/bindings.hpp"
#include "linear_algebra/band_cholesky.hpp"
#include "linear_algebra/band_reduction.hpp"

namespace pairgram {

namespace {

py::ssize_t order_of(const array<double>& matrix) {
    check(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), "matrix must be square");
    pointer(matrix);  // aligned
    return matrix.shape(0);
}

py::ssize_t width_of(const array<double>& factors, py::ssize_t n) {
    check(factors.ndim() == 3 && factors.shape(1) == factors.shape(2) && factors.shape(1) > 0 &&
              factors.shape(0) == n_reflector_blocks(n, factors.shape(1)),
          "factors must be (n_blocks, width, width), as reduce_to_band returns them");
    return factors.shape(1);
}

band_matrix band_of(const array<double>& band) {
    check(band.ndim() == 2 && band.shape(1) > 1, "band must be (n, width + 1)");
    return {band.shape(0), band.shape(1) - 1, pointer(band)};
}

py::tuple reduce_array(array<double>& matrix, py::ssize_t width, int n_threads) {
    const auto n = order_of(matrix);
    check(width > 0, "width must be at least 1");
    array<double> band({n, width + 1}), factors({n_reflector_blocks(n, width), width, width});
    auto *a = matrix.mutable_data(), *b = band.mutable_data(), *t = factors.mutable_data();
    {
        const without_gil release;
        reduce_to_band(n, width, a, b, t, n_threads);
    }
    return py::make_tuple(band, factors);
}

void apply_arrays(const array<double>& matrix, const array<double>& factors, array<double>& vectors,
           bool transposed, int n_threads) {
    const auto n = order_of(matrix), width = width_of(factors, n);
    check(vectors.ndim() == 2 && vectors.shape(1) == n, "vectors must be (n_vectors, n)");
    pointer(vectors);  // aligned
    const auto *a = matrix.data(), *t = pointer(factors);
    const auto n_vectors = vectors.shape(0);
    auto* x = vectors.mutable_data();
    const without_gil release;
    apply_band_basis(n, width, a, t, transposed, n_vectors, x, n_threads);
}

void form_array(array<double>& matrix, const array<double>& factors, int n_threads) {
    const auto n = order_of(matrix), width = width_of(factors, n);
    const auto* t = pointer(factors);
    auto* a = matrix.mutable_data();
    const without_gil release;
    form_band_basis(n, width, a, t, n_threads);
}

py::tuple solve_array(const array<double>& band, const array<double>& shifts, const array<double>& target,
                int n_threads) {
    const auto matrix = band_of(band);
    check(shifts.ndim() == 1, "shifts must be 1-d");
    check(target.ndim() == 1 && target.size() == matrix.n, "target must be (n,)");
    array<double> out({shifts.size(), matrix.n});
    array<bool> definite(shifts.size());
    const auto *s = pointer(shifts), *b = pointer(target);
    auto* x = out.mutable_data();
    auto* flags = definite.mutable_data();
    {
        const without_gil release;
        solve_shifted(matrix, shifts.size(), s, b, x, flags, n_threads);
    }
    return py::make_tuple(out, definite);
}

double largest_array(const array<double>& band) {
    const auto matrix = band_of(band);
    const without_gil release;
    return largest_of_band(matrix);
}

}  // namespace

void bind_band(py::module_& m) {
    m.def("reduce_to_band", &reduce_array, py::arg("matrix").noconvert(), py::arg("width"),
          py::arg("n_threads") = 1);
    m.def("apply_band_basis", &apply_arrays, py::arg("matrix").noconvert(), py::arg("factors").noconvert(),
          py::arg("vectors").noconvert(), py::arg("transposed") = false, py::arg("n_threads") = 1);
    m.def("form_band_basis", &form_array, py::arg("matrix").noconvert(), py::arg("factors").noconvert(),
          py::arg("n_threads") = 1);
    m.def("solve_band", &solve_array, py::arg("band").noconvert(), py::arg("shifts").noconvert(),
          py::arg("target").noconvert(), py::arg("n_threads") = 1);
    m.def("largest_of_band", &largest_array, py::arg("band").noconvert());
}

}  // namespace pairgram
