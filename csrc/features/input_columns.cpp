#include "features/input_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t n_cells = 512;
constexpr std::ptrdiff_t rows_at_once = 64, rows_ahead = 8;
constexpr auto strip_width = function_strip::most;

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

// Rows of a strip, which are as long as the strip's arrays, and what is found of them.
struct strip_rows {
    static constexpr auto most = rows_at_once * strip_width;
    double at[most];  // put between the first knot and the last; NaN for what is not finite
    std::int32_t cell[most];
};

// Copies n rows of width numbers to rows of 8, whose others stay as they are.
template <class T>
void load_rows(std::ptrdiff_t n, std::ptrdiff_t width, const T* rows, std::ptrdiff_t ld,
               double* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < width; ++j)
            out[i * strip_width + j] = static_cast<double>(rows[i * ld + j]);
}

// A function of the numbers, from rows whose whole length of 8 may be read.
template <class T>
PAIRGRAM_CLONES void place(std::ptrdiff_t n, const T* rows, std::ptrdiff_t ld,
                           const function_strip& strip, strip_rows& found) {
    double lowest[strip_width], highest[strip_width], cells_per_unit[strip_width];
    std::copy_n(strip.lowest, strip_width, lowest);
    std::copy_n(strip.highest, strip_width, highest);
    std::copy_n(strip.cells_per_unit, strip_width, cells_per_unit);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < strip_width; ++j) {
            const double x = static_cast<double>(rows[i * ld + j]);
            const double above = x > lowest[j] ? x : lowest[j];
            const double at = above < highest[j] ? above : highest[j];
            found.at[i * strip_width + j] = at + (x - x);
            found.cell[i * strip_width + j] =
                cell_of(at, lowest[j], cells_per_unit[j]) * static_cast<std::int32_t>(strip_width) +
                static_cast<std::int32_t>(j);
        }
}

// Where cells hold several knots: a number's cell becomes the last knot of it that is not above.
PAIRGRAM_CLONES void search(std::ptrdiff_t n, const function_strip& strip, strip_rows& found) {
    const std::uint16_t* const first = strip.first.data();
    const knot* const knots = strip.knots.data();
    std::int32_t last[strip_rows::most];
    for (std::ptrdiff_t k = 0; k < n; ++k) last[k] = first[found.cell[k]];
    for (auto step = static_cast<std::int32_t>(strip.first_step); step > 0; step /= 2)
        for (std::ptrdiff_t k = 0; k < n; ++k)
            last[k] += knots[last[k] + step].at <= found.at[k] ? step : 0;
    for (std::ptrdiff_t k = 0; k < n; ++k)
        found.cell[k] = static_cast<std::int32_t>(n_cells * strip_width) + last[k];
}

#ifdef PAIRGRAM_SHUFFLE
// The values at four numbers. Each knot is read as a whole: gathering its parts takes longer.
template <class T>
inline void four_values(const double* at, const std::int32_t* cell, const std::uint16_t* nearest,
                        const knot* knots, T* out) {
    using four = pack<double, 4>;
    static_assert(sizeof(knot) == sizeof(four));
    four x, a, b, c, d;
    std::memcpy(&x, at, sizeof x);
    std::memcpy(&a, knots + nearest[cell[0]], sizeof a);
    std::memcpy(&b, knots + nearest[cell[1]], sizeof b);
    std::memcpy(&c, knots + nearest[cell[2]], sizeof c);
    std::memcpy(&d, knots + nearest[cell[3]], sizeof d);
    const four even_ab = PAIRGRAM_SHUFFLE(a, b, 0, 4, 2, 6);
    const four even_cd = PAIRGRAM_SHUFFLE(c, d, 0, 4, 2, 6);
    const four odd_ab = PAIRGRAM_SHUFFLE(a, b, 1, 5, 3, 7);
    const four odd_cd = PAIRGRAM_SHUFFLE(c, d, 1, 5, 3, 7);
    const four difference = x - PAIRGRAM_SHUFFLE(even_ab, even_cd, 0, 1, 4, 5);
    const four before = PAIRGRAM_SHUFFLE(even_ab, even_cd, 2, 3, 6, 7);
    const four after = PAIRGRAM_SHUFFLE(odd_ab, odd_cd, 2, 3, 6, 7);
    const four value = PAIRGRAM_SHUFFLE(odd_ab, odd_cd, 0, 1, 4, 5) +
                       (difference < 0.0 ? before : after) * difference;
    for (int k = 0; k < 4; ++k) out[k] = static_cast<T>(value[k]);
}
#else
template <class T>
inline void four_values(const double* at, const std::int32_t* cell, const std::uint16_t* nearest,
                        const knot* knots, T* out) {
    for (int k = 0; k < 4; ++k) {
        const knot& it = knots[nearest[cell[k]]];
        const double difference = at[k] - it.at;
        out[k] = static_cast<T>(it.value + (difference < 0.0 ? it.before : it.after) * difference);
    }
}
#endif

template <class T>
PAIRGRAM_CLONES void interpolate(std::ptrdiff_t n, const function_strip& strip,
                                 const strip_rows& found, T* out, std::ptrdiff_t ld) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < strip_width; j += 4) {
            const auto at = i * strip_width + j;
            four_values(found.at + at, found.cell + at, strip.first.data(), strip.knots.data(),
                        out + i * ld + j);
        }
}

template <class T>
void prefetch_row(std::ptrdiff_t n, const T* row) {
    for (std::ptrdiff_t j = 0; j < n; j += 64 / static_cast<std::ptrdiff_t>(sizeof(T)))
        prefetch(row + j);
}

// out (n, width; stride ldo) from rows (n, width; stride ldr), at most rows_at_once of them.
template <class T>
void apply(const function_strip& strip, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr, T* out,
           std::ptrdiff_t ldo) {
    strip_rows found;
    if (strip.width == strip_width) {
        place(n, rows, ldr, strip, found);
        if (strip.first_step > 0) search(n * strip_width, strip, found);
        interpolate(n, strip, found, out, ldo);
    } else {
        double wide[strip_rows::most] = {}, made[strip_rows::most];
        load_rows(n, strip.width, rows, ldr, wide);
        place(n, wide, strip_width, strip, found);
        if (strip.first_step > 0) search(n * strip_width, strip, found);
        interpolate(n, strip, found, made, strip_width);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            for (std::ptrdiff_t j = 0; j < strip.width; ++j)
                out[i * ldo + j] = static_cast<T>(made[i * strip_width + j]);
    }
}

}  // namespace

piecewise_linear::piecewise_linear(std::ptrdiff_t n, const double* at, const double* value)
    : first(n_cells, 0) {
    for (std::ptrdiff_t k = 0; k < n; ++k) knots.push_back({at[k], value[k], 0.0, 0.0});
    for (std::ptrdiff_t k = 0; k + 1 < n; ++k) {
        const double slope = (value[k + 1] - value[k]) / (at[k + 1] - at[k]);
        if (std::isfinite(slope))  // not of two subnormal numbers
            knots[k].after = knots[k + 1].before = slope;
    }
    const double per_unit = (static_cast<double>(n_cells) - 0.5) / (at[n - 1] - at[0]);
    cells_per_unit = std::isfinite(per_unit) ? per_unit : 0.0;
    std::ptrdiff_t most = 0, before = 0;  // knots of one cell, and of the cells before it
    for (std::ptrdiff_t cell = 0; cell < n_cells; ++cell) {
        auto end = before;
        while (end < n && cell_of(at[end], at[0], cells_per_unit) == cell) ++end;
        first[cell] = static_cast<std::uint8_t>(end > before ? before : before - 1);
        most = std::max(most, end - before);
        before = end;
    }
    std::ptrdiff_t power = 1;
    while (power < most) power *= 2;
    first_step = power / 2;
}

function_strip::function_strip(std::ptrdiff_t n, const piecewise_linear* functions)
    : width(n), first(n_cells * most, 0) {
    for (std::ptrdiff_t j = 0; j < n; ++j)
        first_step = std::max(first_step, functions[j].first_step);
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const auto& f = functions[j];
        lowest[j] = f.knots.front().at;
        highest[j] = f.knots.back().at;
        cells_per_unit[j] = f.cells_per_unit;
        for (std::ptrdiff_t cell = 0; cell < n_cells; ++cell)
            first[cell * most + j] = static_cast<std::uint16_t>(knots.size() + f.first[cell]);
        knots.insert(knots.end(), f.knots.begin(), f.knots.end());
        knots.insert(knots.end(), static_cast<std::size_t>(2 * first_step),
                     {std::numeric_limits<double>::infinity(), 0.0, 0.0, 0.0});
    }
    for (std::size_t k = 0; k < knots.size(); ++k) first.push_back(static_cast<std::uint16_t>(k));
}

template <class T>
void make_columns(const input_columns& columns, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                  T* out, std::ptrdiff_t ldo) {
    const auto d = columns.n_inputs;
    if (columns.factors)
        for (std::ptrdiff_t i = 0; i < n; ++i)
            scale_row(d, rows + i * ldr, columns.centres, columns.factors, out + i * ldo);
    if (columns.functions.empty()) return;
    T* const made = columns.keeps_inputs ? out + d : out;
    for (std::ptrdiff_t begin = 0; begin < n; begin += rows_at_once) {
        const auto size = std::min(rows_at_once, n - begin);
        const T* const block = rows + begin * ldr;
        for (std::ptrdiff_t i = 0; i < size; ++i) {  // so that memory is read in its order
            prefetch_row(d, block + (i + rows_ahead) * ldr);
            if (columns.keeps_inputs) std::copy_n(block + i * ldr, d, out + (begin + i) * ldo);
        }
        for (std::size_t s = 0; s < columns.functions.size(); ++s) {
            const auto j = static_cast<std::ptrdiff_t>(s) * strip_width;
            apply(columns.functions[s], size, block + j, ldr, made + begin * ldo + j, ldo);
        }
    }
}

PAIRGRAM_FOR_BOTH_WIDTHS(make_columns);

}  // namespace pairgram
