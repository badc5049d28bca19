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

// A run of whole queries that fits the cache, or a part of a query that does not.
struct piece {
    std::ptrdiff_t begin, end;               // rows
    std::ptrdiff_t first_query, last_query;  // equal for a part of a long query
};

template <class T>
std::ptrdiff_t rows_per_piece(const matrix_rows<T>& rows, std::ptrdiff_t bytes) {
    const auto row_bytes =
        std::max<std::ptrdiff_t>(1, rows.width) * static_cast<std::ptrdiff_t>(sizeof(T));
    return std::max<std::ptrdiff_t>(4, bytes / row_bytes / 4 * 4);
}

void cut_rows(std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t step, buffer<piece>& out) {
    for (; begin < end; begin += step) out.push_back({begin, std::min(begin + step, end), 0, 0});
}

// Calls use(piece, sum) for every piece and adds up the slots' sums (width,) into out.
template <class Use>
void sum_in_slots(const buffer<piece>& pieces, std::ptrdiff_t width, double* out, int n_threads,
                  const Use& use) {
    const auto n = static_cast<std::ptrdiff_t>(pieces.size());
    const auto used = std::min(n_slots, n);
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

template <class T>
int threads_for(const matrix_rows<T>& rows, int n_threads, std::ptrdiff_t n_models = 1) {
    return rows.n_rows * rows.width * n_models < threaded_values ? 1 : n_threads;
}

}  // namespace

template <class T>
void score_rows(const matrix_rows<T>& rows, const linear_models& models, double* scores,
                int n_threads) {
    const auto step = rows_per_piece(rows, piece_bytes);
    parallel_for((rows.n_rows + step - 1) / step, threads_for(rows, n_threads, models.size()),
                 [&](std::ptrdiff_t p) {
                     models.score(rows, p * step, std::min((p + 1) * step, rows.n_rows), scores,
                                  rows.n_rows);
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

template <class T>
void sum_rows(const matrix_rows<T>& rows, const double* z, double* out, int n_threads) {
    buffer<piece> pieces;
    cut_rows(0, rows.n_rows, rows_per_piece(rows, piece_bytes), pieces);
    std::fill(out, out + rows.width, 0.0);
    sum_in_slots(pieces, rows.width, out, threads_for(rows, n_threads),
                 [&](const piece& p, double* sum) { add_rows(rows, p.begin, p.end, z, sum); });
}

template <class T>
void hessian_product(const pair_operator& pairs, const matrix_rows<T>& rows, const double* s,
                     double* scores, double* out, int n_threads) {
    n_threads = threads_for(rows, n_threads);
    const auto step = rows_per_piece(rows, piece_bytes);
    const auto cached = rows_per_piece(rows, cached_bytes);
    buffer<piece> whole, parts;
    buffer<std::ptrdiff_t> long_queries;
    for (std::ptrdiff_t q = 0; q < pairs.n_queries(); ++q) {
        const auto begin = pairs.first_row(q), end = pairs.first_row(q + 1);
        if (!pairs.has_pairs(q)) {
            std::fill(scores + begin, scores + end, 0.0);
        } else if (end - begin > cached) {
            long_queries.push_back(q);
            cut_rows(begin, end, step, parts);
        } else if (!whole.empty() && whole.back().last_query == q &&
                   end - whole.back().begin <= step) {
            whole.back().end = end;
            whole.back().last_query = q + 1;
        } else {
            whole.push_back({begin, end, q, q + 1});
        }
    }
    const linear_models model(1, rows.width, s);
    buffer<double> z(rows.n_rows);
    std::fill(out, out + rows.width, 0.0);
    sum_in_slots(whole, rows.width, out, n_threads, [&](const piece& p, double* sum) {
        model.score(rows, p.begin, p.end, scores, rows.n_rows);
        pairs.product(p.first_query, p.last_query, scores + p.begin, z.data() + p.begin);
        add_rows(rows, p.begin, p.end, z.data(), sum);
    });
    if (long_queries.empty()) return;
    const auto n_parts = static_cast<std::ptrdiff_t>(parts.size());
    parallel_for(n_parts, n_threads, [&](std::ptrdiff_t p) {
        model.score(rows, parts[p].begin, parts[p].end, scores, rows.n_rows);
    });
    parallel_for(static_cast<std::ptrdiff_t>(long_queries.size()), n_threads,
                 [&](std::ptrdiff_t i) {
                     const auto q = long_queries[i], begin = pairs.first_row(q);
                     pairs.product(q, q + 1, scores + begin, z.data() + begin);
                 });
    sum_in_slots(parts, rows.width, out, n_threads, [&](const piece& p, double* sum) {
        add_rows(rows, p.begin, p.end, z.data(), sum);
    });
}

#define PAIRGRAM_ROW_PRODUCTS(T)                                                                 \
    template void score_rows<T>(const matrix_rows<T>&, const linear_models&, double*, int);      \
    template void sum_rows<T>(const matrix_rows<T>&, const double*, double*, int);               \
    template void add_rows<T>(const matrix_rows<T>&, std::ptrdiff_t, std::ptrdiff_t,             \
                              const double*, double*);                                           \
    template void hessian_product<T>(const pair_operator&, const matrix_rows<T>&, const double*, \
                                     double*, double*, int);
PAIRGRAM_ROW_PRODUCTS(double)
PAIRGRAM_ROW_PRODUCTS(float)

}  // namespace pairgram
