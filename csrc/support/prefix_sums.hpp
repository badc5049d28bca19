// Sums over the first places of an order, of values that come one after the other: a Fenwick tree.
#pragma once

#include <cstddef>

namespace pairgram {

// Adds x at a place from 0 on. `tree` has n_places + 1 sums, all 0 at first. O(log n_places).
template <class T>
void add_at(T* tree, std::ptrdiff_t n_places, std::ptrdiff_t place, const T& x) {
    for (auto k = place + 1; k <= n_places; k += k & -k) tree[k] += x;
}

// The sum of what was added at the first n places. O(log n).
template <class T>
T sum_of_first(const T* tree, std::ptrdiff_t n) {
    T sum{};
    for (auto k = n; k > 0; k -= k & -k) sum += tree[k];
    return sum;
}

}  // namespace pairgram
