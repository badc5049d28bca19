// Decimal text to the nearest float or double, fast where that is exact in a few operations.
#pragma once

#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#ifndef __cpp_lib_to_chars
#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif

namespace pairgram {

static_assert(FLT_EVAL_METHOD == 0, "the fast path needs double operations that round once");

inline constexpr double exact_powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

// The nearest T of digits[.digits][e[+-]digits] in [begin, end) and true, or false where that is
// infinite or 0 by rounding.
template <class T>
bool round_in_range(const char* begin, const char* end, T& out) {
#ifdef __cpp_lib_to_chars
    return std::from_chars(begin, end, out, std::chars_format::general).ec == std::errc();
#else
    // Apple's standard library reads no floating-point numbers without a locale.
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    const std::string text(begin, end);
    if constexpr (std::is_same_v<T, float>)
        out = strtof_l(text.c_str(), nullptr, plain);
    else
        out = strtod_l(text.c_str(), nullptr, plain);
    return std::isfinite(out) && out != 0;
#endif
}

// The nearest T of digits[.digits][e[+-]digits] in [begin, end) and true, or false where T would
// overflow. `exponent` is the power of ten of the last digit, the exponent part included.
template <class T>
bool round_decimal(const char* begin, const char* end, std::int64_t exponent, T& out) {
    if (round_in_range(begin, end, out)) return true;
    // Out of range, above or below: the power of ten of the first digit that is not 0 tells.
    std::int64_t power = exponent;
    bool counting = false;
    for (const char* p = begin; p != end && (is_digit(*p) || *p == '.'); ++p) {
        counting = counting || (is_digit(*p) && *p != '0');
        power += counting && *p != '.';
    }
    out = 0;
    return !counting || power < 0;
}

// True where rounding the nearest double to float once more may differ from rounding the decimal:
// on the midpoint of two floats, and where floats are subnormal or overflow.
inline bool rounds_twice(double magnitude) {
    std::uint64_t bits;
    std::memcpy(&bits, &magnitude, sizeof bits);
    const bool midpoint = (bits & 0x1fffffffU) == 0x10000000U;
    return midpoint || magnitude > FLT_MAX || (magnitude < FLT_MIN && magnitude != 0);
}

// Reads [+-](digits[.digits] | .digits)[e[+-]digits] at p, which a byte that belongs to no number
// must end. Returns where the number ends, or nullptr where none begins at p or it overflows T.
// Correctly rounded (to nearest, ties to even); what is too small for a subnormal is 0.
//
// With an integer mantissa up to 2^53 and a power of ten up to 10^22 both are exact in double, so
// that one multiplication or division rounds once (Clinger 1990).
template <class T>
const char* parse_decimal(const char* p, T& out) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
    const bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    const char* begin = p;
    std::uint64_t mantissa = 0;  // may wrap: it counts only up to 19 digits
    for (; is_digit(*p); ++p) mantissa = 10 * mantissa + static_cast<unsigned char>(*p - '0');
    std::ptrdiff_t n_digits = p - begin;
    std::int64_t exponent = 0;
    if (*p == '.') {
        const char* fraction = ++p;
        for (; is_digit(*p); ++p) mantissa = 10 * mantissa + static_cast<unsigned char>(*p - '0');
        n_digits += p - fraction;
        exponent = fraction - p;
    }
    if (n_digits == 0) return nullptr;
    if (*p == 'e' || *p == 'E') {
        const bool minus = *++p == '-';
        if (minus || *p == '+') ++p;
        if (!is_digit(*p)) return nullptr;
        std::int64_t written = 0;
        for (; is_digit(*p); ++p)
            if (written < 100'000'000'000'000'000) written = 10 * written + (*p - '0');
        exponent += minus ? -written : written;
    }
    constexpr std::uint64_t max_exact = std::uint64_t{1} << 53;
    if (n_digits <= 19 && mantissa <= max_exact && exponent >= -22 && exponent <= 22) {
        const auto exact = static_cast<double>(mantissa);
        const double magnitude = exponent < 0 ? exact / exact_powers_of_ten[-exponent]
                                              : exact * exact_powers_of_ten[exponent];
        if (std::is_same_v<T, double> || !rounds_twice(magnitude)) {
            out = static_cast<T>(negative ? -magnitude : magnitude);
            return p;
        }
    }
    if (!round_decimal(begin, p, exponent, out)) return nullptr;
    if (negative) out = -out;
    return p;
}

}  // namespace pairgram
