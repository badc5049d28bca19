#include "solvers/sparse_pairs.hpp"

#include <algorithm>

#include "data/half_laplacian.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t piece_entries = 1 << 14;  // of rows that stay in cache for all vectors
constexpr std::ptrdiff_t long_entries = 1 << 18;   // a query with more is shared among threads
constexpr std::ptrdiff_t max_slots = 32;
constexpr std::ptrdiff_t entries_per_sum = 16;  // a slot's sums cost as much as so many entries
constexpr std::ptrdiff_t max_width = 8;         // vectors that are multiplied at once

// A run of whole queries, or a part of a long query (no queries).
struct piece {
    std::ptrdiff_t begin, end;  // positions of rows
    std::ptrdiff_t first_query, last_query;
};

struct pieces_of_rows {
    buffer<piece> whole, parts;
    buffer<std::ptrdiff_t> long_queries;
};

template <class T, class I>
pieces_of_rows cut(const sparse_rows<T, I>& X, const query_rows& rows) {
    pieces_of_rows cut;
    std::ptrdiff_t held = 0;  // entries of the last piece
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        const auto begin = rows.begin(q), end = rows.begin(q + 1);
        std::ptrdiff_t n = 0;
        for (auto i = begin; i < end; ++i) n += X.size(rows.row(i)) + 1;
        if (n > long_entries) {
            cut.long_queries.push_back(q);
            std::ptrdiff_t first = begin, sum = 0;
            for (auto i = begin; i < end; ++i) {
                sum += X.size(rows.row(i)) + 1;
                if (sum < piece_entries && i + 1 < end) continue;
                cut.parts.push_back({first, i + 1, 0, 0});
                first = i + 1;
                sum = 0;
            }
        } else if (!cut.whole.empty() && cut.whole.back().last_query == q &&
                   held + n <= piece_entries) {
            cut.whole.back().end = end;
            cut.whole.back().last_query = q + 1;
            held += n;
        } else {
            cut.whole.push_back({begin, end, q, q + 1});
            held = n;
        }
    }
    return cut;
}

// z (W,) = the row times p (n_columns, W).
template <int W, class T, class I>
inline void gather(std::ptrdiff_t n, const I* columns, const T* values, const double* p,
                   double* z) {
    double sum[W] = {};
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        const auto value = static_cast<double>(values[e]);
        const double* entry = p + static_cast<std::ptrdiff_t>(columns[e]) * W;
        for (int j = 0; j < W; ++j) sum[j] += value * entry[j];
    }
    for (int j = 0; j < W; ++j) z[j] = sum[j];
}

// sums (n_columns, W) += the row times z (W,).
template <int W, class T, class I>
inline void scatter(std::ptrdiff_t n, const I* columns, const T* values, const double* z,
                    double* sums) {
    double factor[W];
    for (int j = 0; j < W; ++j) factor[j] = z[j];
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        const auto value = static_cast<double>(values[e]);
        double* entry = sums + static_cast<std::ptrdiff_t>(columns[e]) * W;
        for (int j = 0; j < W; ++j) entry[j] += value * factor[j];
    }
}

template <int W, class T, class I>
PAIRGRAM_CLONES void gather_rows(const sparse_rows<T, I>& X, const query_rows& rows,
                                 const piece& at, const double* p, double* z) {
    for (auto i = at.begin; i < at.end; ++i, z += W) {
        const auto row = rows.row(i), first = X.begin(row);
        gather<W>(X.size(row), X.columns + first, X.values + first, p, z);
    }
}

template <int W, class T, class I>
PAIRGRAM_CLONES void scatter_rows(const sparse_rows<T, I>& X, const query_rows& rows,
                                  const piece& at, const double* z, double* sums) {
    for (auto i = at.begin; i < at.end; ++i, z += W) {
        if (std::all_of(z, z + W, [](double value) { return value == 0; })) continue;
        const auto row = rows.row(i), first = X.begin(row);
        scatter<W>(X.size(row), X.columns + first, X.values + first, z, sums);
    }
}

// The product for W vectors. p and out are (W, n_columns); interleaved, an entry of X meets the
// W numbers of its column side by side.
template <int W, class T, class I>
void multiply(const sparse_rows<T, I>& X, const buffer<laplacian>& laplacians,
              const pieces_of_rows& pieces, const double* p, const std::int64_t* systems,
              double* out, int n_threads) {
    const auto& rows = laplacians[0].rows();
    const auto d = X.n_columns;
    buffer<double> woven(d * W);
    for (int j = 0; j < W; ++j)
        for (std::ptrdiff_t c = 0; c < d; ++c) woven[c * W + j] = p[j * d + c];
    const auto apply = [&](std::ptrdiff_t q, double* z) {
        for (int j = 0; j < W; ++j) laplacians[systems[j]].apply(q, W, z + j);
    };
    const auto& whole = pieces.whole;
    const auto& parts = pieces.parts;
    const auto n_whole = static_cast<std::ptrdiff_t>(whole.size());
    const auto n_parts = static_cast<std::ptrdiff_t>(parts.size());
    buffer<double> kept(parts.empty() ? 0 : X.n_rows * W);  // scores of long queries' rows
    if (n_parts > 0) {
        parallel_for(n_parts, n_threads, [&](std::ptrdiff_t i) {
            gather_rows<W>(X, rows, parts[i], woven.data(), kept.data() + parts[i].begin * W);
        });
        parallel_for(static_cast<std::ptrdiff_t>(pieces.long_queries.size()), n_threads,
                     [&](std::ptrdiff_t i) {
                         const auto q = pieces.long_queries[i];
                         apply(q, kept.data() + rows.begin(q) * W);
                     });
    }
    const auto n_entries = X.begin(X.n_rows);
    const auto n_slots = std::clamp<std::ptrdiff_t>(
        n_entries / (entries_per_sum * std::max<std::ptrdiff_t>(d, 1)) / 2 * 2, 2, max_slots);
    const auto used = std::min(n_slots, n_whole + n_parts);
    buffer<double> slots(used * d * W, 0.0);
    parallel_for(used, n_threads, [&](std::ptrdiff_t slot) {
        double* sums = slots.data() + slot * d * W;
        buffer<double> z;
        for (auto i = slot; i < n_whole + n_parts; i += used) {
            check_interrupt();
            if (i >= n_whole) {
                const auto& at = parts[i - n_whole];
                scatter_rows<W>(X, rows, at, kept.data() + at.begin * W, sums);
                continue;
            }
            const auto& at = whole[i];
            z.resize((at.end - at.begin) * W);
            gather_rows<W>(X, rows, at, woven.data(), z.data());
            for (auto q = at.first_query; q < at.last_query; ++q)
                apply(q, z.data() + (rows.begin(q) - at.begin) * W);
            scatter_rows<W>(X, rows, at, z.data(), sums);
        }
    });
    constexpr std::ptrdiff_t strip = 1 << 12;
    parallel_for((d + strip - 1) / strip, n_threads, [&](std::ptrdiff_t s) {
        for (auto c = s * strip; c < std::min(d, (s + 1) * strip); ++c)
            for (int j = 0; j < W; ++j) {
                double sum = 0;
                for (std::ptrdiff_t slot = 0; slot < used; ++slot)
                    sum += slots[(slot * d + c) * W + j];
                out[j * d + c] = sum;
            }
    });
}

}  // namespace

laplacian::laplacian(const ranking_problem& problem)
    : rule_(problem.rule),
      rows_(problem.rows),
      factor_(rows_.n_queries, 0.0),
      weight_(rows_.n_rows()),
      degree_(rows_.n_rows()),
      heaviest_(rows_.n_queries, 0),
      first_level_(rows_.n_queries + 1, 0) {
    const bool has_levels = rule_.kind == pair_kind::dropped || rule_.kind == pair_kind::omega;
    if (has_levels) level_.resize(rows_.n_rows());
    query_plan plan;
    for (std::ptrdiff_t q = 0; q < rows_.n_queries; ++q) {
        check_interrupt();
        first_level_[q + 1] = first_level_[q];
        const auto begin = rows_.begin(q), n = rows_.size(q);
        if (n == 0) continue;
        plan_query(problem, q, nullptr, plan);
        if (plan.pair_weight > 0) factor_[q] = plan.between * plan.between / plan.total_weight;
        heaviest_[q] = heaviest_row(plan);
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const auto level = plan.level[i];
            const double within = plan.within[level];
            weight_[begin + i] = plan.weight[i];
            degree_[begin + i] = plan.weight[i] * within * within;
            if (has_levels) level_[begin + i] = level;
        }
        if (!has_levels) continue;
        first_level_[q + 1] += plan.n_levels();
        if (rule_.kind != pair_kind::omega) continue;
        level_label_.insert(level_label_.end(), plan.level_label.begin(), plan.level_label.end());
        if (rule_.sums_labels()) continue;
        for (const double label : plan.level_label)
            level_index_.push_back(
                std::lower_bound(rule_.level_values, rule_.level_values + rule_.n_levels, label) -
                rule_.level_values);
    }
}

void laplacian::apply(std::ptrdiff_t query, std::ptrdiff_t stride, double* z) const {
    const auto begin = rows_.begin(query), n = rows_.size(query);
    const double* v = weight_.data() + begin;
    const double* degree = degree_.data() + begin;
    const double c = factor_[query];
    if (!(c > 0)) {
        for (std::ptrdiff_t i = 0; i < n; ++i) z[i * stride] = 0;
        return;
    }
    if (rule_.kind != pair_kind::none) {
        const double pivot = z[heaviest_[query] * stride];  // equal scores become 0 exactly
        double total = 0, sum = 0;
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            total += v[i];
            sum += v[i] * (z[i * stride] - pivot);
        }
        const double mean = sum / total;
        for (std::ptrdiff_t i = 0; i < n; ++i) z[i * stride] = (z[i * stride] - pivot) - mean;
    }
    if (level_.empty()) {
        for (std::ptrdiff_t i = 0; i < n; ++i) z[i * stride] *= degree[i];
        return;
    }
    // Sums over levels: few, on the stack, but for a query with very many.
    constexpr std::ptrdiff_t few = 64;
    const auto k = first_level_[query + 1] - first_level_[query];
    double small_sums[few], small_others[few];
    buffer<double> many(k > few ? 2 * k : 0);
    double* t = k > few ? many.data() : small_sums;
    double* other = k > few ? many.data() + k : small_others;
    std::fill(t, t + k, 0.0);
    const std::int32_t* level = level_.data() + begin;
    for (std::ptrdiff_t i = 0; i < n; ++i) t[level[i]] += v[i] * z[i * stride];
    if (rule_.kind == pair_kind::dropped) {
        double all = 0;
        for (std::ptrdiff_t l = 0; l < k; ++l) all += t[l];
        for (std::ptrdiff_t l = 0; l < k; ++l) other[l] = c * (all - t[l]);
    } else if (rule_.sums_labels()) {
        const double* label = level_label_.data() + first_level_[query];
        double all = 0, weighted = 0;
        for (std::ptrdiff_t l = 0; l < k; ++l) {
            all += t[l];
            weighted += label[l] * t[l];
        }
        for (std::ptrdiff_t l = 0; l < k; ++l) other[l] = c * (label[l] * all + weighted);
    } else {
        const auto* index = level_index_.data() + first_level_[query];
        for (std::ptrdiff_t l = 0; l < k; ++l) {
            const double* omega = rule_.omega + index[l] * rule_.n_levels;
            double sum = 0;
            for (std::ptrdiff_t m = 0; m < k; ++m) sum += omega[index[m]] * t[m];
            other[l] = c * sum;
        }
    }
    for (std::ptrdiff_t i = 0; i < n; ++i)
        z[i * stride] = degree[i] * z[i * stride] - v[i] * other[level[i]];
}

laplacian::square laplacian::square_of(std::ptrdiff_t query, std::ptrdiff_t n,
                                       const std::int32_t* positions, const double* z) const {
    const auto begin = rows_.begin(query);
    const double c = factor_[query];
    square found{0, 0};
    if (!(c > 0)) return found;
    double all = 0;
    const auto k = level_.empty() ? 0 : first_level_[query + 1] - first_level_[query];
    buffer<double> t(k, 0.0);
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        const auto i = begin + positions[e];
        found.sum += degree_[i] * z[e] * z[e];
        all += weight_[i] * z[e];
        if (k > 0) t[level_[i]] += weight_[i] * z[e];
    }
    switch (rule_.kind) {
        case pair_kind::none:
            break;
        case pair_kind::kept:
            found.subtracted = c * all * all;
            break;
        case pair_kind::dropped:
            for (const double sum : t) found.subtracted += c * sum * (all - sum);
            break;
        case pair_kind::omega: {
            if (rule_.sums_labels()) {
                const double* label = level_label_.data() + first_level_[query];
                for (std::ptrdiff_t l = 0; l < k; ++l)
                    found.subtracted += 2 * c * all * label[l] * t[l];
                break;
            }
            const auto* index = level_index_.data() + first_level_[query];
            for (std::ptrdiff_t l = 0; l < k; ++l)
                for (std::ptrdiff_t m = 0; m < k; ++m)
                    found.subtracted +=
                        c * t[l] * t[m] * rule_.omega[index[l] * rule_.n_levels + index[m]];
        }
    }
    return found;
}

template <class T, class I>
void sparse_pair_diagonal(const sparse_rows<T, I>& X, const laplacian& pairs, double* diagonal,
                          double* size) {
    const auto& rows = pairs.rows();
    std::fill(diagonal, diagonal + X.n_columns, 0.0);
    std::fill(size, size + X.n_columns, 0.0);
    // The entries of a query, and for each the next of its column.
    struct entry {
        std::int32_t position;
        double value;
        std::ptrdiff_t next;
    };
    buffer<entry> entries;
    buffer<std::ptrdiff_t> first(X.n_columns, -1), columns;
    buffer<std::int32_t> positions;
    buffer<double> values;
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        check_interrupt();
        if (!pairs.counts(q)) continue;
        entries.clear();
        columns.clear();
        for (std::ptrdiff_t i = 0; i < rows.size(q); ++i) {
            const auto row = rows.row(rows.begin(q) + i);
            for (auto e = X.begin(row); e < X.begin(row + 1); ++e) {
                const auto column = static_cast<std::ptrdiff_t>(X.columns[e]);
                if (first[column] < 0) columns.push_back(column);
                entries.push_back({static_cast<std::int32_t>(i), static_cast<double>(X.values[e]),
                                   first[column]});
                first[column] = static_cast<std::ptrdiff_t>(entries.size()) - 1;
            }
        }
        for (const auto column : columns) {
            positions.clear();
            values.clear();
            for (auto at = first[column]; at >= 0; at = entries[at].next) {
                const auto& one = entries[at];
                if (!positions.empty() && positions.back() == one.position) {
                    values.back() += one.value;  // entries of a row are added up
                } else {
                    positions.push_back(one.position);
                    values.push_back(one.value);
                }
            }
            first[column] = -1;
            const auto found = pairs.square_of(q, static_cast<std::ptrdiff_t>(values.size()),
                                               positions.data(), values.data());
            diagonal[column] += found.sum - found.subtracted;
            size[column] += found.sum;
        }
    }
}

template <class T, class I>
void sparse_pair_product(const sparse_rows<T, I>& X, const buffer<laplacian>& laplacians,
                         std::ptrdiff_t n_vectors, const double* p, const std::int64_t* systems,
                         double* out, int n_threads) {
    const auto pieces = cut(X, laplacians[0].rows());
    const auto d = X.n_columns;
    for (std::ptrdiff_t j = 0; j < n_vectors;) {
        const auto left = std::min(max_width, n_vectors - j);
        const double* in = p + j * d;
        double* result = out + j * d;
        if (left >= 8) {
            multiply<8>(X, laplacians, pieces, in, systems + j, result, n_threads);
            j += 8;
        } else if (left >= 4) {
            multiply<4>(X, laplacians, pieces, in, systems + j, result, n_threads);
            j += 4;
        } else if (left >= 2) {
            multiply<2>(X, laplacians, pieces, in, systems + j, result, n_threads);
            j += 2;
        } else {
            multiply<1>(X, laplacians, pieces, in, systems + j, result, n_threads);
            j += 1;
        }
    }
}

#define PAIRGRAM_SPARSE_PRODUCT(T, I)                                                             \
    template void sparse_pair_diagonal<T, I>(const sparse_rows<T, I>&, const laplacian&, double*, \
                                             double*);                                            \
    template void sparse_pair_product<T, I>(const sparse_rows<T, I>&, const buffer<laplacian>&,   \
                                            std::ptrdiff_t, const double*, const std::int64_t*,   \
                                            double*, int);
PAIRGRAM_SPARSE_PRODUCT(double, std::int32_t)
PAIRGRAM_SPARSE_PRODUCT(double, std::int64_t)
PAIRGRAM_SPARSE_PRODUCT(float, std::int32_t)
PAIRGRAM_SPARSE_PRODUCT(float, std::int64_t)

}  // namespace pairgram
