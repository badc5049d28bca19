#include "least_squares/hold_out_folds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear_algebra/blas.hpp"
#include "queries_and_pairs/query_rows.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr int max_iterations = 40;
constexpr double tolerance = 1e-14;         // of the residual, relative to the right-hand side
constexpr double smallest_ridge = 1e-10;    // relative to λ_max, for conjugate gradients
constexpr std::ptrdiff_t batch_rows = 128;  // that read the basis together
constexpr double smallest_pivot = 5e-11;  // of I − E A⁻¹ Eᵀ: below, the solution is rounding error

// The matrices of one fold, but for z, of a batch of folds: kept between folds to save allocations.
struct workspace {
    buffer<double> z;                       // (n + 1, L) a query, see query_range
    buffer<double> e;                       // (n, L + 1)
    buffer<double> x, r, p, q;              // (n, m)
    buffer<double> u;                       // (L, m)
    buffer<double> rr, rr_first, pq, step;  // (m,)
    buffer<double> scores;                  // (n + queries, m)
    buffer<double> system, scaled, rhs;     // Cholesky: (k, k), (n, L), (k,), k = min(n, L)
    query_plan plan;
    level_sums sums;
};

// out[j] = Σ_i a(i, j)² or Σ_i a(i, j) b(i, j) for columns [from, m) of row-major (n, m).
PAIRGRAM_CLONES void column_dots(std::ptrdiff_t n, std::ptrdiff_t m, std::ptrdiff_t from,
                                 const double* a, const double* b, double* out) {
    std::fill(out + from, out + m, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = from; j < m; ++j) out[j] += a[i * m + j] * b[i * m + j];
}

PAIRGRAM_CLONES void step_and_residual(std::ptrdiff_t n, std::ptrdiff_t m, std::ptrdiff_t from,
                                       const double* step, const double* p, const double* q,
                                       double* x, double* r, double* rr) {
    std::fill(rr + from, rr + m, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = from; j < m; ++j) {
            const auto at = i * m + j;
            x[at] += step[j] * p[at];
            r[at] -= step[j] * q[at];
            rr[j] += r[at] * r[at];
        }
}

PAIRGRAM_CLONES void new_direction(std::ptrdiff_t n, std::ptrdiff_t m, std::ptrdiff_t from,
                                   const double* momentum, const double* r, double* p) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = from; j < m; ++j)
            p[i * m + j] = r[i * m + j] + momentum[j] * p[i * m + j];
}

// u (L, m) = A⁻¹ Eᵀ x for columns [from, to).
void shrink(const ridge_path& path, std::ptrdiff_t n, std::ptrdiff_t from, std::ptrdiff_t to,
            const double* inverse, const double* e, const double* x, double* u) {
    const auto width = path.rank, m = path.n_alphas;
    blas::gemm(trans::yes, trans::no, width, to - from, n, 1.0, e, width + 1, x + from, m, 0.0,
               u + from, m);
    for (std::ptrdiff_t k = 0; k < width; ++k)
        for (std::ptrdiff_t j = from; j < to; ++j) u[k * m + j] *= inverse[k * m + j];
}

// Solves (I − E A⁻¹ Eᵀ) x = r by conjugate gradients for the first n_columns alphas; w.r enters as
// the right-hand side. Alphas descend, so the columns that have not converged are taken as a
// suffix. Returns the first of them.
std::ptrdiff_t conjugate_gradients(const ridge_path& path, std::ptrdiff_t n,
                                   std::ptrdiff_t n_columns, const double* inverse, workspace& w) {
    const auto width = path.rank, m = path.n_alphas;
    std::fill(w.x.begin(), w.x.begin() + n * m, 0.0);
    std::copy(w.r.begin(), w.r.begin() + n * m, w.p.begin());
    column_dots(n, m, 0, w.r.data(), w.r.data(), w.rr.data());
    w.rr_first = w.rr;
    const auto unconverged = [&](std::ptrdiff_t from) {
        while (from < n_columns && w.rr[from] <= tolerance * tolerance * w.rr_first[from]) ++from;
        return from;
    };
    auto from = unconverged(0);
    for (int iteration = 0; from < n_columns && iteration < max_iterations; ++iteration) {
        check_interrupt();
        shrink(path, n, from, n_columns, inverse, w.e.data(), w.p.data(), w.u.data());
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy(w.p.begin() + i * m + from, w.p.begin() + (i + 1) * m,
                      w.q.begin() + i * m + from);
        blas::gemm(trans::no, trans::no, n, n_columns - from, width, -1.0, w.e.data(), width + 1,
                   w.u.data() + from, m, 1.0, w.q.data() + from, m);
        column_dots(n, m, from, w.p.data(), w.q.data(), w.pq.data());
        for (auto j = from; j < n_columns; ++j) w.step[j] = w.pq[j] > 0 ? w.rr[j] / w.pq[j] : 0.0;
        w.pq = w.rr;  // the residual before
        step_and_residual(n, m, from, w.step.data(), w.p.data(), w.q.data(), w.x.data(), w.r.data(),
                          w.rr.data());
        for (auto j = from; j < n_columns; ++j) w.step[j] = w.pq[j] > 0 ? w.rr[j] / w.pq[j] : 0.0;
        new_direction(n, m, from, w.step.data(), w.r.data(), w.p.data());
        from = unconverged(from);
    }
    return from;
}

// The held-out weights of column j, in the eigenbasis, into column j of w.u. For n ≤ L from
// (I − Ẽ Ẽᵀ) x = r with Ẽ = E A^-½, else from (I − Ẽᵀ Ẽ) A^½ u = A^-½ (Vᵀg − Eᵀỹ).
void solve_directly(const ridge_path& path, std::ptrdiff_t n, std::ptrdiff_t j,
                    const double* inverse, const double* coef, workspace& w) {
    const auto width = path.rank, m = path.n_alphas;
    const bool by_rows = n <= width;
    const auto order = by_rows ? n : width;
    w.scaled.resize(n * width);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t k = 0; k < width; ++k)
            w.scaled[i * width + k] = w.e[i * (width + 1) + k] * std::sqrt(inverse[k * m + j]);
    w.system.assign(order * order, 0.0);
    for (std::ptrdiff_t i = 0; i < order; ++i) w.system[i * order + i] = 1;
    blas::gemm(by_rows ? trans::no : trans::yes, by_rows ? trans::yes : trans::no, order, order,
               by_rows ? width : n, -1.0, w.scaled.data(), width, w.scaled.data(), width, 1.0,
               w.system.data(), order);
    w.rhs.resize(order);
    const double* target = w.e.data() + width;
    for (std::ptrdiff_t k = 0; k < order; ++k) {
        double& rhs = w.rhs[k];
        if (by_rows) {
            rhs = w.scores[k * m + j];
            continue;
        }
        rhs = path.projection[k] * std::sqrt(inverse[k * m + j]);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            rhs -= w.scaled[i * width + k] * target[i * (width + 1)];
    }
    const bool solved =
        blas::cholesky_solve(order, w.system.data(), w.rhs.data()) >= smallest_pivot;
    for (std::ptrdiff_t k = 0; k < width; ++k) {
        double sum = by_rows ? 0.0 : w.rhs[k];
        for (std::ptrdiff_t i = 0; by_rows && i < n; ++i) sum -= w.scaled[i * width + k] * w.rhs[i];
        sum = sum * std::sqrt(inverse[k * m + j]) + (by_rows ? coef[k * m + j] : 0.0);
        w.u[k * m + j] = solved ? sum : std::numeric_limits<double>::quiet_NaN();
    }
}

// A range of queries, a fold or several. In Z its rows stand query after query, n + 1 of each, the
// pivot row last.
struct query_range {
    std::ptrdiff_t first, last, begin, n;

    query_range(const query_rows& rows, std::ptrdiff_t first_query, std::ptrdiff_t last_query)
        : first(first_query),
          last(last_query),
          begin(rows.begin(first)),
          n(rows.begin(last) - begin) {}

    std::ptrdiff_t n_places() const { return n + last - first; }
    std::ptrdiff_t place(const query_rows& rows, std::ptrdiff_t query) const {
        return rows.begin(query) - begin + query - first;
    }
};

// Fills z with H_q·basis, from the pivot row, of every query of the batch.
template <class T>
void load_batch(const ranking_problem& problem, const feature_rows<T>& features,
                const ridge_path& path, const query_range& queries, workspace& w) {
    const auto& rows = problem.rows;
    const auto d = features.n_features;
    const bool pointwise = problem.rule.kind == pair_kind::none;
    buffer<T> mapped(features.map ? queries.n * d : 0), gathered;
    features.map_to(
        queries.n, [&](std::ptrdiff_t i) { return rows.row(queries.begin + i); }, mapped.data(), d,
        gathered);
    // e holds the loaded rows until z is made
    auto& loaded = path.basis ? w.e : w.z;
    loaded.assign(queries.n_places() * d, 0.0);
    for (auto query = queries.first; query < queries.last; ++query) {
        const auto n = rows.size(query);
        if (n == 0) continue;
        const auto begin = rows.begin(query);
        const auto features_of = [&](std::ptrdiff_t i) {
            return features.map ? mapped.data() + (begin - queries.begin + i) * d
                                : features.inputs + rows.row(begin + i) * d;
        };
        const T* pivot = features_of(0);
        double* out = loaded.data() + queries.place(rows, query) * d;
        for (std::ptrdiff_t i = 0; i < n; ++i, out += d) {
            const T* row = features_of(i);
            for (std::ptrdiff_t j = 0; j < d; ++j)
                out[j] =
                    static_cast<double>(row[j]) - (pointwise ? 0.0 : static_cast<double>(pivot[j]));
        }
        if (!pointwise) std::copy_n(pivot, d, out);
    }
    if (!path.basis) return;
    w.z.resize(queries.n_places() * path.rank);
    blas::gemm(trans::no, trans::no, queries.n_places(), path.rank, d, 1.0, w.e.data(), d,
               path.basis, path.rank, 0.0, w.z.data(), path.rank);
}

// Fills e, (n, rank + 1), with the half-Laplacian of [z, y] of one query.
void load_query(const ranking_problem& problem, const double* targets, const ridge_path& path,
                std::ptrdiff_t query, const double* z, workspace& w, double* e) {
    const auto& rows = problem.rows;
    const auto width = path.rank, n = rows.size(query);
    if (n == 0) return;
    const auto begin = rows.begin(query);
    plan_query(problem, query, nullptr, w.plan);
    w.sums.reset(w.plan.n_levels(), width + 1);
    const buffer<double> zeros(width, 0.0);
    const double first_target =
        problem.rule.kind == pair_kind::none ? 0.0 : targets[rows.row(begin)];
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* out = e + i * (width + 1);
        double* sum = w.sums.sum.data() + w.plan.level[i] * (width + 1);
        const double v = w.plan.weight[i];
        load_row(width, z + i * width, zeros.data(), v, out, sum);
        load_row(std::ptrdiff_t{1}, targets + rows.row(begin + i), &first_target, v, out + width,
                 sum + width);
    }
    transform_rows<double>(n, width + 1, w.plan.level.data(), w.plan.weight.data(),
                           w.plan.within.data(), w.plan, join_of(problem.rule.kind), e, width + 1,
                           w.sums);
}

void hold_out(const ranking_problem& problem, const double* targets, const ridge_path& path,
              const double* inverse, const double* coef, const query_range& fold, const double* z,
              workspace& w, double* scores) {
    const auto& rows = problem.rows;
    const auto width = path.rank, m = path.n_alphas, n = fold.n;
    w.e.resize(n * (width + 1));
    for (auto* matrix : {&w.x, &w.r, &w.p, &w.q}) matrix->resize(n * m);
    w.u.resize(width * m);
    for (auto* row : {&w.rr, &w.pq, &w.step}) row->resize(m);
    const auto z_of = [&](std::ptrdiff_t query) { return fold.place(rows, query) * width; };
    for (auto q = fold.first; q < fold.last; ++q)
        load_query(problem, targets, path, q, z + z_of(q), w,
                   w.e.data() + (rows.offsets[q] - fold.begin) * (width + 1));

    for (std::ptrdiff_t i = 0; i < n; ++i)
        std::fill_n(w.r.begin() + i * m, m, w.e[i * (width + 1) + width]);
    blas::gemm(trans::no, trans::no, n, m, width, -1.0, w.e.data(), width + 1, coef, m, 1.0,
               w.r.data(), m);
    w.scores.assign(w.r.begin(), w.r.begin() + n * m);  // right-hand sides, for solve_directly
    const auto* const end = path.eigenvalues + width - path.n_free;
    const double largest = end == path.eigenvalues ? 0.0 : *std::max_element(path.eigenvalues, end);
    const auto n_columns =
        std::partition_point(path.alphas, path.alphas + m,
                             [&](double alpha) { return alpha >= smallest_ridge * largest; }) -
        path.alphas;
    const auto n_solved = conjugate_gradients(path, n, n_columns, inverse, w);
    shrink(path, n, 0, n_solved, inverse, w.e.data(), w.x.data(), w.u.data());
    for (std::ptrdiff_t k = 0; k < width; ++k)
        for (std::ptrdiff_t j = 0; j < n_solved; ++j)
            w.u[k * m + j] = coef[k * m + j] - w.u[k * m + j];
    for (auto j = n_solved; j < m; ++j) {
        check_interrupt();
        solve_directly(path, n, j, inverse, coef, w);
    }
    w.scores.resize(fold.n_places() * m);
    blas::gemm(trans::no, trans::no, fold.n_places(), m, width, 1.0, z, width, w.u.data(), m, 0.0,
               w.scores.data(), m);
    const auto n_rows = rows.n_rows();
    for (auto q = fold.first; q < fold.last; ++q) {
        const double* of_row = w.scores.data() + fold.place(rows, q) * m;
        const double* of_pivot = of_row + rows.size(q) * m;
        for (std::ptrdiff_t i = 0; i < rows.size(q); ++i)
            for (std::ptrdiff_t j = 0; j < m; ++j)
                scores[j * n_rows + rows.row(rows.begin(q) + i)] = of_row[i * m + j] + of_pivot[j];
    }
}

}  // namespace

template <class T>
void leave_query_out(const ranking_problem& problem, const feature_rows<T>& features,
                     const buffer<std::int64_t>& folds, const ridge_path& path, double* scores,
                     int n_threads) {
    const auto& rows = problem.rows;
    const auto width = path.rank, m = path.n_alphas;
    buffer<double> inverse(width * m), coef(width * m);
    for (std::ptrdiff_t k = 0; k < width; ++k)
        for (std::ptrdiff_t j = 0; j < m; ++j) {
            const double ridge = k < width - path.n_free ? path.alphas[j] : 0.0;
            inverse[k * m + j] = 1 / (path.eigenvalues[k] + ridge);
            coef[k * m + j] = path.projection[k] * inverse[k * m + j];
        }
    buffer<buffer<query_range>> batches;  // of folds
    std::ptrdiff_t n_in_batch = batch_rows;
    for (std::size_t f = 0; f + 1 < folds.size(); ++f) {
        const query_range fold(rows, folds[f], folds[f + 1]);
        if (n_in_batch >= batch_rows) {
            batches.emplace_back();
            n_in_batch = 0;
        }
        batches.back().push_back(fold);
        n_in_batch += fold.n;
    }
    parallel_for(static_cast<std::ptrdiff_t>(batches.size()), n_threads, [&](std::ptrdiff_t task) {
        const auto& batch = batches[task];
        const query_range queries(rows, batch.front().first, batch.back().last);
        workspace w;
        load_batch(problem, features, path, queries, w);
        for (const auto& fold : batch)
            if (fold.n > 0)
                hold_out(problem, features.targets, path, inverse.data(), coef.data(), fold,
                         w.z.data() + queries.place(rows, fold.first) * width, w, scores);
    });
}

template void leave_query_out<double>(const ranking_problem&, const feature_rows<double>&,
                                      const buffer<std::int64_t>&, const ridge_path&, double*, int);
template void leave_query_out<float>(const ranking_problem&, const feature_rows<float>&,
                                     const buffer<std::int64_t>&, const ridge_path&, double*, int);

}  // namespace pairgram
