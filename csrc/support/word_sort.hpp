// A sort of short arrays of integers without branches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pairgram {

// An integer that ascends as a value does that is not NaN, -0 before 0; and the value of a word.
inline std::int64_t word_of(double value) {
    std::int64_t word;
    std::memcpy(&word, &value, sizeof word);
    return word < 0 ? word ^ INT64_MAX : word;
}
inline double value_of(std::int64_t word) {
    double value;
    word = word < 0 ? word ^ INT64_MAX : word;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

// Room for n words to be sorted: a power of two.
std::ptrdiff_t room_for_words(std::ptrdiff_t n);

// Sorts n words, all below INT64_MAX, in ascending order; the room behind them is written to as
// well. Only the first min(top, n) of them are certain to be there afterwards. O(n log² n)
// comparisons of whole vectors; Batcher's bitonic network (1968), with the larger half dropped from
// every merge that has the top already.
void sort_words(std::ptrdiff_t n, std::ptrdiff_t top, std::int64_t* words);

}  // namespace pairgram
