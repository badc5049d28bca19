// The half-Laplacian: rows R·H with RᵀR = L, so that pairwise least squares becomes ordinary least
// squares on transformed rows.
//
// Per query, with row weights v, levels l of equal label, V = Σ v, V_l, means μ and μ_l, a query
// factor c (weighting and query weight) and W_ij = c v_i v_j ω(y_i, y_j):
//
//   kept     ω = 1          sqrt(c v_i V) (h_i − μ)
//   dropped  ω = [l ≠ k]    sqrt(c v_i (V − V_l)) (h_i − μ_l) + sqrt(c v_i V) (μ_l − μ)
//   omega    any ω ≥ 0      sqrt(c v_i D_l) (h_i − μ_l) + sqrt(v_i / V_l) (B μ)_l,
//                           D_l = c Σ_k V_k ω(l, k),  BᵀB = Laplacian of c V_l V_k ω(l, k)
//   none     pointwise      sqrt(c v_i) h_i
//
// O(n·width) per query; omega adds O(levels² · width + levels³). Source: Pahikkala et al. 2007 (W =
// PPᵀ, tied pairs kept or dropped); the square root is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "data/ranking_problem.hpp"
#include "data/varying_columns.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// What a query's labels and weights say about its transform, before any feature is seen.
struct query_plan {
    buffer<std::int32_t> level;   // (n,) of every row
    buffer<double> weight;        // (n,) v
    buffer<double> level_label;   // (K,)
    buffer<double> level_weight;  // (K,) V_l
    buffer<double> within;        // (K,) factor of h − μ_l, without sqrt(v_i)
    double between = 0;           // dropped: factor of μ_l − μ, without sqrt(v_i)
    buffer<double> chord;         // omega: (K, K) weights after elimination, row l right of l
    double total_weight = 0;      // V
    double pair_weight = 0;       // Σ_ij W_ij, both orders and the diagonal

    std::ptrdiff_t n_levels() const { return length_of(level_weight); }
    // omega: the chords of a level and those right of it; 0 for the last of those that pairs join.
    double degree(std::ptrdiff_t l) const {
        const double* const row = chord.data() + l * n_levels();
        return std::accumulate(row + l + 1, row + n_levels(), 0.0);
    }
};

// Plans the query whose n rows stand at positions [begin, begin + n) of rows; order, if given,
// replaces rows.row (a long query sorted by label).
void plan_query(const ranking_problem& problem, std::ptrdiff_t query, const std::int64_t* order,
                query_plan& plan);

// The row that the others of a query are taken from: the first of the largest weight among those in
// pairs. The mean of a query that one row dominates is then next to 0, and keeps its digits.
std::ptrdiff_t heaviest_row(const query_plan& plan);

// Sums per level of rows that are loaded one after the other.
struct level_sums {
    buffer<double> sum;     // (K, width); after finish: the offset of every level
    buffer<double> weight;  // (K,)
    buffer<double> mean;    // (width,) of all levels, after finish

    void reset(std::ptrdiff_t n_levels, std::ptrdiff_t width);
};

// (Bμ)_l of every level, with means (K, width), into out (K, width): B from the plan's chord.
void between_rows(const query_plan& plan, std::ptrdiff_t width, const double* means, double* out);

// Loads row = source − pivot, widened or narrowed to T, and adds weight·row to sum. With flags,
// those of columns that differ from the pivot are set.
template <class T, class S>
void load_row(std::ptrdiff_t width, const S* source, const S* pivot, double weight, T* row,
              double* sum, flag_of<S>* flags = nullptr);

// Transforms n loaded rows (n, width; stride ld) in place: not centred (none), or centred per level
// (kept) and the levels joined for dropped ties or any ω. level and weight are the rows', within
// the levels' factors; sums holds Σ v h per level and ends as offsets, with sums.mean filled.
template <class T>
void transform_rows(std::ptrdiff_t n, std::ptrdiff_t width, const std::int32_t* level,
                    const double* weight, const double* within, const query_plan& plan,
                    pair_kind how, T* rows, std::ptrdiff_t ld, level_sums& sums);

}  // namespace pairgram
