// Maps rows to hidden nodes, h_k(x) = s·g_k(w_kᵀx + c_k ‖x‖² + b_k), block by block, and the nodes,
// where there is a tail, to outputs hᵀ·tail.
//
// Gaussian nodes exp(−b ‖x − a‖²) have w = −2 b a, c = b and bias b ‖a‖² under g(z) = exp(−z).
// Kernel values are nodes too, with x and a both taken from an origin that keeps them small.
// 2·n·n_inputs·n_nodes flops (n_inputs·n_nodes differences per row for Manhattan nodes), one
// activation per value, and 2·n·n_nodes·n_outputs flops for the tail. Scratch with a tail, and for
// scores: the nodes of 16 to 256 rows, a quarter of a megabyte for up to 2,000 nodes. What becomes
// of a row has the same bits wherever it stands.
#pragma once

#include <cstddef>

#include "features/activations.hpp"
#include "features/cross_columns.hpp"
#include "features/input_columns.hpp"
#include "linear_algebra/column_panels.hpp"
#include "linear_algebra/row_scores.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// Neighbouring nodes with one activation; linear nodes have none.
struct node_segment {
    std::ptrdiff_t begin, end;
    bool linear;
    activation kind;
};

template <class T>
struct node_map {
    std::ptrdiff_t n_inputs, n_nodes;
    std::ptrdiff_t n_outputs;       // n_nodes without a tail
    const T* bias;                  // (n_nodes,)
    const T* square;                // (n_nodes,) c, or null for zeros
    column_panels<T> weights = {};  // (n_inputs, n_nodes), but of Manhattan and minmax
    buffer<node_segment> segments = {};
    T scale = 1;                   // s
    int degree = 1;                // power of the linear nodes, ≥ 1
    const T* manhattan = nullptr;  // weights of nodes g_k(c_k ‖x − w_k‖₁ + b_k), or null
    const T* minmax = nullptr;     // weights of nodes g_k(m / (Σ_i |x_i| + b_k − m)), or null, with
                                   // m = Σ_i min(|x_i|, |w_ki|) over the i of one sign
    bool tanimoto = false;         // g_k(w_kᵀx / (‖x‖² + b_k − w_kᵀx)) instead, of 1 for 0 / 0
    const T* origin = nullptr;     // (n_inputs,) taken from every x first, or null
    bool has_tail = false;
    column_panels<T> tail = {};              // (n_nodes, n_outputs)
    const node_map<double>* wide = nullptr;  // for float: makes the nodes in double instead. A tail
    const double* centre = nullptr;  // then takes them less this, (n_nodes,), and adds to the bias,
                                     // which is (n_outputs,)
    const input_columns* columns = nullptr;  // made of the rows first, or null; with them, the rest
    const node_map<T>* then = nullptr;       // is another map of the columns, or null for none
    const cross_columns* cross = nullptr;    // makes products in place of nodes, or null
    cross_part part = cross_part::products;  // of what the cross makes
};

// A map to products, or null if this map is none, be it of columns that are made of rows before.
template <class T>
const cross_columns* cross_of(const node_map<T>& map) {
    if (map.columns && map.then) return cross_of(*map.then);
    return map.part == cross_part::products ? map.cross : nullptr;
}

// A part of what a map to products makes of rows. It must not be copied, nor outlive the map.
template <class T>
class part_of_cross {
  public:
    part_of_cross(const node_map<T>& map, cross_part part);
    part_of_cross(const part_of_cross&) = delete;
    part_of_cross& operator=(const part_of_cross&) = delete;
    const node_map<T>& map() const { return columns_ ? outer_ : own_; }

  private:
    bool columns_;
    node_map<T> own_, outer_;
};

// out (n, n_outputs; stride ldo) from rows (n, n_inputs; stride ldr).
template <class T>
void map_rows(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr, T* out,
              std::ptrdiff_t ldo);

// scores[m·ld + i] of row i of rows (n, n_inputs) by models of the outputs, in double. A row with
// NaN or infinity, which nodes may hide, has the score NaN.
template <class T>
void score_mapped(const node_map<T>& map, std::ptrdiff_t n, const T* rows,
                  const linear_models& models, double* scores, std::ptrdiff_t ld);

}  // namespace pairgram
