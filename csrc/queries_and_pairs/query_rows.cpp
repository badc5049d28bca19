#include "queries_and_pairs/query_rows.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace pairgram {

void check_rows(const query_rows& queries, std::ptrdiff_t n_rows) {
    const std::int64_t* const end = queries.offsets + queries.n_queries;
    if (queries.offsets[0] != 0) throw std::invalid_argument("offsets must begin with 0");
    if (*end != n_rows) throw std::invalid_argument("offsets must end with the number of rows");
    if (!std::is_sorted(queries.offsets, end + 1)) {
        throw std::invalid_argument("offsets must not decrease");
    }
    if (queries.order == nullptr) return;
    std::vector<bool> named(size_of(n_rows));
    for (std::ptrdiff_t i = 0; i < n_rows; ++i) {
        const std::int64_t row = queries.order[i];
        if (row < 0 || row >= n_rows || named[row]) {
            throw std::invalid_argument("order must name every row once");
        }
        named[row] = true;
    }
}

}  // namespace pairgram
