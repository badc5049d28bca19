#include "support/word_sort.hpp"

#include <algorithm>
#include <cstring>

#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr int wide_lanes = 8;

}  // namespace

std::ptrdiff_t room_for_words(std::ptrdiff_t n) {
    std::ptrdiff_t room = wide_lanes;
    while (room < n) room *= 2;
    return room;
}

#ifdef PAIRGRAM_SHUFFLE

namespace {

constexpr int narrow_lanes = 4;

template <int Lanes>
using words_of = pack<std::int64_t, Lanes>;

// Puts the smaller of the words i of a and b into a, the larger into b.
template <int Lanes>
inline void order(words_of<Lanes>& a, words_of<Lanes>& b) {
    const words_of<Lanes> smaller = a < b ? a : b;
    b = a < b ? b : a;
    a = smaller;
}

template <int Lanes, int... I>
inline void reverse(words_of<Lanes>& v, std::integer_sequence<int, I...>) {
    v = PAIRGRAM_SHUFFLE(v, v, (Lanes - 1 - I)...);
}

// Orders each word i with the word i ^ Partner. The larger goes where i has the bit Upper.
template <int Partner, int Upper, int Lanes, int... I>
inline void order_within(words_of<Lanes>& v, std::integer_sequence<int, I...>) {
    words_of<Lanes> smaller = v, larger = PAIRGRAM_SHUFFLE(v, v, (I ^ Partner)...);
    order<Lanes>(smaller, larger);
    v = PAIRGRAM_SHUFFLE(smaller, larger, (I & Upper ? Lanes + I : I)...);
}

// Sorts runs of Size words that first rise and then fall, or the other way round.
template <int Size, int Lanes>
inline void sort_bitonic(words_of<Lanes>& v) {
    if constexpr (Size > 1) {
        order_within<Size / 2, Size / 2, Lanes>(v, std::make_integer_sequence<int, Lanes>{});
        sort_bitonic<Size / 2, Lanes>(v);
    }
}

// Sorts runs of Size words.
template <int Size, int Lanes>
inline void sort_runs(words_of<Lanes>& v) {
    if constexpr (Size > 1) {
        sort_runs<Size / 2, Lanes>(v);
        order_within<Size - 1, Size / 2, Lanes>(v, std::make_integer_sequence<int, Lanes>{});
        sort_bitonic<Size / 2, Lanes>(v);
    }
}

// Sorts n words, n a multiple of Lanes and a power of two, or `keep` of them, another such.
template <int Lanes>
PAIRGRAM_CLONES void sort_in_lanes(std::ptrdiff_t n, std::ptrdiff_t keep, std::int64_t* words) {
    using vector = words_of<Lanes>;
    vector a, b;
    for (std::ptrdiff_t i = 0; i < n; i += Lanes) {
        std::memcpy(&a, words + i, sizeof a);
        sort_runs<Lanes, Lanes>(a);
        std::memcpy(words + i, &a, sizeof a);
    }
    for (std::ptrdiff_t run = Lanes; run < n; run = std::min(2 * run, keep)) {
        // A run and the next one, reversed, hold their smallest words in one half after one step.
        const bool drops = run == keep;
        for (std::ptrdiff_t begin = 0; begin < n; begin += 2 * run) {
            std::int64_t* const first = words + begin;
            std::int64_t* const out = drops ? words + begin / 2 : first;
            for (std::ptrdiff_t i = 0; i < run; i += Lanes) {
                const auto mirrored = 2 * run - Lanes - i;
                std::memcpy(&a, first + i, sizeof a);
                std::memcpy(&b, first + mirrored, sizeof b);
                reverse<Lanes>(b, std::make_integer_sequence<int, Lanes>{});
                order<Lanes>(a, b);
                std::memcpy(out + i, &a, sizeof a);
                if (!drops) std::memcpy(out + mirrored, &b, sizeof b);
            }
        }
        if (drops) n /= 2;
        for (auto gap = run / 2; gap >= Lanes; gap /= 2)
            for (std::ptrdiff_t begin = 0; begin < n; begin += 2 * gap)
                for (auto i = begin; i < begin + gap; i += Lanes) {
                    std::memcpy(&a, words + i, sizeof a);
                    std::memcpy(&b, words + i + gap, sizeof b);
                    order<Lanes>(a, b);
                    std::memcpy(words + i, &a, sizeof a);
                    std::memcpy(words + i + gap, &b, sizeof b);
                }
        for (std::ptrdiff_t i = 0; i < n; i += Lanes) {
            std::memcpy(&a, words + i, sizeof a);
            sort_bitonic<Lanes, Lanes>(a);
            std::memcpy(words + i, &a, sizeof a);
        }
    }
}

}  // namespace

void sort_words(std::ptrdiff_t n, std::ptrdiff_t top, std::int64_t* words) {
    const auto padded = room_for_words(n), keep = room_for_words(std::min(top, n));
    std::fill(words + n, words + padded, INT64_MAX);
    if (has_wide_registers())
        sort_in_lanes<wide_lanes>(padded, keep, words);
    else
        sort_in_lanes<narrow_lanes>(padded, keep, words);
}

#else

void sort_words(std::ptrdiff_t n, std::ptrdiff_t top, std::int64_t* words) {
    std::partial_sort(words, words + std::min(top, n), words + n);
}

#endif

}  // namespace pairgram
