// The loss of pairs of rows with censored labels as a function of their scores, without a list.
//
//   loss(f) = Σ_ij ℓ(lower_i − upper_j, f_i − f_j) over i, j of a query with lower_i > upper_j,
//   and over labels that tie ½ ℓ(0, d) + ½ ℓ(0, −d);   ℓ(m, d) = max(0, m − d)² or (m − d)²
//
// With a_i = lower_i − f_i and b_j = upper_j − f_j, a pair is active if a_i > b_j, and its loss is
// (a_i − b_j)². So the active rows below i are those among the first n_below of the order of upper
// bounds whose b is less than a_i. One sweep by a and b, with a Fenwick tree over that order, gives
// every row's sums over them; a second one gives those over the rows above. O(n_rows log n_rows).
// The squared loss has all pairs active, so that its sums are those of `interval_pairs`. O(n_rows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "data/interval_pairs.hpp"
#include "solvers/pair_loss.hpp"
#include "support/buffer.hpp"

namespace pairgram {

class interval_loss {
  public:
    // low and high (n_rows,) are the bounds less a number of each query; they are copied. They are
    // finite in rows with a pair, and equal in rows that tie. The loss is not logistic.
    interval_loss(std::shared_ptr<const interval_pairs> pairs, const double* low,
                  const double* high, pair_loss loss);

    std::ptrdiff_t n_rows() const { return pairs_->n_rows(); }

    // Fixes the active pairs, writes the gradient (n_rows,), and returns the loss. Scores are
    // finite. The same bits for any n_threads.
    double set_scores(const double* scores, double* gradient, int n_threads);

    // out (n_rows,) = the Hessian of the loss at the scores that were set, times u.
    void product(const double* u, double* out, int n_threads) const;

  private:
    // The rows that are winners, or losers, of a pair; empty for the squared loss.
    struct side {
        const buffer<std::int64_t>* n_partners;  // (n_rows,) those that may be active come first
        buffer<std::ptrdiff_t> place;            // (n_rows,) in the order of the partners of these
        buffer<double> value;                    // (n_rows,) a or b
        buffer<std::ptrdiff_t> offsets, sorted;  // the rows of every query, ascending by value
        buffer<double> degree;                   // (n_rows,) active partners
    };

    double pivot(std::ptrdiff_t query, const double* scores) const;
    double set_all(const double* scores, double* gradient, int n_threads) const;
    void sort(std::ptrdiff_t query, const double* scores, const double* bounds, side& rows) const;

    // Calls store(i, Σ value(p)) for the rows i of one side, over the active partners p on the
    // other side.
    template <class Value, class Store>
    void sum_partners(std::ptrdiff_t query, const side& rows, const side& partners,
                      const Value& value, const Store& store) const;

    // Adds count (x_i − mean) of ties to out_i; returns the sum of products with x.
    double add_ties(std::ptrdiff_t query, const double* x, double* out) const;

    std::shared_ptr<const interval_pairs> pairs_;
    buffer<double> low_, high_;  // (n_rows,)
    pair_loss loss_;
    side winners_, losers_;
};

}  // namespace pairgram
