"""Fit inputs to the training rows of a ranker."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.sparsefuncs import min_max_axis

import pairgram._core as _core
from pairgram._support.checks import check_text, require_finite
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector
from pairgram._support.words import InputsName, words
from pairgram.inputs.fitted import FittedInputs, QuantileInputs, ScaledInputs

__all__ = ["check_inputs", "fit_inputs", "inputs_of_moments"]

N_QUANTILES = 100
# A range below this counts as that of a constant column, as in scikit-learn.
SMALLEST_RANGE = 10 * float(np.finfo(np.float64).eps)
# Fewer values than this are read by one thread.
FEW_VALUES = 1 << 17
# The place of a quantile that is nearer to a row than this is the row: a rounding error of the
# place (of less than 2^-51 of the number of rows) must not make a second knot beside a value.
NEAREST = 1e-6


def check_inputs(kind: Any) -> str | None:
    """Return the kind of inputs, or None. It is a ValueError if the word is unknown."""
    return None if kind is None else check_text("inputs", kind, words(InputsName), "or None")


def fit_inputs(
    kind: str, X: Any, weights: Vector | None = None, n_threads: int | None = None
) -> FittedInputs:
    """Fit inputs to the rows that a ranker has checked, except for NaN and infinity.

    Parameters
    ----------
    kind : {"standard", "minmax", "maxabs", "quantile", "raw+quantile"}
    X : ndarray or CSR matrix of shape (n_rows, n_features), float64 or float32
    weights : ndarray of shape (n_rows,), float64, ≥ 0 and not all 0, or None
        A weight of 2 is the same as having the row twice. Rows of weight 0 are as if absent. For
        quantiles, the smallest weight counts as 1 if it is less, and the others in proportion.
    n_threads : int or None

    Returns
    -------
    FittedInputs

    Raises
    ------
    ValueError
        If X holds NaN or infinity, if its values are too large, or if it is CSR and `kind` is not
        "maxabs".
    """
    if scipy.sparse.issparse(X) and kind != "maxabs":
        raise ValueError(
            f"inputs={kind!r} would make the zeros of a sparse matrix other numbers: use "
            "inputs='maxabs', or give X dense, as by X.toarray()"
        )
    if weights is not None or scipy.sparse.issparse(X):  # rows of weight 0 are not looked at below
        require_finite(X, "X")
    threads = 1 if X.shape[0] * X.shape[1] < FEW_VALUES else resolve_n_threads(n_threads)
    if kind in ("quantile", "raw+quantile"):
        return _quantile(kind, X, weights, threads)
    return _scaled(kind, X, weights, threads)


def _scaled(kind: str, X: Any, weights: Vector | None, n_threads: int) -> ScaledInputs:
    if scipy.sparse.issparse(X):
        lowest, highest = min_max_axis(X if weights is None else X[weights > 0], axis=0)
        none = np.zeros(X.shape[1])
        return inputs_of_moments(kind, lowest, highest, none, none, 1.0)
    moments = _core.column_moments(X, weights, n_threads)
    if not np.isfinite(moments[2:]).all():
        require_finite(X, "X")
    total = float(X.shape[0] if weights is None else weights.sum())
    lowest, highest, pivot, mean, squares = moments
    return inputs_of_moments(kind, lowest, highest, pivot + mean, squares, total)


def inputs_of_moments(
    kind: str, lowest: Vector, highest: Vector, mean: Vector, squares: Vector, weight: float
) -> ScaledInputs:
    """Return scaled inputs, given moments of the columns, (n_features,) each.

    Parameters
    ----------
    kind : {"standard", "minmax", "maxabs"}
    lowest, highest, mean : ndarray
    squares : ndarray
        The weighted sums of squared differences from the mean.
    weight : float
        The sum of the weights of all rows.

    Raises
    ------
    ValueError
        If a mean or a sum of squares is not finite.
    """
    if not (np.isfinite(mean) & np.isfinite(squares)).all():
        raise ValueError(f"X too large: squares of its values overflow, which {kind!r} needs")
    if kind == "maxabs":
        scale = _without_zeros(np.maximum(np.abs(lowest), np.abs(highest)))
        return ScaledInputs(kind, np.zeros(len(scale)), scale)
    if kind == "minmax":
        return ScaledInputs(kind, lowest, _without_zeros(highest - lowest))
    variance = squares / weight
    eps = float(np.finfo(np.float64).eps)
    # The bound of scikit-learn for columns that are constant but for rounding errors.
    constant = variance <= weight * eps * variance + (weight * mean * eps) ** 2
    return ScaledInputs(kind, mean, np.where(constant, 1.0, np.sqrt(variance)))


def _without_zeros(scale: Vector) -> Vector:
    scale = np.asarray(scale, np.float64)
    return np.where(scale < SMALLEST_RANGE, 1.0, scale)


def _quantile(kind: str, X: Any, weights: Vector | None, n_threads: int) -> QuantileInputs:
    if weights is not None and (weights == 1).all():
        weights = None
    if weights is not None:  # the smallest weight below 1 becomes 1
        weights = weights / min(1.0, float(weights[weights > 0].min()))
    n_rows = float(X.shape[0] if weights is None else weights.sum())
    levels = np.linspace(0, 1, round(min(N_QUANTILES, n_rows)))
    if weights is None:
        quantiles = _quantiles(X, levels, n_threads)
    else:
        quantiles = _weighted_quantiles(X, levels, weights, n_threads)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(quantiles[:, -1] - quantiles[:, 0])
    if not finite.all():
        require_finite(X, "X")
        raise ValueError(f"X too large: the range of column {int(np.argmin(finite))} overflows")
    quantiles = np.maximum.accumulate(quantiles, axis=1)
    # Equal quantiles become one knot, in the middle of their levels. The outermost are 0 and 1.
    begins = np.ones(quantiles.shape, bool)
    begins[:, 1:] = quantiles[:, 1:] > quantiles[:, :-1]
    ends = np.roll(begins, -1, axis=1)
    ends[:, -1] = True
    columns, first = np.nonzero(begins)
    last = np.nonzero(ends)[1]
    values = (levels[first] + levels[last]) / 2
    values[last == len(levels) - 1] = 1.0
    values[first == 0] = 0.0
    counts = np.bincount(columns, minlength=X.shape[1])
    return QuantileInputs(kind, quantiles[begins], values, np.cumsum(counts))


def _quantiles(X: Any, levels: Vector, n_threads: int) -> Vector:
    """Return the quantiles of every column, (n_features, n_levels), as `numpy.percentile` does."""
    places = (X.shape[0] - 1) * (levels * 100 / 100)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, X.shape[0] - 1)
    ranks = np.union1d(below, above)
    found = _core.order_statistics(X, ranks, n_threads)
    low, high = (found[:, np.searchsorted(ranks, at)] for at in (below, above))
    return _between(low, high, places - below)


def _between(low: Vector, high: Vector, share: Vector) -> Vector:
    """Interpolate from the nearer end, which is the quantile itself within a rounding error."""
    share = np.where(np.abs(share - np.rint(share)) < NEAREST, np.rint(share), share)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
        difference = high - low
        return np.where(share < 0.5, low + difference * share, high - difference * (1 - share))


def _weighted_quantiles(X: Any, levels: Vector, weights: Vector, n_threads: int) -> Vector:
    """Return the quantiles of rows that each stand as often as their weight, 0 or ≥ 1, says.

    The sorted column is at its row i from place ``V_i`` to ``V_i + v_i − 1``, where V_i is the sum
    of the weights before the row, and is linear in between.
    """
    places = (weights.sum() - 1) * (levels * 100 / 100)  # rounded as in `_quantiles`
    return _between(*_core.weighted_places(X, weights, np.maximum(places, 0.0), n_threads))
