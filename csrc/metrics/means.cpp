#include "metrics/means.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr std::ptrdiff_t values_of_task = 1 << 16;

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

// In lanes, whose comparisons do not wait for each other.
PAIRGRAM_CLONES
value_range range_of(std::ptrdiff_t n, const double* values) {
    constexpr std::ptrdiff_t lanes = 32;
    double low[lanes], high[lanes];
    int nan = 0;
    std::fill_n(low, lanes, values[0]);
    std::fill_n(high, lanes, values[0]);
    std::ptrdiff_t begin = 0;
    const auto take = [&](std::ptrdiff_t l) {
        const double value = values[begin + l];
        low[l] = value < low[l] ? value : low[l];
        high[l] = value > high[l] ? value : high[l];
        nan |= value != value;
    };
    for (; begin + lanes <= n; begin += lanes)
        for (std::ptrdiff_t l = 0; l < lanes; ++l) take(l);
    for (std::ptrdiff_t l = 0; begin + l < n; ++l) take(l);
    if (nan) return {none, none};
    return {*std::min_element(low, low + lanes), *std::max_element(high, high + lanes)};
}

}  // namespace

value_range find_range(std::ptrdiff_t n, const double* values, int n_threads) {
    const auto n_tasks = (n + values_of_task - 1) / values_of_task;
    buffer<value_range> parts(n_tasks);
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        const auto begin = task * values_of_task;
        parts[task] = range_of(std::min(values_of_task, n - begin), values + begin);
    });
    value_range all = parts[0];
    for (const auto& [lowest, highest] : parts) {
        if (std::isnan(lowest)) return {none, none};
        all = {std::min(all.lowest, lowest), std::max(all.highest, highest)};
    }
    return all;
}

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

}  // namespace pairgram
