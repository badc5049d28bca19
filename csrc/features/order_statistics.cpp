#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "features/column_statistics.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"
#include "support/simd.hpp"
#include "support/word_sort.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t most_cells = 2048;
constexpr std::ptrdiff_t widest = 40;               // of columns that are read together
constexpr std::ptrdiff_t values_at_once = 1 << 11;  // whose cells are found together
constexpr std::ptrdiff_t longest_network = 2048;    // of values that are sorted, without branches
constexpr std::ptrdiff_t fewest_rows = 512;         // of a strip
constexpr int deepest = 3;                          // grid

// Places in a list of values, and where what stands there goes.
struct places {
    std::ptrdiff_t n;
    const std::int64_t* ranks;  // ascending
    double* out;
    std::int64_t before;  // values that are smaller than those of the list
};

// Sets wanted.out. n values, all of them finite, may change their order. depth counts the grids
// that have narrowed the values down.
template <class T>
void pick(T* values, std::ptrdiff_t n, const places& wanted, int depth);

// Cells in grids of neighbouring columns, one row after the other. odd becomes NaN where a value is
// not finite. cells[i * width + j] = cell * width + j.
template <class T>
PAIRGRAM_CLONES void find_cells(std::ptrdiff_t n, std::ptrdiff_t width, const T* rows,
                                std::ptrdiff_t ld, const T* lowest, const T* cells_per_unit, T* odd,
                                std::int32_t* cells) {
    constexpr T last = static_cast<T>(most_cells - 1);
    constexpr std::ptrdiff_t rows_ahead = 32;
    constexpr auto line = 64 / static_cast<std::ptrdiff_t>(sizeof(T));
    const auto step = static_cast<std::int32_t>(width);
    const auto cell = [&](T x, std::ptrdiff_t j) {
        T at = (x - lowest[j]) * cells_per_unit[j];
        at = at > T{0} ? at : T{0};  // also NaN
        return static_cast<std::int32_t>(at < last ? at : last);
    };
    if (width == 1 && ld == 1) {  // side by side
        int strange = 0;
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            cells[i] = cell(rows[i], 0);
            strange |= rows[i] - rows[i] != T{0};
        }
        if (strange) odd[0] = std::numeric_limits<T>::quiet_NaN();
        return;
    }
    T sum[widest];
    std::copy_n(odd, width, sum);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const T* const x = rows + i * ld;
        for (std::ptrdiff_t j = 0; j < width; j += line) prefetch(x + rows_ahead * ld + j);
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            cells[i * width + j] = cell(x[j], j) * step + static_cast<std::int32_t>(j);
            sum[j] += x[j] - x[j];
        }
    }
    std::copy_n(sum, width, odd);
}

// Neighbouring columns of X, which are read together, a block of rows at a time. Each has a grid
// over the range of a sample.
template <class T>
class column_strip {
  public:
    column_strip(std::ptrdiff_t n, std::ptrdiff_t width, const T* X, std::ptrdiff_t ld, int depth)
        : n_(n), width_(width), X_(X), ld_(ld), depth_(depth), counts_(width * most_cells, 0) {
        const auto step = (n + sample - 1) / sample;
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            T low = X[j], high = X[j];
            for (std::ptrdiff_t i = 0; i < n; i += step) {
                low = std::min(low, X[i * ld + j]);
                high = std::max(high, X[i * ld + j]);
            }
            const T per_unit = static_cast<T>(most_cells) / (high - low);
            lowest_[j] = low;
            cells_per_unit_[j] = std::isfinite(per_unit) ? per_unit : T{0};
        }
        each_block(0, width, [&](std::ptrdiff_t, std::ptrdiff_t size, const std::int32_t* cells) {
            for (std::ptrdiff_t k = 0; k < size; ++k) ++counts_[cells[k]];
        });
    }

    // wanted.out (width, n)
    void find(const places& wanted) {
        buffer<wanted_cell> cells;
        for (std::ptrdiff_t j = 0; j < width_; ++j)
            if (odd_[j] == T{0})
                look_for(j, wanted, cells);
            else
                std::fill_n(wanted.out + j * wanted.n, wanted.n,
                            std::numeric_limits<double>::quiet_NaN());
        settle_equal_values(wanted, cells);
        // So many columns are looked into at a time that at most this many values are kept.
        const auto most_kept = 4 * n_;
        for (std::size_t first = 0, last; first < cells.size(); first = last) {
            std::ptrdiff_t size = 0;
            for (last = first; last < cells.size(); ++last) {
                auto end = last;
                std::ptrdiff_t more = 0;
                for (; end < cells.size() && cells[end].column == cells[last].column; ++end)
                    more += count(cells[end].cell, cells[end].column);
                if (size > 0 && size + more > most_kept) break;
                size += more;
                last = end - 1;
            }
            look_into(cells.data() + first, cells.data() + last, size, wanted);
        }
    }

  private:
    static constexpr std::ptrdiff_t sample = 256;

    // A cell in which places [first, end) fall. before counts the values of the cells before it.
    struct wanted_cell {
        std::ptrdiff_t column, cell, first, end, before;
    };

    std::ptrdiff_t count(std::ptrdiff_t cell, std::ptrdiff_t j) const {
        return counts_[cell * width_ + j];
    }

    // Calls use(first row, number of values, cells of columns [begin, end)).
    template <class Use>
    void each_block(std::ptrdiff_t begin, std::ptrdiff_t end, const Use& use) {
        std::int32_t cells[values_at_once];
        const auto step = values_at_once / (end - begin);
        for (std::ptrdiff_t i = 0; i < n_; i += step) {
            const auto size = std::min(step, n_ - i);
            check_interrupt();
            find_cells(size, end - begin, X_ + i * ld_ + begin, ld_, lowest_ + begin,
                       cells_per_unit_ + begin, odd_ + begin, cells);
            use(i, size * (end - begin), cells);
        }
    }

    // Adds the cells of a column in which a place falls.
    void look_for(std::ptrdiff_t j, const places& wanted, buffer<wanted_cell>& found) {
        std::ptrdiff_t cell = 0, before = wanted.before, last = -1;
        for (std::ptrdiff_t r = 0; r < wanted.n; ++r) {
            while (before + count(cell, j) <= wanted.ranks[r]) before += count(cell++, j);
            if (cell != last) found.push_back({j, cell, r, r, before});
            found.back().end = r + 1;
            last = cell;
        }
    }

    // Takes out the cells that hold many values where all places fall among those that are equal to
    // one of the sample.
    void settle_equal_values(const places& wanted, buffer<wanted_cell>& cells) {
        const auto is_crowded = [&](const wanted_cell& it) {
            return count(it.cell, it.column) > n_ / 16;
        };
        if (std::none_of(cells.begin(), cells.end(), is_crowded)) return;
        buffer<T> value(width_ * most_cells, T{0});
        buffer<std::uint32_t> smaller(width_ * most_cells, 0), equal(width_ * most_cells, 0);
        for (std::ptrdiff_t i = 0; i < n_; i += (n_ + sample - 1) / sample) {
            std::int32_t of_row[widest];
            find_cells(1, width_, X_ + i * ld_, ld_, lowest_, cells_per_unit_, odd_, of_row);
            for (std::ptrdiff_t j = 0; j < width_; ++j) value[of_row[j]] = X_[i * ld_ + j];
        }
        each_block(0, width_, [&](std::ptrdiff_t i, std::ptrdiff_t n, const std::int32_t* at) {
            for (std::ptrdiff_t k = 0; k < n; i += 1)
                for (std::ptrdiff_t j = 0; j < width_; ++j, ++k) {
                    smaller[at[k]] += X_[i * ld_ + j] < value[at[k]] ? 1 : 0;
                    equal[at[k]] += X_[i * ld_ + j] == value[at[k]] ? 1 : 0;
                }
        });
        const auto settled = [&](const wanted_cell& it) {
            const auto at = it.cell * width_ + it.column;
            const auto lowest = it.before + smaller[at];
            if (!is_crowded(it) || wanted.ranks[it.first] < lowest ||
                wanted.ranks[it.end - 1] >= lowest + equal[at])
                return false;
            std::fill(wanted.out + it.column * wanted.n + it.first,
                      wanted.out + it.column * wanted.n + it.end, static_cast<double>(value[at]));
            return true;
        };
        cells.erase(std::remove_if(cells.begin(), cells.end(), settled), cells.end());
    }

    // Keeps the values of cells, size of them, and picks.
    void look_into(const wanted_cell* first, const wanted_cell* last, std::ptrdiff_t size,
                   const places& wanted) {
        const auto begin = first->column, end = (last - 1)->column + 1, width = end - begin;
        buffer<std::uint8_t> is_wanted(width * most_cells, 0);
        buffer<std::ptrdiff_t> cursor(width * most_cells);
        std::ptrdiff_t start = 0;
        for (auto it = first; it != last; ++it) {
            is_wanted[it->cell * width + it->column - begin] = 1;
            cursor[it->cell * width + it->column - begin] = start;
            start += count(it->cell, it->column);
        }
        const std::unique_ptr<T[]> kept(new T[static_cast<std::size_t>(size)]);
        std::int32_t numbers[values_at_once + 1];  // of wanted values, and room for others
        each_block(begin, end, [&](std::ptrdiff_t i, std::ptrdiff_t n, const std::int32_t* cells) {
            std::ptrdiff_t n_numbers = 0;
            for (std::ptrdiff_t k = 0; k < n; ++k) {
                numbers[n_numbers] = static_cast<std::int32_t>(k);
                n_numbers += is_wanted[cells[k]];
            }
            const T* const rows = X_ + i * ld_ + begin;
            const auto step = static_cast<std::int32_t>(width);
            for (std::ptrdiff_t p = 0; p < n_numbers; ++p) {
                const auto row = numbers[p] / step, column = numbers[p] % step;
                kept[cursor[cells[numbers[p]]]++] = rows[row * ld_ + column];
            }
        });
        T* values = kept.get();
        for (auto it = first; it != last; values += count(it->cell, it->column), ++it)
            pick(values, count(it->cell, it->column),
                 places{it->end - it->first, wanted.ranks + it->first,
                        wanted.out + it->column * wanted.n + it->first, it->before},
                 depth_ + 1);
    }

    std::ptrdiff_t n_, width_;
    const T* X_;
    std::ptrdiff_t ld_;
    int depth_;
    T lowest_[widest], cells_per_unit_[widest];
    T odd_[widest] = {};            // 0, or NaN where a value is not finite
    buffer<std::uint32_t> counts_;  // (most_cells, width)
};

template <class T>
void pick(T* values, std::ptrdiff_t n, const places& wanted, int depth) {
    const auto place = [&](std::ptrdiff_t r) { return wanted.ranks[r] - wanted.before; };
    if (wanted.n == 0) return;
    const auto [low, high] = std::minmax_element(values, values + n);
    if (*low == *high) {
        std::fill_n(wanted.out, wanted.n, static_cast<double>(*low));
    } else if (n <= longest_network) {
        std::int64_t words[longest_network];
        std::transform(values, values + n, words, [](T x) { return word_of(double{x}); });
        sort_words(n, n, words);
        for (std::ptrdiff_t r = 0; r < wanted.n; ++r) wanted.out[r] = value_of(words[place(r)]);
    } else if (depth < deepest) {
        column_strip<T>(n, 1, values, 1, depth).find(wanted);
    } else {
        const auto r = wanted.n / 2, middle = static_cast<std::ptrdiff_t>(place(r));
        std::nth_element(values, values + middle, values + n);
        wanted.out[r] = static_cast<double>(values[middle]);
        pick(values, middle, {r, wanted.ranks, wanted.out, wanted.before}, depth);
        pick(values + middle, n - middle,
             {wanted.n - r - 1, wanted.ranks + r + 1, wanted.out + r + 1, wanted.before + middle},
             depth);
    }
}

// The same for few rows, or many places beside the rows, which are not worth a strip.
template <class T>
void find_of_column(std::ptrdiff_t n, const T* x, std::ptrdiff_t ld, const places& wanted) {
    buffer<T> values(n);
    T odd{0};
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        values[i] = x[i * ld];
        odd += values[i] - values[i];
    }
    if (odd == T{0})
        pick(values.data(), n, wanted, 1);
    else
        std::fill_n(wanted.out, wanted.n, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

template <class T>
void find_order_statistics(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, std::ptrdiff_t n_ranks,
                           const std::int64_t* ranks, double* out, int n_threads) {
    const auto places_of = [&](std::ptrdiff_t j) {
        return places{n_ranks, ranks, out + j * n_ranks, 0};
    };
    if (n < fewest_rows || (n <= longest_network && 8 * n_ranks > n)) {
        parallel_for(d, n_threads,
                     [&](std::ptrdiff_t j) { find_of_column(n, X + j, d, places_of(j)); });
        return;
    }
    constexpr std::ptrdiff_t whole = 8;  // columns of a strip are a multiple, as vectors are
    const auto n_parts = (d + whole - 1) / whole;
    const auto n_strips =
        std::max((d + widest - 1) / widest, std::min<std::ptrdiff_t>(n_threads, n_parts));
    parallel_for(n_strips, n_threads, [&](std::ptrdiff_t s) {
        const auto begin = s * n_parts / n_strips * whole;
        const auto end = std::min((s + 1) * n_parts / n_strips * whole, d);
        column_strip<T>(n, end - begin, X + begin, d, 0).find(places_of(begin));
    });
}

PAIRGRAM_FOR_BOTH_WIDTHS(find_order_statistics);

}  // namespace pairgram
