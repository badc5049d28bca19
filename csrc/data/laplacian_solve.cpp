#include "data/laplacian_solve.hpp"

#include <algorithm>

#include "data/query_rows.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t strip_width = 512;
constexpr double smallest_diagonal = 1e-10, smallest_degree = 1e-5;  // beside the largest L_ii

// L_ii of row i of a query.
double diagonal_of(const query_plan& plan, std::ptrdiff_t i) {
    const double f = plan.within[plan.level[i]];
    return plan.weight[i] * f * f;
}

// Whether pairs join all rows of weight > 0 of a query; pointwise, whether these count.
bool is_joined(const query_plan& plan, pair_kind kind, double weakest) {
    std::ptrdiff_t n_last = 0;
    for (std::ptrdiff_t l = 0; l < plan.n_levels(); ++l) {
        if (!(plan.level_weight[l] > 0)) continue;
        if (!(plan.within[l] > 0)) return false;
        n_last += kind == pair_kind::omega && plan.degree(l) <= weakest;
    }
    return n_last <= 1;
}

PAIRGRAM_CLONES void scale_and_add(std::ptrdiff_t width, double factor, const double* offset,
                                   double* row) {
    for (std::ptrdiff_t j = 0; j < width; ++j) row[j] = factor * row[j] + offset[j];
}

// μ from S, (K, width), in place.
void solve_levels(const query_plan& plan, std::ptrdiff_t width, double* s) {
    const auto k = plan.n_levels();
    const auto row = [&](std::ptrdiff_t l) { return s + l * width; };
    const auto chord = [&](std::ptrdiff_t l, std::ptrdiff_t i) { return plan.chord[l * k + i]; };
    for (std::ptrdiff_t l = 0; l < k; ++l) {
        const double degree = plan.degree(l);
        scale(width, degree > 0 ? 1 / degree : 0.0, row(l));
        for (auto i = l + 1; i < k && degree > 0; ++i) add(width, chord(l, i), row(l), row(i));
    }
    for (auto l = k - 1; l >= 0; --l) {
        const double degree = plan.degree(l);
        for (auto i = l + 1; i < k && degree > 0; ++i)
            add(width, chord(l, i) / degree, row(i), row(l));
    }
}

// What is added to b_i / (v_i f_l²) of the rows of every level, (K, width), from the sums S.
void offsets_of(const query_plan& plan, pair_kind kind, std::ptrdiff_t width,
                buffer<double>& sums) {
    if (kind == pair_kind::none) return std::fill(sums.begin(), sums.end(), 0.0);
    auto means = sums;
    if (kind == pair_kind::omega) solve_levels(plan, width, means.data());
    for (std::ptrdiff_t l = 0; l < plan.n_levels(); ++l) {
        const double v = plan.level_weight[l], f = plan.within[l];
        double* offset = sums.data() + l * width;
        scale(width, v * f * f > 0 ? -1 / (v * f * f) : 0.0, offset);
        if (kind == pair_kind::omega) add(width, 1.0, means.data() + l * width, offset);
        if (kind == pair_kind::dropped && v > 0)
            add(width, 1 / (v * plan.between * plan.between), means.data() + l * width, offset);
    }
}

// Columns [from, from + width) of rows with stride ld.
struct column_strip {
    std::ptrdiff_t from, width, ld;
    double* matrix;

    double* row(std::ptrdiff_t i) const { return matrix + i * ld + from; }
};

void solve_strip(pair_kind kind, const query_plan& plan, const query_rows& rows,
                 std::ptrdiff_t query, const buffer<std::int64_t>& pivots,
                 const buffer<const double*>& known_row, const column_strip& strip) {
    const auto begin = rows.begin(query);
    const auto n = rows.size(query), width = strip.width;
    const auto row_of = [&](std::ptrdiff_t i) { return rows.row(begin + i); };
    const auto pivot_of = [&](std::ptrdiff_t i) { return pivots[row_of(i)]; };
    const auto is_told = [&](std::ptrdiff_t i) { return pivot_of(i) != row_of(i); };
    const auto level = [&](std::ptrdiff_t i) { return plan.level[i] * width; };
    buffer<double> offsets(plan.n_levels() * width, 0.0);
    std::ptrdiff_t told = 0;
    while (told < n && !is_told(told)) ++told;
    if (told < n && kind != pair_kind::none) {
        std::ptrdiff_t pivot = 0;
        while (row_of(pivot) != pivot_of(told)) ++pivot;
        for (std::ptrdiff_t i = 0; i < n; ++i)
            if (plan.weight[i] > 0)
                add(width, 1.0, strip.row(row_of(i)), offsets.data() + level(i));
        offsets_of(plan, kind, width, offsets);
        // shifted so that the pivot's z becomes what is known of it
        buffer<double> shift(offsets.begin() + level(pivot),
                             offsets.begin() + level(pivot) + width);
        add(width, 1 / diagonal_of(plan, pivot), strip.row(row_of(pivot)), shift.data());
        scale(width, -1.0, shift.data());
        add(width, 1.0, known_row[row_of(pivot)] + strip.from, shift.data());
        for (std::ptrdiff_t l = 0; l < plan.n_levels(); ++l)
            add(width, 1.0, shift.data(), offsets.data() + l * width);
    }
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (is_told(i))
            scale_and_add(width, 1 / diagonal_of(plan, i), offsets.data() + level(i),
                          strip.row(row_of(i)));
        else
            std::copy_n(known_row[row_of(i)] + strip.from, width, strip.row(row_of(i)));
    }
}

}  // namespace

double pair_weight(const ranking_problem& problem) {
    double total = 0;
    query_plan plan;
    for (std::ptrdiff_t q = 0; q < problem.rows.n_queries; ++q) {
        if (problem.rows.size(q) == 0) continue;
        plan_query(problem, q, nullptr, plan);
        total += plan.pair_weight;
    }
    return total;
}

buffer<double> laplacian_diagonal(const ranking_problem& problem) {
    const auto& rows = problem.rows;
    buffer<double> diagonal(rows.n_rows());
    query_plan plan;
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        if (rows.size(q) == 0) continue;
        plan_query(problem, q, nullptr, plan);
        for (std::ptrdiff_t i = 0; i < rows.size(q); ++i)
            diagonal[rows.row(rows.begin(q) + i)] = diagonal_of(plan, i);
    }
    return diagonal;
}

buffer<std::int64_t> laplacian_pivots(const ranking_problem& problem, double largest) {
    const auto& rows = problem.rows;
    buffer<std::int64_t> pivots(rows.n_rows());
    query_plan plan;
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        if (rows.size(q) == 0) continue;
        plan_query(problem, q, nullptr, plan);
        const bool joined = is_joined(plan, problem.rule.kind, smallest_degree * largest);
        std::ptrdiff_t first = -1;
        for (std::ptrdiff_t i = 0; i < rows.size(q); ++i) {
            const auto row = rows.row(rows.begin(q) + i);
            const bool told = joined && diagonal_of(plan, i) > smallest_diagonal * largest;
            if (told && first < 0 && problem.rule.kind != pair_kind::none) first = row;
            pivots[row] = told ? first : row;
        }
    }
    return pivots;
}

void solve_laplacian(const ranking_problem& problem, const buffer<std::int64_t>& pivots,
                     std::ptrdiff_t width, const double* known, double* matrix, int n_threads) {
    const auto& rows = problem.rows;
    buffer<query_plan> plans(rows.n_queries);
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q)
        if (rows.size(q) > 0) plan_query(problem, q, nullptr, plans[q]);
    buffer<const double*> known_row(pivots.size());
    for (std::size_t i = 0; i < pivots.size(); ++i)
        if (pivots[i] == static_cast<std::int64_t>(i)) {
            known_row[i] = known;
            known += width;
        }
    const auto n_strips = (width + strip_width - 1) / strip_width;
    parallel_for(rows.n_queries * n_strips, n_threads, [&](std::ptrdiff_t task) {
        const auto from = task % n_strips * strip_width;
        solve_strip(problem.rule.kind, plans[task / n_strips], rows, task / n_strips, pivots,
                    known_row, {from, std::min(strip_width, width - from), width, matrix});
    });
}

}  // namespace pairgram
