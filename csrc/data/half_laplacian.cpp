#include "data/half_laplacian.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t search_limit = 16;  // more levels than this are numbered by sorting

bool number_levels_by_search(const buffer<double>& labels, query_plan& plan) {
    auto& found = plan.level_label;
    found.clear();
    for (std::size_t i = 0; i < labels.size(); ++i) {
        std::size_t l = 0;
        while (l < found.size() && found[l] != labels[i]) ++l;
        if (l == found.size()) {
            if (l == size_of(search_limit)) return false;
            found.push_back(labels[i]);
        }
        plan.level[i] = static_cast<std::int32_t>(l);
    }
    return true;
}

void number_levels_by_sort(const buffer<double>& labels, query_plan& plan) {
    buffer<std::ptrdiff_t> by_label(labels.size());
    std::iota(by_label.begin(), by_label.end(), std::ptrdiff_t{0});
    std::sort(by_label.begin(), by_label.end(),
              [&](std::ptrdiff_t a, std::ptrdiff_t b) { return labels[a] < labels[b]; });
    plan.level_label.clear();
    for (const std::ptrdiff_t i : by_label) {
        const double label = labels[i];
        if (plan.level_label.empty() || plan.level_label.back() != label)
            plan.level_label.push_back(label);
        plan.level[i] = static_cast<std::int32_t>(plan.level_label.size() - 1);
    }
}

// Eliminates the levels of the weighted complete graph one by one. The Laplacian's Cholesky factor
// has rows B_l = (Σ_k>l w_lk (μ_l − μ_k)) / sqrt(Σ_k>l w_lk); w stays ≥ 0, so nothing cancels.
void eliminate(std::ptrdiff_t k, buffer<double>& w) {
    for (std::ptrdiff_t l = 0; l < k; ++l) {
        double degree = 0;
        for (std::ptrdiff_t i = l + 1; i < k; ++i) degree += w[l * k + i];
        if (degree <= 0) continue;
        for (std::ptrdiff_t i = l + 1; i < k; ++i) {
            const double share = w[l * k + i] / degree;
            for (std::ptrdiff_t j = i + 1; j < k; ++j) w[i * k + j] += share * w[l * k + j];
        }
    }
}

// within = D_l and chord = V_l V_k ω(l, k), both without the query factor; returns Σ W.
double plan_omega(const pair_rule& rule, query_plan& plan) {
    const auto k = plan.n_levels();
    const auto& label = plan.level_label;
    buffer<std::ptrdiff_t> index(k);
    for (std::ptrdiff_t l = 0; l < k; ++l)
        index[l] =
            std::lower_bound(rule.level_values, rule.level_values + rule.n_levels, label[l]) -
            rule.level_values;
    plan.chord.assign(k * k, 0.0);
    double total = 0;
    for (std::ptrdiff_t l = 0; l < k; ++l) {
        double degree = 0;
        for (std::ptrdiff_t i = 0; i < k; ++i) {
            const double omega = rule.sums_labels()
                                     ? label[l] + label[i]
                                     : rule.omega[index[l] * rule.n_levels + index[i]];
            degree += plan.level_weight[i] * omega;
            plan.chord[l * k + i] = plan.level_weight[l] * plan.level_weight[i] * omega;
        }
        plan.within[l] = degree;
        total += plan.level_weight[l] * degree;
    }
    return total;
}

// within = the squared factor per level without the query factor; returns Σ W.
double plan_factors(const pair_rule& rule, query_plan& plan) {
    const double v = plan.total_weight;
    switch (rule.kind) {
        case pair_kind::none:
            std::fill(plan.within.begin(), plan.within.end(), 1.0);
            return v;
        case pair_kind::kept:
            std::fill(plan.within.begin(), plan.within.end(), v);
            return v * v;
        case pair_kind::dropped: {
            // V − V_l as the sum of the others: a level that has nearly all weight would cancel.
            const auto& weights = plan.level_weight;
            double before = 0, after = 0, total = 0;
            for (std::size_t l = 0; l < weights.size(); before += weights[l++])
                plan.within[l] = before;
            for (std::size_t l = weights.size(); l-- > 0; after += weights[l]) {
                plan.within[l] += after;
                total += weights[l] * plan.within[l];
            }
            return total;
        }
        case pair_kind::omega:
            return plan_omega(rule, plan);
    }
    return 0;
}

double query_factor(const pair_rule& rule, double total_weight, double pair_weight) {
    const bool pointwise = rule.kind == pair_kind::none;
    double divisor = 1;
    if (rule.weighting == weighting_kind::documents && !pointwise) divisor = total_weight;
    if (rule.weighting == weighting_kind::queries)
        divisor = pointwise ? total_weight : pair_weight / 2;
    return divisor > 0 ? 1 / divisor : 0;
}

template <bool Marks, class T, class S>
PAIRGRAM_CLONES void load_and_add(std::ptrdiff_t width, const S* source, const S* pivot,
                                  double weight, T* row, double* sum, flag_of<S>* flags) {
    for (std::ptrdiff_t j = 0; j < width; ++j) {
        const S value = source[j] - pivot[j];
        row[j] = static_cast<T>(value);
        sum[j] += weight * static_cast<double>(value);
        if constexpr (Marks) flags[j] |= source[j] != pivot[j] ? flag_of<S>{1} : flag_of<S>{0};
    }
}

template <class T>
PAIRGRAM_CLONES void scale_and_shift(std::ptrdiff_t n, std::ptrdiff_t width,
                                     const std::int32_t* level, const double* weight,
                                     const double* within, const double* offsets, T* rows,
                                     std::ptrdiff_t ld) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const auto root_weight = static_cast<T>(std::sqrt(weight[i])),
                   factor = static_cast<T>(within[level[i]]);
        const double* const offset = offsets + level[i] * width;
        T* const row = rows + i * ld;
        for (std::ptrdiff_t j = 0; j < width; ++j)
            row[j] = root_weight * (factor * row[j] + static_cast<T>(offset[j]));
    }
}

}  // namespace

void plan_query(const ranking_problem& problem, std::ptrdiff_t query, const std::int64_t* order,
                query_plan& plan) {
    const auto& rule = problem.rule;
    const auto& rows = problem.rows;
    const auto begin = rows.begin(query), n = rows.size(query);
    const auto row = [&](std::ptrdiff_t i) {
        return order ? static_cast<std::ptrdiff_t>(order[i]) : rows.row(begin + i);
    };
    plan.weight.resize(n);
    plan.level.assign(n, 0);
    for (std::ptrdiff_t i = 0; i < n; ++i) plan.weight[i] = rows.row_weight(row(i));
    plan.level_label.assign(1, 0.0);
    if (rule.uses_levels()) {
        buffer<double> labels(n);
        for (std::ptrdiff_t i = 0; i < n; ++i) labels[i] = rows.labels[row(i)];
        if (!number_levels_by_search(labels, plan)) number_levels_by_sort(labels, plan);
    }
    plan.level_weight.assign(plan.level_label.size(), 0.0);
    for (std::size_t i = 0; i < plan.level.size(); ++i)
        plan.level_weight[plan.level[i]] += plan.weight[i];
    plan.total_weight = std::accumulate(plan.level_weight.begin(), plan.level_weight.end(), 0.0);

    plan.within.resize(plan.level_weight.size());
    plan.pair_weight = plan_factors(rule, plan);
    // Without pairs, rows of weight 0 would leave rounding errors.
    const double share = query_factor(rule, plan.total_weight, plan.pair_weight);
    const double c = plan.pair_weight > 0 ? share * rows.query_weight(query) : 0.0;
    plan.pair_weight *= c;
    for (double& factor : plan.within) factor = std::sqrt(c * factor);
    plan.between = std::sqrt(c * plan.total_weight);
    if (rule.kind == pair_kind::omega) {
        for (double& w : plan.chord) w *= c;
        eliminate(plan.n_levels(), plan.chord);
    }
}

std::ptrdiff_t heaviest_row(const query_plan& plan) {
    std::ptrdiff_t best = 0;
    double most = 0;
    for (std::size_t i = 0; i < plan.weight.size(); ++i)
        if (plan.weight[i] > most && plan.within[plan.level[i]] > 0) {
            most = plan.weight[i];
            best = static_cast<std::ptrdiff_t>(i);
        }
    return best;
}

void level_sums::reset(std::ptrdiff_t n_levels, std::ptrdiff_t width) {
    sum.assign(n_levels * width, 0.0);
    weight.assign(n_levels, 0.0);
    mean.assign(width, 0.0);
}

void between_rows(const query_plan& plan, std::ptrdiff_t width, const double* means, double* out) {
    const auto k = plan.n_levels();
    std::fill(out, out + k * width, 0.0);
    for (std::ptrdiff_t l = 0; l < k; ++l) {
        double* row = out + l * width;
        const double degree = plan.degree(l);
        for (std::ptrdiff_t i = l + 1; i < k; ++i) {
            const double w = plan.chord[l * k + i];
            for (std::ptrdiff_t j = 0; j < width; ++j)
                row[j] += w * (means[l * width + j] - means[i * width + j]);
        }
        const double scale = degree > 0 ? 1 / std::sqrt(degree) : 0.0;
        for (std::ptrdiff_t j = 0; j < width; ++j) row[j] *= scale;
    }
}

template <class T, class S>
void load_row(std::ptrdiff_t width, const S* source, const S* pivot, double weight, T* row,
              double* sum, flag_of<S>* flags) {
    const auto load = flags ? load_and_add<true, T, S> : load_and_add<false, T, S>;
    load(width, source, pivot, weight, row, sum, flags);
}

template <class T>
void transform_rows(std::ptrdiff_t n, std::ptrdiff_t width, const std::int32_t* level,
                    const double* weight, const double* within, const query_plan& plan,
                    pair_kind how, T* rows, std::ptrdiff_t ld, level_sums& sums) {
    const auto k = length_of(sums.weight);
    for (std::ptrdiff_t i = 0; i < n; ++i) sums.weight[level[i]] += weight[i];
    const double total = std::accumulate(sums.weight.begin(), sums.weight.end(), 0.0);
    for (std::ptrdiff_t l = 0; l < k; ++l) {
        double* mean = sums.sum.data() + l * width;
        const double v = sums.weight[l];
        if (total > 0)
            for (std::ptrdiff_t j = 0; j < width; ++j) sums.mean[j] += mean[j] / total;
        const double inverse = v > 0 ? 1 / v : 0.0;
        for (std::ptrdiff_t j = 0; j < width; ++j) mean[j] *= inverse;
    }
    if (how == pair_kind::none) std::fill(sums.sum.begin(), sums.sum.end(), 0.0);
    buffer<double> joined;
    if (how == pair_kind::omega) {
        joined.resize(k * width);
        between_rows(plan, width, sums.sum.data(), joined.data());
    }
    for (std::ptrdiff_t l = 0; l < k; ++l) {  // means become offsets
        double* offset = sums.sum.data() + l * width;
        const double v = sums.weight[l];
        const double scale = v > 0 ? 1 / std::sqrt(v) : 0.0;
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            const double mean = offset[j];
            offset[j] = -within[l] * mean;
            if (how == pair_kind::dropped && k > 1)
                offset[j] += plan.between * (mean - sums.mean[j]);
            if (how == pair_kind::omega) offset[j] += scale * joined[l * width + j];
        }
    }
    scale_and_shift<T>(n, width, level, weight, within, sums.sum.data(), rows, ld);
}

template decltype(load_row<double, double>) load_row<double, double>;
template decltype(load_row<float, float>) load_row<float, float>;
template decltype(load_row<float, double>) load_row<float, double>;
PAIRGRAM_FOR_BOTH_WIDTHS(transform_rows);

}  // namespace pairgram
