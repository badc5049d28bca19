#include <algorithm>
#include <limits>
#include <utility>

#include "features/column_statistics.hpp"
#include "features/selection.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t most_cells = 2048, values_of_cell = 16;
constexpr std::ptrdiff_t columns_of_task = 8;  // neighbours, which share cache lines

// A column's values that have a weight, sorted as far as places need it: by the cells of a grid,
// and within the cells that are looked into.
template <class T>
class weighted_column {
  public:
    weighted_column(const buffer<T>& values, const buffer<double>& weights)
        : n_cells_(std::clamp<std::ptrdiff_t>(size_of(values) / values_of_cell, 1, most_cells)),
          cells_(values.size()),
          starts_(n_cells_ + 1, 0.0),
          ends_(n_cells_, 0),
          lowest_(n_cells_, std::numeric_limits<double>::infinity()),
          sorted_(values.size()) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        const value_grid<T> grid(*low, *high, n_cells_);
        for (std::ptrdiff_t i = 0; i < size_of(values); ++i) {
            const auto cell = cells_[i] = grid.cell(values[i]);
            starts_[cell + 1] += weights[i];
            ++ends_[cell];
            lowest_[cell] = std::min(lowest_[cell], static_cast<double>(values[i]));
        }
        std::ptrdiff_t before = 0;
        for (std::ptrdiff_t c = 0; c < n_cells_; ++c) {
            starts_[c + 1] += starts_[c];
            before += std::exchange(ends_[c], before);
        }
        for (std::ptrdiff_t i = 0; i < size_of(values); ++i)
            sorted_[ends_[cells_[i]]++] = {static_cast<double>(values[i]), weights[i]};
    }

    // Sets the values beside places, which ascend, and the share of the way between them.
    void find(std::ptrdiff_t n, const double* at, double* below, double* above, double* share) {
        std::ptrdiff_t cell = -1, row = 0;
        double start = 0, end = 0;  // of the row
        for (std::ptrdiff_t p = 0; p < n; ++p) {
            const auto wanted = cell_at(at[p]);
            if (wanted != cell) {
                cell = wanted;
                row = first_of(cell);
                std::sort(sorted_.begin() + row, sorted_.begin() + ends_[cell]);
                start = starts_[cell];
                end = start + sorted_[row].second;
            }
            while (at[p] >= end && row + 1 < ends_[cell]) {
                start = end;
                end += sorted_[++row].second;
            }
            const double top = std::max(start, end - 1);
            below[p] = sorted_[row].first;
            above[p] = row + 1 < ends_[cell] ? sorted_[row + 1].first : lowest_after(cell, row);
            share[p] = at[p] > top && end > top ? std::min((at[p] - top) / (end - top), 1.0) : 0.0;
        }
    }

  private:
    static std::ptrdiff_t size_of(const buffer<T>& values) {
        return static_cast<std::ptrdiff_t>(values.size());
    }

    std::ptrdiff_t first_of(std::ptrdiff_t cell) const { return cell == 0 ? 0 : ends_[cell - 1]; }

    // The cell, not empty, in which a place falls.
    std::ptrdiff_t cell_at(double at) const {
        auto cell = std::upper_bound(starts_.begin(), starts_.end() - 1, at) - starts_.begin() - 1;
        while (first_of(cell) == ends_[cell]) --cell;
        return cell;
    }

    // The least value after a cell, or that of the last row if there is none.
    double lowest_after(std::ptrdiff_t cell, std::ptrdiff_t row) const {
        for (auto c = cell + 1; c < n_cells_; ++c)
            if (first_of(c) < ends_[c]) return lowest_[c];
        return sorted_[row].first;
    }

    std::ptrdiff_t n_cells_;
    buffer<std::uint16_t> cells_;               // of the values
    buffer<double> starts_;                     // the weight before a cell, and all of it
    buffer<std::ptrdiff_t> ends_;               // of the values of a cell in sorted_
    buffer<double> lowest_;                     // of the values of a cell
    buffer<std::pair<double, double>> sorted_;  // values and their weights
};

}  // namespace

template <class T>
void find_weighted_places(std::ptrdiff_t n, std::ptrdiff_t d, const T* X, const double* weights,
                          std::ptrdiff_t n_places, const double* places, const weighted_places& out,
                          int n_threads) {
    buffer<std::ptrdiff_t> rows;
    buffer<double> counted;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (weights[i] <= 0) continue;
        rows.push_back(i);
        counted.push_back(weights[i]);
    }
    parallel_parts(d, columns_of_task, n_threads, [&](std::ptrdiff_t begin, std::ptrdiff_t size) {
        const auto end = begin + size;
        buffer<buffer<T>> columns(end - begin, buffer<T>(rows.size()));
        for (std::size_t i = 0; i < rows.size(); ++i)
            for (auto j = begin; j < end; ++j) columns[j - begin][i] = X[rows[i] * d + j];
        for (auto j = begin; j < end; ++j) {
            check_interrupt();
            weighted_column<T>(columns[j - begin], counted)
                .find(n_places, places, out.below + j * n_places, out.above + j * n_places,
                      out.share + j * n_places);
        }
    });
}

template decltype(find_weighted_places<double>) find_weighted_places<double>;
template decltype(find_weighted_places<float>) find_weighted_places<float>;

}  // namespace pairgram
