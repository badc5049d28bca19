// What is remembered of the columns of rows: sums by query, from which means and their variances
// follow, and the range.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/query_rows.hpp"

namespace pairgram {

// Of every column, where N is the weight of the rows of a query that have a value, which is not
// NaN; A the weight of all its rows; and S = Σ w (x − pivot), over the rows that have one.
struct seen_columns {
    double* sums;           // (9, n_columns): Σ N, Σ S, Σ w (x − pivot)², Σ N², Σ N S, Σ S²,
                            // Σ N A, Σ A², Σ A, over queries
    double* range;          // (2, n_columns): the least and the greatest value
    std::int64_t* queries;  // (4, n_columns): those with rows, with a value, with a missing one,
                            // and with values that differ
};

// seen of X (n, d), whose rows have the row weights of queries; rows of weight 0 are as if absent.
// Without a value the range is infinity and −infinity. X is read once; the same bits for any number
// of threads. Scratch: 19 d numbers for every 4,096 rows.
template <class T>
void find_seen_columns(const query_rows& queries, std::ptrdiff_t d, const T* X, const double* pivot,
                       const seen_columns& seen, int n_threads);

}  // namespace pairgram
