#include "solvers/hold_out.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "support/interrupt.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int max_iterations = 40;
constexpr double tolerance = 1e-14;       // of the residual, relative to the right-hand side
constexpr double smallest_ridge = 1e-10;  // relative to λ_max, for ways other than Cholesky
constexpr double smallest_pivot = 5e-11;  // of I − E A⁻¹ Eᵀ: below, the solution is rounding error
constexpr double all_but = 1e-4;          // of an eigenvalue: a unit that leaves less holds it
constexpr std::ptrdiff_t few_rows = 32;   // that are solved at once
constexpr std::ptrdiff_t batch_rows = 128;  // of units that one task takes

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

// Cholesky factors of the matrices of all columns: entry (i, j) of the lower triangle stands at row
// i (i + 1) / 2 + j of `factors`, and 1 / L_ii takes the place of L_ii. least, (stride,), gets the
// smallest pivots.
PAIRGRAM_CLONES void factorize(std::ptrdiff_t n, std::ptrdiff_t stride, double* factors,
                               double* least) {
    std::fill_n(least, stride, 1.0);
    for (std::ptrdiff_t c = 0; c < stride; c += column_group) {
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            double* const own = factors + i * (i + 1) / 2 * stride + c;
            for (std::ptrdiff_t j = 0; j <= i; ++j) {
                const double* const other = factors + j * (j + 1) / 2 * stride + c;
                double sum[column_group];
                for (int k = 0; k < column_group; ++k) sum[k] = own[j * stride + k];
                for (std::ptrdiff_t l = 0; l < j; ++l)
                    for (int k = 0; k < column_group; ++k)
                        sum[k] -= own[l * stride + k] * other[l * stride + k];
                for (int k = 0; k < column_group; ++k) {
                    if (j < i) {
                        sum[k] *= other[j * stride + k];
                        continue;
                    }
                    least[c + k] = sum[k] < least[c + k] ? sum[k] : least[c + k];
                    sum[k] = 1 / std::sqrt(sum[k]);
                }
                for (int k = 0; k < column_group; ++k) own[j * stride + k] = sum[k];
            }
        }
    }
}

// x (n, stride) = (L Lᵀ)⁻¹ x for the factors of every column.
PAIRGRAM_CLONES void substitute(std::ptrdiff_t n, std::ptrdiff_t stride, const double* factors,
                                double* x) {
    const auto entry = [&](std::ptrdiff_t i, std::ptrdiff_t j) {
        return factors + (i * (i + 1) / 2 + j) * stride;
    };
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* const own = x + i * stride;
        for (std::ptrdiff_t j = 0; j < i; ++j) {
            const double *const l = entry(i, j), *const other = x + j * stride;
            for (std::ptrdiff_t k = 0; k < stride; ++k) own[k] -= l[k] * other[k];
        }
        const double* const inverse = entry(i, i);
        for (std::ptrdiff_t k = 0; k < stride; ++k) own[k] *= inverse[k];
    }
    for (auto i = n - 1; i >= 0; --i) {
        double* const own = x + i * stride;
        const double* const inverse = entry(i, i);
        for (std::ptrdiff_t k = 0; k < stride; ++k) own[k] *= inverse[k];
        for (std::ptrdiff_t j = 0; j < i; ++j) {
            const double* const l = entry(i, j);
            double* const other = x + j * stride;
            for (std::ptrdiff_t k = 0; k < stride; ++k) other[k] -= l[k] * own[k];
        }
    }
}

// A (n, n; stride ld) −= v pᵀ + p vᵀ
PAIRGRAM_CLONES void subtract_both(std::ptrdiff_t n, const double* v, const double* p, double* a,
                                   std::ptrdiff_t ld) {
    for (std::ptrdiff_t i = 0; i < n; ++i, a += ld) {
        const double x = v[i], y = p[i];
        for (std::ptrdiff_t j = 0; j < n; ++j) a[j] -= x * p[j] + y * v[j];
    }
}

// p = A v for symmetric A (n, n; stride ld)
PAIRGRAM_CLONES void multiply(std::ptrdiff_t n, const double* a, std::ptrdiff_t ld, const double* v,
                              double* p) {
    std::fill_n(p, n, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i, a += ld)
        for (std::ptrdiff_t j = 0; j < n; ++j) p[j] += v[i] * a[j];
}

// X (n, columns) −= scale v (vᵀX)
PAIRGRAM_CLONES void reflect(std::ptrdiff_t n, std::ptrdiff_t columns, double scale,
                             const double* v, double* x, double* sums) {
    std::fill_n(sums, columns, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < columns; ++j) sums[j] += v[i] * x[i * columns + j];
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double factor = scale * v[i];
        for (std::ptrdiff_t j = 0; j < columns; ++j) x[i * columns + j] -= factor * sums[j];
    }
}

// x (n, stride) = (T + ridge)⁻¹ x for every column, by L D Lᵀ; least, (stride,), gets the smallest
// pivots.
PAIRGRAM_CLONES void solve_shifted(std::ptrdiff_t n, std::ptrdiff_t stride, const double* ridges,
                                   const double* diagonal, const double* beside, double* pivots,
                                   double* ratios, double* x, double* least) {
    std::fill_n(least, stride, std::numeric_limits<double>::infinity());
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const auto at = i * stride;
        for (std::ptrdiff_t j = 0; j < stride; ++j) {
            double pivot = diagonal[i] + ridges[j];
            if (i > 0) {
                pivot -= ratios[at - stride + j] * beside[i - 1];
                x[at + j] -= ratios[at - stride + j] * x[at - stride + j];
            }
            least[j] = pivot < least[j] ? pivot : least[j];
            pivots[at + j] = pivot;
            ratios[at + j] = beside[i] / pivot;
        }
    }
    for (std::ptrdiff_t i = n - 1; i >= 0; --i) {
        const auto at = i * stride;
        for (std::ptrdiff_t j = 0; j < stride; ++j) {
            x[at + j] /= pivots[at + j];
            if (i + 1 < n) x[at + j] -= ratios[at + j] * x[at + stride + j];
        }
    }
}

// The largest eigenvalue of a direction of which a unit of these sums of squares holds all but
// 1e-4.
double held_eigenvalue(const ridge_path& path, const double* squares, std::ptrdiff_t step) {
    double held = 0;
    for (std::ptrdiff_t k = 0; k < path.rank; ++k)
        if (squares[k * step] > (1 - all_but) * path.eigenvalues[k])
            held = std::max(held, path.eigenvalues[k]);
    return held;
}

// The number of ridges, which descend, that other ways than Cholesky solve for.
std::ptrdiff_t n_large(const ridge_path& path, const path_models& models) {
    const double least = smallest_ridge * path.largest();
    return std::partition_point(models.ridges.begin(), models.ridges.begin() + path.n_alphas,
                                [&](double ridge) { return ridge >= least; }) -
           models.ridges.begin();
}

}  // namespace

double ridge_path::largest() const {
    return rank == 0 ? 0.0 : *std::max_element(eigenvalues, eigenvalues + rank);
}

path_models::path_models(const ridge_path& path, double scale)
    : stride(in_column_groups(path.n_alphas)),
      ridges(stride, 1.0),
      inverse(path.rank * stride),
      coef(path.rank * stride) {
    for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
        ridges[j] = scale > 0 ? path.alphas[j] / scale : std::numeric_limits<double>::infinity();
    for (std::ptrdiff_t k = 0; k < path.rank; ++k)
        for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j) {
            const double shifted = path.eigenvalues[k] + ridges[j];
            inverse[k * stride + j] = shifted > 0 ? 1 / shifted : 0.0;
            coef[k * stride + j] = path.projection[k] * inverse[k * stride + j];
        }
}

// M = Q T Qᵀ by reflectors, of which the k-th stays in row k behind the diagonal.
void unit_models::tridiagonalize(std::ptrdiff_t n) {
    double* const a = system_.data();
    rhs_.resize(n);
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        double* const v = a + k * n + k + 1;
        const auto m = n - k - 1;
        diagonal_[k] = a[k * n + k];
        scale_[k] = beside_[k] = 0;
        if (m == 0) continue;
        double size = 0, norm = 0;
        for (std::ptrdiff_t i = 1; i < m; ++i) size = std::max(size, std::abs(v[i]));
        beside_[k] = v[0];
        if (size == 0) continue;  // there is nothing to reflect away
        size = std::max(size, std::abs(v[0]));
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            v[i] /= size;
            norm += v[i] * v[i];
        }
        const double root = v[0] > 0 ? -std::sqrt(norm) : std::sqrt(norm);
        beside_[k] = size * root;
        const double first = v[0];
        v[0] -= root;
        scale_[k] = 2 / (norm - first * first + v[0] * v[0]);
        double* const rest = a + (k + 1) * n + k + 1;
        double* const p = rhs_.data();
        multiply(m, rest, n, v, p);
        double dot = 0;
        for (std::ptrdiff_t i = 0; i < m; ++i) dot += p[i] * v[i];
        const double shift = scale_[k] * dot / 2;
        for (std::ptrdiff_t i = 0; i < m; ++i) p[i] = scale_[k] * (p[i] - shift * v[i]);
        subtract_both(m, v, p, rest, n);
    }
}

void unit_models::make_sums(const ridge_path& path, std::ptrdiff_t n) {
    const auto width = path.rank + 1;
    sums.resize(width * width);
    blas::syrk(width, n, 1.0, lost_, width, 0.0, sums.data(), width);
}

const double* unit_models::without_rows(const ridge_path& path, const path_models& models,
                                        std::ptrdiff_t n, const double* lost) {
    lost_ = lost;
    const auto rank = path.rank, stride = models.stride;
    // The flops of the ways; those of tridiagonal form run at a tenth of the speed.
    if ((13 * rank + n + 4 * stride) * rank < std::min(few_rows, n + 8) * n * stride) {
        make_sums(path, n);
        return without_sums(path, models);
    }
    rhs_.assign(rank, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t k = 0; k < rank; ++k) {
            const double value = lost_[i * (rank + 1) + k];
            rhs_[k] += value * value;
        }
    held_ = pairgram::held_eigenvalue(path, rhs_.data(), 1);
    r_.resize(n * stride);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        std::fill_n(r_.begin() + i * stride, stride, lost_[i * (rank + 1) + rank]);
    add_cached_product(n, stride, rank, -1.0, {lost_, rank + 1, 1}, models.coef.data(), stride,
                       r_.data(), stride);
    if (n <= few_rows)
        solve_at_once(path, models, n);
    else
        iterate(path, models, n);
    return u_.data();
}

void unit_models::solve_at_once(const ridge_path& path, const path_models& models,
                                std::ptrdiff_t n) {
    const auto rank = path.rank, stride = models.stride;
    factors_.assign(n * (n + 1) / 2 * stride, 0.0);
    products_.resize(n * rank);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* const own = factors_.data() + i * (i + 1) / 2 * stride;
        for (std::ptrdiff_t j = 0; j <= i; ++j)
            for (std::ptrdiff_t k = 0; k < rank; ++k)
                products_[j * rank + k] = lost_[i * (rank + 1) + k] * lost_[j * (rank + 1) + k];
        std::fill_n(own + i * stride, stride, 1.0);
        add_cached_product(i + 1, stride, rank, -1.0, {products_.data(), rank, 1},
                           models.inverse.data(), stride, own, stride);
    }
    step_.resize(stride);
    factorize(n, stride, factors_.data(), step_.data());
    substitute(n, stride, factors_.data(), r_.data());
    u_.assign(rank * stride, 0.0);
    add_cached_product(rank, stride, n, -1.0, {lost_, 1, rank + 1}, r_.data(), stride, u_.data(),
                       stride);
    for (auto& least : step_) least = least >= smallest_pivot ? 1.0 : nan;
    multiply(rank, {0, stride, stride}, models.inverse.data(), u_.data());
    combine(rank, {0, stride, stride}, step_.data(), models.coef.data(), u_.data(), u_.data());
}

// Alphas descend, so the columns that have not converged are a suffix; a column beside them in its
// group takes steps of 0.
void unit_models::iterate(const ridge_path& path, const path_models& models, std::ptrdiff_t n) {
    const auto rank = path.rank, stride = models.stride;
    first_ = r_;
    for (auto* matrix : {&p_, &q_}) matrix->resize(n * stride);
    u_.resize(rank * stride);
    for (auto* row : {&rr_, &pq_, &step_}) row->resize(stride);
    const auto n_columns = n_large(path, models);
    change_.assign(rank * stride, 0.0);
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
        for (std::ptrdiff_t k = 0; k < rank; ++k)
            std::fill(u_.begin() + k * stride + columns.from, u_.begin() + k * stride + columns.to,
                      0.0);
        add_cached_product(rank, columns.to - columns.from, n, 1.0, {lost_, 1, rank + 1},
                           p_.data() + columns.from, stride, u_.data() + columns.from, stride);
        multiply(rank, columns, models.inverse.data(), u_.data());  // A⁻¹ Bᵀ p
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy(p_.begin() + i * stride + columns.from, p_.begin() + i * stride + columns.to,
                      q_.begin() + i * stride + columns.from);
        add_cached_product(n, columns.to - columns.from, rank, -1.0, {lost_, rank + 1, 1},
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
        combine(rank, columns, step_.data(), change_.data(), u_.data(), change_.data());
        ratio(rr_, pq_);
        combine(n, columns, step_.data(), r_.data(), p_.data(), p_.data());
        from = unconverged(from);
    }
    for (std::ptrdiff_t at = 0; at < rank * stride; ++at) u_[at] = models.coef[at] + change_[at];
    const bool by_rows = n <= rank;
    if (!by_rows && from < path.n_alphas) make_sums(path, n);
    for (auto j = from; j < path.n_alphas; ++j)
        by_rows ? solve_rows(path, models, n, j) : solve_sums(path, models, j);
}

// Column j of the models from (I − B A⁻¹ Bᵀ) x = targets − B w, whose right-hand side is first_.
void unit_models::solve_rows(const ridge_path& path, const path_models& models, std::ptrdiff_t n,
                             std::ptrdiff_t j) {
    check_interrupt();
    const auto rank = path.rank, stride = models.stride;
    scaled_.resize(n * rank);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t k = 0; k < rank; ++k)
            scaled_[i * rank + k] =
                lost_[i * (rank + 1) + k] * std::sqrt(models.inverse[k * stride + j]);
    system_.assign(n * n, 0.0);
    rhs_.resize(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        system_[i * n + i] = 1;
        rhs_[i] = first_[i * stride + j];
    }
    blas::gemm(trans::no, trans::yes, n, n, rank, -1.0, scaled_.data(), rank, scaled_.data(), rank,
               1.0, system_.data(), n);
    const bool solved = blas::cholesky_solve(n, system_.data(), rhs_.data()) >= smallest_pivot;
    for (std::ptrdiff_t k = 0; k < rank; ++k) {
        double sum = 0;
        for (std::ptrdiff_t i = 0; i < n; ++i) sum += scaled_[i * rank + k] * rhs_[i];
        const auto at = k * stride + j;
        u_[at] = solved ? models.coef[at] - sum * std::sqrt(models.inverse[at]) : nan;
    }
}

// Column j of the models from (I − A^-½ BᵀB A^-½) A^½ u = A^-½ (projection − Bᵀ targets).
void unit_models::solve_sums(const ridge_path& path, const path_models& models, std::ptrdiff_t j) {
    check_interrupt();
    const auto rank = path.rank, stride = models.stride;
    system_.resize(rank * rank);
    rhs_.resize(rank);
    scaled_.resize(rank);
    for (std::ptrdiff_t k = 0; k < rank; ++k) {
        scaled_[k] = std::sqrt(models.inverse[k * stride + j]);
        rhs_[k] = scaled_[k] * (path.projection[k] - sums[k * (rank + 1) + rank]);
        for (std::ptrdiff_t i = 0; i <= k; ++i)
            system_[k * rank + i] =
                (i == k ? 1.0 : 0.0) - scaled_[i] * sums[i * (rank + 1) + k] * scaled_[k];
    }
    const bool solved = blas::cholesky_solve(rank, system_.data(), rhs_.data()) >= smallest_pivot;
    for (std::ptrdiff_t k = 0; k < rank; ++k)
        u_[k * stride + j] = solved ? scaled_[k] * rhs_[k] : nan;
}

const double* unit_models::without_sums(const ridge_path& path, const path_models& models) {
    const auto rank = path.rank, stride = models.stride, width = rank + 1;
    held_ = pairgram::held_eigenvalue(path, sums.data(), width + 1);
    system_.resize(rank * rank);
    for (auto* row : {&rhs_, &diagonal_, &beside_, &scale_}) row->resize(rank);
    for (auto* matrix : {&u_, &pivots_, &ratios_}) matrix->resize(rank * stride);
    for (auto* row : {&step_, &rr_}) row->resize(stride);
    for (std::ptrdiff_t i = 0; i < rank; ++i) {
        for (auto j = i; j < rank; ++j)
            system_[i * rank + j] = system_[j * rank + i] = -sums[i * width + j];
        system_[i * rank + i] += path.eigenvalues[i];
        u_[i * stride] = path.projection[i] - sums[i * width + rank];
    }
    tridiagonalize(rank);
    for (std::ptrdiff_t i = 0; i < rank; ++i) rhs_[i] = u_[i * stride];
    const auto reflector = [&](std::ptrdiff_t k) { return system_.data() + k * (rank + 1) + 1; };
    for (std::ptrdiff_t k = 0; k + 1 < rank; ++k)
        reflect(rank - k - 1, 1, scale_[k], reflector(k), rhs_.data() + k + 1, step_.data());
    for (std::ptrdiff_t i = 0; i < rank; ++i) std::fill_n(u_.begin() + i * stride, stride, rhs_[i]);
    solve_shifted(rank, stride, models.ridges.data(), diagonal_.data(), beside_.data(),
                  pivots_.data(), ratios_.data(), u_.data(), rr_.data());
    for (auto k = rank - 2; k >= 0; --k)
        reflect(rank - k - 1, stride, scale_[k], reflector(k), u_.data() + (k + 1) * stride,
                step_.data());
    const double least =
        std::numeric_limits<double>::epsilon() * static_cast<double>(rank) * path.largest();
    const auto n_columns = n_large(path, models);
    for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
        if (j >= n_columns || !(rr_[j] > least)) solve_sums(path, models, j);
    return u_.data();
}

namespace {

// Scores (n, stride) of units of one row each, by (targets − B w) / (1 − B A⁻¹ Bᵀ) for all at once.
void score_single_rows(const ridge_path& path, const path_models& models, std::ptrdiff_t n,
                       const double* lost, const double* scored, buffer<double>& scores,
                       double* held) {
    const auto rank = path.rank, stride = models.stride;
    buffer<double> squares(n * rank), crosses(n * rank);
    buffer<double> left(n * stride, 1.0), residual(n * stride), share(n * stride, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double *const row = lost + i * (rank + 1), *const own = scored + i * rank;
        for (std::ptrdiff_t k = 0; k < rank; ++k) {
            squares[i * rank + k] = row[k] * row[k];
            crosses[i * rank + k] = row[k] * own[k];
        }
        held[i] = held_eigenvalue(path, squares.data() + i * rank, 1);
        std::fill_n(residual.begin() + i * stride, stride, row[rank]);
    }
    const auto add = [&](double factor, const double* rows, std::ptrdiff_t ld,
                         const buffer<double>& columns, buffer<double>& sums) {
        add_cached_product(n, stride, rank, factor, {rows, ld, 1}, columns.data(), stride,
                           sums.data(), stride);
    };
    scores.assign(n * stride, 0.0);
    add(1.0, scored, rank, models.coef, scores);
    add(-1.0, lost, rank + 1, models.coef, residual);
    add(-1.0, squares.data(), rank, models.inverse, left);
    add(1.0, crosses.data(), rank, models.inverse, share);
    for (std::ptrdiff_t at = 0; at < n * stride; ++at)
        scores[at] =
            left[at] >= smallest_pivot ? scores[at] - share[at] * residual[at] / left[at] : nan;
}

// The first units of batches, and the end of the last.
buffer<std::ptrdiff_t> batches_of(const given_units& units) {
    buffer<std::ptrdiff_t> firsts{0};
    for (std::ptrdiff_t last = 1; last <= units.n_units; ++last)
        if (last == units.n_units ||
            units.offsets[last] - units.offsets[firsts.back()] >= batch_rows)
            firsts.push_back(last);
    return firsts;
}

}  // namespace

void hold_out(const ridge_path& path, const given_units& units, double* scores, double* held,
              int n_threads) {
    const auto rank = path.rank, n_rows = static_cast<std::ptrdiff_t>(units.offsets[units.n_units]);
    const auto batches = batches_of(units);
    const path_models of_ones(path);
    const auto stride = of_ones.stride;
    parallel_for(static_cast<std::ptrdiff_t>(batches.size()) - 1, n_threads, [&](auto task) {
        unit_models without;
        buffer<double> found;
        path_models own = of_ones;
        double scale = 1;
        for (auto unit = batches[task], next = unit; unit < batches[task + 1]; unit = next) {
            const auto scale_of = [&](auto u) { return units.scales ? units.scales[u] : 1.0; };
            if (scale_of(unit) != scale) own = path_models(path, scale = scale_of(unit));
            const auto size = [&](auto u) { return units.offsets[u + 1] - units.offsets[u]; };
            do ++next;
            while (size(unit) == 1 && next < batches[task + 1] && size(next) == 1 &&
                   scale_of(next) == scale);
            const auto begin = units.offsets[unit], n = units.offsets[next] - begin;
            const double *const lost = units.lost + begin * (rank + 1), *const scored =
                                                                            units.scored +
                                                                            begin * rank;
            if (size(unit) == 1) {
                score_single_rows(path, own, n, lost, scored, found, held + unit);
            } else {
                const double* const models = without.without_rows(path, own, n, lost);
                held[unit] = without.held_eigenvalue();
                found.assign(n * stride, 0.0);
                add_cached_product(n, stride, rank, 1.0, {scored, rank, 1}, models, stride,
                                   found.data(), stride);
            }
            for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
                for (std::ptrdiff_t i = 0; i < n; ++i)
                    scores[j * n_rows + begin + i] = found[i * stride + j];
        }
    });
}

void hold_out_sums(const ridge_path& path, std::ptrdiff_t n_units, const double* sums,
                   double* models, double* held, int n_threads) {
    const auto rank = path.rank, width = rank + 1;
    const path_models of_all(path);
    parallel_for(n_units, n_threads, [&](std::ptrdiff_t unit) {
        unit_models without;
        without.sums.assign(sums + unit * width * width, sums + (unit + 1) * width * width);
        const double* const found = without.without_sums(path, of_all);
        held[unit] = without.held_eigenvalue();
        for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
            for (std::ptrdiff_t k = 0; k < rank; ++k)
                models[(unit * path.n_alphas + j) * rank + k] = found[k * of_all.stride + j];
    });
}

}  // namespace pairgram
