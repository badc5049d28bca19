#include "linear_algebra/householder_panel.hpp"

#include <algorithm>
#include <cmath>

#include "linear_algebra/blas.hpp"
#include "support/buffer.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

using blas::trans;

constexpr std::ptrdiff_t few = 8;            // rows that are reflected one by one
constexpr double smallest_squares = 1e-280;  // of a reflector

struct panel {
    std::ptrdiff_t n_rows, m;
    double* p;
    std::ptrdiff_t ld;
    double *v, *t;
    buffer<double> products, scaled;  // (n_rows, n_rows)

    double* row(std::ptrdiff_t i) const { return p + i * ld; }
    double* reflector(std::ptrdiff_t i) const { return v + i * m; }

    // Makes the reflection H_i = I - tau v vᵀ that turns row i into (beta, 0, ...) from entry i on;
    // returns tau.
    double reflect(std::ptrdiff_t i) const {
        double* const x = row(i) + i;
        double* const own = reflector(i);
        const auto n = m - i;
        const double squares = dot(n - 1, x + 1, x + 1), alpha = x[0];
        std::fill(own, own + i, 0.0);
        own[i] = 1;
        if (!(squares + alpha * alpha >= smallest_squares) || squares == 0) {
            std::fill(x + 1, x + n, 0.0);
            std::fill(own + i + 1, own + m, 0.0);
            return 0.0;
        }
        const double beta = -std::copysign(std::sqrt(alpha * alpha + squares), alpha);
        const double factor = 1 / (alpha - beta);
        for (std::ptrdiff_t k = 1; k < n; ++k) own[i + k] = x[k] *= factor;
        x[0] = beta;
        return (beta - alpha) / beta;
    }

    // Rows [first, last), at most a few, one by one.
    void factor_few(std::ptrdiff_t first, std::ptrdiff_t last) const {
        for (auto i = first; i < last; ++i) {
            const double tau = reflect(i);
            const double* const own = reflector(i) + i;
            const auto n = m - i;
            for (auto l = i + 1; l < last; ++l)
                add(n, -tau * dot(n, row(l) + i, own), own, row(l) + i);
            // column i of T: -tau T (Vᵀ v)
            double inner[few];
            for (auto l = first; l < i; ++l) inner[l - first] = dot(n, reflector(l) + i, own);
            for (auto k = first; k < i; ++k) {
                double sum = 0;
                for (auto l = k; l < i; ++l) sum += t[k * n_rows + l] * inner[l - first];
                t[k * n_rows + i] = -tau * sum;
            }
            t[i * n_rows + i] = tau;
        }
    }

    // Rows [begin, end) = the same times the reflections [first, last).
    void apply(std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t begin,
               std::ptrdiff_t end) {
        const auto k = last - first, n = end - begin, from = first;
        blas::gemm(trans::no, trans::yes, n, k, m - from, 1.0, row(begin) + from, ld,
                   reflector(first) + from, m, 0.0, products.data(), k);
        blas::gemm(trans::no, trans::no, n, k, k, 1.0, products.data(), k,
                   t + first * n_rows + first, n_rows, 0.0, scaled.data(), k);
        blas::gemm(trans::no, trans::no, n, m - from, k, -1.0, scaled.data(), k,
                   reflector(first) + from, m, 1.0, row(begin) + from, ld);
    }

    void factor(std::ptrdiff_t first, std::ptrdiff_t last) {
        if (last - first <= few) return factor_few(first, last);
        const auto middle = first + (last - first + 1) / 2;
        factor(first, middle);
        apply(first, middle, middle, last);
        factor(middle, last);
        // T = [T1, -T1 (V1ᵀ V2) T2; 0, T2]
        const auto n1 = middle - first, n2 = last - middle;
        blas::gemm(trans::no, trans::yes, n1, n2, m - middle, 1.0, reflector(first) + middle, m,
                   reflector(middle) + middle, m, 0.0, products.data(), n2);
        blas::gemm(trans::no, trans::no, n1, n2, n1, -1.0, t + first * n_rows + first, n_rows,
                   products.data(), n2, 0.0, scaled.data(), n2);
        blas::gemm(trans::no, trans::no, n1, n2, n2, 1.0, scaled.data(), n2,
                   t + middle * n_rows + middle, n_rows, 0.0, t + first * n_rows + middle, n_rows);
    }
};

}  // namespace

void factor_panel(std::ptrdiff_t n_rows, std::ptrdiff_t m, double* p, std::ptrdiff_t ld,
                  double* rows, double* t) {
    const auto k = std::min(n_rows, m);
    std::fill(t, t + n_rows * n_rows, 0.0);
    panel own{n_rows, m, p, ld, rows, t, {}, {}};
    own.products.resize(n_rows * n_rows);
    own.scaled.resize(n_rows * n_rows);
    own.factor(0, k);
    if (k < n_rows) own.apply(0, k, k, n_rows);
}

}  // namespace pairgram
