#include "metrics/pair_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/prefix_sums.hpp"

namespace pairgram {

namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

std::int64_t pairs_of(std::ptrdiff_t n) { return std::int64_t{n} * (n - 1) / 2; }

// Fills the residuals label - score minus their mean. Both are shifted by their first value, since
// scores with a large value in common would swallow the labels.
void centred_residuals(std::ptrdiff_t n, const double* labels, const double* scores,
                       const std::int64_t* rows, buffer<double>& residuals) {
    residuals.resize(n);
    const auto score = [&](std::ptrdiff_t i) { return rows ? scores[rows[i]] : scores[i]; };
    const double first = score(0);
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        residuals[i] = (labels[i] - labels[0]) - (score(i) - first);
        sum += residuals[i];
    }
    const double mean = sum / static_cast<double>(n);
    for (auto& residual : residuals) residual -= mean;
}

// Centres values at their mean and scales the largest to 1; false where they are constant. Shifted
// by the first, so that constant values become exactly 0; scaled, so that no square overflows or
// vanishes.
bool standardise(buffer<double>& values) {
    if (values.empty()) return false;
    const double first = values[0];
    double sum = 0, largest = 0;
    for (double& value : values) sum += value -= first;
    const double mean = sum / static_cast<double>(values.size());
    for (double& value : values) largest = std::max(largest, std::abs(value -= mean));
    if (largest == 0) return false;
    for (double& value : values) value /= largest;
    return true;
}

double dot(const buffer<double>& x, const buffer<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

}  // namespace

void make_levels(std::ptrdiff_t n, const double* labels, label_levels& levels) {
    buffer<std::ptrdiff_t> by_label(n);
    std::iota(by_label.begin(), by_label.end(), std::ptrdiff_t{0});
    std::sort(by_label.begin(), by_label.end(),
              [&](std::ptrdiff_t a, std::ptrdiff_t b) { return labels[a] < labels[b]; });
    levels.level.resize(n);
    levels.centred_rank.resize(n);
    levels.n_levels = 0;
    levels.tied_pairs = 0;
    levels.sum_of_squares = 0;
    for (std::ptrdiff_t begin = 0, end; begin < n; begin = end) {
        const double label = labels[by_label[begin]];
        for (end = begin; end < n && labels[by_label[end]] == label;) ++end;
        const double rank = 0.5 * static_cast<double>(begin + end - n);
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            levels.level[by_label[i]] = levels.n_levels;
            levels.centred_rank[by_label[i]] = rank;
        }
        ++levels.n_levels;
        levels.tied_pairs += pairs_of(end - begin);
        levels.sum_of_squares += static_cast<double>(end - begin) * rank * rank;
    }
}

pair_counts count_pairs(std::ptrdiff_t n, const ranked_document* ranked,
                        const std::ptrdiff_t* tie_end, const label_levels& levels,
                        buffer<std::int64_t>& scratch) {
    pair_counts counts{pairs_of(n), levels.tied_pairs, 0, 0, 0};
    scratch.assign(2 * levels.n_levels + 1, 0);
    std::int64_t* tree = scratch.data();                          // of documents ranked higher
    std::int64_t* in_run = scratch.data() + levels.n_levels + 1;  // by level
    const auto level_of = [&](std::ptrdiff_t i) { return levels.level[ranked[i].index]; };
    for (std::ptrdiff_t begin = 0, end; begin < n; begin = end) {
        end = tie_end[begin];
        counts.tied_score += pairs_of(end - begin);
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const std::ptrdiff_t level = level_of(i);
            counts.tied_both += in_run[level]++;
            counts.discordant += sum_of_first(tree, level);
        }
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const std::ptrdiff_t level = level_of(i);
            in_run[level] = 0;
            add_at(tree, levels.n_levels, level, std::int64_t{1});
        }
    }
    return counts;
}

double kendall_tau_b(const pair_counts& counts) {
    const auto by_label = static_cast<double>(counts.pairs - counts.tied_label);
    const auto by_score = static_cast<double>(counts.pairs - counts.tied_score);
    if (by_label == 0 || by_score == 0) return undefined;
    const std::int64_t untied =
        counts.pairs - counts.tied_label - counts.tied_score + counts.tied_both;
    const double tau = static_cast<double>(untied - 2 * counts.discordant) /
                       (std::sqrt(by_label) * std::sqrt(by_score));
    return std::clamp(tau, -1.0, 1.0);
}

double misranked_fraction(const pair_counts& counts) {
    const std::int64_t differ = counts.pairs - counts.tied_label;
    if (differ == 0) return undefined;
    const std::int64_t tied_score_only = counts.tied_score - counts.tied_both;
    return (static_cast<double>(counts.discordant) + 0.5 * static_cast<double>(tied_score_only)) /
           static_cast<double>(differ);
}

double spearman_rho(std::ptrdiff_t n, const ranked_document* ranked, const std::ptrdiff_t* tie_end,
                    const label_levels& levels) {
    double squares = 0, products = 0;
    for (std::ptrdiff_t begin = 0, end; begin < n; begin = end) {
        end = tie_end[begin];
        const double rank = -0.5 * static_cast<double>(begin + end - n);  // the top has the highest
        double labels = 0;
        for (std::ptrdiff_t i = begin; i < end; ++i) labels += levels.centred_rank[ranked[i].index];
        products += rank * labels;
        squares += static_cast<double>(end - begin) * rank * rank;
    }
    if (squares == 0 || levels.sum_of_squares == 0) return undefined;
    const double rho = products / (std::sqrt(squares) * std::sqrt(levels.sum_of_squares));
    return std::clamp(rho, -1.0, 1.0);
}

double ranking_error(std::ptrdiff_t n, const double* labels, const ranked_document* ranked,
                     const std::ptrdiff_t* tie_end, const label_levels& levels,
                     buffer<label_tally>& tallies, buffer<double>& run) {
    if (n < 2) return undefined;
    tallies.assign(levels.n_levels + 1, {});  // of documents ranked higher
    double sum = 0;
    for (std::ptrdiff_t begin = 0, end; begin < n; begin = end) {
        end = tie_end[begin];
        run.clear();
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            run.push_back(labels[ranked[i].index] - labels[0]);
            const label_tally lower = sum_of_first(tallies.data(), levels.level[ranked[i].index]);
            sum += lower.count * run.back() - lower.sum;
        }
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const label_tally own{1, run[i - begin]};
            add_at(tallies.data(), levels.n_levels, levels.level[ranked[i].index], own);
        }
        std::sort(run.begin(), run.end());
        for (std::ptrdiff_t i = 0; i < end - begin; ++i)
            sum += 0.5 * static_cast<double>(2 * i - (end - begin) + 1) * run[i];
    }
    return std::max(0.0, sum) / static_cast<double>(pairs_of(n));
}

double pearson_correlation(std::ptrdiff_t n, const double* labels, const double* scores,
                           const std::int64_t* rows, buffer<double>& x, buffer<double>& y) {
    x.resize(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) x[i] = rows ? scores[rows[i]] : scores[i];
    y.assign(labels, labels + n);
    if (!standardise(x) || !standardise(y)) return undefined;
    return std::clamp(dot(x, y) / std::sqrt(dot(x, x) * dot(y, y)), -1.0, 1.0);
}

double mean_squared_difference(std::ptrdiff_t n, const double* labels, const double* scores,
                               const std::int64_t* rows, buffer<double>& residuals) {
    if (n < 2) return undefined;
    centred_residuals(n, labels, scores, rows, residuals);
    double sum = 0, squares = 0;
    for (const double residual : residuals) {
        sum += residual;
        squares += residual * residual;
    }
    const auto size = static_cast<double>(n);
    return 2 * (squares - sum * sum / size) / size;  // the sum is what rounding left of the mean
}

double mean_absolute_difference(std::ptrdiff_t n, const double* labels, const double* scores,
                                const std::int64_t* rows, buffer<double>& residuals) {
    if (n < 2) return undefined;
    centred_residuals(n, labels, scores, rows, residuals);
    std::sort(residuals.begin(), residuals.end());
    const auto size = static_cast<double>(n);
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) sum += static_cast<double>(2 * i - n + 1) * residuals[i];
    return 2 * sum / (size * size);
}

}  // namespace pairgram
