// The squared hinge loss over preference pairs as a function of the scores: loss, gradient and
// products with the Hessian, without ever storing a pair's weight.
//
//   loss(f) = Σ_q c_q Σ_ij v_i v_j max(0, 1 − (f_i − f_j))²   over i, j of q with y_i > y_j
//
// The pairs of clicks are all pairs of a clicked row and another row of its query, with the weight
// a_i v_i v_j of labels a = clicks / propensities:
//
//   loss(f) = Σ_q c_q Σ_i a_i Σ_j≠i v_i v_j max(0, 1 − (f_i − f_j))²
//
// The pairs with f_i − f_j < 1 are active; the squared loss has all of them active. With the rows
// of a query in the order of their scores, the active partners of a row are a prefix or a suffix
// of those with higher or lower labels, so that two sweeps give every row's sums over them. All
// pairs of a query of few rows are gone through in vectors, which takes less time than a sort.
//
// The logistic loss, log(1 + exp(−(f_i − f_j))) of every pair, has no such sums: all pairs of a
// query are gone through, and none is stored. With the rows in the order of their labels the losers
// of a row are the first ones, so that many pairs are computed at once.
//
// O(n log n) to set scores; O(n · levels) for a product with few levels, else O(n log levels). Of
// few rows, O(n²) for each.
// Source: Chen et al. 2017, eq. 23-25 (A the pairs' differences, D the active ones, never formed).
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/ranking_problem.hpp"
#include "solvers/pair_loss.hpp"
#include "support/buffer.hpp"

namespace pairgram {

class pair_operator final : public score_loss {
  public:
    // The pairs are those of labels, where the problem's drop ties, or of clicks, where they are
    // sums. c_q is the query weight times 1, 1 / Σ v, or 1 / Σ_ij v_i v_j over the query's pairs.
    // For clicks it is 1 / Σ_ij a_i v_i v_j with i = j among them, as for least squares. Whatever
    // the order of the problem's rows, those of the operator stand query after query: its row i is
    // the problem's rows.row(i).
    pair_operator(const ranking_problem& problem, pair_loss loss);

    std::ptrdiff_t n_queries() const override { return length_of(factor_); }
    std::ptrdiff_t n_rows() const override { return offsets_.back(); }
    std::ptrdiff_t first_row(std::ptrdiff_t query) const override { return offsets_[query]; }
    bool has_pairs(std::ptrdiff_t query) const override { return factor_[query] > 0; }

    // c_q Σ_ij v_i v_j over the pairs of every query.
    buffer<double> pair_weights() const override { return pair_weights_; }

    // Fixes the active pairs; the Hessian is 2 AᵀDA.
    double set_scores(const double* scores, double* gradient, int n_threads) override;
    void product(const double* u, double* out, int n_threads) const override;
    void product(std::ptrdiff_t first, std::ptrdiff_t last, const double* u,
                 double* out) const override;

  private:
    struct workspace;

    template <class Visit>
    void visit_pairs(std::ptrdiff_t query, const Visit& visit) const;
    double set_logistic(std::ptrdiff_t query, const double* scores, double* gradient, workspace& w);
    void multiply_logistic(std::ptrdiff_t query, const double* u, double* out, workspace& w) const;
    double set_query(std::ptrdiff_t query, const double* scores, double* gradient, workspace& w);
    void multiply_query(std::ptrdiff_t query, const double* u, double* out, workspace& w) const;
    bool has_few(std::ptrdiff_t query) const;
    void count_pairs(const ranking_problem& problem, std::ptrdiff_t query);
    void count_clicks(const ranking_problem& problem, std::ptrdiff_t query);
    void set_factor(const ranking_problem& problem, std::ptrdiff_t query, double pair_weight,
                    double of_documents, double of_queries);
    void sum_partners(std::ptrdiff_t query, const double* winner, const double* loser,
                      workspace& w) const;

    pair_loss loss_;
    double reach_;                    // of score differences that are active
    buffer<std::ptrdiff_t> offsets_;  // (n_queries + 1,)
    buffer<std::ptrdiff_t> tasks_;    // see runs_of
    buffer<double> factor_;           // (n_queries,) c; 0 for a query without pairs
    buffer<double> pair_weights_;     // (n_queries,)
    buffer<std::int32_t> n_levels_;   // (n_queries,); 0 where clicks make the pairs
    buffer<double> weight_;           // (n,) v: of a row as the loser of a pair
    buffer<double> win_;              // (n,) v or a v: of a row as the winner
    buffer<std::int32_t> level_;      // (n,) rank of the label within its query
    // In the order of the scores, which the queries' rows keep until new ones are set. The logistic
    // loss keeps them in the order of the labels.
    buffer<std::ptrdiff_t> order_;       // (n,) row within the query
    buffer<double> sorted_score_;        // (n,)
    buffer<double> sorted_weight_;       // (n,)
    buffer<double> sorted_win_;          // (n,)
    buffer<std::int32_t> sorted_level_;  // (n,)
    buffer<double> degree_;              // (n,) weight of a row's active pairs
    // In the order of the rows, for queries of few.
    buffer<std::int64_t> partners_;  // (n,) bits: the rows that a row is in an active pair with
};

}  // namespace pairgram
