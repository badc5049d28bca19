// The interface of a loss of pairs as a function of the scores of rows, which stand query after
// query.
#pragma once

#include <cstddef>

#include "support/buffer.hpp"

namespace pairgram {

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
    // finite. The same bits for any n_threads.
    virtual double set_scores(const double* scores, double* gradient, int n_threads) = 0;

    // out (n_rows,) = the Hessian of the loss at the scores that were set, times u.
    virtual void product(const double* u, double* out, int n_threads) const = 0;

    // The same for the rows of queries [first, last) alone; u and out begin with the first row.
    virtual void product(std::ptrdiff_t first, std::ptrdiff_t last, const double* u,
                         double* out) const = 0;
};

}  // namespace pairgram
