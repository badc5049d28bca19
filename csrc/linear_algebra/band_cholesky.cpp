#include "linear_algebra/band_cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "support/parallel.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t rows_between_checks = 256;

// Where the interval of the largest eigenvalue is cut: next to its lower end, which is soon close
// to the eigenvalue, and elsewhere.
constexpr double cut_at[band_lanes] = {1e-13, 1e-10, 1e-7, 1e-5, 1e-3, 0.03, 0.2, 0.5};

void set_all(lanes& out, double value) {
    for (int k = 0; k < band_lanes; ++k) out.of[k] = value;
}

template <std::size_t Bytes>
using wide = lanes_in<double, band_lanes, Bytes>;

// Columns [begin, end) of the factors; those before have been subtracted from them.
template <std::size_t Bytes>
PAIRGRAM_CLONES unsigned factor_columns(std::ptrdiff_t n, std::ptrdiff_t width,
                                        std::ptrdiff_t begin, std::ptrdiff_t end, lanes* factors) {
    unsigned definite = (1u << band_lanes) - 1;
    for (auto j = begin; j < end; ++j) {
        lanes* const column = factors + j * (width + 1);
        lanes inverses;
        for (int k = 0; k < band_lanes; ++k) {
            const bool good = column[0].of[k] > 0;
            definite &= ~((good ? 0u : 1u) << k);
            const double root = good ? std::sqrt(column[0].of[k]) : 1.0;
            column[0].of[k] = root;
            inverses.of[k] = 1 / root;
        }
        wide<Bytes> inverse, factor, of_column, value;
        load(inverses.of, inverse);
        const auto below = std::min(width, n - 1 - j);
        for (std::ptrdiff_t d = 1; d <= below; ++d) {
            load(column[d].of, value);
            value *= inverse;
            store(value, column[d].of);
        }
        for (std::ptrdiff_t c = 1; c <= below; ++c) {
            load(column[c].of, factor);
            lanes* const out = column + c * width;  // entry (j + c, j + d) at d - c of column j + c
            for (auto d = c; d <= below; ++d) {
                load(column[d].of, of_column);
                load(out[d].of, value);
                subtract_product(value, factor, of_column);
                store(value, out[d].of);
            }
        }
    }
    return definite;
}

// b = (L Lᵀ)⁻¹ b of every lane.
template <std::size_t Bytes>
PAIRGRAM_CLONES void substitute(std::ptrdiff_t n, std::ptrdiff_t width, const lanes* factors,
                                lanes* b) {
    wide<Bytes> own, of_column, value;
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const lanes* const column = factors + j * (width + 1);
        load(b[j].of, own);
        load(column[0].of, of_column);
        own /= of_column;
        store(own, b[j].of);
        const auto below = std::min(width, n - 1 - j);
        for (std::ptrdiff_t d = 1; d <= below; ++d) {
            load(column[d].of, of_column);
            load(b[j + d].of, value);
            subtract_product(value, of_column, own);
            store(value, b[j + d].of);
        }
    }
    for (auto j = n; j-- > 0;) {
        const lanes* const column = factors + j * (width + 1);
        const auto below = std::min(width, n - 1 - j);
        load(b[j].of, own);
        for (std::ptrdiff_t d = 1; d <= below; ++d) {
            load(column[d].of, of_column);
            load(b[j + d].of, value);
            subtract_product(own, of_column, value);
        }
        load(column[0].of, of_column);
        own /= of_column;
        store(own, b[j].of);
    }
}

void solve_lanes(const band_matrix& band, const buffer<lanes>& factors, buffer<lanes>& b) {
    const auto solve = has_wide_registers() ? &substitute<wide_bytes> : &substitute<narrow_bytes>;
    solve(band.n, band.width, factors.data(), b.data());
}

// Numbers that the largest eigenvalue lies between.
std::pair<double, double> bounds(const band_matrix& band) {
    const auto [n, width, entries] = band;
    buffer<double> sums(n, 0.0);  // with the sizes of other entries of the row
    double low = -std::numeric_limits<double>::infinity();
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const double* const row = entries + j * (width + 1);
        low = std::max(low, row[0]);
        sums[j] += row[0];
        for (std::ptrdiff_t d = 1; d <= std::min(width, n - 1 - j); ++d) {
            sums[j] += std::abs(row[d]);
            sums[j + d] += std::abs(row[d]);
        }
    }
    return {low, *std::max_element(sums.begin(), sums.end())};
}

// xᵀ B x of a lane of x, all lanes of which are scaled to the length of this one.
double rayleigh_quotient(const band_matrix& band, int lane, buffer<lanes>& x) {
    const auto [n, width, entries] = band;
    double squares = 0, product = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) squares += x[i].of[lane] * x[i].of[lane];
    const double length = std::sqrt(squares);
    for (auto& value : x) set_all(value, value.of[lane] / length);
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const double* const row = entries + j * (width + 1);
        double sum = 0.5 * row[0] * x[j].of[0];
        for (std::ptrdiff_t d = 1; d <= std::min(width, n - 1 - j); ++d)
            sum += row[d] * x[j + d].of[0];
        product += 2 * sum * x[j].of[0];
    }
    return product;
}

}  // namespace

unsigned factor_shifted(const band_matrix& band, double sign, const double* shifts,
                        buffer<lanes>& factors) {
    const auto [n, width, entries] = band;
    factors.resize(n * (width + 1));
    for (std::ptrdiff_t i = 0; i < n * (width + 1); ++i) set_all(factors[i], sign * entries[i]);
    for (std::ptrdiff_t j = 0; j < n; ++j)
        for (int k = 0; k < band_lanes; ++k) factors[j * (width + 1)].of[k] += shifts[k];
    unsigned definite = (1u << band_lanes) - 1;
    const auto factor =
        has_wide_registers() ? &factor_columns<wide_bytes> : &factor_columns<narrow_bytes>;
    for (std::ptrdiff_t begin = 0; begin < n; begin += rows_between_checks) {
        check_interrupt();
        definite &=
            factor(n, width, begin, std::min(begin + rows_between_checks, n), factors.data());
    }
    return definite;
}

void solve_shifted(const band_matrix& band, std::ptrdiff_t n_shifts, const double* shifts,
                   const double* b, double* x, double* log_determinants, int n_threads) {
    const auto n_tasks = (n_shifts + band_lanes - 1) / band_lanes;
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        const auto first = task * band_lanes, n_own = std::min(band_lanes, n_shifts - first);
        double own[band_lanes];
        for (int k = 0; k < band_lanes; ++k)
            own[k] = shifts[first + std::min<std::ptrdiff_t>(k, n_own - 1)];
        buffer<lanes> factors, solved(band.n);
        const auto definite = factor_shifted(band, 1.0, own, factors);
        for (std::ptrdiff_t i = 0; i < band.n; ++i) set_all(solved[i], b[i]);
        solve_lanes(band, factors, solved);
        for (int k = 0; k < n_own; ++k) {
            double sum = 0;
            for (std::ptrdiff_t j = 0; j < band.n; ++j)
                sum += std::log(factors[j * (band.width + 1)].of[k]);
            log_determinants[first + k] =
                (definite >> k & 1) != 0 ? 2 * sum : std::numeric_limits<double>::quiet_NaN();
            for (std::ptrdiff_t i = 0; i < band.n; ++i)
                x[(first + k) * band.n + i] = solved[i].of[k];
        }
    });
}

double largest_of_band(const band_matrix& band) {
    const auto n = band.n;
    if (n == 0) return 0.0;
    auto [low, high] = bounds(band);
    buffer<lanes> factors, vectors(n);
    // Any vector will do, but for one without a share of the eigenvector.
    std::uint64_t state = 1;
    for (auto& vector : vectors)
        for (int k = 0; k < band_lanes; ++k) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            vector.of[k] = static_cast<double>(state >> 33) * 0x1p-31 + 0.5;
        }
    while (true) {
        double cuts[band_lanes];
        for (int k = 0; k < band_lanes; ++k)
            cuts[k] = std::max(low + cut_at[k] * (high - low),
                               std::nextafter(low, std::numeric_limits<double>::infinity()));
        if (!(cuts[0] < high)) return high;
        const auto definite = factor_shifted(band, -1.0, cuts, factors);
        int first = band_lanes;  // above the eigenvalue, as all after it
        while (first > 0 && (definite >> (first - 1) & 1)) --first;
        if (first < band_lanes) high = std::min(high, cuts[first]);
        if (first > 0) low = std::max(low, cuts[first - 1]);
        if (first == band_lanes) continue;
        solve_lanes(band, factors, vectors);
        low = std::clamp(rayleigh_quotient(band, first, vectors), low, high);
    }
}

}  // namespace pairgram
