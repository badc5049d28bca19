#include "linear_algebra/band_reduction.hpp"

#include <algorithm>

#include "linear_algebra/blas.hpp"
#include "linear_algebra/householder_panel.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"

namespace pairgram {

namespace {

using blas::trans;

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
    parallel_for(static_cast<std::ptrdiff_t>(tasks.size()), n_threads, work, [&] { done_.stop(); });
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
