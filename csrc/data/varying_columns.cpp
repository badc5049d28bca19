#include "data/varying_columns.hpp"

#include <algorithm>
#include <cmath>

#include "support/interrupt.hpp"

namespace pairgram {

template <class T>
void varying_features<T>::start(std::ptrdiff_t n_features) {
    n_marked_ = 0;
    next_look_ = 1;
    n_open_ = size_of(n_features);
    flags_.assign(n_features, 0);
}

// Looks after 1, 2, 4, ... rows: where features do not vary, each look would take its time.
template <class T>
void varying_features<T>::marked() {
    if (++n_marked_ < next_look_) return;
    next_look_ = 2 * n_marked_;
    n_open_ = size_of(std::count(flags_.begin(), flags_.end(), 0));
}

template <class T>
void varying_features<T>::mark(const T* row, const T* first, T rounding) {
    for (std::size_t j = 0; j < flags_.size(); ++j) {
        const T size = std::max(std::abs(row[j]), std::abs(first[j]));
        flags_[j] |= std::abs(row[j] - first[j]) > rounding * size;
    }
    marked();
}

template <class T>
void varying_features<T>::add_to(std::int64_t* counts) const {
    flag_of<T> any = 0;
    for (std::size_t j = 0; j < flags_.size(); ++j) {
        counts[j] += flags_[j];
        any |= flags_[j];
    }
    counts[flags_.size()] += any;
}

void count_varying(const query_rows& queries, const bool* counted, bool pointwise,
                   const sparse_rows<double>& X, std::int64_t* counts) {
    buffer<double> first(X.n_columns);
    buffer<std::int64_t> n_seen(X.n_columns, 0);
    buffer<std::uint8_t> differs(X.n_columns, 0);
    buffer<std::int32_t> touched;
    for (std::ptrdiff_t q = 0; q < queries.n_queries; ++q) {
        if (q % 1024 == 0) check_interrupt();
        if (!counted[q]) continue;
        std::int64_t n_rows = 0;
        for (auto i = queries.begin(q); i < queries.begin(q + 1); ++i) {
            const auto row = queries.row(i);
            if (queries.row_weight(row) <= 0) continue;
            ++n_rows;
            for (auto k = X.begin(row); k < X.begin(row + 1); ++k) {
                const auto j = X.columns[k];
                if (X.values[k] == 0) continue;
                if (n_seen[j]++ == 0) {
                    first[j] = X.values[k];
                    touched.push_back(j);
                } else if (X.values[k] != first[j]) {
                    differs[j] = 1;
                }
            }
        }
        bool any = false;
        for (const auto j : touched) {
            const bool varies = pointwise || differs[j] || n_seen[j] < n_rows;
            counts[j] += varies;
            any |= varies;
            n_seen[j] = 0;
            differs[j] = 0;
        }
        counts[X.n_columns] += any;
        touched.clear();
    }
}

template class varying_features<double>;
template class varying_features<float>;

}  // namespace pairgram
