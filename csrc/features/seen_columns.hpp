// What is remembered of the columns of rows: sums by query, from which means and their variances
// follow, and the range.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/query_rows.hpp"
#include "support/buffer.hpp"

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

// The same of some queries, which are taken by whoever reads their rows anyway: the sums of a part
// are added to by one thread at a time.
template <class T>
class seen_parts {
  public:
    // Rows X (n, d) with the row weights of queries; rows of weight 0 are as if absent.
    seen_parts(const query_rows& queries, std::ptrdiff_t d, const T* X, const double* pivot);

    // Makes so many parts, of 19 d numbers each.
    void make(std::ptrdiff_t n_parts);

    // Adds the queries [first, last) to a part.
    void take(std::ptrdiff_t part, std::ptrdiff_t first, std::ptrdiff_t last);

    // Writes the sums of all parts, one after the other. Without a value the range is infinity and
    // −infinity.
    void finish(const seen_columns& seen) const;

  private:
    struct part {
        buffer<double> sums, lowest, highest;
        buffer<std::int64_t> queries;
        buffer<double> known, sum, least, most;  // N, S and the range of the query that is read

        explicit part(std::ptrdiff_t d);
    };
    void take_query(std::ptrdiff_t query, part& own) const;

    query_rows queries_;
    std::ptrdiff_t d_;
    const T* X_;
    const double* pivot_;
    buffer<part> parts_;
};

// seen of X (n, d), whose rows have the row weights of queries; see `seen_parts`. X is read once;
// the same bits for any number of threads. A part for every 4,096 rows.
template <class T>
void find_seen_columns(const query_rows& queries, std::ptrdiff_t d, const T* X, const double* pivot,
                       const seen_columns& seen, int n_threads);

}  // namespace pairgram
