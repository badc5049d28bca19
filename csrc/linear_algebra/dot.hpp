// The product of two vectors.
#pragma once

#include <cstddef>
#include <cstring>

#include "support/simd.hpp"

namespace pairgram {

namespace {

// Every file that includes this has a function of its own: its compile options tell whether sums
// are fused with products, and so whether all instruction sets give the same bits.
PAIRGRAM_CLONES double dot(std::ptrdiff_t n, const double* a, const double* b) {
    using wide = pack<double, 8>;
    wide sums[4] = {};
    std::ptrdiff_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int k = 0; k < 4; ++k) {
            wide x, y;
            std::memcpy(&x, a + i + 8 * k, sizeof x);
            std::memcpy(&y, b + i + 8 * k, sizeof y);
            sums[k] += x * y;
        }
    sums[0] += sums[1];
    sums[2] += sums[3];
    sums[0] += sums[2];
    double sum = 0;
    for (int k = 0; k < 8; ++k) sum += sums[0][k];
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

}  // namespace

}  // namespace pairgram
