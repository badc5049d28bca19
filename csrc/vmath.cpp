#include "vmath.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "simd.hpp"

namespace pairgram {

namespace {

// Adding 1.5·2^(digits − 1) rounds to an integer, which then stands in the lowest bits of the sum.
template <class T>
struct format;

template <>
struct format<double> {
    using bits = std::uint64_t;
    static constexpr int mantissa = 52;
    static constexpr bits bias = 1023;
    static constexpr double rounder = 0x1.8p52;
    static constexpr double ln2_high = 0x1.62e42fefa38p-1;  // 42 bits: k·ln2_high is exact
    static constexpr double ln2_low = 0x1.ef35793c7673p-45;
    static constexpr double exp_lowest = -746, exp_highest = 710;  // exp is 0 and inf there
    static constexpr double sigmoid_zero = -709;                   // k = −bias
    static constexpr double tanh_one = 22;                         // tanh is 1 from there
};

template <>
struct format<float> {
    using bits = std::uint32_t;
    static constexpr int mantissa = 23;
    static constexpr bits bias = 127;
    static constexpr float rounder = 0x1.8p23F;
    static constexpr float ln2_high = 0x1.62e4p-1F;  // 15 bits
    static constexpr float ln2_low = 0x1.7f7d1cp-20F;
    static constexpr float exp_lowest = -105, exp_highest = 89;
    static constexpr float sigmoid_zero = -88;
    static constexpr float tanh_one = 10;
};

template <class T>
using bits_t = typename format<T>::bits;

template <class T>
inline bits_t<T> to_bits(T x) {
    bits_t<T> bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
}

template <class T>
inline T from_bits(bits_t<T> bits) {
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// c0 + c1·x + c2·x² + …, in pairs: half the dependent steps of Horner's rule.
template <class T>
inline T polynomial(T, T, T c0) {
    return c0;
}

template <class T, class... Rest>
inline T polynomial(T x, T x2, T c0, T c1, Rest... rest) {
    const T pair = c0 + x * c1;
    if constexpr (sizeof...(rest) == 0)
        return pair;
    else
        return pair + x2 * polynomial(x, x2, rest...);
}

// The coefficients are minimax fits (Remez exchange), the leading ones fixed.

// (exp(r) − 1 − r) / r² on |r| ≤ ln(2)/2
inline double exp_tail(double r) {
    return polynomial(r, r * r, 0.5, 0x1.5555555555559p-3, 0x1.5555555553c55p-5,
                      0x1.111111110f25p-7, 0x1.6c16c179994f4p-10, 0x1.a01a01b245f36p-13,
                      0x1.a019b4d47244ep-16, 0x1.71ddf15bc00ddp-19, 0x1.28963752d9274p-22,
                      0x1.af6bf575ff2d4p-26);
}

inline float exp_tail(float r) {
    return polynomial(r, r * r, 0.5F, 0x1.555556p-3F, 0x1.5554f4p-5F, 0x1.1110a4p-7F,
                      0x1.6d3efap-10F, 0x1.a1875ap-13F);
}

// (cos(√z) − 1) / z on √z ≤ π/2
inline double cos_tail(double z) {
    return polynomial(z, z * z, -0.5, 0x1.55555555554ddp-5, -0x1.6c16c16c101f5p-10,
                      0x1.a01a019ba609dp-16, -0x1.27e4f9f2e9ee7p-22, 0x1.1eecfad49e329p-29,
                      -0x1.935738c891daap-37, 0x1.9fc80c6c413e3p-45);
}

inline float cos_tail(float z) {
    return polynomial(z, z * z, -0.5F, 0x1.55555p-5F, -0x1.6c14b8p-10F, 0x1.9f931cp-16F,
                      -0x1.196acep-22F);
}

// (sin(√z)/√z − 1) / z on √z ≤ π/2
inline double sin_tail(double z) {
    return polynomial(z, z * z, -0x1.5555555555555p-3, 0x1.11111111110cbp-7, -0x1.a01a01a01517p-13,
                      0x1.71de3a52c0e94p-19, -0x1.ae6454e47534ep-26, 0x1.6123d13fd9afcp-33,
                      -0x1.ae44a6f249748p-41, 0x1.8851ed612cd23p-49);
}

inline float sin_tail(float z) {
    return polynomial(z, z * z, -0x1.555556p-3F, 0x1.11113ap-7F, -0x1.a025dap-13F, 0x1.732086p-19F,
                      -0x1.be4a7p-26F);
}

// The functions of e^y = 2^k e^r, y = k·ln(2) + r, |r| ≤ ln(2)/2: y = argument(x), the result =
// finish(x, e^r − 1, k + bias).

// 2^k is applied in two halves, so that only the last product leaves the normal range: subnormal
// results are rounded once.
template <class T>
struct exponential {
    using f = format<T>;
    static constexpr bits_t<T> bias = 2 * f::bias;
    static T argument(T x) {
        x = x < f::exp_lowest ? f::exp_lowest : x;
        return x > f::exp_highest ? f::exp_highest : x;
    }
    static T finish(T, T expm1, bits_t<T> exponent) {
        const bits_t<T> half = exponent >> 1;
        return (1 + expm1) * from_bits<T>(half << f::mantissa) *
               from_bits<T>((exponent - half) << f::mantissa);
    }
};

template <class T>
struct gaussian : exponential<T> {
    static T argument(T x) { return exponential<T>::argument(-x); }
};

// Of e = exp(−|x|): e / (1 + e) keeps the relative accuracy of the negative tail. From
// k = −bias on, x < sigmoid_zero, 2^k and with it e is 0.
template <class T>
struct sigmoid {
    using f = format<T>;
    static constexpr bits_t<T> bias = f::bias;
    static T argument(T x) {
        const T y = -std::abs(x);
        return y < f::sigmoid_zero ? f::sigmoid_zero : y;
    }
    static T finish(T x, T expm1, bits_t<T> exponent) {
        const T e = (1 + expm1) * from_bits<T>(exponent << f::mantissa);
        return (x < 0 ? e : T(1)) / (1 + e);
    }
};

// expm1(2|x|) / (expm1(2|x|) + 2): nothing cancels near 0.
template <class T>
struct hyperbolic_tangent {
    using f = format<T>;
    static constexpr bits_t<T> bias = f::bias;
    static T argument(T x) {
        const T y = 2 * std::abs(x);
        return y > 2 * f::tanh_one ? 2 * f::tanh_one : y;
    }
    static T finish(T x, T expm1, bits_t<T> exponent) {
        const T power = from_bits<T>(exponent << f::mantissa);
        expm1 = power * expm1 + (power - 1);
        return std::copysign(expm1 / (expm1 + 2), x);
    }
};

// x = k·π + r, |r| ≤ π/2, for |x| ≤ period_limit (Cody & Waite): k·π_high is exact, hence r is off
// by the rounding of one subtraction. In double for both types.
constexpr double period_limit = 0x1p24;

struct half_turns {
    double r;
    std::uint64_t parity;  // k in the lowest bit
};

inline half_turns split_period(double x) {
    constexpr double pi_high = 0x1.921fb54p+1, pi_low = 0x1.10b4611a62633p-29;
    const double rounded = x * 0.3183098861837907 + format<double>::rounder;
    const double k = rounded - format<double>::rounder;
    return {(x - k * pi_high) - k * pi_low, to_bits(rounded)};
}

template <class T>
inline T flip_sign(T x, std::uint64_t parity, bits_t<T> sign) {
    return from_bits<T>(to_bits(x) ^ sign ^
                        (static_cast<bits_t<T>>(parity) << (8 * sizeof(T) - 1)));
}

struct cosine {
    template <class T>
    T operator()(T x) const {
        const auto [r, parity] = split_period(x);
        const T z = static_cast<T>(r) * static_cast<T>(r);
        return flip_sign<T>(1 + z * cos_tail(z), parity, 0);
    }
    template <class T>
    static T far(T x) {
        return std::cos(x);
    }
};

// Of |r|, then the sign of r, which keeps -0.0.
struct sine {
    template <class T>
    T operator()(T x) const {
        const auto [turn, parity] = split_period(x);
        const T signed_r = static_cast<T>(turn);
        const T r = std::abs(signed_r);
        const T z = r * r;
        T y = r + r * z * sin_tail(z);
        y = y > 1 ? T(1) : y;
        return flip_sign<T>(y, parity, to_bits(r) ^ to_bits(signed_r));
    }
    template <class T>
    static T far(T x) {
        return std::sin(x);
    }
};

struct rectifier {
    template <class T>
    T operator()(T x) const {
        return x <= 0 ? T(0) : x;
    }
};

struct step {
    template <class T>
    T operator()(T x) const {
        return x >= 0 ? T(1) : x < 0 ? T(0) : x;
    }
};

template <class T, class F>
PAIRGRAM_CLONES void map(std::ptrdiff_t n, T* x, F f) {
    for (std::ptrdiff_t i = 0; i < n; ++i) x[i] = f(x[i]);
}

// In three short loops over a block that stays in the nearest cache: in one, the chain of dependent
// steps is so long that the processor waits.
template <class F, class T>
PAIRGRAM_CLONES void map_exponential(std::ptrdiff_t n, T* x) {
    using f = format<T>;
    constexpr std::ptrdiff_t block = 256;
    T r[block];
    bits_t<T> exponent[block];
    for (std::ptrdiff_t begin = 0; begin < n; begin += block, x += block) {
        const auto size = std::min(block, n - begin);
        for (std::ptrdiff_t i = 0; i < size; ++i) {
            const T y = F::argument(x[i]);
            const T rounded = y * T(1.4426950408889634) + f::rounder;
            const T k = rounded - f::rounder;
            r[i] = (y - k * f::ln2_high) - k * f::ln2_low;
            exponent[i] = to_bits(rounded) - to_bits(T(f::rounder)) + F::bias;
        }
        for (std::ptrdiff_t i = 0; i < size; ++i) r[i] = r[i] + r[i] * r[i] * exp_tail(r[i]);
        for (std::ptrdiff_t i = 0; i < size; ++i) x[i] = F::finish(x[i], r[i], exponent[i]);
    }
}

template <class T>
PAIRGRAM_CLONES bool any_far(std::ptrdiff_t n, const T* x) {
    bits_t<T> far = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i)
        far |= std::abs(x[i]) > T(period_limit) ? bits_t<T>(1) : bits_t<T>(0);
    return far != 0;
}

template <class T, class F>
void map_periodic(std::ptrdiff_t n, T* x, F f) {
    constexpr std::ptrdiff_t block = 1024;
    for (std::ptrdiff_t begin = 0; begin < n; begin += block) {
        T* const values = x + begin;
        const auto size = std::min(block, n - begin);
        if (any_far(size, values))
            std::transform(values, values + size, values, [f](T value) {
                return std::abs(value) > T(period_limit) ? F::far(value) : f(value);
            });
        else
            map(size, values, f);
    }
}

}  // namespace

template <class T>
void apply(activation f, std::ptrdiff_t n, T* x) {
    switch (f) {
        case activation::exp:
            return map_exponential<exponential<T>>(n, x);
        case activation::gaussian:
            return map_exponential<gaussian<T>>(n, x);
        case activation::sigmoid:
            return map_exponential<sigmoid<T>>(n, x);
        case activation::tanh:
            return map_exponential<hyperbolic_tangent<T>>(n, x);
        case activation::cos:
            return map_periodic(n, x, cosine());
        case activation::sin:
            return map_periodic(n, x, sine());
        case activation::relu:
            return map(n, x, rectifier());
        case activation::hardlim:
            return map(n, x, step());
    }
}

template void apply<double>(activation, std::ptrdiff_t, double*);
template void apply<float>(activation, std::ptrdiff_t, float*);

}  // namespace pairgram
