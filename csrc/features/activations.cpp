#include "features/activations.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "support/simd.hpp"

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

// The functions that a reduction of the argument makes short: x = k·period + r. k is in the lowest
// bits of count, which a shift moves to the sign or the exponent of the result. F(x) =
// finish(x, r, count) where k − first is in [0, window), and far(x), which gives the same bits
// there, everywhere.

template <class T>
struct reduction {
    T r;
    bits_t<T> count;
};

// Cody & Waite: k·high is exact.
template <class T>
inline reduction<T> reduce_by(T x, T inverse, T high, T low) {
    const T rounded = x * inverse + format<T>::rounder;
    const T k = rounded - format<T>::rounder;
    return {(x - k * high) - k * low, to_bits(rounded)};
}

template <class F, class T>
inline T near(T x) {
    const auto [r, count] = F::reduce(x);
    return F::finish(x, r, count);
}

template <class T>
inline T clamp(T x, T lowest, T highest) {  // NaN stays
    x = x < lowest ? lowest : x;
    return x > highest ? highest : x;
}

// The functions of e^x = 2^k e^r, |r| ≤ ln(2)/2. In the window 2^k and the result are normal.
template <class T>
struct exponential_family {
    using f = format<T>;
    static constexpr bits_t<T> window = f::bias + 1, first = -(window / 2);

    static reduction<T> reduce(T x) {
        return reduce_by(x, T(1.4426950408889634), f::ln2_high, f::ln2_low);
    }
    static T expm1(T r) { return r + r * r * exp_tail(r); }
    static bits_t<T> exponent(bits_t<T> count) { return count << f::mantissa; }
};

// Adding to the exponent multiplies by 2^k. Far, 2^k is applied in two halves, so that only the
// last product leaves the normal range: subnormal results are rounded once.
template <class T>
struct exponential : exponential_family<T> {
    using family = exponential_family<T>;
    using f = format<T>;
    static T finish(T, T r, bits_t<T> count) {
        return from_bits<T>(to_bits(1 + family::expm1(r)) + family::exponent(count));
    }
    static T far(T x) {
        const auto [r, count] = family::reduce(clamp(x, f::exp_lowest, f::exp_highest));
        const bits_t<T> biased = count - to_bits(f::rounder) + 2 * f::bias, half = biased >> 1;
        return (1 + family::expm1(r)) * from_bits<T>(family::exponent(half)) *
               from_bits<T>(family::exponent(biased - half));
    }
};

// Of −x. The window is that of x ≥ 0.
template <class T>
struct gaussian : exponential_family<T> {
    using family = exponential_family<T>;
    static constexpr bits_t<T> first = -bits_t<T>(2);
    static T finish(T, T r, bits_t<T> count) {
        return from_bits<T>(to_bits(1 + family::expm1(-r)) - family::exponent(count));
    }
    static T far(T x) { return exponential<T>::far(-x); }
};

template <class T>
struct sigmoid : exponential_family<T> {
    using f = format<T>;
    static T finish(T x, T r, bits_t<T> count) {
        return 1 / (1 + gaussian<T>::finish(x, r, count));
    }
    static T far(T x) { return 1 / (1 + exponential<T>::far(-x)); }
};

// expm1(2|x|) / (expm1(2|x|) + 2): nothing cancels near 0.
template <class T>
struct hyperbolic_tangent : exponential_family<T> {
    using family = exponential_family<T>;
    using f = format<T>;
    static reduction<T> reduce(T x) { return family::reduce(2 * std::abs(x)); }
    static T finish(T x, T r, bits_t<T> count) {
        const T power = from_bits<T>(to_bits(T(1)) + family::exponent(count));
        const T e = power * family::expm1(r) + (power - 1);
        return std::copysign(e / (e + 2), x);
    }
    static T far(T x) { return near<hyperbolic_tangent>(clamp(x, -f::tanh_one, f::tanh_one)); }
};

// x = k·π + r, |r| ≤ π/2: r is off by the rounding of one subtraction. In double for both types.
// Beyond the limit, the C library.
constexpr double period_limit = 0x1p24;

struct periodic {
    static constexpr std::uint64_t window = 1 << 23, first = -(window / 2);  // within the limit

    static reduction<double> reduce(double x) {
        return reduce_by(x, 0.3183098861837907, 0x1.921fb54p+1, 0x1.10b4611a62633p-29);
    }
    template <class T>
    static T flip_sign(T x, std::uint64_t count, bits_t<T> sign) {
        return from_bits<T>(to_bits(x) ^ sign ^
                            (static_cast<bits_t<T>>(count) << (8 * sizeof(T) - 1)));
    }
};

template <class T>
struct cosine : periodic {
    static T finish(T, double turn, std::uint64_t count) {
        const T z = static_cast<T>(turn) * static_cast<T>(turn);
        return flip_sign<T>(1 + z * cos_tail(z), count, 0);
    }
    static T far(T x) { return std::abs(x) > T(period_limit) ? std::cos(x) : near<cosine>(x); }
};

// Of |r|, then the sign of r, which keeps -0.0.
template <class T>
struct sine : periodic {
    static T finish(T, double turn, std::uint64_t count) {
        const T signed_r = static_cast<T>(turn);
        const T r = std::abs(signed_r);
        const T z = r * r;
        T y = r + r * z * sin_tail(z);
        y = y > 1 ? T(1) : y;
        return flip_sign<T>(y, count, to_bits(r) ^ to_bits(signed_r));
    }
    static T far(T x) { return std::abs(x) > T(period_limit) ? std::sin(x) : near<sine>(x); }
};

template <class T, class F>
PAIRGRAM_CLONES void map(std::ptrdiff_t n, T* x, F f) {
    for (std::ptrdiff_t i = 0; i < n; ++i) x[i] = f(x[i]);
}

// In two short loops over a block that stays in the nearest cache: in one, the chain of dependent
// steps is so long that the processor waits.
template <class F, class T>
PAIRGRAM_CLONES void map_reduced(std::ptrdiff_t n, T* x) {
    using R = decltype(F::reduce(T{}).r);
    constexpr std::ptrdiff_t block = 128;
    R r[block];
    bits_t<R> count[block];
    for (std::ptrdiff_t begin = 0; begin < n; begin += block, x += block) {
        const auto size = std::min(block, n - begin);
        bits_t<R> reach = 0;
        for (std::ptrdiff_t i = 0; i < size; ++i) {
            const auto reduced = F::reduce(x[i]);
            r[i] = reduced.r;
            count[i] = reduced.count;
            reach |= count[i] - to_bits(format<R>::rounder) - F::first;
        }
        if (reach < F::window)
            for (std::ptrdiff_t i = 0; i < size; ++i) x[i] = F::finish(x[i], r[i], count[i]);
        else
            for (std::ptrdiff_t i = 0; i < size; ++i) x[i] = F::far(x[i]);
    }
}

}  // namespace

template <class T>
void apply(activation f, std::ptrdiff_t n, T* x) {
    switch (f) {
        case activation::exp:
            return map_reduced<exponential<T>>(n, x);
        case activation::gaussian:
            return map_reduced<gaussian<T>>(n, x);
        case activation::sigmoid:
            return map_reduced<sigmoid<T>>(n, x);
        case activation::tanh:
            return map_reduced<hyperbolic_tangent<T>>(n, x);
        case activation::cos:
            return map_reduced<cosine<T>>(n, x);
        case activation::sin:
            return map_reduced<sine<T>>(n, x);
        case activation::relu:
            return map(n, x, [](T value) { return value <= 0 ? T(0) : value; });
        case activation::hardlim:
            return map(n, x, [](T value) { return value >= 0 ? T(1) : value < 0 ? T(0) : value; });
    }
}

template decltype(apply<double>) apply<double>;
template decltype(apply<float>) apply<float>;

}  // namespace pairgram
