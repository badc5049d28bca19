#include "solvers/hold_out_band.hpp"

#include <algorithm>
#include <limits>

#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t columns_of_batch = 192;  // of folds that are solved together
constexpr std::ptrdiff_t rows_of_piece = 128;     // of Z, which are held at once
constexpr std::ptrdiff_t columns_of_product = 256;
constexpr double smallest_pivot = 5e-11;  // of alpha C_qq: below, the solution is rounding error

// Forward substitution with one factor, as products: a few rows of Z = L⁻¹ X at a time are
// W_i [Z_before; X_i] with the `width` rows of Z before them.
class forward {
  public:
    // Takes lane k of the factors.
    forward(const band_matrix& band, const buffer<lanes>& factors, int k)
        : n_(band.n),
          width_(band.width),
          tile_(cached_tile()),
          blocks_((n_ + step() - 1) / step() * size(), 0.0) {
        for (std::ptrdiff_t begin = 0; begin < n_; begin += step()) fill(begin, factors, k);
    }

    std::ptrdiff_t step() const { return tile_.rows; }

    // Rows [begin, end) of Z in place of X, which follow `width` rows of Z in x, of m columns.
    // There are rows for whole steps.
    void solve(std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t m, double* x) const {
        buffer<double> out(step() * tile_.columns);
        for (std::ptrdiff_t j = 0; j < m; j += tile_.columns)
            for (auto i = begin; i < end; i += step()) {
                double* const from = x + (i - begin) * m + j;
                std::fill(out.begin(), out.end(), 0.0);
                add_cached_product(step(), tile_.columns, width_ + step(), 1.0,
                                   {blocks_.data() + i / step() * size(), 1, step()}, from, m,
                                   out.data(), tile_.columns);
                for (std::ptrdiff_t r = 0; r < step(); ++r)
                    std::copy_n(out.data() + r * tile_.columns, tile_.columns,
                                from + (width_ + r) * m);
            }
    }

  private:
    std::ptrdiff_t size() const { return step() * (width_ + step()); }

    // [-L_ii⁻¹ L_i,before, L_ii⁻¹], transposed. Row r is (e_r - Σ_c L(r, c) row c) / L(r, r).
    void fill(std::ptrdiff_t begin, const buffer<lanes>& factors, int k) {
        const auto n_rows = std::min(step(), n_ - begin);
        double* const out = blocks_.data() + begin / step() * size();
        const auto at = [&](std::ptrdiff_t r, std::ptrdiff_t c) -> double& {
            return out[c * step() + r];
        };
        for (std::ptrdiff_t r = 0; r < n_rows; ++r) {
            const auto l = [&](std::ptrdiff_t d) {  // L(r, r - d)
                return factors[(begin + r - d) * (width_ + 1) + d].of[k];
            };
            const auto there = std::min(width_, begin + r);
            for (auto d = r + 1; d <= there; ++d) at(r, width_ + r - d) = -l(d);
            at(r, width_ + r) = 1;
            for (std::ptrdiff_t d = 1; d <= std::min(there, r); ++d)
                for (std::ptrdiff_t c = 0; c < width_ + r; ++c) at(r, c) -= l(d) * at(r - d, c);
            for (std::ptrdiff_t c = 0; c <= width_ + r; ++c) at(r, c) /= l(0);
        }
    }

    std::ptrdiff_t n_, width_;
    tile_shape tile_;
    buffer<double> blocks_;
};

// Whole folds that are solved together.
struct batch {
    std::ptrdiff_t first, last;
};

buffer<batch> batches_of(const band_folds& folds) {
    buffer<batch> out;
    std::ptrdiff_t n_columns = 0;
    for (std::ptrdiff_t f = 0; f < folds.n_folds; ++f) {
        const auto size = folds.row_offsets[f + 1] - folds.row_offsets[f] +
                          folds.point_offsets[f + 1] - folds.point_offsets[f];
        if (out.empty() || (n_columns > 0 && n_columns + size > columns_of_batch)) {
            out.push_back({f, f});
            n_columns = 0;
        }
        out.back().last = f + 1;
        n_columns += size;
    }
    return out;
}

// The columns of a batch, fold after fold, its rows and then its points; column m is the target.
class batch_columns {
  public:
    batch_columns(const band_folds& folds, const double* points, const batch& own)
        : folds_(folds), points_(points), own_(own) {
        for (auto f = own.first; f < own.last; ++f) {
            begins_.push_back(m_);
            m_ += n_rows(f) + n_points(f);
        }
        begins_.push_back(m_);
        for (auto f = own.first; f < own.last; ++f)
            squares_.emplace_back(size(f) * in_column_groups(size(f)), 0.0);
        products_.assign(m_, 0.0);
    }

    void add(const forward& factor);
    // Writes the results of one alpha.
    void finish(double alpha, double* residuals, double* levels);

  private:
    std::ptrdiff_t n_rows(std::ptrdiff_t f) const {
        return folds_.row_offsets[f + 1] - folds_.row_offsets[f];
    }
    std::ptrdiff_t n_points(std::ptrdiff_t f) const {
        return folds_.point_offsets[f + 1] - folds_.point_offsets[f];
    }
    std::ptrdiff_t begin(std::ptrdiff_t f) const { return begins_[f - own_.first]; }
    std::ptrdiff_t size(std::ptrdiff_t f) const { return begins_[f - own_.first + 1] - begin(f); }
    void load(std::ptrdiff_t i, double* out) const;

    const band_folds& folds_;
    const double* points_;  // (n, n_points), Qᵀ k in columns
    batch own_;
    std::ptrdiff_t m_ = 0;
    buffer<std::ptrdiff_t> begins_;
    buffer<buffer<double>> squares_;  // Zᵀ Z of each fold, with its points: the upper triangle
    buffer<double> products_;         // Zᵀ L⁻¹ Qᵀ t
};

// Upper triangle of row-major `out` (m, m; whole groups of columns) += Zᵀ Z of n rows, behind whose
// m columns others follow.
void add_squares(std::ptrdiff_t n, const double* z, std::ptrdiff_t ld, std::ptrdiff_t m,
                 double* out) {
    const auto width = in_column_groups(m);
    for (std::ptrdiff_t i = 0; i < m; i += column_group)
        add_cached_product(std::min(column_group, m - i), width - i, n, 1.0, {z + i, 1, ld}, z + i,
                           ld, out + i * (width + 1), width);
}

// Row i of X: of Qᵀ in the columns of the rows, and of the points.
void batch_columns::load(std::ptrdiff_t i, double* out) const {
    const double* const of_rows = folds_.basis + i * folds_.band.n;
    const double* const of_points = points_ + i * folds_.n_points;
    for (auto f = own_.first; f < own_.last; ++f) {
        for (auto r = folds_.row_offsets[f]; r < folds_.row_offsets[f + 1]; ++r)
            *out++ = of_rows[folds_.rows[r]];
        for (auto p = folds_.point_offsets[f]; p < folds_.point_offsets[f + 1]; ++p)
            *out++ = of_points[p];
    }
    *out = folds_.target[i];
}

void batch_columns::add(const forward& factor) {
    const auto n = folds_.band.n, width = folds_.band.width;
    const auto tile = cached_tile().columns;  // of which columns are padded to whole ones
    const auto ld = (m_ + 1 + column_group + tile - 1) / tile * tile;
    buffer<double> z((width + rows_of_piece) * ld, 0.0);
    for (std::ptrdiff_t begin = 0; begin < n; begin += rows_of_piece) {
        check_interrupt();
        const auto end = std::min(begin + rows_of_piece, n), n_own = end - begin;
        double* const solved = z.data() + width * ld;
        for (std::ptrdiff_t i = 0; i < n_own; ++i) load(begin + i, solved + i * ld);
        factor.solve(begin, end, ld, z.data());
        for (auto f = own_.first; f < own_.last; ++f)
            add_squares(n_own, solved + this->begin(f), ld, size(f),
                        squares_[f - own_.first].data());
        for (std::ptrdiff_t i = 0; i < n_own; ++i)
            for (std::ptrdiff_t j = 0; j < m_; ++j)
                products_[j] += solved[i * ld + m_] * solved[i * ld + j];
        std::copy(z.begin() + n_own * ld, z.begin() + (n_own + width) * ld, z.begin());
    }
}

void batch_columns::finish(double alpha, double* residuals, double* levels) {
    buffer<double> system, x;
    for (auto f = own_.first; f < own_.last; ++f) {
        const auto k = n_rows(f), all = in_column_groups(size(f));
        const double* const square = squares_[f - own_.first].data();
        const double* const product = products_.data() + begin(f);
        system.resize(k * k);
        x.resize(k);
        for (std::ptrdiff_t i = 0; i < k; ++i) {
            for (auto j = i; j < k; ++j) system[j * k + i] = alpha * square[i * all + j];
            x[i] = alpha * product[i];
        }
        const bool solved =
            k == 0 || blas::cholesky_solve(k, system.data(), x.data()) >= smallest_pivot;
        if (!solved) std::fill(x.begin(), x.end(), std::numeric_limits<double>::quiet_NaN());
        std::copy(x.begin(), x.begin() + k, residuals + folds_.row_offsets[f]);
        for (std::ptrdiff_t p = 0; p < n_points(f); ++p) {
            double level = product[k + p];
            for (std::ptrdiff_t i = 0; i < k; ++i) level -= square[i * all + k + p] * x[i];
            levels[folds_.point_offsets[f] + p] = level;
        }
    }
}

// The points in the coordinates of B, Qᵀ k in columns.
buffer<double> rotated(const band_folds& folds, int n_threads) {
    const auto n = folds.band.n, n_points = folds.n_points;
    buffer<double> out(n * n_points);
    parallel_parts(n, columns_of_product, n_threads, [&](auto begin, std::ptrdiff_t n_own) {
        blas::gemm(trans::no, trans::yes, n_own, n_points, n, 1.0, folds.basis + begin * n, n,
                   folds.points, n, 0.0, out.data() + begin * n_points, n_points);
    });
    return out;
}

}  // namespace

bool hold_out_band(const band_folds& folds, double* residuals, double* levels, int n_threads) {
    const auto points = rotated(folds, n_threads);
    const auto batches = batches_of(folds);
    const auto n_batches = length_of(batches);
    for (std::ptrdiff_t first = 0; first < folds.n_alphas; first += band_lanes) {
        const auto n_own = std::min(band_lanes, folds.n_alphas - first);
        buffer<forward> solvers;
        {
            double own[band_lanes];
            for (std::ptrdiff_t k = 0; k < band_lanes; ++k)
                own[k] = folds.alphas[first + std::min(k, n_own - 1)];
            buffer<lanes> factors;
            if (factor_shifted(folds.band, 1.0, own, factors) + 1 != 1u << band_lanes) return false;
            for (int k = 0; k < n_own; ++k) solvers.emplace_back(folds.band, factors, k);
        }
        parallel_for(n_batches * n_own, n_threads, [&](std::ptrdiff_t task) {
            const auto k = task % n_own, at = first + k;
            batch_columns columns(folds, points.data(), batches[task / n_own]);
            columns.add(solvers[k]);
            columns.finish(folds.alphas[at], residuals + at * folds.n_rows,
                           levels + at * folds.n_points);
        });
    }
    return true;
}

}  // namespace pairgram
