// Cuts ranking data into blocks of transformed rows that fit the cache: whole queries, or chunks of
// a query that is longer than a block, whose rows are ordered by label first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "data/half_laplacian.hpp"
#include "data/varying_columns.hpp"
#include "features/node_map.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// Rows h = [features, targets] of width n_features + n_targets, indexed by row. With a map the
// features are those of its nodes, made from inputs when they are needed.
template <class T>
struct feature_rows {
    std::ptrdiff_t n_features;
    const T* inputs;  // (n, n_features), or (n, map->n_inputs)
    std::ptrdiff_t n_targets;
    const double* targets;  // (n, n_targets)
    const node_map<T>* map = nullptr;

    std::ptrdiff_t width() const { return n_features + n_targets; }
    std::ptrdiff_t n_inputs() const { return map ? map->n_inputs : n_features; }

    // The same rows with the features of another map.
    feature_rows mapped_by(const node_map<T>& other) const {
        return {other.n_outputs, inputs, n_targets, targets, &other};
    }

    // Writes what a map makes of a row, (n_features,).
    void map_row(std::ptrdiff_t row, T* out) const {
        map_rows(*map, 1, inputs + row * n_inputs(), n_inputs(), out, n_features);
    }

    // Writes the features of n rows, row(i) each, to out (n, n_features; stride ld); without a map,
    // nothing. gathered is scratch for rows that do not stand together.
    template <class Row>
    void map_to(std::ptrdiff_t n, const Row& row, T* out, std::ptrdiff_t ld,
                buffer<T>& gathered) const {
        if (!map) return;
        const auto first = n > 0 ? row(0) : 0;
        bool together = true;
        for (std::ptrdiff_t i = 0; i < n; ++i) together = together && row(i) == first + i;
        if (together) return map_rows(*map, n, inputs + first * n_inputs(), n_inputs(), out, ld);
        gathered.resize(n * n_inputs());
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy_n(inputs + row(i) * n_inputs(), n_inputs(),
                        gathered.begin() + i * n_inputs());
        map_rows(*map, n, gathered.data(), n_inputs(), out, ld);
    }
};

struct block {
    std::ptrdiff_t n_rows = 0;
    std::ptrdiff_t first_query = 0, last_query = 0;  // whole queries, where long_index < 0
    std::ptrdiff_t long_index = -1;
    std::ptrdiff_t chunk = 0;  // numbered over all long queries
    std::ptrdiff_t begin = 0;  // position in the long query
    std::ptrdiff_t first_level = 0, n_levels = 0;
};

// A query longer than a block. Its chunks hold whole levels or a part of one; the scatter between
// chunks is added at the end, from their weights and means, by Chan's formula.
struct long_query {
    std::ptrdiff_t query;
    query_plan plan;
    buffer<std::int64_t> order;  // rows by label; empty where the labels do not matter
    std::ptrdiff_t heaviest;     // see heaviest_row
    buffer<block> chunks;
    buffer<std::uint8_t> varies;  // (n_features,), where that is counted
};

template <class T>
class half_laplacian_blocks {
  public:
    half_laplacian_blocks(const ranking_problem& problem, const feature_rows<T>& features,
                          std::ptrdiff_t block_rows);

    std::ptrdiff_t n_blocks() const { return length_of(blocks_); }
    std::ptrdiff_t width() const { return features_.width(); }
    std::ptrdiff_t n_rows(std::ptrdiff_t b) const { return blocks_[b].n_rows; }
    std::ptrdiff_t max_rows() const;

    // Writes the transformed rows of block b to out (n_rows(b), width; stride ld). Thread-safe for
    // different blocks.
    void transform(std::ptrdiff_t b, T* out, std::ptrdiff_t ld);

    // After all blocks: the rows (n, width) that join the chunks of long queries.
    buffer<double> joining_rows() const;

    // After all blocks: Σ W_ij over all queries.
    double pair_weight() const;

    // Before the first block: adds to counts (n_features + 1) the number of queries in which each
    // feature varies, and in which any does. See varying.hpp; values that a map makes are equal
    // where they differ by rounding.
    void count_varying(std::int64_t* counts);

    // After all blocks: counts the queries that are longer than a block.
    void finish_counts();

  private:
    void cut_long_query(std::ptrdiff_t query, std::ptrdiff_t block_rows);
    double transform_queries(const block& b, T* out, std::ptrdiff_t ld);
    void transform_chunk(const block& b, T* out, std::ptrdiff_t ld);
    void set_pivot(std::ptrdiff_t row, const T* mapped, buffer<T>& pivot) const;
    void load(std::ptrdiff_t row, std::ptrdiff_t pivot_row, const buffer<T>& pivot, double weight,
              T* out, double* sum, varying_features<T>* varying) const;
    void join_query(const long_query& query, buffer<double>& out) const;

    ranking_problem problem_;
    feature_rows<T> features_;
    buffer<block> blocks_;
    buffer<long_query> long_queries_;
    buffer<double> pair_weight_;      // (n_blocks,)
    buffer<double> chunk_weight_;     // (n_chunks,)
    buffer<double> chunk_mean_;       // (n_chunks, width) from the query's first row
    buffer<double> no_target_pivot_;  // zeros
    std::int64_t* counts_ = nullptr;  // of queries in which features vary, or none
    std::mutex counts_mutex_;
};

}  // namespace pairgram
