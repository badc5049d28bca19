#include "support/sparse_indices.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t block = 4096;  // values that one branch stands for

// As unsigned numbers, negative values are larger than any limit.
template <class U>
PAIRGRAM_CLONES bool any_outside(std::ptrdiff_t n, const U* values, U limit) {
    U outside = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) outside |= static_cast<U>(values[i] >= limit);
    return outside != 0;
}

template <class I>
PAIRGRAM_CLONES bool any_descent(std::ptrdiff_t n, const I* values) {
    I descends = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) descends |= static_cast<I>(values[i] > values[i + 1]);
    return descends != 0;
}

}  // namespace

template <class I>
std::ptrdiff_t first_outside(std::ptrdiff_t n, const I* values, std::ptrdiff_t limit) {
    using U = std::make_unsigned_t<I>;
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<I>::max());
    const auto stop = static_cast<U>(std::min(static_cast<std::uint64_t>(limit), largest + 1));
    const auto* const unsigned_values = reinterpret_cast<const U*>(values);
    for (std::ptrdiff_t begin = 0; begin < n; begin += block) {
        const auto end = std::min(begin + block, n);
        if (!any_outside(end - begin, unsigned_values + begin, stop)) continue;
        const auto* const found = std::find_if(unsigned_values + begin, unsigned_values + end,
                                               [stop](U value) { return value >= stop; });
        return found - unsigned_values;
    }
    return -1;
}

template <class I>
std::ptrdiff_t first_descent(std::ptrdiff_t n, const I* values) {
    for (std::ptrdiff_t begin = 0; begin + 1 < n; begin += block) {
        const auto size = std::min(block, n - 1 - begin);
        if (!any_descent(size, values + begin)) continue;
        return std::is_sorted_until(values + begin, values + begin + size + 1) - values - 1;
    }
    return -1;
}

template std::ptrdiff_t first_outside<std::int32_t>(std::ptrdiff_t, const std::int32_t*,
                                                    std::ptrdiff_t);
template std::ptrdiff_t first_outside<std::int64_t>(std::ptrdiff_t, const std::int64_t*,
                                                    std::ptrdiff_t);
template std::ptrdiff_t first_descent<std::int32_t>(std::ptrdiff_t, const std::int32_t*);
template std::ptrdiff_t first_descent<std::int64_t>(std::ptrdiff_t, const std::int64_t*);

}  // namespace pairgram
