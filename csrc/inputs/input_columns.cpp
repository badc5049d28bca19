#include "inputs/input_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t n_cells = 512;
constexpr std::ptrdiff_t rows_at_once = 128;

// The cell of a number between the first knot and the last. It never falls where the number rises.
inline std::int32_t cell_of(double x, double lowest, double cells_per_unit) {
    return static_cast<std::int32_t>((x - lowest) * cells_per_unit);
}

template <class T>
PAIRGRAM_CLONES void scale_row(std::ptrdiff_t n, const T* x, const double* centres,
                               const double* factors, T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j)
        out[j] = static_cast<T>((static_cast<double>(x[j]) - centres[j]) * factors[j]);
}

// Puts numbers between the first knot and the last, and finds their cells. odd is 0, but NaN for
// numbers that are not finite.
PAIRGRAM_CLONES void place(std::ptrdiff_t n, const double* x, double lowest, double highest,
                           double cells_per_unit, double* at, double* odd, std::int32_t* cell) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double above = x[i] > lowest ? x[i] : lowest;
        at[i] = above < highest ? above : highest;
        odd[i] = x[i] - x[i];
        cell[i] = cell_of(at[i], lowest, cells_per_unit);
    }
}

// out[i * ldo] = f(x[i * ldx]) for at most rows_at_once numbers
template <class T>
void apply(const piecewise_linear& f, std::ptrdiff_t n, const T* x, std::ptrdiff_t ldx, T* out,
           std::ptrdiff_t ldo) {
    double wide[rows_at_once], at[rows_at_once], odd[rows_at_once];
    std::int32_t cell[rows_at_once];
    const double *const knots = f.knots.data(), *const values = f.values.data(),
                        *const slopes = f.slopes.data();
    const std::uint8_t* const first = f.first.data();
    for (std::ptrdiff_t i = 0; i < n; ++i) wide[i] = static_cast<double>(x[i * ldx]);
    place(n, wide, knots[0], knots[f.n_knots - 1], f.cells_per_unit, at, odd, cell);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        std::ptrdiff_t k = first[cell[i]];
        for (auto step = f.first_step; step > 0; step /= 2)
            k += knots[k + step] <= at[i] ? step : 0;
        out[i * ldo] = static_cast<T>(values[k] + slopes[k] * (at[i] - knots[k]) + odd[i]);
    }
}

}  // namespace

piecewise_linear::piecewise_linear(std::ptrdiff_t n, const double* at, const double* value)
    : knots(at, at + n), values(value, value + n), slopes(n, 0.0), first(n_cells, 0), n_knots(n) {
    for (std::ptrdiff_t k = 0; k + 1 < n; ++k) {
        const double slope = (value[k + 1] - value[k]) / (at[k + 1] - at[k]);
        slopes[k] = std::isfinite(slope) ? slope : 0.0;  // not of two subnormal numbers
    }
    const double per_unit = (static_cast<double>(n_cells) - 0.5) / (at[n - 1] - at[0]);
    cells_per_unit = std::isfinite(per_unit) ? per_unit : 0.0;
    std::ptrdiff_t most = 0, before = 0;  // knots of one cell, and of the cells before it
    for (std::ptrdiff_t cell = 0; cell < n_cells; ++cell) {
        first[cell] = static_cast<std::uint8_t>(std::max<std::ptrdiff_t>(before - 1, 0));
        auto end = before;
        while (end < n && cell_of(at[end], at[0], cells_per_unit) == cell) ++end;
        most = std::max(most, end - std::max<std::ptrdiff_t>(before, 1));
        before = end;
    }
    std::ptrdiff_t power = 1;
    while (power - 1 < most) power *= 2;
    first_step = power / 2;
    knots.resize(n + 2 * first_step);
    std::fill(knots.begin() + n, knots.end(), std::numeric_limits<double>::infinity());
}

template <class T>
void make_columns(const input_columns& columns, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                  T* out, std::ptrdiff_t ldo) {
    const auto d = columns.n_inputs;
    if (columns.factors)
        for (std::ptrdiff_t i = 0; i < n; ++i)
            scale_row(d, rows + i * ldr, columns.centres, columns.factors, out + i * ldo);
    if (columns.keeps_inputs) {
        for (std::ptrdiff_t i = 0; i < n; ++i) std::copy_n(rows + i * ldr, d, out + i * ldo);
        out += d;
    }
    if (columns.functions.empty()) return;
    for (std::ptrdiff_t begin = 0; begin < n; begin += rows_at_once) {
        const auto size = std::min(rows_at_once, n - begin);
        for (std::ptrdiff_t j = 0; j < d; ++j)
            apply(columns.functions[j], size, rows + begin * ldr + j, ldr, out + begin * ldo + j,
                  ldo);
    }
}

template void make_columns<double>(const input_columns&, std::ptrdiff_t, const double*,
                                   std::ptrdiff_t, double*, std::ptrdiff_t);
template void make_columns<float>(const input_columns&, std::ptrdiff_t, const float*,
                                  std::ptrdiff_t, float*, std::ptrdiff_t);

}  // namespace pairgram
