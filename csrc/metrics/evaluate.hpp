// Ranking metrics of every query, for several score vectors against the same labels.
#pragma once

#include <cstddef>

#include "data/query_rows.hpp"

namespace pairgram {

enum class metric_kind {
    dcg,
    ndcg,
    mean_ndcg,
    average_precision,
    precision,
    recall,
    reciprocal_rank,
    expected_reciprocal_rank,
    hit_rate,
    r_precision,
    auc,
    enrichment,
    bedroc,
    rank_biased_precision,
    kendall,
    spearman,
    misranking,
    mean_squared_difference,
    mean_absolute_difference,
    ranking_error,
    pearson,
};
enum class gain_kind { exp2, linear };               // 2^label - 1, label
enum class discount_kind { log2, letor };            // 1 / log2(1 + i); 1, 1, then 1 / log2(i)
enum class tie_kind { file_order, average, worst };  // worst: the lowest label first

struct metric_spec {
    metric_kind kind;
    std::ptrdiff_t cut;  // only ranks 1..cut count; PTRDIFF_MAX for all
    gain_kind gain;
    discount_kind discount;
    tie_kind ties;
    double empty;     // value of a query without relevant documents; NaN to leave it out
    double relevant;  // label >= relevant is relevant
    double max_grade;
    double shape;        // enrichment: percent of the list; bedroc: alpha; rank-biased: persistence
    bool divide_by_cut;  // average precision over min(cut, relevant) instead of relevant
};

// out[t, s, q] = metric t of score vector s (row s of `scores`, n_scores x n_rows) in query q; NaN
// where it is undefined. Labels suit the metrics; throws std::invalid_argument for NaN. A score
// that is NaN marks a document that was not retrieved: metrics that look from the top count its
// label in their ideal and never rank it; the others take no NaN. One ranking of a query serves all
// metrics that break ties alike; O(n log n) for each query and score vector, O(n) for short cuts.
void evaluate_metrics(std::ptrdiff_t n_rows, std::ptrdiff_t n_scores, std::ptrdiff_t n_metrics,
                      const query_rows& queries, const double* labels, const double* scores,
                      const metric_spec* metrics, double* out, int n_threads);

}  // namespace pairgram
