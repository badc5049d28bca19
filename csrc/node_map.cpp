#include "node_map.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "blas.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t chunk_rows = 128;  // whose nodes wait for the tail in cache

template <class T>
PAIRGRAM_CLONES void add_scaled(std::ptrdiff_t n, T factor, const T* x, T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] += factor * x[j];
}

template <class T>
PAIRGRAM_CLONES void multiply(std::ptrdiff_t n, T factor, T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] *= factor;
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

// out[j] = Σ_k min(x[k], weights(k, j)) for entries ≥ 0: those of x that are 0 add nothing.
template <class T>
PAIRGRAM_CLONES void add_minima(std::ptrdiff_t n_inputs, std::ptrdiff_t n, const T* x,
                                const T* weights, T* out) {
    std::fill_n(out, n, T{0});
    for (std::ptrdiff_t k = 0; k < n_inputs; ++k) {
        const T value = x[k];
        if (value == T{0}) continue;
        const T* const w = weights + k * n;
        for (std::ptrdiff_t j = 0; j < n; ++j) out[j] += w[j] < value ? w[j] : value;
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
    if (map.scale != 1) multiply(map.n_nodes, map.scale, row);
}

template <class T>
void map_to_minmax_nodes(const node_map<T>& map, std::ptrdiff_t n, const T* rows,
                         std::ptrdiff_t ldr, T* out, std::ptrdiff_t ldo) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const T* const x = rows + i * ldr;
        T* const row = out + i * ldo;
        add_minima(map.n_inputs, map.n_nodes, x, map.weights, row);
        divide_by_unions(map.n_nodes, std::accumulate(x, x + map.n_inputs, T{0}), map.bias, row);
        activate(map, row);
    }
}

template <class T>
void map_to_nodes(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                  T* out, std::ptrdiff_t ldo) {
    if (map.minmax) return map_to_minmax_nodes(map, n, rows, ldr, out, ldo);
    const auto d = map.n_inputs;
    std::vector<T> shifted(map.origin ? size_of(n * d) : 0);
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
        if (map.manhattan)
            add_scaled_distances(d, map.n_nodes, x, map.weights, map.square, row);
        else if (map.square)
            add_scaled<T>(map.n_nodes, square_of(d, x), map.square, row);
    }
    if (!map.manhattan)
        blas::gemm(blas::trans::no, blas::trans::no, n, map.n_nodes, d, T{1}, rows, ldr,
                   map.weights, map.n_nodes, T{1}, out, ldo);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        T* const row = out + i * ldo;
        if (map.tanimoto)
            divide_by_unions(map.n_nodes, square_of(d, rows + i * ldr), map.bias, row);
        activate(map, row);
    }
}

void map_in_double(const node_map<double>& map, std::ptrdiff_t n, const float* rows,
                   std::ptrdiff_t ldr, float* out, std::ptrdiff_t ldo) {
    const auto size = std::min(n, chunk_rows);
    std::vector<double> wide_rows(size_of(size * map.n_inputs)),
        wide_out(size_of(size * map.n_outputs));
    for (std::ptrdiff_t begin = 0; begin < n; begin += size) {
        const auto end = std::min(begin + size, n);
        for (auto i = begin; i < end; ++i)
            std::copy_n(rows + i * ldr, map.n_inputs,
                        wide_rows.begin() + (i - begin) * map.n_inputs);
        map_rows(map, end - begin, wide_rows.data(), map.n_inputs, wide_out.data(), map.n_outputs);
        for (auto i = begin; i < end; ++i)
            std::transform(wide_out.begin() + (i - begin) * map.n_outputs,
                           wide_out.begin() + (i - begin + 1) * map.n_outputs, out + i * ldo,
                           [](double value) { return static_cast<float>(value); });
    }
}

}  // namespace

template <class T>
void map_rows(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr, T* out,
              std::ptrdiff_t ldo) {
    if constexpr (std::is_same_v<T, float>)
        if (map.wide) return map_in_double(*map.wide, n, rows, ldr, out, ldo);
    if (!map.tail) return map_to_nodes(map, n, rows, ldr, out, ldo);
    const auto size = std::min(n, chunk_rows);
    std::vector<T> nodes(size_of(size * map.n_nodes));
    for (std::ptrdiff_t begin = 0; begin < n; begin += size) {
        const auto n_here = std::min(size, n - begin);
        map_to_nodes(map, n_here, rows + begin * ldr, ldr, nodes.data(), map.n_nodes);
        for (std::ptrdiff_t first = 0; first < map.n_outputs; first += tail_strip) {
            const auto k = map.tail_begin[size_of(first / tail_strip)];
            blas::gemm(blas::trans::no, blas::trans::no, n_here,
                       std::min(tail_strip, map.n_outputs - first), map.n_nodes - k, T{1},
                       nodes.data() + k, map.n_nodes, map.tail + k * map.n_outputs + first,
                       map.n_outputs, T{0}, out + begin * ldo + first, ldo);
        }
    }
}

template <class T>
std::vector<std::ptrdiff_t> leading_zeros(std::ptrdiff_t n_nodes, std::ptrdiff_t n_outputs,
                                          const T* tail) {
    std::vector<std::ptrdiff_t> begin;
    for (std::ptrdiff_t first = 0; first < n_outputs; first += tail_strip) {
        const auto width = std::min(tail_strip, n_outputs - first);
        std::ptrdiff_t k = 0;
        const auto is_zero = [&](std::ptrdiff_t row) {
            const T* const values = tail + row * n_outputs + first;
            return std::all_of(values, values + width, [](T value) { return value == T{0}; });
        };
        while (k + 1 < n_nodes && is_zero(k)) ++k;
        begin.push_back(k);
    }
    return begin;
}

template std::vector<std::ptrdiff_t> leading_zeros<double>(std::ptrdiff_t, std::ptrdiff_t,
                                                           const double*);
template std::vector<std::ptrdiff_t> leading_zeros<float>(std::ptrdiff_t, std::ptrdiff_t,
                                                          const float*);

template void map_rows<double>(const node_map<double>&, std::ptrdiff_t, const double*,
                               std::ptrdiff_t, double*, std::ptrdiff_t);
template void map_rows<float>(const node_map<float>&, std::ptrdiff_t, const float*, std::ptrdiff_t,
                              float*, std::ptrdiff_t);

}  // namespace pairgram
