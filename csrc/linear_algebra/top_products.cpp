#include "linear_algebra/top_products.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "linear_algebra/blas.hpp"
#include "linear_algebra/row_scores.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t least_rows = 8, most_rows = 64;  // of a block of the product
constexpr std::ptrdiff_t columns_together = 1024;
constexpr std::ptrdiff_t lanes = 32;  // looked at together

struct scored {
    double score;
    std::int64_t column;
};

bool is_better(const scored& x, const scored& y) {
    return x.score > y.score || (x.score == y.score && x.column < y.column);
}

// flags[c] = whether any value of group c of lanes reaches the bar.
PAIRGRAM_CLONES void flag_groups(std::ptrdiff_t n, const float* values, float bar,
                                 std::uint8_t* flags) {
    std::ptrdiff_t begin = 0;
    for (; begin + lanes <= n; begin += lanes) {
        int reached = 0;
        for (std::ptrdiff_t j = 0; j < lanes; ++j) reached |= values[begin + j] >= bar;
        *flags++ = static_cast<std::uint8_t>(reached);
    }
    if (begin < n) *flags = 1;
}

double norm(std::ptrdiff_t n, const double* x) { return std::sqrt(dot(n, x, x)); }

// The k best of one row so far: a heap of which the worst is on top.
class best_columns {
  public:
    best_columns(std::ptrdiff_t k, std::ptrdiff_t width, const double* row, const double* all,
                 double scale, float slack, const std::int64_t* first_out,
                 const std::int64_t* last_out)
        : k_(k),
          width_(width),
          all_(all),
          row_scale_(scale),
          slack_(slack),
          first_out_(first_out),
          last_out_(last_out),
          model_(1, width, row) {}

    // Takes what may be among the best of n columns, whose products, scaled, stand in values.
    void look_at(std::ptrdiff_t first, std::ptrdiff_t n, const float* values, double scale) {
        scale_ = row_scale_ * scale;
        set_bar();
        std::uint8_t flags[columns_together / lanes];
        flag_groups(n, values, bar_, flags);
        for (std::ptrdiff_t group = 0; group * lanes < n; ++group)
            for (auto j = group * lanes; flags[group] && j < std::min((group + 1) * lanes, n); ++j)
                if (values[j] >= bar_) take(first + j);
    }

    void store(std::int64_t* columns, double* scores) {
        std::sort_heap(heap_.begin(), heap_.end(), is_better);
        for (std::ptrdiff_t i = 0; i < k_; ++i) {
            const bool there = i < length_of(heap_);
            columns[i] = there ? heap_[i].column : -1;
            scores[i] = there ? heap_[i].score : std::numeric_limits<double>::quiet_NaN();
        }
    }

  private:
    void take(std::int64_t column) {
        if (std::binary_search(first_out_, last_out_, column)) return;
        const matrix_rows<double> one{1, width_, all_ + column * width_, nullptr};
        scored found{0, column};
        model_.score(one, 0, 1, &found.score, 1);
        if (std::isnan(found.score))  // of parts that overflow, which callers are to see
            found.score = std::numeric_limits<double>::infinity();
        if (length_of(heap_) == k_) {
            if (!is_better(found, heap_.front())) return;
            std::pop_heap(heap_.begin(), heap_.end(), is_better);
            heap_.back() = found;
        } else {
            heap_.push_back(found);
        }
        std::push_heap(heap_.begin(), heap_.end(), is_better);
        set_bar();
    }

    // All columns are looked at while there are fewer than k, and if the scale has lost its digits.
    void set_bar() {
        bar_ = -std::numeric_limits<float>::infinity();
        if (length_of(heap_) == k_ && std::isnormal(scale_)) {
            const double least = std::clamp(heap_.front().score * scale_, -2.0, 2.0);
            bar_ = static_cast<float>(least) - slack_;
        }
    }

    std::ptrdiff_t k_, width_;
    const double* all_;
    double row_scale_, scale_ = 0;  // of products
    float slack_;
    float bar_ = 0;  // of products in float, scaled, which are at most 1
    const std::int64_t *first_out_, *last_out_;
    linear_models model_;
    buffer<scored> heap_;
};

// out (n, width) = rows times a scale, in float.
void narrow(std::ptrdiff_t n, std::ptrdiff_t width, const double* rows, double scale, float* out) {
    for (std::ptrdiff_t i = 0; i < n * width; ++i) out[i] = static_cast<float>(rows[i] * scale);
}

// 0 for a norm whose squares have lost digits.
double inverse(double norm) { return norm > 1e-150 ? 1 / norm : 0.0; }

}  // namespace

void top_products(std::ptrdiff_t n_rows, std::ptrdiff_t n_columns, std::ptrdiff_t width,
                  const double* a, const double* b, std::ptrdiff_t k, const left_out& without,
                  std::int64_t* columns, double* scores, int n_threads) {
    const auto n_strips = (n_columns + columns_together - 1) / columns_together;
    const std::unique_ptr<float[]> narrow_b(new float[size_of(n_columns * width)]);  // not filled
    buffer<double> scales(n_strips);  // of the strips of b, so that all products are at most 1
    parallel_parts(n_columns, columns_together, n_threads, [&](auto first, std::ptrdiff_t n) {
        const auto strip = first / columns_together;
        const double* const rows = b + first * width;
        double largest = 0;
        for (std::ptrdiff_t j = 0; j < n; ++j)
            largest = std::max(largest, norm(width, rows + j * width));
        scales[strip] = inverse(largest);
        narrow(n, width, rows, scales[strip], narrow_b.get() + first * width);
    });
    // Rounding of both factors, of a sum of `width` products, and of the bar itself.
    const float slack = static_cast<float>(width + 8) * std::numeric_limits<float>::epsilon();
    constexpr std::int64_t nothing = 0;
    const auto share = (n_rows + n_threads - 1) / n_threads;
    const auto rows_together = std::clamp(share, least_rows, most_rows);
    parallel_parts(n_rows, rows_together, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t n) {
        buffer<float> narrow_a(n * width), product(n * columns_together);
        std::vector<best_columns> best;
        best.reserve(size_of(n));
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const double* const row = a + (first + i) * width;
            const double scale = inverse(norm(width, row));
            narrow(1, width, row, scale, narrow_a.data() + i * width);
            const auto* const begin = without.indptr ? without.columns : &nothing;
            best.emplace_back(k, width, row, b, scale, slack,
                              begin + (without.indptr ? without.indptr[first + i] : 0),
                              begin + (without.indptr ? without.indptr[first + i + 1] : 0));
        }
        for (std::ptrdiff_t strip = 0; strip < n_columns; strip += columns_together) {
            check_interrupt();
            const auto size = std::min(columns_together, n_columns - strip);
            blas::gemm(trans::no, trans::yes, n, size, width, 1.0F, narrow_a.data(), width,
                       narrow_b.get() + strip * width, width, 0.0F, product.data(),
                       columns_together);
            for (std::ptrdiff_t i = 0; i < n; ++i)
                best[size_of(i)].look_at(strip, size, product.data() + i * columns_together,
                                         scales[strip / columns_together]);
        }
        for (std::ptrdiff_t i = 0; i < n; ++i)
            best[size_of(i)].store(columns + (first + i) * k, scores + (first + i) * k);
    });
}

}  // namespace pairgram
