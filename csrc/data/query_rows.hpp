// Rows delimited into queries, with their labels and weights, and sparse rows, as the compiled code
// takes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/buffer.hpp"

namespace pairgram {

// A view. Query q holds the rows order[offsets[q], offsets[q + 1]), or that range itself where
// order is null. Labels and weights are indexed by row; null weights are 1.
struct query_rows {
    std::ptrdiff_t n_queries;
    const std::int64_t* offsets;  // (n_queries + 1,)
    const std::int64_t* order;    // (n_rows,)
    const double* labels = nullptr;
    const double* row_weights = nullptr;
    const double* query_weights = nullptr;  // (n_queries,)

    std::ptrdiff_t n_rows() const { return begin(n_queries); }
    // Where the rows of a query begin, as a position; those of query n_queries would be the next.
    std::ptrdiff_t begin(std::ptrdiff_t query) const {
        return static_cast<std::ptrdiff_t>(offsets[query]);
    }
    std::ptrdiff_t size(std::ptrdiff_t query) const { return begin(query + 1) - begin(query); }
    std::ptrdiff_t row(std::ptrdiff_t position) const {
        return order ? static_cast<std::ptrdiff_t>(order[position]) : position;
    }
    double row_weight(std::ptrdiff_t row) const { return row_weights ? row_weights[row] : 1.0; }
    double query_weight(std::ptrdiff_t query) const {
        return query_weights ? query_weights[query] : 1.0;
    }
};

// A view of rows in CSR form: the entries of row i stand at [bounds[i], bounds[i + 1]).
template <class T>
struct sparse_rows {
    std::ptrdiff_t n_rows, n_columns;
    const std::int64_t* bounds;   // (n_rows + 1,)
    const std::int32_t* columns;  // (nnz,), half the bytes of int64
    const T* values;              // (nnz,)

    std::ptrdiff_t begin(std::ptrdiff_t row) const {
        return static_cast<std::ptrdiff_t>(bounds[row]);
    }
    std::ptrdiff_t size(std::ptrdiff_t row) const { return begin(row + 1) - begin(row); }
};

// Throws std::invalid_argument unless the offsets ascend from 0 to n_rows and the order, if there
// is one, of n_rows entries, names every row once. O(n_rows + n_queries); memory: n_rows bits.
void check_rows(const query_rows& queries, std::ptrdiff_t n_rows);

// Rows brought together by id. Groups stand in the order of their first rows, and so do their rows.
struct rows_by_id {
    buffer<std::int64_t> first_run;  // (n_groups,)
    buffer<std::int64_t> offsets;    // (n_groups + 1,)
    buffer<std::int64_t> order;      // (n_rows,)
};

// Groups runs of rows, of which run r has the rows [bounds[r], bounds[r + 1]) and ids[r], by a
// table of hashes. O(n_rows).
rows_by_id group_runs(std::ptrdiff_t n_runs, const std::int64_t* ids, const std::int64_t* bounds);

}  // namespace pairgram
