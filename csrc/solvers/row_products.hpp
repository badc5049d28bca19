// Products with the rows of a matrix H (n, width), whose values are read once, in their own type,
// and summed in double: scores H w, sums Hᵀ z, and a Newton solver's Hᵀ (2 AᵀDA) H s in one pass.
//
// 2·n·width flops each (4 in the one pass, and per model for scores), bound by reading H. All have
// the same bits for any n_threads: rows are added up in a fixed number of slots, which are added in
// order.
#pragma once

#include <cstddef>

#include "linear_algebra/row_scores.hpp"
#include "solvers/pair_operator.hpp"

namespace pairgram {

// scores (n_models, n) of the rows, see row_scores.hpp.
template <class T>
void score_rows(const matrix_rows<T>& rows, const linear_models& models, double* scores,
                int n_threads);

// out (width,) = Hᵀ z. Rows whose z is 0 need not be read.
template <class T>
void sum_rows(const matrix_rows<T>& rows, const double* z, double* out, int n_threads);

// out (width,) += Hᵀ z of the rows at positions begin to end, one after the other.
template <class T>
void add_rows(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end, const double* z,
              double* out);

// scores (n,) = H s and out (width,) = Hᵀ (2 AᵀDA) H s, query by query while its rows are in cache;
// a query that the cache does not hold is read twice. Queries without pairs get scores 0.
template <class T>
void hessian_product(const pair_operator& pairs, const matrix_rows<T>& rows, const double* s,
                     double* scores, double* out, int n_threads);

}  // namespace pairgram
