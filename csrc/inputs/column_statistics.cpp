#include "inputs/column_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "support/buffer.hpp"
#include "support/interrupt.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t rows_of_task = 4096, rows_of_block = 32;

// sum[j] += weight * (x[j] - pivot[j]), and the range of x[j]
template <class T>
PAIRGRAM_CLONES void add_row(std::ptrdiff_t d, double weight, const T* x, const T* pivot,
                             double* sum, double* lowest, double* highest) {
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double value = static_cast<double>(x[j]);
        sum[j] += weight * (value - static_cast<double>(pivot[j]));
        lowest[j] = value < lowest[j] ? value : lowest[j];
        highest[j] = value > highest[j] ? value : highest[j];
    }
}

template <class T>
PAIRGRAM_CLONES void add_squares(std::ptrdiff_t d, double weight, const T* x, const double* mean,
                                 double* squares) {
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double difference = static_cast<double>(x[j]) - mean[j];
        squares[j] += weight * (difference * difference);
    }
}

// Means of two parts, and what joining them adds to the squares.
PAIRGRAM_CLONES void join(std::ptrdiff_t d, double weight, double part_weight,
                          const double* part_mean, double* mean, double* squares) {
    const double total = weight + part_weight;
    const double share = part_weight / total, factor = weight * share;
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double difference = part_mean[j] - mean[j];
        mean[j] += share * difference;
        squares[j] += factor * (difference * difference);
    }
}

struct part_of_rows {
    double weight = 0;
    buffer<double> mean, squares, lowest, highest;

    explicit part_of_rows(std::ptrdiff_t d)
        : mean(d, 0.0),
          squares(d, 0.0),
          lowest(d, std::numeric_limits<double>::infinity()),
          highest(d, -std::numeric_limits<double>::infinity()) {}

    void join_with(std::ptrdiff_t d, double other_weight, const double* other_mean) {
        if (weight == 0)
            std::copy_n(other_mean, d, mean.begin());
        else
            join(d, weight, other_weight, other_mean, mean.data(), squares.data());
        weight += other_weight;
    }
};

template <class T>
void add_rows(std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t d, const T* X,
              const double* weights, buffer<double>& mean, part_of_rows& part) {
    const auto weight_of = [&](std::ptrdiff_t i) { return weights ? weights[i] : 1.0; };
    double weight = 0;
    mean.assign(d, 0.0);
    for (auto i = begin; i < end; ++i) {
        const double v = weight_of(i);
        if (v == 0) continue;
        weight += v;
        add_row(d, v, X + i * d, X + begin * d, mean.data(), part.lowest.data(),
                part.highest.data());
    }
    if (weight == 0) return;
    for (std::ptrdiff_t j = 0; j < d; ++j)
        mean[j] = static_cast<double>(X[begin * d + j]) + mean[j] / weight;
    for (auto i = begin; i < end; ++i)
        if (const double v = weight_of(i); v != 0)
            add_squares(d, v, X + i * d, mean.data(), part.squares.data());
    part.join_with(d, weight, mean.data());
}

constexpr std::ptrdiff_t most_cells = 2048, values_of_cell = 16;
constexpr std::ptrdiff_t few_values = 128;
constexpr int deepest = 3;

// A grid of cells. The cell of a value never falls where the value rises; the first and the last
// take what lies outside.
template <class T>
struct value_grid {
    T lowest, cells_per_unit, last;

    value_grid() = default;
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

template <class T>
void pick_from_few(T* values, std::ptrdiff_t n, const places& wanted) {
    std::ptrdiff_t begin = 0, last = -1;
    for (std::ptrdiff_t r = 0; r < wanted.n; ++r) {
        const auto at = wanted.ranks[r] - wanted.before;
        if (at != last) std::nth_element(values + begin, values + at, values + n);
        wanted.out[r] = static_cast<double>(values[at]);
        last = at;
        begin = at + 1;
    }
}

template <class T>
void pick(T* values, std::ptrdiff_t n, const places& wanted, int depth);

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

// The grids of columns that stand in one cache line.
template <class T>
struct grids_of_line {
    static constexpr std::ptrdiff_t most = 64 / static_cast<std::ptrdiff_t>(sizeof(T));
    T lowest[most] = {}, cells_per_unit[most] = {};
};

// The cells of rows of a cache line each. odd becomes NaN where a value is not finite.
template <class T>
PAIRGRAM_CLONES void find_cells(std::ptrdiff_t n, const T* rows, const grids_of_line<T>& grids,
                                T* odd, std::int32_t* cells) {
    constexpr auto most = grids_of_line<T>::most;
    constexpr T last = static_cast<T>(most_cells - 1);
    T sum[most];
    for (std::ptrdiff_t j = 0; j < most; ++j) sum[j] = odd[j];
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < most; ++j) {
            const T value = rows[i * most + j];
            T at = (value - grids.lowest[j]) * grids.cells_per_unit[j];
            at = at > T{0} ? at : T{0};  // also NaN
            cells[i * most + j] = static_cast<std::int32_t>(at < last ? at : last);
            sum[j] += value - value;
        }
    for (std::ptrdiff_t j = 0; j < most; ++j) odd[j] = sum[j];
}

// Neighbouring columns of a cache line, copied to places that are n apart, and their cells in grids
// over the range of a sample.
template <class T>
struct copied_columns {
    static constexpr auto most = grids_of_line<T>::most;
    static constexpr std::ptrdiff_t sample = 256;

    std::unique_ptr<T[]> values;
    std::unique_ptr<std::uint16_t[]> cells;
    T odd[most] = {};  // 0, or NaN where a value is not finite

    explicit copied_columns(std::ptrdiff_t n)
        : values(new T[static_cast<std::size_t>(most * n)]),
          cells(new std::uint16_t[static_cast<std::size_t>(most * n)]) {}

    void take(std::ptrdiff_t n, std::ptrdiff_t width, const T* X, std::ptrdiff_t ld) {
        grids_of_line<T> grids;
        std::fill_n(odd, most, T{0});
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            const auto grid = grid_of(n, X + j, ld);
            grids.lowest[j] = grid.lowest;
            grids.cells_per_unit[j] = grid.cells_per_unit;
        }
        copy(n, width, X, ld, grids);
    }

    static value_grid<T> grid_of(std::ptrdiff_t n, const T* x, std::ptrdiff_t ld) {
        T low = x[0], high = x[0];
        const auto step = (n + sample - 1) / sample;
        for (std::ptrdiff_t i = 0; i < n; i += step) {
            low = std::min(low, x[i * ld]);
            high = std::max(high, x[i * ld]);
        }
        return {low, high, most_cells};
    }

    void copy(std::ptrdiff_t n, std::ptrdiff_t width, const T* X, std::ptrdiff_t ld,
              const grids_of_line<T>& grids) {
        constexpr std::ptrdiff_t rows = 64;
        T block[rows * most] = {};
        std::int32_t found[rows * most];
        for (std::ptrdiff_t begin = 0; begin < n; begin += rows) {
            const auto size = std::min(rows, n - begin);
            for (std::ptrdiff_t i = 0; i < size; ++i)
                std::copy_n(X + (begin + i) * ld, width, block + i * most);
            find_cells(size, block, grids, odd, found);
            for (std::ptrdiff_t j = 0; j < width; ++j)
                for (std::ptrdiff_t i = 0; i < size; ++i) {
                    values[j * n + begin + i] = block[i * most + j];
                    cells[j * n + begin + i] = static_cast<std::uint16_t>(found[i * most + j]);
                }
        }
    }
};

}  // namespace

template <class T>
void find_moments(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                  const column_moments& moments, int n_threads) {
    const auto n_tasks = (n + rows_of_task - 1) / rows_of_task;
    buffer<part_of_rows> parts(n_tasks, part_of_rows(d));
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        buffer<double> mean;
        const auto last = std::min(n, (task + 1) * rows_of_task);
        for (auto begin = task * rows_of_task; begin < last; begin += rows_of_block)
            add_rows(begin, std::min(last, begin + rows_of_block), d, X, weights, mean,
                     parts[task]);
    });
    part_of_rows all(d);
    for (const auto& part : parts) {
        if (part.weight == 0) continue;
        for (std::ptrdiff_t j = 0; j < d; ++j) {
            all.squares[j] += part.squares[j];
            all.lowest[j] = std::min(all.lowest[j], part.lowest[j]);
            all.highest[j] = std::max(all.highest[j], part.highest[j]);
        }
        all.join_with(d, part.weight, part.mean.data());
    }
    std::copy(all.mean.begin(), all.mean.end(), moments.mean);
    std::copy(all.squares.begin(), all.squares.end(), moments.squares);
    std::copy(all.lowest.begin(), all.lowest.end(), moments.lowest);
    std::copy(all.highest.begin(), all.highest.end(), moments.highest);
}

template <class T>
void find_order_statistics(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, std::ptrdiff_t n_ranks,
                           const std::int64_t* ranks, double* out, int n_threads) {
    constexpr auto at_once = copied_columns<T>::most;
    const auto n_tasks = std::min<std::ptrdiff_t>(n_threads, (d + at_once - 1) / at_once);
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        copied_columns<T> columns(n);
        for (auto first = task * at_once; first < d; first += n_tasks * at_once) {
            const auto width = std::min(at_once, d - first);
            columns.take(n, width, X + first, d);
            for (std::ptrdiff_t j = 0; j < width; ++j) {
                check_interrupt();
                const places wanted{n_ranks, ranks, out + (first + j) * n_ranks, 0};
                if (columns.odd[j] == T{0})
                    pick_from_cells(n, columns.values.get() + j * n, columns.cells.get() + j * n,
                                    most_cells, wanted, 0);
                else
                    std::fill_n(wanted.out, n_ranks, std::numeric_limits<double>::quiet_NaN());
            }
        }
    });
}

#define PAIRGRAM_COLUMN_STATISTICS(T)                                                      \
    template void find_moments<T>(std::ptrdiff_t, std::ptrdiff_t, const T*, const double*, \
                                  const column_moments&, int);                             \
    template void find_order_statistics<T>(std::ptrdiff_t, std::ptrdiff_t, const T*,       \
                                           std::ptrdiff_t, const std::int64_t*, double*, int);
PAIRGRAM_COLUMN_STATISTICS(double)
PAIRGRAM_COLUMN_STATISTICS(float)

}  // namespace pairgram
