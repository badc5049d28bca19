#include "solvers/pair_operator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "support/parallel.hpp"
#include "support/prefix_sums.hpp"
#include "support/simd.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t task_rows = 4096;
constexpr std::ptrdiff_t few_rows = 64;  // as many as a number has bits

// Running sums per level, of which those over all smaller levels are asked for.
template <int Width>
class few_levels {
  public:
    explicit few_levels(buffer<double>&) {}
    void add(std::int32_t level, double x) {
        for (int k = 0; k < Width; ++k) smaller_[k] += k > level ? x : 0.0;
    }
    double smaller(std::int32_t level) const { return smaller_[level]; }

  private:
    double smaller_[Width] = {};
};

// The same for any number of levels in O(log levels).
class many_levels {
  public:
    explicit many_levels(buffer<double>& tree) : tree_(tree) {
        std::fill(tree.begin(), tree.end(), 0.0);
    }
    void add(std::int32_t level, double x) { add_at(tree_.data(), length_of(tree_) - 1, level, x); }
    double smaller(std::int32_t level) const { return sum_of_first(tree_.data(), level); }

  private:
    buffer<double>& tree_;  // (levels + 1,)
};

// Running sums of all rows, whatever their levels.
class no_levels {
  public:
    explicit no_levels(buffer<double>&) {}
    // What rounding leaves is kept beside the sum (Knuth): a row may outweigh all others.
    void add(std::int32_t, double x) {
        const double sum = sum_ + x, added = sum - sum_;
        rest_ += (sum_ - (sum - added)) + (x - added);
        sum_ = sum;
    }
    double without(double x) const { return (sum_ - x) + rest_; }

  private:
    double sum_ = 0, rest_ = 0;
};

// below[i] = Σ of loser[p] over the active rows p of smaller levels, which row i should beat, and
// above[i] = Σ of winner[p] over those of larger levels, for n rows in ascending order of their
// scores. Without levels both are over all other rows. The pair is tested by the same difference on
// both sides, so that rounding cannot make it active on one side alone.
template <class Sums>
void sweep(std::ptrdiff_t n, std::int32_t n_levels, double reach, const double* score,
           const std::int32_t* level, const double* winner, const double* loser,
           buffer<double>& tree, double* below, double* above) {
    constexpr bool counts_itself = std::is_same_v<Sums, no_levels>;
    Sums larger(tree);
    for (std::ptrdiff_t i = 0, p = 0; i < n; ++i) {
        for (; p < n && score[p] - score[i] < reach; ++p)
            larger.add(n_levels - 1 - level[p], winner[p]);
        if constexpr (counts_itself)
            above[i] = larger.without(winner[i]);
        else
            above[i] = larger.smaller(n_levels - 1 - level[i]);
    }
    Sums smaller(tree);
    for (std::ptrdiff_t i = n - 1, p = n - 1; i >= 0; --i) {
        for (; p >= 0 && score[i] - score[p] < reach; --p) smaller.add(level[p], loser[p]);
        if constexpr (counts_itself)
            below[i] = smaller.without(loser[i]);
        else
            below[i] = smaller.smaller(level[i]);
    }
}

// The same for few rows in any order, by going through all pairs of them, in whole groups of lanes:
// pull[i] is half the gradient, and the bits of partners[i] tell with which rows i is in an active
// pair. Returns the loss. All numbers are of one width, so that they take the same lanes.
PAIRGRAM_CLONES double set_few(std::ptrdiff_t n, double reach, const double* score,
                               const std::int32_t* level, const double* weight,
                               std::int64_t* partners, double* pull) {
    double scores[few_rows], levels[few_rows], pulls[few_rows], losses[few_rows], loss = 0;
    std::int64_t found[few_rows];
    const auto padded = (n + 7) / 8 * 8;
    for (std::ptrdiff_t i = 0; i < padded; ++i) {
        scores[i] = score[std::min(i, n - 1)];
        levels[i] = level[std::min(i, n - 1)];
        pulls[i] = losses[i] = 0;
        found[i] = 0;
    }
    for (std::ptrdiff_t p = 0; p < n; ++p) {
        const double at = scores[p], own = levels[p], v = weight[p];
        const auto bit = static_cast<std::int64_t>(std::uint64_t{1} << p);
        for (std::ptrdiff_t i = 0; i < padded; ++i) {
            const double d = scores[i] - at;
            const double as_winner = (levels[i] > own) & (d < reach) ? 1 - d : 0.0;
            const double as_loser = (levels[i] < own) & (-d < reach) ? 1 + d : 0.0;
            const double left = as_winner + as_loser;
            pulls[i] += v * (as_loser - as_winner);
            losses[i] += v * left * left;
            found[i] |= left != 0 ? bit : 0;
        }
        if (reach > 1)  // for which pairs of difference 1 are active too
            for (std::ptrdiff_t i = 0; i < padded; ++i) found[i] |= levels[i] != own ? bit : 0;
    }
    std::copy_n(pulls, n, pull);
    std::copy_n(found, n, partners);
    for (std::ptrdiff_t i = 0; i < n; ++i) loss += weight[i] * losses[i];
    return loss / 2;  // of each pair, both rows have counted it
}

// out[i] = Σ weight[p] (u[i] - u[p]) over the partners of row i.
PAIRGRAM_CLONES void multiply_few(std::ptrdiff_t n, const double* weight,
                                  const std::int64_t* partners, const double* u, double* out) {
    double own[few_rows], sums[few_rows];
    std::int64_t active[few_rows];
    const auto padded = (n + 7) / 8 * 8;
    for (std::ptrdiff_t i = 0; i < padded; ++i) {
        own[i] = u[std::min(i, n - 1)];
        active[i] = partners[std::min(i, n - 1)];
        sums[i] = 0;
    }
    for (std::ptrdiff_t p = 0; p < n; ++p) {
        const double at = own[p], v = weight[p];
        const auto bit = static_cast<std::int64_t>(std::uint64_t{1} << p);
        for (std::ptrdiff_t i = 0; i < padded; ++i)
            sums[i] += active[i] & bit ? v * (own[i] - at) : 0.0;
    }
    std::copy_n(sums, n, out);
}

// Pairs of a winner and n rows from `first` on, which stand from `at` on among pairs of others.
struct pairs_of_winner {
    std::ptrdiff_t winner, first, at, n;
};

}  // namespace

struct pair_operator::workspace {
    double *x, *y, *below, *above, *below_weight, *above_weight;  // (n,)
    buffer<double> values, tree;

    void reserve(std::ptrdiff_t n) {
        if (values.size() < size_of(6 * n)) values.resize(6 * n);
        double* at = values.data();
        for (auto** of : {&x, &y, &below, &above, &below_weight, &above_weight}) {
            *of = at;
            at += n;
        }
    }
};

pair_operator::pair_operator(const ranking_problem& problem, pair_loss loss)
    : loss_(loss),
      reach_(loss == pair_loss::squared ? std::numeric_limits<double>::infinity() : 1.0),
      offsets_(problem.rows.offsets, problem.rows.offsets + problem.rows.n_queries + 1),
      factor_(problem.rows.n_queries),
      pair_weights_(factor_.size()),
      n_levels_(factor_.size()),
      weight_(problem.rows.n_rows()),
      win_(weight_.size()),
      level_(weight_.size()),
      order_(weight_.size()),
      sorted_score_(weight_.size()),
      sorted_weight_(weight_.size()),
      sorted_win_(weight_.size()),
      sorted_level_(weight_.size()),
      degree_(weight_.size()),
      partners_(loss == pair_loss::logistic ? 0 : weight_.size()) {
    const auto& rows = problem.rows;
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        const auto begin = first_row(q), n = first_row(q + 1) - begin;
        std::iota(order_.begin() + begin, order_.begin() + begin + n, std::ptrdiff_t{0});
        for (auto i = begin; i < begin + n; ++i)
            win_[i] = weight_[i] = rows.row_weight(rows.row(i));
        if (problem.rule.sums_labels())
            count_clicks(problem, q);
        else
            count_pairs(problem, q);
    }
    tasks_ = runs_of(rows.n_queries, task_rows, [&](std::ptrdiff_t q) { return rows.size(q); });
}

// Numbers the levels of a query, and sets its factor.
void pair_operator::count_pairs(const ranking_problem& problem, std::ptrdiff_t query) {
    const auto& rows = problem.rows;
    const auto begin = first_row(query), n = first_row(query + 1) - begin;
    auto* const order = order_.data() + begin;
    const auto label = [&](std::ptrdiff_t i) { return rows.labels[rows.row(begin + i)]; };
    std::sort(order, order + n,
              [&](std::ptrdiff_t a, std::ptrdiff_t b) { return label(a) < label(b); });
    double total = 0, pair_weight = 0, level_weight = 0;  // of the levels before, and this one
    std::int32_t level = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (i > 0 && label(order[i]) > label(order[i - 1])) {
            ++level;
            total += level_weight;
            level_weight = 0;
        }
        level_[begin + order[i]] = level;
        level_weight += weight_[begin + order[i]];
        pair_weight += total * weight_[begin + order[i]];
    }
    total += level_weight;
    n_levels_[query] = level + 1;
    set_factor(problem, query, pair_weight, total, pair_weight);
}

// Weighs the rows of a query by their clicks as winners, and sets its factor.
void pair_operator::count_clicks(const ranking_problem& problem, std::ptrdiff_t query) {
    const auto& rows = problem.rows;
    double total = 0, clicked = 0, pair_weight = 0;
    for (auto i = first_row(query); i < first_row(query + 1); ++i) {
        win_[i] *= rows.labels[rows.row(i)];
        total += weight_[i];
        clicked += win_[i];
    }
    for (auto i = first_row(query); i < first_row(query + 1); ++i)
        pair_weight += win_[i] * (total - weight_[i]);
    set_factor(problem, query, pair_weight, total, total * clicked);
}

// Sets the factor of a query by the weight of its pairs and what that is divided by.
void pair_operator::set_factor(const ranking_problem& problem, std::ptrdiff_t query,
                               double pair_weight, double of_documents, double of_queries) {
    const auto weighting = problem.rule.weighting;
    const double divisor = weighting == weighting_kind::pairs       ? 1.0
                           : weighting == weighting_kind::documents ? of_documents
                                                                    : of_queries;
    if (pair_weight > 0) factor_[query] = problem.rows.query_weight(query) / divisor;
    pair_weights_[query] = factor_[query] * pair_weight;
}

// Whether all pairs of a query are gone through, in any order.
bool pair_operator::has_few(std::ptrdiff_t query) const {
    return n_levels_[query] > 0 && first_row(query + 1) - first_row(query) <= few_rows;
}

// Fills w.above and w.below with the sums over every row's active winners and losers.
void pair_operator::sum_partners(std::ptrdiff_t query, const double* winner, const double* loser,
                                 workspace& w) const {
    const auto begin = first_row(query), n = first_row(query + 1) - begin;
    const auto n_levels = n_levels_[query];
    const auto* const score = sorted_score_.data() + begin;
    const auto* const level = sorted_level_.data() + begin;
    const auto run = [&](auto* kind) {
        sweep<std::remove_pointer_t<decltype(kind)>>(n, n_levels, reach_, score, level, winner,
                                                     loser, w.tree, w.below, w.above);
    };
    if (n_levels == 0) return run(static_cast<no_levels*>(nullptr));
    if (n_levels <= 4) return run(static_cast<few_levels<4>*>(nullptr));
    if (n_levels <= 8) return run(static_cast<few_levels<8>*>(nullptr));
    w.tree.resize(n_levels + 1);
    run(static_cast<many_levels*>(nullptr));
}

// With p_ij = 1 − (f_i − f_j) and weights u of winners and v of losers: the gradient is
// 2 c (v_i Σ_above u_k p_ki − u_i Σ_below v_j p_ij), and the loss Σ W p² = Σ W p + ½ fᵀ gradient.
// Only differences of scores count, so they are taken from one of the query's.
double pair_operator::set_query(std::ptrdiff_t query, const double* scores, double* gradient,
                                workspace& w) {
    const auto begin = first_row(query), n = first_row(query + 1) - begin;
    const double c = factor_[query];
    if (c == 0) {
        std::fill(gradient, gradient + n, 0.0);
        return 0;
    }
    if (has_few(query)) {
        const double* const v = weight_.data() + begin;
        const double loss = set_few(n, reach_, scores, level_.data() + begin, v,
                                    partners_.data() + begin, gradient);
        for (std::ptrdiff_t i = 0; i < n; ++i) gradient[i] *= 2 * c * v[i];
        return c * loss;
    }
    auto* const order = order_.data() + begin;
    std::sort(order, order + n, [&](std::ptrdiff_t a, std::ptrdiff_t b) {
        return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
    });
    double* const score = sorted_score_.data() + begin;
    double* const v = sorted_weight_.data() + begin;
    double* const win = sorted_win_.data() + begin;
    const double pivot = scores[order[n / 2]];
    w.reserve(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        score[i] = scores[order[i]] - pivot;
        v[i] = weight_[begin + order[i]];
        win[i] = win_[begin + order[i]];
        sorted_level_[begin + i] = level_[begin + order[i]];
    }
    sum_partners(query, win, v, w);
    std::swap(w.below, w.below_weight);
    std::swap(w.above, w.above_weight);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        w.x[i] = win[i] * score[i];
        w.y[i] = v[i] * score[i];
    }
    sum_partners(query, w.x, w.y, w);
    double loss = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double below = win[i] * w.below_weight[i], above = v[i] * w.above_weight[i];
        const double sums = v[i] * w.above[i] + win[i] * w.below[i];
        const double half = c * ((above + below) * score[i] - sums + (above - below));
        degree_[begin + i] = above + below;
        gradient[order[i]] = 2 * half;
        loss += c * (below * (1 - score[i]) + win[i] * w.below[i]) + half * score[i];
    }
    return std::max(loss, 0.0);
}

void pair_operator::multiply_query(std::ptrdiff_t query, const double* u, double* out,
                                   workspace& w) const {
    const auto begin = first_row(query), n = first_row(query + 1) - begin;
    const double c = factor_[query];
    if (c == 0) {
        std::fill(out, out + n, 0.0);
        return;
    }
    if (has_few(query)) {
        const double* const v = weight_.data() + begin;
        multiply_few(n, v, partners_.data() + begin, u, out);
        for (std::ptrdiff_t i = 0; i < n; ++i) out[i] *= 2 * c * v[i];
        return;
    }
    const auto* const order = order_.data() + begin;
    const double* const v = sorted_weight_.data() + begin;
    const double* const win = sorted_win_.data() + begin;
    const double pivot = u[order[n / 2]];
    w.reserve(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double value = u[order[i]] - pivot;
        w.x[i] = win[i] * value;
        w.y[i] = v[i] * value;
    }
    sum_partners(query, w.x, w.y, w);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double own = degree_[begin + i] * (u[order[i]] - pivot);
        out[order[i]] = 2 * c * (own - (v[i] * w.above[i] + win[i] * w.below[i]));
    }
}

// Calls visit(n_pairs, d, runs, last) for all pairs of a query, at most `pairs_together` at a time:
// d are the differences of their scores, and [runs, last) tells whose they are.
template <class Visit>
void pair_operator::visit_pairs(std::ptrdiff_t query, const Visit& visit) const {
    const auto begin = first_row(query), n = first_row(query + 1) - begin;
    const auto* const score = sorted_score_.data() + begin;
    const auto* const level = sorted_level_.data() + begin;
    double d[pairs_together];
    pairs_of_winner runs[pairs_together];
    std::ptrdiff_t n_pairs = 0, n_runs = 0;
    for (std::ptrdiff_t i = 0, n_losers = 0; i < n; ++i) {
        check_interrupt();
        if (level[i] > level[n_losers]) n_losers = i;
        for (std::ptrdiff_t first = 0; first < n_losers;) {
            const auto m = std::min(pairs_together - n_pairs, n_losers - first);
            for (std::ptrdiff_t k = 0; k < m; ++k) d[n_pairs + k] = score[i] - score[first + k];
            runs[n_runs++] = {i, first, n_pairs, m};
            first += m;
            n_pairs += m;
            if (n_pairs < pairs_together) continue;
            visit(n_pairs, d, runs, runs + n_runs);
            n_pairs = n_runs = 0;
        }
    }
    visit(n_pairs, d, runs, runs + n_runs);
}

double pair_operator::set_logistic(std::ptrdiff_t query, const double* scores, double* gradient,
                                   workspace& w) {
    const auto begin = first_row(query), n = first_row(query + 1) - begin;
    const auto* const order = order_.data() + begin;
    auto* const v = sorted_weight_.data() + begin;
    w.reserve(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        sorted_score_[begin + i] = scores[order[i]];
        sorted_level_[begin + i] = level_[begin + order[i]];
        v[i] = weight_[begin + order[i]];
        w.y[i] = 0;
    }
    const double c = factor_[query];
    double loss = 0, value[pairs_together], slope[pairs_together], curve[pairs_together];
    if (c > 0)
        visit_pairs(query, [&](std::ptrdiff_t n_pairs, const double* d, const pairs_of_winner* run,
                               const pairs_of_winner* last) {
            logistic_losses(n_pairs, d, value, slope, curve);
            for (; run < last; ++run) {
                const auto [i, first, at, m] = *run;
                loss += c * v[i] * dot(m, v + first, value + at);
                w.y[i] += dot(m, v + first, slope + at);
                add(m, -v[i], slope + at, w.y + first);
            }
        });
    for (std::ptrdiff_t i = 0; i < n; ++i) gradient[order[i]] = c * v[i] * w.y[i];
    return loss;
}

void pair_operator::multiply_logistic(std::ptrdiff_t query, const double* u, double* out,
                                      workspace& w) const {
    const auto begin = first_row(query), n = first_row(query + 1) - begin;
    const auto* const order = order_.data() + begin;
    const auto* const v = sorted_weight_.data() + begin;
    w.reserve(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        w.x[i] = u[order[i]];
        w.y[i] = 0;
    }
    const double c = factor_[query];
    double pull[pairs_together];
    if (c > 0)
        visit_pairs(query, [&](std::ptrdiff_t n_pairs, const double* d, const pairs_of_winner* run,
                               const pairs_of_winner* last) {
            logistic_curves(n_pairs, d, pull);
            for (; run < last; ++run) {
                const auto [i, first, at, m] = *run;
                const double* const x = w.x;
                for (std::ptrdiff_t k = 0; k < m; ++k) pull[at + k] *= x[i] - x[first + k];
                w.y[i] += dot(m, v + first, pull + at);
                add(m, -v[i], pull + at, w.y + first);
            }
        });
    for (std::ptrdiff_t i = 0; i < n; ++i) out[order[i]] = c * v[i] * w.y[i];
}

double pair_operator::set_scores(const double* scores, double* gradient, int n_threads) {
    buffer<double> losses(n_queries());
    const auto n_tasks = length_of(tasks_) - 1;
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        workspace w;
        for (auto q = tasks_[task]; q < tasks_[task + 1]; ++q)
            losses[q] = loss_ == pair_loss::logistic
                            ? set_logistic(q, scores + first_row(q), gradient + first_row(q), w)
                            : set_query(q, scores + first_row(q), gradient + first_row(q), w);
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
}

void pair_operator::product(const double* u, double* out, int n_threads) const {
    const auto n_tasks = length_of(tasks_) - 1;
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        const auto first = tasks_[task];
        product(first, tasks_[task + 1], u + first_row(first), out + first_row(first));
    });
}

void pair_operator::product(std::ptrdiff_t first, std::ptrdiff_t last, const double* u,
                            double* out) const {
    workspace w;
    for (auto q = first; q < last; ++q) {
        const auto at = first_row(q) - first_row(first);
        if (loss_ == pair_loss::logistic)
            multiply_logistic(q, u + at, out + at, w);
        else
            multiply_query(q, u + at, out + at, w);
    }
}

}  // namespace pairgram
