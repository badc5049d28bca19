#include "solvers/cross_gram.hpp"

#include <algorithm>
#include <atomic>

#include "linear_algebra/blas.hpp"
#include "solvers/gram.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t most_queries = 256, fewest_queries = 8;  // that are added at a time
constexpr std::ptrdiff_t batch_values = 1 << 22;                  // of their sums
constexpr std::ptrdiff_t tile_rows = 64;                          // of a product, for a thread

std::ptrdiff_t n_pairs(std::ptrdiff_t n) { return n * (n + 1) / 2; }

// out (m, n) += Aᵀ B for A (k, m), B (k, n), by tiles of rows.
void add_product(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, const double* a,
                 const double* b, double* out, int n_threads) {
    parallel_parts(m, tile_rows, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t size) {
        blas::gemm(trans::yes, trans::no, size, n, k, 1.0, a + first, m, b, n, 1.0, out + first * n,
                   n);
    });
}

// The sizes of the parts of a row [kept, ũ ⊗ v, targets].
struct cross_sizes {
    std::ptrdiff_t kept, left, right, targets;

    std::ptrdiff_t others() const { return kept + targets; }
    std::ptrdiff_t of_rows() const { return kept + right + targets; }  // of [kept, v, targets]
    std::ptrdiff_t products() const { return left * right; }
    std::ptrdiff_t width() const { return others() + products(); }
    // The place of a kept column or a target among the features, and among those of [kept, v, y].
    std::ptrdiff_t place(std::ptrdiff_t other) const {
        return other < kept ? other : other + products();
    }
    std::ptrdiff_t row_place(std::ptrdiff_t other) const {
        return other < kept ? other : other + right;
    }
};

// What the queries of a batch add, a row for each.
struct batch_sums {
    buffer<double> left, left_pairs;    // ũ, and its products ũ_a ũ_b of a ≤ b
    buffer<double> right_pairs, mixed;  // S[V, V] of its columns b ≤ c, and S[V, KY]
    buffer<double> others;              // S[KY, KY]
    buffer<double> pair_weight;
    buffer<std::int64_t> varying;  // whether kept columns and v vary

    batch_sums(std::ptrdiff_t n, const cross_sizes& sizes)
        : left(n * sizes.left),
          left_pairs(n * n_pairs(sizes.left)),
          right_pairs(n * n_pairs(sizes.right)),
          mixed(n * sizes.right * sizes.others()),
          others(n * sizes.others() * sizes.others()),
          pair_weight(n),
          varying(n * (sizes.kept + sizes.right + 1)) {}
};

// Fills row i of the batch with the sums of a query.
template <class T>
void sum_query(const ranking_problem& problem, const feature_rows<T>& rows,
               const feature_rows<T>& lefts, const cross_sizes& sizes, std::ptrdiff_t query,
               std::ptrdiff_t i, batch_sums& batch) {
    const auto p = sizes.left, r = sizes.right, z = sizes.of_rows(), o = sizes.others();
    const auto one = problem_of_query(problem, query);
    buffer<double> sums(z * z);
    buffer<T> left(p, T{0});
    auto* const varying = batch.varying.data() + i * (sizes.kept + r + 1);
    std::fill_n(varying, sizes.kept + r + 1, std::int64_t{0});
    batch.pair_weight[i] = 0;
    if (problem.rows.size(query) > 0) {
        batch.pair_weight[i] = gram<T>(one, rows, 0, sums.data(), varying, 1);
        lefts.map_row(problem.rows.row(problem.rows.begin(query)), left.data());
    }
    std::copy(left.begin(), left.end(), batch.left.begin() + i * p);
    double* out = batch.left_pairs.data() + i * n_pairs(p);
    for (std::ptrdiff_t a = 0; a < p; ++a)
        for (std::ptrdiff_t b = a; b < p; ++b)
            *out++ = static_cast<double>(left[a]) * static_cast<double>(left[b]);
    out = batch.right_pairs.data() + i * n_pairs(r);
    for (std::ptrdiff_t b = 0; b < r; ++b) {
        const double* const row = sums.data() + (sizes.kept + b) * z;
        out = std::copy(row + sizes.kept + b, row + sizes.kept + r, out);
        for (std::ptrdiff_t c = 0; c < o; ++c)
            batch.mixed[(i * r + b) * o + c] = row[sizes.row_place(c)];
    }
    for (std::ptrdiff_t b = 0; b < o; ++b)
        for (std::ptrdiff_t c = 0; c < o; ++c)
            batch.others[(i * o + b) * o + c] = sums[sizes.row_place(b) * z + sizes.row_place(c)];
}

// counts (features + 1) += 1 for every product ũ_a v_b of which v_b varies and ũ_a is not 0.
void count_varying(const cross_sizes& sizes, std::ptrdiff_t i, const batch_sums& batch,
                   std::int64_t* counts) {
    const auto* const varying = batch.varying.data() + i * (sizes.kept + sizes.right + 1);
    const auto* const of_right = varying + sizes.kept;
    bool any = false;
    for (std::ptrdiff_t c = 0; c < sizes.kept; ++c) {
        counts[c] += varying[c];
        any = any || varying[c] != 0;
    }
    for (std::ptrdiff_t a = 0; a < sizes.left; ++a) {
        if (batch.left[i * sizes.left + a] == 0) continue;
        for (std::ptrdiff_t b = 0; b < sizes.right; ++b) {
            counts[sizes.kept + a * sizes.right + b] += of_right[b];
            any = any || of_right[b] != 0;
        }
    }
    counts[sizes.kept + sizes.products()] += any;
}

// Writes the sums over all queries to their places in gram.
void fill(const cross_sizes& sizes, const buffer<double>& squares, const buffer<double>& mixed,
          const buffer<double>& others, double* gram, int n_threads) {
    const auto p = sizes.left, r = sizes.right, o = sizes.others(), width = sizes.width();
    parallel_for(p, n_threads, [&](std::ptrdiff_t a) {
        for (std::ptrdiff_t b = 0; b < r; ++b) {
            double* const row = gram + (sizes.kept + a * r + b) * width;
            for (std::ptrdiff_t c = 0; c < o; ++c) row[sizes.place(c)] = mixed[(a * r + b) * o + c];
            for (std::ptrdiff_t e = 0; e < p; ++e) {
                const auto low = std::min(a, e), high = std::max(a, e);
                const double* const of_pair =
                    squares.data() + (low * p - n_pairs(low) + high) * n_pairs(r);
                double* const out = row + sizes.kept + e * r;
                for (std::ptrdiff_t c = 0; c < b; ++c) out[c] = of_pair[c * r - n_pairs(c) + b];
                std::copy_n(of_pair + b * r - n_pairs(b) + b, r - b, out + b);
            }
        }
    });
    for (std::ptrdiff_t c = 0; c < o; ++c) {
        double* const row = gram + sizes.place(c) * width;
        for (std::ptrdiff_t j = 0; j < p * r; ++j) row[sizes.kept + j] = mixed[j * o + c];
        for (std::ptrdiff_t e = 0; e < o; ++e) row[sizes.place(e)] = others[c * o + e];
    }
}

}  // namespace

template <class T>
bool is_cross_of_queries(const ranking_problem& problem, const feature_rows<T>& features,
                         int n_threads) {
    const auto* const cross = features.map ? cross_of(*features.map) : nullptr;
    if (!cross) return false;
    const part_of_cross<T> part(*features.map, cross_part::left);
    constexpr std::ptrdiff_t together = 64, most_rows = 256;
    const auto& rows = problem.rows;
    const auto left = features.mapped_by(part.map());
    const auto width = left.n_features;
    std::atomic<bool> constant{true};
    parallel_parts(rows.n_queries, together, n_threads, [&](auto begin, std::ptrdiff_t size) {
        buffer<T> first(width), made(most_rows * width), gathered;
        for (auto q = begin; q < begin + size; ++q)
            for (auto i = rows.begin(q); i < rows.begin(q + 1); i += most_rows) {
                if (!constant.load(std::memory_order_relaxed)) return;
                const auto n = std::min(most_rows, rows.begin(q + 1) - i);
                left.map_to(
                    n, [&](std::ptrdiff_t j) { return rows.row(i + j); }, made.data(), width,
                    gathered);
                if (i == rows.begin(q)) std::copy_n(made.begin(), width, first.begin());
                for (std::ptrdiff_t j = 0; j < n; ++j)
                    if (!std::equal(first.begin(), first.end(), made.begin() + j * width))
                        constant.store(false);
            }
    });
    return constant.load();
}

ranking_problem problem_of_query(const ranking_problem& problem, std::ptrdiff_t query) {
    auto one = problem;
    one.rows.n_queries = 1;
    one.rows.offsets += query;
    if (one.rows.query_weights) one.rows.query_weights += query;
    return one;
}

template <class T>
double cross_gram(const ranking_problem& problem, const feature_rows<T>& features, double* gram,
                  std::int64_t* varying, int n_threads) {
    const auto& cross = *cross_of(*features.map);
    const part_of_cross<T> left(*features.map, cross_part::left),
        right(*features.map, cross_part::right);
    const cross_sizes sizes{cross.n_kept(), cross.n_left(), cross.n_right(), features.n_targets};
    const auto rows = features.mapped_by(right.map()), lefts = features.mapped_by(left.map());
    const auto p2 = n_pairs(sizes.left), r2 = n_pairs(sizes.right), o = sizes.others();
    const auto n = std::min(problem.rows.n_queries,
                            std::clamp(batch_values / (p2 + r2 + (sizes.right + o) * o + 1),
                                       fewest_queries, most_queries));
    batch_sums batch(n, sizes);
    buffer<double> squares(p2 * r2, 0.0), mixed(sizes.products() * o, 0.0), others(o * o, 0.0);
    double pair_weight = 0;
    for (std::ptrdiff_t first = 0; first < problem.rows.n_queries; first += n) {
        const auto size = std::min(n, problem.rows.n_queries - first);
        parallel_for(size, n_threads, [&](std::ptrdiff_t i) {
            sum_query(problem, rows, lefts, sizes, first + i, i, batch);
        });
        add_product(p2, r2, size, batch.left_pairs.data(), batch.right_pairs.data(), squares.data(),
                    n_threads);
        add_product(sizes.left, sizes.right * o, size, batch.left.data(), batch.mixed.data(),
                    mixed.data(), n_threads);
        for (std::ptrdiff_t i = 0; i < size; ++i) {
            for (std::ptrdiff_t j = 0; j < o * o; ++j) others[j] += batch.others[i * o * o + j];
            pair_weight += batch.pair_weight[i];
            if (varying) count_varying(sizes, i, batch, varying);
        }
    }
    fill(sizes, squares, mixed, others, gram, n_threads);
    return pair_weight;
}

PAIRGRAM_FOR_BOTH_WIDTHS(is_cross_of_queries);
PAIRGRAM_FOR_BOTH_WIDTHS(cross_gram);

}  // namespace pairgram
