#include "features/gaps.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "features/selection.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t rows_of_task = 1024, rows_of_sum = 4096;
constexpr std::ptrdiff_t columns_of_task = 16;  // neighbours, which share cache lines
constexpr std::ptrdiff_t rows_ahead = 32;       // that are fetched
constexpr double equal_share = 1e-12;           // of all weight

template <class T>
PAIRGRAM_CLONES void fill_rows(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const T* fill,
                               T* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < d; ++j) {
            const T value = X[i * d + j];
            out[i * d + j] = value == value ? value : fill[j];
        }
}

// Adds a row to the weights and sums of its values that are not NaN.
template <class T>
PAIRGRAM_CLONES void add_row(std::ptrdiff_t d, const T* x, double weight, const double* pivot,
                             double* known, double* sum) {
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double value = static_cast<double>(x[j]);
        known[j] += value == value ? weight : 0.0;
        sum[j] += weight * (value == value ? value - pivot[j] : 0.0);
    }
}

double middle(double low, double high) { return low == high ? low : low / 2 + high / 2; }

// Of one value or more, which change their order.
template <class T>
double median_of(T* values, T* end) {
    const auto n = end - values;
    const std::int64_t ranks[] = {(n - 1) / 2, n / 2};
    double found[2];
    pick(values, n, places{2, ranks, found, 0}, 1);
    return middle(found[0], found[1]);
}

template <class T>
using weighted_value = std::pair<T, double>;

// The least of the values, which change their order, up to which there is a weight of at least
// `wanted`, or of more if it must be `above`. Halves the values that are in question.
template <class T>
T value_at(weighted_value<T>* first, weighted_value<T>* last, double wanted, bool above) {
    double before = 0;
    while (last - first > 1) {
        weighted_value<T>* const half = first + (last - first) / 2;
        std::nth_element(first, half, last);
        double weight = before;
        for (const auto* it = first; it != half; ++it) weight += it->second;
        if (above ? weight > wanted : weight >= wanted) {
            last = half;
        } else {
            before = weight;
            first = half;
        }
    }
    return first->first;
}

template <class T>
double median(weighted_value<T>* first, weighted_value<T>* last) {
    double total = 0;
    for (const auto* it = first; it != last; ++it) total += it->second;
    const double low =
        static_cast<double>(value_at(first, last, total * (0.5 - equal_share), false));
    const double high =
        static_cast<double>(value_at(first, last, total * (0.5 + equal_share), true));
    return middle(low, high);
}

double median(float* first, float* last) { return median_of(first, last); }
double median(double* first, double* last) { return median_of(first, last); }

void put(float value, double, float& to) { to = value; }
void put(double value, double, double& to) { to = value; }
template <class T>
void put(T value, double weight, weighted_value<T>& to) {
    to = {value, weight};
}

// The medians of neighbouring columns, at most columns_of_task. Of each, the known values are
// gathered, one behind the other.
template <class Value, class T>
void take_medians(std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t width, const T* X,
                  const double* weights, double* out) {
    const std::unique_ptr<Value[]> known(new Value[size_of(width * n)]);
    Value* ends[columns_of_task];
    for (std::ptrdiff_t j = 0; j < width; ++j) ends[j] = known.get() + j * n;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        if (!(weight > 0)) continue;
        const T* const x = X + i * d;
        prefetch(x + rows_ahead * d);
        prefetch(x + rows_ahead * d + width - 1);
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            put(x[j], weight, *ends[j]);  // the next value takes the place of a NaN
            ends[j] += x[j] == x[j];
        }
    }
    for (std::ptrdiff_t j = 0; j < width; ++j) {
        check_interrupt();
        Value* const first = known.get() + j * n;
        out[j] =
            first == ends[j] ? std::numeric_limits<double>::quiet_NaN() : median(first, ends[j]);
    }
}

// Columns that are read side by side: their numbers fill a cache line of a row.
template <class T>
constexpr std::ptrdiff_t group = 64 / static_cast<std::ptrdiff_t>(sizeof(T));

// Whether one of n numbers is NaN.
template <class T>
bool has_nan(std::ptrdiff_t n, const T* x) {
    int found = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) found |= x[i] != x[i];
    return found != 0;
}

// rows (n, d), columns first to first + width of them
template <class T>
void copy_columns(std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t width, const T* const* columns,
                  T* rows) {
    if (width == group<T>) {  // a constant number of streams
        for (std::ptrdiff_t i = 0; i < n; ++i)
            for (std::ptrdiff_t j = 0; j < group<T>; ++j) rows[i * d + j] = columns[j][i];
        return;
    }
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < width; ++j) rows[i * d + j] = columns[j][i];
}

template <class T>
void fill_column(std::ptrdiff_t n, std::ptrdiff_t d, T fill, T* column) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        if (column[i * d] != column[i * d]) column[i * d] = fill;
}

}  // namespace

template <class T>
void fill_gaps(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const T* fill, T* out,
               int n_threads) {
    parallel_parts(n, rows_of_task, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t size) {
        fill_rows(size, d, X + first * d, fill, out + first * d);
    });
}

template <class T>
void find_known_medians(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                        double* out, int n_threads) {
    parallel_parts(d, columns_of_task, n_threads, [&](std::ptrdiff_t begin, std::ptrdiff_t width) {
        if (weights)
            take_medians<weighted_value<T>>(n, d, width, X + begin, weights, out + begin);
        else
            take_medians<T>(n, d, width, X + begin, weights, out + begin);
    });
}

template <class T>
void find_known_sums(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                     const double* pivot, double* out, int n_threads) {
    const auto n_parts = (n + rows_of_sum - 1) / rows_of_sum;
    buffer<double> sums(n_parts * 2 * d, 0.0);
    parallel_parts(n, rows_of_sum, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t size) {
        double* const of_part = sums.data() + first / rows_of_sum * 2 * d;
        for (auto i = first; i < first + size; ++i) {
            const double weight = weights ? weights[i] : 1.0;
            if (weight != 0) add_row(d, X + i * d, weight, pivot, of_part, of_part + d);
        }
    });
    std::fill(out, out + 2 * d, 0.0);
    for (std::ptrdiff_t part = 0; part < n_parts; ++part)
        for (std::ptrdiff_t k = 0; k < 2 * d; ++k) out[k] += sums[part * 2 * d + k];
}

template <class T>
void interleave_columns(std::ptrdiff_t n, std::ptrdiff_t d, const T* const* columns, const T* fill,
                        T* rows, bool* missing, int n_threads) {
    buffer<std::atomic<bool>> found(d);
    parallel_parts(n, rows_of_task, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t count) {
        const T* at[group<T>];
        for (std::ptrdiff_t j = 0; j < d; j += group<T>) {
            const auto width = std::min(group<T>, d - j);
            T* const out = rows + first * d + j;
            for (std::ptrdiff_t k = 0; k < width; ++k) at[k] = columns[j + k] + first;
            copy_columns(count, d, width, at, out);
            for (std::ptrdiff_t k = 0; k < width; ++k) {
                if (!has_nan(count, at[k])) continue;
                found[j + k].store(true, std::memory_order_relaxed);
                if (fill) fill_column(count, d, fill[j + k], out + k);
            }
        }
    });
    for (std::ptrdiff_t j = 0; j < d; ++j) missing[j] = found[j].load();
}

template decltype(fill_gaps<double>) fill_gaps<double>;
template decltype(fill_gaps<float>) fill_gaps<float>;
template decltype(find_known_medians<double>) find_known_medians<double>;
template decltype(find_known_medians<float>) find_known_medians<float>;
template decltype(find_known_sums<double>) find_known_sums<double>;
template decltype(find_known_sums<float>) find_known_sums<float>;
template decltype(interleave_columns<double>) interleave_columns<double>;
template decltype(interleave_columns<float>) interleave_columns<float>;

}  // namespace pairgram
