#include "solvers/cross_pairs.hpp"

#include <algorithm>
#include <type_traits>

#include "linear_algebra/blas.hpp"
#include "linear_algebra/row_scores.hpp"
#include "solvers/blocks.hpp"
#include "solvers/row_products.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t most_run_rows = 4096;    // longer runs are cut, to be shared by threads
constexpr std::ptrdiff_t long_rows = 1 << 13;     // a query with more is shared among threads
constexpr std::ptrdiff_t chunk_values = 1 << 21;  // of what a chunk makes of every run
constexpr std::ptrdiff_t most_runs = 1 << 12;     // in a chunk
constexpr std::ptrdiff_t block_rows = 256;        // that are mapped together
constexpr std::ptrdiff_t tile_rows = 64, tile_columns = 256;  // of a product, for a thread
constexpr std::ptrdiff_t n_columns = 8;                       // that L is applied to from cache
constexpr std::ptrdiff_t task_values = 1 << 14;               // of the right side, for a thread
constexpr std::ptrdiff_t few_values = 1 << 19;  // products of fewer are left to one thread

// One thread for few products, which take less time than the start of threads.
template <class T>
int threads_for(const cross_rows<T>& rows, std::ptrdiff_t n_vectors, int n_threads) {
    const auto n_runs = length_of(rows.runs);
    const auto values = rows.n_rows() * rows.width() + n_runs * rows.n_left * rows.n_right;
    return n_vectors * values < few_values ? 1 : n_threads;
}

struct tile {
    std::ptrdiff_t row, n_rows, column, n_columns;
};

// Calls task(number, tile) for tiles of every one of some matrices (m, n).
template <class Task>
void by_tiles(std::ptrdiff_t n_matrices, std::ptrdiff_t m, std::ptrdiff_t n, int n_threads,
              const Task& task) {
    const auto down = (m + tile_rows - 1) / tile_rows,
               across = (n + tile_columns - 1) / tile_columns;
    parallel_for(n_matrices * down * across, n_threads, [&](std::ptrdiff_t t) {
        const auto i = t / across % down * tile_rows, j = t % across * tile_columns;
        task(t / across / down,
             tile{i, std::min(tile_rows, m - i), j, std::min(tile_columns, n - j)});
    });
}

// The tile of out (m, n) += that of Aᵀ B for A (k, m), B (k, n; stride ldb).
void add_product(const tile& at, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                 const double* a, const double* b, std::ptrdiff_t ldb, double* out) {
    blas::gemm(trans::yes, trans::no, at.n_rows, at.n_columns, k, 1.0, a + at.row, m, b + at.column,
               ldb, 1.0, out + at.row * n + at.column, n);
}

// Marks the positions at which a run begins: those of another query or another left side.
template <class T>
buffer<std::uint8_t> begins_of_runs(const query_rows& rows, const T* inputs, const node_map<T>& map,
                                    int n_threads) {
    const part_of_cross<T> part(map, cross_part::left);
    const auto n = rows.n_rows(), width = part.map().n_outputs;
    const feature_rows<T> left{width, inputs, 0, nullptr, &part.map()};
    buffer<std::uint8_t> begins(n, std::uint8_t{0});
    parallel_parts(n, block_rows, n_threads, [&](std::ptrdiff_t begin, std::ptrdiff_t size) {
        const auto first = std::max<std::ptrdiff_t>(begin - 1, 0), end = begin + size;
        buffer<T> made((end - first) * width), gathered;
        left.map_to(
            end - first, [&](std::ptrdiff_t i) { return rows.row(first + i); }, made.data(), width,
            gathered);
        for (auto i = std::max(first + 1, begin); i < end; ++i) {
            const T* const row = made.data() + (i - first) * width;
            begins[i] = !std::equal(row, row + width, row - width);
        }
    });
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q)
        if (rows.size(q) > 0) begins[rows.begin(q)] = 1;
    return begins;
}

template <class T>
void cut_runs(const query_rows& rows, const buffer<std::uint8_t>& begins, cross_rows<T>& out) {
    const auto most = std::clamp<std::ptrdiff_t>(
        chunk_values / std::max<std::ptrdiff_t>(1, out.width() + out.n_left), tile_rows, most_runs);
    out.is_constant.assign(rows.n_queries, std::uint8_t{1});
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        const auto first = length_of(out.runs);
        for (auto i = rows.begin(q); i < rows.begin(q + 1); ++i) {
            const bool other = i > rows.begin(q) && begins[i];
            if (other) out.is_constant[q] = 0;
            if (i == rows.begin(q) || other || i - out.runs.back().begin == most_run_rows)
                out.runs.push_back({i, i, q});
            out.runs.back().end = i + 1;
        }
        const auto end = length_of(out.runs);
        if (end == first) continue;
        if (rows.size(q) > long_rows || end - first > most) {
            out.long_queries.push_back(q);
            for (auto i = first; i < end; i += most)
                out.chunks.push_back({i, std::min(i + most, end), false});
        } else if (!out.chunks.empty() && out.chunks.back().whole &&
                   end - out.chunks.back().begin <= most) {
            out.chunks.back().end = end;
        } else {
            out.chunks.push_back({first, end, true});
        }
    }
}

// Calls task(first run, end) for the runs of some queries of a chunk, or for some runs of a part.
template <class T, class Task>
void by_runs(const cross_rows<T>& rows, const chunk_of_runs& chunk, int n_threads,
             const Task& task) {
    buffer<std::ptrdiff_t> bounds{chunk.begin};
    for (auto i = chunk.begin + 1; i < chunk.end; ++i) {
        const auto n = rows.runs[i].begin - rows.runs[bounds.back()].begin;
        if (n * rows.width() >= task_values &&
            (!chunk.whole || rows.runs[i].query != rows.runs[i - 1].query))
            bounds.push_back(i);
    }
    bounds.push_back(chunk.end);
    parallel_for(length_of(bounds) - 1, n_threads,
                 [&](std::ptrdiff_t i) { task(bounds[i], bounds[i + 1]); });
}

template <class T>
matrix_rows<T> rows_of(const cross_rows<T>& rows, const run_of_rows& run) {
    const auto width = rows.width();
    return {run.end - run.begin, width, rows.right.data() + run.begin * width, nullptr};
}

// The products of some vectors, chunk by chunk.
template <class T>
class multiplier {
  public:
    multiplier(const cross_rows<T>& rows, std::ptrdiff_t n_vectors, int n_threads)
        : rows_(rows), n_(n_vectors), n_threads_(n_threads) {
        std::ptrdiff_t most = 0;
        for (const auto& chunk : rows.chunks) most = std::max(most, chunk.end - chunk.begin);
        left_.resize(most * rows.n_left);
        of_runs_.resize(most * n_ * rows.width());
    }

    void begin(const chunk_of_runs& chunk) {
        const auto* const from = rows_.left.data() + chunk.begin * rows_.n_left;
        std::copy(from, from + (chunk.end - chunk.begin) * rows_.n_left, left_.begin());
    }

    // What every run of the chunk has for every vector, (n_vectors, width).
    double* of_run(const chunk_of_runs& chunk, std::ptrdiff_t run) {
        return of_runs_.data() + (run - chunk.begin) * n_ * rows_.width();
    }

    // The weights t of every run, of vectors p (n_vectors, n_features).
    void fold(const chunk_of_runs& chunk, const double* p) {
        const auto k = rows_.n_kept, r = rows_.n_right, l = rows_.n_left;
        const auto stride = n_ * rows_.width(), n_runs = chunk.end - chunk.begin;
        double* const out = of_run(chunk, chunk.begin);
        for (std::ptrdiff_t i = 0; i < n_runs; ++i)
            for (std::ptrdiff_t j = 0; j < n_; ++j)
                std::copy_n(p + j * rows_.n_features(), k, out + i * stride + j * rows_.width());
        by_tiles(n_, n_runs, r, n_threads_, [&](std::ptrdiff_t j, const tile& at) {
            blas::gemm(trans::no, trans::no, at.n_rows, at.n_columns, l, 1.0,
                       left_.data() + at.row * l, l, p + j * rows_.n_features() + k + at.column, r,
                       0.0, out + at.row * stride + j * rows_.width() + k + at.column, stride);
        });
    }

    // z (n_vectors, n_rows) of runs by their weights t.
    void score(const chunk_of_runs& chunk, std::ptrdiff_t first, std::ptrdiff_t end, double* z) {
        linear_models models(n_, rows_.width(), of_run(chunk, first));
        for (auto run = first; run < end; ++run) {
            if (run > first) models.assign(of_run(chunk, run));
            const auto right = rows_of(rows_, rows_.runs[run]);
            models.score(right, 0, right.n_rows, z + rows_.runs[run].begin, rows_.n_rows());
        }
    }

    // The sums of runs in place of their weights.
    void sum(const chunk_of_runs& chunk, std::ptrdiff_t first, std::ptrdiff_t end,
             const double* z) {
        std::fill(of_run(chunk, first), of_run(chunk, end), 0.0);
        for (auto run = first; run < end; ++run) {
            const auto right = rows_of(rows_, rows_.runs[run]);
            for (std::ptrdiff_t j = 0; j < n_; ++j)
                add_rows(right, 0, right.n_rows, z + j * rows_.n_rows() + rows_.runs[run].begin,
                         of_run(chunk, run) + j * rows_.width());
        }
    }

    // out (n_vectors, n_features) += the left side times the sums of every run.
    void add(const chunk_of_runs& chunk, double* out) {
        const auto k = rows_.n_kept, r = rows_.n_right;
        const auto stride = n_ * rows_.width(), n_runs = chunk.end - chunk.begin;
        const double* const sums = of_run(chunk, chunk.begin);
        for (std::ptrdiff_t j = 0; j < n_; ++j)
            for (std::ptrdiff_t i = 0; i < n_runs; ++i)
                for (std::ptrdiff_t c = 0; c < k; ++c)
                    out[j * rows_.n_features() + c] += sums[i * stride + j * rows_.width() + c];
        by_tiles(n_, rows_.n_left, r, n_threads_, [&](std::ptrdiff_t j, const tile& at) {
            add_product(at, rows_.n_left, r, n_runs, left_.data(), sums + j * rows_.width() + k,
                        stride, out + j * rows_.n_features() + k);
        });
    }

    buffer<double>& left() { return left_; }

  private:
    const cross_rows<T>& rows_;
    std::ptrdiff_t n_;
    int n_threads_;
    buffer<double> left_;     // (runs, n_left) of the chunk
    buffer<double> of_runs_;  // (runs, n_vectors, width)
};

// The squares of the right side in a run, (width,) each. The first run of a query of one left side
// stands for all of them.
template <class T>
void square_run(const cross_rows<T>& rows, const laplacian& pairs, std::ptrdiff_t run,
                double* diagonal, double* size) {
    const auto width = rows.width();
    const auto& of = rows.runs[run];
    std::fill_n(diagonal, width, 0.0);
    std::fill_n(size, width, 0.0);
    if (!pairs.counts(of.query)) return;
    const auto first = rows.is_constant[of.query] && rows.makes_differences
                           ? pairs.rows().begin(of.query)
                           : std::ptrdiff_t{-1};
    for (auto i = of.begin; i < of.end; ++i) {
        const T* const row = rows.right.data() + i * width;
        const T* const origin = rows.right.data() + std::max<std::ptrdiff_t>(first, 0) * width;
        const double degree = pairs.degree(i);
        for (std::ptrdiff_t c = 0; c < width; ++c) {
            const double value =
                static_cast<double>(row[c]) - (first < 0 ? 0.0 : static_cast<double>(origin[c]));
            size[c] += degree * value * value;
        }
    }
    if (!rows.is_constant[of.query]) {
        std::copy_n(size, width, diagonal);
        return;
    }
    if (of.begin > pairs.rows().begin(of.query)) return;
    const auto n = pairs.rows().size(of.query);
    buffer<double> z(n * n_columns), image;
    for (std::ptrdiff_t c = 0; c < width; c += n_columns) {
        const auto count = std::min(n_columns, width - c);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            for (std::ptrdiff_t j = 0; j < count; ++j)
                z[i * n_columns + j] =
                    static_cast<double>(rows.right[(of.begin + i) * width + c + j]);
        image = z;
        for (std::ptrdiff_t j = 0; j < count; ++j) {
            pairs.apply(of.query, n_columns, image.data() + j);
            for (std::ptrdiff_t i = 0; i < n; ++i)
                diagonal[c + j] += z[i * n_columns + j] * image[i * n_columns + j];
        }
    }
}

}  // namespace

template <class T>
cross_rows<T> lay_out(const query_rows& rows, bool makes_differences, const T* inputs,
                      const node_map<T>& map, int n_threads) {
    const auto& cross = *cross_of(map);
    cross_rows<T> out{
        cross.n_kept(), cross.n_left(), cross.n_right(), makes_differences, {}, {}, {}, {}, {}, {}};
    cut_runs(rows, begins_of_runs(rows, inputs, map, n_threads), out);
    const part_of_cross<T> left(map, cross_part::left), right(map, cross_part::right);
    const auto fill = [&](const node_map<T>& of, std::ptrdiff_t n, const auto& row_at,
                          buffer<T>& values) {
        const auto width = of.n_outputs;
        const feature_rows<T> made{width, inputs, 0, nullptr, &of};
        values.resize(n * width);
        parallel_parts(n, block_rows, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t size) {
            buffer<T> gathered;
            made.map_to(
                size, [&](std::ptrdiff_t i) { return rows.row(row_at(first + i)); },
                values.data() + first * width, width, gathered);
        });
    };
    fill(
        left.map(), length_of(out.runs), [&](std::ptrdiff_t run) { return out.runs[run].begin; },
        out.left);
    fill(right.map(), rows.n_rows(), [](std::ptrdiff_t i) { return i; }, out.right);
    if (!makes_differences || !std::is_same_v<T, double>) return out;
    parallel_for(rows.n_queries, n_threads, [&](std::ptrdiff_t q) {
        if (!out.is_constant[q] || rows.size(q) == 0) return;
        T* const first = out.right.data() + rows.begin(q) * out.width();
        const buffer<T> origin(first, first + out.width());
        for (std::ptrdiff_t i = 0; i < rows.size(q); ++i)
            for (std::ptrdiff_t c = 0; c < out.width(); ++c)
                first[i * out.width() + c] -= origin[c];
    });
    return out;
}

template <class T>
void cross_pair_product(const cross_rows<T>& rows, const buffer<laplacian>& laplacians,
                        std::ptrdiff_t n_vectors, const double* p, const std::int64_t* systems,
                        double* out, int n_threads) {
    n_threads = threads_for(rows, n_vectors, n_threads);
    std::fill_n(out, n_vectors * rows.n_features(), 0.0);
    multiplier<T> of(rows, n_vectors, n_threads);
    buffer<double> z(n_vectors * rows.n_rows());
    const auto apply = [&](std::ptrdiff_t query, std::ptrdiff_t j) {
        const auto& pairs = laplacians[systems[j]];
        pairs.apply(query, 1, z.data() + j * rows.n_rows() + pairs.rows().begin(query));
    };
    for (const auto& chunk : rows.chunks) {
        of.begin(chunk);
        of.fold(chunk, p);
        by_runs(rows, chunk, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t end) {
            of.score(chunk, first, end, z.data());
            if (!chunk.whole) return;
            for (auto q = rows.runs[first].query; q <= rows.runs[end - 1].query; ++q)
                for (std::ptrdiff_t j = 0; j < n_vectors; ++j) apply(q, j);
            of.sum(chunk, first, end, z.data());
        });
        if (chunk.whole) of.add(chunk, out);
    }
    const auto n_long = length_of(rows.long_queries);
    parallel_for(n_long * n_vectors, n_threads, [&](std::ptrdiff_t task) {
        apply(rows.long_queries[task / n_vectors], task % n_vectors);
    });
    for (const auto& chunk : rows.chunks) {
        if (chunk.whole) continue;
        of.begin(chunk);
        by_runs(rows, chunk, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t end) {
            of.sum(chunk, first, end, z.data());
        });
        of.add(chunk, out);
    }
}

template <class T>
void cross_transposed(const cross_rows<T>& rows, const double* z, double* out, int n_threads) {
    n_threads = threads_for(rows, 1, n_threads);
    std::fill_n(out, rows.n_features(), 0.0);
    multiplier<T> of(rows, 1, n_threads);
    for (const auto& chunk : rows.chunks) {
        of.begin(chunk);
        by_runs(rows, chunk, n_threads,
                [&](std::ptrdiff_t first, std::ptrdiff_t end) { of.sum(chunk, first, end, z); });
        of.add(chunk, out);
    }
}

template <class T>
void cross_pair_squares(const cross_rows<T>& rows, const laplacian& pairs, double* diagonal,
                        double* size, double* of_left, int n_threads) {
    n_threads = threads_for(rows, 2, n_threads);
    const auto width = rows.width(), k = rows.n_kept, l = rows.n_left;
    std::fill_n(diagonal, rows.n_features(), 0.0);
    std::fill_n(size, rows.n_features(), 0.0);
    if (of_left) std::fill_n(of_left, l * l, 0.0);
    multiplier<T> of(rows, 2, n_threads);  // diagonals, then sizes
    buffer<double> scaled;
    for (const auto& chunk : rows.chunks) {
        const auto n = chunk.end - chunk.begin;
        of.begin(chunk);
        parallel_for(n, n_threads, [&](std::ptrdiff_t i) {
            double* const squares = of.of_run(chunk, chunk.begin + i);
            square_run(rows, pairs, chunk.begin + i, squares, squares + width);
        });
        auto& left = of.left();
        if (of_left) {
            scaled.assign(left.begin(), left.begin() + n * l);
            for (std::ptrdiff_t i = 0; i < n; ++i) {
                const double* const squares = of.of_run(chunk, chunk.begin + i);
                double trace = 0;
                for (auto c = k; c < width; ++c) trace += squares[c];
                for (std::ptrdiff_t a = 0; a < l; ++a) scaled[i * l + a] *= trace;
            }
            by_tiles(1, l, l, n_threads, [&](std::ptrdiff_t, const tile& at) {
                add_product(at, l, l, n, left.data(), scaled.data(), l, of_left);
            });
        }
        for (std::ptrdiff_t i = 0; i < n * l; ++i) left[i] *= left[i];
        buffer<double> both(2 * rows.n_features(), 0.0);
        of.add(chunk, both.data());
        for (std::ptrdiff_t c = 0; c < rows.n_features(); ++c) {
            diagonal[c] += both[c];
            size[c] += both[rows.n_features() + c];
        }
    }
}

PAIRGRAM_FOR_BOTH_WIDTHS(lay_out);
PAIRGRAM_FOR_BOTH_WIDTHS(cross_pair_product);
PAIRGRAM_FOR_BOTH_WIDTHS(cross_transposed);
PAIRGRAM_FOR_BOTH_WIDTHS(cross_pair_squares);

}  // namespace pairgram
