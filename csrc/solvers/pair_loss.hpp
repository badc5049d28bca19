// The losses of a pair, as functions of the difference d of its scores and of a margin m.
#pragma once

#include <cmath>

namespace pairgram {

enum class pair_loss { squared_hinge, squared, logistic };

struct loss_of_pair {
    double value, slope, curve;  // and the derivatives by d
};

inline loss_of_pair loss_at(pair_loss loss, double margin, double d) {
    if (loss == pair_loss::logistic) {
        const double small = std::exp(-std::abs(d));  // which does not overflow
        const double less = d > 0 ? small / (1 + small) : 1 / (1 + small);  // 1 − σ(d)
        return {std::log1p(small) + (d < 0 ? -d : 0.0), -less, small / ((1 + small) * (1 + small))};
    }
    const double left = margin - d;
    if (loss == pair_loss::squared_hinge && left <= 0) return {0, 0, 0};
    return {left * left, -2 * left, 2};
}

}  // namespace pairgram
