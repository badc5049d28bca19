#include "linear_algebra/cholesky.hpp"

#include <algorithm>
#include <utility>

#include "linear_algebra/blas.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"

namespace pairgram {

namespace {

// Wide tiles are multiplied faster, narrow ones leave less of them to be waited for.
constexpr std::ptrdiff_t fewest_tiles = 8;  // in a row
constexpr std::ptrdiff_t narrowest_tile = 128, widest_tile = 1024;
constexpr std::ptrdiff_t largest_alone = 384;  // one tile: half a millisecond, no other thread

// Below these orders halving brings nothing over the routines of BLAS and LAPACK.
constexpr std::ptrdiff_t smallest_solve = 64, smallest_factor = 128;

constexpr std::ptrdiff_t inverted_at_once = 128;  // rows of an inverse

std::ptrdiff_t tile_width(std::ptrdiff_t n) {
    if (n <= largest_alone) return largest_alone;
    const auto even = (n / fewest_tiles + narrowest_tile - 1) / narrowest_tile * narrowest_tile;
    return std::clamp(even, narrowest_tile, widest_tile);
}

// Where to cut n > unit: at the multiple of unit that is at or above the middle.
std::ptrdiff_t middle(std::ptrdiff_t n, std::ptrdiff_t unit) {
    return (n / 2 + unit - 1) / unit * unit;
}

// B (m, n) = B L⁻ᵀ for lower triangular L (n, n), in halves, so that most of it is products.
void solve(std::ptrdiff_t m, std::ptrdiff_t n, const double* l, double* b, std::ptrdiff_t ld) {
    if (n <= smallest_solve) return blas::solve_lower_transposed(m, n, l, ld, b, ld);
    const auto half = middle(n, smallest_solve), rest = n - half;
    solve(m, half, l, b, ld);
    blas::gemm(blas::trans::no, blas::trans::yes, m, rest, half, -1.0, b, ld, l + half * ld, ld,
               1.0, b + half, ld);
    solve(m, rest, l + half * (ld + 1), b + half, ld);
}

// Lower triangle of A (n, n) = its Cholesky factor, in halves; returns what cholesky does.
std::ptrdiff_t factorise(std::ptrdiff_t n, double* a, std::ptrdiff_t ld) {
    if (n <= smallest_factor) return blas::cholesky(n, a, ld);
    const auto half = middle(n, smallest_factor), rest = n - half;
    double* const below = a + half * ld;
    const auto n_positive = factorise(half, a, ld);
    if (n_positive < half) return n_positive;
    solve(rest, half, a, below, ld);
    blas::subtract_outer_product(rest, half, below, ld, below + half, ld);
    return half + factorise(rest, below + half, ld);
}

}  // namespace

std::ptrdiff_t cholesky(std::ptrdiff_t n, double* a, int n_threads) {
    const auto width = tile_width(n), n_tiles = (n + width - 1) / width;
    // Column by column. A tile needs only tiles before it, and they are handed out in this order:
    // the first that is not final never waits.
    buffer<std::pair<std::ptrdiff_t, std::ptrdiff_t>> tiles;
    for (std::ptrdiff_t k = 0; k < n_tiles; ++k)
        for (auto i = k; i < n_tiles; ++i) tiles.emplace_back(i, k);
    progress done(n_tiles);  // tiles of a row become final from left to right
    std::ptrdiff_t n_positive = n;
    const auto finish_tile = [&](std::ptrdiff_t t) {
        const auto [i, k] = tiles[t];
        const auto n_rows = std::min(width, n - i * width),
                   n_columns = std::min(width, n - k * width);
        double* const rows = a + i * width * n;
        double* const columns = a + k * width * n;
        double* const tile = rows + k * width;
        for (std::ptrdiff_t j = 0; j < k; ++j) {
            check_interrupt();
            if (!done.wait(i, j + 1) || !done.wait(k, j + 1)) return;
            if (i == k)
                blas::subtract_outer_product(n_rows, width, rows + j * width, n, tile, n);
            else
                blas::gemm(blas::trans::no, blas::trans::yes, n_rows, n_columns, width, -1.0,
                           rows + j * width, n, columns + j * width, n, 1.0, tile, n);
        }
        if (i == k) {
            const auto n_good = factorise(n_rows, tile, n);
            if (n_good < n_rows) {
                n_positive = k * width + n_good;
                return done.stop();
            }
        } else {
            if (!done.wait(k, k + 1)) return;
            solve(n_rows, n_columns, columns + k * width, tile, n);
        }
        done.add(i);
    };
    parallel_for(length_of(tiles), n_threads, finish_tile, [&] { done.stop(); });
    return n_positive;
}

void invert_transposed(std::ptrdiff_t n, const double* l, double* out, int n_threads) {
    // The most work comes first.
    parallel_parts(n, inverted_at_once, n_threads, [&](auto begin, std::ptrdiff_t n_rows) {
        std::fill_n(out + begin * n, n_rows * n, 0.0);
        double* const rows = out + begin * (n + 1);
        for (std::ptrdiff_t i = 0; i < n_rows; ++i) rows[i * (n + 1)] = 1;
        solve(n_rows, n - begin, l + begin * (n + 1), rows, n);
    });
}

}  // namespace pairgram
