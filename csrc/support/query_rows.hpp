// Rows delimited into queries, as the kernels take them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pairgram {

// A size or an index for the standard library's containers.
inline std::size_t size_of(std::ptrdiff_t n) { return static_cast<std::size_t>(n); }

// Query q holds the rows order[offsets[q], offsets[q + 1]), or that range itself where order is
// null.
struct query_offsets {
    std::ptrdiff_t n_queries;
    const std::int64_t* offsets;
    const std::int64_t* order;

    std::ptrdiff_t size(std::ptrdiff_t query) const {
        return static_cast<std::ptrdiff_t>(offsets[query + 1] - offsets[query]);
    }
};

// Throws std::invalid_argument unless the offsets ascend from 0 to n_rows and the order, if there
// is one, of n_rows entries, names every row once. O(n_rows + n_queries); memory: n_rows bits.
void check_rows(const query_offsets& queries, std::ptrdiff_t n_rows);

}  // namespace pairgram
