"""`Kernel`: a row is what it is in the space of a kernel, known by its values with other rows."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.utils.validation import check_is_fitted

from pairgram._support import limits
from pairgram._support.arrays import blocks, checked_sparse
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector
from pairgram._support.parameters import (
    COUNT,
    KernelName,
    choice,
    words,
)
from pairgram._support.row_warnings import warn_of_rows
from pairgram._support.schema import (
    FLOATS,
    INDICES,
    INT64,
    Array,
    Arrays,
    Kind,
    Sizes,
    require,
)
from pairgram.features.feature_map import (
    FeatureMap,
    Formula,
    RowScorer,
    dense,
    finite_rows,
    is_kernel,
)
from pairgram.features.kernel_values import (
    KernelFunction,
    check_symmetric,
    kernel_nodes,
    matrix_of,
)
from pairgram.features.kernels import (
    OfKernel,
    fitted_kernel,
    is_precomputed,
)

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike, Transformer


OF_CSR = ("map_data", "map_indices", "map_indptr")


def _require_rows(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    """Raise a ValueError unless the settings and arrays of a map agree with each other."""
    fitted, given = settings["fitted"], arrays.keys() & {"map_rows", *OF_CSR}
    features = fitted["n_features_in_"]
    if fitted["kernel_parameters_"]["name"] == "precomputed":
        require(not given, "a precomputed kernel must have no support rows")
        sizes["features"] = sizes["outputs"]
    elif given == set(OF_CSR):
        _csr(arrays, (sizes["outputs"], features))
        sizes["features"] = features
    else:
        require(given == {"map_rows"}, "the support rows must be map_rows, or three arrays of CSR")
    found = sizes["features"]
    require(found == features, f"n_features_in_ is {features}, but features is {found}")
    support = arrays["map_support"]
    increasing = support[0] >= 0 and (np.diff(support) > 0).all()
    require(increasing, "map_support must hold row numbers that increase")


def _csr(arrays: Arrays, shape: tuple[int, int]) -> Any:
    rows = scipy.sparse.csr_array(tuple(arrays[name] for name in OF_CSR), shape=shape)
    return checked_sparse(rows, "the support rows")


@dataclass(eq=False, repr=False)
class Kernel(OfKernel, FeatureMap):
    """A kernel: the model is linear in its space, and the ridge is on the norm there.

    ``feature_map=Kernel("rbf")`` makes a kernel model of least squares. It has a dual coefficient
    for every training row, and needs all rows in memory. As a transformer it makes the kernel
    values with every training row: ``x → (k(x, x_1), …, k(x, x_n))``. `RankSVM` and `Pairgram`
    take `Nystroem` in its place.

    Parameters
    ----------
    kernel : str, default="rbf"
        "linear" (the columns themselves), "rbf", "polynomial", "laplacian", "tanimoto", "minmax";
        see `kernel_matrix`. With "precomputed", rows are given as their kernel values with the
        training rows, for kernels of one's own.
    gamma : float > 0 or None, default=None
        None stands for ``1 / n_features``.
    degree : int from 1 to 1,000, default=3
    coef0 : float ≥ 0, default=1.0

    Attributes
    ----------
    support_rows_ : ndarray or csr_array of shape (n_rows, n_features), or None
        A copy of the training rows, or None for "precomputed". A ranker keeps only rows
        whose coefficients are not 0. Rows of weight 0 and rows in no pair have coefficient 0.
    support_ : ndarray of shape (n_rows,), int64
        The numbers of these rows among the rows given to `fit`.
    gamma_ : float
        The gamma that is used.
    kernel_parameters_ : dict
        The name and the parameters of the kernel of the fit.
    n_features_in_ : int

    Examples
    --------
    >>> from pairgram import Kernel, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(10, random_state=0)
    >>> RankRLS(feature_map=Kernel("rbf", gamma=0.1)).fit(X, y, qid=qid).form_
    'dual'
    """

    _is_kernel = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Keep the training rows, X of shape (n_rows, n_features).

        Raises
        ------
        ValueError
            If a parameter or X is not as described.
        """
        given = self._function()
        rows = self._validated(X, reset=True)
        if is_precomputed(self.kernel):
            check_symmetric(rows, "X, with kernel='precomputed',")
        warn_of_rows(self.kernel, rows, getattr(self, "feature_names_in_", None))
        kept = None if is_precomputed(self.kernel) else rows.copy()
        self._fit_kernel(given, self.n_features_in_)
        return self._set(kept, np.arange(rows.shape[0]))

    def _set(self, rows: Matrix | None, support: Rows) -> Self:
        """Set the rows that the map is of, and their numbers."""
        self.support_rows_: Any = rows
        self.support_ = support
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.support_)

    def _checked(self, X: RowsLike) -> Any:
        """Check the rows and return them. Errors are those of `transform`."""
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _features(self, X: Matrix) -> AnyArray:
        """Return the features of rows that have been checked."""
        if self.support_rows_ is None:
            return np.asarray(X)
        sparse = scipy.sparse.issparse(X)
        X = scipy.sparse.csr_array(X) if sparse else np.require(X, None, ["C", "A"])
        return matrix_of(self._kernel, X, self.support_rows_)

    def _scorer(self, coef: Vector, dtype: DTypeLike) -> RowScorer | None:
        """Return a scorer of dense rows that takes some of the support rows at a time.

        It is None for support rows in CSR, since only Python can map these.
        """
        rows = self.support_rows_
        if rows is None:
            return RowScorer([(None, coef)])
        if scipy.sparse.issparse(rows):
            return None
        step = max(1, limits.now.part_bytes // (8 * max(1, self.n_features_in_)))
        return RowScorer(
            (kernel_nodes(self._kernel, np.asarray(rows[part], np.float64), dtype), coef[part])
            for part in blocks(len(rows), step)
        )

    def _validated(self, X: RowsLike, reset: bool) -> Any:
        sparse: Literal["csr", False] = False if is_precomputed(self.kernel) else "csr"
        X = finite_rows(self, X, reset=reset, sparse=sparse)
        return scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X

    def _node_map(self, dtype: DTypeLike) -> None:
        """Return None: compiled least squares does not apply this map."""

    def _formula(self, x: Formula, coef: Vector) -> Formula:
        rows = self.support_rows_
        if rows is None:
            raise ValueError(
                "kernel='precomputed' needs kernel values with the training rows, which an engine "
                "does not have: fit with a named kernel, or Nystroem"
            )
        return x.of_kernel(self._kernel, np.asarray(dense(rows), np.float64), coef)

    _in_file = Kind(
        {"fitted": {**fitted_kernel(choice(*words(KernelName))), "n_features_in_": COUNT}},
        {
            "map_support": Array(INT64, ("outputs",)),
            "map_rows?": Array(("uint8", *FLOATS), ("outputs", "features")),
            "map_data?": Array(("uint8", *FLOATS), ("n_entries",)),
            "map_indices?": Array(INDICES, ("n_entries",)),
            "map_indptr?": Array(INDICES, ("ends",)),
        },
        _require_rows,
    )

    def _state(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return the arrays and the settings of the fit, by their names in a file."""
        arrays, fitted = super()._state()
        rows = self.support_rows_
        if scipy.sparse.issparse(rows):
            parts = _narrow(rows.data), rows.indices, rows.indptr
            arrays |= zip(OF_CSR, parts, strict=True)
        elif rows is not None:
            arrays["map_rows"] = _narrow(rows)
        return arrays, fitted

    @classmethod
    def _restore(cls, arrays: dict[str, AnyArray], settings: dict[str, Any]) -> Self:
        """Make a fitted map of what a file holds of it."""
        self = super()._restore({"map_support": arrays["map_support"]}, settings)
        rows = arrays.get("map_rows")
        if "map_indptr" in arrays:
            rows = _csr(arrays, (len(self.support_), self.n_features_in_))
        if rows is not None and rows.dtype == np.uint8:
            rows = rows.astype(np.float64)
        return self._set(rows, self.support_)


def is_linear_kernel(feature_map: object) -> bool:
    """Tell whether a feature map stands for the columns themselves."""
    kernel = getattr(feature_map, "kernel", None)
    return is_kernel(feature_map) and isinstance(kernel, str) and kernel == "linear"


def refuse_kernel(feature_map: object, name: str) -> None:
    """Raise a ValueError for a kernel, where only weights of features can be solved for."""
    if is_kernel(feature_map):
        raise ArgumentError(
            "feature_map",
            f"must not be a Kernel: {name} has no dual form. Give Nystroem(kernel=...), whose "
            "features are those of the kernel, or nearly so",
        )


def is_made(feature_map: Transformer | None) -> bool:
    """Tell whether a feature map is a kernel that is computed from rows whenever it is needed."""
    return isinstance(feature_map, Kernel) and not is_precomputed(feature_map.kernel)


def kernel_between(kernel_map: Kernel, X: Matrix) -> AnyArray:
    """Return the exactly symmetric kernel matrix of checked rows."""
    return matrix_of(kernel_map._kernel, X, None)


def kernel_among(kernel_map: Kernel, X: Matrix, Z: Matrix) -> AnyArray:
    """Return the kernel values of checked rows with other ones, by one thread."""
    return matrix_of(kernel_map._kernel, X, Z, alone=True)


def with_support(kernel_map: Kernel, rows: Rows) -> Kernel:
    """Return a fitted map with only some of the training rows; not for "precomputed"."""
    return copy(kernel_map)._set(kernel_map.support_rows_[rows], kernel_map.support_[rows])


def with_support_of(kernel_map: Kernel, X: Matrix) -> Kernel:
    """Return a fitted map with checked rows in place of the training rows; not copied."""
    return copy(kernel_map)._set(X, np.arange(X.shape[0]))


def linear_kernel_map(X: Matrix) -> Kernel:
    """Return the map of the linear kernel with checked rows, which are not copied."""
    made = Kernel("linear")
    made.n_features_in_ = X.shape[1]
    made._fit_kernel(KernelFunction("linear"), X.shape[1])
    return with_support_of(made, X)


def _narrow(values: AnyArray) -> AnyArray:
    """Return numbers as small integers or in single precision if nothing is lost."""
    with np.errstate(invalid="ignore"):
        small = values.astype(np.uint8)
    if (small == values).all():
        return small
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if (single == values).all() else values
