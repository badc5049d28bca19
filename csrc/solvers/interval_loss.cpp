#include "solvers/interval_loss.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "support/parallel.hpp"
#include "support/prefix_sums.hpp"

namespace pairgram {

namespace {

struct partners_of_row {
    double count = 0, sum = 0;  // of the values of active partners

    void operator+=(const partners_of_row& other) {
        count += other.count;
        sum += other.sum;
    }
};

}  // namespace

interval_loss::interval_loss(std::shared_ptr<const interval_pairs> pairs, const double* low,
                             const double* high, pair_loss loss)
    : pairs_(std::move(pairs)),
      low_(low, low + n_rows()),
      high_(high, high + n_rows()),
      loss_(loss) {
    if (loss == pair_loss::squared) return;
    winners_.n_partners = &pairs_->n_below;
    losers_.n_partners = &pairs_->n_above;
    const auto& offsets = pairs_->offsets;
    for (auto* rows : {&winners_, &losers_}) {
        rows->place.resize(n_rows());
        rows->value.resize(n_rows());
        rows->degree.resize(n_rows());
        rows->offsets.push_back(0);
        for (std::ptrdiff_t q = 0; q < pairs_->n_queries(); ++q) {
            for (auto k = offsets[q]; k < offsets[q + 1]; ++k)
                if ((*rows->n_partners)[pairs_->by_lower[k]] > 0)
                    rows->sorted.push_back(pairs_->by_lower[k]);
            rows->offsets.push_back(static_cast<std::ptrdiff_t>(rows->sorted.size()));
        }
    }
    for (std::ptrdiff_t q = 0; q < pairs_->n_queries(); ++q)
        for (auto k = offsets[q]; k < offsets[q + 1]; ++k) {
            losers_.place[pairs_->by_upper[k]] = k - offsets[q];
            winners_.place[pairs_->by_lower[k]] = offsets[q + 1] - 1 - k;
        }
}

// Only differences of scores count, so they are taken from one of the query's.
double interval_loss::pivot(std::ptrdiff_t query, const double* scores) const {
    return scores[pairs_->by_lower[pairs_->offsets[query]]];
}

void interval_loss::sort(std::ptrdiff_t query, const double* scores, const double* bounds,
                         side& rows) const {
    const auto begin = rows.sorted.begin() + rows.offsets[query];
    const auto end = rows.sorted.begin() + rows.offsets[query + 1];
    if (begin == end) return;
    const double origin = pivot(query, scores);
    std::for_each(begin, end,
                  [&](std::ptrdiff_t i) { rows.value[i] = bounds[i] - (scores[i] - origin); });
    std::sort(begin, end, [&](std::ptrdiff_t i, std::ptrdiff_t j) {
        return rows.value[i] != rows.value[j] ? rows.value[i] < rows.value[j] : i < j;
    });
}

template <class Value, class Store>
void interval_loss::sum_partners(std::ptrdiff_t query, const side& rows, const side& partners,
                                 const Value& value, const Store& store) const {
    using sum = decltype(value(query));
    const auto n_places = pairs_->offsets[query + 1] - pairs_->offsets[query];
    buffer<sum> found(n_places + 1);
    const bool down = &rows == &winners_;
    const auto n = rows.offsets[query + 1] - rows.offsets[query];
    const auto n_others = partners.offsets[query + 1] - partners.offsets[query];
    // Winners are gone through from the least a, and losers from the greatest b.
    const auto at = [&](const side& of, std::ptrdiff_t k) {
        return of.sorted[down ? of.offsets[query] + k : of.offsets[query + 1] - 1 - k];
    };
    for (std::ptrdiff_t k = 0, p = 0; k < n; ++k) {
        const auto row = at(rows, k);
        for (; p < n_others; ++p) {
            const auto other = at(partners, p);
            const double reach = rows.value[row] - partners.value[other];
            if (!(down ? reach > 0 : reach < 0)) break;
            add_at(found.data(), n_places, partners.place[other], value(other));
        }
        store(row, sum_of_first(found.data(), (*rows.n_partners)[row]));
    }
}

double interval_loss::add_ties(std::ptrdiff_t query, const double* x, double* out) const {
    double products = 0;
    for (auto g = pairs_->first_ties[query]; g < pairs_->first_ties[query + 1]; ++g) {
        const auto first = pairs_->tie_offsets[g], last = pairs_->tie_offsets[g + 1];
        const auto count = static_cast<double>(last - first);
        const double origin = x[pairs_->ties[first]];
        double mean = 0;
        for (auto t = first; t < last; ++t) mean += (x[pairs_->ties[t]] - origin) / count;
        for (auto t = first; t < last; ++t) {
            const double error = x[pairs_->ties[t]] - origin - mean;
            out[pairs_->ties[t]] += count * error;
            products += count * error * error;
        }
    }
    return products;
}

// Of the squared loss all pairs are active: t_ij = a_i − b_j, and the gradient is −2 Aᵀt.
double interval_loss::set_all(const double* scores, double* gradient, int n_threads) const {
    buffer<double> low(low_), high(high_), squares(pairs_->n_queries());
    parallel_for(pairs_->n_queries(), n_threads, [&](std::ptrdiff_t q) {
        for (auto k = pairs_->offsets[q]; k < pairs_->offsets[q + 1]; ++k) {
            const auto i = pairs_->by_lower[k];
            const double score = scores[i] - pivot(q, scores);
            low[i] -= score;
            high[i] -= score;
        }
    });
    pairs_->pull(low.data(), high.data(), gradient, squares.data(), n_threads);
    for (std::ptrdiff_t i = 0; i < n_rows(); ++i) gradient[i] *= -2;
    return std::accumulate(squares.begin(), squares.end(), 0.0,
                           [](double sum, double x) { return sum + std::max(x, 0.0); });
}

// With P_i = Σ_j (a_i − b_j) over the active j below i and Q_j = Σ_i (a_i − b_j) over the active i
// above j, the gradient is 2 (Q − P), and the loss Σ (a_i − b_j)² = Σ_i a_i P_i − Σ_j b_j Q_j.
double interval_loss::set_scores(const double* scores, double* gradient, int n_threads) {
    if (loss_ == pair_loss::squared) return set_all(scores, gradient, n_threads);
    const auto n_queries = pairs_->n_queries();
    buffer<double> below(n_rows()), above(n_rows()), losses(n_queries);
    parallel_for(2 * n_queries, n_threads, [&](std::ptrdiff_t task) {
        if (task % 2 == 0)
            sort(task / 2, scores, low_.data(), winners_);
        else
            sort(task / 2, scores, high_.data(), losers_);
    });
    parallel_for(2 * n_queries, n_threads, [&](std::ptrdiff_t task) {
        auto &rows = task % 2 == 0 ? winners_ : losers_,
             &others = task % 2 == 0 ? losers_ : winners_;
        auto& sums = task % 2 == 0 ? below : above;
        sum_partners(
            task / 2, rows, others,
            [&](std::ptrdiff_t other) { return partners_of_row{1, others.value[other]}; },
            [&](std::ptrdiff_t row, const partners_of_row& found) {
                rows.degree[row] = found.count;
                sums[row] = found.sum;
            });
    });
    parallel_for(n_queries, n_threads, [&](std::ptrdiff_t q) {
        for (auto k = pairs_->offsets[q]; k < pairs_->offsets[q + 1]; ++k)
            gradient[pairs_->by_lower[k]] = 0;
        double loss = add_ties(q, scores, gradient) / 2;
        for (auto k = winners_.offsets[q]; k < winners_.offsets[q + 1]; ++k) {
            const auto i = winners_.sorted[k];
            const double a = winners_.value[i], pull = winners_.degree[i] * a - below[i];
            gradient[i] -= 2 * pull;
            loss += a * pull;
        }
        for (auto k = losers_.offsets[q]; k < losers_.offsets[q + 1]; ++k) {
            const auto j = losers_.sorted[k];
            const double b = losers_.value[j], pull = above[j] - losers_.degree[j] * b;
            gradient[j] += 2 * pull;
            loss -= b * pull;
        }
        losses[q] = std::max(loss, 0.0);
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
}

void interval_loss::product(const double* u, double* out, int n_threads) const {
    if (loss_ == pair_loss::squared) {
        pairs_->multiply(1, u, out, n_threads);
        for (std::ptrdiff_t i = 0; i < n_rows(); ++i) out[i] *= 2;
        return;
    }
    const auto n_queries = pairs_->n_queries();
    buffer<double> below(n_rows()), above(n_rows());
    parallel_for(2 * n_queries, n_threads, [&](std::ptrdiff_t task) {
        const auto &rows = task % 2 == 0 ? winners_ : losers_,
                   &others = task % 2 == 0 ? losers_ : winners_;
        auto& sums = task % 2 == 0 ? below : above;
        sum_partners(
            task / 2, rows, others, [&](std::ptrdiff_t other) { return u[other]; },
            [&](std::ptrdiff_t row, double sum) { sums[row] = sum; });
    });
    parallel_for(n_queries, n_threads, [&](std::ptrdiff_t q) {
        for (auto k = pairs_->offsets[q]; k < pairs_->offsets[q + 1]; ++k)
            out[pairs_->by_lower[k]] = 0;
        add_ties(q, u, out);
        for (auto k = winners_.offsets[q]; k < winners_.offsets[q + 1]; ++k) {
            const auto i = winners_.sorted[k];
            out[i] += 2 * (winners_.degree[i] * u[i] - below[i]);
        }
        for (auto k = losers_.offsets[q]; k < losers_.offsets[q + 1]; ++k) {
            const auto j = losers_.sorted[k];
            out[j] += 2 * (losers_.degree[j] * u[j] - above[j]);
        }
    });
}

}  // namespace pairgram
