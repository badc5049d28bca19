// Elementwise activations, in place: the hidden units of random feature maps.
#pragma once

#include <cstddef>

namespace pairgram {

enum class activation {
    exp,       // exp(x)
    gaussian,  // exp(−x), x a scaled squared distance
    sigmoid,   // 1 / (1 + exp(−x))
    tanh,
    cos,
    sin,
    relu,     // max(x, 0); 0 for -0.0
    hardlim,  // 1 where x ≥ 0 (so also at -0.0), 0 elsewhere
};

// x[i] becomes f(x[i]), for double and float. NaN stays NaN in every activation.
//
// Largest errors, in ulp of the exact value: exp and gaussian 1.125, sigmoid 2.5, tanh 2.75, over
// the whole range. Overflow gives inf, underflow rounded subnormals and 0; sigmoid alone turns 0
// early, where exp(−x) overflows: below -709.78 (float: -88.72) it would be less than 5.6e-309
// (3e-39). cos and sin: absolute error 2⁻⁵¹ (float: 2⁻²²), |result| ≤ 1; sin is within 2.25 ulp in
// [-π/2, π/2].
//
// A value gives the same bits at every position, length and instruction set: the arithmetic is
// IEEE sums, products and quotients in a fixed order, never fused (activations.cpp is compiled with
// -ffp-contract=off). The exception is cos and sin of |x| > 2²⁴, which the C library computes.
template <class T>
void apply(activation f, std::ptrdiff_t n, T* x);

}  // namespace pairgram
