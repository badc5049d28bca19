#include "features/interleaved_columns.hpp"

#include <algorithm>
#include <atomic>

#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t rows_of_task = 1024;

// Columns that are read side by side: their numbers fill a cache line of a row.
template <class T>
constexpr std::ptrdiff_t group = 64 / static_cast<std::ptrdiff_t>(sizeof(T));

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

PAIRGRAM_FOR_BOTH_WIDTHS(interleave_columns);

}  // namespace pairgram
