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
constexpr double smallest_ridge = 1e-10;  // relative to λ_max, for conjugate gradients
constexpr double smallest_pivot = 5e-11;  // of I − E A⁻¹ Eᵀ: below, the solution is rounding error
constexpr double all_but = 1e-4;          // of an eigenvalue: a unit that leaves less holds it
constexpr std::ptrdiff_t few_rows = 32;   // that are solved for all ridges at once
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

// out = factor a
PAIRGRAM_CLONES void multiply(std::ptrdiff_t n, const column_range& columns, const double* factor,
                              const double* a, double* out) {
    for (std::ptrdiff_t at = 0; at < n * columns.stride; at += columns.stride)
        for (auto j = at + columns.from; j < at + columns.to; ++j) out[j] = factor[j] * a[j];
}

// out = first + factor second, with factors (stride,) for all rows, or (n, stride)
template <bool OfRows>
PAIRGRAM_CLONES void combine(std::ptrdiff_t n, const column_range& columns, const double* factor,
                             const double* first, const double* second, double* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const auto row = i * columns.stride;
        for (auto j = columns.from; j < columns.to; ++j)
            out[row + j] = first[row + j] + factor[OfRows ? row + j : j] * second[row + j];
    }
}

// x (n, stride) = M⁻¹ x for the positive definite matrix M = L D Lᵀ of every column: entry (i, j)
// of the lower triangle stands at row i (i + 1) / 2 + j of `factors`, where L takes its place and 1
// / D that of its diagonal. NaN where a pivot is rounding error.
template <std::size_t Bytes, int Groups>
PAIRGRAM_CLONES void solve_group(std::ptrdiff_t n, std::ptrdiff_t stride, double* factors,
                                 double* x) {
    constexpr int width = Groups * column_group;
    lanes_in<double, column_group, Bytes> sum[Groups], a, b;
    double sure[width];
    std::fill_n(sure, width, 1.0);
    const auto entry = [&](std::ptrdiff_t i, std::ptrdiff_t j) {
        return factors + (i * (i + 1) / 2 + j) * stride;
    };
    const auto set = [&](const double* from) {
#pragma GCC unroll 5
        for (int g = 0; g < Groups; ++g) load(from + g * column_group, sum[g]);
    };
    const auto subtract = [&](const double* first, const double* second) {
#pragma GCC unroll 5
        for (int g = 0; g < Groups; ++g) {
            load(first + g * column_group, a);
            load(second + g * column_group, b);
            subtract_product(sum[g], a, b);
        }
    };
    const auto finish = [&](double* to) {
#pragma GCC unroll 5
        for (int g = 0; g < Groups; ++g) store(sum[g], to + g * column_group);
    };
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* const pivot = entry(i, i);
        for (std::ptrdiff_t j = 0; j < i; ++j) {
            double* const own = entry(i, j);
            set(own);
            for (std::ptrdiff_t l = 0; l < j; ++l) subtract(entry(i, l), entry(j, l));
            finish(own);  // times the pivot of j
        }
        for (std::ptrdiff_t j = 0; j < i; ++j) {
            double *const own = entry(i, j), *const inverse = entry(j, j);
#pragma GCC ivdep
            for (int k = 0; k < width; ++k) {
                const double scaled = own[k] * inverse[k];
                pivot[k] -= own[k] * scaled;
                own[k] = scaled;
            }
        }
        for (int k = 0; k < width; ++k) {
            sure[k] = pivot[k] < smallest_pivot ? nan : sure[k];
            pivot[k] = 1 / pivot[k];
        }
        set(x + i * stride);
        for (std::ptrdiff_t l = 0; l < i; ++l) subtract(entry(i, l), x + l * stride);
        finish(x + i * stride);
    }
    for (auto i = n - 1; i >= 0; --i) {
        double *const own = x + i * stride, *const inverse = entry(i, i);
#pragma GCC ivdep
        for (int k = 0; k < width; ++k) own[k] *= inverse[k];
        set(own);
        for (auto l = i + 1; l < n; ++l) subtract(entry(l, i), x + l * stride);
        finish(own);
    }
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (int k = 0; k < width; ++k) x[i * stride + k] *= sure[k];
}

void solve_columns(std::ptrdiff_t n, std::ptrdiff_t stride, double* factors, double* x) {
    const bool wide = has_wide_registers();
    constexpr int together = 5;  // groups, as many as the default ridges have
    const auto many =
        wide ? solve_group<wide_bytes, together> : solve_group<narrow_bytes, together>;
    const auto one = wide ? solve_group<wide_bytes, 1> : solve_group<narrow_bytes, 1>;
    for (std::ptrdiff_t c = 0; c < stride;) {
        const auto n_groups = c + together * column_group <= stride ? together : 1;
        (n_groups > 1 ? many : one)(n, stride, factors + c, x + c);
        c += n_groups * column_group;
    }
}

// The lower triangle of I − D S D for every column of D, (n, stride), as solve_columns takes it.
PAIRGRAM_CLONES void set_factors(std::ptrdiff_t n, std::ptrdiff_t stride, const double* sums,
                                 std::ptrdiff_t ld, const double* roots, double* factors) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j <= i; ++j, factors += stride)
            for (std::ptrdiff_t k = 0; k < stride; ++k)
                factors[k] = (i == j ? 1.0 : 0.0) -
                             sums[i * ld + j] * roots[i * stride + k] * roots[j * stride + k];
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

}  // namespace

double ridge_path::largest() const {
    return rank == 0 ? 0.0 : *std::max_element(eigenvalues, eigenvalues + rank);
}

path_models::path_models(const ridge_path& path, double scale)
    : stride(in_column_groups(path.n_alphas)),
      ridges(stride, 1.0),
      inverse(path.rank * stride),
      roots(path.rank * stride),
      coef(path.rank * stride) {
    for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
        ridges[j] = scale > 0 ? path.alphas[j] / scale : std::numeric_limits<double>::infinity();
    for (std::ptrdiff_t k = 0; k < path.rank; ++k)
        for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j) {
            const double shifted = path.eigenvalues[k] + ridges[j];
            inverse[k * stride + j] = shifted > 0 ? 1 / shifted : 0.0;
            coef[k * stride + j] = path.projection[k] * inverse[k * stride + j];
        }
    for (std::ptrdiff_t at = 0; at < path.rank * stride; ++at) roots[at] = std::sqrt(inverse[at]);
}

void unit_models::make_sums(const ridge_path& path, std::ptrdiff_t n) {
    const auto width = path.rank + 1;
    sums.resize(width * width);
    blas::syrk(width, n, 1.0, lost_, width, 0.0, sums.data(), width);
}

// Conjugate gradients from the right-hand sides r_, (n, stride), at 0. product(columns) makes u_
// and q_ of p_: the change of the models, but for its sign, and the product with the matrix, which
// is p_ less something. Alphas descend, so the columns that have not converged are a suffix; a
// column beside them in its group takes steps of 0. Returns the first of them.
template <class Product>
std::ptrdiff_t unit_models::iterate(const ridge_path& path, const path_models& models,
                                    std::ptrdiff_t n, const Product& product) {
    const auto rank = path.rank, stride = models.stride;
    for (auto* matrix : {&p_, &q_}) matrix->resize(n * stride);
    u_.resize(rank * stride);
    for (auto* row : {&rr_, &pq_, &step_}) row->resize(stride);
    const double smallest = smallest_ridge * path.largest();
    const auto n_columns =
        std::partition_point(models.ridges.begin(), models.ridges.begin() + path.n_alphas,
                             [&](double ridge) { return ridge >= smallest; }) -
        models.ridges.begin();
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
        product(columns);
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
        combine<false>(rank, columns, step_.data(), change_.data(), u_.data(), change_.data());
        ratio(rr_, pq_);
        combine<false>(n, columns, step_.data(), r_.data(), p_.data(), p_.data());
        from = unconverged(from);
    }
    for (std::ptrdiff_t at = 0; at < rank * stride; ++at) u_[at] = models.coef[at] + change_[at];
    return from;
}

const double* unit_models::without_rows(const ridge_path& path, const path_models& models,
                                        std::ptrdiff_t n, const double* lost) {
    lost_ = lost;
    const auto rank = path.rank, stride = models.stride;
    // The multiplications of some iterations, and of the sums; few rows take fewer.
    if (rank * (n / 2 + 16 * stride) < std::min(few_rows, n) * n * stride) {
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
    if (n <= few_rows) {
        solve_at_once(path, models, n);
        return u_.data();
    }
    first_ = r_;
    const auto from = iterate(path, models, n, [&](const column_range& columns) {
        const auto width = columns.to - columns.from;
        for (std::ptrdiff_t k = 0; k < rank; ++k)
            std::fill_n(u_.begin() + k * stride + columns.from, width, 0.0);
        add_cached_product(rank, width, n, 1.0, {lost_, 1, rank + 1}, p_.data() + columns.from,
                           stride, u_.data() + columns.from, stride);
        multiply(rank, columns, models.inverse.data(), u_.data(), u_.data());  // A⁻¹ Bᵀ p
        q_ = p_;
        add_cached_product(n, width, rank, -1.0, {lost_, rank + 1, 1}, u_.data() + columns.from,
                           stride, q_.data() + columns.from, stride);
    });
    if (n > rank && from < path.n_alphas) make_sums(path, n);
    for (auto j = from; j < path.n_alphas; ++j)
        n > rank ? solve_sums(path, models, j) : solve_rows(path, models, n, j);
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
    solve_columns(n, stride, factors_.data(), r_.data());
    u_.assign(rank * stride, 0.0);
    add_cached_product(rank, stride, n, -1.0, {lost_, 1, rank + 1}, r_.data(), stride, u_.data(),
                       stride);
    multiply(rank, {0, stride, stride}, models.inverse.data(), u_.data(), u_.data());
    for (std::ptrdiff_t at = 0; at < rank * stride; ++at) u_[at] += models.coef[at];
}

// Column j of the models from (I − B A⁻¹ Bᵀ) x = targets − B w, whose right-hand side is first_.
void unit_models::solve_rows(const ridge_path& path, const path_models& models, std::ptrdiff_t n,
                             std::ptrdiff_t j) {
    check_interrupt();
    const auto rank = path.rank, stride = models.stride;
    scaled_.resize(n * rank);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t k = 0; k < rank; ++k)
            scaled_[i * rank + k] = lost_[i * (rank + 1) + k] * models.roots[k * stride + j];
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
        u_[at] = solved ? models.coef[at] - sum * models.roots[at] : nan;
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
        scaled_[k] = models.roots[k * stride + j];
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
    const auto rank = path.rank, stride = models.stride;
    held_ = pairgram::held_eigenvalue(path, sums.data(), rank + 2);
    const column_range all(0, stride, stride);
    r_.resize(rank * stride);
    for (std::ptrdiff_t i = 0; i < rank; ++i) {
        for (std::ptrdiff_t j = 0; j < i; ++j) sums[i * (rank + 1) + j] = sums[j * (rank + 1) + i];
        std::fill_n(r_.begin() + i * stride, stride, sums[i * (rank + 1) + rank]);
    }
    const auto subtract = [&](const column_range& columns, const double* from, double* to) {
        add_cached_product(rank, columns.to - columns.from, rank, -1.0, {sums.data(), rank + 1, 1},
                           from + columns.from, stride, to + columns.from, stride);
    };
    subtract(all, models.coef.data(), r_.data());
    multiply(rank, all, models.roots.data(), r_.data(), r_.data());
    if (rank <= few_rows) {
        factors_.resize(rank * (rank + 1) / 2 * stride);
        set_factors(rank, stride, sums.data(), rank + 1, models.roots.data(), factors_.data());
        solve_columns(rank, stride, factors_.data(), r_.data());
        u_ = models.coef;
        for (std::ptrdiff_t at = 0; at < rank * stride; ++at) u_[at] -= models.roots[at] * r_[at];
        return u_.data();
    }
    const auto from = iterate(path, models, rank, [&](const column_range& columns) {
        multiply(rank, columns, models.roots.data(), p_.data(), u_.data());  // A^-½ p
        std::fill(q_.begin(), q_.end(), 0.0);
        subtract(columns, u_.data(), q_.data());
        combine<true>(rank, columns, models.roots.data(), p_.data(), q_.data(), q_.data());
    });
    for (auto j = from; j < path.n_alphas; ++j) solve_sums(path, models, j);
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

}  // namespace

void hold_out(const ridge_path& path, const given_units& units, double* scores, double* held,
              int n_threads) {
    const auto rank = path.rank, n_rows = static_cast<std::ptrdiff_t>(units.offsets[units.n_units]);
    const auto size = [&](auto u) { return units.offsets[u + 1] - units.offsets[u]; };
    const auto batches = runs_of(units.n_units, batch_rows, size);
    const path_models of_ones(path);
    const auto stride = of_ones.stride;
    parallel_for(length_of(batches) - 1, n_threads, [&](auto task) {
        unit_models without;
        buffer<double> found;
        path_models own = of_ones;
        double scale = 1;
        for (auto unit = batches[task], next = unit; unit < batches[task + 1]; unit = next) {
            const auto scale_of = [&](auto u) { return units.scales ? units.scales[u] : 1.0; };
            if (scale_of(unit) != scale) own = path_models(path, scale = scale_of(unit));
            do ++next;
            while (size(unit) == 1 && next < batches[task + 1] && size(next) == 1 &&
                   scale_of(next) == scale);
            const auto begin = units.offsets[unit], n = units.offsets[next] - begin;
            const double* const lost = units.lost + begin * (rank + 1);
            const double* const scored = units.scored + begin * rank;
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

}  // namespace pairgram
