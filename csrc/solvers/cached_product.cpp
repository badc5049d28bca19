#include "solvers/cached_product.hpp"

#include <algorithm>
#include <cstring>

#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t summed_at_once = 128;  // rows of B that stay in the nearest cache
constexpr std::ptrdiff_t most_packs = 3;

using tile_product = void (*)(std::ptrdiff_t, std::ptrdiff_t, double, const stepped_matrix&,
                              const double*, std::ptrdiff_t, double*, std::ptrdiff_t);

// A tile of Rows × Packs packs of sums fills the registers. Behind the last row of A stands the
// last again.
template <int Lanes, int Rows, int Packs>
PAIRGRAM_CLONES void add_tile(std::ptrdiff_t n_rows, std::ptrdiff_t k, double factor,
                              const stepped_matrix& a, const double* b, std::ptrdiff_t ldb,
                              double* c, std::ptrdiff_t ldc) {
    using lanes = pack<double, Lanes>;
    lanes sums[Rows][Packs] = {}, of_b[Packs], old;
    const double* row[Rows];
    for (int i = 0; i < Rows; ++i)
        row[i] = a.entries + std::min<std::ptrdiff_t>(i, n_rows - 1) * a.row_step;
    const auto step = a.term_step;
    for (std::ptrdiff_t p = 0; p < k; ++p, b += ldb) {
#pragma GCC unroll 4
        for (int j = 0; j < Packs; ++j) std::memcpy(&of_b[j], b + j * Lanes, sizeof of_b[j]);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
            for (int j = 0; j < Packs; ++j) sums[i][j] += row[i][p * step] * of_b[j];
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
        if (i >= n_rows) break;
#pragma GCC unroll 4
        for (int j = 0; j < Packs; ++j) {
            double* const entry = c + i * ldc + j * Lanes;
            std::memcpy(&old, entry, sizeof old);
            old += factor * sums[i][j];
            std::memcpy(entry, &old, sizeof old);
        }
    }
}

constexpr int wide_lanes = wide_bytes / sizeof(double), wide_rows = 8;
constexpr int narrow_lanes = narrow_bytes / sizeof(double), narrow_rows = 4;
template <int Lanes, int Rows>
const tile_product tiles_of[] = {add_tile<Lanes, Rows, 1>, add_tile<Lanes, Rows, 2>,
                                 add_tile<Lanes, Rows, 3>};

}  // namespace

tile_shape cached_tile() {
    return has_wide_registers() ? tile_shape{wide_rows, most_packs * wide_lanes}
                                : tile_shape{narrow_rows, most_packs * narrow_lanes};
}

void add_cached_product(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, double factor,
                        const stepped_matrix& a, const double* b, std::ptrdiff_t ldb, double* c,
                        std::ptrdiff_t ldc) {
    const auto* const tiles = has_wide_registers() ? tiles_of<wide_lanes, wide_rows>
                                                   : tiles_of<narrow_lanes, narrow_rows>;
    const auto n_rows = cached_tile().rows, lanes = cached_tile().columns / most_packs;
    for (std::ptrdiff_t from = 0; from < k; from += summed_at_once) {
        const auto n_terms = std::min(summed_at_once, k - from);
        for (std::ptrdiff_t j = 0; j < n;) {
            const auto packs = std::min(most_packs, (n - j) / lanes);
            for (std::ptrdiff_t i = 0; i < m; i += n_rows) {
                const stepped_matrix part{a.entries + i * a.row_step + from * a.term_step,
                                          a.row_step, a.term_step};
                tiles[packs - 1](std::min(n_rows, m - i), n_terms, factor, part, b + from * ldb + j,
                                 ldb, c + i * ldc + j, ldc);
            }
            j += packs * lanes;
        }
    }
}

}  // namespace pairgram
