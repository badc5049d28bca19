#include "metrics/means.hpp"

#include <cmath>
#include <limits>

#include "support/buffer.hpp"

namespace pairgram {

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

// The weighted mean and standard deviation of those of n values that are not NaN. Null weights are
// ones.
struct moments {
    double mean, deviation;
};

moments moments_of(std::ptrdiff_t n, const double* values, const double* weights) {
    double total = 0, sum = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i)
        if (!std::isnan(values[i])) {
            const double weight = weights ? weights[i] : 1;
            total += weight;
            sum += weight * values[i];
        }
    if (!(total > 0)) return {none, none};
    const double mean = sum / total;
    double squares = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i)
        if (!std::isnan(values[i]))
            squares += (weights ? weights[i] : 1) * (values[i] - mean) * (values[i] - mean);
    return {mean, std::sqrt(squares / total)};
}

// The weighted means of the splits of one model.
void split_means(const metric_values& of, const double* values, buffer<double>& totals,
                 double* means) {
    totals.assign(of.n_splits, 0);
    for (std::ptrdiff_t s = 0; s < of.n_splits; ++s) means[s] = 0;
    for (std::ptrdiff_t q = 0; q < of.n_queries; ++q)
        if (!std::isnan(values[q])) {
            totals[of.split_of[q]] += of.weights[q];
            means[of.split_of[q]] += of.weights[q] * values[q];
        }
    for (std::ptrdiff_t s = 0; s < of.n_splits; ++s)
        means[s] = totals[s] > 0 ? means[s] / totals[s] : none;
}

}  // namespace

void summarize(const metric_values& of, double* means, double* deviations, double* by_split) {
    buffer<double> totals, splits(of.n_splits);
    for (std::ptrdiff_t m = 0; m < of.n_models; ++m) {
        const double* const values = of.values + m * of.n_queries;
        const auto [mean, deviation] = moments_of(of.n_queries, values, of.weights);
        means[m] = mean;
        deviations[m] = deviation;
        if (!of.split_of) continue;
        split_means(of, values, totals, splits.data());
        deviations[m] = moments_of(of.n_splits, splits.data(), nullptr).deviation;
        for (std::ptrdiff_t s = 0; s < of.n_splits; ++s) by_split[s * of.n_models + m] = splits[s];
    }
}

void mean_of_groups(const metric_values& of, std::ptrdiff_t n_groups, const std::int64_t* bounds,
                    double* means) {
    for (std::ptrdiff_t m = 0; m < of.n_models; ++m)
        for (std::ptrdiff_t g = 0; g < n_groups; ++g)
            means[m * n_groups + g] =
                moments_of(bounds[g + 1] - bounds[g], of.values + m * of.n_queries + bounds[g],
                           of.weights + bounds[g])
                    .mean;
}

}  // namespace pairgram
