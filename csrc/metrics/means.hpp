// Means and standard deviations of a metric over queries, or over groups of queries.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pairgram {

// The values of a metric: NaN in a query means that it has none.
struct metric_values {
    std::ptrdiff_t n_models, n_queries, n_groups;
    const double* values;          // (n_models, n_queries)
    const double* weights;         // (n_queries,) ≥ 0
    const std::int64_t* group_of;  // (n_queries,) in [0, n_groups)
};

// The weighted means of every model over the queries of every group, and the deviations from them,
// (n_models, n_groups) both. What no query of a weight > 0 defines is NaN.
void summarize(const metric_values& of, double* means, double* deviations);

}  // namespace pairgram
