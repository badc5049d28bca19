#include "solvers/blocks.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "data/query_rows.hpp"

namespace pairgram {

namespace {

buffer<std::int64_t> order_by_label(const query_rows& rows, std::ptrdiff_t query) {
    buffer<std::int64_t> order(rows.size(query));
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = rows.row(rows.begin(query) + static_cast<std::ptrdiff_t>(i));
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return rows.labels[a] < rows.labels[b];
    });
    return order;
}

}  // namespace

template <class T>
half_laplacian_blocks<T>::half_laplacian_blocks(const ranking_problem& problem,
                                                const feature_rows<T>& features,
                                                std::ptrdiff_t block_rows)
    : problem_(problem), features_(features), no_target_pivot_(features.n_targets, 0.0) {
    const auto& rows = problem.rows;
    block open;
    const auto close = [&](std::ptrdiff_t next_query) {
        if (open.n_rows > 0) blocks_.push_back(open);
        open = block{};
        open.first_query = open.last_query = next_query;
    };
    for (std::ptrdiff_t q = 0; q < rows.n_queries; ++q) {
        const auto n = rows.size(q);
        if (open.n_rows + n > block_rows) close(q);
        if (n > block_rows) {
            cut_long_query(q, block_rows);
            close(q + 1);
            continue;
        }
        open.last_query = q + 1;
        open.n_rows += n;
    }
    close(rows.n_queries);
    pair_weight_.assign(blocks_.size(), 0.0);
    std::size_t n_chunks = 0;
    for (const auto& query : long_queries_) n_chunks += query.chunks.size();
    chunk_weight_.assign(n_chunks, 0.0);
    chunk_mean_.assign(n_chunks * size_of(width()), 0.0);
}

// Whole levels together, up to a block; a longer level is cut into parts. omega joins levels only
// at the end, so there a chunk holds rows of one level.
template <class T>
void half_laplacian_blocks<T>::cut_long_query(std::ptrdiff_t q, std::ptrdiff_t block_rows) {
    block chunk;
    chunk.long_index = length_of(long_queries_);
    if (!long_queries_.empty()) chunk.chunk = long_queries_.back().chunks.back().chunk + 1;
    long_query& query = long_queries_.emplace_back();
    query.query = q;
    if (problem_.rule.uses_levels()) query.order = order_by_label(problem_.rows, q);
    plan_query(problem_, q, query.order.empty() ? nullptr : query.order.data(), query.plan);

    query.heaviest = heaviest_row(query.plan);
    const auto& level = query.plan.level;
    const auto level_end = [&](std::ptrdiff_t from) {
        return std::upper_bound(level.begin() + from, level.end(), level[from]) - level.begin();
    };
    const auto add = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        chunk.begin = begin;
        chunk.n_rows = end - begin;
        chunk.first_level = level[begin];
        chunk.n_levels = level[end - 1] - chunk.first_level + 1;
        query.chunks.push_back(chunk);
        blocks_.push_back(chunk);
        ++chunk.chunk;
    };
    const auto n = problem_.rows.size(q);
    for (std::ptrdiff_t begin = 0, end; begin < n; begin = end) {
        end = level_end(begin);
        if (end - begin > block_rows) {
            for (std::ptrdiff_t part = begin; part < end; part += block_rows)
                add(part, std::min(part + block_rows, end));
            continue;
        }
        while (problem_.rule.kind != pair_kind::omega && end < n &&
               level_end(end) - begin <= block_rows)
            end = level_end(end);
        add(begin, end);
    }
}

template <class T>
std::ptrdiff_t half_laplacian_blocks<T>::max_rows() const {
    std::ptrdiff_t most = 0;
    for (const auto& b : blocks_) most = std::max(most, b.n_rows);
    return most;
}

// The features of the row that the others are taken from; zeros for pointwise rows. mapped: what a
// map has made of the row already, or null.
template <class T>
void half_laplacian_blocks<T>::set_pivot(std::ptrdiff_t row, const T* mapped,
                                         buffer<T>& pivot) const {
    const auto d = features_.n_features;
    pivot.assign(d, T{0});
    if (problem_.rule.kind == pair_kind::none) return;
    if (mapped)
        std::copy_n(mapped, d, pivot.begin());
    else if (features_.map)
        features_.map_row(row, pivot.data());
    else
        std::copy_n(features_.inputs + row * d, d, pivot.begin());
}

// Row − pivot, both as given, so that a large common offset cancels exactly. With a map, out holds
// the row's features already. varying, if given, is told how a row that counts differs from the
// pivot; what a map makes of equal rows may differ by rounding, where they stand in a block.
template <class T>
void half_laplacian_blocks<T>::load(std::ptrdiff_t row, std::ptrdiff_t pivot_row,
                                    const buffer<T>& pivot, double weight, T* out, double* sum,
                                    varying_features<T>* varying) const {
    const auto d = features_.n_features, t = features_.n_targets;
    const T* source = features_.map ? out : features_.inputs + row * d;
    const bool marks = varying && weight > 0 && !varying->complete();
    if (marks && features_.map)
        varying->mark(out, pivot.data(), 64 * std::numeric_limits<T>::epsilon());
    auto* const flags = marks && !features_.map ? varying->flags() : nullptr;
    load_row(d, source, pivot.data(), weight, out, sum, flags);
    if (flags) varying->marked();
    const bool pointwise = problem_.rule.kind == pair_kind::none;
    load_row(t, features_.targets + row * t,
             pointwise ? no_target_pivot_.data() : features_.targets + pivot_row * t, weight,
             out + d, sum + d);
}

template <class T>
void half_laplacian_blocks<T>::transform(std::ptrdiff_t b, T* out, std::ptrdiff_t ld) {
    const auto& it = blocks_[b];
    if (it.long_index >= 0)
        transform_chunk(it, out, ld);
    else
        pair_weight_[b] = transform_queries(it, out, ld);
}

template <class T>
double half_laplacian_blocks<T>::transform_queries(const block& b, T* out, std::ptrdiff_t ld) {
    buffer<std::int64_t> counts(counts_ ? features_.n_features + 1 : 0);
    varying_features<T> varying;
    query_plan plan;
    level_sums sums;
    buffer<T> scratch;
    const auto first = problem_.rows.begin(b.first_query);
    features_.map_to(
        b.n_rows, [&](std::ptrdiff_t i) { return problem_.rows.row(first + i); }, out, ld, scratch);
    double pair_weight = 0;
    for (std::ptrdiff_t q = b.first_query; q < b.last_query; ++q) {
        const auto n = problem_.rows.size(q);
        if (n == 0) continue;
        const auto begin = problem_.rows.begin(q);
        plan_query(problem_, q, nullptr, plan);
        sums.reset(plan.n_levels(), width());
        const auto pivot = heaviest_row(plan), pivot_row = problem_.rows.row(begin + pivot);
        set_pivot(pivot_row, features_.map ? out + pivot * ld : nullptr, scratch);
        const bool counts_query = counts_ && plan.pair_weight > 0;
        if (counts_query) varying.start(features_.n_features);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            load(problem_.rows.row(begin + i), pivot_row, scratch, plan.weight[i], out + i * ld,
                 sums.sum.data() + plan.level[i] * width(), counts_query ? &varying : nullptr);
        if (counts_query) varying.add_to(counts.data());
        transform_rows<T>(n, width(), plan.level.data(), plan.weight.data(), plan.within.data(),
                          plan, problem_.rule.kind, out, ld, sums);
        pair_weight += plan.pair_weight;
        out += n * ld;
    }
    if (counts_) {
        const std::lock_guard<std::mutex> lock(counts_mutex_);
        std::transform(counts.begin(), counts.end(), counts_, counts_, std::plus<>());
    }
    return pair_weight;
}

template <class T>
void half_laplacian_blocks<T>::transform_chunk(const block& b, T* out, std::ptrdiff_t ld) {
    auto& query = long_queries_[b.long_index];
    const auto first = problem_.rows.begin(query.query);
    const auto row = [&](std::ptrdiff_t i) {
        return query.order.empty() ? problem_.rows.row(first + i)
                                   : static_cast<std::ptrdiff_t>(query.order[i]);
    };
    buffer<std::int32_t> level(b.n_rows);
    level_sums sums;
    sums.reset(b.n_levels, width());
    const auto* weight = query.plan.weight.data() + b.begin;
    buffer<T> scratch;
    features_.map_to(
        b.n_rows, [&](std::ptrdiff_t i) { return row(b.begin + i); }, out, ld, scratch);
    const auto pivot_row = row(query.heaviest);
    set_pivot(pivot_row, nullptr, scratch);
    varying_features<T> varying;
    const bool counts_query = counts_ && query.plan.pair_weight > 0;
    if (counts_query) varying.start(features_.n_features);
    for (std::ptrdiff_t i = 0; i < b.n_rows; ++i) {
        level[i] = query.plan.level[b.begin + i] - static_cast<std::int32_t>(b.first_level);
        load(row(b.begin + i), pivot_row, scratch, weight[i], out + i * ld,
             sums.sum.data() + level[i] * width(), counts_query ? &varying : nullptr);
    }
    if (counts_query) {
        const std::lock_guard<std::mutex> lock(counts_mutex_);
        varying.each([&](std::size_t j) { query.varies[j] = 1; });
    }
    const auto how = problem_.rule.kind == pair_kind::omega ? pair_kind::kept : problem_.rule.kind;
    transform_rows<T>(b.n_rows, width(), level.data(), weight,
                      query.plan.within.data() + b.first_level, query.plan, how, out, ld, sums);
    chunk_weight_[b.chunk] = std::accumulate(sums.weight.begin(), sums.weight.end(), 0.0);
    std::copy(sums.mean.begin(), sums.mean.end(), chunk_mean_.begin() + b.chunk * width());
}

template <class T>
buffer<double> half_laplacian_blocks<T>::joining_rows() const {
    buffer<double> out;
    if (problem_.rule.kind == pair_kind::none) return out;
    for (const auto& query : long_queries_) join_query(query, out);
    return out;
}

// Parts of a level are joined at the level's factor, then levels and groups of levels at the
// query's; for omega the level means are kept and joined by B.
template <class T>
void half_laplacian_blocks<T>::join_query(const long_query& query, buffer<double>& out) const {
    const auto w = width();
    struct total {
        double weight = 0;
        buffer<double> mean;
    };
    const auto merge = [&](double factor, total& a, double weight, const double* mean) {
        if (weight <= 0) return;
        const double sum = a.weight + weight;
        const double scale = factor * std::sqrt(a.weight / sum * weight);
        for (std::ptrdiff_t j = 0; j < w; ++j) {
            const double difference = mean[j] - a.mean[j];
            if (a.weight > 0) out.push_back(scale * difference);
            a.mean[j] += weight / sum * difference;
        }
        a.weight = sum;
    };
    const total nothing{0, buffer<double>(w, 0.0)};
    const auto& plan = query.plan;
    total all = nothing, level = nothing;
    buffer<double> level_means(problem_.rule.kind == pair_kind::omega ? plan.n_levels() * w : 0);
    for (std::size_t i = 0; i < query.chunks.size(); ++i) {
        const auto& chunk = query.chunks[i];
        merge(plan.within[chunk.first_level], level, chunk_weight_[chunk.chunk],
              chunk_mean_.data() + chunk.chunk * w);
        const bool level_goes_on =
            i + 1 < query.chunks.size() && query.chunks[i + 1].first_level == chunk.first_level;
        if (level_goes_on) continue;
        if (problem_.rule.kind == pair_kind::omega)
            std::copy(level.mean.begin(), level.mean.end(),
                      level_means.begin() + chunk.first_level * w);
        else
            merge(plan.between, all, level.weight, level.mean.data());
        level = nothing;
    }
    if (problem_.rule.kind == pair_kind::omega) {
        const auto at = out.size();
        out.resize(at + level_means.size());
        between_rows(plan, w, level_means.data(), out.data() + at);
    }
}

template <class T>
void half_laplacian_blocks<T>::count_varying(std::int64_t* counts) {
    counts_ = counts;
    for (auto& query : long_queries_) query.varies.assign(features_.n_features, 0);
}

template <class T>
void half_laplacian_blocks<T>::finish_counts() {
    if (!counts_) return;
    for (const auto& query : long_queries_) {
        for (std::size_t j = 0; j < query.varies.size(); ++j) counts_[j] += query.varies[j];
        counts_[features_.n_features] += std::any_of(query.varies.begin(), query.varies.end(),
                                                     [](std::uint8_t varies) { return varies; });
    }
}

template <class T>
double half_laplacian_blocks<T>::pair_weight() const {
    double total = std::accumulate(pair_weight_.begin(), pair_weight_.end(), 0.0);
    for (const auto& query : long_queries_) total += query.plan.pair_weight;
    return total;
}

template class half_laplacian_blocks<double>;
template class half_laplacian_blocks<float>;

}  // namespace pairgram
