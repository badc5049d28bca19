// A sort of short arrays of integers without branches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/buffer.hpp"

namespace pairgram {

// Sorts words, all below INT64_MAX, in ascending order. Only the first min(top, n) of them are
// certain to be there afterwards, and the size is that of a power of two. O(n log² n) comparisons
// of whole vectors; Batcher's bitonic network (1968), with the larger half dropped from every merge
// that has the top already.
void sort_words(std::ptrdiff_t top, buffer<std::int64_t>& words);

}  // namespace pairgram
