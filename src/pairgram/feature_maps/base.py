"""What a feature map can do, and what the package asks of maps of its own and of any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, Protocol, Self, TypeGuard

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pairgram._support.arrays import column_names, naming_columns, readable, real_array
from pairgram._support.blocks import block_rows, blocks
from pairgram._support.checks import naming_not_finite, require_finite
from pairgram._support.sparse_input import checked_sparse
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram._support.whole_fit import WholeFit
from pairgram.feature_maps.linear_nodes import LinearNodes
from pairgram.feature_maps.row_scorer import RowScorer, score_features

__all__ = [
    "FeatureMap",
    "ValueMap",
    "finite_rows",
    "generator",
    "is_compiled",
    "is_known",
    "linear_nodes",
    "mapped",
    "n_outputs",
    "node_map_of",
    "output_dtype",
    "scores_in_blocks",
    "scores_of_rows",
    "set_threads",
    "unwhitened",
]


class ValueMap(Protocol):
    """A fitted map of rows to values."""

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the values of dense or CSR rows, (n_rows, n_values)."""
        ...

    def values(self, X: Any) -> NDArray[Any]:
        """Return what `transform` does, of rows that have been checked."""
        ...


class FeatureMap(WholeFit, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A transformer of rows that describes itself to compiled code and to files.

    It does not see labels. `fit` sets `_n_features_out`. A class that derives from this one
    directly is known to the package by these methods; what derives from such a class has code of
    its own, and is treated as any transformer. `feature_maps.known.MAPS` lists those that files
    can hold.
    """

    n_threads: int | None
    n_features_in_: int
    _n_features_out: int
    # Whether compiled code scores CSR rows, which it makes dense, as fast as Python does.
    scores_sparse = True

    @property
    def n_outputs(self) -> int:
        """Number of features that the fitted map makes."""
        return self._n_features_out

    def output_dtype(self, dtype: Any) -> np.dtype[Any]:
        """Return the type of the features of rows of a type."""
        own: np.dtype[Any] = np.dtype(dtype)
        return own

    @property
    def is_compiled(self) -> bool:
        """Whether there is a `node_map`; tells without making it."""
        return True

    @property
    def makes_kernel(self) -> bool:
        """Whether the features are a kernel with other rows, made whenever it is needed."""
        return False

    @abstractmethod
    def node_map(self, dtype: Any) -> Any:
        """Return what compiled code maps rows of a dtype by, or None where only Python can."""

    def as_linear(self) -> LinearNodes | None:
        """Return the matrix and the offsets of a map that is linear; None of all others."""
        return None

    def unwhitened(self, *, centred: bool = False) -> tuple[ValueMap, Vector] | None:
        """Return a map to values K and a matrix W of which the features are ``K W``, if any.

        With `centred`, the values are without their means, which moves all scores by one number.
        """
        return None

    def fit_checked(self, X: Any) -> Self:
        """Do what `fit` does, of rows that a ranker has checked, but for NaN and infinity.

        A map that does not depend on the rows need not look at them: the ranker will.
        """
        self.fit(X)
        return self

    def scorer(self, coef: Vector, dtype: Any) -> RowScorer | None:
        """Return what scores rows of a dtype by the model `coef` of the features.

        None where only Python maps rows: see `scores`.
        """
        node_map = self.node_map(dtype)
        return None if node_map is None else RowScorer([(node_map, coef)])

    def scores(self, X: Any, coefs: Vector, n_threads: int | None = None) -> Vector:
        """Return the scores of checked rows by models of the features, mapped block by block.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features), without NaN and infinity
        coefs : ndarray of shape (n_outputs,) or (n_models, n_outputs), float64
        n_threads : int or None
            Of the products with the models; those of the map are its own.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_models, n_rows), float64
        """
        if (nodes := self.as_linear()) is not None:
            weights, offsets = nodes.fold(coefs)
            return score_features(X, weights, n_threads) + offsets[..., None]
        return scores_in_blocks(self.values, X, coefs, n_threads)

    def require_finite_row(self, X: Any, row: int) -> None:
        """Raise a ValueError where the map can say why checked X, one row, has no finite score.

        The row has the number `row`.
        """

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
        return self.values(self.checked(X))

    def values(self, X: Any) -> NDArray[Any]:
        """Return what `transform` does, of rows that have been checked."""
        threads = resolve_n_threads(self.n_threads)
        if not scipy.sparse.issparse(X):
            return self._values(np.require(X, None, ["C", "A"]), threads)
        values = np.empty((X.shape[0], self._n_features_out), X.dtype)
        for rows in blocks(X.shape[0], block_rows(X.shape[1], X.dtype)):
            values[rows] = self._values(np.ascontiguousarray(X[rows].toarray()), threads)
        return values

    def checked(self, X: Any) -> Any:
        """Return rows that the fitted map can take; errors are those of `transform`."""
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


def is_known(feature_map: Any) -> TypeGuard[FeatureMap]:
    """Tell whether a feature map is one that `FeatureMap` describes, and so sees no labels."""
    return FeatureMap in type(feature_map).__bases__


def is_compiled(feature_map: Any) -> bool:
    """Tell whether compiled code maps rows by a fitted feature map."""
    return is_known(feature_map) and feature_map.is_compiled


def node_map_of(feature_map: Any, dtype: Any) -> Any:
    """Return what compiled code maps rows by, or None where they must be transformed."""
    return feature_map.node_map(np.dtype(dtype)) if is_known(feature_map) else None


def linear_nodes(feature_map: Any) -> LinearNodes | None:
    """Return the matrix and the offsets of a fitted map that is linear, None of every other."""
    return feature_map.as_linear() if is_known(feature_map) else None


def unwhitened(feature_map: Any) -> tuple[ValueMap, Vector] | None:
    """Return a map to centred values K and a matrix W of which the features are ``K W``, if any."""
    return feature_map.unwhitened(centred=True) if is_known(feature_map) else None


def n_outputs(feature_map: Any, X: Any) -> int:
    """Return how many features a fitted transformer makes; others than ours map a row of X."""
    if is_known(feature_map):
        return feature_map.n_outputs
    return int(mapped(feature_map, X[:1]).shape[1])


def output_dtype(feature_map: Any, dtype: Any) -> np.dtype[Any]:
    """Return the type in which the features of rows of a type are taken."""
    ours = isinstance(feature_map, FeatureMap)
    found: np.dtype[Any] = feature_map.output_dtype(dtype) if ours else np.dtype(dtype)
    return found


def set_threads(feature_map: Any, n_threads: int | None) -> None:
    """Give a map of this package the number of threads to use, unless it has one of its own."""
    if is_known(feature_map) and feature_map.n_threads is None:
        feature_map.n_threads = n_threads


def scores_of_rows(feature_map: Any, X: Any, coefs: Vector, n_threads: int | None = None) -> Vector:
    """Return the scores of checked rows by models of what any fitted transformer makes of them.

    Of the rows as they are where `feature_map` is None. The other parameters, and the result, are
    those of `FeatureMap.scores`.

    Raises
    ------
    ValueError
        As of `mapped`, and what the transformer raises.
    """
    if feature_map is None:
        return score_features(X, coefs, n_threads)
    if is_known(feature_map):
        return feature_map.scores(X, coefs, n_threads)
    return scores_in_blocks(partial(mapped, feature_map), X, coefs, n_threads)


def scores_in_blocks(
    features: Callable[[Any], Any], X: Any, coefs: Vector, n_threads: int | None
) -> Vector:
    """Return the scores of rows by models of features that are made block by block."""
    size = block_rows(max(X.shape[1], coefs.shape[-1]), X.dtype)
    parts = [
        score_features(features(X[rows]), coefs, n_threads) for rows in blocks(X.shape[0], size)
    ]
    return np.concatenate(parts, axis=-1)
