#include "metrics/ranking.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "support/simd.hpp"
#include "support/word_sort.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t longest_in_words = 1024;  // above it other ways take less time
constexpr std::size_t cache_line = 64;             // no vector lies in two, which costs time
constexpr std::ptrdiff_t longest_inserted = 64;    // above it insertion into the top costs too much

PAIRGRAM_CLONES
void pack_words(std::ptrdiff_t n, const std::int64_t* keys, std::int64_t index_bits,
                std::int64_t* words) {
    for (std::ptrdiff_t i = 0; i < n; ++i) words[i] = (keys[i] & ~index_bits) | i;
}

// Sorts words whose high bits are those of the keys and whose low bits are the index, so that ties
// keep their order. Returns false where the bits left out of the keys decide: `ranked` then may
// lack documents of a short top.
bool rank_by_words(std::ptrdiff_t n, const std::int64_t* keys, std::ptrdiff_t top,
                   ranked_document* ranked) {
    alignas(cache_line) std::int64_t words[longest_in_words];
    std::int64_t index_bits = 1;
    while (index_bits < n - 1) index_bits = 2 * index_bits + 1;
    pack_words(n, keys, index_bits, words);
    sort_words(n, top + 1, words);
    for (std::ptrdiff_t r = 0; r < top; ++r) {
        const std::int64_t index = words[r] & index_bits;
        ranked[r] = {keys[index], index};
    }
    bool sorted = top == n || (words[top - 1] | index_bits) < words[top];
    for (std::ptrdiff_t r = 1; r < top; ++r) sorted &= ranked[r - 1].key <= ranked[r].key;
    return sorted;
}

// Keeps the best `top` seen so far in order; a document enters only before a strictly greater key.
void rank_by_insertion(std::ptrdiff_t n, const std::int64_t* keys, std::ptrdiff_t top,
                       ranked_document* ranked) {
    const auto insert = [&](std::ptrdiff_t last, std::ptrdiff_t i) {
        std::ptrdiff_t at = last;
        for (; at > 0 && ranked[at - 1].key > keys[i]; --at) ranked[at] = ranked[at - 1];
        ranked[at] = {keys[i], i};
    };
    for (std::ptrdiff_t i = 0; i < top; ++i) insert(i, i);
    for (std::ptrdiff_t i = top; i < n; ++i)
        if (keys[i] < ranked[top - 1].key) insert(top - 1, i);
}

// Stable least-significant-digit radix sort by 11 bits; digits that all keys share are skipped.
void rank_by_radix(std::ptrdiff_t n, const std::int64_t* keys, ranked_document* ranked,
                   buffer<ranked_document>& spare) {
    constexpr int n_digits = 6;
    constexpr std::size_t n_buckets = 2048;
    const auto digit = [](std::int64_t key, int d) {
        const auto ordered = static_cast<std::uint64_t>(key) ^ (std::uint64_t{1} << 63);
        return static_cast<std::size_t>(ordered >> (11 * d)) & (n_buckets - 1);
    };
    buffer<std::array<std::ptrdiff_t, n_buckets>> counts(n_digits);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        ranked[i] = {keys[i], i};
        for (int d = 0; d < n_digits; ++d) ++counts[d][digit(keys[i], d)];
    }
    spare.resize(n);
    ranked_document* from = ranked;
    ranked_document* to = spare.data();
    for (int d = 0; d < n_digits; ++d) {
        auto& starts = counts[d];
        if (starts[digit(keys[0], d)] == n) continue;
        std::ptrdiff_t start = 0;
        for (auto& bucket : starts) start += std::exchange(bucket, start);
        for (std::ptrdiff_t i = 0; i < n; ++i) to[starts[digit(from[i].key, d)]++] = from[i];
        std::swap(from, to);
    }
    if (from != ranked) std::copy(from, from + n, ranked);
}

std::int64_t key_of(double score) {
    score += 0.0;  // -0.0 becomes 0.0
    return score != score ? INT64_MAX : ~word_of(score);
}

}  // namespace

PAIRGRAM_CLONES
std::ptrdiff_t score_keys(std::ptrdiff_t n, const double* scores, const std::int64_t* rows,
                          std::int64_t* keys) {
    if (rows)
        for (std::ptrdiff_t i = 0; i < n; ++i) keys[i] = key_of(scores[rows[i]]);
    else
        for (std::ptrdiff_t i = 0; i < n; ++i) keys[i] = key_of(scores[i]);
    std::ptrdiff_t n_nan = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) n_nan += keys[i] == INT64_MAX;
    return n_nan;
}

void rank_documents(std::ptrdiff_t n, const std::int64_t* keys, std::ptrdiff_t top,
                    buffer<ranked_document>& spare, buffer<ranked_document>& ranked) {
    top = std::min(top, n);
    ranked.resize(top);
    if (top == 0 || (n <= longest_in_words && rank_by_words(n, keys, top, ranked.data()))) return;
    if (top < n && top <= longest_inserted) return rank_by_insertion(n, keys, top, ranked.data());
    ranked.resize(n);
    rank_by_radix(n, keys, ranked.data(), spare);
}

}  // namespace pairgram
