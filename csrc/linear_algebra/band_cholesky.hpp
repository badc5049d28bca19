// Cholesky factors of a band with many shifts of its diagonal.
#pragma once

#include <cstddef>

#include "support/buffer.hpp"
#include "support/simd.hpp"

namespace pairgram {

// A symmetric band of row-major (n, width + 1): row j holds B(j, j), ..., B(j, j + width).
struct band_matrix {
    std::ptrdiff_t n, width;
    const double* entries;
};

// Shifts that are computed with side by side.
constexpr std::ptrdiff_t band_lanes = 8;
struct alignas(64) lanes {
    double of[band_lanes];
};

// Cholesky factors of sign B + shift I for `band_lanes` shifts: entry (j (width + 1) + d) holds
// L(j + d, j) of every shift. width² n flops each. Bit k of the result is 1 where matrix k is
// numerically positive definite; the factors of the others are lost.
unsigned factor_shifted(const band_matrix& band, double sign, const double* shifts,
                        buffer<lanes>& factors);

// X (n_shifts, n) = (B + shift I)⁻¹ b for every shift, row-major, and log det(B + shift I). Where a
// matrix is not positive definite, the logarithm is NaN and the row of X holds arbitrary numbers.
// The same bits for any n_threads; n (width + 1) words of work space for each of up to 8 n_threads
// shifts.
void solve_shifted(const band_matrix& band, std::ptrdiff_t n_shifts, const double* shifts,
                   const double* b, double* x, double* log_determinants, int n_threads);

// The largest eigenvalue of B, to about width eps of the largest size of an eigenvalue. An interval
// is cut by Cholesky factors of μ I - B, which exist for μ above the eigenvalue, and its lower end
// is raised by Rayleigh quotients of inverse iteration with these factors.
double largest_of_band(const band_matrix& band);

}  // namespace pairgram
