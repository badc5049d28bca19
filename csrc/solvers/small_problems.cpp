#include "solvers/small_problems.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "data/query_rows.hpp"
#include "linear_algebra/blas.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr std::ptrdiff_t rows_in_ten = 6;   // rows for 10 features, below which a basis pays
constexpr std::ptrdiff_t noise_rows = 256;  // from which the size of a feature is taken

// The features of all rows of a problem: (n, L), mapped once.
struct mapped_problem {
    buffer<double> own;
    const double* features = nullptr;
    bool finite = true;
};

mapped_problem map_problem(const batch_problem& problem) {
    mapped_problem out;
    const auto& f = problem.features;
    out.features = f.inputs;
    if (!f.map) return out;
    const auto n_inputs = problem.n_rows() * f.n_inputs();
    // A node may hide an infinity.
    out.finite = std::isfinite(std::accumulate(f.inputs, f.inputs + n_inputs, 0.0));
    out.own.resize(problem.n_rows() * f.n_features);
    map_rows(*f.map, problem.n_rows(), f.inputs, f.n_inputs(), out.own.data(), f.n_features);
    out.features = out.own.data();
    return out;
}

// The given rows grouped by query, as offsets and order of query_rows.
struct row_subset {
    buffer<std::int64_t> offsets, order;
};

row_subset subset_of(const query_rows& rows, std::ptrdiff_t n, const std::int64_t* chosen) {
    buffer<std::ptrdiff_t> query(rows.n_rows());
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q)
        for (auto i = rows.offsets[q]; i < rows.offsets[q + 1]; ++i) query[rows.row(i)] = q;
    row_subset out;
    out.offsets.assign(rows.n_queries + 1, 0);
    out.order.resize(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) ++out.offsets[query[chosen[i]] + 1];
    std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
    auto next = out.offsets;
    for (std::ptrdiff_t i = 0; i < n; ++i) out.order[next[query[chosen[i]]]++] = chosen[i];
    return out;
}

bool has_pairs(pair_kind kind, const query_rows& rows) {
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        if (!(rows.query_weight(q) > 0)) continue;
        std::ptrdiff_t first = -1;
        for (auto i = rows.offsets[q]; i < rows.offsets[q + 1]; ++i) {
            const auto row = rows.row(i);
            if (!(rows.row_weight(row) > 0)) continue;
            if (kind == pair_kind::none) return true;
            if (first >= 0 && (kind == pair_kind::kept || rows.labels[row] != rows.labels[first]))
                return true;
            if (first < 0) first = row;
        }
    }
    return false;
}

// Zeroes features of which only the rounding error of the map is left: equal rows differ by it.
void clear_noise(const batch_problem& problem, const double* features, const query_rows& rows,
                 double pair_weight, std::ptrdiff_t n, double* transformed, std::ptrdiff_t width) {
    const auto n_features = problem.features.n_features;
    buffer<double> squares(n_features, 0.0), size(n_features, 0.0);
    const auto n_sized = std::min(n, noise_rows);
    for (std::ptrdiff_t i = 0; i < n_sized; ++i) {
        const double* h = features + rows.row(i) * n_features;
        for (std::ptrdiff_t j = 0; j < n_features; ++j) size[j] += h[j] * h[j];
    }
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < n_features; ++j)
            squares[j] += transformed[i * width + j] * transformed[i * width + j];
    const double share = 64 * epsilon * 64 * epsilon * pair_weight / static_cast<double>(n_sized);
    for (std::ptrdiff_t j = 0; j < n_features; ++j) {
        if (!(squares[j] <= share * size[j])) continue;
        for (std::ptrdiff_t i = 0; i < n; ++i) transformed[i * width + j] = 0;
    }
}

// V of H̃ᵀH̃ (L, L), and V H̃ᵀỹ.
void decompose_features(std::ptrdiff_t n, std::ptrdiff_t n_features, std::ptrdiff_t n_targets,
                        const double* rows, decomposition& out) {
    const auto width = n_features + n_targets;
    buffer<double> sums(width * width);
    blas::syrk(width, n, 1.0, rows, width, 0.0, sums.data(), width);
    out.rank = n_features;
    out.vectors.resize(n_features * n_features);
    for (std::ptrdiff_t i = 0; i < n_features; ++i)
        std::copy_n(sums.data() + i * width, n_features, out.vectors.data() + i * n_features);
    out.eigenvalues.resize(n_features);
    if (!blas::eigen(n_features, out.vectors.data(), out.eigenvalues.data())) {
        out.failure = batch_failure::no_convergence;
        return;
    }
    // Eigenvectors have rounding errors at features that do not vary, whose rows may be huge.
    for (std::ptrdiff_t j = 0; j < n_features; ++j) {
        if (sums[j * width + j] != 0) continue;
        for (std::ptrdiff_t k = 0; k < n_features; ++k) out.vectors[k * n_features + j] = 0;
    }
    out.projection.resize(n_targets * n_features);
    blas::gemm(blas::trans::yes, blas::trans::yes, n_targets, n_features, n_features, 1.0,
               sums.data() + n_features, width, out.vectors.data(), n_features, 0.0,
               out.projection.data(), n_features);
}

// A basis of the rows of H̃: Q (rank, L) with orthonormal rows, and C (n, rank) with H̃ = C Q.
struct row_basis {
    std::ptrdiff_t rank = 0;
    buffer<double> q, c;  // (n, L) and (n, n), of which the first rows and columns are used
};

// By Gram-Schmidt, row by row, each as often as it takes to be orthogonal. A row that depends on
// those before adds nothing. 4 n² L flops.
row_basis basis_of_rows(std::ptrdiff_t n, std::ptrdiff_t n_features, const double* rows,
                        std::ptrdiff_t width) {
    row_basis out;
    out.q.assign(n * n_features, 0.0);
    out.c.assign(n * n, 0.0);
    buffer<double> shares(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double *rest = out.q.data() + out.rank * n_features, *c = out.c.data() + i * n;
        const auto norm = [&] {
            return std::sqrt(std::inner_product(rest, rest + n_features, rest, 0.0));
        };
        std::copy_n(rows + i * width, n_features, rest);
        const double least = 4 * epsilon * norm();
        double left = norm(), before = left;
        do {
            before = left;
            blas::gemm(blas::trans::no, blas::trans::yes, 1, out.rank, n_features, 1.0, rest,
                       n_features, out.q.data(), n_features, 0.0, shares.data(), n);
            blas::gemm(blas::trans::no, blas::trans::no, 1, n_features, out.rank, -1.0,
                       shares.data(), n, out.q.data(), n_features, 1.0, rest, n_features);
            for (std::ptrdiff_t k = 0; k < out.rank; ++k) c[k] += shares[k];
            left = norm();
        } while (left > least && left < 0.5 * before);
        if (!(left > least)) continue;
        for (std::ptrdiff_t j = 0; j < n_features; ++j) rest[j] /= left;
        c[out.rank++] = left;
    }
    out.rank = std::max<std::ptrdiff_t>(out.rank, 1);  // a row of zeros where H̃ is 0
    return out;
}

// The same by way of H̃ = C Q: V = W Q for the eigenvectors W of CᵀC, whose orders are smaller. V
// is orthonormal to the last digits, also where eigenvalues are tiny.
void decompose_rows(std::ptrdiff_t n, std::ptrdiff_t n_features, std::ptrdiff_t n_targets,
                    const double* rows, decomposition& out) {
    const auto width = n_features + n_targets;
    const auto basis = basis_of_rows(n, n_features, rows, width);
    const auto rank = basis.rank;
    buffer<double> coordinates(n * (rank + n_targets));
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* row = coordinates.data() + i * (rank + n_targets);
        std::copy_n(basis.c.data() + i * n, rank, row);
        std::copy_n(rows + i * width + n_features, n_targets, row + rank);
    }
    decompose_features(n, rank, n_targets, coordinates.data(), out);
    if (out.failure != batch_failure::none) return;
    const auto turns = std::move(out.vectors);
    out.vectors.assign(rank * n_features, 0.0);
    blas::gemm(blas::trans::no, blas::trans::no, rank, n_features, rank, 1.0, turns.data(), rank,
               basis.q.data(), n_features, 0.0, out.vectors.data(), n_features);
}

// ỹ lies in the range of H̃ᵀ: what its projection has elsewhere is rounding error.
void clear_null_directions(std::ptrdiff_t n_features, std::ptrdiff_t n_targets,
                           decomposition& out) {
    const double largest = std::max(out.eigenvalues.back(), 0.0);
    const double least = epsilon * static_cast<double>(n_features) * largest;
    for (std::ptrdiff_t k = 0; k < out.rank; ++k) {
        double& eigenvalue = out.eigenvalues[k];
        if (eigenvalue <= least)
            for (std::ptrdiff_t t = 0; t < n_targets; ++t) out.projection[t * out.rank + k] = 0;
        eigenvalue = std::max(eigenvalue, 0.0);
    }
}

decomposition decompose(const batch_problem& problem, const mapped_problem& mapped,
                        const query_rows& rows, std::ptrdiff_t n) {
    decomposition out;
    if (!mapped.finite) out.failure = batch_failure::not_finite;
    if (!has_pairs(problem.ranking.rule.kind, rows)) out.failure = batch_failure::no_pairs;
    if (out.failure != batch_failure::none) return out;
    const auto& f = problem.features;
    half_laplacian_blocks<double> blocks(
        {problem.ranking.rule, rows},
        {f.n_features, mapped.features, f.n_targets, f.targets, nullptr}, n);
    const auto width = blocks.width();
    buffer<double> transformed(n * width);
    blocks.transform(0, transformed.data(), width);
    out.pair_weight = blocks.pair_weight();
    double squares = 0;
    for (const double value : transformed) squares += value * value;
    if (!std::isfinite(squares)) {
        out.failure = batch_failure::not_finite;
        return out;
    }
    if (f.map)
        clear_noise(problem, mapped.features, rows, out.pair_weight, n, transformed.data(), width);
    if (10 * n < rows_in_ten * f.n_features)
        decompose_rows(n, f.n_features, f.n_targets, transformed.data(), out);
    else
        decompose_features(n, f.n_features, f.n_targets, transformed.data(), out);
    if (out.failure == batch_failure::none) clear_null_directions(f.n_features, f.n_targets, out);
    return out;
}

// projection / (a + damping² / a) with a = eigenvalue + alpha, 0 where there is no projection.
PAIRGRAM_CLONES void model_weights(std::ptrdiff_t rank, const double* eigenvalues,
                                   const double* projection, double alpha, double damping,
                                   double* out) {
    for (std::ptrdiff_t k = 0; k < rank; ++k) {
        const double shifted = eigenvalues[k] + alpha;
        const bool solvable = projection[k] != 0 && shifted > 0;
        const double a = solvable ? shifted : 1.0;
        out[k] = solvable ? projection[k] / (a + damping * damping / a) : 0.0;
    }
}

// Scores of one split's test rows into out (n_targets, grid.n, ·), a row of which has ld values.
batch_failure score_split(const batch_problem& problem, const mapped_problem& mapped,
                          const row_split& split, const model_grid& grid, double* out,
                          std::ptrdiff_t ld) {
    const auto subset = subset_of(problem.ranking.rows, split.n_train, split.train);
    query_rows rows = problem.ranking.rows;
    rows.offsets = subset.offsets.data();
    rows.order = subset.order.data();
    const auto path = decompose(problem, mapped, rows, split.n_train);
    if (path.failure != batch_failure::none) return path.failure;
    const auto n_features = problem.features.n_features, rank = path.rank;
    buffer<double> test(split.n_test * n_features);
    for (std::ptrdiff_t i = 0; i < split.n_test; ++i)
        std::copy_n(mapped.features + split.test[i] * n_features, n_features,
                    test.data() + i * n_features);
    buffer<double> turned(split.n_test * rank), weights(grid.n * rank);
    blas::gemm(blas::trans::no, blas::trans::yes, split.n_test, rank, n_features, 1.0, test.data(),
               n_features, path.vectors.data(), n_features, 0.0, turned.data(), rank);
    const double unit = grid.relative ? path.pair_weight / 2 : 1.0;
    for (std::ptrdiff_t t = 0; t < problem.features.n_targets; ++t) {
        for (std::ptrdiff_t g = 0; g < grid.n; ++g)
            model_weights(rank, path.eigenvalues.data(), path.projection.data() + t * rank,
                          unit * grid.alphas[g], unit * grid.damping[g], weights.data() + g * rank);
        blas::gemm(blas::trans::no, blas::trans::yes, grid.n, split.n_test, rank, 1.0,
                   weights.data(), rank, turned.data(), rank, 0.0, out + t * grid.n * ld, ld);
    }
    return batch_failure::none;
}

buffer<mapped_problem> map_all(std::ptrdiff_t n_problems, const batch_problem* problems,
                               int n_threads) {
    buffer<mapped_problem> mapped(n_problems);
    parallel_for(n_problems, n_threads,
                 [&](std::ptrdiff_t i) { mapped[i] = map_problem(problems[i]); });
    return mapped;
}

}  // namespace

void decompose_all(std::ptrdiff_t n_problems, const batch_problem* problems, decomposition* out,
                   int n_threads) {
    parallel_for(n_problems, n_threads, [&](std::ptrdiff_t i) {
        out[i] = decompose(problems[i], map_problem(problems[i]), problems[i].ranking.rows,
                           problems[i].n_rows());
    });
}

void hold_out_all(std::ptrdiff_t n_problems, const batch_problem* problems, held_out_task* tasks,
                  int n_threads) {
    const auto mapped = map_all(n_problems, problems, n_threads);
    struct place {
        std::ptrdiff_t problem, split, column;
    };
    buffer<place> places;
    buffer<std::ptrdiff_t> n_columns(n_problems, 0);
    for (std::ptrdiff_t i = 0; i < n_problems; ++i)
        for (std::size_t s = 0; s < tasks[i].splits.size(); ++s) {
            auto& column = n_columns[i];
            places.push_back({i, static_cast<std::ptrdiff_t>(s), column});
            column += tasks[i].splits[s].n_test;
        }
    buffer<batch_failure> failures(places.size(), batch_failure::none);
    parallel_for(static_cast<std::ptrdiff_t>(places.size()), n_threads, [&](std::ptrdiff_t p) {
        const auto& at = places[p];
        const auto& task = tasks[at.problem];
        failures[p] = score_split(problems[at.problem], mapped[at.problem], task.splits[at.split],
                                  task.grid, task.scores + at.column, n_columns[at.problem]);
    });
    for (std::size_t p = 0; p < places.size(); ++p) {
        auto& failure = tasks[places[p].problem].failure;
        if (failure == batch_failure::none) failure = failures[p];
    }
}

}  // namespace pairgram
