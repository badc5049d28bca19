// The band form of symmetric matrices: checks, GIL release, m.def; nothing else.
#include "bindings/bindings.hpp"
#include "linear_algebra/band_cholesky.hpp"
#include "linear_algebra/band_reduction.hpp"
#include "solvers/hold_out_band.hpp"

namespace pairgram {

namespace {

py::ssize_t order_of(const array<double>& matrix) {
    check(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), "matrix must be square");
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
    unlocked(reduce_to_band, n, width, writable(matrix), writable(band), writable(factors),
             n_threads);
    return py::make_tuple(band, factors);
}

void apply_arrays(const array<double>& matrix, const array<double>& factors, array<double>& vectors,
                  bool transposed, int n_threads) {
    const auto n = order_of(matrix), width = width_of_band(factors, n);
    check(vectors.ndim() == 2 && vectors.shape(1) == n, "vectors must be (n_vectors, n)");
    unlocked(apply_band_basis, n, width, pointer(matrix), pointer(factors), transposed,
             vectors.shape(0), writable(vectors), n_threads);
}

void form_array(array<double>& matrix, const array<double>& factors, int n_threads) {
    const auto n = order_of(matrix), width = width_of_band(factors, n);
    unlocked(form_band_basis, n, width, writable(matrix), pointer(factors), n_threads);
}

py::tuple solve_array(const array<double>& band, const array<double>& shifts,
                      const array<double>& target, int n_threads) {
    const auto matrix = band_of(band);
    check(shifts.ndim() == 1, "shifts must be 1-d");
    check_one_per("target must be (n,)", target, matrix.n);
    array<double> out({shifts.size(), matrix.n}), log_determinants(shifts.size());
    unlocked(solve_shifted, matrix, shifts.size(), pointer(shifts), pointer(target), writable(out),
             writable(log_determinants), n_threads);
    return py::make_tuple(out, log_determinants);
}

// The offsets of folds, which are checked against the number of what they divide.
const std::int64_t* offsets_of(const array<std::int64_t>& offsets, py::ssize_t n_folds,
                               py::ssize_t n, const char* what) {
    const auto* values = pointer(offsets);
    check(has_shape(offsets, {n_folds + 1}) && values[0] == 0 && values[n_folds] == n &&
              std::is_sorted(values, values + n_folds + 1),
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
    check_one_per("target must be (n,)", target, n);
    check(alphas.ndim() == 1 && rows.ndim() == 1, "alphas and rows must be 1-d");
    check(points.ndim() == 2 && points.shape(1) == n, "points must be (n_points, n)");
    check(n_folds >= 0, "row_offsets must be (n_folds + 1,)");
    check_all(
        rows.size(), pointer(rows), [&](std::int64_t row) { return row >= 0 && row < n; },
        "rows must be in [0, n)");
    const band_folds folds{
        matrix,
        pointer(basis),
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
    const bool definite =
        unlocked(hold_out_band, folds, writable(residuals), writable(levels), n_threads);
    return py::make_tuple(residuals, levels, definite);
}

}  // namespace

void bind_band(py::module_& m) {
    m.def("reduce_to_band", &reduce_array, "matrix"_a, "width"_a, "n_threads"_a = 1);
    m.def("apply_band_basis", &apply_arrays, "matrix"_a, "factors"_a, "vectors"_a,
          "transposed"_a = false, "n_threads"_a = 1);
    m.def("form_band_basis", &form_array, "matrix"_a, "factors"_a, "n_threads"_a = 1);
    m.def("solve_band", &solve_array, "band"_a, "shifts"_a, "target"_a, "n_threads"_a = 1);
    m.def("hold_out_band", &hold_out_array, "band"_a, "basis"_a, "target"_a, "alphas"_a, "rows"_a,
          "row_offsets"_a, "points"_a, "point_offsets"_a, "n_threads"_a = 1);
    m.def(
        "largest_of_band",
        [](const array<double>& band) { return unlocked(largest_of_band, band_of(band)); },
        "band"_a);
}

}  // namespace pairgram
