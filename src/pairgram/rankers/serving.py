"""`Scorer`: a frozen model for serving, which scores rows without checking them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

import pairgram._core as _core
from pairgram.feature_maps.base import is_known
from pairgram.feature_maps.input_map import after_inputs

__all__ = ["Scorer"]


class Scorer:
    """Scores C-contiguous rows of one type, in one thread and without checks.

    Scores are float64. For float64 rows they have the same bits as those of `predict`, which rounds
    the scores of float32 rows to float32. Any number of threads may call it at the same
    time. It does not change when the model is fitted again.

    Parameters
    ----------
    model : fitted ranker of this package
    dtype : float64 or float32
        The type of the rows.
    """

    __slots__ = ("_coef", "_constant", "_dtype", "_missing", "_n_features", "_parts")

    def __init__(self, model: Any, dtype: DTypeLike = np.float64) -> None:
        self._dtype = np.dtype(dtype)
        if self._dtype not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32, got {self._dtype}")
        name = type(model).__name__
        if getattr(model, "uses_offset_", False) or getattr(model, "prior_", None) is not None:
            raise ValueError(
                f"the {name} adds offsets or the scores of a prior, which a scorer does not: "
                "use predict"
            )
        feature_map = after_inputs(model.inputs_, model.feature_map_)
        coef = np.array(model.coef_, np.float64, order="C")
        coef.flags.writeable = False
        self._constant = float(getattr(model, "intercept_", 0.0))
        self._coef, self._parts = coef, None
        self._missing, self._n_features = None, int(model.n_features_in_)
        if model.missing_ is not None:
            self._missing = np.array(model.missing_, self._dtype)
        if feature_map is None:
            return
        found = feature_map.scorer(coef, self._dtype) if is_known(feature_map) else None
        if found is None:
            raise ValueError(
                f"the {name} has a feature map or a kernel of Python's, which only predict scores"
            )
        parts = list(found.parts)
        self._constant += found.offset
        if len(parts) == 1 and parts[0][0] is None:  # nodes that are linear
            self._coef = parts[0][1]
        else:
            self._parts = parts

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the scores of rows, (n_rows,).

        Parameters
        ----------
        X : C-contiguous ndarray of shape (n_rows, n_features), of the scorer's type
            Nothing is checked but the type and the shape. A row with NaN or infinity has no
            meaningful score.

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        TypeError
            If X is no ndarray, or has another type.
        ValueError
            If X has another shape, or is not C-contiguous.
        """
        try:
            if X.dtype is not self._dtype and X.dtype != self._dtype:
                raise TypeError("the rows have another type")
            return self._scores(X)
        except (AttributeError, TypeError, ValueError) as error:  # checked when it is too late,
            self._refuse(X, error)  # because checks take time
            raise

    def _scores(self, X: NDArray[Any]) -> NDArray[Any]:
        if self._missing is not None:
            if X.shape[1:] != self._missing.shape:  # it could be broadcast
                raise ValueError("the rows have another shape")
            X = np.where(np.isnan(X), self._missing, X)
        if self._parts is None:
            scores = _core.score_rows(X, self._coef)
        else:
            node_map, coef = self._parts[0]
            scores = node_map.score(X, coef, 1)
            for node_map, coef in self._parts[1:]:
                scores = scores + node_map.score(X, coef, 1)
        return scores + self._constant if self._constant else scores

    def _refuse(self, X: Any, error: Exception) -> None:
        """Raise an error that says what is wrong with the rows, if it is their form."""
        wanted = f"a scorer takes a C-contiguous ndarray of {self._dtype}, (n, {self._n_features})"
        if not isinstance(X, np.ndarray):
            raise TypeError(
                f"{wanted}, got {type(X).__name__}: take predict, or convert"
            ) from error
        if X.dtype != self._dtype:
            other = f"scorer(dtype='{X.dtype}')" if X.dtype.char in "df" else "predict"
            raise TypeError(
                f"{wanted}, got {X.dtype}: take {other}, or convert the rows"
            ) from error
        if X.ndim != 2 or X.shape[1] != self._n_features:
            raise ValueError(f"{wanted}, got shape {X.shape}") from error
        if not X.flags.c_contiguous:
            raise ValueError(
                f"{wanted}, got rows in another order: take numpy.ascontiguousarray(X)"
            ) from error

    def __reduce__(self) -> Any:
        raise TypeError("a scorer cannot be pickled: pickle or save the model, and make another")
