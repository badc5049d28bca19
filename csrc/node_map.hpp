// Maps rows to hidden nodes, h_k(x) = s·g_k(w_kᵀx + c_k ‖x‖² + b_k), block by block, and the nodes,
// where there is a tail, to outputs hᵀ·tail.
//
// Gaussian nodes exp(−b ‖x − a‖²) have w = −2 b a, c = b and bias b ‖a‖² under g(z) = exp(−z).
// Kernel values are nodes too, with x and a both taken from an origin that keeps them small.
// 2·n·n_inputs·n_nodes flops (n_inputs·n_nodes differences per row for Manhattan nodes), one
// activation per value, and 2·n·n_nodes·n_outputs flops for the tail. Scratch with a tail: 128 rows
// of nodes. BLAS must be held to one thread.
#pragma once

#include <cstddef>
#include <vector>

#include "vmath.hpp"

namespace pairgram {

// Neighbouring nodes with one activation; linear nodes have none.
struct node_segment {
    std::ptrdiff_t begin, end;
    bool linear;
    activation kind;
};

constexpr std::ptrdiff_t tail_strip = 128;  // outputs that one product makes

template <class T>
struct node_map {
    std::ptrdiff_t n_inputs, n_nodes;
    std::ptrdiff_t n_outputs;  // n_nodes without a tail
    const T* weights;          // (n_inputs, n_nodes)
    const T* bias;             // (n_nodes,)
    const T* square;           // (n_nodes,) c, or null for zeros
    std::vector<node_segment> segments = {};
    T scale = 1;                // s
    int degree = 1;             // power of the linear nodes, ≥ 1
    bool manhattan = false;     // nodes g_k(c_k ‖x − w_k‖₁ + b_k) instead
    bool tanimoto = false;      // g_k(w_kᵀx / (‖x‖² + b_k − w_kᵀx)) instead, of 1 for 0 / 0
    bool minmax = false;        // g_k(m / (Σ_i x_i + b_k − m)), m = Σ_i min(x_i, w_ki), x and w ≥ 0
    const T* origin = nullptr;  // (n_inputs,) taken from every x first, or null
    const T* tail = nullptr;    // (n_nodes, n_outputs), or null
    std::vector<std::ptrdiff_t> tail_begin =
        {};                                  // of each strip of outputs: its rows before are zero
    const node_map<double>* wide = nullptr;  // for float: does all of it in double instead
};

// The tail_begin of a tail: about half the products of a triangular one are saved.
template <class T>
std::vector<std::ptrdiff_t> leading_zeros(std::ptrdiff_t n_nodes, std::ptrdiff_t n_outputs,
                                          const T* tail);

// out (n, n_outputs; stride ldo) from rows (n, n_inputs; stride ldr).
template <class T>
void map_rows(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr, T* out,
              std::ptrdiff_t ldo);

}  // namespace pairgram
