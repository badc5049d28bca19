#include "solvers/group_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "solvers/hold_out.hpp"
#include "solvers/ties.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double nothing_left = 1e-14;  // of the weight of all rows
constexpr double least_pivot = 1e-12;   // of a refit, whose diagonal is 1

// Searches a group.
class group_searcher {
  public:
    group_searcher(const query_groups& groups, const search_grid& grid)
        : rows_(groups), targets_(groups.targets), grid_(grid) {}

    // Where the rows of all groups that are searched, n_positions, begin at `start`.
    group_state search(std::ptrdiff_t g, std::ptrdiff_t start, std::ptrdiff_t n_positions,
                       const found_paths& out) {
        const auto d = rows_.d, m = grid_.n_alphas;
        if (!rows_.load(g, 1)) return group_state::unsolved;
        rows_.load_targets(targets_ + rows_.first);
        const auto n = rows_.n;
        features_.resize(n * (d + 1));
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy_n(rows_.z.data() + i * rows_.width, d + 1, features_.data() + i * (d + 1));
        if (!rows_.transform()) return group_state::no_pairs;
        if (!rows_.is_usable() || rows_.loses_narrow() || !decompose())
            return group_state::unsolved;
        const auto at = g - out.first;
        set_alphas();
        const ridge_path path{rank_, values_.data(), projection_.data(), length_of(alphas_),
                              alphas_.data()};
        const auto n_added = path.n_alphas - m;
        scores_.assign(path.n_alphas * n, 0.0);
        if (!hold_out_units(path)) return group_state::unsolved;
        // What has no digits left is solved anew for folds.
        if (grid_.units && !std::isfinite(size_sum(1, path.n_alphas * n, scores_.data(), 0)))
            return group_state::unsolved;
        join(path);
        for (std::ptrdiff_t j = 0; j < m; ++j)
            std::copy_n(scores_.data() + (j + n_added) * n, n,
                        out.scores + j * n_positions + rows_.first - start);
        std::copy_n(alphas_.data() + n_added, m, out.alphas + at * m);
        write_models(path, n_added, out.models + at * m * d);
        if (out.grams) {
            std::copy_n(gram_.data(), d * d, out.grams + at * d * d);
            out.pair_weights[at] = rows_.pair_weight;
        }
        return group_state::solved;
    }

  private:
    // V and Λ of the smaller matrix, 0 in place of the projection of directions that are null but
    // for rounding.
    bool decompose() {
        const auto n = rows_.n, d = rows_.d, width = rows_.width;
        const double* const z = rows_.z.data();
        const bool by_rows = n < d;
        rank_ = by_rows ? n : d;
        columns_ = in_column_groups(rank_);
        values_.resize(rank_);
        projection_.assign(rank_, 0.0);
        basis_.assign(d * columns_, 0.0);
        turned_.assign(n * columns_, 0.0);
        buffer<double> vectors(rank_ * rank_);
        if (by_rows) {
            gram_.assign(d * d, 0.0);
            blas::gemm(blas::trans::no, blas::trans::yes, n, n, d, 1.0, z, width, z, width, 0.0,
                       vectors.data(), n);
        } else {
            gram_.assign(d * width, 0.0);
            rows_.add_gram(gram_.data(), width);
            for (std::ptrdiff_t i = 0; i < d; ++i)
                std::copy_n(gram_.data() + i * width, d, vectors.data() + i * d);
            gram_.assign(vectors.begin(), vectors.end());
        }
        if (!blas::eigen(rank_, vectors.data(), values_.data())) return false;
        const double largest = std::max(values_[rank_ - 1], 0.0);
        const double least = epsilon * static_cast<double>(std::max(rank_, d)) * largest;
        for (std::ptrdiff_t k = 0; k < rank_; ++k) {
            const bool null = !(values_[k] > least);
            const double* const vector = vectors.data() + k * rank_;
            values_[k] = std::max(values_[k], 0.0);
            if (null && by_rows) {
                values_[k] = 0;
                continue;
            }
            const double root = std::sqrt(values_[k]);
            for (std::ptrdiff_t j = 0; j < d && !by_rows; ++j)
                basis_[j * columns_ + k] = gram_[j * d + j] > 0 ? vector[j] : 0.0;
            for (std::ptrdiff_t i = 0; i < n && by_rows; ++i) {
                turned_[i * columns_ + k] = root * vector[i];
                for (std::ptrdiff_t j = 0; j < d; ++j)
                    basis_[j * columns_ + k] += vector[i] / root * z[i * width + j];
            }
        }
        if (!by_rows) turn(n, z, width, turned_.data());
        for (std::ptrdiff_t k = 0; k < rank_; ++k)
            if (values_[k] > least)
                for (std::ptrdiff_t i = 0; i < n; ++i)
                    projection_[k] += turned_[i * columns_ + k] * z[i * width + d];
        return true;
    }

    // out (n, columns) += rows (n, d; stride ld) times the basis. The bits of a row do not depend
    // on its place, so equal rows have equal scores.
    void turn(std::ptrdiff_t n, const double* rows, std::ptrdiff_t ld, double* out) const {
        add_cached_product(n, columns_, rows_.d, 1.0, {rows, ld, 1}, basis_.data(), columns_, out,
                           columns_);
    }

    // One that is at least λ_max comes first, where it is not there: ties are found by it.
    void set_alphas() {
        const double found = *std::max_element(values_.begin(), values_.end());
        const double largest = found > 0 ? found : 1.0;
        alphas_.clear();
        if (grid_.given) {
            if (!(grid_.given[0] >= found)) alphas_.push_back(found);
            alphas_.insert(alphas_.end(), grid_.given, grid_.given + grid_.n_alphas);
            return;
        }
        for (std::ptrdiff_t j = 0; j < grid_.n_multiples; ++j)
            alphas_.push_back(largest * grid_.multiples[j]);
        for (std::ptrdiff_t j = 0; j < grid_.n_alphas - grid_.n_multiples; ++j)
            alphas_.push_back(largest / 1e4 * grid_.powers[j]);
    }

    // Whether a unit holds so much of a direction that its models need refits.
    bool loses(double held, const ridge_path& path) const {
        return std::sqrt(held * path.largest()) > grid_.most_held * path.alphas[path.n_alphas - 1];
    }

    // The unit of a row of the group, where units are given.
    std::int64_t unit(std::ptrdiff_t i) const { return grid_.units[rows_.first + i]; }

    // Members, which are queries or rows, in the order of their units, and where each unit begins.
    template <class UnitOf>
    void set_units(buffer<std::ptrdiff_t> members, const UnitOf& unit_of) {
        members_ = std::move(members);
        const bool given = grid_.units != nullptr;
        if (given)
            std::stable_sort(members_.begin(), members_.end(),
                             [&](auto a, auto b) { return unit_of(a) < unit_of(b); });
        bounds_.assign(1, 0);
        const auto n = length_of(members_);
        for (std::ptrdiff_t i = 1; i <= n; ++i)
            if (i == n || !given || unit_of(members_[i]) != unit_of(members_[i - 1]))
                bounds_.push_back(i);
    }

    bool hold_out_units(const ridge_path& path) {
        if (grid_.units && unit(0) < 0) return false;
        buffer<std::ptrdiff_t> filled;
        for (auto q = rows_.first_query; q < rows_.last_query; ++q)
            if (rows_.problem().rows.size(q) > 0) filled.push_back(q);
        by_rows_ = filled.size() == 1;
        if (by_rows_) {
            buffer<std::ptrdiff_t> rows(rows_.n);
            std::iota(rows.begin(), rows.end(), std::ptrdiff_t{0});
            set_units(std::move(rows), [&](auto i) { return unit(i); });
            return bounds_.size() > 2 && hold_out_rows(path);
        }
        const auto unit_of = [&](auto q) { return unit(rows_.begin(q)); };
        set_units(rows_.lists, unit_of);
        if (bounds_.size() < 3) return false;
        set_units(std::move(filled), unit_of);
        return hold_out_queries(path);
    }

    bool hold_out_queries(const ridge_path& path) {
        const auto n = rows_.n, d = rows_.d, n_queries = rows_.last_query - rows_.first_query;
        const bool pointwise = rows_.problem().rule.kind == pair_kind::none;
        // Rows are taken from the first of their query, so that a large offset costs no digits.
        buffer<double> pivots(n_queries * d, 0.0), of_pivots(n_queries * columns_, 0.0);
        buffer<double> of_rows(n * columns_, 0.0);
        for (std::ptrdiff_t q = 0; q < n_queries && !pointwise; ++q) {
            const auto begin = rows_.begin(rows_.first_query + q),
                       end = rows_.begin(rows_.first_query + q + 1);
            if (begin == end) continue;
            std::copy_n(features_.data() + begin * (d + 1), d, pivots.data() + q * d);
            for (auto i = begin; i < end; ++i)
                for (std::ptrdiff_t j = 0; j < d; ++j)
                    features_[i * (d + 1) + j] -= pivots[q * d + j];
        }
        turn(n, features_.data(), d + 1, of_rows.data());
        turn(n_queries, pivots.data(), d, of_pivots.data());
        const path_models models(path);
        const auto stride = models.stride;
        for (std::size_t u = 0; u + 1 < bounds_.size(); ++u) {
            lost_.clear();
            for (auto at = bounds_[u]; at < bounds_[u + 1]; ++at)
                for (auto i = rows_.begin(members_[at]); i < rows_.begin(members_[at] + 1); ++i) {
                    const double* const row = turned_.data() + i * columns_;
                    lost_.insert(lost_.end(), row, row + rank_);
                    lost_.push_back(rows_.z[i * rows_.width + d]);
                }
            const auto n_lost = length_of(lost_) / (rank_ + 1);
            const double* const without = units_.without_rows(path, models, n_lost, lost_.data());
            if (loses(units_.held_eigenvalue(), path)) {
                if (!refit(path, bounds_[u], bounds_[u + 1], pivots.data())) return false;
                continue;
            }
            for (auto at = bounds_[u]; at < bounds_[u + 1]; ++at) {
                const auto q = members_[at], begin = rows_.begin(q);
                const auto size = rows_.begin(q + 1) - begin;
                found_.assign((size + 1) * stride, 0.0);
                add_cached_product(size, stride, rank_, 1.0,
                                   {of_rows.data() + begin * columns_, columns_, 1}, without,
                                   stride, found_.data(), stride);
                const double* const pivot = of_pivots.data() + (q - rows_.first_query) * columns_;
                add_cached_product(1, stride, rank_, 1.0, {pivot, columns_, 1}, without, stride,
                                   found_.data() + size * stride, stride);
                for (std::ptrdiff_t i = 0; i < size; ++i)
                    for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
                        scores_[j * n + begin + i] =
                            found_[i * stride + j] + found_[size * stride + j];
            }
        }
        return true;
    }

    // The scores of a unit, the members from first to last, by models of the sums of all other
    // rows: identities would lose the digits of a direction of which it has nearly all. False for
    // large systems.
    bool refit(const ridge_path& path, std::ptrdiff_t first, std::ptrdiff_t last,
               const double* pivots) {
        const auto n = rows_.n, d = rows_.d, width = rows_.width;
        if (d > largest_own) return false;
        buffer<double> others(rows_.z), sums((d + 1) * (d + 1)), system(d * d), w(d);
        for (auto at = first; at < last; ++at) {
            const auto q = members_[at], begin = rows_.begin(q), end = rows_.begin(q + 1);
            std::fill(others.begin() + begin * width, others.begin() + end * width, 0.0);
        }
        blas::syrk(d + 1, n, 1.0, others.data(), width, 0.0, sums.data(), d + 1);
        for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j) {
            const auto root = [&](std::ptrdiff_t k) {
                return std::sqrt(sums[k * (d + 2)] + path.alphas[j]);
            };
            for (std::ptrdiff_t k = 0; k < d; ++k) {
                for (std::ptrdiff_t i = 0; i < k; ++i)
                    system[k * d + i] = sums[i * (d + 1) + k] / (root(i) * root(k));
                system[k * d + k] = 1;
                w[k] = sums[k * (d + 1) + d] / root(k);
            }
            if (!(blas::cholesky_solve(d, system.data(), w.data()) > least_pivot)) return false;
            for (std::ptrdiff_t k = 0; k < d; ++k) w[k] /= root(k);
            for (auto at = first; at < last; ++at) {
                const auto q = members_[at];
                const double* const pivot = pivots + (q - rows_.first_query) * d;
                for (auto i = rows_.begin(q); i < rows_.begin(q + 1); ++i) {
                    const double* const row = features_.data() + i * (d + 1);
                    scores_[j * n + i] = std::inner_product(row, row + d, w.data(), 0.0) +
                                         std::inner_product(pivot, pivot + d, w.data(), 0.0);
                }
            }
        }
        return true;
    }

    // What the scatter of rows of so much weight is multiplied by.
    double scatter_factor(double weight) const {
        const bool pointwise = rows_.problem().rule.kind == pair_kind::none;
        if (!(weight > 0)) return 0;
        switch (rows_.problem().rule.weighting) {
            case weighting_kind::pairs:
                return pointwise ? 1 : weight;
            case weighting_kind::documents:
                return 1;
            case weighting_kind::queries:
                return (pointwise ? 1 : 2) / weight;
        }
        return 0;
    }

    // The pairs with ties of one query are ridge regression with an intercept that has no ridge.
    // Scores are measured from the mean of the other rows. Where units are folds, the mean target
    // of the other rows is added. Where single rows are held out it is not: it would fall as the
    // target of the row rises, and so would turn the order of the rows round.
    bool hold_out_rows(const ridge_path& whole) {
        const auto& problem = rows_.problem();
        const auto n = rows_.n, d = rows_.d, ld = rank_ + 1;
        const bool pointwise = problem.rule.kind == pair_kind::none;
        if (!pointwise && (problem.rule.kind != pair_kind::kept || grid_.started)) return false;
        auto query = rows_.first_query;
        while (problem.rows.size(query) == 0) ++query;
        const auto n_units = length_of(bounds_) - 1;
        buffer<double> v(n), mean(d + 1, 0.0), z(n * columns_, 0.0), scales(n_units), held(n_units);
        buffer<double> share(ld), found(whole.n_alphas * n), levels(n, 0.0);
        for (std::ptrdiff_t i = 0; i < n; ++i) v[i] = problem.rows.row_weight(rows_.row(i));
        const double weight = std::accumulate(v.begin(), v.end(), 0.0);
        const auto n_counted = std::count_if(v.begin(), v.end(), [](double x) { return x > 0; });
        const double own_weight = problem.rows.query_weight(query);
        const double factor = scatter_factor(weight) * own_weight;
        if (!(factor > 0)) return false;
        double mean_target = 0;
        for (std::ptrdiff_t i = 0; i < n; ++i) mean_target += v[i] / weight * target(i);
        if (!pointwise) {
            const buffer<double> pivot(features_.begin(), features_.begin() + d + 1);
            for (std::ptrdiff_t i = 0; i < n; ++i)
                for (std::ptrdiff_t j = 0; j <= d; ++j) {
                    features_[i * (d + 1) + j] -= pivot[j];
                    mean[j] += v[i] / weight * features_[i * (d + 1) + j];
                }
            for (std::ptrdiff_t i = 0; i < n; ++i)
                for (std::ptrdiff_t j = 0; j <= d; ++j) features_[i * (d + 1) + j] -= mean[j];
        }
        turn(n, features_.data(), d + 1, z.data());
        buffer<double> scored(n * rank_), values(values_), projection(projection_);
        for (double& value : values) value /= factor;
        for (double& value : projection) value /= factor;
        lost_.resize(n * ld);
        const buffer<std::int64_t> offsets(bounds_.begin(), bounds_.end());
        for (std::ptrdiff_t u = 0; u < n_units; ++u) {
            double lost = 0;
            std::fill(share.begin(), share.end(), 0.0);
            for (auto at = bounds_[u]; at < bounds_[u + 1]; ++at) {
                const auto i = members_[at];
                double* const own = lost_.data() + at * ld;
                std::copy_n(z.data() + i * columns_, rank_, own);
                own[rank_] = features_[i * (d + 1) + d];
                for (std::ptrdiff_t k = 0; k < ld; ++k) share[k] += v[i] * own[k];
                lost += v[i];
            }
            const auto n_left = n_counted - std::count_if(members_.begin() + bounds_[u],
                                                          members_.begin() + bounds_[u + 1],
                                                          [&](auto i) { return v[i] > 0; });
            if (grid_.units && n_left < (pointwise ? 1 : 2)) return false;
            const double left = weight - lost > nothing_left * weight ? weight - lost : 0.0;
            scales[u] = scatter_factor(left) * own_weight;
            const bool shares = !pointwise && scales[u] > 0;
            const double of_mean = shares ? 1 / (1 + std::sqrt(weight / left)) : 0.0;
            for (double& value : share) value = shares ? value / left : 0.0;
            const double level = shares && grid_.units ? mean_target - share[rank_] : 0.0;
            std::fill(levels.begin() + bounds_[u], levels.begin() + bounds_[u + 1], level);
            for (auto at = bounds_[u]; at < bounds_[u + 1]; ++at) {
                const double root = std::sqrt(v[members_[at]]);
                double* const own = lost_.data() + at * ld;
                for (std::ptrdiff_t k = 0; k < ld; ++k) {
                    if (k < rank_) scored[at * rank_ + k] = own[k] + share[k];
                    own[k] = root * (own[k] + of_mean * share[k]);
                }
            }
        }
        const ridge_path path{rank_, values.data(), projection.data(), whole.n_alphas,
                              whole.alphas};
        hold_out(path, {n_units, offsets.data(), lost_.data(), scored.data(), scales.data()},
                 found.data(), held.data(), 1);
        for (std::ptrdiff_t j = 0; j < whole.n_alphas; ++j)
            for (std::ptrdiff_t at = 0; at < n; ++at)
                scores_[j * n + members_[at]] = found[j * n + at] + levels[at];
        // Without a single row there is little to refit.
        return !grid_.units || !loses(*std::max_element(held.begin(), held.end()), path);
    }

    // Rows of a query that tie whatever the ridge get equal scores, if one unit has them.
    void join(const ridge_path& path) {
        const auto n = rows_.n, n_queries = rows_.last_query - rows_.first_query;
        buffer<std::int64_t> offsets(n_queries + 1);
        double spread = 0;
        const bool pointwise = rows_.problem().rule.kind == pair_kind::none;
        for (std::ptrdiff_t q = 0; q < n_queries; ++q) {
            const auto begin = rows_.begin(rows_.first_query + q),
                       end = rows_.begin(rows_.first_query + q + 1);
            offsets[q + 1] = end;
            if (begin == end) continue;
            double lowest = target(begin), highest = lowest;
            for (auto i = begin; i < end; ++i) {
                lowest = std::min(lowest, target(i));
                highest = std::max(highest, target(i));
            }
            spread = std::max(spread, pointwise ? std::max(std::abs(lowest), std::abs(highest))
                                                : highest - lowest);
        }
        const double largest = path.largest();
        const double least =
            std::max(grid_.least_share * largest, std::numeric_limits<double>::min());
        buffer<double> amplification(path.n_alphas);
        for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
            amplification[j] = largest / std::max(path.alphas[j], least);
        const tie_tolerance tolerance{grid_.rounding, spread, amplification.data()};
        query_rows lists{n_queries, offsets.data(), nullptr};
        const buffer<std::int64_t> order(members_.begin(), members_.end());
        if (by_rows_ && grid_.units) {
            offsets.assign(bounds_.begin(), bounds_.end());
            lists = {length_of(bounds_) - 1, offsets.data(), order.data()};
        }
        join_ties(lists, path.n_alphas, n, tolerance, scores_.data(), 1);
    }

    double target(std::ptrdiff_t i) const { return targets_[rows_.row(i)]; }

    // out (n_alphas, d)
    void write_models(const ridge_path& path, std::ptrdiff_t n_added, double* out) {
        const auto d = rows_.d;
        const path_models models(path);
        found_.assign(d * models.stride, 0.0);
        add_cached_product(d, models.stride, rank_, 1.0, {basis_.data(), columns_, 1},
                           models.coef.data(), models.stride, found_.data(), models.stride);
        for (std::ptrdiff_t j = 0; j < grid_.n_alphas; ++j)
            for (std::ptrdiff_t k = 0; k < d; ++k)
                out[j * d + k] = found_[k * models.stride + j + n_added];
    }

    group_rows rows_;
    const double* targets_;
    const search_grid& grid_;
    std::ptrdiff_t rank_ = 0, columns_ = 0;  // in whole groups of columns
    buffer<double> features_;                // (n, d + 1) and the target, as they were given
    buffer<double> gram_;                    // (d, d)
    buffer<double> values_, projection_;     // (rank,)
    buffer<double> basis_, turned_;          // (d, columns), and (n, columns) of transformed rows
    buffer<double> alphas_, scores_, lost_, found_;
    bool by_rows_ = false;            // whether the units are of rows of one query
    buffer<std::ptrdiff_t> members_;  // rows or queries, unit by unit
    buffer<std::ptrdiff_t> bounds_;   // (n_units + 1,) of members
    unit_models units_;
};

}  // namespace

void search_groups(const query_groups& groups, const search_grid& grid, const found_paths& out,
                   int n_threads) {
    const auto start = groups.begin(out.first), n_positions = groups.begin(out.last) - start;
    parallel_for(out.last - out.first, n_threads, [&](std::ptrdiff_t i) {
        group_searcher searcher(groups, grid);
        out.states[i] = searcher.search(out.first + i, start, n_positions, out);
    });
}

}  // namespace pairgram
