// The product of two vectors, their sum, and multiples.
#pragma once

#include <cstddef>

#include "support/simd.hpp"

namespace pairgram {

namespace {

// Every file that includes this has a function of its own: its compile options tell whether sums
// are fused with products, and so whether all instruction sets give the same bits.
template <std::size_t Bytes>
PAIRGRAM_CLONES double dot_in(std::ptrdiff_t n, const double* a, const double* b) {
    using wide = lanes_in<double, 8, Bytes>;
    wide sums[4] = {}, x, y;
    std::ptrdiff_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int k = 0; k < 4; ++k) {
            load(a + i + 8 * k, x);
            load(b + i + 8 * k, y);
            add_product(sums[k], x, y);
        }
    sums[0] += sums[1];
    sums[2] += sums[3];
    sums[0] += sums[2];
    double sum = 0;
    for (int k = 0; k < 8; ++k) sum += sums[0][k];
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

inline double dot(std::ptrdiff_t n, const double* a, const double* b) {
    return has_wide_registers() ? dot_in<wide_bytes>(n, a, b) : dot_in<narrow_bytes>(n, a, b);
}

// Whether one of n numbers is NaN.
template <class T>
PAIRGRAM_CLONES bool has_nan(std::ptrdiff_t n, const T* x) {
    int found = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) found |= x[i] != x[i];
    return found != 0;
}

// out *= factor
template <class T>
PAIRGRAM_CLONES void scale(std::ptrdiff_t n, T factor, T* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i) out[i] *= factor;
}

// out += factor x
template <class T>
PAIRGRAM_CLONES void add(std::ptrdiff_t n, T factor, const T* x, T* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i) out[i] += factor * x[i];
}

}  // namespace

}  // namespace pairgram
