#include "linear_algebra/column_panels.hpp"

#include <algorithm>

#include "support/interrupt.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr int panel_packs = 3;                  // of lanes, beside each other in a panel
constexpr std::ptrdiff_t summed_at_once = 192;  // rows of a panel that stay in the nearest cache
constexpr std::ptrdiff_t cached_rows = 256;     // of A, whose values stay in the next cache

// A tile of Rows × 3 packs of sums fills the registers.
template <class T>
constexpr int wide_lanes = wide_bytes / sizeof(T);
template <class T>
constexpr int narrow_lanes = narrow_bytes / sizeof(T);
constexpr int wide_rows = 8, narrow_rows = 4;

template <class T>
std::ptrdiff_t panel_width() {
    return panel_packs * (has_wide_registers() ? wide_lanes<T> : narrow_lanes<T>);
}

// C (Rows, 3·Lanes; stride ldc) += A B for the rows a of A and k rows of a panel, each entry's
// terms in their order, from 0.
template <class T, int Lanes, int Rows>
PAIRGRAM_CLONES void add_tile(std::ptrdiff_t k, const T* const* a, const T* panel, T* c,
                              std::ptrdiff_t ldc) {
    using lanes = pack<T, Lanes>;
    lanes sums[Rows][panel_packs] = {}, b[panel_packs], old;
    const T* row[Rows];
    std::copy_n(a, Rows, row);
    for (std::ptrdiff_t p = 0; p < k; ++p, panel += panel_packs * Lanes) {
#pragma GCC unroll 3
        for (int j = 0; j < panel_packs; ++j) std::memcpy(&b[j], panel + j * Lanes, sizeof b[j]);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
            for (int j = 0; j < panel_packs; ++j) sums[i][j] += row[i][p] * b[j];
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
        for (int j = 0; j < panel_packs; ++j) {
            T* const entry = c + i * ldc + j * Lanes;
            std::memcpy(&old, entry, sizeof old);
            old += sums[i][j];
            std::memcpy(entry, &old, sizeof old);
        }
}

}  // namespace

template <class T>
column_panels<T>::column_panels(std::ptrdiff_t k, std::ptrdiff_t n, const T* matrix)
    : k_(k), n_(n) {
    const auto width = panel_width<T>();
    values_.reserve(size_of(k * ((n + width - 1) / width) * width));
    for (std::ptrdiff_t first = 0; first < n; first += width) {
        const auto size = std::min(width, n - first);
        const auto is_zero = [&](std::ptrdiff_t row) {
            const T* const values = matrix + row * n + first;
            return std::all_of(values, values + size, [](T value) { return value == T{0}; });
        };
        std::ptrdiff_t begin = 0;
        while (begin < k && is_zero(begin)) ++begin;
        panels_.push_back({begin, values_.size()});
        for (auto row = begin; row < k; ++row) {
            const T* const values = matrix + row * n + first;
            values_.insert(values_.end(), values, values + size);
            values_.insert(values_.end(), size_of(width - size), T{0});
        }
    }
}

// Behind the last row of A the last again; behind the last column of B zeros, which are not stored.
template <class T>
template <int Lanes, int Rows>
void column_panels<T>::add_product_in(std::ptrdiff_t m, const T* a, std::ptrdiff_t lda, T* c,
                                      std::ptrdiff_t ldc) const {
    constexpr std::ptrdiff_t width = panel_packs * Lanes;
    for (std::ptrdiff_t from = 0; from < k_; from += summed_at_once) {
        check_interrupt();
        for (std::size_t j = 0; j < panels_.size(); ++j) {
            const auto [panel_begin, at] = panels_[j];
            const auto begin = std::max(from, panel_begin);
            const auto n_terms = std::min(from + summed_at_once, k_) - begin;
            if (n_terms <= 0) continue;
            const T* const values = values_.data() + at + (begin - panel_begin) * width;
            const auto first = static_cast<std::ptrdiff_t>(j) * width;
            const auto n_columns = std::min(width, n_ - first);
            for (std::ptrdiff_t i = 0; i < m; i += Rows) {
                const auto n_rows = std::min<std::ptrdiff_t>(Rows, m - i);
                const T* rows[Rows];
                for (int r = 0; r < Rows; ++r) rows[r] = a + std::min(i + r, m - 1) * lda + begin;
                T* const out = c + i * ldc + first;
                if (n_rows == Rows && n_columns == width) {
                    add_tile<T, Lanes, Rows>(n_terms, rows, values, out, ldc);
                    continue;
                }
                T edge[Rows * width] = {};
                for (std::ptrdiff_t r = 0; r < n_rows; ++r)
                    std::copy_n(out + r * ldc, n_columns, edge + r * width);
                add_tile<T, Lanes, Rows>(n_terms, rows, values, edge, width);
                for (std::ptrdiff_t r = 0; r < n_rows; ++r)
                    std::copy_n(edge + r * width, n_columns, out + r * ldc);
            }
        }
    }
}

template <class T>
void column_panels<T>::add_product(std::ptrdiff_t m, const T* a, std::ptrdiff_t lda, T* c,
                                   std::ptrdiff_t ldc) const {
    for (std::ptrdiff_t i = 0; i < m; i += cached_rows) {
        const auto n_rows = std::min(cached_rows, m - i);
        if (has_wide_registers())
            add_product_in<wide_lanes<T>, wide_rows>(n_rows, a + i * lda, lda, c + i * ldc, ldc);
        else
            add_product_in<narrow_lanes<T>, narrow_rows>(n_rows, a + i * lda, lda, c + i * ldc,
                                                         ldc);
    }
}

template class column_panels<double>;
template class column_panels<float>;

}  // namespace pairgram
