#include "node_map.hpp"

#include <numeric>

#include "blas.hpp"
#include "simd.hpp"

namespace pairgram {

namespace {

template <class T>
PAIRGRAM_CLONES void add_scaled(std::ptrdiff_t n, T factor, const T* x, T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] += factor * x[j];
}

// A squared distance that rounding has made negative becomes 0; NaN stays.
template <class T>
PAIRGRAM_CLONES void clamp_at_zero(std::ptrdiff_t n, T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] = out[j] < T{0} ? T{0} : out[j];
}

}  // namespace

template <class T>
void map_rows(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr, T* out,
              std::ptrdiff_t ldo) {
    blas::gemm(blas::trans::no, blas::trans::no, n, map.n_nodes, map.n_inputs, T{1}, rows, ldr,
               map.weights, map.n_nodes, T{0}, out, ldo);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        T* const row = out + i * ldo;
        add_scaled<T>(map.n_nodes, T{1}, map.bias, row);
        if (map.square) {
            const T* const x = rows + i * ldr;
            add_scaled<T>(map.n_nodes, std::inner_product(x, x + map.n_inputs, x, T{0}), map.square,
                          row);
        }
        for (const auto& segment : map.segments) {
            const auto n_values = segment.end - segment.begin;
            if (segment.linear) continue;
            if (segment.kind == activation::gaussian) clamp_at_zero(n_values, row + segment.begin);
            apply(segment.kind, n_values, row + segment.begin);
        }
    }
}

template void map_rows<double>(const node_map<double>&, std::ptrdiff_t, const double*,
                               std::ptrdiff_t, double*, std::ptrdiff_t);
template void map_rows<float>(const node_map<float>&, std::ptrdiff_t, const float*, std::ptrdiff_t,
                              float*, std::ptrdiff_t);

}  // namespace pairgram
