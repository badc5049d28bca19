// A matrix B (k, n), packed for products A B whose rows have the same bits wherever they stand and
// whatever rows are beside them: every entry of A B is one sum, taken in one order.
//
// 2·m·n·k flops, at 80 to 90 % of what the processor can do in one thread. No BLAS. (Products of
// BLAS differ by a row's place: its edge code sums in another order.)
#pragma once

#include <cstddef>

#include "support/buffer.hpp"

namespace pairgram {

template <class T>
class column_panels {
  public:
    column_panels() = default;

    // Copies row-major B. Rows of zeros above the first other value of a panel are left out of the
    // sums: about half the flops for a triangular matrix.
    column_panels(std::ptrdiff_t k, std::ptrdiff_t n, const T* matrix);

    // C (m, n; stride ldc) += A (m, k; stride lda) B.
    void add_product(std::ptrdiff_t m, const T* a, std::ptrdiff_t lda, T* c,
                     std::ptrdiff_t ldc) const;

  private:
    struct panel {
        std::ptrdiff_t begin;  // the first row that counts
        std::size_t at;        // where its values begin
    };

    template <int Lanes, int Rows>
    void add_product_in(std::ptrdiff_t m, const T* a, std::ptrdiff_t lda, T* c,
                        std::ptrdiff_t ldc) const;

    std::ptrdiff_t k_ = 0, n_ = 0;
    buffer<panel> panels_;
    buffer<T> values_;  // of panel after panel: rows of `width` columns, zeros behind the last
};

}  // namespace pairgram
