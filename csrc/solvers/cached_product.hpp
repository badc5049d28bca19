// Products of small matrices that stay in cache, as held-out folds have them by the thousand.
#pragma once

#include <cstddef>

namespace pairgram {

// A matrix of which entry (i, k) stands at i·row_step + k·term_step.
struct stepped_matrix {
    const double* entries;
    std::ptrdiff_t row_step, term_step;
};

// Products take columns in groups of this size.
constexpr std::ptrdiff_t column_group = 8;

constexpr std::ptrdiff_t in_column_groups(std::ptrdiff_t n) {
    return (n + column_group - 1) / column_group * column_group;
}

// The rows and columns of the largest tile of C that the registers of this processor hold.
struct tile_shape {
    std::ptrdiff_t rows, columns;
};
tile_shape cached_tile();

// C (m, n; stride ldc) += factor · A (m, k) · B (k, n; stride ldb), for n in whole groups of
// columns. Nothing is packed, which is most of the time of BLAS at such sizes. The bits of a row
// depend neither on its place nor on the rows beside it. No BLAS.
void add_cached_product(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, double factor,
                        const stepped_matrix& a, const double* b, std::ptrdiff_t ldb, double* c,
                        std::ptrdiff_t ldc);

}  // namespace pairgram
