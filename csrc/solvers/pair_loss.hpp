// The losses of a pair, as functions of the difference d of its scores and of a margin m.
#pragma once

#include <cstddef>

namespace pairgram {

enum class pair_loss { squared_hinge, squared, logistic };

struct loss_of_pair {
    double value, slope, curve;  // and the derivatives by d
};

// The loss is not logistic.
inline loss_of_pair loss_at(pair_loss loss, double margin, double d) {
    const double left = margin - d;
    if (loss == pair_loss::squared_hinge && left <= 0) return {0, 0, 0};
    return {left * left, -2 * left, 2};
}

constexpr std::ptrdiff_t pairs_together = 256;  // whose arrays stay in the nearest cache

// The logistic loss log(1 + exp(−d)) of n pairs, and its derivatives: values are within 4 ulp, the
// derivatives within 8. A pair has the same bits at every position and instruction set.
void logistic_losses(std::ptrdiff_t n, const double* d, double* value, double* slope,
                     double* curve);

// The second derivatives alone, which have the same bits.
void logistic_curves(std::ptrdiff_t n, const double* d, double* curve);

}  // namespace pairgram
