// Counts, for every feature, the queries in which it varies: two rows that count (of weight > 0)
// have different values, or, for pointwise rows, one has a value other than 0. Queries without pair
// weight are left out: they add nothing to the statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "data/query_rows.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// A flag as wide as a value, so that both fill a vector register.
template <class T>
using flag_of = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

// Which features differ from a query's first row that counts, or from zeros, in other rows of it.
// Who loads rows may mark them on the way; once complete(), there is no need to.
template <class T>
class varying_features {
  public:
    void start(std::ptrdiff_t n_features);
    bool complete() const { return n_open_ == 0; }

    // One per feature: not 0 where it differs. After each row that has been marked, call marked().
    flag_of<T>* flags() { return flags_.data(); }
    void marked();

    // Marks the features of a row by more than rounding: a share of the larger value.
    void mark(const T* row, const T* first, T rounding);

    // counts (n_features + 1): adds 1 for every feature that differs, and to the last if any does.
    void add_to(std::int64_t* counts) const;

    // Calls visit(feature) for every one that differs.
    template <class Visit>
    void each(const Visit& visit) const {
        for (std::size_t j = 0; j < flags_.size(); ++j)
            if (flags_[j]) visit(j);
    }

  private:
    std::ptrdiff_t n_marked_ = 0, next_look_ = 1;
    std::size_t n_open_ = 0;  // features that were the same at the last look
    buffer<flag_of<T>> flags_;
};

// The same counts for sparse rows without duplicates, added to counts (n_features + 1); the last is
// the number of queries in which any feature varies. counted: the queries with pair weight. Time
// O(n_entries), memory O(n_features).
void count_varying(const query_rows& queries, const bool* counted, bool pointwise,
                   const sparse_rows<double>& X, std::int64_t* counts);

}  // namespace pairgram
