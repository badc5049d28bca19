#include "features/column_statistics.hpp"

#include <algorithm>
#include <limits>

#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t rows_of_task = 4096, rows_of_block = 32;
constexpr std::ptrdiff_t together = 16;  // columns, whose sums stay in registers

// The rows of a block that count.
template <class T>
struct counted_rows {
    std::ptrdiff_t n = 0;
    double total = 0;  // of weights
    double weight[rows_of_block];
    const T* row[rows_of_block];
};

// Of every column of a part of the rows; room for a group of columns or more.
struct part_of_rows {
    double weight = 0;
    buffer<double> mean, squares, lowest, highest;  // mean is from the pivot

    explicit part_of_rows(std::ptrdiff_t size)
        : mean(size, 0.0),
          squares(size, 0.0),
          lowest(size, std::numeric_limits<double>::infinity()),
          highest(size, -std::numeric_limits<double>::infinity()) {}
};

// The mean of a block from the pivot, and the squared differences from it, which are set; and the
// range, which is widened. Columns are taken in groups, the last of which may overlap the one
// before it. Meanwhile the memory that lies `ahead` is fetched.
template <class T>
PAIRGRAM_CLONES void take_block(std::ptrdiff_t size, const counted_rows<T>& rows,
                                std::ptrdiff_t ahead, const double* pivot, double* mean,
                                double* squares, double* lowest, double* highest) {
    constexpr auto line = 64 / static_cast<std::ptrdiff_t>(sizeof(T));
    for (std::ptrdiff_t begin = 0; begin < size; begin += together) {
        const auto j = std::min(begin, size - together);
        double origin[together], low[together], high[together], sum[together] = {};
        for (std::ptrdiff_t k = 0; k < together; ++k) {
            origin[k] = pivot[j + k];
            low[k] = lowest[j + k];
            high[k] = highest[j + k];
        }
        for (std::ptrdiff_t i = 0; i < rows.n; ++i) {
            const T* const x = rows.row[i] + j;
            for (std::ptrdiff_t k = 0; k < together; ++k) {
                const double value = static_cast<double>(x[k]);
                sum[k] += rows.weight[i] * (value - origin[k]);
                low[k] = value < low[k] ? value : low[k];
                high[k] = value > high[k] ? value : high[k];
            }
        }
        double middle[together];
        for (std::ptrdiff_t k = 0; k < together; ++k) {
            lowest[j + k] = low[k];
            highest[j + k] = high[k];
            mean[j + k] = middle[k] = sum[k] / rows.total;
            sum[k] = 0;
        }
        for (std::ptrdiff_t i = 0; i < rows.n; ++i) {
            const T* const x = rows.row[i] + j;
            for (std::ptrdiff_t k = 0; k < together; k += line) prefetch(x + ahead + k);
            for (std::ptrdiff_t k = 0; k < together; ++k) {
                const double difference = static_cast<double>(x[k]) - origin[k] - middle[k];
                sum[k] += rows.weight[i] * (difference * difference);
            }
        }
        for (std::ptrdiff_t k = 0; k < together; ++k) squares[j + k] = sum[k];
    }
}

// Means of two parts, both from a row that counts, and what joining them adds to the squares.
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

// Adds other rows, given their weight; their range has been taken.
void join_with(std::ptrdiff_t d, double weight, const double* mean, const double* squares,
               part_of_rows& part) {
    for (std::ptrdiff_t j = 0; j < d; ++j) part.squares[j] += squares[j];
    if (part.weight == 0)
        std::copy_n(mean, d, part.mean.begin());
    else
        join(d, part.weight, weight, mean, part.mean.data(), part.squares.data());
    part.weight += weight;
}

// Adds n rows, at most a block.
template <class T>
void add_rows(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
              const double* pivot, buffer<double>& scratch, part_of_rows& part) {
    counted_rows<T> rows;
    T narrow[rows_of_block * together];  // rows that are shorter than a group
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double v = weights ? weights[i] : 1.0;
        if (v == 0) continue;
        rows.row[rows.n] = X + i * d;
        if (d < together) {
            T* const row = narrow + rows.n * together;
            std::fill(std::copy_n(X + i * d, d, row), row + together, T{0});
            rows.row[rows.n] = row;
        }
        rows.weight[rows.n++] = v;
        rows.total += v;
    }
    if (rows.n == 0) return;
    const auto size = std::max(d, together);
    double *const mean = scratch.data(), *const squares = mean + size;
    take_block(size, rows, d < together ? 0 : rows_of_block * d, pivot, mean, squares,
               part.lowest.data(), part.highest.data());
    join_with(d, rows.total, mean, squares, part);
}

}  // namespace

template <class T>
void find_moments(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                  double* out, int n_threads) {
    const auto n_tasks = (n + rows_of_task - 1) / rows_of_task;
    const auto size = std::max(d, together);
    std::ptrdiff_t first = 0;
    while (weights && first + 1 < n && weights[first] == 0) ++first;
    buffer<double> pivot(size, 0.0);
    for (std::ptrdiff_t j = 0; j < d; ++j) pivot[j] = static_cast<double>(X[first * d + j]);
    buffer<part_of_rows> parts(n_tasks, part_of_rows(size));
    parallel_parts(n, rows_of_task, n_threads, [&](std::ptrdiff_t first_row, std::ptrdiff_t n_own) {
        buffer<double> scratch(2 * size);
        for (auto begin = first_row; begin < first_row + n_own; begin += rows_of_block)
            add_rows(std::min(rows_of_block, first_row + n_own - begin), d, X + begin * d,
                     weights ? weights + begin : nullptr, pivot.data(), scratch,
                     parts[first_row / rows_of_task]);
    });
    part_of_rows all(size);
    for (const auto& part : parts) {
        if (part.weight == 0) continue;
        for (std::ptrdiff_t j = 0; j < d; ++j) {
            all.lowest[j] = std::min(all.lowest[j], part.lowest[j]);
            all.highest[j] = std::max(all.highest[j], part.highest[j]);
        }
        join_with(d, part.weight, part.mean.data(), part.squares.data(), all);
    }
    for (const auto* of : {&all.lowest, &all.highest, &pivot, &all.mean, &all.squares})
        out = std::copy_n(of->begin(), d, out);
}

PAIRGRAM_FOR_BOTH_WIDTHS(find_moments);

}  // namespace pairgram
