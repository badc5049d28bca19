// Held-out scores that differ by rounding errors alone become equal.
#pragma once

#include <cstddef>

#include "data/query_rows.hpp"

namespace pairgram {

// How far two scores of a query may lie apart that are equal but for rounding:
//     min(rounding · amplification_m, 1e-4) · (spread + range) + rounding · (range + size)
// for model m, with the range and the largest size of the model's scores of the query.
struct tie_tolerance {
    double rounding;              // a small multiple of the machine epsilon
    double spread;                // the largest range of the targets
    const double* amplification;  // (n_models,) λ_max / λ
};

// scores (n_models, n) of rows, which are changed in place: rows of a query whose scores by model 0
// lie within its tolerance of a neighbour form a group, and every other model's scores within its
// own tolerance of the group's first row take that row's score, as all do by model 0.
//
// Model 0 has the largest λ, of which scores are the most exact: rows that tie whatever the ridge
// are told from others there. A query with a score of model 0 that is not finite is left as it is.
// O(n log n + n_models · rows of groups); n_models · rows of queries that have a group, once.
void join_ties(const query_rows& queries, std::ptrdiff_t n_models, std::ptrdiff_t n_rows,
               const tie_tolerance& tolerance, double* scores, int n_threads);

}  // namespace pairgram
