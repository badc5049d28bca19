#include "features/seen_columns.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t rows_of_task = 4096, rows_of_block = 32;
constexpr std::ptrdiff_t n_sums = 9;

// Rows of one query that count.
template <class T>
struct counted_rows {
    std::ptrdiff_t n = 0;
    double weight[rows_of_block];
    const T* row[rows_of_block];
};

// A value less its pivot, and its weight, which are 0 if it is missing: NaN is no number.
inline double difference_of(double value, double pivot) {
    return value == value ? value - pivot : 0.0;
}
inline double weight_of(double value, double weight) { return value == value ? weight : 0.0; }

// Adds rows to N, S, the squares and the range, n at a time, so that each of these is read and
// written once for n values. Returns the first row that is left. Meanwhile the memory that lies
// `ahead` is fetched.
template <std::ptrdiff_t n, class T>
PAIRGRAM_CLONES std::ptrdiff_t add_rows(std::ptrdiff_t first, std::ptrdiff_t d,
                                        const counted_rows<T>& rows, std::ptrdiff_t ahead,
                                        const double* pivot, double* known, double* sum,
                                        double* squares, double* lowest, double* highest) {
    constexpr auto line = 64 / static_cast<std::ptrdiff_t>(sizeof(T));
    for (; first + n <= rows.n; first += n) {
        const T* const* const row = rows.row + first;
        const double* const weight = rows.weight + first;
        for (std::ptrdiff_t k = 0; k < n * d; k += line) prefetch(row[0] + ahead + k);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
        for (std::ptrdiff_t j = 0; j < d; ++j) {
            double N = known[j], S = sum[j], square = squares[j];
            double low = lowest[j], high = highest[j];
            for (std::ptrdiff_t i = 0; i < n; ++i) {
                const double value = static_cast<double>(row[i][j]);
                const double difference = difference_of(value, pivot[j]);
                N += weight_of(value, weight[i]);
                S += weight[i] * difference;
                square += weight[i] * (difference * difference);
                low = value < low ? value : low;
                high = value > high ? value : high;
            }
            known[j] = N;
            sum[j] = S;
            squares[j] = square;
            lowest[j] = low;
            highest[j] = high;
        }
    }
    return first;
}

// Adds a query of the weight `all`, given its N, S and range, to a part.
PAIRGRAM_CLONES void add_query(std::ptrdiff_t d, double all, const double* known, const double* sum,
                               const double* least, const double* most, double* sums,
                               double* lowest, double* highest, std::int64_t* queries) {
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double n = known[j], s = sum[j];
        sums[j] += n;
        sums[d + j] += s;
        sums[3 * d + j] += n * n;
        sums[4 * d + j] += n * s;
        sums[5 * d + j] += s * s;
        sums[6 * d + j] += n * all;
        sums[7 * d + j] += all * all;
        sums[8 * d + j] += all;
    }
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        lowest[j] = std::min(lowest[j], least[j]);
        highest[j] = std::max(highest[j], most[j]);
        queries[j] += 1;
        queries[d + j] += known[j] > 0;
        queries[2 * d + j] += known[j] < all;
        queries[3 * d + j] += least[j] < most[j];
    }
}

}  // namespace

template <class T>
seen_parts<T>::part::part(std::ptrdiff_t d)
    : sums(n_sums * d, 0.0),
      lowest(d, std::numeric_limits<double>::infinity()),
      highest(d, -std::numeric_limits<double>::infinity()),
      queries(4 * d, std::int64_t{0}),
      known(d),
      sum(d),
      least(d),
      most(d) {}

template <class T>
seen_parts<T>::seen_parts(const query_rows& queries, std::ptrdiff_t d, const T* X,
                          const double* pivot)
    : queries_(queries), d_(d), X_(X), pivot_(pivot) {}

template <class T>
void seen_parts<T>::make(std::ptrdiff_t n_parts) {
    parts_.assign(size_of(n_parts), part(d_));
}

template <class T>
void seen_parts<T>::take(std::ptrdiff_t number, std::ptrdiff_t first, std::ptrdiff_t last) {
    for (auto q = first; q < last; ++q) take_query(q, parts_[number]);
}

template <class T>
void seen_parts<T>::take_query(std::ptrdiff_t q, part& own) const {
    std::fill(own.known.begin(), own.known.end(), 0.0);
    std::fill(own.sum.begin(), own.sum.end(), 0.0);
    std::fill(own.least.begin(), own.least.end(), std::numeric_limits<double>::infinity());
    std::fill(own.most.begin(), own.most.end(), -std::numeric_limits<double>::infinity());
    double all = 0;
    const auto end = queries_.begin(q + 1);
    for (auto begin = queries_.begin(q); begin < end; begin += rows_of_block) {
        counted_rows<T> rows;
        for (auto at = begin; at < std::min(end, begin + rows_of_block); ++at) {
            const auto row = queries_.row(at);
            const double weight = queries_.row_weight(row);
            if (weight == 0) continue;
            rows.weight[rows.n] = weight;
            rows.row[rows.n++] = X_ + row * d_;
            all += weight;  // in the order of N, which is as large without missing values
        }
        const auto add = [&](auto n, std::ptrdiff_t first) {
            return add_rows<n()>(first, d_, rows, rows_of_block * d_, pivot_, own.known.data(),
                                 own.sum.data(), own.sums.data() + 2 * d_, own.least.data(),
                                 own.most.data());
        };
        using one = std::integral_constant<std::ptrdiff_t, 1>;
        using four = std::integral_constant<std::ptrdiff_t, 4>;
        add(one(), add(four(), 0));
    }
    if (all > 0)
        add_query(d_, all, own.known.data(), own.sum.data(), own.least.data(), own.most.data(),
                  own.sums.data(), own.lowest.data(), own.highest.data(), own.queries.data());
}

template <class T>
void seen_parts<T>::finish(const seen_columns& seen) const {
    part all(d_);
    for (const auto& own : parts_) {
        for (std::ptrdiff_t k = 0; k < n_sums * d_; ++k) all.sums[k] += own.sums[k];
        for (std::ptrdiff_t k = 0; k < 4 * d_; ++k) all.queries[k] += own.queries[k];
        for (std::ptrdiff_t j = 0; j < d_; ++j) {
            all.lowest[j] = std::min(all.lowest[j], own.lowest[j]);
            all.highest[j] = std::max(all.highest[j], own.highest[j]);
        }
    }
    std::copy(all.sums.begin(), all.sums.end(), seen.sums);
    std::copy(all.lowest.begin(), all.lowest.end(), seen.range);
    std::copy(all.highest.begin(), all.highest.end(), seen.range + d_);
    std::copy(all.queries.begin(), all.queries.end(), seen.queries);
}

template <class T>
void find_seen_columns(const query_rows& queries, std::ptrdiff_t d, const T* X, const double* pivot,
                       const seen_columns& seen, int n_threads) {
    buffer<std::ptrdiff_t> ends;  // of the tasks, as numbers of queries
    for (std::ptrdiff_t q = 0, first = 0; q < queries.n_queries; ++q) {
        if (queries.begin(q + 1) - first < rows_of_task && q + 1 < queries.n_queries) continue;
        ends.push_back(q + 1);
        first = queries.begin(q + 1);
    }
    const auto n_tasks = static_cast<std::ptrdiff_t>(ends.size());
    seen_parts<T> parts(queries, d, X, pivot);
    parts.make(n_tasks);
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        parts.take(task, task > 0 ? ends[task - 1] : 0, ends[task]);
    });
    parts.finish(seen);
}

template class seen_parts<double>;
template class seen_parts<float>;
template void find_seen_columns<double>(const query_rows&, std::ptrdiff_t, const double*,
                                        const double*, const seen_columns&, int);
template void find_seen_columns<float>(const query_rows&, std::ptrdiff_t, const float*,
                                       const double*, const seen_columns&, int);

}  // namespace pairgram
