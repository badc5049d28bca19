"""Kernels k(x, z) of two rows, their matrices, and kernel values as nodes of compiled code."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from pairgram._support.arrays import column_names, read_rows
from pairgram._support.checks import AnyArray, ArgumentError, require_finite, verbatim
from pairgram._support.parameters import (
    POSITIVE,
    KernelName,
    Setting,
    check,
    check_parameters,
    stored,
)
from pairgram._support.row_warnings import warn_of_rows
from pairgram._support.schema import Record
from pairgram.features.kernel_values import NYSTROEM, KernelFunction, check_symmetric, matrix_of

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike


def is_precomputed(kernel: object) -> bool:
    """Tell whether rows are given as their kernel values."""
    return isinstance(kernel, str) and kernel == "precomputed"


def kernel_of(
    kernel: KernelName, gamma: float | None = None, degree: int = 3, coef0: float = 1.0
) -> KernelFunction:
    """Return a kernel with its parameters; they are checked."""
    found = KernelFunction(check("kernel", kernel), gamma, degree, coef0)
    check_parameters(found, "gamma", "degree", "coef0")
    return found


@dataclass(eq=False, repr=False)
class OfKernel:
    """What maps of a kernel share: its parameters, and those of the fit."""

    kernel: KernelName = "rbf"
    _: KW_ONLY
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0

    def _function(self) -> KernelFunction:
        """Return the kernel with its parameters, which are checked."""
        return kernel_of(self.kernel, self.gamma, self.degree, self.coef0)

    def _fit_kernel(self, given: KernelFunction, n_features: int) -> None:
        self.kernel_parameters_ = {**vars(given.complete(n_features))}

    @property
    def _kernel(self) -> KernelFunction:
        return KernelFunction(**self.kernel_parameters_)

    @property
    def gamma_(self) -> float:
        """The gamma that is used."""
        return float(self.kernel_parameters_["gamma"])


def fitted_kernel(name: Setting) -> Record:
    """Return what files hold of the kernel of a fit."""
    own = {"name": name, **stored("", "degree", "coef0"), "gamma": POSITIVE}
    return {"kernel_parameters_": own}


def alternatives(kernel: object) -> str:
    """Return advice on what takes less memory than the matrix of this kernel."""
    other = "" if is_precomputed(kernel) else NYSTROEM
    return f"take fewer rows{other}"


def kernel_matrix(
    X: RowsLike,
    Z: RowsLike | None = None,
    kernel: KernelName = "rbf",
    *,
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
) -> AnyArray:
    """Return the kernel values ``k(x, z)`` for every row x of X and every row z of Z.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
    Z : array-like or CSR matrix of shape (n_columns, n_features), or None
        None stands for the rows of X.
    kernel : str, default="rbf"
        - "linear": ``xᵀz``;
        - "rbf": ``exp(−gamma ‖x − z‖²)``;
        - "polynomial": ``(gamma xᵀz + coef0)^degree``;
        - "laplacian": ``exp(−gamma ‖x − z‖₁)``;
        - "tanimoto": ``xᵀz / (‖x‖² + ‖z‖² − xᵀz)``. For binary rows, such as fingerprints, this is
          the Jaccard coefficient. It is 1 for two rows of zeros, or of entries whose squares
          underflow;
        - "minmax": ``Σ_k min(x_k, z_k) / Σ_k max(x_k, z_k)`` for entries ≥ 0. For count
          fingerprints, this is the Tanimoto similarity of RDKit; for binary rows it equals
          "tanimoto". A column with entries below 0 counts as two, its positive part ``max(x, 0)``
          and its negative part ``max(−x, 0)``: this is Li's generalised min-max kernel. It is 1 for
          two rows of zeros;
        - "precomputed": X is the kernel matrix itself, and Z must be None. This is for kernels of
          one's own, also of objects that are not rows of numbers, such as strings or graphs.
    gamma : float > 0 or None, default=None
        None stands for ``1 / n_features``.
    degree : int from 1 to 1,000, default=3
    coef0 : float ≥ 0, default=1.0

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        float64 for rows of either type. It is exactly symmetric if Z is None. A precomputed matrix
        is not copied, may be float32, and is symmetric as far as it was. If Z is given, the values
        of a row have the same bits whatever other rows X has.

    Raises
    ------
    ValueError
        If a parameter or an array is not as described; if the matrix is not finite; or if Z is None
        and the matrix is not symmetric to half of its digits. The message names the entry.
    MemoryError
        If the matrix does not fit into free memory.

    Warns
    -----
    UserWarning
        With "rbf", "laplacian" and "polynomial", if at least a third of the columns of X that vary
        have a standard deviation below a hundredth of the largest, in a sample of up to 1,024 rows:
        such columns hardly change the kernel.

    Notes
    -----
    The cost is n_rows · n_columns · n_features flops (twice that if Z is given), and a few MiB of
    memory besides the result. If a kernel matrix is rounded to float32, scores err by about
    ``6e-8 λ_max / alpha``, which leaves them few digits. Dense rows are measured from the mean of Z
    before distances are computed, so a large common offset does no harm. CSR rows of which fewer
    than 5.5 % of the entries are not 0, or with more than 8,192 columns, are not centred, so their
    squared distances err by about 1e-16 times the squared entries: make rows with large entries
    dense.

    All named kernels are positive semidefinite. For "tanimoto" this holds for entries of either
    sign, because 1 / (a + b − c) is the integral of exp(−ta) exp(−tb) exp(tc) over t > 0. For a
    precomputed matrix, the `fit` of a model checks this, as far as it can see it.

    References
    ----------
    Li. Linearized GMM kernels and normalized random Fourier features. KDD 2017 ("minmax").

    Examples
    --------
    >>> from pairgram import kernel_matrix
    >>> kernel_matrix([[0, 1, 1], [1, 1, 0]], kernel="tanimoto").round(2)
    array([[1.  , 0.33],
           [0.33, 1.  ]])
    """
    own = kernel_of(kernel, gamma, degree, coef0)
    if is_precomputed(kernel):
        if Z is not None:
            raise ValueError("Z must be None with kernel='precomputed': X is the matrix itself")
        K = read_rows(X, sparse=False)
        require_finite(K, "X")
        check_symmetric(K, "X, with kernel='precomputed',")
        return np.asarray(K)
    names = column_names(X)
    X = _rows(X, "X")
    if Z is not None:
        others = column_names(Z, "Z")
        if names is not None and others is not None and names != others:
            raise ArgumentError("Z", verbatim(f"must have the columns of X, {names}, got {others}"))
        Z = _rows(Z, "Z")
        if Z.shape[1] != X.shape[1]:
            raise ValueError(f"Z must have the {X.shape[1]} features of X, got {Z.shape[1]}")
    warn_of_rows(own.name, X, names)
    return matrix_of(own.complete(X.shape[1]), X, Z)


def _rows(X: RowsLike, name: str) -> Matrix:
    rows = read_rows(X, name)
    require_finite(rows, name)
    return scipy.sparse.csr_array(rows) if scipy.sparse.issparse(rows) else rows
