"""Inputs: scales and quantiles of the columns of X, which act before a feature map or a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.utils.sparsefuncs import min_max_axis

import pairgram._core as _core
from pairgram._support.arrays import block_rows, blocks
from pairgram._support.checks import (
    AnyArray,
    Vector,
    require_finite,
)
from pairgram._support.machine import thread_count
from pairgram.features.feature_map import (
    FeatureMap,
    LinearNodes,
    RowScorer,
    Unmade,
    ValueMap,
    dense,
    in_blocks,
    linear_nodes,
    mapped,
    n_outputs,
    node_map_of,
    rounding_of,
    same_map,
    scorer_of,
    scores_of_rows,
    unmade,
    unwhitened,
)

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike, Transformer


@dataclass(frozen=True, eq=False)
class FittedInputs:
    """A function of the columns of rows that was fitted to the training rows of a ranker.

    Attributes
    ----------
    kind : str
        The word of it, one of `InputsName`.
    arrays : dict of str to ndarray
        What it computes, as a file holds it. Scales, (n_features,), have "inputs_centre" and
        "inputs_scale": columns are ``(x − centre) / scale``. Quantiles have "inputs_knots" and
        "inputs_values", the ascending knots of each column, one column after the other, and the
        values there, between which the function is linear; and "inputs_ends", (n_features,), where
        the knots of each column end.
    feature_names_in_ : ndarray of shape (n_features,), or None
        The names of the columns of the training rows, if they had names.
    """

    kind: str
    arrays: dict[str, AnyArray]
    feature_names_in_: Any = None

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return len(self.arrays["inputs_ends" if self.factors is None else "inputs_scale"])

    @property
    def n_outputs(self) -> int:
        """The number of columns that are made of them."""
        return self.n_features_in_ * len(self.parts)

    @property
    def factors(self) -> Vector | None:
        """The factors, if every column is ``(x − centre) · factor``; otherwise None."""
        return 1 / self.arrays["inputs_scale"] if "inputs_scale" in self.arrays else None

    @property
    def keeps_zeros(self) -> bool:
        """Whether 0 stays 0, so that CSR rows stay sparse."""
        return self.kind == "maxabs"

    @property
    def parts(self) -> tuple[str, ...]:
        """What the columns that are made of a column are called; those of X come first."""
        return ("raw", "quantile") if self.kind == "raw+quantile" else (self.kind,)

    def rounding(self, X: Matrix) -> Vector:
        """Return a bound on the rounding error of each column for rows X, (n_outputs,)."""
        H = self.values(X)
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.sqrt((H.astype(np.float64) ** 2).mean(axis=0))
        found = (64 if self.factors is None else 4) * np.finfo(H.dtype).eps * size
        if len(self.parts) > 1:
            found[: self.n_features_in_] = 0.0
        return found

    def node_map(self, dtype: DTypeLike, then: Any = None) -> Any:
        """Return the compiled map of rows of a dtype to the columns, and by `then` to features."""
        make = _core.NodeMap32 if np.dtype(dtype) == np.float32 else _core.NodeMap64
        factors = self.factors
        if factors is None:
            knots, values, ends = (self.arrays[f"inputs_{n}"] for n in ("knots", "values", "ends"))
            columns = _core.InputColumns.functions(knots, values, ends, len(self.parts) > 1)
        else:
            centre = np.ascontiguousarray(self.arrays["inputs_centre"])
            columns = _core.InputColumns.scaled(centre, factors)
        return make.after_columns(columns, then)

    def values(self, X: Any) -> Any:
        """Return the columns of rows that have been checked, or may be: NaN stays NaN.

        CSR rows stay sparse if 0 stays 0, and become dense otherwise.
        """
        if not scipy.sparse.issparse(X):
            rows = np.require(X, None, ["C", "A"])
            return self.node_map(X.dtype).map(rows, thread_count())
        if self.keeps_zeros and self.factors is not None:
            # In float64 also for float32 rows: differences of values far from 0 would be rounded
            # again.
            make: Any = type(X)
            data = X.data * self.factors[X.indices]
            return make((data, X.indices, X.indptr), shape=X.shape)
        out = np.empty((X.shape[0], self.n_outputs), X.dtype)
        for rows in blocks(X.shape[0], block_rows(self.n_outputs, X.dtype)):
            out[rows] = self.values(X[rows].toarray())
        return out

    def names(self, names: Sequence[Any] | None) -> Any:
        """Return names of the columns that are made, given those of X, or None for None."""
        if names is None or len(self.parts) == 1:
            return names
        return [*names, *(f"quantile of {name}" for name in names)]


N_QUANTILES = 100
# A range below this counts as that of a constant column, as in scikit-learn.
SMALLEST_RANGE = 10 * float(np.finfo(np.float64).eps)
# The place of a quantile that is nearer to a row than this is the row: a rounding error of the
# place (of less than 2^-51 of the number of rows) must not make a second knot beside a value.
NEAREST = 1e-6


def require_zeros(kind: str, X: Matrix) -> None:
    """Raise a ValueError if inputs of this kind would not keep the zeros of CSR rows."""
    if scipy.sparse.issparse(X) and kind != "maxabs":
        raise ValueError(
            f"feature_map={kind!r} would make the zeros of a sparse matrix other numbers: use "
            "'maxabs', or give X dense, as by X.toarray()"
        )


def fit_inputs(kind: str, X: Matrix, weights: Vector | None = None) -> FittedInputs:
    """Fit inputs to the rows that a ranker has checked, except for NaN and infinity.

    Parameters
    ----------
    kind : str
        A word of `InputsName`.
    X : ndarray or CSR matrix of shape (n_rows, n_features), float64 or float32
    weights : ndarray of shape (n_rows,), float64, ≥ 0 and not all 0, or None
        A weight of 2 is the same as having the row twice. Rows of weight 0 are as if absent. For
        quantiles, the smallest weight counts as 1 if it is less, and the others in proportion.

    Returns
    -------
    FittedInputs

    Raises
    ------
    ValueError
        If X holds NaN or infinity, if its values are too large, or if it is CSR and `kind` is not
        "maxabs".
    """
    require_zeros(kind, X)
    if weights is not None or scipy.sparse.issparse(X):  # rows of weight 0 are not looked at below
        require_finite(X, "X")
    if kind in ("quantile", "raw+quantile"):
        return _quantile(kind, X, weights)
    return _scaled(kind, X, weights)


def _scaled(kind: str, X: Matrix, weights: Vector | None) -> FittedInputs:
    if scipy.sparse.issparse(X):
        lowest, highest = min_max_axis(X if weights is None else X[weights > 0], axis=0)
        none = np.zeros(X.shape[1])
        return inputs_of_moments(kind, lowest, highest, none, none, X.shape[0])
    moments = _core.column_moments(X, weights, thread_count(X.size))
    if not np.isfinite(moments[2:]).all():
        require_finite(X, "X")
    total = float(X.shape[0] if weights is None else weights.sum())
    lowest, highest, pivot, mean, squares = moments
    return inputs_of_moments(kind, lowest, highest, pivot + mean, squares / total, X.shape[0])


def inputs_of_moments(
    kind: str, lowest: Vector, highest: Vector, mean: Vector, variance: Vector, n_rows: int
) -> FittedInputs:
    """Return scaled inputs, given moments of the columns, (n_features,) each.

    Parameters
    ----------
    kind : {"standard", "minmax", "maxabs"}
    lowest, highest, mean, variance : ndarray
    n_rows : int

    Raises
    ------
    ValueError
        If a mean or a variance is not finite.
    """
    if not (np.isfinite(mean) & np.isfinite(variance)).all():
        raise ValueError(f"X too large: squares of its values overflow, which {kind!r} needs")
    if kind == "maxabs":
        centre = np.zeros(len(mean))
        scale = _without_zeros(np.maximum(np.abs(lowest), np.abs(highest)))
    elif kind == "minmax":
        centre, scale = lowest, _without_zeros(highest - lowest)
    else:
        eps = float(np.finfo(np.float64).eps)
        # The bound of scikit-learn for columns that are constant but for rounding errors, by the
        # number of rows: weights have any unit.
        constant = variance <= n_rows * eps * variance + (n_rows * mean * eps) ** 2
        centre, scale = mean, np.where(constant, 1.0, np.sqrt(variance))
    return FittedInputs(kind, {"inputs_centre": centre, "inputs_scale": scale})


def _without_zeros(scale: Vector) -> Vector:
    scale = np.asarray(scale, np.float64)
    return np.where(scale < SMALLEST_RANGE, 1.0, scale)


def _quantile(kind: str, X: Any, weights: Vector | None) -> FittedInputs:
    if weights is not None and (weights == 1).all():
        weights = None
    if weights is not None:  # the smallest weight below 1 becomes 1
        weights = weights / min(1.0, float(weights[weights > 0].min()))
    n_rows = float(X.shape[0] if weights is None else weights.sum())
    levels = np.linspace(0, 1, round(min(N_QUANTILES, n_rows)))
    if weights is None:
        quantiles = _quantiles(X, levels)
    else:
        quantiles = _weighted_quantiles(X, levels, weights)
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
    own = {"knots": quantiles[begins], "values": values, "ends": np.cumsum(counts)}
    return FittedInputs(kind, {f"inputs_{name}": array for name, array in own.items()})


def _quantiles(X: AnyArray, levels: Vector) -> Vector:
    """Return the quantiles of every column, (n_features, n_levels), as `numpy.percentile` does."""
    places = (X.shape[0] - 1) * (levels * 100 / 100)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, X.shape[0] - 1)
    ranks = np.union1d(below, above)
    found = _core.order_statistics(X, ranks, thread_count(X.size))
    low, high = (found[:, np.searchsorted(ranks, at)] for at in (below, above))
    return _between(low, high, places - below)


def _between(low: Vector, high: Vector, share: Vector) -> Vector:
    """Interpolate from the nearer end, which is the quantile itself within a rounding error."""
    share = np.where(np.abs(share - np.rint(share)) < NEAREST, np.rint(share), share)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
        difference = high - low
        return np.where(share < 0.5, low + difference * share, high - difference * (1 - share))


def _weighted_quantiles(X: AnyArray, levels: Vector, weights: Vector) -> Vector:
    """Return the quantiles of rows that each stand as often as their weight, 0 or ≥ 1, says.

    The sorted column is at its row i from place ``V_i`` to ``V_i + v_i − 1``, where V_i is the sum
    of the weights before the row, and is linear in between.
    """
    places = (weights.sum() - 1) * (levels * 100 / 100)  # rounded as in `_quantiles`
    rows = np.flatnonzero(weights > 0)
    place = partial(_weighted_places, weights[rows], np.maximum(places, 0.0))
    with ThreadPoolExecutor(thread_count(X.size)) as pool:
        found = np.array([*pool.map(lambda j: place(X[rows, j]), range(X.shape[1]))])
    return _between(*found.reshape(-1, 3, len(places)).swapaxes(0, 1))


def _weighted_places(weights: Vector, places: Vector, x: AnyArray) -> Vector:
    """Return the values below and above places, and the share of the way, (3, n_places)."""
    order = np.argsort(x)
    ends, last = np.cumsum(weights[order]), len(order) - 1
    at = np.minimum(np.searchsorted(ends, places, side="right"), last)
    top = np.maximum(np.where(at > 0, ends[at - 1], 0.0), ends[at] - 1)
    share = np.zeros(len(places))
    np.divide(places - top, ends[at] - top, out=share, where=(places > top) & (ends[at] > top))
    return np.stack([x[order[at]], x[order[np.minimum(at + 1, last)]], np.minimum(share, 1.0)])


@dataclass(eq=False, repr=False)
class InputMap(FeatureMap):
    """The map of rows by fitted inputs, and by a fitted feature map of their columns.

    Rankers hold the two parts in `feature_map_`, as steps of a Pipeline. They are joined where rows
    are mapped, so that nothing else needs to know of inputs.

    Parameters
    ----------
    inputs : FittedInputs
    feature_map : fitted transformer or None
    """

    inputs: FittedInputs
    feature_map: Any = None

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        """The number of columns of the rows as they are given."""
        return self.inputs.n_features_in_

    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Return the map, which is fitted already."""
        return self

    @property
    def _n_features_out(self) -> int:
        if self.feature_map is None:
            return self.inputs.n_outputs
        return n_outputs(self.feature_map, np.zeros((1, self.inputs.n_outputs)))

    def _node_map(self, dtype: DTypeLike) -> Any:
        if self.feature_map is None:
            return self.inputs.node_map(dtype)
        then = node_map_of(self.feature_map, dtype)
        return None if then is None else self.inputs.node_map(dtype, then)

    def _as_linear(self) -> LinearNodes | None:
        nodes = linear_nodes(self.feature_map)
        return None if nodes is None else replace(nodes, before=InputMap(self.inputs))

    def _unmade(self) -> Unmade | None:
        own = unmade(self.feature_map)
        return None if own is None else own.after(self.inputs)

    def _unwhitened(self) -> tuple[ValueMap, Vector] | None:
        parts = unwhitened(self.feature_map)
        if parts is None:
            return None
        after, whitening = parts
        return ValueMap(self, lambda X: after.values(self.inputs.values(X))), whitening

    def _scorer(self, coef: Vector, dtype: DTypeLike) -> RowScorer | None:
        found = scorer_of(self.feature_map, coef, dtype)
        return None if found is None else replace(found, parts=self._parts(found.parts, dtype))

    def _parts(self, parts: Iterable[tuple[Any, Vector]], dtype: DTypeLike) -> Iterable[Any]:
        factors = self.inputs.factors if self.inputs.keeps_zeros else None
        for node_map, coef in parts:
            if node_map is None and factors is not None:  # wide CSR rows need not become dense
                yield None, coef * factors
            else:
                yield self.inputs.node_map(dtype, node_map), coef

    def _scores(self, X: Matrix, coefs: Vector) -> Vector:
        def scores(block: Any) -> Vector:
            return scores_of_rows(self.feature_map, self.inputs.values(block), coefs)

        return in_blocks(scores, X, max(self.inputs.n_outputs, coefs.shape[-1]))

    def _features(self, X: Matrix) -> AnyArray:
        columns = self.inputs.values(X)
        return dense(columns) if self.feature_map is None else mapped(self.feature_map, columns)

    def _rounding(self, X: Matrix) -> Vector:
        if scipy.sparse.issparse(X):
            X = X.toarray()
        if self.feature_map is None:
            return self.inputs.rounding(X)
        return rounding_of(self.feature_map, self.inputs.values(X))

    def _same(self, other: Self) -> bool:
        mine, theirs = self.inputs.arrays, other.inputs.arrays
        return (
            self.inputs.kind == other.inputs.kind
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
            and same_map(self.feature_map, other.feature_map)
        )


def after_inputs(inputs: FittedInputs | None, feature_map: Transformer | None) -> Any:
    """Return the map of rows as they are given, from the parts that a ranker keeps."""
    if inputs is None:
        return feature_map
    return InputMap(inputs, feature_map)


def fit_after(
    inputs: FittedInputs | None,
    feature_map: FeatureMap,
    X: Matrix,
    names: Sequence[Any] | None = None,
) -> FeatureMap:
    """Fit a map of this package to what inputs make of checked rows; return the map of the rows."""
    if inputs is not None:  # a map that only draws needs no more than one row
        X = inputs.values(X[:1] if feature_map._draws_only else X)
        names = inputs.names(names)
    return after_inputs(inputs, feature_map._fit_checked(X, names))


def prepared_as(data: Any, pattern: Any) -> Any:
    """Return rows that are as they were given with the inputs and the map of other rows.

    Parameters
    ----------
    data, pattern : RankingData
    """
    X, inputs = data.X, pattern.applied
    if inputs is not None:
        X = inputs.values(X)
    return replace(data, X=X, applied=inputs, feature_map=pattern.feature_map)


def whole_map(data: Any) -> Any:
    """Return the map of rows as they were given to a ranker, from its `RankingData`; or None."""
    return after_inputs(data.applied, data.feature_map)


def parts_of(feature_map: Transformer | None) -> tuple[FittedInputs | None, Any]:
    """Return the (inputs, feature map) that `after_inputs` joined."""
    if isinstance(feature_map, InputMap):
        return feature_map.inputs, feature_map.feature_map
    return None, feature_map


def factors_of(feature_map: Transformer | None) -> Vector | None:
    """Return the factors of columns if the map does no more than scale and shift them, or None.

    Shifts cancel in differences within pairs. None is returned for factors so far from 1 that
    squares of the columns as given might leave the range of numbers.
    """
    if not isinstance(feature_map, InputMap) or feature_map.feature_map is not None:
        return None
    factors = feature_map.inputs.factors
    if factors is None or not ((factors > 1e-12) & (factors < 1e12)).all():
        return None
    return factors
