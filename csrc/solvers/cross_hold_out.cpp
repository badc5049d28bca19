#include "solvers/cross_hold_out.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "solvers/cross_gram.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t queries_together = 16;  // that read the basis together
constexpr std::ptrdiff_t most_rows = 4096;       // of a query, that are transformed together

// The features of queries, and the path of their models.
template <class T>
struct cross_problem {
    const ranking_problem& problem;
    const double* basis;  // (n_features, rank)
    std::ptrdiff_t rank;
    feature_rows<T> left;  // ũ of a row
    feature_rows<T> rows;  // [kept, v] and the target of a row
    const cross_columns& cross;

    std::ptrdiff_t n_columns() const { return cross.n_kept() + cross.n_right(); }

    // out (n_columns, rank) of every query of a range = P_q.
    void project(std::ptrdiff_t first, std::ptrdiff_t last, buffer<double>& out) const;

    // The rows (n, n_columns + 1) of a query, or as many, of which the products are those of the
    // half-Laplacian of its [kept, v, y].
    void rows_of_products(std::ptrdiff_t query, buffer<double>& out) const;

    // scores (n_alphas, n) of the rows of a query by weights (n_columns, stride) of [kept, v].
    void score(std::ptrdiff_t query, std::ptrdiff_t n_alphas, std::ptrdiff_t stride,
               const double* weights, double* scores) const;
};

template <class T>
void cross_problem<T>::project(std::ptrdiff_t first, std::ptrdiff_t last,
                               buffer<double>& out) const {
    const auto n = last - first, values = n_columns() * rank;
    const auto kept = cross.n_kept(), n_left = cross.n_left(), n_right = cross.n_right();
    out.resize(n * values);
    buffer<double> lefts(n * n_left, 0.0);
    buffer<T> of_row(n_left);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (problem.rows.size(first + i) == 0) continue;
        left.map_row(problem.rows.row(problem.rows.begin(first + i)), of_row.data());
        std::copy(of_row.begin(), of_row.end(), lefts.begin() + i * n_left);
        std::copy_n(basis, kept * rank, out.begin() + i * values);
    }
    blas::gemm(trans::no, trans::no, n, n_right * rank, n_left, 1.0, lefts.data(), n_left,
               basis + kept * rank, n_right * rank, 0.0, out.data() + kept * rank, values);
}

// An upper triangular R with RᵀR = S in place of positive semidefinite S (n, n), of which a pivot
// that is rounding error of its column is raised to what rounding may have left.
void factorize(std::ptrdiff_t n, double* s) {
    const double noise = static_cast<double>(n) * std::numeric_limits<double>::epsilon();
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        double* const row = s + j * n;
        double pivot = row[j];
        for (std::ptrdiff_t k = 0; k < j; ++k) pivot -= s[k * n + j] * s[k * n + j];
        pivot = std::max(pivot, noise * row[j]);
        const double root = std::sqrt(pivot);
        for (std::ptrdiff_t k = 0; k < j; ++k) {
            const double factor = s[k * n + j];
            for (auto i = j + 1; i < n; ++i) row[i] -= factor * s[k * n + i];
        }
        row[j] = root;
        for (auto i = j + 1; i < n; ++i) row[i] = root > 0 ? row[i] / root : 0.0;
        std::fill_n(row, j, 0.0);
    }
}

template <class T>
void cross_problem<T>::rows_of_products(std::ptrdiff_t query, buffer<double>& out) const {
    const auto one = problem_of_query(problem, query);
    const auto width = n_columns() + 1, n = problem.rows.size(query);
    if (n <= n_columns()) {
        half_laplacian_blocks<T> blocks(one, rows, n);
        buffer<T> transformed(n * width);
        if (blocks.n_blocks() > 0) blocks.transform(0, transformed.data(), width);
        out.assign(transformed.begin(), transformed.end());
        return;
    }
    half_laplacian_blocks<T> blocks(one, rows, most_rows);
    buffer<T> transformed(blocks.max_rows() * width);
    buffer<double> wide;  // so that dependent columns leave no more than the rounding of double
    out.assign(width * width, 0.0);
    const auto add = [&](std::ptrdiff_t n_added, const buffer<double>& from) {
        blas::syrk(width, n_added, 1.0, from.data(), width, 1.0, out.data(), width);
    };
    for (std::ptrdiff_t b = 0; b < blocks.n_blocks(); ++b) {
        blocks.transform(b, transformed.data(), width);
        wide.assign(transformed.begin(), transformed.begin() + blocks.n_rows(b) * width);
        add(blocks.n_rows(b), wide);
    }
    const auto joining = blocks.joining_rows();
    add(length_of(joining) / width, joining);
    factorize(width, out.data());
    out.resize(n_columns() * width);  // the last row has products with nothing but itself
}

template <class T>
void cross_problem<T>::score(std::ptrdiff_t query, std::ptrdiff_t n_alphas, std::ptrdiff_t stride,
                             const double* weights, double* scores) const {
    const auto& queries = problem.rows;
    const auto n = queries.size(query), width = n_columns(), begin = queries.begin(query);
    const bool pointwise = problem.rule.kind == pair_kind::none;
    buffer<T> made(n * width), gathered;
    rows.map_to(
        n, [&](std::ptrdiff_t i) { return queries.row(begin + i); }, made.data(), width, gathered);
    buffer<double> from_first((n + 1) * width, 0.0), found((n + 1) * stride, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < width; ++j)
            from_first[i * width + j] = static_cast<double>(made[i * width + j]) -
                                        (pointwise ? 0.0 : static_cast<double>(made[j]));
    if (!pointwise) std::copy_n(made.begin(), width, from_first.begin() + n * width);
    add_cached_product(n + 1, stride, width, 1.0, {from_first.data(), width, 1}, weights, stride,
                       found.data(), stride);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < n_alphas; ++j)
            scores[j * queries.n_rows() + queries.row(begin + i)] =
                found[i * stride + j] + found[n * stride + j];
}

// Folds that stand together, of queries [first, last).
struct fold_batch {
    std::ptrdiff_t first_fold, last_fold, first, last;
};

buffer<fold_batch> batches_of(const buffer<std::int64_t>& folds) {
    buffer<fold_batch> batches;
    for (std::ptrdiff_t f = 0; f + 1 < length_of(folds); ++f) {
        const auto begin = static_cast<std::ptrdiff_t>(folds[f]),
                   end = static_cast<std::ptrdiff_t>(folds[f + 1]);
        if (batches.empty() || end - batches.back().first > queries_together)
            batches.push_back({f, f + 1, begin, end});
        else
            batches.back().last_fold = f + 1, batches.back().last = end;
    }
    return batches;
}

}  // namespace

template <class T>
void cross_hold_out(const ranking_problem& problem, const feature_rows<T>& features,
                    const buffer<std::int64_t>& folds, const double* basis, const ridge_path& path,
                    double* scores, double* held, int n_threads) {
    const auto& cross = *cross_of(*features.map);
    const part_of_cross<T> left(*features.map, cross_part::left),
        right(*features.map, cross_part::right);
    const auto lefts = features.mapped_by(left.map()), rows = features.mapped_by(right.map());
    const cross_problem<T> products{problem, basis, path.rank, lefts, rows, cross};
    const path_models models(path);
    const auto rank = path.rank, width = products.n_columns(), stride = models.stride;
    const auto batches = batches_of(folds);
    parallel_for(length_of(batches), n_threads, [&](std::ptrdiff_t task) {
        const auto& batch = batches[task];
        unit_models weights;
        buffer<double> lost, projected, of_query, of_columns(width * stride);
        // Calls use(query, P_q) for some queries of the batch, of which a few are projected at
        // once.
        std::ptrdiff_t first = 0, last = 0;
        const auto each = [&](std::ptrdiff_t begin, std::ptrdiff_t end, const auto& use) {
            for (auto q = begin; q < end; ++q) {
                if (q < first || q >= last) {
                    check_interrupt();
                    first = q;
                    last = std::min(q + queries_together, batch.last);
                    products.project(first, last, projected);
                }
                if (problem.rows.size(q) > 0) use(q, projected.data() + (q - first) * width * rank);
            }
        };
        for (auto f = batch.first_fold; f < batch.last_fold; ++f) {
            const auto begin = static_cast<std::ptrdiff_t>(folds[f]),
                       end = static_cast<std::ptrdiff_t>(folds[f + 1]);
            lost.clear();
            std::ptrdiff_t n = 0;
            each(begin, end, [&](std::ptrdiff_t q, const double* p) {
                products.rows_of_products(q, of_query);
                const auto m = length_of(of_query) / (width + 1);
                lost.resize((n + m) * (rank + 1));
                double* const e = lost.data() + n * (rank + 1);
                blas::gemm(trans::no, trans::no, m, rank, width, 1.0, of_query.data(), width + 1, p,
                           rank, 0.0, e, rank + 1);
                for (std::ptrdiff_t i = 0; i < m; ++i)
                    e[i * (rank + 1) + rank] = of_query[i * (width + 1) + width];
                n += m;
            });
            if (n == 0) continue;
            const double* const found = weights.without_rows(path, models, n, lost.data());
            const double largest = weights.held_eigenvalue();
            each(begin, end, [&](std::ptrdiff_t q, const double* p) {
                std::fill(of_columns.begin(), of_columns.end(), 0.0);
                add_cached_product(width, stride, rank, 1.0, {p, rank, 1}, found, stride,
                                   of_columns.data(), stride);
                products.score(q, path.n_alphas, stride, of_columns.data(), scores);
                for (auto i = problem.rows.begin(q); i < problem.rows.begin(q + 1); ++i)
                    held[problem.rows.row(i)] = largest;
            });
        }
    });
}

PAIRGRAM_FOR_BOTH_WIDTHS(cross_hold_out);

}  // namespace pairgram
