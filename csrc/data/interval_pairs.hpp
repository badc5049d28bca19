// The pairs of rows whose order is known although labels may be censored, which are never listed.
//
// The label of row i lies in [lower_i, upper_i]. Row i is above row j of its query if lower_i >
// upper_j: the rows below i begin the order of the upper bounds, and those above j end the order of
// the lower ones. Two labels that are known and equal tie. So with the incidence A of all pairs,
// which have the margins m_ij = lower_i − upper_j,
//
//   (AᵀA x)_i = n_i x_i − Σ_below x_j − Σ_above x_k − Σ_ties x_t
//
// and the like are sums over beginnings and ends. O(n_rows) memory and, but for sorting, time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/query_rows.hpp"
#include "support/buffer.hpp"

namespace pairgram {

class interval_pairs {
  public:
    // Copies the bounds (n_rows,), which are not NaN. O(n_rows log n_rows).
    interval_pairs(const query_rows& queries, const double* lower, const double* upper);

    std::ptrdiff_t n_rows() const { return static_cast<std::ptrdiff_t>(lower.size()); }
    std::ptrdiff_t n_queries() const { return static_cast<std::ptrdiff_t>(offsets.size()) - 1; }

    buffer<double> lower, upper;            // (n_rows,)
    buffer<std::ptrdiff_t> offsets;         // (n_queries + 1,) of the two orders
    buffer<std::ptrdiff_t> by_lower;        // (n_rows,) rows of every query, ascending
    buffer<std::ptrdiff_t> by_upper;        // (n_rows,)
    buffer<std::ptrdiff_t> tie_offsets;     // (n_groups + 1,) of groups of two rows or more
    buffer<std::ptrdiff_t> ties;            // rows that tie, group after group
    buffer<std::ptrdiff_t> first_ties;      // (n_queries + 1,) groups of every query
    buffer<std::int64_t> n_below, n_above;  // (n_rows,)
    buffer<std::int64_t> n_tied;            // (n_rows,) other rows of the group

    // out (n_rows, width) = AᵀA rows. The same bits for any n_threads.
    void multiply(std::ptrdiff_t width, const double* rows, double* out, int n_threads) const;

    // out (n_rows,) = Aᵀt for t_ij = low_i − high_j, and squares (n_queries,) = Σ t². The bounds
    // low and high of rows in pairs are finite, and equal in rows that tie. The same bits for any
    // n_threads.
    void pull(const double* low, const double* high, double* out, double* squares,
              int n_threads) const;

    // out (n_models, n_queries) for scores (n_models, n_rows): of how many pairs that are no ties
    // the upper row has the higher score; equal scores count ½. O(n_models n_rows log n_rows).
    void concordant(std::ptrdiff_t n_models, const double* scores, double* out,
                    int n_threads) const;
};

}  // namespace pairgram
