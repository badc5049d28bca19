#include "solvers/group_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "linear_algebra/blas.hpp"
#include "solvers/cached_product.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"

namespace pairgram {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
// Of all entries, whose squares are numbers.
constexpr double smallest_size = 1e-140, largest_size = 1e150;
constexpr double smallest_weight = 1e-290, largest_weight = 1e303;  // of all pairs
constexpr double vanished = std::numeric_limits<double>::quiet_NaN();
constexpr std::ptrdiff_t most_values = 1 << 19, largest_order = 256;   // of a group
constexpr std::ptrdiff_t most_targets = 256, target_values = 1 << 18;  // beside the features
constexpr std::ptrdiff_t tile_targets = 48, tile_rows = 64;            // of others
constexpr std::ptrdiff_t most_narrow = 2000;        // features that may be narrow
constexpr double lost = 1e-6;                       // share of a narrow feature
constexpr std::ptrdiff_t values_at_once = 1 << 12;  // of neighbouring groups of one task
constexpr std::ptrdiff_t rows_ahead = 12;           // that are on their way to the cache

}  // namespace

PAIRGRAM_CLONES double size_sum(std::ptrdiff_t n, std::ptrdiff_t width, const double* x,
                                std::ptrdiff_t ld) {
    double sums[8] = {}, sum = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i, x += ld) {
        std::ptrdiff_t j = 0;
        for (; j + 8 <= width; j += 8)
            for (std::ptrdiff_t k = 0; k < 8; ++k) sums[k] += std::abs(x[j + k]);
        for (; j < width; ++j) sum += std::abs(x[j]);
    }
    return std::accumulate(sums, sums + 8, sum);
}

bool group_rows::load(std::ptrdiff_t g, std::ptrdiff_t n_targets) {
    first_query = static_cast<std::ptrdiff_t>(groups_.queries[g]);
    last_query = static_cast<std::ptrdiff_t>(groups_.queries[g + 1]);
    first = groups_.begin(g);
    n = groups_.n_rows(g);
    if (n == 0 || n * d > most_values || std::min(n, d) > largest_order) return false;
    n_loaded = n_targets <= most_targets && n * (n_targets - 1) < target_values ? n_targets : 0;
    width = in_column_groups(d + n_loaded);
    z.resize(n * width);
    for (std::ptrdiff_t i = 0; i < n; ++i) std::fill_n(z.data() + i * width + d, width - d, 0.0);
    if (!groups_.map) {
        load_block(g, z.data(), width);
        return true;
    }
    const auto n_columns = groups_.n_columns;
    inputs_.resize(n * n_columns);
    load_block(g, inputs_.data(), n_columns);
    if (!std::isfinite(size_sum(1, n * n_columns, inputs_.data(), 0))) return false;
    map_rows(*groups_.map, n, inputs_.data(), n_columns, z.data(), width);
    return true;
}

void group_rows::load_block(std::ptrdiff_t g, double* to, std::ptrdiff_t ld) const {
    const auto n_columns = groups_.n_columns;
    const auto load = [&](const auto& blocks) {
        const bool apart = blocks.size() > 1;
        const auto* const block = blocks[apart ? g : 0];
        const auto start = apart ? first : 0;
        const auto at = [&](std::ptrdiff_t i) { return block + (row(i) - start) * n_columns; };
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            if (problem().rows.order && i + rows_ahead < n)
                for (std::ptrdiff_t j = 0; j < n_columns; j += 64 / std::ptrdiff_t{sizeof *block})
                    prefetch(at(i + rows_ahead) + j);
            std::copy_n(at(i), n_columns, to + i * ld);
        }
    };
    std::visit(load, groups_.blocks);
}

void group_rows::load_targets(const double* targets) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        std::copy_n(targets + (row(i) - first) * n_loaded, n_loaded, z.data() + i * width + d);
}

void group_rows::multiply_targets(const double* targets, std::ptrdiff_t n_targets,
                                  double* out) const {
    const bool of_pairs = problem().rule.kind != pair_kind::none;
    buffer<double> tile(tile_rows * tile_targets), sums(d * tile_targets);
    buffer<std::ptrdiff_t> pivot(n);
    for (auto q = first_query; q < last_query; ++q)
        std::fill_n(pivot.begin() + begin(q), problem().rows.size(q), row(begin(q)) - first);
    for (std::ptrdiff_t t = 0; t < n_targets; t += tile_targets) {
        const auto n_columns = std::min(tile_targets, n_targets - t);
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::ptrdiff_t i = 0; i < n; i += tile_rows) {
            const auto n_rows = std::min(tile_rows, n - i);
            for (std::ptrdiff_t k = 0; k < n_rows; ++k) {
                const double* const from = targets + (row(i + k) - first) * n_targets + t;
                const double* const less = targets + pivot[i + k] * n_targets + t;
                double* const to = tile.data() + k * tile_targets;
                for (std::ptrdiff_t j = 0; j < n_columns; ++j)
                    to[j] = of_pairs ? from[j] - less[j] : from[j];
            }
            add_cached_product(d, in_column_groups(n_columns), n_rows, 1.0,
                               {z.data() + i * width, 1, width}, tile.data(), tile_targets,
                               sums.data(), tile_targets);
        }
        for (std::ptrdiff_t k = 0; k < n_columns; ++k)
            for (std::ptrdiff_t j = 0; j < d; ++j)
                out[(t + k) * d + j] = sums[j * tile_targets + k];
    }
}

bool group_rows::transform() {
    pair_weight = 0;
    lists.clear();
    for (auto q = first_query; q < last_query; ++q) {
        if (problem().rows.size(q) == 0) continue;
        plan_query(problem(), q, nullptr, plan_);
        apply_root(plan_, problem().rule.kind, width, z.data() + begin(q) * width, width, sums_);
        const bool counts = has_pairs(q);
        if (counts) lists.push_back(q);
        pair_weight += counts && !(plan_.pair_weight > 0) ? vanished : plan_.pair_weight;
    }
    return !lists.empty();
}

// Whether the planned query has two rows that count, of two labels where these matter; or one,
// where rows count one by one.
bool group_rows::has_pairs(std::ptrdiff_t query) const {
    if (!(problem().rows.query_weight(query) > 0)) return false;
    const auto kind = problem().rule.kind;
    const auto& weights =
        kind == pair_kind::none || kind == pair_kind::kept ? plan_.weight : plan_.level_weight;
    const auto counted =
        std::count_if(weights.begin(), weights.end(), [](double v) { return v > 0; });
    return counted >= (kind == pair_kind::none ? 1 : 2);
}

bool group_rows::is_usable() const {
    if (!(pair_weight >= smallest_weight && pair_weight <= largest_weight)) return false;
    const double size = size_sum(n, d, z.data(), width),
                 of_targets = size_sum(n, width - d, z.data() + d, width);
    return size + of_targets < largest_size && !(size > 0 && size < smallest_size);
}

bool group_rows::loses_narrow() const {
    if (d > most_narrow) return false;
    buffer<double> squares(d, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (std::ptrdiff_t j = 0; j < d; ++j) squares[j] += z[i * width + j] * z[i * width + j];
    double widest = 0, narrowest = std::numeric_limits<double>::infinity();
    for (const double square : squares) {
        widest = std::max(widest, square);
        if (square > 0) narrowest = std::min(narrowest, square);
    }
    return epsilon * widest > lost * narrowest;
}

bool group_rows::add_gram(double* system, std::ptrdiff_t ld) const {
    if (d > largest_own) {
        blas::syrk(d, n, 1.0, z.data(), width, 0.0, system, ld);
        return false;
    }
    for (std::ptrdiff_t a = 0; a < d; a += column_group)
        add_cached_product(std::min(column_group, d - a), width - a, n, 1.0,
                           {z.data() + a, 1, width}, z.data() + a, width, system + a * ld + a, ld);
    return true;
}

void group_rows::tell(std::ptrdiff_t g, const double* w, const group_sums& out) const {
    double *const squares = out.squares + g * d, *const products = out.products + g * d;
    std::fill_n(squares, d, 0.0);
    std::fill_n(products, d, 0.0);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double* const row = z.data() + i * width;
        const double score = std::inner_product(row, row + d, w, 0.0);
        for (std::ptrdiff_t j = 0; j < d; ++j) {
            squares[j] += row[j] * row[j];
            products[j] += row[j] * score;
        }
    }
    out.pair_weights[g] = pair_weight;
}

buffer<std::ptrdiff_t> tasks_of(const query_groups& groups) {
    return runs_of(groups.n_groups, values_at_once, [&](std::ptrdiff_t g) {
        return groups.n_rows(g) * (groups.n_features() + groups.n_targets[g]);
    });
}

}  // namespace pairgram
