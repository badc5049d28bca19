#include "solvers/group_fits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// [A, B] (n, n + ·; whole groups of columns) = [D Lᵀ, L⁻¹ B] with A = L D Lᵀ, of which the upper
// triangle is given; the entries of D are inverted. False where a pivot is rounding error of its
// diagonal entry.
PAIRGRAM_CLONES bool eliminate(std::ptrdiff_t n, double* a, std::ptrdiff_t ld, double least) {
    double diagonal[largest_own];
    for (std::ptrdiff_t i = 0; i < n; ++i) diagonal[i] = a[i * ld + i];
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* const row = a + i * ld;
        if (!(row[i] > least * diagonal[i])) return false;
        const double inverse = 1 / row[i];
        for (std::ptrdiff_t k = i + 1; k < n; ++k) {
            const double share = inverse * row[k];
            double* const below = a + k * ld;
            for (auto j = k / column_group * column_group; j < ld; j += column_group)
                for (std::ptrdiff_t l = j; l < j + column_group; ++l) below[l] -= share * row[l];
        }
        row[i] = inverse;
    }
    return true;
}

// B (n, n_targets; stride ld) = (D Lᵀ)⁻¹ B.
PAIRGRAM_CLONES void substitute_back(std::ptrdiff_t n, std::ptrdiff_t n_targets, const double* u,
                                     double* b, std::ptrdiff_t ld) {
    for (std::ptrdiff_t i = n; i-- > 0;) {
        for (std::ptrdiff_t t = 0; t < n_targets; ++t) b[i * ld + t] *= u[i * ld + i];
        for (std::ptrdiff_t k = 0; k < i; ++k) {
            const double share = u[k * ld + i];
            for (std::ptrdiff_t t = 0; t < n_targets; ++t) b[k * ld + t] -= share * b[i * ld + t];
        }
    }
}

// Solves systems of group after group in the same memory.
class group_solver {
  public:
    group_solver(const query_groups& groups, double alpha) : rows_(groups), alpha_(alpha) {}

    group_state solve(std::ptrdiff_t g, std::ptrdiff_t n_targets, const double* targets,
                      double* out) {
        if (!rows_.load(g, n_targets)) return group_state::unsolved;
        rows_.load_targets(targets);
        if (!rows_.transform()) return group_state::no_pairs;
        if (!factorise()) return group_state::unsolved;
        if (rows_.n_loaded > 0)
            solve_targets(out);
        else
            solve_features(targets, n_targets, out);
        return std::isfinite(size_sum(1, n_targets * rows_.d, out, 0)) ? group_state::solved
                                                                       : group_state::unsolved;
    }

    const group_rows& rows() const { return rows_; }

  private:
    // The smaller system, with targets that are loaded, factorised; false where other code is
    // needed.
    bool factorise() {
        if (!rows_.is_usable()) return false;
        const auto n = rows_.n, d = rows_.d, n_targets = rows_.n_loaded;
        by_rows_ = n < d && !rows_.loses_narrow();
        order_ = by_rows_ ? n : d;
        ld_ = in_column_groups(order_ + n_targets);
        system_.assign(order_ * ld_, 0.0);
        const double* const z = rows_.z.data();
        if (by_rows_ || !rows_.add_gram(system_.data(), ld_)) set_right();
        if (by_rows_)
            blas::gemm(blas::trans::no, blas::trans::yes, n, n, d, 1.0, z, rows_.width, z,
                       rows_.width, 0.0, system_.data(), ld_);
        for (std::ptrdiff_t i = 0; i < order_; ++i) system_[i * ld_ + i] += alpha_;
        const double least = std::max(1e-14, 8 * epsilon * static_cast<double>(order_));
        is_own_ = order_ <= largest_own && n_targets > 0;
        return is_own_ ? eliminate(order_, system_.data(), ld_, least)
                       : blas::factor_upper(order_, system_.data(), ld_, least);
    }

    // The right-hand sides of the targets that are loaded.
    void set_right() {
        const auto n = rows_.n, d = rows_.d, width = rows_.width, n_targets = rows_.n_loaded;
        double* const right = system_.data() + order_;
        const double *const z = rows_.z.data(), *const targets = z + d;
        if (by_rows_)
            for (std::ptrdiff_t i = 0; i < n; ++i)
                std::copy_n(targets + i * width, n_targets, right + i * ld_);
        else
            blas::gemm(blas::trans::yes, blas::trans::no, d, n_targets, n, 1.0, z, width, targets,
                       width, 0.0, right, ld_);
    }

    // out (n_targets, d): the models of the targets that are loaded.
    void solve_targets(double* out) {
        const auto n = rows_.n, d = rows_.d, width = rows_.width, n_targets = rows_.n_loaded;
        double* const right = system_.data() + order_;
        const double* const z = rows_.z.data();
        if (is_own_)
            substitute_back(order_, n_targets, system_.data(), right, ld_);
        else
            blas::substitute(false, order_, n_targets, system_.data(), ld_, right, ld_);
        if (by_rows_)
            blas::gemm(blas::trans::yes, blas::trans::no, n_targets, d, n, 1.0, right, ld_, z,
                       width, 0.0, out, d);
        else
            for (std::ptrdiff_t t = 0; t < n_targets; ++t)
                for (std::ptrdiff_t j = 0; j < d; ++j) out[t * d + j] = right[j * ld_ + t];
    }

    // out (n_targets, d): the models of more targets, which are W = ŷᵀR H̃ (G + alpha I)⁻¹. R is
    // symmetric, since rows of several targets have no weights, and R of the constant is 0.
    void solve_features(const double* targets, std::ptrdiff_t n_targets, double* out) {
        const auto other = by_rows_ ? rows_.d : rows_.n;
        blas::substitute(!by_rows_, order_, other, system_.data(), ld_, rows_.z.data(),
                         rows_.width);
        rows_.transform();
        rows_.multiply_targets(targets, n_targets, out);
    }

    group_rows rows_;
    double alpha_;
    bool by_rows_ = false, is_own_ = false;
    std::ptrdiff_t order_ = 0, ld_ = 0;
    buffer<double> system_;
};

}  // namespace

void fit_groups(const query_groups& groups, double alpha, double* weights, group_state* states,
                const group_sums& sums, int n_threads) {
    const auto n_features = groups.n_features();
    const auto first_group = tasks_of(groups);
    buffer<std::ptrdiff_t> first_target(groups.n_groups + 1, 0), model(groups.n_groups + 1, 0);
    for (std::ptrdiff_t g = 0; g < groups.n_groups; ++g) {
        first_target[g + 1] = first_target[g] + groups.n_rows(g) * groups.n_targets[g];
        model[g + 1] = model[g] + groups.n_targets[g];
    }
    const auto n_tasks = length_of(first_group) - 1;
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        group_solver solver(groups, alpha);
        for (auto g = first_group[task]; g < first_group[task + 1]; ++g) {
            double* const out = weights + model[g] * n_features;
            states[g] = solver.solve(g, groups.n_targets[g], groups.targets + first_target[g], out);
            if (states[g] != group_state::solved)
                std::fill_n(out, groups.n_targets[g] * n_features,
                            std::numeric_limits<double>::quiet_NaN());
            else if (sums.squares)
                solver.rows().tell(g, out, sums);
        }
    });
}

}  // namespace pairgram
