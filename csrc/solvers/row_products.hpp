// Products with the features H (n, width) of rows, whose values are read once and summed in double:
// scores H w, sums Hᵀ z, and a Newton solver's Hᵀ D H s in one pass, with D the Hessian of a loss
// of scores. The rows stand query after query.
//
// 2·n·width flops each (4 in the one pass, and per model for scores), bound by reading H. All have
// the same bits for any n_threads: rows are added up in a fixed number of slots, which are added in
// order.
#pragma once

#include <cstddef>
#include <functional>

#include "linear_algebra/row_scores.hpp"
#include "solvers/pair_loss.hpp"
#include "solvers/sparse_pairs.hpp"

namespace pairgram {

// scores (n_models, n) of the rows, see row_scores.hpp.
template <class T>
void score_rows(const matrix_rows<T>& rows, const linear_models& models, double* scores,
                int n_threads);

// out (width,) += Hᵀ z of the rows at positions begin to end, one after the other. Rows whose z is
// 0 need not be read.
template <class T>
void add_rows(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end, const double* z,
              double* out);

// The features of rows, however they are stored.
class row_features {
  public:
    row_features(std::ptrdiff_t n_rows, std::ptrdiff_t width) : n_rows_(n_rows), width_(width) {}
    virtual ~row_features() = default;
    std::ptrdiff_t n_rows() const { return n_rows_; }
    std::ptrdiff_t width() const { return width_; }

    // Whether a product takes less time than a thread's start.
    virtual bool is_small() const { return false; }

    virtual void score(const double* w, double* scores, int n_threads) const = 0;
    virtual void sum(const double* z, double* out, int n_threads) const = 0;

    // scores (n,) = H s and out (width,) = Hᵀ D H s. Queries without pairs may have scores 0.
    virtual void hessian_product(const score_loss& loss, const double* s, double* scores,
                                 double* out, int n_threads) const;

  private:
    std::ptrdiff_t n_rows_, width_;
};

// Dense rows, which are in memory or are made whenever they are read. The Hessian product takes
// query by query while its rows are in cache; a query that the cache does not hold is read twice,
// and so are all rows where such a query has an eighth of them, or where rows are made.
template <class T>
class dense_features : public row_features {
  public:
    // make(begin, end, out) writes the rows at these positions, at most `at_once` of them. It is
    // called by the thread that asks for the product.
    using maker = std::function<void(std::ptrdiff_t, std::ptrdiff_t, T*)>;

    explicit dense_features(const matrix_rows<T>& rows);
    dense_features(std::ptrdiff_t n_rows, std::ptrdiff_t width, std::ptrdiff_t at_once, maker make);

    bool is_small() const override;
    void score(const double* w, double* scores, int n_threads) const override;
    void sum(const double* z, double* out, int n_threads) const override;
    void hessian_product(const score_loss& loss, const double* s, double* scores, double* out,
                         int n_threads) const override;

  private:
    matrix_rows<T> rows(std::ptrdiff_t begin, std::ptrdiff_t end, buffer<T>& made) const;
    int threads(int n_threads) const;

    matrix_rows<T> stored_;
    maker make_;
    std::ptrdiff_t at_once_, cached_;  // rows that are read together, and those of a query
};

// Rows in CSR form. Sums take one thread.
class sparse_features : public row_features {
  public:
    explicit sparse_features(const sparse_rows<double>& rows)
        : row_features(rows.n_rows, rows.n_columns), rows_(rows) {}
    void score(const double* w, double* scores, int n_threads) const override;
    void sum(const double* z, double* out, int n_threads) const override;

  private:
    sparse_rows<double> rows_;
};

// Features K W of other features K. W (K's width, width) multiplies vectors: it takes 2·|W| flops.
class whitened_features : public row_features {
  public:
    whitened_features(const row_features& rows, std::ptrdiff_t width, const double* whitening)
        : row_features(rows.n_rows(), width),
          rows_(rows),
          w_(matrix_rows<double>{rows.width(), width, whitening, nullptr}) {}
    void score(const double* w, double* scores, int n_threads) const override;
    void sum(const double* z, double* out, int n_threads) const override;
    void hessian_product(const score_loss& loss, const double* s, double* scores, double* out,
                         int n_threads) const override;

  private:
    const row_features& rows_;
    dense_features<double> w_;
};

}  // namespace pairgram
