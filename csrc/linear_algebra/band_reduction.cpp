#include "linear_algebra/band_reduction.hpp"

#include <algorithm>
#include <cmath>

#include "linear_algebra/blas.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t few = 8;            // rows that are reflected one by one
constexpr double smallest_squares = 1e-280;  // of a reflector

struct panel {
    std::ptrdiff_t n_rows, m;
    double* p;
    std::ptrdiff_t ld;
    double *v, *t;
    buffer<double> products, scaled;  // (n_rows, n_rows)

    double* row(std::ptrdiff_t i) const { return p + i * ld; }
    double* reflector(std::ptrdiff_t i) const { return v + i * m; }

    // Makes the reflection H_i = I - tau v vᵀ that turns row i into (beta, 0, ...) from entry i on;
    // returns tau.
    double reflect(std::ptrdiff_t i) const {
        double* const x = row(i) + i;
        double* const own = reflector(i);
        const auto n = m - i;
        const double squares = dot(n - 1, x + 1, x + 1), alpha = x[0];
        std::fill(own, own + i, 0.0);
        own[i] = 1;
        if (!(squares + alpha * alpha >= smallest_squares) || squares == 0) {
            std::fill(x + 1, x + n, 0.0);
            std::fill(own + i + 1, own + m, 0.0);
            return 0.0;
        }
        const double beta = -std::copysign(std::sqrt(alpha * alpha + squares), alpha);
        const double factor = 1 / (alpha - beta);
        for (std::ptrdiff_t k = 1; k < n; ++k) own[i + k] = x[k] *= factor;
        x[0] = beta;
        return (beta - alpha) / beta;
    }

    // Rows [first, last), at most a few, one by one.
    void factor_few(std::ptrdiff_t first, std::ptrdiff_t last) const {
        for (auto i = first; i < last; ++i) {
            const double tau = reflect(i);
            const double* const own = reflector(i) + i;
            const auto n = m - i;
            for (auto l = i + 1; l < last; ++l)
                add(n, -tau * dot(n, row(l) + i, own), own, row(l) + i);
            // column i of T: -tau T (Vᵀ v)
            double inner[few];
            for (auto l = first; l < i; ++l) inner[l - first] = dot(n, reflector(l) + i, own);
            for (auto k = first; k < i; ++k) {
                double sum = 0;
                for (auto l = k; l < i; ++l) sum += t[k * n_rows + l] * inner[l - first];
                t[k * n_rows + i] = -tau * sum;
            }
            t[i * n_rows + i] = tau;
        }
    }

    // Rows [begin, end) = the same times the reflections [first, last).
    void apply(std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t begin,
               std::ptrdiff_t end) {
        const auto k = last - first, n = end - begin, from = first;
        blas::gemm(trans::no, trans::yes, n, k, m - from, 1.0, row(begin) + from, ld,
                   reflector(first) + from, m, 0.0, products.data(), k);
        blas::gemm(trans::no, trans::no, n, k, k, 1.0, products.data(), k,
                   t + first * n_rows + first, n_rows, 0.0, scaled.data(), k);
        blas::gemm(trans::no, trans::no, n, m - from, k, -1.0, scaled.data(), k,
                   reflector(first) + from, m, 1.0, row(begin) + from, ld);
    }

    void factor(std::ptrdiff_t first, std::ptrdiff_t last) {
        if (last - first <= few) return factor_few(first, last);
        const auto middle = first + (last - first + 1) / 2;
        factor(first, middle);
        apply(first, middle, middle, last);
        factor(middle, last);
        // T = [T1, -T1 (V1ᵀ V2) T2; 0, T2]
        const auto n1 = middle - first, n2 = last - middle;
        blas::gemm(trans::no, trans::yes, n1, n2, m - middle, 1.0, reflector(first) + middle, m,
                   reflector(middle) + middle, m, 0.0, products.data(), n2);
        blas::gemm(trans::no, trans::no, n1, n2, n1, -1.0, t + first * n_rows + first, n_rows,
                   products.data(), n2, 0.0, scaled.data(), n2);
        blas::gemm(trans::no, trans::no, n1, n2, n2, 1.0, scaled.data(), n2,
                   t + middle * n_rows + middle, n_rows, 0.0, t + first * n_rows + middle, n_rows);
    }
};

// Makes row-major P (n_rows, m) lower trapezoidal by orthogonal H from the right, P = [L 0] Hᵀ,
// with H = H_1 ... H_k = I - V T Vᵀ and k = min(n_rows, m). L stays in P, and where P became 0 are
// the reflectors: row i holds column i of V, without the 0 before entry i and the 1 there. The same
// with these goes into rows (k, m), and T, upper triangular, into t, with row stride n_rows.
// 4 n_rows² m flops, by halves of the rows, so that most of them are products. Entries must be
// about 1 or smaller: what is below 1e-140 counts as 0.
void factor_panel(std::ptrdiff_t n_rows, std::ptrdiff_t m, double* p, std::ptrdiff_t ld,
                  double* rows, double* t) {
    const auto k = std::min(n_rows, m);
    std::fill(t, t + n_rows * n_rows, 0.0);
    panel own{n_rows, m, p, ld, rows, t, {}, {}};
    own.products.resize(n_rows * n_rows);
    own.scaled.resize(n_rows * n_rows);
    own.factor(0, k);
    if (k < n_rows) own.apply(0, k, k, n_rows);
}

// Rows of a strip, which is a task: a function of the order alone.
std::ptrdiff_t strip_width(std::ptrdiff_t n) {
    return std::clamp<std::ptrdiff_t>(n / 10 / 32 * 32, 64, 256);
}

// The reduction in progress. In block p, S is what is left of A, of order m; its first rows are
// those that block p + 1 reflects, and the first of its strips.
class reduction {
  public:
    reduction(std::ptrdiff_t n, std::ptrdiff_t width, double* a, double* factors)
        : n_(n),
          width_(width),
          strip_(strip_width(n)),
          n_blocks_(n_reflector_blocks(n, width)),
          a_(a),
          factors_(factors),
          done_(2 * n_blocks_ + 1) {
        for (auto& both : z_and_v_) both.resize(2 * width * std::max<std::ptrdiff_t>(n - width, 0));
    }

    void run(int n_threads);

  private:
    struct task {
        std::ptrdiff_t block;
        bool updates;
        std::ptrdiff_t strip;
    };

    std::ptrdiff_t first(std::ptrdiff_t block) const { return (block + 1) * width_; }
    std::ptrdiff_t order(std::ptrdiff_t block) const { return n_ - first(block); }
    std::ptrdiff_t rank(std::ptrdiff_t block) const { return std::min(width_, order(block)); }
    double* rest(std::ptrdiff_t block) const { return a_ + first(block) * (n_ + 1); }
    double* factor(std::ptrdiff_t block) const { return factors_ + block * width_ * width_; }
    // Z (rank, m) above V (rank, m), both transposed
    double* z(std::ptrdiff_t block) { return z_and_v_[block % 2].data(); }
    double* v(std::ptrdiff_t block) { return z(block) + rank(block) * order(block); }

    std::ptrdiff_t begin_of(std::ptrdiff_t block, std::ptrdiff_t strip) const {
        return strip == 0 ? 0 : std::min(width_ + (strip - 1) * strip_, order(block));
    }
    std::ptrdiff_t n_strips(std::ptrdiff_t block) const {
        const auto others = order(block) - width_;
        return 1 + (others > 0 ? (others + strip_ - 1) / strip_ : 0);
    }

    void reflect(std::ptrdiff_t block) {
        factor_panel(width_, order(block), a_ + (first(block) - width_) * n_ + first(block), n_,
                     v(block), factor(block));
    }
    void multiply(std::ptrdiff_t block, std::ptrdiff_t strip);
    void update(std::ptrdiff_t block, std::ptrdiff_t strip);

    std::ptrdiff_t n_, width_, strip_, n_blocks_;
    double *a_, *factors_;
    buffer<double> z_and_v_[2];  // of a block and the one before it
    buffer<double> inner_;       // Vᵀ Z of the rows of each strip, (n_strips, width, width)
    progress done_;              // 2 p: products of block p, 2 p + 1: its updates
};

// Columns of the strip of Zᵀ = Tᵀ Vᵀ S, and its share of Vᵀ Z.
void reduction::multiply(std::ptrdiff_t block, std::ptrdiff_t strip) {
    const auto m = order(block), k = rank(block), begin = begin_of(block, strip),
               end = begin_of(block, strip + 1), w = end - begin;
    const double* const s = rest(block);
    const double* const reflectors = v(block);
    buffer<double> own(w * w), product(k * w);
    for (std::ptrdiff_t i = 0; i < w; ++i)
        for (auto j = i; j < w; ++j)
            own[i * w + j] = own[j * w + i] = s[(begin + i) * n_ + begin + j];
    blas::gemm(trans::no, trans::no, k, w, w, 1.0, reflectors + begin, m, own.data(), w, 0.0,
               product.data(), w);
    if (begin > 0)
        blas::gemm(trans::no, trans::no, k, w, begin, 1.0, reflectors, m, s + begin, n_, 1.0,
                   product.data(), w);
    if (end < m)
        blas::gemm(trans::no, trans::yes, k, w, m - end, 1.0, reflectors + end, m,
                   s + begin * n_ + end, n_, 1.0, product.data(), w);
    double* const out = z(block) + begin;
    blas::gemm(trans::yes, trans::no, k, w, k, 1.0, factor(block), width_, product.data(), w, 0.0,
               out, m);
    blas::gemm(trans::no, trans::yes, k, k, w, 1.0, reflectors + begin, m, out, m, 0.0,
               inner_.data() + strip * width_ * width_, k);
}

// Rows of the strip of S = S - V Zᵀ - (Z - V X) Vᵀ with X = Tᵀ Vᵀ Z, from the diagonal on.
void reduction::update(std::ptrdiff_t block, std::ptrdiff_t strip) {
    const auto m = order(block), k = rank(block), begin = begin_of(block, strip),
               end = begin_of(block, strip + 1), w = end - begin;
    const double* const both = z(block);
    const double* const reflectors = v(block);
    double* const s = rest(block) + begin * (n_ + 1);
    buffer<double> sum(k * k), x(k * k), left(2 * k * w), own(w * w);
    for (std::ptrdiff_t i = 0; i < n_strips(block); ++i)
        for (std::ptrdiff_t j = 0; j < k * k; ++j) sum[j] += inner_[i * width_ * width_ + j];
    blas::gemm(trans::yes, trans::no, k, k, k, 1.0, factor(block), width_, sum.data(), k, 0.0,
               x.data(), k);
    for (std::ptrdiff_t i = 0; i < k; ++i) {
        std::copy_n(reflectors + i * m + begin, w, left.data() + i * w);
        std::copy_n(both + i * m + begin, w, left.data() + (k + i) * w);
    }
    blas::gemm(trans::yes, trans::no, k, w, k, -1.0, x.data(), k, left.data(), w, 1.0,
               left.data() + k * w, w);
    blas::gemm(trans::yes, trans::no, w, w, 2 * k, 1.0, left.data(), w, both + begin, m, 0.0,
               own.data(), w);
    for (std::ptrdiff_t i = 0; i < w; ++i)
        for (auto j = i; j < w; ++j) s[i * n_ + j] -= own[i * w + j];
    if (end < m)
        blas::gemm(trans::yes, trans::no, w, m - end, 2 * k, -1.0, left.data(), w, both + end, m,
                   1.0, s + w, n_);
}

void reduction::run(int n_threads) {
    if (n_blocks_ == 0) return;
    inner_.resize(n_strips(0) * width_ * width_);
    // In an order in which every task waits only for those before it.
    buffer<task> tasks;
    for (std::ptrdiff_t block = 0; block < n_blocks_; ++block)
        for (const bool updates : {false, true})
            for (std::ptrdiff_t strip = 0; strip < n_strips(block); ++strip)
                tasks.push_back({block, updates, strip});
    reflect(0);
    const auto work = [&](std::ptrdiff_t i) {
        const auto [block, updates, strip] = tasks[i];
        if (!updates) {
            if (block > 0 && !done_.wait(2 * block - 1, n_strips(block - 1))) return;
            multiply(block, strip);
            return done_.add(2 * block);
        }
        if (!done_.wait(2 * block, n_strips(block))) return;
        update(block, strip);
        if (strip == 0 && block + 1 < n_blocks_) reflect(block + 1);
        done_.add(2 * block + 1);
    };
    parallel_for(length_of(tasks), n_threads, work, [&] { done_.stop(); });
}

}  // namespace

std::ptrdiff_t n_reflector_blocks(std::ptrdiff_t n, std::ptrdiff_t width) {
    return std::max<std::ptrdiff_t>(n - 2, 0) / width;
}

void reduce_to_band(std::ptrdiff_t n, std::ptrdiff_t width, double* a, double* band,
                    double* factors, int n_threads) {
    reduction(n, width, a, factors).run(n_threads);
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const auto n_there = std::min(width + 1, n - j);
        double* const out = band + j * (width + 1);
        std::copy_n(a + j * (n + 1), n_there, out);
        std::fill(out + n_there, out + width + 1, 0.0);
    }
}

}  // namespace pairgram
