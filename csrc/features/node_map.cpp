#include "features/node_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>

#include "support/interrupt.hpp"
#include "support/simd.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t cached_bytes = 1 << 18;  // of nodes that wait for what they are used for
constexpr std::ptrdiff_t fewest_rows = 64, most_rows = 256;

// How many rows are mapped before their nodes are used.
std::ptrdiff_t rows_at_once(std::ptrdiff_t n, std::ptrdiff_t row_bytes) {
    const auto fit = cached_bytes / std::max<std::ptrdiff_t>(1, row_bytes) / 8 * 8;
    return std::min(n, std::clamp(fit, fewest_rows, most_rows));
}

PAIRGRAM_CLONES void subtract(std::ptrdiff_t n, const double* x, const double* y, float* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] = static_cast<float>(x[j] - y[j]);
}

// A squared distance that rounding has made negative becomes 0; NaN stays.
template <class T>
PAIRGRAM_CLONES void clamp_at_zero(std::ptrdiff_t n, T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] = out[j] < T{0} ? T{0} : out[j];
}

// By repeated squaring, on values that stay in cache.
template <class T>
PAIRGRAM_CLONES void raise_to(std::ptrdiff_t n, int degree, T* out) {
    constexpr std::ptrdiff_t width = 64;
    for (std::ptrdiff_t begin = 0; begin < n; begin += width) {
        const auto size = std::min(width, n - begin);
        T* const power = out + begin;
        T base[width];
        std::copy_n(power, size, base);
        std::fill_n(power, size, T{1});
        for (int bits = degree; bits > 0; bits >>= 1)
            for (std::ptrdiff_t j = 0; j < size; ++j) {
                power[j] *= bits & 1 ? base[j] : T{1};
                base[j] *= base[j];
            }
    }
}

// out[j] += c[j] Σ_k |x[k] − weights(k, j)|
template <class T>
PAIRGRAM_CLONES void add_scaled_distances(std::ptrdiff_t n_inputs, std::ptrdiff_t n, const T* x,
                                          const T* weights, const T* c, T* out) {
    constexpr std::ptrdiff_t width = 64;
    for (std::ptrdiff_t begin = 0; begin < n; begin += width) {
        const auto size = std::min(width, n - begin);
        T sum[width] = {};
        for (std::ptrdiff_t k = 0; k < n_inputs; ++k) {
            const T* const w = weights + k * n + begin;
            for (std::ptrdiff_t j = 0; j < size; ++j) sum[j] += std::abs(x[k] - w[j]);
        }
        for (std::ptrdiff_t j = 0; j < size; ++j) out[begin + j] += c[begin + j] * sum[j];
    }
}

// out[j] = Σ_k min(|x[k]|, |weights(k, j)|) over the k where both have one sign. Such a minimum is
// what remains of the weight if it is clamped to the values between 0 and x[k].
template <class T>
PAIRGRAM_CLONES void add_minima(std::ptrdiff_t n_inputs, std::ptrdiff_t n, const T* x,
                                const T* weights, T* out) {
    std::fill_n(out, n, T{0});
    for (std::ptrdiff_t k = 0; k < n_inputs; ++k) {
        const T value = x[k];
        if (value == T{0}) continue;
        const T low = std::min(value, T{0}), high = std::max(value, T{0});
        const T* const w = weights + k * n;
        for (std::ptrdiff_t j = 0; j < n; ++j) {
            const T below = w[j] < high ? w[j] : high;
            out[j] += std::abs(below < low ? low : below);
        }
    }
}

// products[j] becomes products[j] / (square + squares[j] − products[j]), and 0 / 0 becomes 1.
template <class T>
PAIRGRAM_CLONES void divide_by_unions(std::ptrdiff_t n, T square, const T* squares, T* products) {
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const T size = square + squares[j] - products[j];
        const bool empty = size == T{0};
        products[j] = (empty ? T{1} : products[j]) / (empty ? T{1} : size);
    }
}

// The sum of magnitudes, from left to right as that of a minimum with the row itself.
template <class T>
T norm_of(std::ptrdiff_t n, const T* x) {
    return std::accumulate(x, x + n, T{0}, [](T sum, T value) { return sum + std::abs(value); });
}

template <class T>
T square_of(std::ptrdiff_t n, const T* x) {
    return std::inner_product(x, x + n, x, T{0});
}

// The functions of the nodes, of their arguments in row.
template <class T>
void activate(const node_map<T>& map, T* row) {
    for (const auto& segment : map.segments) {
        const auto n_values = segment.end - segment.begin;
        T* const values = row + segment.begin;
        if (segment.linear) {
            if (map.degree > 1) raise_to(n_values, map.degree, values);
            continue;
        }
        if (segment.kind == activation::gaussian) clamp_at_zero(n_values, values);
        apply(segment.kind, n_values, values);
    }
    if (map.scale != 1) scale(map.n_nodes, map.scale, row);
}

template <class T>
void map_to_minmax_nodes(const node_map<T>& map, std::ptrdiff_t n, const T* rows,
                         std::ptrdiff_t ldr, T* out, std::ptrdiff_t ldo) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const T* const x = rows + i * ldr;
        T* const row = out + i * ldo;
        add_minima(map.n_inputs, map.n_nodes, x, map.minmax, row);
        divide_by_unions(map.n_nodes, norm_of(map.n_inputs, x), map.bias, row);
        activate(map, row);
    }
}

template <class T>
void map_to_nodes(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                  T* out, std::ptrdiff_t ldo) {
    if (map.minmax) return map_to_minmax_nodes(map, n, rows, ldr, out, ldo);
    const auto d = map.n_inputs;
    buffer<T> shifted(map.origin ? n * d : 0);
    if (map.origin) {
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::transform(rows + i * ldr, rows + i * ldr + d, map.origin, shifted.begin() + i * d,
                           [](T x, T y) { return x - y; });
        rows = shifted.data();
        ldr = d;
    }
    for (std::ptrdiff_t i = 0; i < n; ++i) {  // all but the product, which then is added
        const T* const x = rows + i * ldr;
        T* const row = out + i * ldo;
        if (map.tanimoto)
            std::fill_n(row, map.n_nodes, T{0});
        else
            std::copy_n(map.bias, map.n_nodes, row);
        if (map.manhattan) {
            check_interrupt();
            add_scaled_distances(d, map.n_nodes, x, map.manhattan, map.square, row);
        } else if (map.square) {
            add(map.n_nodes, square_of(d, x), map.square, row);
        }
    }
    if (!map.manhattan) map.weights.add_product(n, rows, ldr, out, ldo);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        T* const row = out + i * ldo;
        if (map.tanimoto)
            divide_by_unions(map.n_nodes, square_of(d, rows + i * ldr), map.bias, row);
        activate(map, row);
    }
}

buffer<double> in_double(std::ptrdiff_t n, std::ptrdiff_t width, const float* rows,
                         std::ptrdiff_t ld) {
    buffer<double> wide(n * width);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        std::copy_n(rows + i * ld, width, wide.begin() + i * width);
    return wide;
}

void map_in_double(const node_map<float>& map, std::ptrdiff_t n, const float* rows,
                   std::ptrdiff_t ldr, float* out, std::ptrdiff_t ldo) {
    const auto width = map.n_nodes;
    const auto step = rows_at_once(n, width * static_cast<std::ptrdiff_t>(sizeof(double)));
    buffer<double> made(step * width);
    buffer<float> centred(map.has_tail ? step * width : 0);
    const buffer<double> zeros(map.centre ? 0 : width, 0.0);
    const double* const centre = map.centre ? map.centre : zeros.data();
    for (std::ptrdiff_t begin = 0; begin < n; begin += step) {
        const auto size = std::min(step, n - begin);
        const auto wide = in_double(size, map.n_inputs, rows + begin * ldr, ldr);
        map_rows(*map.wide, size, wide.data(), map.n_inputs, made.data(), width);
        float* const narrow = map.has_tail ? centred.data() : out + begin * ldo;
        const auto stride = map.has_tail ? width : ldo;
        for (std::ptrdiff_t i = 0; i < size; ++i)
            subtract(width, made.data() + i * width, centre, narrow + i * stride);
        if (!map.has_tail) continue;
        for (auto i = begin; i < begin + size; ++i)
            std::copy_n(map.bias, map.n_outputs, out + i * ldo);
        map.tail.add_product(size, narrow, width, out + begin * ldo, ldo);
    }
}

// Calls use(columns of rows, first row, number of rows), for the columns that are made of the rows.
template <class T, class Use>
void by_columns(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                const Use& use) {
    const auto width = map.columns->n_columns();
    const auto step = rows_at_once(n, width * static_cast<std::ptrdiff_t>(sizeof(T)));
    const std::unique_ptr<T[]> made(new T[static_cast<std::size_t>(step * width)]);
    for (std::ptrdiff_t begin = 0; begin < n; begin += step) {
        const auto size = std::min(step, n - begin);
        make_columns(*map.columns, size, rows + begin * ldr, ldr, made.get(), width);
        use(made.get(), begin, size);
    }
}

// An exponent of ones, that of NaN and infinity, is carried into the sign.
template <class T>
PAIRGRAM_CLONES bool all_finite(std::ptrdiff_t n, const T* x) {
    using word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    constexpr word sign = word{1} << (8 * sizeof(T) - 1);
    constexpr word carry = word{1} << (std::numeric_limits<T>::digits - 1), exponent = sign - carry;
    word seen = 0;
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        word bits;
        std::memcpy(&bits, x + j, sizeof bits);
        seen |= (bits & exponent) + carry;
    }
    return (seen & sign) == 0;
}

template <class T>
void score_nodes(const node_map<T>& map, std::ptrdiff_t n, const T* rows,
                 const linear_models& models, double* scores, std::ptrdiff_t ld) {
    const auto width = map.n_inputs;
    if (map.cross) return score_cross(*map.cross, n, rows, width, models, scores, ld);
    const auto step = rows_at_once(n, map.n_outputs * static_cast<std::ptrdiff_t>(sizeof(T)));
    const std::unique_ptr<T[]> mapped(new T[static_cast<std::size_t>(step * map.n_outputs)]);
    for (std::ptrdiff_t begin = 0; begin < n; begin += step) {
        const auto size = std::min(step, n - begin);
        map_rows(map, size, rows + begin * width, width, mapped.get(), map.n_outputs);
        const matrix_rows<T> outputs{size, map.n_outputs, mapped.get(), nullptr};
        models.score(outputs, 0, size, scores + begin, ld);
    }
}

}  // namespace

template <class T>
void map_rows(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr, T* out,
              std::ptrdiff_t ldo) {
    if constexpr (std::is_same_v<T, float>)
        if (map.wide) return map_in_double(map, n, rows, ldr, out, ldo);
    if (map.columns && !map.then) return make_columns(*map.columns, n, rows, ldr, out, ldo);
    if (map.columns)
        return by_columns(map, n, rows, ldr, [&](const T* made, auto begin, auto size) {
            map_rows(*map.then, size, made, map.then->n_inputs, out + begin * ldo, ldo);
        });
    if (map.cross) return map_cross(*map.cross, map.part, n, rows, ldr, out, ldo);
    if (!map.has_tail) return map_to_nodes(map, n, rows, ldr, out, ldo);
    const auto step = rows_at_once(n, map.n_nodes * static_cast<std::ptrdiff_t>(sizeof(T)));
    const std::unique_ptr<T[]> nodes(new T[static_cast<std::size_t>(step * map.n_nodes)]);
    for (std::ptrdiff_t begin = 0; begin < n; begin += step) {
        const auto size = std::min(step, n - begin);
        map_to_nodes(map, size, rows + begin * ldr, ldr, nodes.get(), map.n_nodes);
        for (auto i = begin; i < begin + size; ++i) std::fill_n(out + i * ldo, map.n_outputs, T{0});
        map.tail.add_product(size, nodes.get(), map.n_nodes, out + begin * ldo, ldo);
    }
}

template <class T>
void score_mapped(const node_map<T>& map, std::ptrdiff_t n, const T* rows,
                  const linear_models& models, double* scores, std::ptrdiff_t ld) {
    const auto width = map.n_inputs;
    if constexpr (std::is_same_v<T, float>)
        if (map.wide && !map.has_tail) {
            for (std::ptrdiff_t begin = 0; begin < n; begin += most_rows) {
                const auto size = std::min(most_rows, n - begin);
                const auto wide = in_double(size, width, rows + begin * width, width);
                score_mapped(*map.wide, size, wide.data(), models, scores + begin, ld);
            }
            return;
        }
    if (map.columns && map.then)
        by_columns(map, n, rows, width, [&](const T* made, auto begin, auto size) {
            score_mapped(*map.then, size, made, models, scores + begin, ld);
        });
    else
        score_nodes(map, n, rows, models, scores, ld);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        if (!all_finite(width, rows + i * width))
            for (std::ptrdiff_t m = 0; m < models.size(); ++m)
                scores[m * ld + i] = std::numeric_limits<double>::quiet_NaN();
}

template <class T>
part_of_cross<T>::part_of_cross(const node_map<T>& map, cross_part part)
    : columns_(map.columns != nullptr), own_(map.then ? *map.then : map), outer_(map) {
    own_.part = part;
    own_.n_outputs = own_.n_nodes = n_outputs(*own_.cross, part);
    outer_.n_outputs = outer_.n_nodes = own_.n_outputs;
    outer_.then = &own_;
}

PAIRGRAM_FOR_BOTH_WIDTHS(map_rows);
template class part_of_cross<double>;
template class part_of_cross<float>;
PAIRGRAM_FOR_BOTH_WIDTHS(score_mapped);

}  // namespace pairgram
