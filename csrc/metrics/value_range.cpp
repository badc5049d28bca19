#include "metrics/value_range.hpp"

#include <algorithm>
#include <limits>

#include "support/simd.hpp"

namespace pairgram {

PAIRGRAM_CLONES
value_range find_range(std::ptrdiff_t n, const double* values) {
    constexpr std::ptrdiff_t lanes = 16;  // whose comparisons do not wait for each other
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
    if (nan) {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        return {none, none};
    }
    return {*std::min_element(low, low + lanes), *std::max_element(high, high + lanes)};
}

}  // namespace pairgram
