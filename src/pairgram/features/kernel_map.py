"""`Kernel`: a row is what it is in the space of a kernel, known by its values with other rows."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.utils.validation import check_is_fitted

from pairgram._support import limits
from pairgram._support.arrays import blocks
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector
from pairgram._support.parameters import (
    COUNT,
    FLAG,
    choice,
    list_of,
    optional,
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
from pairgram.features.base import FeatureMap, Formula, RowScorer, dense, finite_rows, is_kernel
from pairgram.features.kernel_values import (
    KernelFunction,
    check_symmetric,
    kernel_nodes,
    matrix_of,
)
from pairgram.features.kernels import (
    KernelLike,
    is_precomputed,
    kernel_of,
    takes_rows_as_given,
)

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike, Transformer


def _require_rows(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    """Raise a ValueError unless the settings and arrays of a map agree with each other."""
    rows, features = settings["shape"]
    of_rows = ("map_rows", "map_bits", "map_data", "map_indices", "map_indptr")
    given = {name for name in of_rows if name in arrays}
    bits = settings["bits"]
    dense, values = ({"map_bits"}, set()) if bits else ({"map_rows"}, {"map_data"})
    wanted = dense & given or {"map_indices", "map_indptr", *values}
    if settings["kernel"] == "precomputed":
        require(not given, "a precomputed kernel must have no support rows")
        require(rows == features, f"shape must be square, got {settings['shape']}")
    else:
        require(given == wanted, "the support rows must be map_rows, or the three arrays of CSR")
    for dimension, length in (("outputs", rows), ("features", features)):
        found = sizes.setdefault(dimension, length)
        require(found == length, f"shape is {settings['shape']}, but {dimension} is {found}")
    for name in ("map_rows", "map_data"):
        wide = name in arrays and arrays[name].dtype == np.float64
        narrow = settings["rows_dtype"] == "float32"
        require(not (wide and narrow), f"{name} must not be float64, as rows_dtype is float32")
    if "map_bits" in arrays:
        width, found = -(-features // 8), arrays["map_bits"].shape[1]
        require(found == width, f"map_bits must have {width} bytes a row, got {found}")
    support = arrays["map_support"]
    increasing = support[0] >= 0 and (np.diff(support) > 0).all()
    require(increasing, "map_support must hold row numbers that increase")
    if "map_indptr" in arrays:
        _check_csr(arrays, rows, features, sizes["n_entries"])


def _check_csr(arrays: Arrays, n_rows: int, n_features: int, n_entries: int) -> None:
    indices, indptr = arrays["map_indices"], arrays["map_indptr"]
    require(
        len(indptr) == n_rows + 1 and indptr[0] == 0 and indptr[-1] == n_entries,
        f"map_indptr must lead from 0 to {n_entries} in {n_rows} rows",
    )
    require((indptr[1:] >= indptr[:-1]).all(), "map_indptr must not decrease")
    if n_entries:
        require(
            indices.min() >= 0 and indices.max() < n_features,
            f"map_indices must be from 0 to {n_features - 1}",
        )


@dataclass(eq=False, repr=False)
class Kernel(FeatureMap):
    """A kernel: the model is linear in its space, and the ridge is on the norm there.

    ``feature_map=Kernel("rbf")`` makes a kernel model of least squares. It has a dual coefficient
    for every training row, and needs all rows in memory. As a transformer it makes the kernel
    values with every training row: ``x → (k(x, x_1), …, k(x, x_n))``. `RankSVM` and `Pairgram`
    take `Nystroem` in its place.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear" (the columns themselves), "rbf", "polynomial", "laplacian", "tanimoto", "minmax",
        or a function ``kernel(X, Z)``; see `kernel_matrix`. With "precomputed", rows are given as
        their kernel values with the training rows.
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
    n_features_in_ : int

    Examples
    --------
    >>> from pairgram import Kernel, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(10, random_state=0)
    >>> RankRLS(feature_map=Kernel("rbf", gamma=0.1)).fit(X, y, qid=qid).form_
    'dual'
    """

    _is_compiled = False
    _is_kernel = True
    _scores_sparse = False

    kernel: KernelLike = "rbf"
    _: KW_ONLY
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags

    def _function(self) -> KernelFunction:
        """Return the kernel with its parameters, which are checked."""
        return kernel_of(self.kernel, self.gamma, self.degree, self.coef0)

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Keep the training rows, X of shape (n_rows, n_features).

        Raises
        ------
        ValueError
            If a parameter or X is not as described.
        """
        kernel = self._function()
        rows = self._validated(X, reset=True)
        if is_precomputed(self.kernel):
            check_symmetric(rows, "X, with kernel='precomputed',")
        warn_of_rows(self.kernel, rows, getattr(self, "feature_names_in_", None))
        kept = None if is_precomputed(self.kernel) else rows.copy()
        return self._set(kernel, kept, rows.shape)

    def _set(
        self,
        kernel: KernelFunction,
        rows: Matrix | None,
        shape: tuple[int, int],
        support: Rows | None = None,
    ) -> Self:
        """Set what the map is of; `kernel` has the parameters that were given."""
        self._given, self._kernel = kernel, kernel.complete(shape[1])
        self.support_rows_: Any = rows
        self.support_ = np.arange(shape[0]) if support is None else support
        self._n_features_out, self.n_features_in_ = int(shape[0]), int(shape[1])
        self.gamma_ = self._kernel.gamma
        return self

    def _output_dtype(self, dtype: DTypeLike) -> np.dtype[Any]:
        """Return float64, because float32 ruins a kernel."""
        return np.dtype(np.float64)

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

    def _require_finite_row(self, X: Matrix, row: int) -> None:
        """Raise a ValueError if the only row of X, number `row`, has a kernel value of infinity."""
        if self.support_rows_ is not None:
            matrix_of(self._kernel, X, self.support_rows_, first=row)

    def _scorer(self, coef: Vector, dtype: DTypeLike) -> RowScorer | None:
        """Return a scorer of dense rows that takes some of the support rows at a time.

        It is None for support rows in CSR and for callables, since only Python can map these.
        """
        rows = self.support_rows_
        if rows is None:
            return RowScorer([(None, coef)])
        if scipy.sparse.issparse(rows) or callable(self._kernel.name):
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
        {
            "shape": list_of(COUNT, "two integers from 1 to 2^63 - 1", 2),
            "bits": FLAG,
            "rows_dtype": optional(choice("float64", "float32")),
        },
        {
            "map_support": Array(INT64, ("outputs",)),
            "map_rows?": Array(("uint8", *FLOATS), ("outputs", "features")),
            "map_bits?": Array(("uint8",), ("outputs", "bytes")),
            "map_data?": Array(("uint8", *FLOATS), ("n_entries",)),
            "map_indices?": Array(INDICES, ("n_entries",)),
            "map_indptr?": Array(INDICES, ("ends",)),
        },
        _require_rows,
    )

    def _describe(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return the arrays and settings from which `_restore` makes this map, for a file."""
        if callable(self._kernel.name):
            raise ValueError(
                "kernel is a Python callable, which a file cannot hold without running code when "
                "it is loaded; use a named kernel, or kernel='precomputed', or pickle"
            )
        settings = asdict(self._given)
        settings["kernel"] = settings.pop("name")
        settings["shape"] = list(self._shape)
        arrays = {"map_support": self.support_}
        rows = self.support_rows_
        settings |= {"rows_dtype": None, "bits": False}
        if rows is not None:
            packed = _packed(rows)
            arrays |= packed
            settings["rows_dtype"] = str(rows.dtype)
            settings["bits"] = not packed.keys() & {"map_rows", "map_data"}
        return arrays, settings

    def _same(self, other: Kernel) -> bool:
        """Tell whether another fitted map makes the same features."""
        mine, theirs = self.support_rows_, other.support_rows_
        sparse = scipy.sparse.issparse(mine)
        if (self._kernel, self._shape) != (other._kernel, other._shape):
            return False
        if sparse or scipy.sparse.issparse(theirs):
            return type(mine) is type(theirs) and (mine != theirs).nnz == 0
        return np.array_equal(mine, theirs)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._n_features_out, self.n_features_in_

    @classmethod
    def _restore(cls, arrays: dict[str, AnyArray], settings: dict[str, Any]) -> Self:
        """Make the fitted map that `_describe` described."""
        settings = dict(settings)
        shape = tuple(settings.pop("shape"))
        dtype = settings.pop("rows_dtype")
        del settings["bits"]
        self = cls(**settings)
        rows = _unpacked(arrays, shape)
        if rows is not None:
            rows = rows.astype(dtype, copy=False)
        given = KernelFunction(settings["kernel"], self.gamma, self.degree, self.coef0)
        return self._set(given, rows, shape, arrays["map_support"])


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
    """Tell whether a feature map is a kernel that is computed from rows whenever it is needed.

    This is not so for a precomputed kernel, nor for a callable, which may be slow.
    """
    if not isinstance(feature_map, Kernel):
        return False
    return not takes_rows_as_given(feature_map.kernel)


def kernel_between(kernel_map: Kernel, X: Matrix) -> AnyArray:
    """Return the exactly symmetric kernel matrix of checked rows."""
    return matrix_of(kernel_map._kernel, X, None)


def kernel_among(kernel_map: Kernel, X: Matrix, Z: Matrix) -> AnyArray:
    """Return the kernel values of checked rows with other ones, by one thread."""
    return matrix_of(kernel_map._kernel, X, Z, alone=True)


def with_support(kernel_map: Kernel, rows: Rows) -> Kernel:
    """Return a fitted map with only some of the training rows; not for "precomputed"."""
    shape, support = (len(rows), kernel_map.n_features_in_), kernel_map.support_[rows]
    chosen = kernel_map.support_rows_[rows]
    return copy(kernel_map)._set(kernel_map._given, chosen, shape, support)


def with_support_of(kernel_map: Kernel, X: Matrix) -> Kernel:
    """Return a fitted map with checked rows in place of the training rows; not copied."""
    return copy(kernel_map)._set(kernel_map._given, X, X.shape)


def linear_kernel_map(X: Matrix) -> Kernel:
    """Return the map of the linear kernel with checked rows, which are not copied."""
    made = Kernel("linear")
    return made._set(KernelFunction("linear"), X, X.shape)


def _packed(rows: Matrix) -> dict[str, AnyArray]:
    """Return rows as arrays of a file: bits as bits, and numbers as float32 if nothing is lost."""
    if not scipy.sparse.issparse(rows):
        if ((rows == 0) | (rows == 1)).all():
            return {"map_bits": np.packbits(rows != 0, axis=1)}
        return {"map_rows": _narrow(rows)}
    arrays = {"map_indices": rows.indices, "map_indptr": rows.indptr}
    return arrays if (rows.data == 1).all() else {**arrays, "map_data": _narrow(rows.data)}


def _narrow(values: AnyArray) -> AnyArray:
    """Return numbers as small integers or in single precision if nothing is lost."""
    with np.errstate(invalid="ignore"):
        small = values.astype(np.uint8)
    if (small == values).all():
        return small
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if (single == values).all() else values


def _unpacked(arrays: dict[str, AnyArray], shape: tuple[int, ...]) -> Any:
    """Return the rows that `_packed` packed, or None if the file has none."""
    if "map_bits" in arrays:
        return np.unpackbits(arrays["map_bits"], axis=1, count=shape[1]).astype(np.float64)
    if "map_indptr" not in arrays:
        return arrays.get("map_rows")
    indices, indptr = arrays["map_indices"], arrays["map_indptr"]
    data = arrays.get("map_data", np.ones(len(indices)))
    return scipy.sparse.csr_array((data, indices, indptr), shape=shape)
