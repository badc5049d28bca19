// Scores of rows by linear models, row · coefs, summed in double in an order that the width alone
// sets: a score has the same bits wherever its row stands and whatever is scored beside it.
//
// 2·n·width flops per model. One model is bound by reading the rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/buffer.hpp"

namespace pairgram {

// The row at position i is values + row·width with row = order[i], or i where order is null.
template <class T>
struct matrix_rows {
    std::ptrdiff_t n_rows, width;
    const T* values;
    const std::int64_t* order;

    const T* operator()(std::ptrdiff_t position) const {
        return values + (order ? static_cast<std::ptrdiff_t>(order[position]) : position) * width;
    }
};

class linear_models {
  public:
    // Copies coefs (n_models, width).
    linear_models(std::ptrdiff_t n_models, std::ptrdiff_t width, const double* coefs);

    // Copies others (n_models, width) in their place.
    void assign(const double* coefs);

    std::ptrdiff_t size() const { return n_models_; }

    // The copied coefs of model m, (width,).
    const double* coefs(std::ptrdiff_t m) const { return coefs_.data() + m * padded_; }

    // scores[m·ld + i] = row_i · coefs_m for the rows at positions begin to end.
    template <class T>
    void score(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end, double* scores,
               std::ptrdiff_t ld) const;

  private:
    template <int R, int M, class T>
    void score_strip(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end,
                     std::ptrdiff_t m, double* scores, std::ptrdiff_t ld) const;
    template <int R, int M, class T>
    void score_block(const matrix_rows<T>& rows, double* scores, std::ptrdiff_t ld) const;

    std::ptrdiff_t n_models_, width_;
    std::ptrdiff_t padded_;  // width, rounded up to whole lanes
    buffer<double> coefs_;   // (n_models, padded), zeros behind the width
};

// scores[i] = row_i · coefs_m for the rows at positions begin to end and m = models[i], in the bits
// of a `score`; NaN where m < 0. coefs are (·, width).
template <class T>
void score_each(const matrix_rows<T>& rows, std::ptrdiff_t begin, std::ptrdiff_t end,
                const double* coefs, const std::int64_t* models, double* scores);

}  // namespace pairgram
