// The ranking problem: rows delimited into queries, and the pairs of them that count.
#pragma once

#include <cstddef>

#include "data/query_rows.hpp"

namespace pairgram {

enum class pair_kind { none, kept, dropped, omega };
enum class weighting_kind { pairs, documents, queries };

// Which pairs count, and how much. The last three are for omega alone; without them the weight of
// two labels, which are ≥ 0, is their sum.
struct pair_rule {
    pair_kind kind;
    weighting_kind weighting;
    std::ptrdiff_t n_levels = 0;
    const double* level_values = nullptr;  // (n_levels,) ascending, every label of the data
    const double* omega = nullptr;         // (n_levels, n_levels) symmetric, ≥ 0

    bool uses_levels() const { return kind == pair_kind::dropped || kind == pair_kind::omega; }
    bool sums_labels() const { return kind == pair_kind::omega && omega == nullptr; }
};

struct ranking_problem {
    pair_rule rule;
    query_rows rows;
};

// Throws std::invalid_argument unless the labels suit the pairs: not NaN where pairs of equal
// labels are dropped, one of the levels of an omega, or ≥ 0 and finite for sums. Levels are found
// by sorting and searching, which a label outside their order would lead astray. O(n_rows log
// n_levels).
void check_labels(const ranking_problem& problem);

}  // namespace pairgram
