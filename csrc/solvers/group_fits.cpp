#include "solvers/group_fits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/half_laplacian.hpp"
#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
// Of all entries, whose squares are numbers.
constexpr double smallest_size = 1e-140, largest_size = 1e150;
constexpr double smallest_weight = 1e-290, largest_weight = 1e303;  // of all pairs
constexpr double vanished = std::numeric_limits<double>::quiet_NaN();
constexpr std::ptrdiff_t most_values = 1 << 19, largest_order = 256;  // of a group
constexpr std::ptrdiff_t largest_own = 48;  // systems of LAPACK are larger
constexpr std::ptrdiff_t targets_at_once = 64;
constexpr std::ptrdiff_t most_narrow = 2000;  // features of which K may lose narrow ones
constexpr double lost = 1e-6;                 // share of a narrow feature
constexpr double least_root = 1e-7;           // share of a pivot's root that is no rounding error
constexpr std::ptrdiff_t values_at_once = 1 << 14;  // of neighbouring groups of one task
constexpr std::ptrdiff_t rows_ahead = 12;           // that are on their way to the cache

// The sum of the sizes of n numbers; NaN or infinity where one is, or where it overflows.
PAIRGRAM_CLONES double size_sum(std::ptrdiff_t n, const double* x) {
    double sums[8] = {};
    std::ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::ptrdiff_t j = 0; j < 8; ++j) sums[j] += std::abs(x[i + j]);
    double sum = 0;
    for (; i < n; ++i) sum += std::abs(x[i]);
    return std::accumulate(sums, sums + 8, sum);
}

// Upper triangle of A (n, n; stride ld) = U with A = UᵀU. False where a pivot is rounding error of
// its diagonal entry.
PAIRGRAM_CLONES bool factor(std::ptrdiff_t n, double* a, std::ptrdiff_t ld, double least) {
    double diagonal[largest_own];
    for (std::ptrdiff_t i = 0; i < n; ++i) diagonal[i] = a[i * ld + i];
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* const row = a + i * ld;
        if (!(row[i] > least * diagonal[i])) return false;
        const double scale = 1 / std::sqrt(row[i]);
        for (std::ptrdiff_t j = i; j < n; ++j) row[j] *= scale;
        for (std::ptrdiff_t k = i + 1; k < n; ++k) {
            const double share = row[k];
            double* const below = a + k * ld;
            for (std::ptrdiff_t j = k; j < n; ++j) below[j] -= share * row[j];
        }
    }
    return true;
}

// B (n, n_targets; stride ld) = (UᵀU)⁻¹ B.
PAIRGRAM_CLONES void substitute(std::ptrdiff_t n, std::ptrdiff_t n_targets, const double* u,
                                double* b, std::ptrdiff_t ld) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* const row = b + i * ld;
        const double inverse = 1 / u[i * ld + i];
        for (std::ptrdiff_t t = 0; t < n_targets; ++t) row[t] *= inverse;
        for (std::ptrdiff_t k = i + 1; k < n; ++k) {
            const double share = u[i * ld + k];
            for (std::ptrdiff_t t = 0; t < n_targets; ++t) b[k * ld + t] -= share * row[t];
        }
    }
    for (std::ptrdiff_t i = n; i-- > 0;) {
        double* const row = b + i * ld;
        const double inverse = 1 / u[i * ld + i];
        for (std::ptrdiff_t t = 0; t < n_targets; ++t) row[t] *= inverse;
        for (std::ptrdiff_t k = 0; k < i; ++k) {
            const double share = u[k * ld + i];
            for (std::ptrdiff_t t = 0; t < n_targets; ++t) b[k * ld + t] -= share * row[t];
        }
    }
}

// Solves systems of group after group in the same memory.
template <class T>
class group_solver {
  public:
    group_solver(const ranking_problem& problem, const query_groups& groups,
                 const given_rows<T>& rows, const node_map<double>* map, double alpha)
        : problem_(problem),
          groups_(groups),
          rows_(rows),
          map_(map),
          alpha_(alpha),
          d_(map ? map->n_outputs : rows.n_columns) {}

    group_state solve(std::ptrdiff_t g, std::ptrdiff_t first_target, double* out) {
        const auto n_targets = static_cast<std::ptrdiff_t>(groups_.n_targets[g]);
        last_query_ = static_cast<std::ptrdiff_t>(groups_.queries[g + 1]);
        first_query_ = static_cast<std::ptrdiff_t>(groups_.queries[g]);
        first_ = problem_.rows.begin(first_query_);
        n_ = problem_.rows.begin(last_query_) - first_;
        if (n_ == 0 || n_ * d_ > most_values || std::min(n_, d_) > largest_order)
            return group_state::unsolved;
        width_ = in_column_groups(d_ + std::min(n_targets, targets_at_once));
        z_.assign(n_ * width_, 0.0);
        if (!load(g)) return group_state::unsolved;
        for (std::ptrdiff_t t = 0; t < n_targets; t += targets_at_once) {
            t_ = std::min(targets_at_once, n_targets - t);
            for (std::ptrdiff_t i = 0; i < n_; ++i)
                std::copy_n(groups_.targets + first_target +
                                (problem_.rows.row(first_ + i) - first_) * n_targets + t,
                            t_, z_.data() + i * width_ + d_);
            if (!transform(t == 0 ? 0 : d_)) return group_state::no_pairs;
            if (t == 0 && !factorise()) return group_state::unsolved;
            solve_targets(out + t * d_, t == 0 && order_ == d_ && d_ <= largest_own);
        }
        return std::isfinite(size_sum(n_targets * d_, out)) ? group_state::solved
                                                            : group_state::unsolved;
    }

    // The sums of the group that was solved last, of weights w; see group_sums.
    void tell(std::ptrdiff_t g, const double* w, const group_sums& out) const {
        double *const squares = out.squares + g * d_, *const products = out.products + g * d_;
        std::fill_n(squares, d_, 0.0);
        std::fill_n(products, d_, 0.0);
        for (std::ptrdiff_t i = 0; i < n_; ++i) {
            const double* const row = z_.data() + i * width_;
            const double score = std::inner_product(row, row + d_, w, 0.0);
            for (std::ptrdiff_t j = 0; j < d_; ++j) {
                squares[j] += row[j] * row[j];
                products[j] += row[j] * score;
            }
        }
        out.pair_weights[g] = pair_weight_;
    }

  private:
    // The features of z (n, width) = [features, targets, zeros]; false where an entry of a row that
    // a map may hide is not finite.
    bool load(std::ptrdiff_t g) {
        const auto n_columns = rows_.n_columns, ld = map_ ? n_columns : width_;
        if (map_) inputs_.assign(n_ * n_columns, 0.0);
        double* const to = map_ ? inputs_.data() : z_.data();
        if (rows_.indices)
            load_sparse(to, ld);
        else
            load_dense(g, to, ld);
        if (!map_) return true;
        if (!std::isfinite(size_sum(n_ * n_columns, to))) return false;
        map_rows(*map_, n_, to, ld, z_.data(), width_);
        return true;
    }

    void load_dense(std::ptrdiff_t g, double* to, std::ptrdiff_t ld) {
        const bool apart = rows_.blocks.size() > 1;
        const T* const block = rows_.blocks[apart ? g : 0];
        const auto n_columns = rows_.n_columns, start = apart ? first_ : 0;
        const auto* const order = problem_.rows.order;
        const auto at = [&](std::ptrdiff_t i) {
            return block + (problem_.rows.row(first_ + i) - start) * n_columns;
        };
        for (std::ptrdiff_t i = 0; i < n_; ++i) {
            if (order && i + rows_ahead < n_)
                for (std::ptrdiff_t j = 0; j < n_columns; j += 64 / std::ptrdiff_t{sizeof(T)})
                    prefetch(at(i + rows_ahead) + j);
            std::copy_n(at(i), n_columns, to + i * ld);
        }
    }

    void load_sparse(double* to, std::ptrdiff_t ld) {
        for (std::ptrdiff_t i = 0; i < n_; ++i) {
            const auto row = problem_.rows.row(first_ + i);
            for (auto e = rows_.bounds[row]; e < rows_.bounds[row + 1]; ++e)
                to[i * ld + rows_.indices[e]] += static_cast<double>(rows_.values[e]);
        }
    }

    // The columns of z from the given one on become those of [H̃, ỹ], query by query; false where no
    // pair counts.
    bool transform(std::ptrdiff_t column) {
        const auto width = width_ - column;
        const bool pointwise = problem_.rule.kind == pair_kind::none;
        bool counts = false;
        pair_weight_ = 0;
        for (auto q = first_query_; q < last_query_; ++q) {
            const auto n = problem_.rows.size(q);
            if (n == 0) continue;
            double* const rows = z_.data() + (problem_.rows.begin(q) - first_) * width_ + column;
            plan_query(problem_, q, nullptr, plan_);
            sums_.reset(plan_.n_levels(), width);
            pivot_.assign(width, 0.0);
            if (!pointwise) std::copy_n(rows + heaviest_row(plan_) * width_, width, pivot_.begin());
            for (std::ptrdiff_t i = 0; i < n; ++i)
                load_row(width, rows + i * width_, pivot_.data(), plan_.weight[i],
                         rows + i * width_, sums_.sum.data() + plan_.level[i] * width);
            transform_rows<double>(n, width, plan_.level.data(), plan_.weight.data(),
                                   plan_.within.data(), plan_, join_of(problem_.rule.kind), rows,
                                   width_, sums_);
            if (!has_pairs(q)) continue;
            counts = true;
            pair_weight_ += plan_.pair_weight > 0 ? plan_.pair_weight : vanished;
        }
        return counts;
    }

    // Whether the planned query has two rows that count, of two labels where these matter; or one,
    // where rows count one by one.
    bool has_pairs(std::ptrdiff_t query) const {
        if (!(problem_.rows.query_weight(query) > 0)) return false;
        const auto kind = problem_.rule.kind;
        const auto& weights =
            kind == pair_kind::none || kind == pair_kind::kept ? plan_.weight : plan_.level_weight;
        const auto n =
            std::count_if(weights.begin(), weights.end(), [](double v) { return v > 0; });
        return n >= (kind == pair_kind::none ? 1 : 2);
    }

    // Whether K would lose narrow features, which G does not.
    bool loses_narrow() {
        if (d_ > most_narrow) return false;
        squares_.assign(d_, 0.0);
        for (std::ptrdiff_t i = 0; i < n_; ++i)
            for (std::ptrdiff_t j = 0; j < d_; ++j)
                squares_[j] += z_[i * width_ + j] * z_[i * width_ + j];
        double widest = 0, narrowest = std::numeric_limits<double>::infinity();
        for (const double square : squares_) {
            widest = std::max(widest, square);
            if (square > 0) narrowest = std::min(narrowest, square);
        }
        return epsilon * widest > lost * narrowest;
    }

    // The Cholesky factor of the smaller system; false where other code is needed.
    bool factorise() {
        if (!(pair_weight_ >= smallest_weight && pair_weight_ <= largest_weight)) return false;
        double size = 0;
        for (std::ptrdiff_t i = 0; i < n_; ++i) size += size_sum(d_, z_.data() + i * width_);
        if (!(size_sum(n_ * width_, z_.data()) < largest_size) ||
            (size > 0 && size < smallest_size))
            return false;
        by_rows_ = n_ < d_ && !loses_narrow();
        order_ = by_rows_ ? n_ : d_;
        ld_ = in_column_groups(order_ + t_);
        system_.assign(order_ * ld_, 0.0);
        if (by_rows_)
            blas::gemm(blas::trans::no, blas::trans::yes, n_, n_, d_, 1.0, z_.data(), width_,
                       z_.data(), width_, 0.0, system_.data(), ld_);
        else if (d_ > largest_own)
            blas::syrk(d_, n_, 1.0, z_.data(), width_, 0.0, system_.data(), ld_);
        else
            for (std::ptrdiff_t a = 0; a < d_; a += column_group)
                add_cached_product(std::min(column_group, d_ - a), width_ - a, n_, 1.0,
                                   {z_.data() + a, 1, width_}, z_.data() + a, width_,
                                   system_.data() + a * ld_ + a, ld_);
        for (std::ptrdiff_t i = 0; i < order_; ++i) system_[i * ld_ + i] += alpha_;
        const double least = std::max(1e-14, 8 * epsilon * static_cast<double>(order_));
        if (order_ > largest_own ? !blas::factor_upper(order_, system_.data(), ld_, least)
                                 : !factor(order_, system_.data(), ld_, least))
            return false;
        double widest = 0, narrowest = std::numeric_limits<double>::infinity();
        for (std::ptrdiff_t i = 0; i < order_; ++i) {
            widest = std::max(widest, system_[i * (ld_ + 1)]);
            narrowest = std::min(narrowest, system_[i * (ld_ + 1)]);
        }
        return alpha_ > 0 || narrowest >= least_root * widest;
    }

    // out (t, d): the models of the targets that z has now. The own products have been `summed`.
    void solve_targets(double* out, bool summed) {
        double* const right = system_.data() + order_;
        const double* const targets = z_.data() + d_;
        if (by_rows_)
            for (std::ptrdiff_t i = 0; i < n_; ++i)
                std::copy_n(targets + i * width_, t_, right + i * ld_);
        else if (!summed)
            blas::gemm(blas::trans::yes, blas::trans::no, d_, t_, n_, 1.0, z_.data(), width_,
                       targets, width_, 0.0, right, ld_);
        if (order_ > largest_own)
            blas::substitute(order_, t_, system_.data(), right, ld_);
        else
            substitute(order_, t_, system_.data(), right, ld_);
        if (by_rows_)
            blas::gemm(blas::trans::yes, blas::trans::no, t_, d_, n_, 1.0, right, ld_, z_.data(),
                       width_, 0.0, out, d_);
        else
            for (std::ptrdiff_t t = 0; t < t_; ++t)
                for (std::ptrdiff_t j = 0; j < d_; ++j) out[t * d_ + j] = right[j * ld_ + t];
    }

    const ranking_problem& problem_;
    const query_groups& groups_;
    const given_rows<T>& rows_;
    const node_map<double>* map_;
    double alpha_, pair_weight_ = 0;
    std::ptrdiff_t d_, first_query_ = 0, last_query_ = 0, first_ = 0, n_ = 0, t_ = 0, width_ = 0;
    bool by_rows_ = false;
    std::ptrdiff_t order_ = 0, ld_ = 0;
    query_plan plan_;
    level_sums sums_;
    buffer<double> inputs_, z_, pivot_, squares_, system_;
};

}  // namespace

template <class T>
void fit_groups(const ranking_problem& problem, const query_groups& groups,
                const given_rows<T>& rows, const node_map<double>* map, double alpha,
                double* weights, group_state* states, const group_sums& sums, int n_threads) {
    const auto n_features = map ? map->n_outputs : rows.n_columns;
    // Neighbouring groups are one task, with about as many values as stay in the cache.
    buffer<std::ptrdiff_t> first_group{0}, first_target{0}, first_model{0};
    std::ptrdiff_t values = 0, n_targets = 0, n_models = 0;
    buffer<std::ptrdiff_t> target(groups.n_groups), model(groups.n_groups);
    for (std::ptrdiff_t g = 0; g < groups.n_groups; ++g) {
        const auto n =
            problem.rows.begin(groups.queries[g + 1]) - problem.rows.begin(groups.queries[g]);
        target[g] = n_targets;
        model[g] = n_models;
        n_targets += n * groups.n_targets[g];
        n_models += groups.n_targets[g];
        values += n * (n_features + groups.n_targets[g]);
        if (values >= values_at_once || g + 1 == groups.n_groups) {
            first_group.push_back(g + 1);
            values = 0;
        }
    }
    const auto n_tasks = static_cast<std::ptrdiff_t>(first_group.size()) - 1;
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        group_solver<T> solver(problem, groups, rows, map, alpha);
        for (auto g = first_group[task]; g < first_group[task + 1]; ++g) {
            double* const out = weights + model[g] * n_features;
            states[g] = solver.solve(g, target[g], out);
            if (states[g] != group_state::solved)
                std::fill_n(out, groups.n_targets[g] * n_features,
                            std::numeric_limits<double>::quiet_NaN());
            else if (sums.squares)
                solver.tell(g, out, sums);
        }
    });
}

template void fit_groups<double>(const ranking_problem&, const query_groups&,
                                 const given_rows<double>&, const node_map<double>*, double,
                                 double*, group_state*, const group_sums&, int);
template void fit_groups<float>(const ranking_problem&, const query_groups&,
                                const given_rows<float>&, const node_map<double>*, double, double*,
                                group_state*, const group_sums&, int);

}  // namespace pairgram
