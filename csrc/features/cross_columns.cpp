#include "features/cross_columns.hpp"

#include <algorithm>
#include <cstring>

#include "support/simd.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

// out = factor x
template <class T>
PAIRGRAM_CLONES void multiply(std::ptrdiff_t n, T factor, const T* x, T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] = factor * x[j];
}

template <class T>
void gather(const buffer<std::int64_t>& columns, std::ptrdiff_t n, const T* rows,
            std::ptrdiff_t ldr, T* out, std::ptrdiff_t ldo) {
    const auto width = length_of(columns);
    bool together = n > 1 && width > 0;
    for (std::ptrdiff_t j = 1; j < width && together; ++j) together = columns[j] == columns[0] + j;
    for (std::ptrdiff_t i = 0; i < n && together; ++i)
        std::copy_n(rows + i * ldr + columns[0], width, out + i * ldo);
    if (together) return;
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < columns.size(); ++j)
            out[i * ldo + static_cast<std::ptrdiff_t>(j)] = rows[i * ldr + columns[j]];
}

template <class T>
void map_left(const cross_columns& cross, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
              T* out, std::ptrdiff_t ldo) {
    for (std::ptrdiff_t i = 0; i < n; ++i) out[i * ldo] = T{1};
    gather(cross.left, n, rows, ldr, out + 1, ldo);
}

template <class T>
void map_right(const cross_columns& cross, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
               T* out, std::ptrdiff_t ldo) {
    gather(cross.kept, n, rows, ldr, out, ldo);
    gather(cross.right, n, rows, ldr, out + cross.n_kept(), ldo);
}

// Calls use(first row, number of rows, ũ) for runs of rows of which the left columns have the same
// bits.
template <class T, class Use>
void by_left_side(const cross_columns& cross, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                  const Use& use) {
    const auto same = [&](std::ptrdiff_t a, std::ptrdiff_t b) {
        return std::all_of(cross.left.begin(), cross.left.end(), [&](std::int64_t j) {
            return std::memcmp(rows + a * ldr + j, rows + b * ldr + j, sizeof(T)) == 0;
        });
    };
    buffer<T> left(cross.n_left());
    for (std::ptrdiff_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && same(begin, end);) ++end;
        map_left(cross, 1, rows + begin * ldr, ldr, left.data(), cross.n_left());
        use(begin, end - begin, left.data());
    }
}

}  // namespace

std::ptrdiff_t n_outputs(const cross_columns& cross, cross_part part) {
    if (part == cross_part::left) return cross.n_left();
    if (part == cross_part::right) return cross.n_kept() + cross.n_right();
    return cross.n_kept() + cross.n_left() * cross.n_right();
}

template <class T>
void map_cross(const cross_columns& cross, cross_part part, std::ptrdiff_t n, const T* rows,
               std::ptrdiff_t ldr, T* out, std::ptrdiff_t ldo) {
    if (part == cross_part::left) return map_left(cross, n, rows, ldr, out, ldo);
    if (part == cross_part::right) return map_right(cross, n, rows, ldr, out, ldo);
    const auto k = cross.n_kept(), p = cross.n_left(), r = cross.n_right();
    buffer<T> right(n * (k + r));
    map_right(cross, n, rows, ldr, right.data(), k + r);
    by_left_side(cross, n, rows, ldr, [&](std::ptrdiff_t begin, std::ptrdiff_t size, const T* u) {
        for (auto i = begin; i < begin + size; ++i) {
            const T* const v = right.data() + i * (k + r);
            T* const row = out + i * ldo;
            std::copy_n(v, k, row);
            for (std::ptrdiff_t a = 0; a < p; ++a) multiply(r, u[a], v + k, row + k + a * r);
        }
    });
}

template <class T>
void fold_left(const cross_columns& cross, const T* left, const double* coefs, double* out) {
    const auto k = cross.n_kept(), r = cross.n_right();
    std::copy_n(coefs, k, out);
    std::fill_n(out + k, r, 0.0);
    for (std::ptrdiff_t a = 0; a < cross.n_left(); ++a)
        add(r, static_cast<double>(left[a]), coefs + k + a * r, out + k);
}

template <class T>
void score_cross(const cross_columns& cross, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                 const linear_models& models, double* scores, std::ptrdiff_t ld) {
    const auto width = cross.n_kept() + cross.n_right();
    buffer<T> right(n * width);
    map_right(cross, n, rows, ldr, right.data(), width);
    buffer<double> of_right(models.size() * width);
    by_left_side(cross, n, rows, ldr, [&](std::ptrdiff_t begin, std::ptrdiff_t size, const T* u) {
        for (std::ptrdiff_t m = 0; m < models.size(); ++m)
            fold_left(cross, u, models.coefs(m), of_right.data() + m * width);
        const linear_models of_left(models.size(), width, of_right.data());
        const matrix_rows<T> of_run{size, width, right.data() + begin * width, nullptr};
        of_left.score(of_run, 0, size, scores + begin, ld);
    });
}

PAIRGRAM_FOR_BOTH_WIDTHS(map_cross);
PAIRGRAM_FOR_BOTH_WIDTHS(fold_left);
PAIRGRAM_FOR_BOTH_WIDTHS(score_cross);

}  // namespace pairgram
