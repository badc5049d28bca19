// Products Xᵀ L X p of sparse rows, for several vectors and several systems at once. A system is a
// ranking problem over the same queries: other row weights make other systems, such as those that
// leave a fold of rows out. Or it is comparisons of the rows, with L = AᵀDA. Neither XᵀLX nor Xᵀ
// is formed, and no difference of rows.
//
// 4·nnz flops per vector, bound by reading X, and the numbers of its columns: X is read once per
// product, query by query while its rows are in cache. It is read twice, with n numbers per vector
// between, where a query or the numbers of all columns are too many for the cache. O(n) per vector
// for L (with an omega also O(levels²) per query), or O(n + comparisons). The same bits for any
// n_threads: rows are added up in a number of slots that the shape alone decides, which are added
// in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/comparisons.hpp"
#include "data/ranking_problem.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// The Laplacian of a problem, laid out for many products with it:
//
//   (L z)_i = c v_i (Σ_k V_k ω(l, k) z_i − Σ_k ω(l, k) t_k),  t_k = Σ v z over the rows of level k
//
// with the means of the queries subtracted from z, so that the two sums do not cancel. Rows are in
// the order of the queries.
//
// For comparisons, all rows are one query, and (L z)_i = Σ_k w_k (z_i − z_k) over the partners of a
// row, each of them with the weight of its comparisons.
class laplacian {
  public:
    explicit laplacian(const ranking_problem& problem);
    explicit laplacian(const comparisons& pairs);
    laplacian(laplacian&&) = default;
    laplacian(const laplacian&) = delete;  // whose view would be of the other's bounds

    const query_rows& rows() const { return rows_; }
    // Whether the query's rows are in pairs that count.
    bool counts(std::ptrdiff_t query) const { return factor_[query] > 0; }

    // z becomes L z for one query. z has an entry per row, stride apart.
    void apply(std::ptrdiff_t query, std::ptrdiff_t stride, double* z) const;

    // What zᵀ L z of one query subtracts, and what it subtracts it from: Σ degree z², where z is
    // taken from an entry that all rows have. size is the sum for z as it is. z is sparse: n
    // entries of the rows at these positions, counted from the query's first. sums is scratch for
    // many queries: empty at first, then zeros.
    struct square {
        double sum, subtracted, size;
    };
    square square_of(std::ptrdiff_t query, std::ptrdiff_t n, const std::int32_t* positions,
                     const double* z, buffer<double>& sums) const;

    // Comparisons alone, which are not ranking problems: whether these are, and the partners of a
    // row, which may repeat.
    bool has_partners() const { return !bounds_.empty(); }
    double degree(std::ptrdiff_t row) const { return degree_[row]; }
    template <class Visit>
    void each_partner(std::ptrdiff_t row, const Visit& visit) const {
        for (auto k = first_partner_[row]; k < first_partner_[row + 1]; ++k)
            visit(static_cast<std::ptrdiff_t>(partner_[k]), partner_weight_[k]);
    }

  private:
    void apply_partners(std::ptrdiff_t stride, double* z) const;

    pair_rule rule_;
    query_rows rows_;
    buffer<double> factor_;               // (n_queries,) c; 0 without pairs
    buffer<double> weight_, degree_;      // (n,) v_i, and what z_i is multiplied by
    buffer<std::ptrdiff_t> heaviest_;     // (n_queries,) the row that the others are taken from
    buffer<std::ptrdiff_t> counted_;      // (n_queries,) rows of weight > 0
    buffer<std::int32_t> level_;          // (n,) within the query; dropped and omega alone
    buffer<std::ptrdiff_t> first_level_;  // (n_queries + 1,)
    buffer<double> level_label_;          // omega: of every query's levels
    buffer<std::ptrdiff_t> level_index_;  // omega: of every query's levels

    // Comparisons alone.
    buffer<std::int64_t> bounds_;           // (2,) of the one query
    buffer<std::ptrdiff_t> first_partner_;  // (n + 1,)
    buffer<std::int32_t> partner_;          // of every row, and
    buffer<double> partner_weight_;         // the weight of their comparison
};

// A run of whole queries, or a part of a long query (no queries).
struct piece {
    std::ptrdiff_t begin, end;  // positions of rows
    std::ptrdiff_t first_query, last_query;
};

// Rows in pieces that stay in cache for all vectors. Threads share the parts of long queries.
struct pieces_of_rows {
    buffer<piece> whole, parts;
    buffer<std::ptrdiff_t> long_queries;
};

template <class T>
pieces_of_rows cut_rows(const sparse_rows<T>& X, const query_rows& rows);

// out (n_vectors, n_columns): vector j becomes Xᵀ L X p of system systems[j].
template <class T>
void sparse_pair_product(const sparse_rows<T>& X, const buffer<laplacian>& laplacians,
                         const pieces_of_rows& pieces, std::ptrdiff_t n_vectors, const double* p,
                         const std::int64_t* systems, double* out, int n_threads);

// diagonal (n_columns,) of Xᵀ L X, and size (n_columns,), the sum of weighted squares: where a
// column does not vary, the diagonal is at most rounding error of this size. O(nnz), with omega ·
// levels² more. For comparisons the diagonal adds up squared differences, entry by entry of the
// rows that are compared; the columns of a row must ascend.
template <class T>
void sparse_pair_diagonal(const sparse_rows<T>& X, const laplacian& pairs, double* diagonal,
                          double* size, int n_threads);

}  // namespace pairgram
