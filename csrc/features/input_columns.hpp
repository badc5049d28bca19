// Columns that are made of rows before anything else sees them: of every input a scaled copy, its
// empirical distribution function, or the input itself and this function.
//
// All of it is computed in double, also for rows of float, so that rows of either type agree.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/buffer.hpp"

namespace pairgram {

struct knot {
    double at, value;
    double before, after;  // the slopes on either side
};

// A continuous function of one number: linear between knots, constant outside.
struct piecewise_linear {
    buffer<knot> knots;          // ascending
    buffer<std::uint8_t> first;  // of every cell of a grid over the knots, a knot to search from
    double cells_per_unit = 0;
    std::ptrdiff_t first_step = 0;  // of the search within a cell: 0 or a power of two

    piecewise_linear(std::ptrdiff_t n, const double* at, const double* value);
};

// Functions of neighbouring inputs, which are found side by side.
struct function_strip {
    static constexpr std::ptrdiff_t most = 8;

    std::ptrdiff_t width;  // functions, at most 8; the rest of each array is 0
    double lowest[most] = {}, highest[most] = {}, cells_per_unit[most] = {};
    // (cells, 8): of every cell of a function, a knot of knots; then every knot itself.
    buffer<std::uint16_t> first;
    buffer<knot> knots;             // of all functions, some at infinity after those of each
    std::ptrdiff_t first_step = 0;  // of the longest search

    function_strip(std::ptrdiff_t n, const piecewise_linear* functions);
};

struct input_columns {
    std::ptrdiff_t n_inputs = 0;
    bool keeps_inputs = false;         // whether the inputs themselves come first
    const double* centres = nullptr;   // (n_inputs,) of scaled columns (x - centre) * factor,
    const double* factors = nullptr;   // (n_inputs,), or null
    buffer<function_strip> functions;  // of 8 inputs each, or empty

    std::ptrdiff_t n_columns() const { return keeps_inputs ? 2 * n_inputs : n_inputs; }
};

// out (n, n_columns; stride ldo) from rows (n, n_inputs; stride ldr). A column of a row depends on
// that input alone. Of NaN and infinity a function makes NaN.
template <class T>
void make_columns(const input_columns& columns, std::ptrdiff_t n, const T* rows, std::ptrdiff_t ldr,
                  T* out, std::ptrdiff_t ldo);

}  // namespace pairgram
