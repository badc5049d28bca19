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

class comparison_loss {
  public:
    // margins (n_pairs,) are copied.
    comparison_loss(std::shared_ptr<const comparisons> pairs, const double* margins,
                    pair_loss loss);

    std::ptrdiff_t n_rows() const { return pairs_->n_items(); }

    // Writes the gradient (n_items,), keeps the second derivatives, and returns the loss. Scores
    // are finite. The same bits for any n_threads.
    double set_scores(const double* scores, double* gradient, int n_threads);

    // out (n_items,) = the Hessian of the loss at the scores that were set, times u.
    void product(const double* u, double* out, int n_threads) const;

  private:
    void set_block(std::ptrdiff_t first, std::ptrdiff_t n, const double* d, double* value);

    std::shared_ptr<const comparisons> pairs_;
    buffer<double> margin_;  // (n_pairs,)
    pair_loss loss_;
    buffer<double> slope_, curve_;  // (n_pairs,) derivatives by the difference, with the weight
};

}  // namespace pairgram
