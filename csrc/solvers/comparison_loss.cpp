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

double comparison_loss::set_scores(const double* scores, double* gradient, int n_threads) {
    const auto n = pairs_->n_pairs(), n_tasks = (n + task_pairs - 1) / task_pairs;
    buffer<double> losses(n_tasks);
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        double sum = 0;
        for (auto p = task * task_pairs; p < std::min((task + 1) * task_pairs, n); ++p) {
            const double d = scores[pairs_->winner[p]] - scores[pairs_->loser[p]];
            auto found = loss_at(loss_, margin_[p], d);
            if (margin_[p] == 0) {
                const auto other = loss_at(loss_, 0.0, -d);
                found = {(found.value + other.value) / 2, (found.slope - other.slope) / 2,
                         (found.curve + other.curve) / 2};
            }
            const double w = pairs_->weight[p];
            sum += w * found.value;
            slope_[p] = w * found.slope;
            curve_[p] = w * found.curve;
        }
        losses[task] = sum;
    });
    const auto n_parts = (n_rows() + task_items - 1) / task_items;
    parallel_for(n_parts, n_threads, [&](std::ptrdiff_t task) {
        for (auto i = task * task_items; i < std::min((task + 1) * task_items, n_rows()); ++i) {
            double sum = 0;
            for (auto k = pairs_->offsets[i]; k < pairs_->offsets[i + 1]; ++k)
                sum += pairs_->places[k].sign * slope_[pairs_->places[k].pair];
            gradient[i] = sum;
        }
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
}

void comparison_loss::product(const double* u, double* out, int n_threads) const {
    const auto n_parts = (n_rows() + task_items - 1) / task_items;
    parallel_for(n_parts, n_threads, [&](std::ptrdiff_t task) {
        for (auto i = task * task_items; i < std::min((task + 1) * task_items, n_rows()); ++i) {
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
