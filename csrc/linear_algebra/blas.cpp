#include "linear_algebra/blas.hpp"

#include <algorithm>
#include <climits>
#include <limits>
#include <stdexcept>
#include <string>

#include "support/buffer.hpp"

namespace pairgram::blas {

namespace {

const pairgram_blas_table* table = nullptr;

int narrow(std::ptrdiff_t value, const char* dimension) {
    if (value > INT_MAX)
        throw std::length_error(std::string("BLAS takes dimensions up to 2^31 - 1, but ") +
                                dimension + " = " + std::to_string(value));
    return static_cast<int>(value);
}

auto gemm_of(double) { return table->dgemm; }
auto gemm_of(float) { return table->sgemm; }
auto syrk_of(double) { return table->dsyrk; }
auto syrk_of(float) { return table->ssyrk; }

// Column-major B (m, n) = op(A)⁻¹ B or B op(A)⁻¹, as dtrsm has it.
void solve_triangle(char side, char uplo, char trans, std::ptrdiff_t m, std::ptrdiff_t n,
                    const double* a, std::ptrdiff_t lda, double* b, std::ptrdiff_t ldb) {
    char diagonal = 'N';
    double one = 1;
    int m_ = narrow(m, "order"), n_ = narrow(n, "right-hand sides"),
        lda_ = narrow(lda, "row stride"), ldb_ = narrow(ldb, "row stride");
    table->dtrsm(&side, &uplo, &trans, &diagonal, &m_, &n_, &one, const_cast<double*>(a), &lda_, b,
                 &ldb_);
}

}  // namespace

void set_table(const pairgram_blas_table* filled) { table = filled; }

// Row-major C = op(A) op(B) is column-major Cᵀ = op(B)ᵀ op(A)ᵀ.
template <class T>
void gemm(trans trans_a, trans trans_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          T alpha, const T* a, std::ptrdiff_t lda, const T* b, std::ptrdiff_t ldb, T beta, T* c,
          std::ptrdiff_t ldc) {
    if (m == 0 || n == 0) return;
    char ta = static_cast<char>(trans_a), tb = static_cast<char>(trans_b);
    int m_ = narrow(m, "rows"), n_ = narrow(n, "columns"), k_ = narrow(k, "inner dimension");
    int lda_ = narrow(lda, "row stride"), ldb_ = narrow(ldb, "row stride"),
        ldc_ = narrow(ldc, "row stride");
    gemm_of(T{})(&tb, &ta, &n_, &m_, &k_, &alpha, const_cast<T*>(b), &ldb_, const_cast<T*>(a),
                 &lda_, &beta, c, &ldc_);
}

// Row-major A (k, n) is column-major Aᵀ (n, k); the column-major lower triangle is our upper one.
template <class T>
void syrk(std::ptrdiff_t n, std::ptrdiff_t k, T alpha, const T* a, std::ptrdiff_t lda, T beta, T* c,
          std::ptrdiff_t ldc) {
    if (n == 0) return;
    char uplo = 'L', no = 'N';
    int n_ = narrow(n, "columns"), k_ = narrow(k, "rows"), lda_ = narrow(lda, "row stride"),
        ldc_ = narrow(ldc, "row stride");
    syrk_of(T{})(&uplo, &no, &n_, &k_, &alpha, const_cast<T*>(a), &lda_, &beta, c, &ldc_);
}

void subtract_outer_product(std::ptrdiff_t n, std::ptrdiff_t k, const double* a, std::ptrdiff_t lda,
                            double* c, std::ptrdiff_t ldc) {
    if (n == 0 || k == 0) return;
    char uplo = 'U', yes = 'T';  // row-major lower triangle, rows of A
    double minus_one = -1, one = 1;
    int n_ = narrow(n, "rows"), k_ = narrow(k, "columns"), lda_ = narrow(lda, "row stride"),
        ldc_ = narrow(ldc, "row stride");
    table->dsyrk(&uplo, &yes, &n_, &k_, &minus_one, const_cast<double*>(a), &lda_, &one, c, &ldc_);
}

// Row-major X Lᵀ = B is column-major Uᵀ Xᵀ = Bᵀ, of which the upper triangle U = Lᵀ is read.
void solve_lower_transposed(std::ptrdiff_t m, std::ptrdiff_t n, const double* l, std::ptrdiff_t ldl,
                            double* b, std::ptrdiff_t ldb) {
    if (m > 0 && n > 0) solve_triangle('L', 'U', 'T', n, m, l, ldl, b, ldb);
}

std::ptrdiff_t cholesky(std::ptrdiff_t n, double* a, std::ptrdiff_t lda) {
    char uplo = 'U';  // row-major lower triangle
    int n_ = narrow(n, "order"), lda_ = narrow(lda, "row stride"), info = 0;
    table->dpotrf(&uplo, &n_, a, &lda_, &info);
    const std::ptrdiff_t end = info > 0 ? info - 1 : n;
    for (std::ptrdiff_t i = 0; i < end; ++i)
        if (!(a[i * lda + i] > 0)) return i;  // NaN, which OpenBLAS lets pass
    return end;
}

bool factor_upper(std::ptrdiff_t n, double* a, std::ptrdiff_t lda, double least) {
    char uplo = 'L';  // row-major upper triangle
    int n_ = narrow(n, "order"), lda_ = narrow(lda, "row stride"), info = 0;
    buffer<double> before(n);
    for (std::ptrdiff_t i = 0; i < n; ++i) before[i] = least * a[i * (lda + 1)];
    table->dpotrf(&uplo, &n_, a, &lda_, &info);
    if (info != 0) return false;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double root = a[i * (lda + 1)];
        if (!(root * root > before[i])) return false;
    }
    return true;
}

// Row-major UᵀU X = B is column-major Xᵀ L Lᵀ = Bᵀ with L = Uᵀ, and X UᵀU = B is L Lᵀ Xᵀ = Bᵀ.
void substitute(bool from_right, std::ptrdiff_t n, std::ptrdiff_t m, const double* u,
                std::ptrdiff_t ldu, double* b, std::ptrdiff_t ldb) {
    for (const bool transposed : {!from_right, from_right})
        solve_triangle(from_right ? 'L' : 'R', 'L', transposed ? 'T' : 'N', from_right ? n : m,
                       from_right ? m : n, u, ldu, b, ldb);
}

double cholesky_solve(std::ptrdiff_t n, double* a, double* b) {
    char uplo = 'U';  // row-major lower triangle
    int n_ = narrow(n, "order"), one = 1, info = 0;
    table->dpotrf(&uplo, &n_, a, &n_, &info);
    if (info != 0) return 0;
    double smallest = std::numeric_limits<double>::infinity();
    for (std::ptrdiff_t i = 0; i < n; ++i)
        smallest = std::min(smallest, a[i * n + i] * a[i * n + i]);
    table->dpotrs(&uplo, &n_, &one, a, &n_, b, &n_, &info);
    return smallest;
}

bool eigen(std::ptrdiff_t n, double* a, double* eigenvalues) {
    char vectors = 'V', uplo = 'L';  // row-major upper triangle
    int n_ = narrow(n, "order"), info = 0;
    int n_work = narrow(1 + 6 * n + 2 * n * n, "workspace"),
        n_integers = narrow(3 + 5 * n, "workspace");
    buffer<double> work(n_work);
    buffer<int> integers(n_integers);
    table->dsyevd(&vectors, &uplo, &n_, a, &n_, eigenvalues, work.data(), &n_work, integers.data(),
                  &n_integers, &info);
    return info == 0;
}

PAIRGRAM_FOR_BOTH_WIDTHS(gemm);
PAIRGRAM_FOR_BOTH_WIDTHS(syrk);

}  // namespace pairgram::blas
