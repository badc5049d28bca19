#include "solvers/ties.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/buffer.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

// Of the range: scores further apart are never taken for ties, however small the ridge is.
constexpr double largest_share = 1e-4;
// Fewer scores take less than 0.1 ms, for which it does not pay to start threads.
constexpr std::ptrdiff_t threaded_scores = 1 << 17;

// The rows of one query, in the order of their scores by the first model.
class query_ties {
  public:
    query_ties(const query_rows& queries, std::ptrdiff_t query, const tie_tolerance& tolerance,
               std::ptrdiff_t n_rows, double* scores)
        : tolerance_(tolerance), n_rows_(n_rows), scores_(scores) {
        for (auto i = queries.offsets[query]; i < queries.offsets[query + 1]; ++i)
            rows_.push_back(queries.order ? queries.order[i] : i);
    }

    void join(std::ptrdiff_t n_models) {
        if (rows_.size() < 2) return;
        const double apart = distance(0);
        if (!std::isfinite(apart)) return;
        auto sorted = rows_;
        std::sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
            return scores_[a] < scores_[b] || (scores_[a] == scores_[b] && a < b);
        });
        buffer<double> distances;  // of all models, once a group is found
        for (std::size_t begin = 0, end; begin < sorted.size(); begin = end) {
            for (end = begin + 1; end < sorted.size(); ++end)
                if (!(scores_[sorted[end]] - scores_[sorted[end - 1]] <= apart)) break;
            if (end - begin < 2) continue;
            for (auto m = length_of(distances); m < n_models; ++m) distances.push_back(distance(m));
            distances[0] = std::numeric_limits<double>::infinity();
            const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(begin);
            join_group(first, sorted.begin() + static_cast<std::ptrdiff_t>(end), distances);
        }
    }

  private:
    // The tolerance of a model; NaN or infinity where a score is not finite.
    double distance(std::ptrdiff_t model) const {
        const double* const s = scores_ + model * n_rows_;
        double least = s[rows_[0]], most = least, sum = 0;
        for (const auto row : rows_) {
            least = std::min(least, s[row]);
            most = std::max(most, s[row]);
            sum += s[row];  // min and max may pass over NaN
        }
        const double range = most - least, size = std::max(std::abs(least), std::abs(most));
        const double share =
            std::min(tolerance_.rounding * tolerance_.amplification[model], largest_share);
        return std::isfinite(sum)
                   ? share * (tolerance_.spread + range) + tolerance_.rounding * (range + size)
                   : std::numeric_limits<double>::quiet_NaN();
    }

    template <class Rows>
    void join_group(Rows begin, Rows end, const buffer<double>& distances) {
        const auto first = *std::min_element(begin, end);
        for (std::size_t m = 0; m < distances.size(); ++m) {
            double* const s = scores_ + static_cast<std::ptrdiff_t>(m) * n_rows_;
            const double score = s[first];
            for (auto row = begin; row != end; ++row)
                if (std::abs(s[*row] - score) <= distances[m]) s[*row] = score;
        }
    }

    const tie_tolerance& tolerance_;
    std::ptrdiff_t n_rows_;
    double* scores_;
    buffer<std::int64_t> rows_;
};

}  // namespace

void join_ties(const query_rows& queries, std::ptrdiff_t n_models, std::ptrdiff_t n_rows,
               const tie_tolerance& tolerance, double* scores, int n_threads) {
    const bool small = n_rows * n_models < threaded_scores;
    parallel_for(queries.n_queries, small ? 1 : n_threads, [&](std::ptrdiff_t query) {
        query_ties(queries, query, tolerance, n_rows, scores).join(n_models);
    });
}

}  // namespace pairgram
