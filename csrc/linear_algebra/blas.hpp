// The only door to BLAS and LAPACK: a table of SciPy's function pointers, filled once at import by
// scipy_blas.pyx, and typed wrappers that take row-major matrices. Own threads call them within
// tasks: whoever calls what takes n_threads must hold BLAS to one thread.
#pragma once

#include <cstddef>

extern "C" {
// Fortran signatures (LP64), as scipy.linalg.cython_blas and cython_lapack declare them.
struct pairgram_blas_table {
    void (*dgemm)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*,
                  double*, int*);
    void (*sgemm)(char*, char*, int*, int*, int*, float*, float*, int*, float*, int*, float*,
                  float*, int*);
    void (*dsyrk)(char*, char*, int*, int*, double*, double*, int*, double*, double*, int*);
    void (*ssyrk)(char*, char*, int*, int*, float*, float*, int*, float*, float*, int*);
    void (*dtrsm)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*, int*);
    void (*dpotrf)(char*, int*, double*, int*, int*);
    void (*dpotrs)(char*, int*, int*, double*, int*, double*, int*, int*);
    void (*dsyevd)(char*, char*, int*, double*, int*, double*, double*, int*, int*, int*, int*);
};
}

namespace pairgram::blas {

enum class trans : char { no = 'N', yes = 'T' };

// Stores the table; called once, at import.
void set_table(const pairgram_blas_table* table);

// C (m, n) = alpha * op(A) (m, k) * op(B) (k, n) + beta * C, all row-major with row strides.
template <class T>
void gemm(trans trans_a, trans trans_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          T alpha, const T* a, std::ptrdiff_t lda, const T* b, std::ptrdiff_t ldb, T beta, T* c,
          std::ptrdiff_t ldc);

// Upper triangle of C (n, n) = alpha * AᵀA + beta * C for row-major A (k, n).
template <class T>
void syrk(std::ptrdiff_t n, std::ptrdiff_t k, T alpha, const T* a, std::ptrdiff_t lda, T beta, T* c,
          std::ptrdiff_t ldc);

// Lower triangle of C (n, n) -= A Aᵀ for row-major A (n, k).
void subtract_outer_product(std::ptrdiff_t n, std::ptrdiff_t k, const double* a, std::ptrdiff_t lda,
                            double* c, std::ptrdiff_t ldc);

// B (m, n) = B L⁻ᵀ for lower triangular L (n, n), both row-major.
void solve_lower_transposed(std::ptrdiff_t m, std::ptrdiff_t n, const double* l, std::ptrdiff_t ldl,
                            double* b, std::ptrdiff_t ldb);

// Lower triangle of row-major A (n, n) = its Cholesky factor L, A = L Lᵀ. Returns how many rows
// have been factorised before a pivot that is not positive: n where there is none.
std::ptrdiff_t cholesky(std::ptrdiff_t n, double* a, std::ptrdiff_t lda);

// Upper triangle of row-major A (n, n) = U, A = UᵀU. False where A is not positive definite, or the
// square of a pivot is at most `least` times its diagonal entry.
bool factor_upper(std::ptrdiff_t n, double* a, std::ptrdiff_t lda, double least);

// B (n, m) = (UᵀU)⁻¹ B for U (n, n), or B (m, n) = B (UᵀU)⁻¹ `from_right`, all row-major.
void substitute(bool from_right, std::ptrdiff_t n, std::ptrdiff_t m, const double* u,
                std::ptrdiff_t ldu, double* b, std::ptrdiff_t ldb);

// Solves A x = b in place for symmetric positive definite row-major A (n, n), of which the lower
// triangle is read and overwritten. Returns the smallest pivot, or 0, with b untouched, when A is
// not positive definite.
double cholesky_solve(std::ptrdiff_t n, double* a, double* b);

// Eigenvalues of symmetric A (n, n), of which the upper triangle is read, ascending into
// eigenvalues (n,); row k of A becomes eigenvector k. False where LAPACK does not converge.
bool eigen(std::ptrdiff_t n, double* a, double* eigenvalues);

}  // namespace pairgram::blas
