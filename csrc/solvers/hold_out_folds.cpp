#include "solvers/hold_out_folds.hpp"

#include <algorithm>

#include "data/laplacian_root.hpp"
#include "data/query_rows.hpp"
#include "linear_algebra/blas.hpp"
#include "linear_algebra/column_panels.hpp"
#include "solvers/cached_product.hpp"
#include "solvers/cross_gram.hpp"
#include "solvers/cross_hold_out.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t batch_rows = 128;  // that read the basis together

// What the folds of a batch share.
struct workspace {
    buffer<double> z;       // (n + 1, L) a query, see query_range
    buffer<double> scores;  // (n + queries, stride)
    buffer<double> loaded;  // rows of a batch, and then the half-Laplacian of a unit with targets
    unit_models weights;
    query_plan plan;
    level_sums sums;
};

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
                const column_panels<double>& basis, const query_range& queries, std::ptrdiff_t rank,
                workspace& w) {
    const auto& rows = problem.rows;
    const auto d = features.n_features;
    const bool pointwise = problem.rule.kind == pair_kind::none;
    buffer<T> mapped(features.map ? queries.n * d : 0), gathered;
    features.map_to(
        queries.n, [&](std::ptrdiff_t i) { return rows.row(queries.begin + i); }, mapped.data(), d,
        gathered);
    auto& loaded = w.loaded;
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
    w.z.assign(queries.n_places() * rank, 0.0);
    basis.add_product(queries.n_places(), loaded.data(), d, w.z.data(), rank);
}

// Fills e, (n, rank + 1), with the half-Laplacian of [z, y] of one query.
void load_query(const ranking_problem& problem, const double* targets, std::ptrdiff_t rank,
                std::ptrdiff_t query, const double* z, workspace& w, double* e) {
    const auto& rows = problem.rows;
    const auto n = rows.size(query), begin = rows.begin(query);
    if (n == 0) return;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        std::copy_n(z + i * rank, rank, e + i * (rank + 1));
        e[i * (rank + 1) + rank] = targets[rows.row(begin + i)];
    }
    plan_query(problem, query, nullptr, w.plan);
    apply_root(w.plan, problem.rule.kind, rank + 1, e, w.sums);
}

void hold_out(const ranking_problem& problem, const double* targets, const ridge_path& path,
              const path_models& models, const query_range& fold, const double* z, workspace& w,
              double* scores) {
    const auto& rows = problem.rows;
    const auto width = path.rank, m = path.n_alphas, n = fold.n, stride = models.stride;
    w.loaded.resize(n * (width + 1));
    const auto z_of = [&](std::ptrdiff_t query) { return fold.place(rows, query) * width; };
    for (auto q = fold.first; q < fold.last; ++q)
        load_query(problem, targets, width, q, z + z_of(q), w,
                   w.loaded.data() + (rows.offsets[q] - fold.begin) * (width + 1));
    const double* const weights = w.weights.without_rows(path, models, n, w.loaded.data());
    w.scores.assign(fold.n_places() * stride, 0.0);
    add_cached_product(fold.n_places(), stride, width, 1.0, {z, width, 1}, weights, stride,
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
                     const buffer<std::int64_t>& folds, const double* basis, const ridge_path& path,
                     double* scores, double* held, int n_threads) {
    if (is_cross_of_queries(problem, features, n_threads))
        return cross_hold_out(problem, features, folds, basis, path, scores, held, n_threads);
    const auto& rows = problem.rows;
    const auto width = path.rank;
    const path_models models(path);
    const column_panels<double> panels(features.n_features, width, basis);
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
        load_batch(problem, features, panels, queries, width, w);
        for (const auto& fold : batch) {
            if (fold.n == 0) continue;
            hold_out(problem, features.targets, path, models, fold,
                     w.z.data() + queries.place(rows, fold.first) * width, w, scores);
            const double found = w.weights.held_eigenvalue();
            for (auto i = fold.begin; i < fold.begin + fold.n; ++i) held[rows.row(i)] = found;
        }
    });
}

template void leave_query_out<double>(const ranking_problem&, const feature_rows<double>&,
                                      const buffer<std::int64_t>&, const double*, const ridge_path&,
                                      double*, double*, int);
template void leave_query_out<float>(const ranking_problem&, const feature_rows<float>&,
                                     const buffer<std::int64_t>&, const double*, const ridge_path&,
                                     double*, double*, int);

}  // namespace pairgram
