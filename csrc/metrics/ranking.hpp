// Ranking one list by score: the highest first, tied scores in the order in which they are given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/buffer.hpp"

namespace pairgram {

// A document of a list; keys ascend where scores descend, and equal keys are tied scores.
struct ranked_document {
    std::int64_t key;
    std::ptrdiff_t index;
};

// Writes the keys of n scores (-0.0 equals 0.0), and returns how many are NaN: their keys are
// behind that of -inf. Document i has the score scores[rows[i]], or scores[i] where rows is null.
std::ptrdiff_t score_keys(std::ptrdiff_t n, const double* scores, const std::int64_t* rows,
                          std::int64_t* keys);

// Ranks n documents: the first min(top, n) of `ranked` are the first of the ranking. Up to 1,024
// documents are sorted by compared vectors. Of more, a short top costs one scan and O(top) for each
// document that enters it, the rest O(n).
void rank_documents(std::ptrdiff_t n, const std::int64_t* keys, std::ptrdiff_t top,
                    buffer<ranked_document>& spare, buffer<ranked_document>& ranked);

}  // namespace pairgram
