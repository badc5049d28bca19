#include "metrics/evaluate.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "metrics/pair_metrics.hpp"
#include "metrics/ranking.hpp"
#include "metrics/top_metrics.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t task_size = 1 << 15;  // scores, about 0.5 ms

bool counts_pairs(metric_kind kind) {
    return kind == metric_kind::kendall || kind == metric_kind::misranking;
}

bool uses_levels(metric_kind kind) {
    return counts_pairs(kind) || kind == metric_kind::spearman ||
           kind == metric_kind::ranking_error;
}

// Whether scores count by their values, not by their order.
bool takes_no_ranking(metric_kind kind) {
    return kind == metric_kind::mean_squared_difference ||
           kind == metric_kind::mean_absolute_difference || kind == metric_kind::pearson;
}

bool uses_discounts(metric_kind kind) {
    return kind == metric_kind::dcg || kind == metric_kind::ndcg || kind == metric_kind::mean_ndcg;
}

// The metrics that share a ranking, and what they need of it.
struct ranking_plan {
    bool worst = false;
    buffer<std::ptrdiff_t> members;
    std::ptrdiff_t top = 0;        // ranks to find
    std::ptrdiff_t ideal_top = 0;  // labels of the ideal ranking
    bool ties = false, levels = false, pairs = false;

    ranking_plan(bool worst_ties, std::ptrdiff_t n_metrics, const metric_spec* metrics)
        : worst(worst_ties) {
        for (std::ptrdiff_t t = 0; t < n_metrics; ++t) {
            const metric_spec& metric = metrics[t];
            if ((metric.ties == tie_kind::worst) != worst) continue;
            members.push_back(t);
            if (takes_no_ranking(metric.kind)) continue;
            const bool tied = metric.ties == tie_kind::average || uses_levels(metric.kind);
            top = std::max(top, tied ? PTRDIFF_MAX : metric.cut);
            if (uses_discounts(metric.kind)) ideal_top = std::max(ideal_top, metric.cut);
            ties = ties || tied;
            levels = levels || uses_levels(metric.kind);
            pairs = pairs || counts_pairs(metric.kind);
        }
    }
};

// Scratch of one task.
struct workspace {
    const double* labels = nullptr;  // of the query, in the order that breaks ties
    buffer<std::int64_t> rows, keys, pair_scratch;
    buffer<double> own_labels, descending, ranked_labels, values, more_values;
    buffer<label_tally> tallies;
    buffer<ranked_document> ranked, spare;
    buffer<std::ptrdiff_t> tie_end;
    buffer<ideal_ranking> ideals;
    label_levels levels;
};

// The highest label where all are integers from 0 to 31, else -1.
PAIRGRAM_CLONES
double highest_level(std::ptrdiff_t n, const double* labels) {
    constexpr double too_high = 32, to_integer = 0x1.8p52;  // x + this has no digit after the point
    double high = 0;
    std::int64_t highest = 0, rounded_off = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double label = labels[i] + 0.0;  // -0.0 becomes 0.0
        const double integer = (label + to_integer) - to_integer;
        std::int64_t bits, integer_bits;  // in the order of the labels where those are not negative
        std::memcpy(&bits, &label, sizeof bits);
        std::memcpy(&integer_bits, &integer, sizeof bits);
        rounded_off |= bits ^ integer_bits;
        rounded_off |= bits & INT64_MIN;
        highest = std::max(highest, bits);
    }
    std::memcpy(&high, &highest, sizeof high);
    return rounded_off == 0 && high < too_high ? high : -1;
}

PAIRGRAM_CLONES
std::ptrdiff_t count_equal(std::ptrdiff_t n, const double* labels, double level) {
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) count += labels[i] == level;
    return count;
}

// Writes labels in descending order, at least the first `top` ≤ n; by counting where they are small
// integers.
void sort_descending(std::ptrdiff_t n, const double* labels, std::ptrdiff_t top, double* sorted) {
    if (double level = highest_level(n, labels); level >= 0) {
        for (const double* const end = sorted + top; sorted < end; --level)
            sorted = std::fill_n(sorted, count_equal(n, labels, level), level);
        return;
    }
    std::copy(labels, labels + n, sorted);
    if (top < n)
        std::partial_sort(sorted, sorted + top, sorted + n, std::greater<>());
    else
        std::sort(sorted, sorted + n, std::greater<>());
}

class metric_evaluation {
  public:
    metric_evaluation(std::ptrdiff_t n_rows, std::ptrdiff_t n_scores, std::ptrdiff_t n_metrics,
                      const query_rows& queries, const double* labels, const double* scores,
                      const metric_spec* metrics, double* out)
        : n_rows_(n_rows),
          n_scores_(n_scores),
          queries_(queries),
          labels_(labels),
          scores_(scores),
          metrics_(metrics),
          out_(out) {
        for (const bool worst : {false, true}) {
            plans_.emplace_back(worst, n_metrics, metrics);
            if (plans_.back().members.empty()) plans_.pop_back();
        }
        std::ptrdiff_t longest = 0;
        for (std::ptrdiff_t q = 0; q < queries.n_queries; ++q)
            longest = std::max(longest, queries.size(q));
        for (const ranking_plan& plan : plans_) make_divisors(plan, longest);
    }

    // Evaluates the score vectors [score_begin, score_end) in the queries [begin, end).
    void run(std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t score_begin,
             std::ptrdiff_t score_end) const {
        workspace work;
        for (const ranking_plan& plan : plans_) {
            work.ideals.resize(plan.members.size());
            for (std::ptrdiff_t q = begin; q < end; ++q) {
                const std::int64_t* rows = prepare(plan, q, work);
                for (std::ptrdiff_t s = score_begin; s < score_end; ++s)
                    evaluate(plan, q, s, rows, work);
            }
        }
    }

  private:
    void make_divisors(const ranking_plan& plan, std::ptrdiff_t longest) {
        for (const std::ptrdiff_t t : plan.members) {
            const metric_spec& metric = metrics_[t];
            if (!uses_discounts(metric.kind)) continue;
            buffer<double>& table = divisors_[static_cast<int>(metric.discount)];
            const std::ptrdiff_t length = std::min(metric.cut, longest);
            for (auto i = length_of(table); i < length; ++i)
                table.push_back(divisor_of(metric.discount, i));
        }
    }

    const double* divisors(const metric_spec& metric) const {
        return divisors_[static_cast<int>(metric.discount)].data();
    }

    // Does what does not depend on the scores; returns the rows of the query in the order that
    // breaks ties, null where that is its range itself.
    const std::int64_t* prepare(const ranking_plan& plan, std::ptrdiff_t q, workspace& work) const {
        const std::ptrdiff_t n = queries_.size(q);
        const std::int64_t begin = queries_.offsets[q];
        const std::int64_t* rows = queries_.order ? queries_.order + begin : nullptr;
        work.labels = labels_ + begin;
        const auto gather_labels = [&] {
            work.own_labels.resize(n);
            for (std::ptrdiff_t i = 0; i < n; ++i) work.own_labels[i] = labels_[rows[i]];
            work.labels = work.own_labels.data();
        };
        if (rows) gather_labels();
        if (has_nan(n, work.labels)) throw std::invalid_argument("labels must not be NaN");
        if (plan.worst) {
            work.rows.resize(n);
            if (rows)
                std::copy(rows, rows + n, work.rows.begin());
            else
                std::iota(work.rows.begin(), work.rows.end(), begin);
            std::stable_sort(
                work.rows.begin(), work.rows.end(),
                [&](std::int64_t a, std::int64_t b) { return labels_[a] < labels_[b]; });
            rows = work.rows.data();
            gather_labels();
        }
        const std::ptrdiff_t ideal_top = std::min(n, plan.ideal_top);
        if (ideal_top > 0) {
            work.descending.resize(n);
            sort_descending(n, work.labels, ideal_top, work.descending.data());
        }
        for (std::size_t t = 0; t < plan.members.size(); ++t) {
            const metric_spec& metric = metrics_[plan.members[t]];
            prepare_ideal(metric, n, work.labels, work.descending.data(), divisors(metric),
                          work.ideals[t]);
        }
        if (plan.levels) make_levels(n, work.labels, work.levels);
        return rows;
    }

    // Ranks the documents of a query by one score vector, those without a score last; returns how
    // many have one.
    std::ptrdiff_t rank(const ranking_plan& plan, std::ptrdiff_t n, const double* scores,
                        const std::int64_t* rows, workspace& work) const {
        const std::ptrdiff_t top = std::min(n, plan.top);
        work.keys.resize(n);
        work.ranked_labels.resize(top);
        const auto n_retrieved = n - score_keys(n, scores, rows, work.keys.data());
        rank_documents(n, work.keys.data(), top, work.spare, work.ranked);
        for (std::ptrdiff_t i = 0; i < top; ++i)
            work.ranked_labels[i] = work.labels[work.ranked[i].index];
        if (!plan.ties) return n_retrieved;
        work.tie_end.resize(n);
        for (std::ptrdiff_t i = n - 1; i >= 0; --i) {
            const bool tied = i + 1 < n && work.ranked[i].key == work.ranked[i + 1].key;
            work.tie_end[i] = tied ? work.tie_end[i + 1] : i + 1;
        }
        return n_retrieved;
    }

    void evaluate(const ranking_plan& plan, std::ptrdiff_t q, std::ptrdiff_t s,
                  const std::int64_t* rows, workspace& work) const {
        const std::ptrdiff_t n = queries_.size(q);
        const double* scores = scores_ + s * n_rows_ + (rows ? 0 : queries_.offsets[q]);
        const std::ptrdiff_t n_retrieved = plan.top > 0 ? rank(plan, n, scores, rows, work) : n;
        pair_counts counts{};
        if (plan.pairs) {
            counts = count_pairs(n, work.ranked.data(), work.tie_end.data(), work.levels,
                                 work.pair_scratch);
        }
        for (std::size_t t = 0; t < plan.members.size(); ++t) {
            const metric_spec& metric = metrics_[plan.members[t]];
            double& out = out_[(plan.members[t] * n_scores_ + s) * queries_.n_queries + q];
            switch (metric.kind) {
                case metric_kind::kendall:
                    out = kendall_tau_b(counts);
                    break;
                case metric_kind::misranking:
                    out = misranked_fraction(counts);
                    break;
                case metric_kind::spearman:
                    out = spearman_rho(n, work.ranked.data(), work.tie_end.data(), work.levels);
                    break;
                case metric_kind::mean_squared_difference:
                    out = mean_squared_difference(n, work.labels, scores, rows, work.values);
                    break;
                case metric_kind::mean_absolute_difference:
                    out = mean_absolute_difference(n, work.labels, scores, rows, work.values);
                    break;
                case metric_kind::ranking_error:
                    out = ranking_error(n, work.labels, work.ranked.data(), work.tie_end.data(),
                                        work.levels, work.tallies, work.values);
                    break;
                case metric_kind::pearson:
                    out = pearson_correlation(n, work.labels, scores, rows, work.values,
                                              work.more_values);
                    break;
                default: {
                    const bool average = metric.ties == tie_kind::average;
                    out = top_metric(metric,
                                     {n_retrieved, work.ranked_labels.data(),
                                      average ? work.tie_end.data() : nullptr},
                                     divisors(metric), work.ideals[t], work.values);
                }
            }
        }
    }

    std::ptrdiff_t n_rows_, n_scores_;
    query_rows queries_;
    const double* labels_;
    const double* scores_;
    const metric_spec* metrics_;
    double* out_;
    buffer<ranking_plan> plans_;
    buffer<double> divisors_[2];
};

}  // namespace

void evaluate_metrics(std::ptrdiff_t n_rows, std::ptrdiff_t n_scores, std::ptrdiff_t n_metrics,
                      const query_rows& queries, const double* labels, const double* scores,
                      const metric_spec* metrics, double* out, int n_threads) {
    const metric_evaluation evaluation(n_rows, n_scores, n_metrics, queries, labels, scores,
                                       metrics, out);
    const auto bounds = runs_of(queries.n_queries, task_size,
                                [&](std::ptrdiff_t q) { return queries.size(q) * n_scores; });
    const auto n_runs = length_of(bounds) - 1;
    // Few long queries are shared out by score vector as well.
    const std::ptrdiff_t n_parts = n_runs < 16 ? std::min<std::ptrdiff_t>(n_scores, 16) : 1;
    const bool small = n_rows * n_scores <= 2 * task_size;
    parallel_for(n_runs * n_parts, small ? 1 : n_threads, [&](std::ptrdiff_t task) {
        const std::ptrdiff_t run = task / n_parts, part = task % n_parts;
        evaluation.run(bounds[run], bounds[run + 1], part * n_scores / n_parts,
                       (part + 1) * n_scores / n_parts);
    });
}

}  // namespace pairgram
