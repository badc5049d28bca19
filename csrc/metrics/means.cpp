#include "metrics/means.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/buffer.hpp"

namespace pairgram {

void summarize(const metric_values& of, double* means, double* deviations) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    std::fill_n(means, of.n_models * of.n_groups, 0.0);
    std::fill_n(deviations, of.n_models * of.n_groups, 0.0);
    buffer<double> total;
    for (std::ptrdiff_t m = 0; m < of.n_models; ++m) {
        const double* const values = of.values + m * of.n_queries;
        const auto each = [&](const auto& use) {
            for (std::ptrdiff_t q = 0; q < of.n_queries; ++q)
                if (!std::isnan(values[q])) use(of.group_of[q], of.weights[q], values[q]);
        };
        total.assign(of.n_groups, 0.0);
        each([&](std::int64_t group, double weight, double value) {
            total[group] += weight;
            means[group] += weight * value;
        });
        for (std::ptrdiff_t g = 0; g < of.n_groups; ++g)
            means[g] = total[g] > 0 ? means[g] / total[g] : none;
        each([&](std::int64_t group, double weight, double value) {
            deviations[group] += weight * (value - means[group]) * (value - means[group]);
        });
        for (std::ptrdiff_t g = 0; g < of.n_groups; ++g)
            deviations[g] = total[g] > 0 ? std::sqrt(deviations[g] / total[g]) : none;
        means += of.n_groups;
        deviations += of.n_groups;
    }
}

}  // namespace pairgram
