// The losses of a pair, as functions of the difference d of its scores and of a margin m, and of
// all pairs, as functions of scores.
#pragma once

#include <cstddef>

#include "support/buffer.hpp"

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

// The interface of a loss of pairs as a function of the scores of rows, which stand query after
// query.
class score_loss {
  public:
    virtual ~score_loss() = default;

    virtual std::ptrdiff_t n_queries() const = 0;
    virtual std::ptrdiff_t n_rows() const = 0;
    virtual std::ptrdiff_t first_row(std::ptrdiff_t query) const = 0;
    virtual bool has_pairs(std::ptrdiff_t query) const = 0;
    // The sum of the weights of the pairs of every query, (n_queries,).
    virtual buffer<double> pair_weights() const = 0;

    // Writes the gradient (n_rows,), keeps what the Hessian needs, and returns the loss. Scores are
    // finite.
    virtual double set_scores(const double* scores, double* gradient, int n_threads) = 0;

    // out (n_rows,) = the Hessian of the loss at the scores that were set, times u.
    virtual void product(const double* u, double* out, int n_threads) const = 0;

    // The same for the rows of queries [first, last) alone; u and out begin with the first row.
    virtual void product(std::ptrdiff_t first, std::ptrdiff_t last, const double* u,
                         double* out) const = 0;
};

}  // namespace pairgram
