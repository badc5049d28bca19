#include "data/interval_pairs.hpp"

#include <algorithm>

#include "support/parallel.hpp"
#include "support/prefix_sums.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t panel = 16;         // columns that a task sums at a time: two cache lines
constexpr std::ptrdiff_t group_rows = 4096;  // of queries that a task judges

struct scored_row {
    double score;
    std::ptrdiff_t row;
};

// out = count row − sum, or added to it.
template <bool adds>
PAIRGRAM_CLONES void place(std::ptrdiff_t width, double count, const double* row, const double* sum,
                           double* out) {
    for (std::ptrdiff_t j = 0; j < width; ++j)
        out[j] = (adds ? out[j] : 0.0) + (count * row[j] - sum[j]);
}

PAIRGRAM_CLONES void add(std::ptrdiff_t width, const double* row, double* sum) {
    for (std::ptrdiff_t j = 0; j < width; ++j) sum[j] += row[j];
}

}  // namespace

interval_pairs::interval_pairs(const query_rows& queries, const double* lowers,
                               const double* uppers)
    : lower(lowers, lowers + queries.n_rows()),
      upper(uppers, uppers + queries.n_rows()),
      offsets(queries.offsets, queries.offsets + queries.n_queries + 1),
      by_lower(lower.size()),
      tie_offsets{0},
      first_ties{0},
      n_below(lower.size()),
      n_above(lower.size()),
      n_tied(lower.size(), std::int64_t{0}) {
    for (std::ptrdiff_t position = 0; position < n_rows(); ++position)
        by_lower[position] = queries.row(position);
    by_upper = by_lower;
    const auto sort = [&](std::ptrdiff_t q, const buffer<double>& bounds,
                          buffer<std::ptrdiff_t>& order) {
        std::sort(order.begin() + offsets[q], order.begin() + offsets[q + 1],
                  [&](std::ptrdiff_t a, std::ptrdiff_t b) {
                      return bounds[a] != bounds[b] ? bounds[a] < bounds[b] : a < b;
                  });
    };
    for (std::ptrdiff_t q = 0; q < n_queries(); ++q) {
        check_interrupt();
        sort(q, lower, by_lower);
        sort(q, upper, by_upper);
        const auto begin = offsets[q], end = offsets[q + 1];
        for (auto k = begin, p = begin; k < end; ++k) {
            const auto row = by_lower[k];
            while (p < end && upper[by_upper[p]] < lower[row]) ++p;
            n_below[row] = p - begin;
        }
        for (auto k = end, p = end; k-- > begin;) {
            const auto row = by_upper[k];
            while (p > begin && lower[by_lower[p - 1]] > upper[row]) --p;
            n_above[row] = end - p;
        }
        for (auto k = begin; k < end;) {  // equal upper bounds stand together
            const auto first = ties.size();
            const double label = upper[by_upper[k]];
            for (; k < end && upper[by_upper[k]] == label; ++k)
                if (lower[by_upper[k]] == label) ties.push_back(by_upper[k]);
            if (ties.size() < first + 2) {
                ties.resize(first);
                continue;
            }
            for (auto t = first; t < ties.size(); ++t)
                n_tied[ties[t]] = static_cast<std::int64_t>(ties.size() - first - 1);
            tie_offsets.push_back(static_cast<std::ptrdiff_t>(ties.size()));
        }
        first_ties.push_back(static_cast<std::ptrdiff_t>(tie_offsets.size()) - 1);
    }
}

void interval_pairs::multiply(std::ptrdiff_t width, const double* rows, double* out,
                              int n_threads) const {
    const auto n_panels = (width + panel - 1) / panel;
    parallel_for(n_queries() * n_panels, n_threads, [&](std::ptrdiff_t task) {
        const auto q = task / n_panels, column = task % n_panels * panel;
        const auto n_columns = std::min(panel, width - column);
        const auto begin = offsets[q], end = offsets[q + 1];
        const auto at = [&](std::ptrdiff_t row) { return rows + row * width + column; };
        const auto to = [&](std::ptrdiff_t row) { return out + row * width + column; };
        double sum[panel] = {};
        for (auto k = begin, p = begin; k < end; ++k) {
            const auto row = by_lower[k];
            for (; p - begin < n_below[row]; ++p) add(n_columns, at(by_upper[p]), sum);
            place<false>(n_columns, static_cast<double>(n_below[row]), at(row), sum, to(row));
        }
        std::fill_n(sum, panel, 0.0);
        for (auto k = end, p = end; k-- > begin;) {
            const auto row = by_upper[k];
            for (; end - p < n_above[row]; --p) add(n_columns, at(by_lower[p - 1]), sum);
            place<true>(n_columns, static_cast<double>(n_above[row]), at(row), sum, to(row));
        }
        for (auto g = first_ties[q]; g < first_ties[q + 1]; ++g) {
            const auto count = static_cast<double>(tie_offsets[g + 1] - tie_offsets[g]);
            std::fill_n(sum, panel, 0.0);
            for (auto t = tie_offsets[g]; t < tie_offsets[g + 1]; ++t)
                add(n_columns, at(ties[t]), sum);
            for (auto t = tie_offsets[g]; t < tie_offsets[g + 1]; ++t)
                place<true>(n_columns, count, at(ties[t]), sum, to(ties[t]));
        }
    });
}

void interval_pairs::pull(const double* low, const double* high, double* out, double* squares,
                          int n_threads) const {
    parallel_for(n_queries(), n_threads, [&](std::ptrdiff_t q) {
        const auto begin = offsets[q], end = offsets[q + 1];
        double sum = 0, sum_of_squares = 0, found = 0;
        for (auto k = begin, p = begin; k < end; ++k) {
            const auto row = by_lower[k];
            for (; p - begin < n_below[row]; ++p) {
                const double value = high[by_upper[p]];
                sum += value;
                sum_of_squares += value * value;
            }
            out[row] = 0;
            if (n_below[row] == 0) continue;
            out[row] = static_cast<double>(n_below[row]) * low[row] - sum;
            found += low[row] * (out[row] - sum) + sum_of_squares;
        }
        sum = 0;
        for (auto k = end, p = end; k-- > begin;) {
            const auto row = by_upper[k];
            for (; end - p < n_above[row]; --p) sum += low[by_lower[p - 1]];
            if (n_above[row] > 0) out[row] += static_cast<double>(n_above[row]) * high[row] - sum;
        }
        for (auto g = first_ties[q]; g < first_ties[q + 1]; ++g) {
            const auto first = tie_offsets[g], last = tie_offsets[g + 1];
            const auto count = static_cast<double>(last - first);
            double mean = 0;
            for (auto t = first; t < last; ++t) mean += low[ties[t]] / count;
            for (auto t = first; t < last; ++t) {
                const double error = low[ties[t]] - mean;
                out[ties[t]] += count * error;
                found += count * error * error;
            }
        }
        squares[q] = found;
    });
}

void interval_pairs::concordant(std::ptrdiff_t n_models, const double* scores, double* out,
                                int n_threads) const {
    buffer<std::ptrdiff_t> groups;  // first query of every group of neighbours, and n_queries
    for (std::ptrdiff_t q = 0; q < n_queries(); ++q)
        if (groups.empty() || offsets[q] - offsets[groups.back()] >= group_rows)
            groups.push_back(q);
    const auto n_groups = static_cast<std::ptrdiff_t>(groups.size());
    groups.push_back(n_queries());
    buffer<std::int32_t> ranks(n_models * n_rows());
    parallel_for(n_models * n_groups, n_threads, [&](std::ptrdiff_t task) {
        const auto model = task / n_groups, group = task % n_groups;
        const double* const score = scores + model * n_rows();
        std::int32_t* const rank = ranks.data() + model * n_rows();
        buffer<scored_row> order;
        buffer<std::int64_t> tree;  // of the rows below, by their scores
        for (auto q = groups[group]; q < groups[group + 1]; ++q) {
            check_interrupt();
            const auto begin = offsets[q], end = offsets[q + 1];
            order.clear();
            for (auto k = begin; k < end; ++k) order.push_back({score[by_lower[k]], by_lower[k]});
            std::sort(order.begin(), order.end(),
                      [](const scored_row& a, const scored_row& b) { return a.score < b.score; });
            std::int32_t n_ranks = 0;
            for (std::ptrdiff_t k = 0; k < end - begin; ++k) {
                if (k > 0 && order[k].score > order[k - 1].score) ++n_ranks;
                rank[order[k].row] = n_ranks;
            }
            std::int64_t twice = 0;
            tree.assign(n_ranks + 2, 0);
            for (auto k = begin, p = begin; k < end; ++k) {
                const auto row = by_lower[k];
                for (; p - begin < n_below[row]; ++p)
                    add_at(tree.data(), n_ranks + 1, rank[by_upper[p]], std::int64_t{1});
                if (n_below[row] > 0)
                    twice += sum_of_first(tree.data(), rank[row]) +
                             sum_of_first(tree.data(), rank[row] + 1);
            }
            out[model * n_queries() + q] = static_cast<double>(twice) / 2;
        }
    });
}

}  // namespace pairgram
