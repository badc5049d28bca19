// Means and standard deviations of a metric over queries, or over splits of the queries.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pairgram {

// The values of a metric: NaN in a query means that it has none.
struct metric_values {
    std::ptrdiff_t n_models, n_queries;
    const double* values;          // (n_models, n_queries)
    const double* weights;         // (n_queries,) ≥ 0
    std::ptrdiff_t n_splits;       // or 0
    const std::int64_t* split_of;  // (n_queries,) in [0, n_splits), or null without splits
};

// Writes to means and deviations (n_models,) the weighted mean of every model and its standard
// deviation over queries. With splits, by_split (n_splits, n_models) are the weighted means over
// the queries of each, and the deviation is that of the splits that have one, all of weight 1.
// What no query of a weight > 0 defines is NaN.
void summarize(const metric_values& of, double* means, double* deviations, double* by_split);

// means (n_models, n_groups) over the queries [bounds[g], bounds[g + 1]) of each group, as above.
void mean_of_groups(const metric_values& of, std::ptrdiff_t n_groups, const std::int64_t* bounds,
                    double* means);

}  // namespace pairgram
