// Metrics that look at a ranking from its top: DCG and its relatives, precision, average precision,
// reciprocal ranks, and the measures of virtual screening. With tied scores either in the order
// given or as the exact mean over all orders of tied documents.
#pragma once

#include <cmath>
#include <cstddef>

#include "metrics/evaluate.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// A ranked list: labels[i] is the label at rank i (from 0), at least up to the cut.
struct ranked_list {
    std::ptrdiff_t n;  // documents that have a rank
    const double* labels;
    const std::ptrdiff_t* tie_end;  // end of the run of tied ranks that holds rank i; null: no ties
};

// What a metric needs of a query's labels alone, however they are ranked.
struct ideal_ranking {
    std::ptrdiff_t n = 0;  // documents, also those without a rank
    double total = 0;      // ideal DCG at the cut, or the number of relevant documents
    buffer<double> at;     // ideal DCG at every rank, for mean_ndcg
};

// 2^label - 1 or label.
inline double gain_of(gain_kind gain, double label) {
    if (gain == gain_kind::linear) return label;
    const auto level = static_cast<int>(label < 62 ? label : 62);
    return level == label ? static_cast<double>((1LL << level) - 1) : std::exp2(label) - 1;
}

// What the gain at rank i, from 0, is divided by. To divide is as fast here as to multiply by the
// discount, and gives the same bits as trec_eval.
inline double divisor_of(discount_kind discount, std::ptrdiff_t i) {
    if (discount == discount_kind::log2) return std::log2(static_cast<double>(i) + 2);
    return i < 2 ? 1 : std::log2(static_cast<double>(i) + 1);
}

// `descending` holds the query's n labels, the highest first, at least up to the cut; `labels` all
// of them in any order.
void prepare_ideal(const metric_spec& metric, std::ptrdiff_t n, const double* labels,
                   const double* descending, const double* divisors, ideal_ranking& ideal);

// The metric of a ranked list. O(min(n, cut)); for expected_reciprocal_rank with averaged ties
// O(t min(t, cut)) for t tied documents.
double top_metric(const metric_spec& metric, const ranked_list& ranked, const double* divisors,
                  const ideal_ranking& ideal, buffer<double>& scratch);

}  // namespace pairgram
