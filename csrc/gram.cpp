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
constexpr std::ptrdiff_t tile = 256;

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
    const auto n_strips = (width + tile - 1) / tile;
    const auto strip = (width + n_strips - 1) / n_strips;  // even, so that the threads are, too
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> tiles;
    for (std::ptrdiff_t i = 0; i < n_strips; ++i)  // the large ones first
        for (std::ptrdiff_t j = i + 1; j < n_strips; ++j) tiles.emplace_back(i * strip, j * strip);
    for (std::ptrdiff_t i = 0; i < n_strips; ++i) tiles.emplace_back(i * strip, i * strip);

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
            const auto [i, j] = tiles[size_of(t)];
            std::vector<T> product;
            accumulate(std::min(strip, width - i), std::min(strip, width - j), start.back(),
                       panel.data() + i, panel.data() + j, stride, gram + i * width + j, width,
                       product);
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
