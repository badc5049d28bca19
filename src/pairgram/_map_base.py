"""What the feature maps of this package share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pairgram import _core
from pairgram._estimator import Transformer, finite_rows
from pairgram._threads import resolve_n_threads

__all__ = ["BLOCK_ROWS", "FeatureMap", "block_rows", "generator", "native_nodes"]

BLOCK_ROWS = 4096
BLOCK_BYTES = 16 << 20  # of the mapped rows of a block


def block_rows(width: int, dtype: Any = np.float64) -> int:
    """Return how many rows of so many values are mapped, or made dense, at once."""
    row = int(np.dtype(dtype).itemsize) * max(1, width)
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // row))


class FeatureMap(Transformer, ABC):
    """A transformer of rows that describes itself to the kernels and to files.

    `fit` sets `_n_features_out`. An entry of `pairgram.feature_maps.MAPS` makes a class known.
    """

    n_threads: int | None
    n_features_in_: int
    _n_features_out: int

    @abstractmethod
    def node_map(self, dtype: Any) -> Any:
        """Return what the kernels map rows of a dtype by, or None where only Python can."""

    def score_parts(
        self, coef: NDArray[np.float64], dtype: Any
    ) -> Iterable[tuple[Any, NDArray[np.float64]]] | None:
        """Return maps of rows of a dtype, and models of their outputs whose scores add up.

        To those of the model `coef` of the features; None where only Python maps rows.
        """
        node_map = self.node_map(dtype)
        return None if node_map is None else [(node_map, coef)]

    @abstractmethod
    def _describe(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays, named "map_…", and settings that JSON can hold, for a file."""

    @classmethod
    @abstractmethod
    def _restore(cls, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Self:
        """Make the fitted map that `_describe` described."""

    @abstractmethod
    def _same(self, other: Self) -> bool:
        """Tell whether another fitted map of this class makes the same features."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = getattr(self, "kernel", None) == "minmax"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the features, (n_rows, n_features_out), float32 for float32 X, else float64.

        Those of a row have the same bits whatever rows stand beside it.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)

        Raises
        ------
        ValueError
            If X has another number of features than in `fit`, or holds NaN or infinity.
        """
        X = self._checked(X)
        threads = resolve_n_threads(self.n_threads)
        if not scipy.sparse.issparse(X):
            return self._values(np.require(X, None, ["C", "A"]), threads)
        values = np.empty((X.shape[0], self._n_features_out), X.dtype)
        step = block_rows(X.shape[1], X.dtype)
        for begin in range(0, X.shape[0], step):
            rows = slice(begin, begin + step)
            values[rows] = self._values(np.ascontiguousarray(X[rows].toarray()), threads)
        return values

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        X = finite_rows(self, X, reset=False)
        self.check_values(X)
        return X

    def check_values(self, X: Any) -> None:
        """Raise a ValueError where the map is not defined for values of finite rows."""

    def _values(self, X: NDArray[Any], n_threads: int) -> NDArray[Any]:
        """Return the features of dense rows that have been checked."""
        return np.asarray(self.node_map(X.dtype).map(X, n_threads))

    def _rounding(self, X: Any) -> NDArray[np.float64]:
        """Return a bound on the rounding errors of each feature of rows X, (n_features_out,)."""
        H = self.transform(X)
        with np.errstate(over="ignore"):
            size = np.sqrt((H.astype(np.float64) ** 2).mean(axis=0))
        return np.asarray(64 * np.finfo(H.dtype).eps * size)

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the parameters as they may have been set since `fit`, as a file holds them."""
        parameters: dict[str, Any] = self.get_params()
        if not isinstance(parameters["random_state"], Integral):
            parameters["random_state"] = None
        return parameters


def native_nodes(
    dtype: Any,
    weights: NDArray[Any],
    bias: NDArray[Any],
    square: NDArray[Any] | None,
    segments: list[tuple[int, int, str]],
    *,
    origin: NDArray[Any] | None = None,
    tail: NDArray[Any] | None = None,
    in_double: bool = False,
    **options: Any,
) -> Any:
    """Return the kernels' map of rows of a dtype, see csrc/feature_maps/node_map.hpp; its arrays are converted.

    With `in_double`, rows of float32 are mapped in float64 and the outputs rounded.
    """
    single = np.dtype(dtype) == np.float32
    narrow = single and not in_double
    make: Any = _core.NodeMap32 if narrow else _core.NodeMap64
    arrays = [
        None if a is None else np.ascontiguousarray(a, np.float32 if narrow else np.float64)
        for a in (weights, bias, square, origin, tail)
    ]
    node_map = make(*arrays[:3], segments, origin=arrays[3], tail=arrays[4], **options)
    return _core.NodeMap32.in_double(node_map) if single and in_double else node_map


def generator(random_state: Any) -> Any:
    """Return the RandomState or Generator that `random_state` stands for, as scikit-learn does."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)
