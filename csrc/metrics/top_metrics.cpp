#include "metrics/top_metrics.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "support/simd.hpp"

namespace pairgram {

namespace {

double as_double(std::ptrdiff_t i) { return static_cast<double>(i); }

PAIRGRAM_CLONES
std::ptrdiff_t count_relevant(std::ptrdiff_t n, const double* labels, double relevant) {
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) count += labels[i] >= relevant;
    return count;
}

// Calls visit(i, v) for the ranks i < cut, v = value(label), or its mean over the documents tied
// with rank i.
template <class Value, class Visit>
void for_each_rank(const ranked_list& ranked, std::ptrdiff_t cut, const Value& value,
                   const Visit& visit) {
    const std::ptrdiff_t end = std::min(cut, ranked.n);
    if (!ranked.tie_end) {
        for (std::ptrdiff_t i = 0; i < end; ++i) visit(i, value(ranked.labels[i]));
        return;
    }
    for (std::ptrdiff_t i = 0; i < end;) {
        const std::ptrdiff_t begin = i, tie_end = ranked.tie_end[i];
        const double first = value(ranked.labels[i]);
        double above = 0;  // summed as differences, so that equal values have themselves as mean
        for (std::ptrdiff_t j = begin + 1; j < tie_end; ++j)
            above += value(ranked.labels[j]) - first;
        const double mean = first + above / as_double(tie_end - begin);
        for (; i < std::min(tie_end, end); ++i) visit(i, mean);
    }
}

// terms = gains / divisors. No branch depends on a label that is a whole number: 0x1.8p52 rounds
// off what is behind the point, so that 1023 + label, the exponent of 2^label, are the last bits.
// Labels are at most 1000, as Python has checked.
PAIRGRAM_CLONES
void dcg_terms(gain_kind gain, std::ptrdiff_t n, const double* labels, const double* divisors,
               double* terms) {
    constexpr double to_exponent = 0x1.8p52 + 1023;
    constexpr int mantissa_bits = 52;
    if (gain == gain_kind::linear) {
        for (std::ptrdiff_t i = 0; i < n; ++i) terms[i] = labels[i] / divisors[i];
        return;
    }
    int rounded_off = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double shifted = labels[i] + to_exponent;
        rounded_off |= shifted - to_exponent != labels[i];
        std::uint64_t bits;
        double power;
        std::memcpy(&bits, &shifted, sizeof bits);
        bits <<= mantissa_bits;
        std::memcpy(&power, &bits, sizeof bits);
        terms[i] = (power - 1) / divisors[i];
    }
    if (rounded_off)
        for (std::ptrdiff_t i = 0; i < n; ++i) terms[i] = gain_of(gain, labels[i]) / divisors[i];
}

double dcg(const metric_spec& metric, const ranked_list& ranked, const double* divisors) {
    double sum = 0;
    if (!ranked.tie_end) {
        constexpr std::ptrdiff_t width = 64;
        double terms[width];
        const std::ptrdiff_t end = std::min(metric.cut, ranked.n);
        for (std::ptrdiff_t begin = 0; begin < end; begin += width) {
            const auto size = std::min(width, end - begin);
            dcg_terms(metric.gain, size, ranked.labels + begin, divisors + begin, terms);
            for (std::ptrdiff_t i = 0; i < size; ++i) sum += terms[i];
        }
        return sum;
    }
    for_each_rank(
        ranked, metric.cut, [&](double label) { return gain_of(metric.gain, label); },
        [&](std::ptrdiff_t i, double gain) { sum += gain / divisors[i]; });
    return sum;
}

double mean_ndcg(const metric_spec& metric, const ranked_list& ranked, const double* divisors,
                 const ideal_ranking& ideal) {
    double so_far = 0, sum = 0;
    for_each_rank(
        ranked, ranked.n, [&](double label) { return gain_of(metric.gain, label); },
        [&](std::ptrdiff_t i, double gain) {
            so_far += gain / divisors[i];
            sum += so_far / ideal.at[i];
        });
    for (std::ptrdiff_t i = ranked.n; i < ideal.n; ++i) sum += so_far / ideal.at[i];
    return sum / as_double(ideal.n);
}

// The same for how relevant the documents are: 1 or 0, or between where some are tied.
template <class Visit>
void for_each_hit(const metric_spec& metric, const ranked_list& ranked, std::ptrdiff_t cut,
                  const Visit& visit) {
    const auto hit = [&](double label) { return label >= metric.relevant ? 1.0 : 0.0; };
    for_each_rank(ranked, cut, hit, visit);
}

double hits(const metric_spec& metric, const ranked_list& ranked, std::ptrdiff_t cut) {
    double sum = 0;
    for_each_hit(metric, ranked, cut, [&](std::ptrdiff_t, double hit) { sum += hit; });
    return sum;
}

// Calls visit(begin, end, r) for each run of tied ranks that starts before the cut, r its relevant
// documents.
template <class Visit>
void for_each_run(const metric_spec& metric, const ranked_list& ranked, const Visit& visit) {
    const std::ptrdiff_t stop = std::min(metric.cut, ranked.n);
    for (std::ptrdiff_t begin = 0; begin < stop;) {
        const std::ptrdiff_t end = ranked.tie_end ? ranked.tie_end[begin] : begin + 1;
        std::ptrdiff_t relevant = 0;
        for (std::ptrdiff_t i = begin; i < end; ++i)
            relevant += ranked.labels[i] >= metric.relevant;
        if (!visit(begin, end, relevant)) return;
        begin = end;
    }
}

// Without ties; no branch depends on a label.
PAIRGRAM_CLONES
double precision_sum(std::ptrdiff_t n, const double* labels, double relevant) {
    constexpr int width = 64;
    double terms[width], sum = 0, before = 0;
    int hits[width], found[width];
    for (std::ptrdiff_t begin = 0; begin < n; begin += width) {
        const auto size = static_cast<int>(std::min<std::ptrdiff_t>(width, n - begin));
        const double first_rank = as_double(begin + 1);
        int so_far = 0;
        for (int i = 0; i < size; ++i) hits[i] = labels[begin + i] >= relevant;
        for (int i = 0; i < size; ++i) found[i] = so_far += hits[i];
        for (int i = 0; i < size; ++i)
            terms[i] = hits[i] * ((before + found[i]) / (first_rank + i));
        for (int i = 0; i < size; ++i) sum += terms[i];
        before += so_far;
    }
    return sum;
}

// In a run of t tied documents, r of them relevant, rank j of the run holds a relevant one with
// probability r / t, and then the j before it hold j (r - 1) / (t - 1) in the mean (McSherry and
// Najork 2008).
double precision_sum(const metric_spec& metric, const ranked_list& ranked) {
    double sum = 0, found = 0;
    if (!ranked.tie_end)
        return precision_sum(std::min(metric.cut, ranked.n), ranked.labels, metric.relevant);
    for_each_run(metric, ranked,
                 [&](std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t relevant) {
                     if (relevant == 0) return true;
                     const double t = as_double(end - begin), r = as_double(relevant);
                     const double before = t > 1 ? (r - 1) / (t - 1) : 0;
                     double run = 0;
                     for (std::ptrdiff_t i = begin; i < std::min(end, metric.cut); ++i)
                         run += (found + 1 + as_double(i - begin) * before) / as_double(i + 1);
                     sum += r == t ? run : run * (r / t);
                     found += r;
                     return true;
                 });
    return sum;
}

// Sums value(i) for the rank i of the first relevant document. In a run of tied ones it is at rank
// j of the run with the probability that none is before and this one is: (none before) * r / (t -
// j).
template <class Value>
double at_first_relevant(const metric_spec& metric, const ranked_list& ranked, const Value& value) {
    double sum = 0;
    for_each_run(metric, ranked,
                 [&](std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t relevant) {
                     if (relevant == 0) return true;
                     double none_before = 1;
                     const std::ptrdiff_t last = std::min(end - relevant + 1, metric.cut);
                     for (std::ptrdiff_t i = begin; i < last; ++i) {
                         const double here = as_double(relevant) / as_double(end - i);
                         sum += none_before * here * value(i);
                         none_before *= 1 - here;
                     }
                     return false;
                 });
    return sum;
}

// The fraction of pairs of a relevant and another document that are in order, tied ones half.
double area_under_curve(const metric_spec& metric, const ranked_list& ranked, double relevant) {
    double ordered = 0, found = 0;
    for_each_run(metric, ranked, [&](std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t r) {
        ordered += (found + 0.5 * as_double(r)) * as_double(end - begin - r);
        found += as_double(r);
        return true;
    });
    const double others = as_double(ranked.n) - relevant;
    return others == 0 ? std::numeric_limits<double>::quiet_NaN() : ordered / (relevant * others);
}

// How much denser relevant documents are in the first part of the ranking than in all of it.
double enrichment(const metric_spec& metric, const ranked_list& ranked,
                  const ideal_ranking& ideal) {
    const double n = as_double(ideal.n), exact = n * metric.shape / 100;
    const double first = std::ceil(exact * (1 - 1e-14));  // 7.000000000000001 documents are 7
    return hits(metric, ranked, static_cast<std::ptrdiff_t>(first)) * n / first / ideal.total;
}

// Truchon and Bayly 2007, eq. 36: where the sum of exp(-alpha rank / n) over relevant documents
// stands between its least and its largest. All are taken from exp(-alpha), so that a small alpha
// costs no digits.
double bedroc(const metric_spec& metric, const ranked_list& ranked, const ideal_ranking& ideal) {
    if (ideal.total == as_double(ideal.n)) return 1;
    const double alpha = metric.shape, n = as_double(ideal.n), last = std::exp(-alpha);
    const auto term = [&](std::ptrdiff_t i) {
        return last * std::expm1(alpha * (n - as_double(i + 1)) / n);
    };
    double sum = 0, largest = 0, smallest = 0, lacking = ideal.total;  // documents without a rank
    for_each_hit(metric, ranked, metric.cut, [&](std::ptrdiff_t i, double hit) {
        if (hit > 0) sum += hit * term(i);
        lacking -= hit;
    });
    if (ranked.n < ideal.n) sum -= std::round(lacking) * last;
    const auto total = static_cast<std::ptrdiff_t>(ideal.total);
    for (std::ptrdiff_t i = 0; i < total; ++i) {
        largest += term(i);
        smallest += term(ideal.n - 1 - i);
    }
    return std::clamp((sum - smallest) / (largest - smallest), 0.0, 1.0);
}

// A reader goes on from rank to rank with the probability `shape`.
double rank_biased_precision(const metric_spec& metric, const ranked_list& ranked) {
    double sum = 0, reached = 1;
    for_each_hit(metric, ranked, metric.cut, [&](std::ptrdiff_t, double hit) {
        sum += hit * reached;
        reached *= metric.shape;
    });
    return (1 - metric.shape) * sum;
}

// Replaces passed[j], j = 0..depth, by the mean over all orders of the documents [begin, end) of
// the product of 1 - R over the first j. Adding a document to t - 1 others: it stands among the
// first j of t with probability j / t.
void mean_products(const buffer<double>& stops, std::ptrdiff_t depth, buffer<double>& passed) {
    passed.assign(depth + 1, 0);
    passed[0] = 1;
    for (std::size_t t = 1; t <= stops.size(); ++t) {
        const double next = 1 - stops[t - 1];
        for (std::size_t j = std::min(t, passed.size() - 1); j > 0; --j) {
            const double among = static_cast<double>(j) / static_cast<double>(t);
            passed[j] = (1 - among) * passed[j] + among * next * passed[j - 1];
        }
    }
}

double expected_reciprocal_rank(const metric_spec& metric, const ranked_list& ranked,
                                buffer<double>& passed) {
    const double scale = std::exp2(-metric.max_grade);
    const auto stop = [&](double label) { return gain_of(gain_kind::exp2, label) * scale; };
    double sum = 0, reached = 1;
    const std::ptrdiff_t last = std::min(metric.cut, ranked.n);
    buffer<double> stops;
    for (std::ptrdiff_t begin = 0; begin < last;) {
        const std::ptrdiff_t end = ranked.tie_end ? ranked.tie_end[begin] : begin + 1;
        const std::ptrdiff_t depth = std::min(end, last) - begin;
        if (end - begin == 1) {
            const double here = stop(ranked.labels[begin]);
            sum += reached * here / as_double(begin + 1);
            reached *= 1 - here;
        } else {
            if (as_double(depth) * as_double(end - begin) > 4e9) {
                throw std::length_error(
                    "err with ties='average' takes t * min(t, k) steps for t tied documents, too "
                    "many for t = " +
                    std::to_string(end - begin) + ": give it a smaller k or ties='order'");
            }
            stops.clear();
            for (std::ptrdiff_t i = begin; i < end; ++i) stops.push_back(stop(ranked.labels[i]));
            mean_products(stops, depth, passed);
            for (std::ptrdiff_t j = 0; j < depth; ++j) {
                const auto at = size_of(j);
                sum += reached * (passed[at] - passed[at + 1]) / as_double(begin + j + 1);
            }
            reached *= passed[depth];
        }
        begin = end;
    }
    return sum;
}

}  // namespace

void prepare_ideal(const metric_spec& metric, std::ptrdiff_t n, const double* labels,
                   const double* descending, const double* divisors, ideal_ranking& ideal) {
    ideal.n = n;
    ideal.total = 0;
    switch (metric.kind) {
        case metric_kind::ndcg:
            ideal.total = dcg(metric, {n, descending, nullptr}, divisors);
            return;
        case metric_kind::mean_ndcg:
            ideal.at.resize(n);
            for (std::ptrdiff_t i = 0; i < n; ++i) {
                ideal.total += gain_of(metric.gain, descending[i]) / divisors[i];
                ideal.at[i] = ideal.total;
            }
            return;
        case metric_kind::average_precision:
        case metric_kind::recall:
        case metric_kind::reciprocal_rank:
        case metric_kind::hit_rate:
        case metric_kind::r_precision:
        case metric_kind::auc:
        case metric_kind::enrichment:
        case metric_kind::bedroc:
            ideal.total = as_double(count_relevant(n, labels, metric.relevant));
            return;
        default:
            return;
    }
}

double top_metric(const metric_spec& metric, const ranked_list& ranked, const double* divisors,
                  const ideal_ranking& ideal, buffer<double>& scratch) {
    if (ideal.n == 0) return std::numeric_limits<double>::quiet_NaN();
    switch (metric.kind) {
        case metric_kind::dcg:
            return dcg(metric, ranked, divisors);
        case metric_kind::precision:
            return hits(metric, ranked, metric.cut) / as_double(metric.cut);
        case metric_kind::expected_reciprocal_rank:
            return expected_reciprocal_rank(metric, ranked, scratch);
        case metric_kind::rank_biased_precision:
            return rank_biased_precision(metric, ranked);
        default:
            break;
    }
    if (ideal.total == 0) return metric.empty;
    switch (metric.kind) {
        case metric_kind::ndcg:
            return dcg(metric, ranked, divisors) / ideal.total;
        case metric_kind::mean_ndcg:
            return mean_ndcg(metric, ranked, divisors, ideal);
        case metric_kind::recall:
            return hits(metric, ranked, metric.cut) / ideal.total;
        case metric_kind::r_precision:
            return hits(metric, ranked, static_cast<std::ptrdiff_t>(ideal.total)) / ideal.total;
        case metric_kind::enrichment:
            return enrichment(metric, ranked, ideal);
        case metric_kind::bedroc:
            return bedroc(metric, ranked, ideal);
        case metric_kind::auc:
            return area_under_curve(metric, ranked, ideal.total);
        case metric_kind::hit_rate:
            return at_first_relevant(metric, ranked, [](std::ptrdiff_t) { return 1.0; });
        case metric_kind::reciprocal_rank:
            return at_first_relevant(metric, ranked,
                                     [](std::ptrdiff_t i) { return 1 / as_double(i + 1); });
        default: {
            const double cut = as_double(metric.cut);
            const bool capped = metric.divide_by_cut && cut < ideal.total;
            return precision_sum(metric, ranked) / (capped ? cut : ideal.total);
        }
    }
}

}  // namespace pairgram
