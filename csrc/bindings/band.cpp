// The band form of symmetric matrices: checks, GIL release, m.def; nothing else.
#include "bindings/bindings.hpp"
#include "linear_algebra/band_cholesky.hpp"
#include "linear_algebra/band_reduction.hpp"
#include "solvers/hold_out_band.hpp"

namespace pairgram {

namespace {

py::ssize_t order_of(const array<double>& matrix) {
    check(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), "matrix must be square");
    pointer(matrix);  // aligned
    return matrix.shape(0);
}

py::ssize_t width_of_band(const array<double>& factors, py::ssize_t n) {
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
    const auto n = order_of(matrix), width = width_of_band(factors, n);
    check(vectors.ndim() == 2 && vectors.shape(1) == n, "vectors must be (n_vectors, n)");
    pointer(vectors);  // aligned
    const auto *a = matrix.data(), *t = pointer(factors);
    const auto n_vectors = vectors.shape(0);
    auto* x = vectors.mutable_data();
    const without_gil release;
    apply_band_basis(n, width, a, t, transposed, n_vectors, x, n_threads);
}

void form_array(array<double>& matrix, const array<double>& factors, int n_threads) {
    const auto n = order_of(matrix), width = width_of_band(factors, n);
    const auto* t = pointer(factors);
    auto* a = matrix.mutable_data();
    const without_gil release;
    form_band_basis(n, width, a, t, n_threads);
}

py::tuple solve_array(const array<double>& band, const array<double>& shifts,
                      const array<double>& target, int n_threads) {
    const auto matrix = band_of(band);
    check(shifts.ndim() == 1, "shifts must be 1-d");
    check(target.ndim() == 1 && target.size() == matrix.n, "target must be (n,)");
    array<double> out({shifts.size(), matrix.n});
    array<double> log_determinants(shifts.size());
    const auto *s = pointer(shifts), *b = pointer(target);
    auto* x = out.mutable_data();
    auto* logs = log_determinants.mutable_data();
    {
        const without_gil release;
        solve_shifted(matrix, shifts.size(), s, b, x, logs, n_threads);
    }
    return py::make_tuple(out, log_determinants);
}

double largest_array(const array<double>& band) {
    const auto matrix = band_of(band);
    const without_gil release;
    return largest_of_band(matrix);
}

// The offsets of folds, which are checked against the number of what they divide.
const std::int64_t* offsets_of(const array<std::int64_t>& offsets, py::ssize_t n_folds,
                               py::ssize_t n, const char* what) {
    const auto* values = pointer(offsets);
    check(offsets.ndim() == 1 && offsets.size() == n_folds + 1 && values[0] == 0 &&
              values[n_folds] == n && std::is_sorted(values, values + n_folds + 1),
          what);
    return values;
}

py::tuple hold_out_array(const array<double>& band, const array<double>& basis,
                         const array<double>& target, const array<double>& alphas,
                         const array<std::int64_t>& rows, const array<std::int64_t>& row_offsets,
                         const array<double>& points, const array<std::int64_t>& point_offsets,
                         int n_threads) {
    const auto matrix = band_of(band);
    const auto n = matrix.n, n_folds = row_offsets.size() - 1;
    check(order_of(basis) == n, "basis must be (n, n)");
    check(target.ndim() == 1 && target.size() == n, "target must be (n,)");
    check(alphas.ndim() == 1 && rows.ndim() == 1, "alphas and rows must be 1-d");
    check(points.ndim() == 2 && points.shape(1) == n, "points must be (n_points, n)");
    check(n_folds >= 0, "row_offsets must be (n_folds + 1,)");
    check_all(
        rows.size(), pointer(rows), [&](std::int64_t row) { return row >= 0 && row < n; },
        "rows must be in [0, n)");
    const band_folds folds{
        matrix,
        basis.data(),
        pointer(target),
        alphas.size(),
        pointer(alphas),
        n_folds,
        rows.size(),
        points.shape(0),
        pointer(rows),
        offsets_of(row_offsets, n_folds, rows.size(), "row_offsets must rise from 0 to n_rows"),
        pointer(points),
        offsets_of(point_offsets, n_folds, points.shape(0),
                   "point_offsets must rise from 0 to n_points, one a fold and the end")};
    array<double> residuals({alphas.size(), rows.size()}), levels({alphas.size(), points.shape(0)});
    auto *out = residuals.mutable_data(), *of_points = levels.mutable_data();
    bool definite = false;
    {
        const without_gil release;
        definite = hold_out_band(folds, out, of_points, n_threads);
    }
    return py::make_tuple(residuals, levels, definite);
}

}  // namespace

void bind_band(py::module_& m) {
    m.def("reduce_to_band", &reduce_array, py::arg("matrix").noconvert(), py::arg("width"),
          py::arg("n_threads") = 1);
    m.def("apply_band_basis", &apply_arrays, py::arg("matrix").noconvert(),
          py::arg("factors").noconvert(), py::arg("vectors").noconvert(),
          py::arg("transposed") = false, py::arg("n_threads") = 1);
    m.def("form_band_basis", &form_array, py::arg("matrix").noconvert(),
          py::arg("factors").noconvert(), py::arg("n_threads") = 1);
    m.def("solve_band", &solve_array, py::arg("band").noconvert(), py::arg("shifts").noconvert(),
          py::arg("target").noconvert(), py::arg("n_threads") = 1);
    m.def("hold_out_band", &hold_out_array, py::arg("band").noconvert(),
          py::arg("basis").noconvert(), py::arg("target").noconvert(),
          py::arg("alphas").noconvert(), py::arg("rows").noconvert(),
          py::arg("row_offsets").noconvert(), py::arg("points").noconvert(),
          py::arg("point_offsets").noconvert(), py::arg("n_threads") = 1);
    m.def("largest_of_band", &largest_array, py::arg("band").noconvert());
}

}  // namespace pairgram
