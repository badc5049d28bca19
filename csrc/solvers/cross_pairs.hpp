// Products with the pairgram of products ũ ⊗ v behind kept columns, for several vectors and several
// systems at once, as in sparse_pairs.hpp. Neither the pairgram nor a product of columns is formed:
//
//   W ↦ Σ_i ũ_i (Xᵀ L X)_i,   scores of the rows of run i by t_i = Wᵀ ũ_i,
//
// where a run is neighbouring rows of a query of which the left side is the same: all of its rows,
// if a query is a person. For n rows, m runs, p products of r columns and k kept ones: 4·n·(k + r)
// + 4·m·p·r flops per vector, bound by reading the right sides, which are kept in the type of the
// rows and summed in double. In double, those of a query of one left side are taken from its first
// row, so that large common values cost no digits. The same bits for any n_threads: what is added
// up is added in an order that the shape alone decides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "features/node_map.hpp"
#include "solvers/sparse_pairs.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// Neighbouring rows of one query and one left side.
struct run_of_rows {
    std::ptrdiff_t begin, end;  // positions of rows
    std::ptrdiff_t query;
};

// Neighbouring runs that are multiplied together: those of whole queries, or of a part of a query
// with very many rows or runs.
struct chunk_of_runs {
    std::ptrdiff_t begin, end;
    bool whole;
};

template <class T>
struct cross_rows {
    std::ptrdiff_t n_kept, n_left, n_right;
    bool makes_differences;  // rows do not count one by one
    buffer<run_of_rows> runs;
    buffer<chunk_of_runs> chunks;
    buffer<std::ptrdiff_t> long_queries;  // of which a chunk has a part
    buffer<T> left;                       // (n_runs, n_left) ũ
    buffer<T> right;                      // (n, n_kept + n_right) kept columns and v, by position
    buffer<std::uint8_t> is_constant;     // of every query: it has one left side

    std::ptrdiff_t n_rows() const { return runs.empty() ? 0 : runs.back().end; }
    std::ptrdiff_t width() const { return n_kept + n_right; }
    std::ptrdiff_t n_features() const { return n_kept + n_left * n_right; }
};

// Lays out the rows of inputs (n, map.n_inputs), whose features a map to products makes. Pairs of
// rows make differences, but where rows count one by one.
template <class T>
cross_rows<T> lay_out(const query_rows& rows, bool makes_differences, const T* inputs,
                      const node_map<T>& map, int n_threads);

// out (n_vectors, n_features): vector j becomes Xᵀ L X p of system systems[j].
template <class T>
void cross_pair_product(const cross_rows<T>& rows, const buffer<laplacian>& laplacians,
                        std::ptrdiff_t n_vectors, const double* p, const std::int64_t* systems,
                        double* out, int n_threads);

// out (n_features) = Xᵀ z for z (n_rows,) by position. In every query of one left side z adds up to
// 0, unless rows count one by one.
template <class T>
void cross_transposed(const cross_rows<T>& rows, const double* z, double* out, int n_threads);

// diagonal (n_features,) of Xᵀ L X, size (n_features,), what was subtracted from, and unless it is
// null of_left (n_left, n_left), the sum over runs of ũ ũᵀ tr S with the part S of Xᵀ L X that the
// right side has in the run. In a query of several left sides, the size takes the place of the
// diagonal, which is at most twice that. n (k + r) applications of L to one number, 2·m·p·r flops,
// and m·p² with of_left.
template <class T>
void cross_pair_squares(const cross_rows<T>& rows, const laplacian& pairs, double* diagonal,
                        double* size, double* of_left, int n_threads);

}  // namespace pairgram
