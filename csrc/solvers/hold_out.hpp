// Models of every ridge of a path without a unit: what is held out together, such as a query.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/buffer.hpp"

namespace pairgram {

// The ridge path of a system ZᵀZ = V Λ Vᵀ with targets u, in the basis of its eigenvectors.
struct ridge_path {
    std::ptrdiff_t rank;
    const double* eigenvalues;  // (rank,) Λ ≥ 0
    const double* projection;   // (rank,) VᵀZᵀu
    std::ptrdiff_t n_alphas;
    const double* alphas;  // (n_alphas,) ≥ 0, descending

    double largest() const;  // eigenvalue
};

// For every ridge, with a column for each in whole groups: 1 / (λ_k + ridge), its root, and the
// model of all rows. The ridges are those of units without which the system is scale·(ZᵀZ − BᵀB);
// if scale is 0, nothing is left, and all models are 0. Where both λ_k and the ridge are 0, the
// model is 0.
struct path_models {
    std::ptrdiff_t stride;
    buffer<double> ridges;                // (stride,), ones behind the last
    buffer<double> inverse, roots, coef;  // (rank, stride)

    explicit path_models(const ridge_path& path, double scale = 1);
};

// The models without one unit after the other; matrices are kept to save allocations. A unit is the
// rows B that the system loses, with their targets, or their products. One thread, no Python.
//
// Three ways to the same models, of which the fastest for the shape is taken, with A = Λ + ridge:
//   few rows      (I − B A⁻¹ Bᵀ) x = targets − B w by Cholesky for all ridges at once, and A⁻¹Bᵀx
//                 is taken from the models w of all rows
//   more rows     the same by conjugate gradients, two products an iteration for all ridges
//   many rows     (A − BᵀB) (u − w) = BᵀB w − Bᵀ targets by conjugate gradients, one product; or of
//                 few dimensions by Cholesky for all ridges at once
// Where conjugate gradients do not converge, and below 1e-10 λ_max, a Cholesky factor of the order
// min(rows, rank) serves for each ridge. NaN where pivots say that the model would be rounding
// error. The relative error of a model is about 1e-16 λ_max / ridge at worst.
class unit_models {
  public:
    // (rank + 1, rank + 1) the upper triangle of [B, targets]ᵀ[B, targets]; the lower one is
    // scratch
    buffer<double> sums;

    // The models (rank, stride) without n rows [B, targets] (n, rank + 1), or without the sums,
    // until the next call.
    const double* without_rows(const ridge_path& path, const path_models& models, std::ptrdiff_t n,
                               const double* lost);
    const double* without_sums(const ridge_path& path, const path_models& models);

    // The largest eigenvalue of whose direction the last unit held all but 1e-4, or 0. Refits keep
    // more digits there.
    double held_eigenvalue() const { return held_; }

  private:
    void make_sums(const ridge_path& path, std::ptrdiff_t n);
    void solve_at_once(const ridge_path& path, const path_models& models, std::ptrdiff_t n);
    template <class Product>
    std::ptrdiff_t iterate(const ridge_path& path, const path_models& models, std::ptrdiff_t n,
                           const Product& product);
    void solve_rows(const ridge_path& path, const path_models& models, std::ptrdiff_t n,
                    std::ptrdiff_t j);
    void solve_sums(const ridge_path& path, const path_models& models, std::ptrdiff_t j);

    const double* lost_ = nullptr;
    double held_ = 0;
    buffer<double> first_;                      // (n, stride) right-hand sides
    buffer<double> u_, change_;                 // (rank, stride)
    buffer<double> r_, p_, q_;                  // (n, stride)
    buffer<double> rr_, rr_first_, pq_, step_;  // (stride,)
    buffer<double> factors_, products_;         // (n (n + 1) / 2, stride), (n, rank)
    buffer<double> system_, scaled_, rhs_;      // of one ridge
};

// Units that are given as arrays: the rows of `lost` and `scored`, in the basis, unit after unit.
// Neighbours of equal scale share the models of all rows; if they have one row each, they are taken
// together.
struct given_units {
    std::ptrdiff_t n_units;
    const std::int64_t* offsets;  // (n_units + 1,)
    const double* lost;           // (n_rows, rank + 1), the targets last
    const double* scored;         // (n_rows, rank)
    const double* scales;         // (n_units,) or null for ones; see path_models
};

// scores (n_alphas, n_rows) by the models without the unit of the row, and held (n_units,), see
// unit_models::held_eigenvalue.
void hold_out(const ridge_path& path, const given_units& units, double* scores, double* held,
              int n_threads);

}  // namespace pairgram
