#include "solvers/row_products.hpp"

#include <algorithm>

#include "data/query_rows.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t n_slots = 32;               // partial sums, whatever the number of threads
constexpr std::ptrdiff_t piece_bytes = 1 << 18;      // of rows that are read for one product
constexpr std::ptrdiff_t cached_bytes = 1 << 22;     // of a query that is read once for both
constexpr std::ptrdiff_t threaded_values = 1 << 17;  // fewer take less time than a thread's start
constexpr std::ptrdiff_t few_queries = 8;            // do not occupy all threads
constexpr std::ptrdiff_t sparse_rows_at_once = 4096;

// out += z[0] a + z[1] b + z[2] c + z[3] d.
template <class T>
PAIRGRAM_CLONES void add_four(std::ptrdiff_t width, const T* a, const T* b, const T* c, const T* d,
                              const double* z, double* out) {
    const double za = z[0], zb = z[1], zc = z[2], zd = z[3];
    for (std::ptrdiff_t j = 0; j < width; ++j)
        out[j] += (za * static_cast<double>(a[j]) + zb * static_cast<double>(b[j])) +
                  (zc * static_cast<double>(c[j]) + zd * static_cast<double>(d[j]));
}

// Four rows from position i; behind the last row, the last again.
template <class T, class Use>
void by_fours(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end,
              const Use& use) {
    for (auto i = begin; i < end; i += 4) {
        const auto last = end - 1;
        use(i, std::min<std::ptrdiff_t>(4, end - i), rows(i), rows(std::min(i + 1, last)),
            rows(std::min(i + 2, last)), rows(std::min(i + 3, last)));
    }
}

template <class T>
std::ptrdiff_t rows_per_piece(std::ptrdiff_t width, std::ptrdiff_t bytes) {
    const auto row_bytes =
        std::max<std::ptrdiff_t>(1, width) * static_cast<std::ptrdiff_t>(sizeof(T));
    return std::max<std::ptrdiff_t>(4, bytes / row_bytes / 4 * 4);
}

void cut_rows(std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t step, buffer<piece>& out) {
    for (; begin < end; begin += step) out.push_back({begin, std::min(begin + step, end), 0, 0});
}

// Calls use(piece, sum) for every piece and adds up the slots' sums (width,) into out.
template <class Use>
void sum_in_slots(const buffer<piece>& pieces, std::ptrdiff_t width, double* out, int n_threads,
                  const Use& use) {
    const auto n = length_of(pieces);
    const auto used = std::min(n_slots, n);
    if (used == 1) return use(pieces[0], out);
    buffer<double> slots(used * width, 0.0);
    parallel_for(used, n_threads, [&](std::ptrdiff_t slot) {
        for (auto p = slot; p < n; p += n_slots) {
            check_interrupt();
            use(pieces[p], slots.data() + slot * width);
        }
    });
    for (std::ptrdiff_t slot = 0; slot < used; ++slot)
        for (std::ptrdiff_t j = 0; j < width; ++j) out[j] += slots[slot * width + j];
}

}  // namespace

template <class T>
void score_rows(const matrix_rows<T>& rows, const linear_models& models, double* scores,
                int n_threads) {
    const auto step = rows_per_piece<T>(rows.width, piece_bytes);
    const auto n_values = rows.n_rows * rows.width * models.size();
    parallel_parts(rows.n_rows, step, n_values < threaded_values ? 1 : n_threads,
                   [&](std::ptrdiff_t begin, std::ptrdiff_t size) {
                       models.score(rows, begin, begin + size, scores, rows.n_rows);
                   });
}

template <class T>
void add_rows(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end, const double* z,
              double* out) {
    by_fours(
        rows, begin, end,
        [&](std::ptrdiff_t i, std::ptrdiff_t n, const T* a, const T* b, const T* c, const T* d) {
            double four[4] = {};
            std::copy_n(z + i, n, four);
            if (std::any_of(four, four + 4, [](double x) { return x != 0; }))
                add_four(rows.width, a, b, c, d, four, out);
        });
}

void row_features::hessian_product(const score_loss& loss, const double* s, double* scores,
                                   double* out, int n_threads) const {
    buffer<double> z(n_rows_);
    score(s, scores, n_threads);
    loss.product(scores, z.data(), n_threads);
    sum(z.data(), out, n_threads);
}

template <class T>
dense_features<T>::dense_features(const matrix_rows<T>& rows)
    : row_features(rows.n_rows, rows.width),
      stored_(rows),
      at_once_(rows_per_piece<T>(rows.width, piece_bytes)),
      cached_(rows_per_piece<T>(rows.width, cached_bytes)) {}

template <class T>
dense_features<T>::dense_features(std::ptrdiff_t n_rows, std::ptrdiff_t width,
                                  std::ptrdiff_t at_once, maker make)
    : row_features(n_rows, width),
      stored_{n_rows, width, nullptr, nullptr},
      make_(std::move(make)),
      at_once_(at_once),
      cached_(at_once) {}

// The rows at positions begin to end, at positions from 0 on.
template <class T>
matrix_rows<T> dense_features<T>::rows(std::ptrdiff_t begin, std::ptrdiff_t end,
                                       buffer<T>& made) const {
    if (make_) {
        made.resize((end - begin) * width());
        make_(begin, end, made.data());
        return {end - begin, width(), made.data(), nullptr};
    }
    if (stored_.order) return {end - begin, width(), stored_.values, stored_.order + begin};
    return {end - begin, width(), stored_.values + begin * width(), nullptr};
}

template <class T>
bool dense_features<T>::is_small() const {
    return !make_ && n_rows() * width() < threaded_values;
}

template <class T>
int dense_features<T>::threads(int n_threads) const {
    return make_ || is_small() ? 1 : n_threads;
}

template <class T>
void dense_features<T>::score(const double* w, double* scores, int n_threads) const {
    const linear_models model(1, width(), w);
    parallel_parts(n_rows(), at_once_, threads(n_threads), [&](auto begin, std::ptrdiff_t size) {
        buffer<T> made;
        model.score(rows(begin, begin + size, made), 0, size, scores + begin, size);
    });
}

template <class T>
void dense_features<T>::sum(const double* z, double* out, int n_threads) const {
    buffer<piece> pieces;
    cut_rows(0, n_rows(), at_once_, pieces);
    std::fill(out, out + width(), 0.0);
    sum_in_slots(pieces, width(), out, threads(n_threads), [&](const piece& p, double* sum) {
        buffer<T> made;
        add_rows(rows(p.begin, p.end, made), 0, p.end - p.begin, z + p.begin, sum);
    });
}

template <class T>
void dense_features<T>::hessian_product(const score_loss& loss, const double* s, double* scores,
                                        double* out, int n_threads) const {
    buffer<piece> pieces;
    std::ptrdiff_t longest = 0;
    for (std::ptrdiff_t q = 0; q < loss.n_queries(); ++q) {
        const auto begin = loss.first_row(q), end = loss.first_row(q + 1);
        if (!loss.has_pairs(q)) {
            std::fill(scores + begin, scores + end, 0.0);
            continue;
        }
        longest = std::max(longest, end - begin);
        if (!pieces.empty() && pieces.back().last_query == q &&
            end - pieces.back().begin <= at_once_) {
            pieces.back().end = end;
            pieces.back().last_query = q + 1;
        } else {
            pieces.push_back({begin, end, q, q + 1});
        }
    }
    const bool is_long = longest > cached_ && (make_ || longest > n_rows() / few_queries);
    if (is_long || (loss.n_queries() == 1 && !make_))
        return row_features::hessian_product(loss, s, scores, out, n_threads);
    const linear_models model(1, width(), s);
    buffer<double> z(n_rows());
    std::fill(out, out + width(), 0.0);
    sum_in_slots(pieces, width(), out, threads(n_threads), [&](const piece& p, double* sum) {
        buffer<T> made;
        const auto part = rows(p.begin, p.end, made);
        model.score(part, 0, part.n_rows, scores + p.begin, part.n_rows);
        loss.product(p.first_query, p.last_query, scores + p.begin, z.data() + p.begin);
        add_rows(part, 0, part.n_rows, z.data() + p.begin, sum);
    });
}

void sparse_features::score(const double* w, double* scores, int n_threads) const {
    parallel_parts(n_rows(), sparse_rows_at_once, n_threads, [&](auto begin, std::ptrdiff_t size) {
        for (auto i = begin; i < begin + size; ++i) {
            double sum = 0;
            for (auto e = rows_.begin(i); e < rows_.begin(i + 1); ++e)
                sum += rows_.values[e] * w[rows_.columns[e]];
            scores[i] = sum;
        }
    });
}

void sparse_features::sum(const double* z, double* out, int) const {
    std::fill(out, out + width(), 0.0);
    for (std::ptrdiff_t i = 0; i < n_rows(); ++i)
        for (auto e = z[i] == 0 ? rows_.begin(i + 1) : rows_.begin(i); e < rows_.begin(i + 1); ++e)
            out[rows_.columns[e]] += rows_.values[e] * z[i];
}

void whitened_features::score(const double* w, double* scores, int n_threads) const {
    buffer<double> inner(rows_.width());
    w_.score(w, inner.data(), n_threads);
    rows_.score(inner.data(), scores, n_threads);
}

void whitened_features::sum(const double* z, double* out, int n_threads) const {
    buffer<double> inner(rows_.width());
    rows_.sum(z, inner.data(), n_threads);
    w_.sum(inner.data(), out, n_threads);
}

void whitened_features::hessian_product(const score_loss& loss, const double* s, double* scores,
                                        double* out, int n_threads) const {
    buffer<double> inner(rows_.width()), total(rows_.width());
    w_.score(s, inner.data(), n_threads);
    rows_.hessian_product(loss, inner.data(), scores, total.data(), n_threads);
    w_.sum(total.data(), out, n_threads);
}

PAIRGRAM_FOR_BOTH_WIDTHS(score_rows);
PAIRGRAM_FOR_BOTH_WIDTHS(add_rows);
template class dense_features<double>;
template class dense_features<float>;

}  // namespace pairgram
