// R and Rᵀ, the half-Laplacian and its adjoint, applied in place to the vectors of a matrix: to its
// columns, its rows, or one after the other for R K Rᵀ. R is never formed.
#pragma once

#include <cstddef>

#include "data/half_laplacian.hpp"

namespace pairgram {

// Vectors with an entry per row of the data: entry i of vector j stands at
// data[i·entry_stride + j·vector_stride].
struct vector_view {
    std::ptrdiff_t n_vectors;
    std::ptrdiff_t entry_stride;
    std::ptrdiff_t vector_stride;
    double* data;
};

// Every vector x becomes R x, or Rᵀ x where adjoint. Entry i of the result belongs to row i of the
// data as rows numbers it, so that R is square and RᵀR = L whatever the queries' order. With
// s = sqrt(v), t_l = Σ s z over the rows of level l and the factors of half_laplacian.hpp:
//
//   (Rᵀz)_i = s_i f_l z_i + (v_i / V_l) m_l
//   kept     m_l = −f_l t_l
//   dropped  m_l = −f_l t_l + sqrt(c V) (t_l − (V_l / V) Σ_k t_k)
//   omega    m_l = −f_l t_l + (Bᵀ (t / sqrt(V)))_l
//   none     m_l = 0
//
// O(n) per vector (omega adds O(levels²)), two passes over the memory; strips of vectors are
// shared among the threads, with the same bits for any number. Scratch: O(n) doubles for the plans
// and, per thread, 32 or more times the longest query.
void apply_root(const ranking_problem& problem, bool adjoint, const vector_view& vectors,
                int n_threads);

// Applies R to the rows (n, width; stride ld) of one query in place. sums are scratch.
void apply_root(const query_plan& plan, pair_kind kind, std::ptrdiff_t width, double* rows,
                std::ptrdiff_t ld, level_sums& sums);

}  // namespace pairgram
