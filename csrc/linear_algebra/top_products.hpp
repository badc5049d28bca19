// The best columns of a product of two matrices, row by row, without the product.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pairgram {

// Columns that a row leaves out: row i those of [indptr[i], indptr[i + 1]), which ascend.
struct left_out {
    const std::int64_t* indptr = nullptr;  // (n_rows + 1,), or null for none
    const std::int64_t* columns = nullptr;
};

// For every row a_i of A (n_rows, width) the k largest a_i · b_j over the rows b_j of B (n_columns,
// width), best first, and of equal ones the first j first: columns (n_rows, k), −1 where there are
// fewer, and scores (n_rows, k), NaN there. All entries are finite.
//
// Blocks of the product are made by BLAS in float; what may be among the k best, by a bound on the
// rounding, is scored in double as `linear_models` does it, so that the result is that of all
// scores in double. 2·n_rows·n_columns·width flops in float. Memory besides: B in float, and a
// quarter of a megabyte per thread.
void top_products(std::ptrdiff_t n_rows, std::ptrdiff_t n_columns, std::ptrdiff_t width,
                  const double* a, const double* b, std::ptrdiff_t k, const left_out& without,
                  std::int64_t* columns, double* scores, int n_threads);

}  // namespace pairgram
