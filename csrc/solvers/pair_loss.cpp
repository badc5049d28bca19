#include "solvers/pair_loss.hpp"

#include <cmath>

#include "features/activations.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

// log(1 + x) for x in [0, 1]: with s = x / (2 + x) it is 2 atanh(s) = x − s (x − r), where
// r = 2 (atanh(s) / s − 1). The coefficients of r / s² are a minimax fit (Remez exchange).
inline double log1p_of_fraction(double x) {
    const double s = x / (2 + x), z = s * s, z2 = z * z, z4 = z2 * z2;
    const double low = (0x1.5555555555548p-1 + z * 0x1.999999999da9cp-2) +
                       z2 * (0x1.24924921bbbccp-2 + z * 0x1.c71c739a00b98p-3);
    const double middle = (0x1.745cc436f2c86p-3 + z * 0x1.3b1c9f0d61fccp-3) +
                          z2 * (0x1.1076cb0b8ac5ap-3 + z * 0x1.eefa5eb62d8cdp-4);
    const double high = 0x1.5940b78602fb6p-4 + z * 0x1.595a0651761d8p-3;
    return x - s * (x - z * (low + z4 * (middle + z4 * high)));
}

PAIRGRAM_CLONES void negate_sizes(std::ptrdiff_t n, const double* d, double* out) {
    for (std::ptrdiff_t k = 0; k < n; ++k) out[k] = -std::abs(d[k]);
}

// exp(−|d|), which does not overflow.
void small_powers(std::ptrdiff_t n, const double* d, double* out) {
    negate_sizes(n, d, out);
    apply(activation::exp, n, out);
}

inline double curve_of(double small, double inverse) { return small * inverse * inverse; }

// Where `curve` holds exp(−|d|).
PAIRGRAM_CLONES void finish_losses(std::ptrdiff_t n, const double* d, double* value, double* slope,
                                   double* curve) {
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        const double small = curve[k], inverse = 1 / (1 + small);
        value[k] = log1p_of_fraction(small) + (d[k] < 0 ? -d[k] : 0.0);
        slope[k] = -((d[k] > 0 ? small : 1.0) * inverse);
        curve[k] = curve_of(small, inverse);
    }
}

PAIRGRAM_CLONES void finish_curves(std::ptrdiff_t n, double* curve) {
    for (std::ptrdiff_t k = 0; k < n; ++k) curve[k] = curve_of(curve[k], 1 / (1 + curve[k]));
}

}  // namespace

void logistic_losses(std::ptrdiff_t n, const double* d, double* value, double* slope,
                     double* curve) {
    small_powers(n, d, curve);
    finish_losses(n, d, value, slope, curve);
}

void logistic_curves(std::ptrdiff_t n, const double* d, double* curve) {
    small_powers(n, d, curve);
    finish_curves(n, curve);
}

}  // namespace pairgram
