#include "features/selection.hpp"

#include <algorithm>

#include "support/buffer.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t most_cells = 2048, values_of_cell = 16;
constexpr std::ptrdiff_t few_values = 96;
constexpr int deepest = 3;

// less[i] = how many values are smaller than values[i]
template <class T>
PAIRGRAM_CLONES void count_smaller(std::ptrdiff_t n, const T* values, std::int32_t* less) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        std::int64_t count = 0;
        for (std::ptrdiff_t k = 0; k < n; ++k) count += values[k] < values[i] ? 1 : 0;
        less[i] = static_cast<std::int32_t>(count);
    }
}

// Of few values, it is cheaper to count than to sort.
template <class T>
void pick_from_few(const T* values, std::ptrdiff_t n, const places& wanted) {
    std::int32_t less[few_values];
    count_smaller(n, values, less);
    std::ptrdiff_t at_place[few_values];
    std::fill_n(at_place, n, -1);
    for (std::ptrdiff_t i = 0; i < n; ++i) at_place[less[i]] = i;
    for (std::ptrdiff_t r = 0; r < wanted.n; ++r) {
        auto at = wanted.ranks[r] - wanted.before;
        while (at_place[at] < 0) --at;  // equal values have one place
        wanted.out[r] = static_cast<double>(values[at_place[at]]);
    }
}

// The first value of every cell in the order of cells, and the end.
buffer<std::ptrdiff_t> starts_of(std::ptrdiff_t n, const std::uint16_t* cells,
                                 std::ptrdiff_t n_cells) {
    // Two counters for each cell, because neighbours are often equal and would wait.
    buffer<std::uint32_t> even(n_cells, 0), odd(n_cells, 0);
    for (std::ptrdiff_t i = 0; i + 1 < n; i += 2) {
        ++even[cells[i]];
        ++odd[cells[i + 1]];
    }
    if (n % 2 == 1) ++even[cells[n - 1]];
    buffer<std::ptrdiff_t> starts(n_cells + 1, 0);
    for (std::ptrdiff_t c = 0; c < n_cells; ++c) starts[c + 1] = starts[c] + even[c] + odd[c];
    return starts;
}

// Looks into the cells in which a place falls.
template <class T>
void pick_from_cells(std::ptrdiff_t n, const T* values, const std::uint16_t* cells,
                     std::ptrdiff_t n_cells, const places& wanted, int depth) {
    struct wanted_cell {
        std::ptrdiff_t cell, first, end;
    };
    const auto starts = starts_of(n, cells, n_cells);
    buffer<wanted_cell> found;
    buffer<std::uint8_t> is_wanted(n_cells, 0);
    buffer<std::ptrdiff_t> cursor(n_cells, 0);
    std::ptrdiff_t size = 0;
    for (std::ptrdiff_t r = 0; r < wanted.n; ++r) {
        const auto at = wanted.ranks[r] - wanted.before;
        const auto cell = std::upper_bound(starts.begin(), starts.end(), at) - starts.begin() - 1;
        if (!is_wanted[cell]) {
            found.push_back({cell, r, r});
            is_wanted[cell] = 1;
            cursor[cell] = size;
            size += starts[cell + 1] - starts[cell];
        }
        found.back().end = r + 1;
    }
    buffer<std::uint32_t> numbers(size + 1);  // of the wanted values, and a place for others
    std::ptrdiff_t n_numbers = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        numbers[n_numbers] = static_cast<std::uint32_t>(i);
        n_numbers += is_wanted[cells[i]];
    }
    buffer<T> gathered(size);
    for (std::ptrdiff_t k = 0; k < size; ++k)
        gathered[cursor[cells[numbers[k]]]++] = values[numbers[k]];
    for (const auto& [cell, first, end] : found) {
        const auto n_values = starts[cell + 1] - starts[cell];
        pick(gathered.data() + cursor[cell] - n_values, n_values,
             places{end - first, wanted.ranks + first, wanted.out + first,
                    wanted.before + starts[cell]},
             depth + 1);
    }
}

}  // namespace

template <class T>
void pick(T* values, std::ptrdiff_t n, const places& wanted, int depth) {
    if (n <= few_values) return pick_from_few(values, n, wanted);
    const auto [low, high] = std::minmax_element(values, values + n);
    if (*low == *high) {
        std::fill_n(wanted.out, wanted.n, static_cast<double>(*low));
        return;
    }
    const auto n_cells = std::clamp<std::ptrdiff_t>(n / values_of_cell, 2, most_cells);
    const value_grid<T> grid(*low, *high, n_cells);
    if (depth == deepest || grid.cells_per_unit == T{0}) {
        std::sort(values, values + n);
        for (std::ptrdiff_t r = 0; r < wanted.n; ++r)
            wanted.out[r] = static_cast<double>(values[wanted.ranks[r] - wanted.before]);
        return;
    }
    buffer<std::uint16_t> cells(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) cells[i] = grid.cell(values[i]);
    pick_from_cells(n, values, cells.data(), n_cells, wanted, depth);
}

template decltype(pick<double>) pick<double>;
template decltype(pick<float>) pick<float>;

}  // namespace pairgram
