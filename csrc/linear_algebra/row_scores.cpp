#include "linear_algebra/row_scores.hpp"

#include <algorithm>
#include <limits>

#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr int n_lanes = 8;
constexpr std::ptrdiff_t models_ahead = 8;        // that are on their way to the cache
constexpr std::ptrdiff_t block_values = 1 << 15;  // of rows that several models score from cache

template <std::size_t Bytes>
using lanes = lanes_in<double, n_lanes, Bytes>;

// out[r·M + m] = row_r · coefs_m for R rows and M models, whose coefficients are padded with zeros
// to whole lanes. Lane l sums what stands at l, l + 8, …; one tree adds the lanes up. Meanwhile the
// memory that lies `ahead` of the rows is fetched.
template <class T, int R, int M, std::size_t Bytes>
PAIRGRAM_CLONES void score_tile(std::ptrdiff_t width, const T* const* rows, const double* coefs,
                                std::ptrdiff_t ld, std::ptrdiff_t ahead, double* out) {
    lanes<Bytes> sums[R][M] = {}, coef[M], row;
    T last[R][n_lanes];  // what is behind the whole lanes of each row, and zeros
    const T* from[R];
    std::copy_n(rows, R, from);
    for (std::ptrdiff_t at = 0, place = 0; at < width; at += n_lanes, place += n_lanes) {
        if (width - at < n_lanes) {
            for (int r = 0; r < R; ++r) {
                std::fill_n(last[r], n_lanes, T(0));
                std::copy_n(rows[r] + at, width - at, last[r]);
                from[r] = last[r];
            }
            place = 0;
        }
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) load(coefs + m * ld + at, coef[m]);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            prefetch(from[r] + place + ahead);
            load(from[r] + place, row);
#pragma GCC unroll 4
            for (int m = 0; m < M; ++m) add_product(sums[r][m], row, coef[m]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
            const lanes<Bytes>& s = sums[r][m];
            out[r * M + m] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
        }
}

}  // namespace

linear_models::linear_models(std::ptrdiff_t n_models, std::ptrdiff_t width, const double* coefs)
    : n_models_(n_models),
      width_(width),
      padded_((width + n_lanes - 1) / n_lanes * n_lanes),
      coefs_(n_models * padded_, 0.0) {
    assign(coefs);
}

void linear_models::assign(const double* coefs) {
    for (std::ptrdiff_t m = 0; m < n_models_; ++m)
        std::copy_n(coefs + m * width_, width_, coefs_.begin() + m * padded_);
}

// By models m to m + M; behind the last row, the last again.
template <int R, int M, class T>
void linear_models::score_strip(const matrix_rows<T>& rows, std::ptrdiff_t begin,
                                std::ptrdiff_t end, std::ptrdiff_t m, double* scores,
                                std::ptrdiff_t ld) const {
    const auto ahead = rows.order ? 0 : 2 * R * rows.width;
    const auto score = has_wide_registers() ? &score_tile<T, R, M, wide_bytes>
                                            : &score_tile<T, R, M, narrow_bytes>;
    for (auto i = begin; i < end; i += R) {
        const T* tile[R];
        double out[R * M];
        for (int r = 0; r < R; ++r) tile[r] = rows(std::min(i + r, end - 1));
        score(rows.width, tile, coefs_.data() + m * padded_, padded_, ahead, out);
        for (int k = 0; k < M; ++k)
            for (int r = 0; r < std::min<std::ptrdiff_t>(R, end - i); ++r)
                scores[(m + k) * ld + i + r] = out[r * M + k];
    }
}

// In tiles of as many sums as the registers hold.
template <int R, int M, class T>
void linear_models::score_block(const matrix_rows<T>& rows, double* scores,
                                std::ptrdiff_t ld) const {
    std::ptrdiff_t m = 0;
    for (; m + M <= n_models_; m += M) score_strip<R, M>(rows, 0, rows.n_rows, m, scores, ld);
    for (; m < n_models_; ++m) score_strip<4, 1>(rows, 0, rows.n_rows, m, scores, ld);
}

// Several models read blocks of rows that have been padded as the coefficients are.
template <class T>
void linear_models::score(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end,
                          double* scores, std::ptrdiff_t ld) const {
    if (n_models_ == 1) return score_strip<4, 1>(rows, begin, end, 0, scores, ld);
    const auto step = std::max<std::ptrdiff_t>(
        4, std::min(end - begin, block_values / std::max<std::ptrdiff_t>(1, padded_)));
    buffer<double> block(step * padded_, 0.0);
    for (; begin < end; begin += step) {
        const auto n = std::min(step, end - begin);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy_n(rows(begin + i), width_, block.begin() + i * padded_);
        const matrix_rows<double> padded{n, padded_, block.data(), nullptr};
        if (has_wide_registers())
            score_block<4, 4>(padded, scores + begin, ld);
        else
            score_block<2, 2>(padded, scores + begin, ld);
    }
}

template <class T>
void score_each(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end,
                const double* coefs, const std::int64_t* models, double* scores) {
    const auto width = rows.width;
    const auto score = has_wide_registers() ? &score_tile<T, 1, 1, wide_bytes>
                                            : &score_tile<T, 1, 1, narrow_bytes>;
    buffer<double> padded((width + n_lanes - 1) / n_lanes * n_lanes, 0.0);
    for (auto i = begin; i < end; ++i) {
        const T* const row = rows(i);
        const auto next = static_cast<std::ptrdiff_t>(models[std::min(i + models_ahead, end - 1)]);
        for (std::ptrdiff_t j = 0; j < width && next >= 0; j += n_lanes)
            prefetch(coefs + next * width + j);
        scores[i] = std::numeric_limits<double>::quiet_NaN();
        if (models[i] < 0) continue;
        std::copy_n(coefs + static_cast<std::ptrdiff_t>(models[i]) * width, width, padded.data());
        score(width, &row, padded.data(), 0, 2 * width, scores + i);
    }
}

template void score_each<double>(const matrix_rows<double>&, std::ptrdiff_t, std::ptrdiff_t,
                                 const double*, const std::int64_t*, double*);
template void score_each<float>(const matrix_rows<float>&, std::ptrdiff_t, std::ptrdiff_t,
                                const double*, const std::int64_t*, double*);
template void linear_models::score<double>(const matrix_rows<double>&, std::ptrdiff_t,
                                           std::ptrdiff_t, double*, std::ptrdiff_t) const;
template void linear_models::score<float>(const matrix_rows<float>&, std::ptrdiff_t, std::ptrdiff_t,
                                          double*, std::ptrdiff_t) const;

}  // namespace pairgram
