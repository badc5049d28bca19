"""What the feature maps of this package share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pairgram._support.arrays import column_names, naming_columns, readable, real_array
from pairgram._support.blocks import block_rows
from pairgram._support.checks import naming_not_finite, require_finite
from pairgram._support.sparse_input import checked_sparse
from pairgram._support.threads import resolve_n_threads
from pairgram._support.whole_fit import WholeFit

__all__ = [
    "FeatureMap",
    "generator",
]


class Transformer(WholeFit, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn knows a feature map as."""


class FeatureMap(Transformer, ABC):
    """A transformer of rows that describes itself to the kernels and to files.

    `fit` sets `_n_features_out`. An entry of `feature_maps.known.MAPS` makes a class known.
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


def generator(random_state: Any) -> Any:
    """Return the RandomState or Generator that `random_state` stands for, as scikit-learn does."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)


def finite_rows(estimator: Any, X: Any, *, reset: bool, sparse: Any = "csr") -> Any:
    """Return X as C-contiguous rows, or CSR, of float64 or float32, without NaN and infinity.

    Parameters
    ----------
    estimator : estimator
    X : array-like or sparse matrix of shape (n_rows, n_features)
    reset : bool
        Whether these rows tell the estimator its features, or must have those that it knows.
    sparse : "csr" or False
        Whether CSR is taken.

    Raises
    ------
    ValueError
        If X is not as described; names the column of NaN and infinity, and the row in a fit:
        rows that know the estimator may come in blocks.
    """
    names, X = column_names(X), readable(X, "X")
    with naming_columns(X, "X"):
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=sparse,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
    with naming_not_finite(names):
        require_finite(X, "X", with_row=reset)
    return X


def mapped(feature_map: Any, X: Any) -> NDArray[Any]:
    """Return what a fitted transformer makes of X, as a dense array whatever its container.

    Raises
    ------
    ValueError
        If that is not real numbers, 2-d with a row for each of X and a column or more.
    """
    H: NDArray[Any] = feature_map.transform(X)
    if scipy.sparse.issparse(H):
        H = checked_sparse(H, "what feature_map makes").toarray()
    if not (type(H) is np.ndarray and H.dtype.kind in "biuf"):
        with naming_columns(H, "what feature_map makes"):
            H = real_array(H, "what feature_map makes", keep_float32=True)
    if H.ndim != 2 or len(H) != X.shape[0] or H.shape[1] == 0:
        raise ValueError(
            f"feature_map must make a 2-d array with a row for each of the {X.shape[0]} rows of X, "
            f"and a column or more, but gave shape {H.shape}"
        )
    return H
