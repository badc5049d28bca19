// Which values stand at given places of a sorted list, without sorting all of it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace pairgram {

// A grid of cells. The cell of a value never falls where the value rises; the first and the last
// take what lies outside.
template <class T>
struct value_grid {
    T lowest, cells_per_unit, last;

    value_grid(T low, T high, std::ptrdiff_t n_cells)
        : lowest(low),
          cells_per_unit(static_cast<T>(n_cells) / (high - low)),
          last(static_cast<T>(n_cells - 1)) {
        if (!std::isfinite(cells_per_unit)) cells_per_unit = T{0};
    }

    std::uint16_t cell(T value) const {
        T at = (value - lowest) * cells_per_unit;
        at = at > T{0} ? at : T{0};  // also NaN
        return static_cast<std::uint16_t>(static_cast<std::int32_t>(at < last ? at : last));
    }
};

// Places in a list of values, and where what stands there goes.
struct places {
    std::ptrdiff_t n;
    const std::int64_t* ranks;  // ascending
    double* out;
    std::int64_t before;  // values that are smaller than those of the list
};

// Sets wanted.out. n values, all of them finite, may change their order. depth counts the grids
// that have narrowed the values down.
template <class T>
void pick(T* values, std::ptrdiff_t n, const places& wanted, int depth);

}  // namespace pairgram
