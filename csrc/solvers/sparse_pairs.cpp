#include "solvers/sparse_pairs.hpp"

#include <algorithm>
#include <new>

#include "data/half_laplacian.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t piece_entries = 1 << 14;  // of rows that stay in cache for all vectors
constexpr std::ptrdiff_t long_entries = 1 << 18;   // a query with more is shared among threads
constexpr std::ptrdiff_t near_numbers = 1 << 18;   // the nearer caches hold so many
constexpr std::ptrdiff_t few_numbers = 1 << 18;    // a product with fewer is left to one thread
constexpr std::ptrdiff_t max_slots = 32;
constexpr std::ptrdiff_t lead = 24;  // entries ahead, whose lines are read into the cache
constexpr std::ptrdiff_t entries_per_sum = 32;  // a slot's sums cost as much as so many entries
constexpr std::ptrdiff_t entry_cost = 8;        // of the diagonal, in entries of a product

// One thread for work with few numbers, which takes less time than the start of threads.
int threads_for(std::ptrdiff_t n_numbers, int n_threads) {
    return n_numbers < few_numbers ? 1 : n_threads;
}

// The number of slots that entries are added up in, each of which has sums of all columns.
template <class T>
std::ptrdiff_t slots_for(const sparse_rows<T>& X) {
    const auto per_slot = entries_per_sum * std::max<std::ptrdiff_t>(X.n_columns, 1);
    return std::clamp<std::ptrdiff_t>(X.begin(X.n_rows) / per_slot / 2 * 2, 2, max_slots);
}

// Numbers that stand in whole cache lines, and are not set to anything.
class lines {
  public:
    explicit lines(std::ptrdiff_t n)
        : data_(static_cast<double*>(::operator new(size_of(n) * sizeof(double), line))) {}
    ~lines() { ::operator delete(data_, line); }
    lines(const lines&) = delete;
    lines& operator=(const lines&) = delete;
    double* data() const { return data_; }

  private:
    static constexpr std::align_val_t line{64};
    double* data_;
};

// z (rows, W) = the rows times p (n_columns, W).
template <int W, class T>
PAIRGRAM_CLONES void gather_rows(const sparse_rows<T>& X, const query_rows& rows, const piece& at,
                                 const double* p, double* z) {
    const auto last = X.begin(X.n_rows) - 1;
    for (auto i = at.begin; i < at.end; ++i, z += W) {
        const auto row = rows.row(i), end = X.begin(row + 1);
        double sum[W] = {};
        for (auto e = X.begin(row); e < end; ++e) {
            if constexpr (W > 2) {
                const auto ahead = static_cast<std::ptrdiff_t>(X.columns[std::min(e + lead, last)]);
                prefetch(p + ahead * W);
            }
            const auto value = static_cast<double>(X.values[e]);
            const double* entry = p + static_cast<std::ptrdiff_t>(X.columns[e]) * W;
            for (int j = 0; j < W; ++j) sum[j] += value * entry[j];
        }
        for (int j = 0; j < W; ++j) z[j] = sum[j];
    }
}

// sums (n_columns, W) += the transposed rows times z (rows, W).
template <int W, class T>
PAIRGRAM_CLONES void scatter_rows(const sparse_rows<T>& X, const query_rows& rows, const piece& at,
                                  const double* z, double* sums) {
    const auto last = X.begin(X.n_rows) - 1;
    for (auto i = at.begin; i < at.end; ++i, z += W) {
        if (std::all_of(z, z + W, [](double value) { return value == 0; })) continue;
        const auto row = rows.row(i), end = X.begin(row + 1);
        double factor[W];
        for (int j = 0; j < W; ++j) factor[j] = z[j];
        for (auto e = X.begin(row); e < end; ++e) {
            if constexpr (W > 2) {
                const auto ahead = static_cast<std::ptrdiff_t>(X.columns[std::min(e + lead, last)]);
                prefetch(sums + ahead * W);
            }
            const auto value = static_cast<double>(X.values[e]);
            double* entry = sums + static_cast<std::ptrdiff_t>(X.columns[e]) * W;
            for (int j = 0; j < W; ++j) entry[j] += value * factor[j];
        }
    }
}

// The product for n vectors, at most W. p and out are (n, n_columns); interleaved, an entry of X
// meets the numbers of its column side by side, for W = 8 in one cache line.
template <int W, class T>
void multiply(const sparse_rows<T>& X, const buffer<laplacian>& laplacians,
              const pieces_of_rows& pieces, std::ptrdiff_t n, const double* p,
              const std::int64_t* systems, double* out, int n_threads) {
    const auto& rows = laplacians[0].rows();
    const auto d = X.n_columns;
    constexpr std::ptrdiff_t strip = 1 << 10;
    const auto for_columns = [&](const auto& task) {
        parallel_parts(d, strip, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t size) {
            for (auto c = first; c < first + size; ++c) task(c);
        });
    };
    const lines woven(d * W);
    for_columns([&](std::ptrdiff_t c) {
        double* entry = woven.data() + c * W;
        for (int j = 0; j < W; ++j) entry[j] = j < n ? p[j * d + c] : 0.0;
    });
    const auto apply = [&](std::ptrdiff_t q, double* z) {
        for (std::ptrdiff_t j = 0; j < n; ++j) laplacians[systems[j]].apply(q, W, z + j);
    };
    const auto& whole = pieces.whole;
    const auto& parts = pieces.parts;
    const auto n_whole = length_of(whole);
    const auto n_parts = length_of(parts);
    // Two passes over X, where the near cache does not hold what both need of every column.
    const bool is_wide = d * W > near_numbers;
    const auto gather_piece = [&](std::ptrdiff_t i, double* z) {
        const auto& at = i < n_whole ? whole[i] : parts[i - n_whole];
        gather_rows<W>(X, rows, at, woven.data(), z);
        for (auto q = at.first_query; q < at.last_query; ++q)
            apply(q, z + (rows.begin(q) - at.begin) * W);
    };
    const lines kept(is_wide || n_parts > 0 ? X.n_rows * W : 0);
    const auto first_kept = is_wide ? 0 : n_whole;
    parallel_for(n_whole + n_parts - first_kept, n_threads, [&](std::ptrdiff_t task) {
        const auto i = first_kept + task;
        gather_piece(i, kept.data() + (i < n_whole ? whole[i] : parts[i - n_whole]).begin * W);
    });
    parallel_for(length_of(pieces.long_queries) * n, n_threads, [&](std::ptrdiff_t task) {
        const auto q = pieces.long_queries[task / n], j = task % n;
        laplacians[systems[j]].apply(q, W, kept.data() + rows.begin(q) * W + j);
    });
    const auto used = std::min(slots_for(X), n_whole + n_parts);
    const lines slots(used * d * W);
    parallel_for(used, n_threads, [&](std::ptrdiff_t slot) {
        double* sums = slots.data() + slot * d * W;
        std::fill(sums, sums + d * W, 0.0);
        buffer<double> z;
        for (auto i = slot; i < n_whole + n_parts; i += used) {
            check_interrupt();
            const auto& at = i < n_whole ? whole[i] : parts[i - n_whole];
            const double* scores = kept.data() + at.begin * W;
            if (i < first_kept) {
                z.resize((at.end - at.begin) * W);
                gather_piece(i, z.data());
                scores = z.data();
            }
            scatter_rows<W>(X, rows, at, scores, sums);
        }
    });
    for_columns([&](std::ptrdiff_t c) {
        double sum[W] = {};
        for (std::ptrdiff_t slot = 0; slot < used; ++slot) {
            const double* entry = slots.data() + (slot * d + c) * W;
            for (int j = 0; j < W; ++j) sum[j] += entry[j];
        }
        for (std::ptrdiff_t j = 0; j < n; ++j) out[j * d + c] = sum[j];
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
      counted_(rows_.n_queries, 0),
      first_level_(rows_.n_queries + 1, 0) {
    const bool has_levels = rule_.uses_levels();
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
            counted_[q] += plan.weight[i] > 0;
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

laplacian::laplacian(const comparisons& pairs)
    : rule_{},
      rows_{},
      factor_(1, 0.0),
      bounds_{0, static_cast<std::int64_t>(pairs.n_items())},
      first_partner_(1, 0) {
    rows_ = {1, bounds_.data(), nullptr};
    for (std::ptrdiff_t i = 0; i < pairs.n_items(); ++i) {
        double degree = 0;
        for (auto k = pairs.offsets[i]; k < pairs.offsets[i + 1]; ++k) {
            const auto& place = pairs.places[k];
            const double weight = pairs.weight[place.pair];
            if (weight == 0) continue;
            partner_.push_back(static_cast<std::int32_t>(place.partner));
            partner_weight_.push_back(weight);
            degree += weight;
            factor_[0] = 1;
        }
        degree_.push_back(degree);
        first_partner_.push_back(length_of(partner_));
    }
}

void laplacian::apply_partners(std::ptrdiff_t stride, double* z) const {
    const auto n = rows_.n_rows();
    buffer<double> scores(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) scores[i] = z[i * stride];
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double sum = 0;
        for (auto k = first_partner_[i]; k < first_partner_[i + 1]; ++k)
            sum += partner_weight_[k] * (scores[i] - scores[partner_[k]]);
        z[i * stride] = sum;
    }
}

void laplacian::apply(std::ptrdiff_t query, std::ptrdiff_t stride, double* z) const {
    if (!bounds_.empty()) {
        apply_partners(stride, z);
        return;
    }
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
                                       const std::int32_t* positions, const double* z,
                                       buffer<double>& sums) const {
    const auto begin = rows_.begin(query);
    const double c = factor_[query];
    square found{0, 0, 0};
    if (!(c > 0)) return found;
    // What all rows that count have in common costs no digits.
    double pivot = 0;
    std::ptrdiff_t n_counted = 0;
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        n_counted += weight_[begin + positions[e]] > 0;
        if (positions[e] == heaviest_[query]) pivot = z[e];
    }
    if (n_counted < counted_[query] || rule_.kind == pair_kind::none) pivot = 0;
    double all = 0;
    const auto k = level_.empty() ? 0 : first_level_[query + 1] - first_level_[query];
    if (length_of(sums) < k) sums.resize(k);
    double* const t = sums.data();
    const std::int32_t* const level = level_.data() + (k > 0 ? begin : 0);
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        const auto i = begin + positions[e];
        const double value = z[e] - pivot;
        found.size += degree_[i] * z[e] * z[e];
        found.sum += degree_[i] * value * value;
        all += weight_[i] * value;
        if (k > 0) t[level[positions[e]]] += weight_[i] * value;
    }
    // Calls use(level, sum), and sets the sum to 0, for the levels of the entries.
    const auto each_level = [&](const auto& use) {
        for (std::ptrdiff_t e = 0; e < n; ++e) {
            const auto l = level[positions[e]];
            use(l, t[l]);
            t[l] = 0;
        }
    };
    switch (rule_.kind) {
        case pair_kind::none:
            break;
        case pair_kind::kept:
            found.subtracted = c * all * all;
            break;
        case pair_kind::dropped:
            each_level(
                [&](std::int32_t, double sum) { found.subtracted += c * sum * (all - sum); });
            break;
        case pair_kind::omega: {
            if (rule_.sums_labels()) {
                const double* label = level_label_.data() + first_level_[query];
                each_level([&](std::int32_t l, double sum) {
                    found.subtracted += 2 * c * all * label[l] * sum;
                });
                break;
            }
            const auto* index = level_index_.data() + first_level_[query];
            for (std::ptrdiff_t l = 0; l < k; ++l)
                for (std::ptrdiff_t m = 0; m < k; ++m)
                    found.subtracted +=
                        c * t[l] * t[m] * rule_.omega[index[l] * rule_.n_levels + index[m]];
            each_level([](std::int32_t, double) {});
        }
    }
    return found;
}

// Adds the squared differences of all pairs of rows that are compared, (n_columns,).
template <class T>
void partner_diagonal(const sparse_rows<T>& X, const laplacian& pairs, double* diagonal,
                      double* size) {
    for (std::ptrdiff_t i = 0; i < X.n_rows; ++i) {
        if (i % 1024 == 0) check_interrupt();
        const auto end = X.begin(i + 1);
        const auto value = [&](std::ptrdiff_t e) { return static_cast<double>(X.values[e]); };
        for (auto e = X.begin(i); e < end; ++e)
            size[X.columns[e]] += pairs.degree(i) * value(e) * value(e);
        pairs.each_partner(i, [&](std::ptrdiff_t partner, double weight) {
            if (partner < i) return;  // it has met this row
            auto e = X.begin(i), other = X.begin(partner);
            const auto other_end = X.begin(partner + 1);
            while (e < end || other < other_end) {
                const bool own =
                    other == other_end || (e < end && X.columns[e] <= X.columns[other]);
                const auto column = X.columns[own ? e : other];
                double difference = 0;
                if (e < end && X.columns[e] == column) difference += value(e++);
                if (other < other_end && X.columns[other] == column) difference -= value(other++);
                diagonal[column] += weight * difference * difference;
            }
        });
    }
}

template <class T>
void sparse_pair_diagonal(const sparse_rows<T>& X, const laplacian& pairs, double* diagonal,
                          double* size, int n_threads) {
    const auto& rows = pairs.rows();
    const auto d = X.n_columns;
    std::fill_n(diagonal, d, 0.0);
    std::fill_n(size, d, 0.0);
    if (pairs.has_partners()) {
        partner_diagonal(X, pairs, diagonal, size);
        return;
    }
    // The entries of a query, and for each the next of its column.
    struct entry {
        std::int32_t position;
        double value;
        std::ptrdiff_t next;
    };
    const auto used = std::min(slots_for(X), rows.n_queries);
    const auto first_query = [&](std::ptrdiff_t slot) {  // of about as many rows as others
        const auto* const end = rows.offsets + rows.n_queries;
        return std::lower_bound(rows.offsets, end, slot * rows.n_rows() / used) - rows.offsets;
    };
    const lines slots(used * 2 * d);
    const auto n_numbers = X.begin(X.n_rows) + d;
    parallel_for(used, threads_for(entry_cost * n_numbers, n_threads), [&](std::ptrdiff_t slot) {
        double *const squares = slots.data() + slot * 2 * d, *const sizes = squares + d;
        std::fill_n(squares, 2 * d, 0.0);
        buffer<entry> entries;
        buffer<std::ptrdiff_t> first(d, -1), columns;
        buffer<std::int32_t> positions;
        buffer<double> values, of_levels;
        for (auto q = first_query(slot); q < first_query(slot + 1); ++q) {
            check_interrupt();
            if (!pairs.counts(q)) continue;
            entries.clear();
            columns.clear();
            for (std::ptrdiff_t i = 0; i < rows.size(q); ++i) {
                const auto row = rows.row(rows.begin(q) + i);
                for (auto e = X.begin(row); e < X.begin(row + 1); ++e) {
                    const auto column = static_cast<std::ptrdiff_t>(X.columns[e]);
                    if (first[column] < 0) columns.push_back(column);
                    entries.push_back({static_cast<std::int32_t>(i),
                                       static_cast<double>(X.values[e]), first[column]});
                    first[column] = length_of(entries) - 1;
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
                const auto found = pairs.square_of(q, length_of(values), positions.data(),
                                                   values.data(), of_levels);
                squares[column] += found.sum - found.subtracted;
                sizes[column] += found.size;
            }
        }
    });
    for (std::ptrdiff_t slot = 0; slot < used; ++slot)
        for (std::ptrdiff_t c = 0; c < d; ++c) {
            diagonal[c] += slots.data()[slot * 2 * d + c];
            size[c] += slots.data()[(slot * 2 + 1) * d + c];
        }
}

template <class T>
pieces_of_rows cut_rows(const sparse_rows<T>& X, const query_rows& rows) {
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

template <class T>
void sparse_pair_product(const sparse_rows<T>& X, const buffer<laplacian>& laplacians,
                         const pieces_of_rows& pieces, std::ptrdiff_t n_vectors, const double* p,
                         const std::int64_t* systems, double* out, int n_threads) {
    const auto n_numbers = X.begin(X.n_rows) + X.n_columns;
    // Eight at once take as long as five or three times two; two take little more than one.
    for (std::ptrdiff_t j = 0, n = 0; j < n_vectors; j += n) {
        const auto rest = n_vectors - j;
        n = std::min<std::ptrdiff_t>(rest, rest > 4 ? 8 : 2);
        const auto multiply_by = n > 2 ? multiply<8, T> : n > 1 ? multiply<2, T> : multiply<1, T>;
        multiply_by(X, laplacians, pieces, n, p + j * X.n_columns, systems + j,
                    out + j * X.n_columns, threads_for(n * n_numbers, n_threads));
    }
}

PAIRGRAM_FOR_BOTH_WIDTHS(sparse_pair_diagonal);
PAIRGRAM_FOR_BOTH_WIDTHS(cut_rows);
PAIRGRAM_FOR_BOTH_WIDTHS(sparse_pair_product);

}  // namespace pairgram
