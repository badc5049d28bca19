#include "features/list_columns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/word_sort.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t columns_of_task = 16;       // whole cache lines of a row
constexpr std::ptrdiff_t rows_of_task = 1 << 10;     // of several short lists
constexpr std::ptrdiff_t longest_network = 1 << 11;  // longer lists are sorted with branches
constexpr double rank_offset = 60;  // of reciprocal rank fusion (Cormack et al., SIGIR 2009)
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The values of one column in one list, without those that are absent, and their order.
struct list_values {
    buffer<double> values;
    buffer<std::ptrdiff_t> rows;    // of each value
    buffer<double> made;            // of each value
    buffer<std::int64_t> words;     // room for the sort
    buffer<std::ptrdiff_t> sorted;  // places of the values, ascending

    std::ptrdiff_t n() const { return length_of(values); }
};

// Sets list.sorted, for which 0 and -0 are equal. A place takes the last bits of the word of its
// value; what these bits told of the value is looked at afterwards.
void sort_values(list_values& list) {
    const auto n = list.n();
    std::int64_t mask = 0;
    while (mask < n - 1) mask = 2 * mask + 1;
    list.words.resize(room_for_words(n));
    for (std::ptrdiff_t i = 0; i < n; ++i)
        list.words[i] = (word_of(list.values[i] + 0.0) & ~mask) | i;
    if (n <= longest_network)
        sort_words(n, n, list.words.data());
    else
        std::sort(list.words.data(), list.words.data() + n);
    list.sorted.resize(n);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        list.sorted[i] = static_cast<std::ptrdiff_t>(list.words[i] & mask);
    const auto below = [&](std::ptrdiff_t a, std::ptrdiff_t b) {
        return list.values[a] < list.values[b];
    };
    auto* const place = list.sorted.data();
    for (std::ptrdiff_t begin = 0, end = 1; begin < n; begin = end++) {
        while (end < n && (list.words[end] & ~mask) == (list.words[begin] & ~mask)) ++end;
        if (!std::is_sorted(place + begin, place + end, below))
            std::sort(place + begin, place + end, below);
    }
}

// Calls found(place, n_below, n_equal) for every value, whose n_equal include itself.
template <class Found>
void for_ranks(list_values& list, const Found& found) {
    sort_values(list);
    const auto n = list.n();
    for (std::ptrdiff_t begin = 0, end; begin < n; begin = end) {
        end = begin + 1;
        const double value = list.values[list.sorted[begin]];
        while (end < n && list.values[list.sorted[end]] == value) ++end;
        for (auto i = begin; i < end; ++i) found(list.sorted[i], begin, end - begin);
    }
}

void make_ranks(list_values& list) {
    const auto n = list.n();
    for_ranks(list, [&](std::ptrdiff_t i, std::ptrdiff_t below, std::ptrdiff_t equal) {
        const double less = static_cast<double>(2 * below + equal - 1);
        list.made[i] = n == 1 ? 0.5 : less / static_cast<double>(2 * (n - 1));
    });
}

void make_reciprocal_ranks(list_values& list) {
    const auto n = list.n();
    for_ranks(list, [&](std::ptrdiff_t i, std::ptrdiff_t below, std::ptrdiff_t equal) {
        const double rank = static_cast<double>(2 * (n - below) - equal + 1) / 2;
        list.made[i] = rank_offset / (rank_offset + rank);
    });
}

void make_scaled(list_values& list) {
    const auto [low, high] = std::minmax_element(list.values.begin(), list.values.end());
    const double lowest = *low, range = *high - *low;
    for (std::ptrdiff_t i = 0; i < list.n(); ++i)
        list.made[i] = range == 0             ? 1.0
                       : std::isfinite(range) ? (list.values[i] - lowest) / range
                                              : nan;
}

void make_standard(list_values& list) {
    const auto n = static_cast<double>(list.n());
    const double pivot = list.values[0];
    double sum = 0, squares = 0;
    for (const double value : list.values) sum += value - pivot;
    const double shift = sum / n, mean = pivot + shift;
    for (const double value : list.values)
        squares += (value - pivot - shift) * (value - pivot - shift);
    // The bound of scikit-learn for columns that are constant but for rounding errors.
    constexpr double eps = std::numeric_limits<double>::epsilon();
    const double variance = squares / n, error = n * mean * eps;
    const bool is_number = std::isfinite(variance) && std::isfinite(error);
    const bool is_constant = variance <= n * eps * variance + error * error;
    const double deviation = std::sqrt(variance);
    for (std::ptrdiff_t i = 0; i < list.n(); ++i)
        list.made[i] = !is_number    ? nan
                       : is_constant ? 0.0
                                     : (list.values[i] - pivot - shift) / deviation;
}

template <class T>
struct column_of_list {
    const query_rows& lists;
    std::ptrdiff_t list, n_inputs, n_columns, column;
    const T* rows;
    T* out;

    // Sets the values, without NaN.
    void read(list_values& values) const {
        values.values.clear();
        values.rows.clear();
        for (auto at = lists.begin(list); at < lists.begin(list + 1); ++at) {
            const auto row = lists.row(at);
            const auto value = static_cast<double>(rows[row * n_inputs + column]);
            if (std::isnan(value)) continue;
            values.values.push_back(value);
            values.rows.push_back(row);
        }
        values.made.resize(values.n());
    }

    // Writes what was made of the values to a column of out, and 0 for NaN.
    void write(const list_values& values, std::ptrdiff_t to) const {
        if (values.n() < lists.size(list))
            for (auto at = lists.begin(list); at < lists.begin(list + 1); ++at)
                out[lists.row(at) * n_columns + to] = T{0};
        for (std::ptrdiff_t i = 0; i < values.n(); ++i)
            out[values.rows[i] * n_columns + to] = static_cast<T>(values.made[i]);
    }

    void make(const list_columns& columns, list_values& values) const {
        auto to = column;
        if (columns.keeps_inputs) {
            for (auto at = lists.begin(list); at < lists.begin(list + 1); ++at)
                out[lists.row(at) * n_columns + to] = rows[lists.row(at) * n_inputs + column];
            to += n_inputs;
        }
        read(values);
        const auto with = [&](auto function) {
            if (values.n() > 0) function(values);
            write(values, to);
        };
        if (columns.kind == list_kind::rank) {
            with(make_ranks);
        } else if (columns.kind == list_kind::standard) {
            with(make_standard);
        } else {
            with(make_scaled);
            to += n_inputs;
            with(make_reciprocal_ranks);
        }
    }
};

}  // namespace

template <class T>
void make_list_columns(const list_columns& columns, const query_rows& lists,
                       std::ptrdiff_t n_inputs, const T* rows, T* out, int n_threads) {
    const auto groups = runs_of(lists.n_queries, rows_of_task,
                                [&](std::ptrdiff_t list) { return lists.size(list); });
    const auto n_groups = length_of(groups) - 1;
    const auto n_strips = (n_inputs + columns_of_task - 1) / columns_of_task;
    const auto n_columns = columns.n_columns(n_inputs);
    parallel_for(n_groups * n_strips, n_threads, [&](std::ptrdiff_t task) {
        const auto first = task % n_strips * columns_of_task;
        const auto last = std::min(n_inputs, first + columns_of_task);
        list_values values;
        for (auto list = groups[task / n_strips]; list < groups[task / n_strips + 1]; ++list)
            for (auto column = first; column < last; ++column)
                column_of_list<T>{lists, list, n_inputs, n_columns, column, rows, out}.make(columns,
                                                                                            values);
    });
}

PAIRGRAM_FOR_BOTH_WIDTHS(make_list_columns);

}  // namespace pairgram
