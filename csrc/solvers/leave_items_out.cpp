#include "solvers/leave_items_out.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear_algebra/blas.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr double all_but = 1e-4;  // of an eigenvalue: an item that leaves less holds it
constexpr std::ptrdiff_t lanes = 8;

std::ptrdiff_t padded(std::ptrdiff_t n) { return (n + lanes - 1) / lanes * lanes; }

// Of one item, kept between items to save allocations. Columns are alphas, padded.
struct workspace {
    buffer<double> z, weighted;  // (n, rank)
    buffer<double> matrix;       // (rank, rank) M, of which the rows become reflectors
    buffer<double> product;      // (rank,)
    buffer<double> diagonal, beside, scale, rhs;  // (rank,)
    buffer<double> pivots, ratios, solved;        // (rank, columns)
    buffer<double> sums, scores;                  // (columns,), (n, columns)
    buffer<char> lost;                            // (columns,)
};

// A (n, n; stride ld) −= v pᵀ + p vᵀ
PAIRGRAM_CLONES void subtract_both(std::ptrdiff_t n, const double* v, const double* p, double* a,
                                   std::ptrdiff_t ld) {
    for (std::ptrdiff_t i = 0; i < n; ++i, a += ld) {
        const double x = v[i], y = p[i];
        for (std::ptrdiff_t j = 0; j < n; ++j) a[j] -= x * p[j] + y * v[j];
    }
}

// p = A v for symmetric A (n, n; stride ld)
PAIRGRAM_CLONES void multiply(std::ptrdiff_t n, const double* a, std::ptrdiff_t ld, const double* v,
                              double* p) {
    std::fill_n(p, n, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i, a += ld)
        for (std::ptrdiff_t j = 0; j < n; ++j) p[j] += v[i] * a[j];
}

// X (n, columns) −= scale v (vᵀX)
PAIRGRAM_CLONES void reflect(std::ptrdiff_t n, std::ptrdiff_t columns, double scale,
                             const double* v, double* x, double* sums) {
    std::fill_n(sums, columns, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < columns; ++j) sums[j] += v[i] * x[i * columns + j];
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double factor = scale * v[i];
        for (std::ptrdiff_t j = 0; j < columns; ++j) x[i * columns + j] -= factor * sums[j];
    }
}

// M = Q T Qᵀ by reflectors, of which the k-th stays in row k behind the diagonal.
void tridiagonalize(std::ptrdiff_t n, workspace& w) {
    double* const a = w.matrix.data();
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        double* const v = a + k * n + k + 1;
        const auto m = n - k - 1;
        w.diagonal[k] = a[k * n + k];
        w.scale[k] = w.beside[k] = 0;
        if (m == 0) continue;
        double size = 0, norm = 0;
        for (std::ptrdiff_t i = 1; i < m; ++i) size = std::max(size, std::abs(v[i]));
        w.beside[k] = v[0];
        if (size == 0) continue;  // there is nothing to reflect away
        size = std::max(size, std::abs(v[0]));
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            v[i] /= size;
            norm += v[i] * v[i];
        }
        const double root = v[0] > 0 ? -std::sqrt(norm) : std::sqrt(norm);
        w.beside[k] = size * root;
        const double first = v[0];
        v[0] -= root;
        w.scale[k] = 2 / (norm - first * first + v[0] * v[0]);
        double* const rest = a + (k + 1) * n + k + 1;
        double* const p = w.product.data();
        multiply(m, rest, n, v, p);
        double dot = 0;
        for (std::ptrdiff_t i = 0; i < m; ++i) dot += p[i] * v[i];
        const double shift = w.scale[k] * dot / 2;
        for (std::ptrdiff_t i = 0; i < m; ++i) p[i] = w.scale[k] * (p[i] - shift * v[i]);
        subtract_both(m, v, p, rest, n);
    }
}

// solved (n, columns) = (T + alpha)⁻¹ rhs for every alpha, by L D Lᵀ; lost where a pivot is not
// above `least`.
PAIRGRAM_CLONES void solve_shifted(std::ptrdiff_t n, std::ptrdiff_t columns, const double* alphas,
                                   double least, const double* diagonal, const double* beside,
                                   const double* rhs, double* pivots, double* ratios,
                                   double* solved, char* lost) {
    std::fill_n(lost, columns, char{0});
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* const d = pivots + i * columns;
        double* const x = solved + i * columns;
        const double* const before = i > 0 ? ratios + (i - 1) * columns : nullptr;
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            d[j] = diagonal[i] + alphas[j] - (i > 0 ? before[j] * beside[i - 1] : 0.0);
            x[j] = rhs[i] - (i > 0 ? before[j] * solved[(i - 1) * columns + j] : 0.0);
            lost[j] = static_cast<char>(lost[j] | (d[j] > least ? 0 : 1));
            ratios[i * columns + j] = beside[i] / d[j];
        }
    }
    for (std::ptrdiff_t i = n - 1; i >= 0; --i) {
        double* const x = solved + i * columns;
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            x[j] /= pivots[i * columns + j];
            if (i + 1 < n) x[j] -= ratios[i * columns + j] * solved[(i + 1) * columns + j];
        }
    }
}

struct shifts {
    buffer<double> alphas;  // padded by ones
    double least;           // a pivot that is rounding error
};

void hold_out(const comparisons& pairs, const double* targets, const item_path& path,
              const shifts& of, std::ptrdiff_t item, workspace& w, double* scores,
              std::ptrdiff_t n_places, double& held) {
    const auto rank = path.rank, columns = static_cast<std::ptrdiff_t>(of.alphas.size());
    const auto begin = pairs.offsets[item], n = pairs.offsets[item + 1] - begin;
    held = 0;
    if (n == 0) return;
    w.z.resize(n * rank);
    w.weighted.resize(n * rank);
    std::copy_n(path.projection, rank, w.rhs.begin());
    const double* const own = path.rows + item * rank;
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        const auto& at = pairs.places[begin + k];
        const double* const other = path.rows + at.partner * rank;
        const double weight = pairs.weight[at.pair], root = std::sqrt(weight);
        const double pull = weight * targets[at.pair];
        for (std::ptrdiff_t j = 0; j < rank; ++j) {
            const double value = at.sign * (own[j] - other[j]);
            w.z[k * rank + j] = value;
            w.weighted[k * rank + j] = root * value;
            w.rhs[j] -= pull * value;
        }
    }
    blas::syrk(rank, n, -1.0, w.weighted.data(), rank, 0.0, w.matrix.data(), rank);
    for (std::ptrdiff_t i = 0; i < rank; ++i) {
        double& diagonal = w.matrix[i * rank + i];
        if (-diagonal > (1 - all_but) * path.eigenvalues[i])
            held = std::max(held, path.eigenvalues[i]);
        diagonal += path.eigenvalues[i];
        for (std::ptrdiff_t j = 0; j < i; ++j) w.matrix[i * rank + j] = w.matrix[j * rank + i];
    }
    tridiagonalize(rank, w);
    for (std::ptrdiff_t k = 0; k + 1 < rank; ++k)
        reflect(rank - k - 1, 1, w.scale[k], w.matrix.data() + k * rank + k + 1,
                w.rhs.data() + k + 1, w.sums.data());
    solve_shifted(rank, columns, of.alphas.data(), of.least, w.diagonal.data(), w.beside.data(),
                  w.rhs.data(), w.pivots.data(), w.ratios.data(), w.solved.data(), w.lost.data());
    for (auto k = rank - 2; k >= 0; --k)
        reflect(rank - k - 1, columns, w.scale[k], w.matrix.data() + k * rank + k + 1,
                w.solved.data() + (k + 1) * columns, w.sums.data());
    w.scores.resize(n * columns);
    blas::gemm(trans::no, trans::no, n, columns, rank, 1.0, w.z.data(), rank, w.solved.data(),
               columns, 0.0, w.scores.data(), columns);
    for (std::ptrdiff_t j = 0; j < path.n_alphas; ++j)
        for (std::ptrdiff_t k = 0; k < n; ++k)
            scores[j * n_places + k] =
                w.lost[j] ? std::numeric_limits<double>::quiet_NaN() : w.scores[k * columns + j];
}

}  // namespace

void leave_items_out(const comparisons& pairs, const double* targets, const item_path& path,
                     std::ptrdiff_t first, std::ptrdiff_t last, double* scores, double* held,
                     int n_threads) {
    const auto rank = path.rank, columns = padded(path.n_alphas);
    const auto begin = pairs.offsets[first], n_places = pairs.offsets[last] - begin;
    shifts of{buffer<double>(columns, 1.0), 0.0};
    std::copy_n(path.alphas, path.n_alphas, of.alphas.begin());
    const double largest =
        rank == 0 ? 0.0 : *std::max_element(path.eigenvalues, path.eigenvalues + rank);
    of.least = std::numeric_limits<double>::epsilon() * static_cast<double>(rank) * largest;
    constexpr std::ptrdiff_t step = 8;
    parallel_for((last - first + step - 1) / step, n_threads, [&](std::ptrdiff_t task) {
        workspace w;
        w.matrix.resize(rank * rank);
        for (auto* row : {&w.product, &w.diagonal, &w.beside, &w.scale, &w.rhs}) row->resize(rank);
        for (auto* rows : {&w.pivots, &w.ratios, &w.solved}) rows->resize(rank * columns);
        w.sums.resize(std::max<std::ptrdiff_t>(columns, 1));
        w.lost.resize(columns);
        for (auto i = first + task * step; i < std::min(first + (task + 1) * step, last); ++i) {
            check_interrupt();
            hold_out(pairs, targets, path, of, i, w, scores + pairs.offsets[i] - begin, n_places,
                     held[i - first]);
        }
    });
}

}  // namespace pairgram
