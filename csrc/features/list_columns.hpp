// Columns that say what a value is beside the others of its list, such as those of the documents
// that one query found: they depend on all rows of the list, not on a row alone.
#pragma once

#include <cstddef>

#include "data/query_rows.hpp"

namespace pairgram {

enum class list_kind {
    rank,      // the share of the other rows that are below, those that tie by half; 1/2 if alone
    standard,  // (x - mean) / deviation, and 0 where all are equal within rounding errors or so
               // near to each other that the squares of differences vanish
    runs,      // two blocks of columns: (x - min) / (max - min), 1 where these are equal; and
               // 60 / (60 + rank), where the highest has rank 1 and ties have their mean rank.
               // NaN is a row that the run lacks: both are 0.
};

struct list_columns {
    list_kind kind;
    bool keeps_inputs;  // whether the inputs themselves come first

    std::ptrdiff_t n_columns(std::ptrdiff_t n_inputs) const {
        return ((keeps_inputs ? 1 : 0) + (kind == list_kind::runs ? 2 : 1)) * n_inputs;
    }
};

// out (n_rows, n_columns) from rows (n_rows, n_inputs), which must be finite, but for the NaN of
// runs. Everything is computed in double. Equal values of a list stay equal; where a range or a sum
// of squares is no number, out is NaN. O(n_inputs Σ n_q log² n_q); memory: a list for every thread.
template <class T>
void make_list_columns(const list_columns& columns, const query_rows& lists,
                       std::ptrdiff_t n_inputs, const T* rows, T* out, int n_threads);

}  // namespace pairgram
