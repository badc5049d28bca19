// Held-out targets of a kernel problem from the band form of its system, without eigenvectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear_algebra/band_cholesky.hpp"

namespace pairgram {

// The system A = R K Rᵀ = Q B Qᵀ, with target t = R y, and what is asked of it. A fold is a set of
// rows of A. It may have points beside: vectors k in the coordinates of A, such as R K_i for a row
// i of K, of which a model a = C t has the score kᵀ a.
struct band_folds {
    band_matrix band;
    const double* basis;   // Qᵀ (n, n), row-major
    const double* target;  // Qᵀ t (n,)
    std::ptrdiff_t n_alphas;
    const double* alphas;  // (n_alphas,) > 0
    std::ptrdiff_t n_folds, n_rows, n_points;
    const std::int64_t* rows;           // (n_rows,) of A, fold after fold
    const std::int64_t* row_offsets;    // (n_folds + 1,)
    const double* points;               // (n_points, n): the k, fold after fold
    const std::int64_t* point_offsets;  // (n_folds + 1,)
};

// With C = (A + alpha I)⁻¹ and the rows q of a fold, for every alpha:
//
//   x = C_qq⁻¹ (C t)_q into residuals (n_alphas, n_rows): the model of the other rows has the
//     scores t_q - x in the rows of A
//   kᵀ (C t - C_:q x) into levels (n_alphas, n_points): the scores of that model in the points
//
// NaN where x would be rounding error. C_qq = Zᵀ Z with Z = L⁻¹ Qᵀ_:q and the banded Cholesky
// factor L of B + alpha I: about n (3 width + rows of the fold) flops for each row, point and
// alpha. Returns false, with arbitrary results, where B + alpha I is not positive definite. n (2
// width + 1) words of work space for each of eight alphas, and n n_points.
bool hold_out_band(const band_folds& folds, double* residuals, double* levels, int n_threads);

}  // namespace pairgram
