#include <algorithm>

#include "linear_algebra/band_reduction.hpp"
#include "linear_algebra/blas.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t vectors_of_task = 8;
constexpr std::ptrdiff_t rows_of_task = 128;

// One block of reflections of the entries [first, first + m), as reduce_to_band left it: the head
// of Vᵀ, (rank, rank), apart, and the rest where it is.
struct reflector_block {
    std::ptrdiff_t first, m, rank, ld, width;
    buffer<double> head;
    const double* rest;
    const double* t;

    reflector_block(std::ptrdiff_t n, std::ptrdiff_t width_, const double* a, const double* factors,
                    std::ptrdiff_t block)
        : first((block + 1) * width_),
          m(n - first),
          rank(std::min(width_, m)),
          ld(n),
          width(width_),
          head(rank * rank),
          rest(a + (first - width) * n + first + rank),
          t(factors + block * width * width) {
        for (std::ptrdiff_t i = 0; i < rank; ++i) {
            head[i * rank + i] = 1;
            for (auto j = i + 1; j < rank; ++j) head[i * rank + j] = rest[i * n + j - rank];
        }
    }

    // out (n_rows, rank) = X V T or X V Tᵀ for rows X, (n_rows, m) with row stride n, that begin
    // with `zeros` 0; `scratch` is as large.
    void multiply(std::ptrdiff_t n_rows, const double* x, bool transposed, std::ptrdiff_t zeros,
                  double* scratch, double* out) const {
        if (zeros < rank)
            blas::gemm(trans::no, trans::yes, n_rows, rank, rank, 1.0, x, ld, head.data(), rank,
                       0.0, scratch, rank);
        else
            std::fill(scratch, scratch + n_rows * rank, 0.0);
        if (m > rank)
            blas::gemm(trans::no, trans::yes, n_rows, rank, m - rank, 1.0, x + rank, ld, rest, ld,
                       1.0, scratch, rank);
        blas::gemm(trans::no, transposed ? trans::yes : trans::no, n_rows, rank, rank, 1.0, scratch,
                   rank, t, width, 0.0, out, rank);
    }

    // X -= product (n_rows, rank) Vᵀ.
    void subtract(std::ptrdiff_t n_rows, const double* product, double* x) const {
        blas::gemm(trans::no, trans::no, n_rows, rank, rank, -1.0, product, rank, head.data(), rank,
                   1.0, x, ld);
        if (m > rank)
            blas::gemm(trans::no, trans::no, n_rows, m - rank, rank, -1.0, product, rank, rest, ld,
                       1.0, x + rank, ld);
    }
};

}  // namespace

void apply_band_basis(std::ptrdiff_t n, std::ptrdiff_t width, const double* a,
                      const double* factors, bool transposed, std::ptrdiff_t n_vectors, double* x,
                      int n_threads) {
    const auto n_blocks = n_reflector_blocks(n, width);
    parallel_parts(n_vectors, vectors_of_task, n_threads, [&](auto begin, std::ptrdiff_t n_rows) {
        buffer<double> scratch(n_rows * width), product(n_rows * width);
        for (std::ptrdiff_t i = 0; i < n_blocks; ++i) {
            check_interrupt();
            const reflector_block block(n, width, a, factors, transposed ? i : n_blocks - 1 - i);
            double* const rows = x + begin * n + block.first;
            block.multiply(n_rows, rows, !transposed, 0, scratch.data(), product.data());
            block.subtract(n_rows, product.data(), rows);
        }
    });
}

// Backwards: the blocks from p on, multiplied, are the identity but for Q' of the order of block p,
// which is where A was. Block p - 1 makes Q' larger by `width` rows and columns, and its own
// reflectors lie before these.
void form_band_basis(std::ptrdiff_t n, std::ptrdiff_t width, double* a, const double* factors,
                     int n_threads) {
    const auto n_blocks = n_reflector_blocks(n, width);
    const auto last = n_blocks * width + width * (n_blocks > 0);  // of Q'
    const auto unit_rows = [&](std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t from) {
        for (auto i = begin; i < end; ++i) {
            std::fill(a + i * n + from, a + (i + 1) * n, 0.0);
            a[i * n + i] = 1;
        }
    };
    if (n_blocks == 0) return unit_rows(0, n, 0);
    unit_rows(last, n, last);
    for (auto p = n_blocks - 1; p >= 0; --p) {
        const reflector_block block(n, width, a, factors, p);
        const auto first = block.first, known = std::min(first + width, n);
        const bool is_last = p + 1 == n_blocks;
        parallel_parts(block.m, rows_of_task, n_threads, [&](auto from, std::ptrdiff_t size) {
            const auto begin = first + from, end = begin + size;
            // rows of the identity, and 0 before the columns of Q'
            unit_rows(begin, std::min(is_last ? end : known, end), first);
            for (auto i = std::max(begin, is_last ? n : known); i < end; ++i)
                std::fill(a + i * n + first, a + i * n + known, 0.0);
            buffer<double> scratch((end - begin) * block.rank), product((end - begin) * block.rank);
            double* const rows = a + begin * n + first;
            const auto zeros = begin >= known ? width : 0;
            block.multiply(end - begin, rows, true, zeros, scratch.data(), product.data());
            block.subtract(end - begin, product.data(), rows);
        });
    }
    unit_rows(0, std::min(width, n), 0);
    for (auto i = std::min(width, n); i < n; ++i) std::fill(a + i * n, a + i * n + width, 0.0);
}

}  // namespace pairgram
