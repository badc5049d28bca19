"""Standard deviations of scores and of their differences, from the posterior of a model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from pairgram._support.arrays import blocks
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.queries import Queries
from pairgram.features.base import checked, dense, features_of
from pairgram.features.kernel_map import KernelMap, kernel_among
from pairgram.rankers.scores import columns_of
from pairgram.solvers.posterior import Posterior

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike

Reference = Literal["list", "training"]
# Features are made of so many rows at once, and the kernel values of rows in tiles of so many.
ROWS_AT_ONCE, TILE = 2048, 256


@dataclass(frozen=True, eq=False)
class _Space:
    """Rows in the space of the ridge of a model.

    Attributes
    ----------
    rows : matrix of shape (n_rows, n_columns)
        What the feature map takes.
    feature_map : fitted transformer or None
    """

    rows: Any
    feature_map: Any

    @property
    def has_kernel(self) -> bool:
        """Whether features are kernel values, so that products of rows are kernel values too."""
        return isinstance(self.feature_map, KernelMap)

    def features(self, rows: Rows | slice) -> Vector:
        """Return the features of some rows, dense, in float64."""
        X = self.rows[rows]
        H = X if self.feature_map is None else features_of(self.feature_map, X)
        return dense(H).astype(np.float64, copy=False)

    def squares(self, rows: Rows | slice) -> Vector:
        """Return the products of rows with themselves, (n_rows,)."""
        return self.products(self, rows)

    def products(self, other: _Space, rows: Rows | slice) -> Vector:
        """Return the products of rows with the same rows of another matrix, (n_rows,)."""
        X, Z = self.rows[rows], other.rows[rows]
        tiles = _tiles(X.shape[0])
        return np.concatenate(
            [np.diag(kernel_among(self.feature_map, X[tile], Z[tile])) for tile in tiles]
        )

    def means(self, rows: Rows) -> Vector:
        """Return the mean product of each of some rows with all of these, (n_rows,)."""
        found = np.zeros(len(rows))
        for one in _tiles(len(rows)):
            for other in _tiles(len(rows)):
                both = self.rows[rows[one]], self.rows[rows[other]]
                found[one] += kernel_among(self.feature_map, *both).sum(axis=1)
        return found / len(rows)


def _tiles(n: int) -> list[slice]:
    return [slice(begin, min(begin + TILE, n)) for begin in range(0, n, TILE)]


def _posterior_of(model: BaseEstimator) -> Posterior:
    """Return the posterior of a model, or say how to get one."""
    found: Posterior | None = getattr(model, "posterior_", None)
    if found is None:
        name = type(model).__name__
        known = "keep_covariance" in model._get_param_names()
        how = "fit it with keep_covariance=True" if known else "RankRLS and RankRLSCV can keep it"
        raise ValueError(f"this {name} does not know how sure its scores are: {how}")
    return found


def _space_of(model: BaseEstimator, X: RowsLike, qid: ArrayLike | None) -> _Space:
    """Return checked rows in the space of the ridge of a model."""
    rows, feature_map = columns_of(model, X, qid), model.feature_map_
    if isinstance(feature_map, KernelMap) and feature_map.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' does not tell the kernel of two rows that are scored, which "
            "standard deviations need: name the kernel"
        )
    return _Space(rows if feature_map is None else checked(feature_map, rows), feature_map)


def deviations_of(
    model: BaseEstimator, X: RowsLike, qid: ArrayLike | None, reference: Reference
) -> Vector:
    """Return the standard deviations of scores relative to a reference; see `predict`."""
    posterior = _posterior_of(model)
    if reference not in get_args(Reference):
        raise ArgumentError("reference", f"must be 'list' or 'training', got {reference!r}")
    if reference == "training" and posterior.mean is None:
        raise ArgumentError(
            "reference",
            "must be 'list' for a model of statistics, which do not tell the mean of the rows",
        )
    space = _space_of(model, X, qid)
    n_rows = space.rows.shape[0]
    numbers, variances = np.arange(n_rows), np.empty(n_rows)
    has_kernel = bool(posterior.prior) and space.has_kernel

    def set_list(rows: Rows) -> None:
        mean = sum(space.features(rows[part]).sum(axis=0) for part in _blocks(rows)) / len(rows)
        with_all = space.means(rows) if has_kernel else np.zeros(len(rows))
        for part in _blocks(rows):
            squares = None
            if has_kernel:
                squares = space.squares(rows[part]) - 2 * with_all[part] + with_all.mean()
            variances[rows[part]] = posterior.variances(space.features(rows[part]) - mean, squares)

    def set_part(rows: Rows) -> None:
        mean, shares, squares = posterior.mean, posterior.shares, None
        assert mean is not None
        H = space.features(rows)
        if has_kernel and shares is not None:
            squares = space.squares(rows) - 2 * (H @ shares) + mean @ shares
        variances[rows] = posterior.variances(H - mean, squares)

    if reference == "training":
        parts, work = [numbers[part] for part in _blocks(numbers)], set_part
    else:
        lists, work = Queries.make(n_rows, qid=qid), set_list
        parts = [numbers[lists.rows(q)] for q in np.flatnonzero(lists.sizes).tolist()]
    with single_threaded_blas, ThreadPoolExecutor(resolve_n_threads(model.n_threads)) as pool:
        for _ in pool.map(work, parts):
            pass
    return np.sqrt(variances)


def deviations_of_differences(model: BaseEstimator, Xa: RowsLike, Xb: RowsLike) -> Vector:
    """Return the standard deviations of ``f(a) − f(b)``; see `std_of_differences`."""
    posterior = _posterior_of(model)
    first, second = (_space_of(model, X, None) for X in (Xa, Xb))
    n_rows = first.rows.shape[0]
    if second.rows.shape[0] != n_rows:
        raise ArgumentError(
            "Xb", f"must have as many rows as Xa, {n_rows}, got {second.rows.shape[0]}"
        )
    found = np.empty(n_rows)
    for part in _blocks(np.arange(n_rows)):
        squares = None
        if posterior.prior and first.has_kernel:
            own = first.squares(part) + second.squares(part)
            squares = own - 2 * first.products(second, part)
        H = first.features(part) - second.features(part)
        found[part] = posterior.variances(H, squares)
    return np.sqrt(found)


def probability_above(model: BaseEstimator, Xa: RowsLike, Xb: RowsLike) -> Vector:
    """Return the probabilities that f(a) is above f(b); see `LinearRanker.probability_above`."""
    deviations = deviations_of_differences(model, Xa, Xb)
    difference = model.predict(Xa).astype(np.float64) - model.predict(Xb)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = ndtr(difference / deviations)
    return np.where(np.isnan(found), 0.5, found)


def _blocks(rows: Rows) -> Iterator[slice]:
    return blocks(len(rows), ROWS_AT_ONCE)
