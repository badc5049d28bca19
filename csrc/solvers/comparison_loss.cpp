#include "solvers/comparison_loss.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "support/parallel.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t task_pairs = 1 << 14, task_items = 1 << 10;

}  // namespace

comparison_loss::comparison_loss(std::shared_ptr<const comparisons> pairs, const double* margins,
                                 pair_loss loss)
    : pairs_(std::move(pairs)),
      margin_(margins, margins + pairs_->n_pairs()),
      loss_(loss),
      slope_(pairs_->n_pairs(), 0.0),
      curve_(pairs_->n_pairs(), 0.0) {}

buffer<double> comparison_loss::pair_weights() const {
    return {std::accumulate(pairs_->weight.begin(), pairs_->weight.end(), 0.0)};
}

// The losses of n pairs from `first` on, and their derivatives without the weights.
void comparison_loss::set_block(std::ptrdiff_t first, std::ptrdiff_t n, const double* d,
                                double* value) {
    double* const slope = slope_.data() + first;
    double* const curve = curve_.data() + first;
    const double* const margin = margin_.data() + first;
    if (loss_ == pair_loss::logistic) {
        logistic_losses(n, d, value, slope, curve);
        for (std::ptrdiff_t k = 0; k < n; ++k)
            if (margin[k] == 0) {  // ℓ(−d) = ℓ(d) + d
                value[k] += d[k] / 2;
                slope[k] += 0.5;
            }
        return;
    }
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        auto found = loss_at(loss_, margin[k], d[k]);
        if (margin[k] == 0) {
            const auto other = loss_at(loss_, 0.0, -d[k]);
            found = {(found.value + other.value) / 2, (found.slope - other.slope) / 2,
                     (found.curve + other.curve) / 2};
        }
        value[k] = found.value;
        slope[k] = found.slope;
        curve[k] = found.curve;
    }
}

double comparison_loss::set_scores(const double* scores, double* gradient, int n_threads) {
    const auto n = pairs_->n_pairs();
    buffer<double> losses(n / task_pairs + 1, 0.0);
    parallel_parts(n, task_pairs, n_threads, [&](std::ptrdiff_t begin, std::ptrdiff_t of_task) {
        double sum = 0, d[pairs_together], value[pairs_together];
        for (auto first = begin; first < begin + of_task; first += pairs_together) {
            const auto size = std::min(pairs_together, begin + of_task - first);
            for (std::ptrdiff_t k = 0; k < size; ++k)
                d[k] = scores[pairs_->winner[first + k]] - scores[pairs_->loser[first + k]];
            set_block(first, size, d, value);
            for (std::ptrdiff_t k = 0; k < size; ++k) {
                const double w = pairs_->weight[first + k];
                sum += w * value[k];
                slope_[first + k] *= w;
                curve_[first + k] *= w;
            }
        }
        losses[begin / task_pairs] = sum;
    });
    parallel_parts(n_rows(), task_items, n_threads, [&](std::ptrdiff_t begin, std::ptrdiff_t size) {
        for (auto i = begin; i < begin + size; ++i) {
            double sum = 0;
            for (auto k = pairs_->offsets[i]; k < pairs_->offsets[i + 1]; ++k)
                sum += pairs_->places[k].sign * slope_[pairs_->places[k].pair];
            gradient[i] = sum;
        }
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
}

void comparison_loss::product(const double* u, double* out, int n_threads) const {
    parallel_parts(n_rows(), task_items, n_threads, [&](std::ptrdiff_t begin, std::ptrdiff_t size) {
        for (auto i = begin; i < begin + size; ++i) {
            double sum = 0;
            for (auto k = pairs_->offsets[i]; k < pairs_->offsets[i + 1]; ++k) {
                const auto& at = pairs_->places[k];
                sum += curve_[at.pair] * (u[i] - u[at.partner]);
            }
            out[i] = sum;
        }
    });
}

}  // namespace pairgram
