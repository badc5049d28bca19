#include "metrics/ranking.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "queries_and_pairs/query_rows.hpp"
#include "support/buffer.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t longest_counted = 256;  // above it sorting beats n^2 vector comparisons
constexpr std::ptrdiff_t longest_inserted = 64;  // above it insertion into the top costs too much
constexpr std::ptrdiff_t shortest_radix = 4096;  // below it the histograms cost more than they save

// rank_i = #{j : key_j < key_i} + #{j < i : key_j = key_i}: n^2 comparisons without a branch.
PAIRGRAM_CLONES
void rank_by_counting(std::ptrdiff_t n, const std::int64_t* keys, ranked_document* ranked) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const std::int64_t key = keys[i];
        std::int64_t rank = 0;
        for (std::ptrdiff_t j = 0; j < i; ++j) rank += keys[j] <= key;
        for (std::ptrdiff_t j = i + 1; j < n; ++j) rank += keys[j] < key;
        ranked[rank] = {key, i};
    }
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
    for (std::ptrdiff_t i = top; i < n; ++i) {
        if (keys[i] < ranked[top - 1].key) insert(top - 1, i);
    }
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

}  // namespace

void score_keys(std::ptrdiff_t n, const double* scores, const std::int64_t* rows,
                std::int64_t* keys) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double score = (rows ? scores[rows[i]] : scores[i]) + 0.0;  // -0.0 becomes 0.0
        std::int64_t bits;
        std::memcpy(&bits, &score, sizeof bits);
        keys[i] = ~(bits < 0 ? bits ^ INT64_MAX : bits);
    }
}

void rank_documents(std::ptrdiff_t n, const std::int64_t* keys, std::ptrdiff_t top,
                    buffer<ranked_document>& ranked, buffer<ranked_document>& spare) {
    const bool short_top = top < n && top <= longest_inserted;
    ranked.resize(short_top ? top : n);
    if (short_top) {
        if (top > 0) rank_by_insertion(n, keys, top, ranked.data());
    } else if (n <= longest_counted) {
        rank_by_counting(n, keys, ranked.data());
    } else if (n < shortest_radix) {
        for (std::ptrdiff_t i = 0; i < n; ++i) ranked[i] = {keys[i], i};
        std::sort(ranked.begin(), ranked.end(),
                  [](const ranked_document& a, const ranked_document& b) {
                      return a.key != b.key ? a.key < b.key : a.index < b.index;
                  });
    } else {
        rank_by_radix(n, keys, ranked.data(), spare);
    }
}

}  // namespace pairgram
