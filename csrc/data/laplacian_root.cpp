#include "data/laplacian_root.hpp"

#include <algorithm>
#include <cmath>

#include "data/query_rows.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t strip_doubles = 1 << 17;  // of a strip of the longest query: 1 MiB
constexpr std::ptrdiff_t narrowest_strip = 32, widest_strip = 512;
constexpr std::ptrdiff_t line_doubles = 8;

// What one thread works on: a strip of vectors of one query, entry by entry.
struct workspace {
    buffer<double> strip;  // (n, width)
    buffer<double> zeros;  // (width,)
    buffer<double> total;  // (width,)
    level_sums sums;
};

// Calls move(entry of the matrix, entry of the strip, how many stand side by side in both) for n
// entries, row(i) each, of width vectors from the first one on.
template <class Row, class Move>
void for_each_entry(const vector_view& v, std::ptrdiff_t first, std::ptrdiff_t n,
                    std::ptrdiff_t width, const Row& row, const Move& move) {
    double* data = v.data + first * v.vector_stride;
    if (v.vector_stride == 1) {
        for (std::ptrdiff_t i = 0; i < n; ++i)
            move(data + row(i) * v.entry_stride, i * width, width);
        return;
    }
    for (std::ptrdiff_t begin = 0; begin < n; begin += line_doubles) {  // a cache line per vector
        const auto end = std::min(n, begin + line_doubles);
        for (std::ptrdiff_t j = 0; j < width; ++j)
            for (std::ptrdiff_t i = begin; i < end; ++i)
                move(data + row(i) * v.entry_stride + j * v.vector_stride, i * width + j,
                     std::ptrdiff_t{1});
    }
}

PAIRGRAM_CLONES void scale_and_add(std::ptrdiff_t width, double factor, double share,
                                   const double* offset, double* row) {
    for (std::ptrdiff_t j = 0; j < width; ++j) row[j] = factor * row[j] + share * offset[j];
}

// Takes the pivot from every row (width; stride ld), and adds v times what is left to the sum of
// the row's level, (K, width).
PAIRGRAM_CLONES void subtract_pivot(const query_plan& plan, std::ptrdiff_t width,
                                    const double* pivot, double* rows, std::ptrdiff_t ld,
                                    double* sums) {
    for (std::size_t i = 0; i < plan.weight.size(); ++i, rows += ld) {
        const double weight = plan.weight[i];
        double* const sum = sums + plan.level[i] * width;
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            rows[j] -= pivot[j];
            sum[j] += weight * rows[j];
        }
    }
}

// out (K, width) += Bᵀ (t / sqrt(V)): the adjoint of between_rows, divided as transform_rows does.
void add_between_rows_adjoint(const query_plan& plan, std::ptrdiff_t width, const double* t,
                              double* out) {
    const auto k = plan.n_levels();
    for (std::ptrdiff_t l = 0; l < k; ++l) {
        const double* chord = plan.chord.data() + l * k;
        const double degree = plan.degree(l), v = plan.level_weight[l];
        if (degree <= 0 || v <= 0) continue;
        const double scale = 1 / (std::sqrt(degree) * std::sqrt(v));  // their product may vanish
        for (std::ptrdiff_t i = l + 1; i < k; ++i)
            for (std::ptrdiff_t j = 0; j < width; ++j) {
                const double part = chord[i] * scale * t[l * width + j];
                out[l * width + j] += part;
                out[i * width + j] -= part;
            }
    }
}

// Turns t, (K, width) in w.sums.sum, into m.
void join_levels_adjoint(const query_plan& plan, pair_kind how, std::ptrdiff_t width,
                         workspace& w) {
    const auto k = plan.n_levels();
    auto& sum = w.sums.sum;
    if (how == pair_kind::none) {
        std::fill(sum.begin(), sum.end(), 0.0);
        return;
    }
    w.total.assign(width, 0.0);
    for (std::ptrdiff_t l = 0; l < k; ++l)
        for (std::ptrdiff_t j = 0; j < width; ++j) w.total[j] += sum[l * width + j];
    buffer<double> t;
    if (how == pair_kind::omega) t = sum;
    for (std::ptrdiff_t l = 0; l < k; ++l) {
        const double between = how == pair_kind::dropped && k > 1 ? plan.between : 0.0;
        const double share = plan.total_weight > 0 ? plan.level_weight[l] / plan.total_weight : 0.0;
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            double& m = sum[l * width + j];
            m = between * (m - share * w.total[j]) - plan.within[l] * m;
        }
    }
    if (how == pair_kind::omega) add_between_rows_adjoint(plan, width, t.data(), sum.data());
}

void transform_adjoint(const query_plan& plan, pair_kind kind, std::ptrdiff_t width, workspace& w) {
    const auto n = length_of(plan.weight);
    w.zeros.assign(width, 0.0);
    w.sums.reset(plan.n_levels(), width);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* row = w.strip.data() + i * width;
        load_row(width, row, w.zeros.data(), std::sqrt(plan.weight[i]), row,
                 w.sums.sum.data() + plan.level[i] * width);
    }
    join_levels_adjoint(plan, kind, width, w);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double v = plan.weight[i];
        const auto l = plan.level[i];
        scale_and_add(width, std::sqrt(v) * plan.within[l], v > 0 ? v / plan.level_weight[l] : 0.0,
                      w.sums.sum.data() + plan.level[i] * width, w.strip.data() + i * width);
    }
}

}  // namespace

void apply_root(const query_plan& plan, pair_kind kind, std::ptrdiff_t width, double* rows,
                std::ptrdiff_t ld, level_sums& sums) {
    const auto n = length_of(plan.weight);
    buffer<double> pivot(width, 0.0);  // row − row, so that a large common offset cancels exactly
    if (kind != pair_kind::none) std::copy_n(rows + heaviest_row(plan) * ld, width, pivot.begin());
    sums.reset(plan.n_levels(), width);
    subtract_pivot(plan, width, pivot.data(), rows, ld, sums.sum.data());
    transform_rows<double>(n, width, plan.level.data(), plan.weight.data(), plan.within.data(),
                           plan, kind, rows, ld, sums);
}

void apply_root(const ranking_problem& problem, bool adjoint, const vector_view& vectors,
                int n_threads) {
    const auto& rows = problem.rows;
    buffer<query_plan> plans(rows.n_queries);
    std::ptrdiff_t longest = 1;
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        longest = std::max(longest, rows.size(q));
        if (rows.size(q) > 0) plan_query(problem, q, nullptr, plans[q]);
    }
    const auto width = std::clamp(strip_doubles / longest, narrowest_strip, widest_strip);
    const auto n_strips = (vectors.n_vectors + width - 1) / width;
    parallel_for(n_strips, n_threads, [&](std::ptrdiff_t s) {
        workspace w;
        const auto first = s * width;
        const auto n_vectors = std::min(width, vectors.n_vectors - first);
        for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
            const auto n = rows.size(q);
            if (n == 0) continue;
            check_interrupt();
            const auto begin = rows.begin(q);
            const auto& plan = plans[q];
            if (!adjoint && !rows.order && vectors.vector_stride == 1) {
                apply_root(plan, problem.rule.kind, n_vectors,
                           vectors.data + begin * vectors.entry_stride + first,
                           vectors.entry_stride, w.sums);
                continue;
            }
            const auto row = [&](std::ptrdiff_t i) { return rows.row(begin + i); };
            w.strip.resize(n * n_vectors);
            for_each_entry(vectors, first, n, n_vectors, row,
                           [&](const double* from, std::ptrdiff_t at, std::ptrdiff_t length) {
                               std::copy_n(from, length, w.strip.data() + at);
                           });
            if (adjoint)
                transform_adjoint(plan, problem.rule.kind, n_vectors, w);
            else
                apply_root(plan, problem.rule.kind, n_vectors, w.strip.data(), n_vectors, w.sums);
            for_each_entry(vectors, first, n, n_vectors, row,
                           [&](double* to, std::ptrdiff_t at, std::ptrdiff_t length) {
                               std::copy_n(w.strip.data() + at, length, to);
                           });
        }
    });
}

}  // namespace pairgram
