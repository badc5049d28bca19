#include "inputs/column_statistics.hpp"

#include <algorithm>
#include <limits>

#include "support/buffer.hpp"
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
PAIRGRAM_CLONES void add_squares(std::ptrdiff_t d, double weight, const T* x, const T* pivot,
                                 const double* mean, double* squares) {
    constexpr auto line = 64 / static_cast<std::ptrdiff_t>(sizeof(T));
    for (std::ptrdiff_t j = 0; j < d; j += line) prefetch(x + rows_of_block * d + j);
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double difference =
            static_cast<double>(x[j]) - static_cast<double>(pivot[j]) - mean[j];
        squares[j] += weight * (difference * difference);
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

struct part_of_rows {
    double weight = 0;
    buffer<double> mean, squares, lowest, highest;  // mean is from the pivot

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
              const T* pivot, const double* weights, buffer<double>& mean, part_of_rows& part) {
    const auto weight_of = [&](std::ptrdiff_t i) { return weights ? weights[i] : 1.0; };
    double weight = 0;
    mean.assign(d, 0.0);
    for (auto i = begin; i < end; ++i) {
        const double v = weight_of(i);
        if (v == 0) continue;
        weight += v;
        add_row(d, v, X + i * d, pivot, mean.data(), part.lowest.data(), part.highest.data());
    }
    if (weight == 0) return;
    for (std::ptrdiff_t j = 0; j < d; ++j) mean[j] /= weight;
    for (auto i = begin; i < end; ++i)
        if (const double v = weight_of(i); v != 0)
            add_squares(d, v, X + i * d, pivot, mean.data(), part.squares.data());
    part.join_with(d, weight, mean.data());
}

}  // namespace

template <class T>
void find_moments(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                  const column_moments& moments, int n_threads) {
    const auto n_tasks = (n + rows_of_task - 1) / rows_of_task;
    std::ptrdiff_t row = 0;
    while (weights && row + 1 < n && weights[row] == 0) ++row;
    const T* const pivot = X + row * d;
    buffer<part_of_rows> parts(n_tasks, part_of_rows(d));
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        buffer<double> mean;
        const auto last = std::min(n, (task + 1) * rows_of_task);
        for (auto begin = task * rows_of_task; begin < last; begin += rows_of_block)
            add_rows(begin, std::min(last, begin + rows_of_block), d, X, pivot, weights, mean,
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
    for (std::ptrdiff_t j = 0; j < d; ++j)
        moments.mean[j] = static_cast<double>(pivot[j]) + all.mean[j];
    std::copy(all.squares.begin(), all.squares.end(), moments.squares);
    std::copy(all.lowest.begin(), all.lowest.end(), moments.lowest);
    std::copy(all.highest.begin(), all.highest.end(), moments.highest);
}

template void find_moments<double>(std::ptrdiff_t, std::ptrdiff_t, const double*, const double*,
                                   const column_moments&, int);
template void find_moments<float>(std::ptrdiff_t, std::ptrdiff_t, const float*, const double*,
                                  const column_moments&, int);

}  // namespace pairgram
