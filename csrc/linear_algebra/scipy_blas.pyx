"""Hands SciPy's BLAS and LAPACK to the compiled code as a table of function pointers.

Cython checks every signature when this file is compiled and again, against the SciPy at hand,
when the module is imported: a SciPy whose BLAS takes 64-bit integers is refused there.
"""

from cpython.pycapsule cimport PyCapsule_New
from scipy.linalg.cython_blas cimport dgemm, dsyrk, dtrsm, sgemm, ssyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs, dsyevd


cdef extern from "linear_algebra/blas.hpp":
    struct pairgram_blas_table:
        void (*dgemm)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*,
                      double*, double*, int*) noexcept nogil
        void (*sgemm)(char*, char*, int*, int*, int*, float*, float*, int*, float*, int*,
                      float*, float*, int*) noexcept nogil
        void (*dsyrk)(char*, char*, int*, int*, double*, double*, int*, double*, double*,
                      int*) noexcept nogil
        void (*ssyrk)(char*, char*, int*, int*, float*, float*, int*, float*, float*,
                      int*) noexcept nogil
        void (*dtrsm)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*,
                      int*) noexcept nogil
        void (*dpotrf)(char*, int*, double*, int*, int*) noexcept nogil
        void (*dpotrs)(char*, int*, int*, double*, int*, double*, int*, int*) noexcept nogil
        void (*dsyevd)(char*, char*, int*, double*, int*, double*, double*, int*, int*, int*,
                       int*) noexcept nogil


cdef pairgram_blas_table _table
_table.dgemm = dgemm
_table.sgemm = sgemm
_table.dsyrk = dsyrk
_table.ssyrk = ssyrk
_table.dtrsm = dtrsm
_table.dpotrf = dpotrf
_table.dpotrs = dpotrs
_table.dsyevd = dsyevd

table = PyCapsule_New(<void*>&_table, "pairgram.blas_table", NULL)
