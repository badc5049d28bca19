// Ranking metrics of every query, for several score vectors against the same labels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pairgram {

enum class MetricKind {
    dcg,
    ndcg,
    mean_ndcg,
    average_precision,
    precision,
    recall,
    reciprocal_rank,
    expected_reciprocal_rank,
    kendall,
    spearman,
    misranking,
    mean_squared_difference,
    mean_absolute_difference,
};
enum class Gain { exp2, linear };                // 2^label - 1, label
enum class Discount { log2, letor };             // 1 / log2(1 + i); 1, 1, then 1 / log2(i)
enum class Ties { file_order, average, worst };  // worst: the lowest label first

struct Metric {
    MetricKind kind;
    std::ptrdiff_t cut;  // only ranks 1..cut count; PTRDIFF_MAX for all
    Gain gain;
    Discount discount;
    Ties ties;
    double empty;     // value of a query without relevant documents; NaN to leave it out
    double relevant;  // label >= relevant is relevant
    double max_grade;
    bool divide_by_cut;  // average precision over min(cut, relevant) instead of relevant
};

// Query q holds the rows order[offsets[q], offsets[q + 1]), or that range itself where order is
// null.
struct QueryRows {
    std::ptrdiff_t n_queries;
    const std::int64_t* offsets;
    const std::int64_t* order;
};

// out[t, s, q] = metric t of score vector s (row s of `scores`, n_scores x n_rows) in query q; NaN
// where it is undefined. Labels and scores are not NaN and labels suit the metrics. One ranking of
// a query serves all metrics that break ties alike; O(n log n) for each query and score vector,
// O(n) for short cuts. The same bits for any n_threads.
void evaluate_metrics(std::ptrdiff_t n_rows, std::ptrdiff_t n_scores, std::ptrdiff_t n_metrics,
                      const QueryRows& queries, const double* labels, const double* scores,
                      const Metric* metrics, double* out, int n_threads);

}  // namespace pairgram
