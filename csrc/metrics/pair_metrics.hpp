// Metrics over the pairs of a list: Kendall's tau b, Spearman's rho, Pearson's correlation, the
// fraction of misranked pairs, the ranking error, and the mean differences MSD and M1D. O(n log n),
// never a list of pairs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metrics/ranking.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// The labels of a list as dense levels, shared by every score vector.
struct label_levels {
    buffer<std::ptrdiff_t> level;  // (n), 0 for the lowest label
    buffer<double> centred_rank;   // (n), mean rank of tied labels minus (n + 1) / 2
    std::ptrdiff_t n_levels = 0;
    std::int64_t tied_pairs = 0;
    double sum_of_squares = 0;  // of the centred ranks
};

void make_levels(std::ptrdiff_t n, const double* labels, label_levels& levels);

struct pair_counts {
    std::int64_t pairs;       // n (n - 1) / 2
    std::int64_t tied_label;  // pairs with equal labels
    std::int64_t tied_score;  // pairs with equal scores
    std::int64_t tied_both;
    std::int64_t discordant;  // both differ, in opposite directions
};

// Counts the pairs of a complete ranking with the tied runs of tie_end (see ranked_list), from the
// top with a Fenwick tree over the levels: O(n log(levels)).
pair_counts count_pairs(std::ptrdiff_t n, const ranked_document* ranked,
                        const std::ptrdiff_t* tie_end, const label_levels& levels,
                        buffer<std::int64_t>& scratch);

// (concordant - discordant) / sqrt(pairs not tied in label * pairs not tied in score); NaN where
// labels or scores are constant.
double kendall_tau_b(const pair_counts& counts);

// (discordant + tied in score only / 2) / pairs not tied in label; NaN without such pairs.
double misranked_fraction(const pair_counts& counts);

// Documents of a part of the levels: how many, and their labels from that of document 0 on.
struct label_tally {
    double count = 0, sum = 0;

    label_tally& operator+=(const label_tally& other) {
        count += other.count;
        sum += other.sum;
        return *this;
    }
};

// The mean over pairs i < j of |label_i - label_j| times 1 where the scores are in the opposite
// order, 1/2 where they are tied; NaN for n < 2. O(n log n): from the top, the documents ranked
// higher with a lower label are counted and summed by a Fenwick tree over the levels, and tied runs
// are sorted. `tallies` and `run` are scratch. Source: Agarwal et al. 2010, ranking error of
// real-valued labels.
double ranking_error(std::ptrdiff_t n, const double* labels, const ranked_document* ranked,
                     const std::ptrdiff_t* tie_end, const label_levels& levels,
                     buffer<label_tally>& tallies, buffer<double>& run);

// Pearson's correlation of mean ranks; NaN where labels or scores are constant.
double spearman_rho(std::ptrdiff_t n, const ranked_document* ranked, const std::ptrdiff_t* tie_end,
                    const label_levels& levels);

// Pearson's correlation of labels and scores; NaN where one of them is constant. Scores as below;
// x and y are scratch.
double pearson_correlation(std::ptrdiff_t n, const double* labels, const double* scores,
                           const std::int64_t* rows, buffer<double>& x, buffer<double>& y);

// sum_ij (r_i - r_j)^2 / n^2 = 2 var(r) for r = label - score; document i has the score
// scores[rows[i]], or scores[i] where rows is null. NaN for n < 2.
double mean_squared_difference(std::ptrdiff_t n, const double* labels, const double* scores,
                               const std::int64_t* rows, buffer<double>& residuals);

// sum_ij |r_i - r_j| / n^2, from sorted residuals.
double mean_absolute_difference(std::ptrdiff_t n, const double* labels, const double* scores,
                                const std::int64_t* rows, buffer<double>& residuals);

}  // namespace pairgram
