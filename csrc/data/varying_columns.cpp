#include "data/varying_columns.hpp"

#include <algorithm>
#include <cmath>

#include "data/query_rows.hpp"
#include "support/buffer.hpp"
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

template <class I>
void count_varying(std::ptrdiff_t n_queries, const std::int64_t* offsets, const std::int64_t* order,
                   const double* row_weights, const bool* counted, bool pointwise,
                   std::ptrdiff_t n_features, const I* indptr, const I* indices,
                   const double* values, std::int64_t* counts) {
    buffer<double> first(n_features);
    buffer<std::int64_t> n_seen(n_features, 0);
    buffer<std::uint8_t> differs(n_features, 0);
    buffer<I> touched;
    for (std::ptrdiff_t q = 0; q < n_queries; ++q) {
        if (q % 1024 == 0) check_interrupt();
        if (!counted[q]) continue;
        std::int64_t n_rows = 0;
        for (auto i = offsets[q]; i < offsets[q + 1]; ++i) {
            const auto row = order ? order[i] : i;
            if (row_weights && row_weights[row] <= 0) continue;
            ++n_rows;
            for (auto k = indptr[row]; k < indptr[row + 1]; ++k) {
                const auto j = size_of(indices[k]);
                if (values[k] == 0) continue;
                if (n_seen[j]++ == 0) {
                    first[j] = values[k];
                    touched.push_back(indices[k]);
                } else if (values[k] != first[j]) {
                    differs[j] = 1;
                }
            }
        }
        bool any = false;
        for (const I feature : touched) {
            const auto j = size_of(feature);
            const bool varies = pointwise || differs[j] || n_seen[j] < n_rows;
            counts[j] += varies;
            any |= varies;
            n_seen[j] = 0;
            differs[j] = 0;
        }
        counts[n_features] += any;
        touched.clear();
    }
}

template class varying_features<double>;
template class varying_features<float>;
template void count_varying<std::int32_t>(std::ptrdiff_t, const std::int64_t*, const std::int64_t*,
                                          const double*, const bool*, bool, std::ptrdiff_t,
                                          const std::int32_t*, const std::int32_t*, const double*,
                                          std::int64_t*);
template void count_varying<std::int64_t>(std::ptrdiff_t, const std::int64_t*, const std::int64_t*,
                                          const double*, const bool*, bool, std::ptrdiff_t,
                                          const std::int64_t*, const std::int64_t*, const double*,
                                          std::int64_t*);

}  // namespace pairgram
