#include "solvers/gram.hpp"

#include <algorithm>
#include <memory>
#include <type_traits>

#include "linear_algebra/blas.hpp"
#include "solvers/cross_gram.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

// Partial sums, whatever the number of threads: as many as the memory holds; where that is few,
// output tiles instead.
constexpr std::ptrdiff_t most_slots = 8, fewest_slots = 4;
constexpr std::ptrdiff_t slot_bytes = 1 << 25;

// Blocks are half an L2 cache, but no shorter than a product needs that reads and writes its sum.
constexpr std::ptrdiff_t block_bytes = 1 << 19;
constexpr std::ptrdiff_t most_rows = 4096;
constexpr std::ptrdiff_t fewest_column_bytes = 1536;  // slots: 192 rows of doubles
constexpr std::ptrdiff_t fewest_rows = 128;           // tiles, which take several blocks at a time

constexpr std::ptrdiff_t panel_blocks = 6;       // blocks that the tiles consume at a time
constexpr std::ptrdiff_t widest_strip = 512;     // of columns, for a tile
constexpr std::ptrdiff_t band_values = 1 << 16;  // of gram, that a thread takes at a time

// Row stride of a buffer: whole cache lines, so that BLAS packs aligned rows.
std::ptrdiff_t padded(std::ptrdiff_t width) { return (width + 15) / 16 * 16; }

// to (rows, columns) += from, or their upper triangles alone.
void add(std::ptrdiff_t rows, std::ptrdiff_t columns, bool upper, const float* from, double* to,
         std::ptrdiff_t ld_to) {
    for (std::ptrdiff_t i = 0; i < rows; ++i)
        for (std::ptrdiff_t j = upper ? i : 0; j < columns; ++j)
            to[i * ld_to + j] += static_cast<double>(from[i * columns + j]);
}

// C (ma, mb) += Aᵀ B for row-major columns A (k, ma), B (k, mb) of one panel; A = B: upper half.
// The product of floats is made apart, so that the sum over blocks is in double.
template <class T>
void accumulate(std::ptrdiff_t ma, std::ptrdiff_t mb, std::ptrdiff_t k, const T* a, const T* b,
                std::ptrdiff_t ld, double* c, std::ptrdiff_t ldc, buffer<T>& product) {
    const auto multiply = [&](T beta, T* out, std::ptrdiff_t ld_out) {
        if (a == b)
            blas::syrk(ma, k, T{1}, a, ld, beta, out, ld_out);
        else
            blas::gemm(blas::trans::yes, blas::trans::no, ma, mb, k, T{1}, a, ld, b, ld, beta, out,
                       ld_out);
    };
    if constexpr (std::is_same_v<T, double>) {
        multiply(1.0, c, ldc);
    } else {
        product.resize(ma * mb);
        multiply(0.0F, product.data(), mb);
        add(ma, mb, a == b, product.data(), c, ldc);
    }
}

// Rows of a (width, width) matrix that one thread handles at a time.
std::ptrdiff_t band_rows(std::ptrdiff_t width) { return (band_values + width - 1) / width; }

// Upper triangle of gram += those of n matrices, one after the other.
void add_all(std::ptrdiff_t width, std::ptrdiff_t n, const double* matrices, double* gram,
             int n_threads) {
    parallel_parts(width, band_rows(width), n_threads, [&](auto begin, std::ptrdiff_t size) {
        for (auto i = begin; i < begin + size; ++i)
            for (std::ptrdiff_t m = 0; m < n; ++m) {
                const double* const row = matrices + (m * width + i) * width;
                for (auto j = i; j < width; ++j) gram[i * width + j] += row[j];
            }
    });
}

void copy_upper_to_lower(std::ptrdiff_t width, double* gram, int n_threads) {
    constexpr std::ptrdiff_t columns = 64;  // whose cache lines are read by many rows
    parallel_parts(width, band_rows(width), n_threads, [&](auto begin, std::ptrdiff_t size) {
        const auto end = begin + size;
        for (std::ptrdiff_t first = 0; first < end; first += columns)
            for (auto i = begin; i < end; ++i)
                for (auto j = first; j < std::min(first + columns, i); ++j)
                    gram[i * width + j] = gram[j * width + i];
    });
}

template <class T>
void gram_in_slots(half_laplacian_blocks<T>& blocks, std::ptrdiff_t n_slots, double* gram,
                   int n_threads) {
    const auto width = blocks.width(), stride = padded(width);
    const auto used = std::clamp<std::ptrdiff_t>(blocks.n_blocks(), 1, n_slots),
               size = width * width;
    // Besides gram itself, which is the first; every thread clears its own.
    const std::unique_ptr<double[]> others(new double[(used - 1) * size]);
    parallel_for(used, n_threads, [&](std::ptrdiff_t slot) {
        buffer<T> rows(blocks.max_rows() * stride), product;
        double* const sum = slot == 0 ? gram : others.get() + (slot - 1) * size;
        std::fill(sum, sum + size, 0.0);
        for (std::ptrdiff_t b = slot; b < blocks.n_blocks(); b += n_slots) {
            check_interrupt();
            blocks.transform(b, rows.data(), stride);
            accumulate(width, width, blocks.n_rows(b), rows.data(), rows.data(), stride, sum, width,
                       product);
        }
    });
    add_all(width, used - 1, others.get(), gram, n_threads);
}

struct output_tile {
    std::ptrdiff_t row, column, n_rows, n_columns;
};

// Even strips; the product of two strips in halves, so that all tiles take the same time.
buffer<output_tile> upper_tiles(std::ptrdiff_t width) {
    const auto n_strips = (width + widest_strip - 1) / widest_strip;
    const auto strip = (width + n_strips - 1) / n_strips;
    buffer<output_tile> tiles;
    for (std::ptrdiff_t i = 0; i < width; i += strip) {
        const auto n_rows = std::min(strip, width - i);
        tiles.push_back({i, i, n_rows, n_rows});
        for (std::ptrdiff_t j = i + strip; j < width; j += strip) {
            const auto end = std::min(j + strip, width), middle = (j + end) / 2;
            tiles.push_back({i, j, n_rows, middle - j});
            tiles.push_back({i, middle, n_rows, end - middle});
        }
    }
    return tiles;
}

// Upper triangle of gram += AᵀA for rows A (n, width; stride).
template <class T>
void add_in_tiles(std::ptrdiff_t width, std::ptrdiff_t n, const T* rows, std::ptrdiff_t stride,
                  double* gram, int n_threads) {
    const auto tiles = upper_tiles(width);
    parallel_for(length_of(tiles), n_threads, [&](std::ptrdiff_t t) {
        const auto& tile = tiles[t];
        buffer<T> product;
        accumulate(tile.n_rows, tile.n_columns, n, rows + tile.row, rows + tile.column, stride,
                   gram + tile.row * width + tile.column, width, product);
    });
}

template <class T>
void gram_in_tiles(half_laplacian_blocks<T>& blocks, double* gram, int n_threads) {
    const auto width = blocks.width(), stride = padded(width);
    std::fill(gram, gram + width * width, 0.0);
    buffer<T> panel(std::min(panel_blocks, blocks.n_blocks()) * blocks.max_rows() * stride);
    for (std::ptrdiff_t first = 0; first < blocks.n_blocks(); first += panel_blocks) {
        const auto n = std::min(panel_blocks, blocks.n_blocks() - first);
        buffer<std::ptrdiff_t> start{0};
        for (std::ptrdiff_t b = 0; b < n; ++b)
            start.push_back(start.back() + blocks.n_rows(first + b));
        parallel_for(n, n_threads, [&](std::ptrdiff_t b) {
            blocks.transform(first + b, panel.data() + start[b] * stride, stride);
        });
        add_in_tiles(width, start.back(), panel.data(), stride, gram, n_threads);
    }
}

}  // namespace

template <class T>
double gram(const ranking_problem& problem, const feature_rows<T>& features,
            std::ptrdiff_t block_rows, double* gram, std::int64_t* varying, int n_threads) {
    if (is_cross_of_queries(problem, features, n_threads))
        return cross_gram(problem, features, gram, varying, n_threads);
    const auto width = features.width();
    const auto sum_bytes = width * width * static_cast<std::ptrdiff_t>(sizeof(double));
    const auto n_slots = std::min(most_slots, slot_bytes / sum_bytes);
    const bool in_slots = n_slots >= fewest_slots;
    if (block_rows <= 0) {
        constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(T));
        block_rows = std::clamp(block_bytes / (width * size),
                                in_slots ? fewest_column_bytes / size : fewest_rows, most_rows);
    }
    half_laplacian_blocks<T> blocks(problem, features, block_rows);
    if (varying) blocks.count_varying(varying);
    if (in_slots)
        gram_in_slots(blocks, n_slots, gram, n_threads);
    else
        gram_in_tiles(blocks, gram, n_threads);
    const auto joining = blocks.joining_rows();
    add_in_tiles(width, length_of(joining) / width, joining.data(), width, gram, n_threads);
    copy_upper_to_lower(width, gram, n_threads);
    blocks.finish_counts();
    return blocks.pair_weight();
}

PAIRGRAM_FOR_BOTH_WIDTHS(gram);

}  // namespace pairgram
