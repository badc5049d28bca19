// Products of two groups of columns, ũ ⊗ v, behind columns that are kept as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear_algebra/row_scores.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// Which columns of a row go where. The left side is ũ = (1, the left columns), the right side is v.
struct cross_columns {
    std::ptrdiff_t n_inputs = 0;
    buffer<std::int64_t> kept, left, right;

    std::ptrdiff_t n_kept() const { return length_of(kept); }
    std::ptrdiff_t n_left() const { return length_of(left) + 1; }  // of ũ
    std::ptrdiff_t n_right() const { return length_of(right); }
};

// What a map makes of rows: [kept, ũ_0 v, ũ_1 v, …], ũ alone, or [kept, v].
enum class cross_part { products, left, right };

std::ptrdiff_t n_outputs(const cross_columns& cross, cross_part part);

// out (n, n_outputs; stride ldo) from rows (n, n_inputs; stride ldr). The products of neighbouring
// rows of one left side map it once.
template <class T>
void map_cross(const cross_columns& cross, cross_part part, std::ptrdiff_t n, const T* rows,
               std::ptrdiff_t ldr, T* out, std::ptrdiff_t ldo);

// out (n_kept + n_right) = the weights of [kept, v] of one model of the products, (kept, W): those
// of the kept columns, and Wᵀũ, in double.
template <class T>
void fold_left(const cross_columns& cross, const T* left, const double* coefs, double* out);

// scores[m·ld + i] of row i of rows (n, n_inputs; stride ldr) by models of the products, in double:
// Wᵀũ once for neighbouring rows of one left side, and a product with [kept, v] for every row. A
// score has the same bits wherever its row stands.
template <class T>
void score_cross(const cross_columns& cross, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                 const linear_models& models, double* scores, std::ptrdiff_t ld);

}  // namespace pairgram
