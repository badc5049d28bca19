// The weights of every ridge of a path without the rows of a fold, from one eigendecomposition.
#pragma once

#include <cstddef>

#include "support/buffer.hpp"

namespace pairgram {

// The ridge path of the pairgram in the basis of its eigenvectors: Z = H·basis, w(λ) = basis·coef.
struct ridge_path {
    std::ptrdiff_t rank;
    // (n_features, rank) eigenvectors in columns, tail included; null: rows come as Z
    const double* basis;
    const double* eigenvalues;  // (rank,) ≥ 0
    const double* projection;   // (rank,) Vᵀg
    std::ptrdiff_t n_alphas;
    const double* alphas;       // (n_alphas,) > 0, descending
    std::ptrdiff_t n_free = 0;  // the last directions, of eigenvalues > 0, that have no ridge
};

// For every ridge, with a column for each in whole groups: 1 / (λ_k + α) and the model of all rows.
struct path_models {
    std::ptrdiff_t stride;
    buffer<double> inverse, coef;  // (rank, stride)

    explicit path_models(const ridge_path& path);
};

// The held-out weights of one fold after the other; the matrices are kept to save allocations.
// Those with a column for each alpha have `stride` columns: zeros or numbers that do not count
// stand behind the last alpha.
class held_out_weights {
  public:
    buffer<double> e;  // (n, rank + 1) the half-Laplacian of [Z, y] of the fold, or rows of which
                       // the products with each other are the same

    // The weights without the n rows of e, (rank, stride), until the next call: solves
    // (I − E A⁻¹ Eᵀ) x = ỹ − E w with A = Λ + λ, and takes A⁻¹ Eᵀ x from the models of all rows.
    const double* solve(const ridge_path& path, const path_models& models, std::ptrdiff_t n);

    // The largest eigenvalue with a ridge of whose direction the n rows of e hold nearly all pairs.
    double held_eigenvalue(const ridge_path& path, std::ptrdiff_t n) const;

  private:
    std::ptrdiff_t conjugate_gradients(const ridge_path& path, std::ptrdiff_t n,
                                       std::ptrdiff_t n_columns, const double* inverse);
    void solve_directly(const ridge_path& path, std::ptrdiff_t n, std::ptrdiff_t j,
                        const double* inverse, const double* coef);

    std::ptrdiff_t stride_ = 0;
    buffer<double> r_, p_, q_;                  // (n, stride)
    buffer<double> first_;                      // (n, stride) right-hand sides
    buffer<double> u_, change_;                 // (rank, stride)
    buffer<double> rr_, rr_first_, pq_, step_;  // (stride,)
    buffer<double> system_, scaled_, rhs_;  // Cholesky: (k, k), (n, rank), (k,), k = min(n, rank)
};

}  // namespace pairgram
