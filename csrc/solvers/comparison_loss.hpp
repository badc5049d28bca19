// Losses of comparisons as functions of the scores of items: loss, gradient, Hessian products.
//
//   loss(f) = Σ_p w_p ℓ(m_p, f_winner − f_loser),   ℓ(m, d) = max(0, m − d)², (m − d)², or
//                                                           log(1 + exp(−d))
//
// A tie, of margin 0, is half a win of each: ½ ℓ(0, d) + ½ ℓ(0, −d). O(n_items + n_pairs) for each.
#pragma once

#include <cstddef>
#include <memory>

#include "data/comparisons.hpp"
#include "solvers/pair_loss.hpp"
#include "support/buffer.hpp"

namespace pairgram {

class comparison_loss final : public score_loss {
  public:
    // margins (n_pairs,) are copied.
    comparison_loss(std::shared_ptr<const comparisons> pairs, const double* margins,
                    pair_loss loss);

    // Items are one query.
    std::ptrdiff_t n_queries() const override { return 1; }
    std::ptrdiff_t n_rows() const override { return pairs_->n_items(); }
    std::ptrdiff_t first_row(std::ptrdiff_t query) const override { return query * n_rows(); }
    bool has_pairs(std::ptrdiff_t) const override { return true; }
    buffer<double> pair_weights() const override;
    double set_scores(const double* scores, double* gradient, int n_threads) override;
    void product(const double* u, double* out, int n_threads) const override;
    void product(std::ptrdiff_t, std::ptrdiff_t, const double* u, double* out) const override {
        product(u, out, 1);
    }

  private:
    void set_block(std::ptrdiff_t first, std::ptrdiff_t n, const double* d, double* value);

    std::shared_ptr<const comparisons> pairs_;
    buffer<double> margin_;  // (n_pairs,)
    pair_loss loss_;
    buffer<double> slope_, curve_;  // (n_pairs,) derivatives by the difference, with the weight
};

}  // namespace pairgram
