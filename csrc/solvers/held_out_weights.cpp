#include "solvers/held_out_weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "support/interrupt.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr int max_iterations = 40;
constexpr double tolerance = 1e-14;       // of the residual, relative to the right-hand side
constexpr double smallest_ridge = 1e-10;  // relative to λ_max, for conjugate gradients
constexpr double smallest_pivot = 5e-11;  // of I − E A⁻¹ Eᵀ: below, the solution is rounding error
constexpr double all_but = 1e-4;          // of an eigenvalue: a fold that leaves less holds it

// Columns that are computed with, in whole groups.
struct column_range {
    std::ptrdiff_t from, to, stride;

    column_range(std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t of)
        : from(first / column_group * column_group), to(in_column_groups(last)), stride(of) {}
};

// out[j] = Σ_i a(i, j) b(i, j)
PAIRGRAM_CLONES void column_dots(std::ptrdiff_t n, const column_range& columns, const double* a,
                                 const double* b, double* out) {
    std::fill(out + columns.from, out + columns.to, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i, a += columns.stride, b += columns.stride)
        for (auto j = columns.from; j < columns.to; ++j) out[j] += a[j] * b[j];
}

// r −= step q, and rr its squares.
PAIRGRAM_CLONES void new_residual(std::ptrdiff_t n, const column_range& columns, const double* step,
                                  const double* q, double* r, double* rr) {
    std::fill(rr + columns.from, rr + columns.to, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i, q += columns.stride, r += columns.stride)
        for (auto j = columns.from; j < columns.to; ++j) {
            r[j] -= step[j] * q[j];
            rr[j] += r[j] * r[j];
        }
}

// out *= factor
PAIRGRAM_CLONES void multiply(std::ptrdiff_t n, const column_range& columns, const double* factor,
                              double* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i, factor += columns.stride, out += columns.stride)
        for (auto j = columns.from; j < columns.to; ++j) out[j] *= factor[j];
}

// out = first + factor second
PAIRGRAM_CLONES void combine(std::ptrdiff_t n, const column_range& columns, const double* factor,
                             const double* first, const double* second, double* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const auto row = i * columns.stride;
        for (auto j = columns.from; j < columns.to; ++j)
            out[row + j] = first[row + j] + factor[j] * second[row + j];
    }
}

}  // namespace

path_models::path_models(const ridge_path& path)
    : stride(in_column_groups(path.n_alphas)),
      inverse(path.rank * stride),
      coef(path.rank * stride) {
    for (std::ptrdiff_t k = 0; k < path.rank; ++k)
        for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j) {
            const double ridge = k < path.rank - path.n_free ? path.alphas[j] : 0.0;
            inverse[k * stride + j] = 1 / (path.eigenvalues[k] + ridge);
            coef[k * stride + j] = path.projection[k] * inverse[k * stride + j];
        }
}

// Solves (I − E A⁻¹ Eᵀ) x = r by conjugate gradients for the first n_columns alphas; r_ enters as
// the right-hand side, and change_ leaves as −A⁻¹ Eᵀ x. Alphas descend, so the columns that have
// not converged are taken as a suffix; a column beside them in its group takes steps of 0. Returns
// the first of them.
std::ptrdiff_t held_out_weights::conjugate_gradients(const ridge_path& path, std::ptrdiff_t n,
                                                     std::ptrdiff_t n_columns,
                                                     const double* inverse) {
    const auto width = path.rank, stride = stride_;
    change_.assign(width * stride, 0.0);
    p_ = r_;
    column_dots(n, {0, n_columns, stride}, r_.data(), r_.data(), rr_.data());
    rr_first_ = rr_;
    const auto unconverged = [&](std::ptrdiff_t from) {
        while (from < n_columns && rr_[from] <= tolerance * tolerance * rr_first_[from]) ++from;
        return from;
    };
    auto from = unconverged(0);
    for (int iteration = 0; from < n_columns && iteration < max_iterations; ++iteration) {
        check_interrupt();
        const column_range columns(from, n_columns, stride);
        for (std::ptrdiff_t k = 0; k < width; ++k)
            std::fill(u_.begin() + k * stride + columns.from, u_.begin() + k * stride + columns.to,
                      0.0);
        add_cached_product(width, columns.to - columns.from, n, 1.0, {e.data(), 1, width + 1},
                           p_.data() + columns.from, stride, u_.data() + columns.from, stride);
        multiply(width, columns, inverse, u_.data());  // A⁻¹ Eᵀ p
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy(p_.begin() + i * stride + columns.from, p_.begin() + i * stride + columns.to,
                      q_.begin() + i * stride + columns.from);
        add_cached_product(n, columns.to - columns.from, width, -1.0, {e.data(), width + 1, 1},
                           u_.data() + columns.from, stride, q_.data() + columns.from, stride);
        column_dots(n, columns, p_.data(), q_.data(), pq_.data());
        const auto ratio = [&](const buffer<double>& above, const buffer<double>& below) {
            std::fill(step_.begin(), step_.end(), 0.0);
            for (auto j = from; j < n_columns; ++j)
                step_[j] = below[j] > 0 ? above[j] / below[j] : 0.0;
        };
        ratio(rr_, pq_);
        pq_ = rr_;  // the residual before
        new_residual(n, columns, step_.data(), q_.data(), r_.data(), rr_.data());
        for (auto& step : step_) step = -step;
        combine(width, columns, step_.data(), change_.data(), u_.data(), change_.data());
        ratio(rr_, pq_);
        combine(n, columns, step_.data(), r_.data(), p_.data(), p_.data());
        from = unconverged(from);
    }
    return from;
}

// The held-out weights of column j, in the eigenbasis, into column j of u_. For n ≤ L from
// (I − Ẽ Ẽᵀ) x = r with Ẽ = E A^-½, else from (I − Ẽᵀ Ẽ) A^½ u = A^-½ (Vᵀg − Eᵀỹ).
void held_out_weights::solve_directly(const ridge_path& path, std::ptrdiff_t n, std::ptrdiff_t j,
                                      const double* inverse, const double* coef) {
    const auto width = path.rank, m = stride_;
    const bool by_rows = n <= width;
    const auto order = by_rows ? n : width;
    scaled_.resize(n * width);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t k = 0; k < width; ++k)
            scaled_[i * width + k] = e[i * (width + 1) + k] * std::sqrt(inverse[k * m + j]);
    system_.assign(order * order, 0.0);
    for (std::ptrdiff_t i = 0; i < order; ++i) system_[i * order + i] = 1;
    blas::gemm(by_rows ? trans::no : trans::yes, by_rows ? trans::yes : trans::no, order, order,
               by_rows ? width : n, -1.0, scaled_.data(), width, scaled_.data(), width, 1.0,
               system_.data(), order);
    rhs_.resize(order);
    const double* target = e.data() + width;
    for (std::ptrdiff_t k = 0; k < order; ++k) {
        double& rhs = rhs_[k];
        if (by_rows) {
            rhs = first_[k * m + j];
            continue;
        }
        rhs = path.projection[k] * std::sqrt(inverse[k * m + j]);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            rhs -= scaled_[i * width + k] * target[i * (width + 1)];
    }
    const bool solved = blas::cholesky_solve(order, system_.data(), rhs_.data()) >= smallest_pivot;
    for (std::ptrdiff_t k = 0; k < width; ++k) {
        double sum = by_rows ? 0.0 : rhs_[k];
        for (std::ptrdiff_t i = 0; by_rows && i < n; ++i) sum -= scaled_[i * width + k] * rhs_[i];
        sum = sum * std::sqrt(inverse[k * m + j]) + (by_rows ? coef[k * m + j] : 0.0);
        u_[k * m + j] = solved ? sum : std::numeric_limits<double>::quiet_NaN();
    }
}

double held_out_weights::held_eigenvalue(const ridge_path& path, std::ptrdiff_t n) const {
    buffer<double> squares(path.rank, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t k = 0; k < path.rank; ++k) {
            const double value = e[i * (path.rank + 1) + k];
            squares[k] += value * value;
        }
    double largest = 0;
    for (std::ptrdiff_t k = 0; k < path.rank - path.n_free; ++k)
        if (squares[k] > (1 - all_but) * path.eigenvalues[k])
            largest = std::max(largest, path.eigenvalues[k]);
    return largest;
}

const double* held_out_weights::solve(const ridge_path& path, const path_models& models,
                                      std::ptrdiff_t n) {
    const auto width = path.rank, m = path.n_alphas, stride = models.stride;
    const double *const inverse = models.inverse.data(), *const coef = models.coef.data();
    stride_ = stride;
    for (auto* matrix : {&r_, &p_, &q_}) matrix->resize(n * stride);
    u_.resize(width * stride);
    for (auto* row : {&rr_, &pq_, &step_}) row->resize(stride);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        std::fill_n(r_.begin() + i * stride, stride, e[i * (width + 1) + width]);
    add_cached_product(n, stride, width, -1.0, {e.data(), width + 1, 1}, coef, stride, r_.data(),
                       stride);
    first_ = r_;
    const auto* const end = path.eigenvalues + width - path.n_free;
    const double largest = end == path.eigenvalues ? 0.0 : *std::max_element(path.eigenvalues, end);
    const auto n_columns =
        std::partition_point(path.alphas, path.alphas + m,
                             [&](double alpha) { return alpha >= smallest_ridge * largest; }) -
        path.alphas;
    const auto n_solved = conjugate_gradients(path, n, n_columns, inverse);
    for (std::ptrdiff_t at = 0; at < width * stride; ++at) u_[at] = coef[at] + change_[at];
    for (auto j = n_solved; j < m; ++j) {
        check_interrupt();
        solve_directly(path, n, j, inverse, coef);
    }
    return u_.data();
}

}  // namespace pairgram
