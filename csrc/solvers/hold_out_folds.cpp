#include "solvers/hold_out_folds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/query_rows.hpp"
#include "linear_algebra/blas.hpp"
#include "linear_algebra/column_panels.hpp"
#include "solvers/cached_product.hpp"
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
constexpr double all_but = 1e-4;          // of an eigenvalue: a fold that leaves less holds it

// The matrices of one fold, but for z, of a batch of folds: kept between folds to save allocations.
// Those with a column for each alpha have `stride` columns: zeros or numbers that do not count
// stand behind the last alpha.
struct workspace {
    std::ptrdiff_t stride = 0;
    buffer<double> z;                       // (n + 1, L) a query, see query_range
    buffer<double> e;                       // (n, L + 1)
    buffer<double> r, p, q;                 // (n, stride)
    buffer<double> u, change;               // (L, stride)
    buffer<double> rr, rr_first, pq, step;  // (stride,)
    buffer<double> scores;                  // (n + queries, stride)
    buffer<double> system, scaled, rhs;     // Cholesky: (k, k), (n, L), (k,), k = min(n, L)
    query_plan plan;
    level_sums sums;
};

// Columns that are computed with, in whole groups.
struct column_range {
    std::ptrdiff_t from, to, stride;

    column_range(std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t of)
        : from(first / column_group * column_group), to(in_column_groups(last)), stride(of) {}
};

// out[j] = Σ_i a(i, j) b(i, j)
PAIRGRAM_CLONES void column_dots(std::ptrdiff_t n, const column_range& columns, const double* a,
                                 const double* b, double* out) {
    std::fill(out + columns.from, out + columns.to, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i, a += columns.stride, b += columns.stride)
        for (auto j = columns.from; j < columns.to; ++j) out[j] += a[j] * b[j];
}

// r −= step q, and rr its squares.
PAIRGRAM_CLONES void new_residual(std::ptrdiff_t n, const column_range& columns, const double* step,
                                  const double* q, double* r, double* rr) {
    std::fill(rr + columns.from, rr + columns.to, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i, q += columns.stride, r += columns.stride)
        for (auto j = columns.from; j < columns.to; ++j) {
            r[j] -= step[j] * q[j];
            rr[j] += r[j] * r[j];
        }
}

// out *= factor
PAIRGRAM_CLONES void multiply(std::ptrdiff_t n, const column_range& columns, const double* factor,
                              double* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i, factor += columns.stride, out += columns.stride)
        for (auto j = columns.from; j < columns.to; ++j) out[j] *= factor[j];
}

// out = first + factor second
PAIRGRAM_CLONES void combine(std::ptrdiff_t n, const column_range& columns, const double* factor,
                             const double* first, const double* second, double* out) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const auto row = i * columns.stride;
        for (auto j = columns.from; j < columns.to; ++j)
            out[row + j] = first[row + j] + factor[j] * second[row + j];
    }
}

// u (L, stride) = A⁻¹ Eᵀ p
void shrink(const ridge_path& path, std::ptrdiff_t n, const column_range& columns,
            const double* inverse, workspace& w) {
    const auto width = path.rank, from = columns.from, stride = columns.stride;
    for (std::ptrdiff_t k = 0; k < width; ++k)
        std::fill(w.u.begin() + k * stride + from, w.u.begin() + k * stride + columns.to, 0.0);
    add_cached_product(width, columns.to - from, n, 1.0, {w.e.data(), 1, width + 1},
                       w.p.data() + from, stride, w.u.data() + from, stride);
    multiply(width, columns, inverse, w.u.data());
}

// Solves (I − E A⁻¹ Eᵀ) x = r by conjugate gradients for the first n_columns alphas; w.r enters as
// the right-hand side, and w.change leaves as −A⁻¹ Eᵀ x. Alphas descend, so the columns that have
// not converged are taken as a suffix; a column beside them in its group takes steps of 0. Returns
// the first of them.
std::ptrdiff_t conjugate_gradients(const ridge_path& path, std::ptrdiff_t n,
                                   std::ptrdiff_t n_columns, const double* inverse, workspace& w) {
    const auto width = path.rank, stride = w.stride;
    w.change.assign(width * stride, 0.0);
    w.p = w.r;
    column_dots(n, {0, n_columns, stride}, w.r.data(), w.r.data(), w.rr.data());
    w.rr_first = w.rr;
    const auto unconverged = [&](std::ptrdiff_t from) {
        while (from < n_columns && w.rr[from] <= tolerance * tolerance * w.rr_first[from]) ++from;
        return from;
    };
    auto from = unconverged(0);
    for (int iteration = 0; from < n_columns && iteration < max_iterations; ++iteration) {
        check_interrupt();
        const column_range columns(from, n_columns, stride);
        shrink(path, n, columns, inverse, w);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy(w.p.begin() + i * stride + columns.from,
                      w.p.begin() + i * stride + columns.to,
                      w.q.begin() + i * stride + columns.from);
        add_cached_product(n, columns.to - columns.from, width, -1.0, {w.e.data(), width + 1, 1},
                           w.u.data() + columns.from, stride, w.q.data() + columns.from, stride);
        column_dots(n, columns, w.p.data(), w.q.data(), w.pq.data());
        const auto ratio = [&](const buffer<double>& above, const buffer<double>& below) {
            std::fill(w.step.begin(), w.step.end(), 0.0);
            for (auto j = from; j < n_columns; ++j)
                w.step[j] = below[j] > 0 ? above[j] / below[j] : 0.0;
        };
        ratio(w.rr, w.pq);
        w.pq = w.rr;  // the residual before
        new_residual(n, columns, w.step.data(), w.q.data(), w.r.data(), w.rr.data());
        for (auto& step : w.step) step = -step;
        combine(width, columns, w.step.data(), w.change.data(), w.u.data(), w.change.data());
        ratio(w.rr, w.pq);
        combine(n, columns, w.step.data(), w.r.data(), w.p.data(), w.p.data());
        from = unconverged(from);
    }
    return from;
}

// The held-out weights of column j, in the eigenbasis, into column j of w.u. For n ≤ L from
// (I − Ẽ Ẽᵀ) x = r with Ẽ = E A^-½, else from (I − Ẽᵀ Ẽ) A^½ u = A^-½ (Vᵀg − Eᵀỹ).
void solve_directly(const ridge_path& path, std::ptrdiff_t n, std::ptrdiff_t j,
                    const double* inverse, const double* coef, workspace& w) {
    const auto width = path.rank, m = w.stride;
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
                const ridge_path& path, const column_panels<double>& basis,
                const query_range& queries, workspace& w) {
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
    w.z.assign(queries.n_places() * path.rank, 0.0);
    basis.add_product(queries.n_places(), w.e.data(), d, w.z.data(), path.rank);
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

// The largest eigenvalue with a ridge of whose direction a fold of n rows holds nearly all pairs.
double held_eigenvalue(const ridge_path& path, std::ptrdiff_t n, const double* e) {
    buffer<double> squares(path.rank, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t k = 0; k < path.rank; ++k) {
            const double value = e[i * (path.rank + 1) + k];
            squares[k] += value * value;
        }
    double largest = 0;
    for (std::ptrdiff_t k = 0; k < path.rank - path.n_free; ++k)
        if (squares[k] > (1 - all_but) * path.eigenvalues[k])
            largest = std::max(largest, path.eigenvalues[k]);
    return largest;
}

void hold_out(const ranking_problem& problem, const double* targets, const ridge_path& path,
              const double* inverse, const double* coef, const query_range& fold, const double* z,
              workspace& w, double* scores) {
    const auto& rows = problem.rows;
    const auto width = path.rank, m = path.n_alphas, n = fold.n, stride = in_column_groups(m);
    w.stride = stride;
    w.e.resize(n * (width + 1));
    for (auto* matrix : {&w.r, &w.p, &w.q}) matrix->resize(n * stride);
    w.u.resize(width * stride);
    for (auto* row : {&w.rr, &w.pq, &w.step}) row->resize(stride);
    const auto z_of = [&](std::ptrdiff_t query) { return fold.place(rows, query) * width; };
    for (auto q = fold.first; q < fold.last; ++q)
        load_query(problem, targets, path, q, z + z_of(q), w,
                   w.e.data() + (rows.offsets[q] - fold.begin) * (width + 1));

    for (std::ptrdiff_t i = 0; i < n; ++i)
        std::fill_n(w.r.begin() + i * stride, stride, w.e[i * (width + 1) + width]);
    add_cached_product(n, stride, width, -1.0, {w.e.data(), width + 1, 1}, coef, stride, w.r.data(),
                       stride);
    w.scores = w.r;  // right-hand sides, for solve_directly
    const auto* const end = path.eigenvalues + width - path.n_free;
    const double largest = end == path.eigenvalues ? 0.0 : *std::max_element(path.eigenvalues, end);
    const auto n_columns =
        std::partition_point(path.alphas, path.alphas + m,
                             [&](double alpha) { return alpha >= smallest_ridge * largest; }) -
        path.alphas;
    const auto n_solved = conjugate_gradients(path, n, n_columns, inverse, w);
    for (std::ptrdiff_t at = 0; at < width * stride; ++at) w.u[at] = coef[at] + w.change[at];
    for (auto j = n_solved; j < m; ++j) {
        check_interrupt();
        solve_directly(path, n, j, inverse, coef, w);
    }
    w.scores.assign(fold.n_places() * stride, 0.0);
    add_cached_product(fold.n_places(), stride, width, 1.0, {z, width, 1}, w.u.data(), stride,
                       w.scores.data(), stride);
    const auto n_rows = rows.n_rows();
    for (auto q = fold.first; q < fold.last; ++q) {
        const double* of_row = w.scores.data() + fold.place(rows, q) * stride;
        const double* of_pivot = of_row + rows.size(q) * stride;
        for (std::ptrdiff_t i = 0; i < rows.size(q); ++i)
            for (std::ptrdiff_t j = 0; j < m; ++j)
                scores[j * n_rows + rows.row(rows.begin(q) + i)] =
                    of_row[i * stride + j] + of_pivot[j];
    }
}

}  // namespace

template <class T>
void leave_query_out(const ranking_problem& problem, const feature_rows<T>& features,
                     const buffer<std::int64_t>& folds, const ridge_path& path, double* scores,
                     double* held, int n_threads) {
    const auto& rows = problem.rows;
    const auto width = path.rank, stride = in_column_groups(path.n_alphas);
    buffer<double> inverse(width * stride), coef(width * stride);
    for (std::ptrdiff_t k = 0; k < width; ++k)
        for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j) {
            const double ridge = k < width - path.n_free ? path.alphas[j] : 0.0;
            inverse[k * stride + j] = 1 / (path.eigenvalues[k] + ridge);
            coef[k * stride + j] = path.projection[k] * inverse[k * stride + j];
        }
    column_panels<double> basis;
    if (path.basis) basis = column_panels<double>(features.n_features, width, path.basis);
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
        load_batch(problem, features, path, basis, queries, w);
        for (const auto& fold : batch) {
            if (fold.n == 0) continue;
            hold_out(problem, features.targets, path, inverse.data(), coef.data(), fold,
                     w.z.data() + queries.place(rows, fold.first) * width, w, scores);
            if (!held) continue;
            const double found = held_eigenvalue(path, fold.n, w.e.data());
            for (auto i = fold.begin; i < fold.begin + fold.n; ++i) held[rows.row(i)] = found;
        }
    });
}

template void leave_query_out<double>(const ranking_problem&, const feature_rows<double>&,
                                      const buffer<std::int64_t>&, const ridge_path&, double*,
                                      double*, int);
template void leave_query_out<float>(const ranking_problem&, const feature_rows<float>&,
                                     const buffer<std::int64_t>&, const ridge_path&, double*,
                                     double*, int);

}  // namespace pairgram
