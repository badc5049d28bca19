// Maps rows to hidden nodes, h_k(x) = g_k(w_kᵀx + c_k ‖x‖² + b_k), block by block.
//
// Gaussian nodes exp(−b ‖x − a‖²) have w = −2 b a, c = b and bias b ‖a‖² under g(z) = exp(−z).
// 2·n·n_inputs·n_nodes flops and one activation per value. BLAS must be held to one thread.
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

template <class T>
struct node_map {
    std::ptrdiff_t n_inputs, n_nodes;
    const T* weights;  // (n_inputs, n_nodes)
    const T* bias;     // (n_nodes,)
    const T* square;   // (n_nodes,) c, or null for zeros
    std::vector<node_segment> segments;
};

// out (n, n_nodes; stride ldo) from rows (n, n_inputs; stride ldr).
template <class T>
void map_rows(const node_map<T>& map, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr, T* out,
              std::ptrdiff_t ldo);

}  // namespace pairgram
