#include "gram.hpp"

#include <algorithm>
#include <vector>

#include "blas.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t n_slots = 8;            // partial sums, whatever the number of threads
constexpr std::ptrdiff_t widest_slot = 512;      // beyond: output tiles instead of partial sums
constexpr std::ptrdiff_t block_bytes = 1 << 19;  // of transformed rows: half an L2 cache
constexpr std::ptrdiff_t panel_blocks = 8;       // blocks that the tiles consume at a time
constexpr std::ptrdiff_t widest_strip = 512;     // of columns, for a tile

// Row stride of a buffer: whole cache lines, so that BLAS packs aligned rows.
std::ptrdiff_t padded(std::ptrdiff_t width) { return (width + 15) / 16 * 16; }

void add_upper(std::ptrdiff_t rows, std::ptrdiff_t columns, const float* from, std::ptrdiff_t ld,
               double* to, std::ptrdiff_t ld_to) {
    for (std::ptrdiff_t i = 0; i < rows; ++i)
        for (std::ptrdiff_t j = 0; j < columns; ++j)
            to[i * ld_to + j] += static_cast<double>(from[i * ld + j]);
}

// C (ma, mb) += Aᵀ B for row-major columns A (k, ma), B (k, mb) of one panel; A = B: upper half.
void accumulate(std::ptrdiff_t ma, std::ptrdiff_t mb, std::ptrdiff_t k, const double* a,
                const double* b, std::ptrdiff_t ld, double* c, std::ptrdiff_t ldc,
                std::vector<double>&) {
    if (a == b)
        blas::syrk(ma, k, 1.0, a, ld, 1.0, c, ldc);
    else
        blas::gemm(blas::trans::yes, blas::trans::no, ma, mb, k, 1.0, a, ld, b, ld, 1.0, c, ldc);
}

// The same for float: the product in float, the sum over blocks in double.
void accumulate(std::ptrdiff_t ma, std::ptrdiff_t mb, std::ptrdiff_t k, const float* a,
                const float* b, std::ptrdiff_t ld, double* c, std::ptrdiff_t ldc,
                std::vector<float>& product) {
    product.assign(size_of(ma * mb), 0.0F);
    if (a == b)
        blas::syrk(ma, k, 1.0F, a, ld, 0.0F, product.data(), mb);
    else
        blas::gemm(blas::trans::yes, blas::trans::no, ma, mb, k, 1.0F, a, ld, b, ld, 0.0F,
                   product.data(), mb);
    add_upper(ma, mb, product.data(), mb, c, ldc);
}

template <class T>
void gram_in_slots(half_laplacian_blocks<T>& blocks, double* gram, int n_threads) {
    const auto width = blocks.width(), stride = padded(width);
    const auto used = std::min(n_slots, blocks.n_blocks());
    std::vector<double> slots(size_of(used * width * width), 0.0);
    parallel_for(used, n_threads, [&](std::ptrdiff_t slot) {
        std::vector<T> rows(size_of(blocks.max_rows() * stride)), product;
        double* sum = slots.data() + slot * width * width;
        for (std::ptrdiff_t b = slot; b < blocks.n_blocks(); b += n_slots) {
            blocks.transform(b, rows.data(), stride);
            accumulate(width, width, blocks.n_rows(b), rows.data(), rows.data(), stride, sum, width,
                       product);
        }
    });
    for (std::ptrdiff_t slot = 0; slot < used; ++slot)
        for (std::ptrdiff_t i = 0; i < width * width; ++i)
            gram[i] += slots[size_of(slot * width * width + i)];
}

template <class T>
void gram_in_tiles(half_laplacian_blocks<T>& blocks, double* gram, int n_threads) {
    const auto width = blocks.width(), stride = padded(width);
    // Even strips; the product of two strips in halves, so that all tiles take the same time.
    const auto n_strips = (width + widest_strip - 1) / widest_strip;
    const auto strip = (width + n_strips - 1) / n_strips;
    struct output_tile {
        std::ptrdiff_t row, column, n_rows, n_columns;
    };
    std::vector<output_tile> tiles;
    for (std::ptrdiff_t i = 0; i < width; i += strip) {
        const auto n_rows = std::min(strip, width - i);
        tiles.push_back({i, i, n_rows, n_rows});
        for (std::ptrdiff_t j = i + strip; j < width; j += strip) {
            const auto end = std::min(j + strip, width), middle = (j + end) / 2;
            tiles.push_back({i, j, n_rows, middle - j});
            tiles.push_back({i, middle, n_rows, end - middle});
        }
    }

    std::vector<T> panel(
        size_of(std::min(panel_blocks, blocks.n_blocks()) * blocks.max_rows() * stride));
    for (std::ptrdiff_t first = 0; first < blocks.n_blocks(); first += panel_blocks) {
        const auto n = std::min(panel_blocks, blocks.n_blocks() - first);
        std::vector<std::ptrdiff_t> start{0};
        for (std::ptrdiff_t b = 0; b < n; ++b)
            start.push_back(start.back() + blocks.n_rows(first + b));
        parallel_for(n, n_threads, [&](std::ptrdiff_t b) {
            blocks.transform(first + b, panel.data() + start[size_of(b)] * stride, stride);
        });
        parallel_for(static_cast<std::ptrdiff_t>(tiles.size()), n_threads, [&](std::ptrdiff_t t) {
            const auto& tile = tiles[size_of(t)];
            std::vector<T> product;
            accumulate(tile.n_rows, tile.n_columns, start.back(), panel.data() + tile.row,
                       panel.data() + tile.column, stride, gram + tile.row * width + tile.column,
                       width, product);
        });
    }
}

}  // namespace

template <class T>
double gram(const pair_rule& rule, const query_rows& rows, const feature_rows<T>& features,
            std::ptrdiff_t block_rows, double* gram, int n_threads) {
    const auto width = features.width();
    if (block_rows <= 0) {
        const auto row_bytes = width * static_cast<std::ptrdiff_t>(sizeof(T));
        block_rows = std::clamp<std::ptrdiff_t>(block_bytes / row_bytes, 128, 4096);
    }
    half_laplacian_blocks<T> blocks(rule, rows, features, block_rows);
    std::fill(gram, gram + width * width, 0.0);
    if (width <= widest_slot)
        gram_in_slots(blocks, gram, n_threads);
    else
        gram_in_tiles(blocks, gram, n_threads);
    const auto joining = blocks.joining_rows();
    blas::syrk(width, static_cast<std::ptrdiff_t>(joining.size()) / width, 1.0, joining.data(),
               width, 1.0, gram, width);
    for (std::ptrdiff_t i = 0; i < width; ++i)
        for (std::ptrdiff_t j = 0; j < i; ++j) gram[i * width + j] = gram[j * width + i];
    return blocks.pair_weight();
}

template double gram<double>(const pair_rule&, const query_rows&, const feature_rows<double>&,
                             std::ptrdiff_t, double*, int);
template double gram<float>(const pair_rule&, const query_rows&, const feature_rows<float>&,
                            std::ptrdiff_t, double*, int);

}  // namespace pairgram
