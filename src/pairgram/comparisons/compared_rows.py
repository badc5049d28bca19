"""Comparisons of items as rows of a regression on differences, which are made when needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

import pairgram._core as _core
from pairgram._support import limits, machine
from pairgram._support.checks import Flags, Rows, Vector, first_not_finite, require_finite
from pairgram._support.machine import cached_property, thread_count
from pairgram.data.dataset import Block, RankingData, less_shared
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries
from pairgram.features.feature_map import score_features

if TYPE_CHECKING:
    from pairgram._support.types import Matrix


@dataclass(frozen=True, eq=False)
class Differences:
    """The matrix ``H[first] − H[second]``, whose rows are made only where they are asked for.

    Attributes
    ----------
    H : C-contiguous ndarray or csr_array of shape (n_items, n_features), float64
    first, second : ndarray of shape (n_rows,), int64
    """

    H: Any
    first: Rows
    second: Rows

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features."""
        return len(self.first), self.H.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the features."""
        return np.dtype(np.float64)

    def __getitem__(self, rows: Rows | slice) -> Differences:
        """Return some rows, which are not made yet."""
        return Differences(self.H, self.first[rows], self.second[rows])

    def made(self) -> Vector:
        """Return the rows, dense."""
        if scipy.sparse.issparse(self.H):
            n_bytes = 8.0 * self.shape[0] * self.shape[1]
            what = f"{self.shape[0]} differences of {self.shape[1]} features, dense,"
            machine.require(what, n_bytes, "take smaller groups, or fewer features")
            return (self.H[self.first] - self.H[self.second]).toarray()
        found = self.H[self.first]
        found -= self.H[self.second]
        return found


# A product of sparse rows has about this many entries at most.
PRODUCT_ENTRIES = 1 << 24
# What is left of a subtraction is rounding error below this share.
NOISE = 1e-13
# The rows of a tile of differences take about this many bytes, which a cache holds.
TILE_BYTES = 1 << 21


@dataclass(frozen=True, eq=False)
class ComparedRows(RankingData):
    """Comparisons as rows of a regression: differences of features, margins and weights.

    X is a matrix of `Differences`, y the margins, the row weights those of comparisons, the offset
    the difference of offsets, and queries are the groups. There is no feature map: H has the
    features.

    Attributes
    ----------
    is_cut : bool
        Whether blocks may hold a part of a query.
    """

    is_cut: bool = True

    def features(self, rows: Rows | slice = slice(None)) -> Any:
        """Return the differences of the given comparisons."""
        return self.X[rows].made()

    def scores(self, rows: Rows | slice, coefs: Vector) -> Vector:
        """Return the scores of comparisons by linear models: those of items, subtracted.

        Items with equal features have equal scores, so that their difference is exactly 0.
        """
        of_items = score_features(self.X.H, coefs)
        return of_items[..., self.X.first[rows]] - of_items[..., self.X.second[rows]]

    @cached_property
    def comparisons(self) -> _core.Comparisons:
        """The comparisons for compiled code."""
        X = self.X
        return _core.Comparisons(X.H.shape[0], X.first, X.second, self.row_weights)

    @property
    def stored(self) -> Any:
        """The matrix that the differences are made of: H."""
        return self.X.H

    def with_stored(self, stored: Any) -> Self:
        """Return the comparisons of items with other features."""
        return replace(self, X=replace(self.X, H=stored))

    @property
    def n_entries(self) -> int:
        """About how many numbers a product with sparse items reads."""
        return int(self.X.H.nnz) + len(self.y)

    def pairs_of_stored(self, settings: Pairs) -> Any:
        """Return the comparisons of the items, whose ``L = AᵀDA``."""
        return self.comparisons

    def pull(self, settings: Pairs) -> Vector:
        """Return ``AᵀDm`` for the targets m, for every item."""
        weighted, n_items = self.v * self.target(settings), self.X.H.shape[0]
        of_first, of_second = (
            np.bincount(rows, weighted, minlength=n_items) for rows in (self.X.first, self.X.second)
        )
        return np.asarray(of_first - of_second)

    def varying(self, settings: Pairs, counted: Flags, diagonal: Vector, size: Vector) -> Flags:
        """Tell which features differ in a comparison, by more than products lose.

        Features whose squares vanish may differ too; the solver refuses them.
        """
        H = self.X.H
        has_entry = np.bincount(H.indices, H.data != 0, minlength=H.shape[1]) > 0
        vanishing = has_entry & (size < np.finfo(np.float64).tiny)
        return (diagonal > NOISE * size) | vanishing

    def known_sums(self, varying: Rows | None) -> tuple[Vector, float]:
        """Return (the sums over [X, y], Σ W); every comparison counts as a query.

        With the incidence A of comparisons and their weights D these are ``HᵀAᵀDAH`` and
        ``HᵀAᵀDm``. Dense items are taken from one of those that comparisons connect with them, so
        that what is common to all of these cancels exactly.
        """
        H, targets = self.X.H, self.target(Pairs(None))
        weight = float(self.v.sum())
        if varying is not None:
            self._count_varying(varying)
        if scipy.sparse.issparse(H):
            return self._sparse_sums(targets), weight
        H = H - H[self._linked()]
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
            of_items = self.comparisons.multiply(H, targets, thread_count())
            with machine.single_threaded_blas:
                products = H.T @ of_items
            d = H.shape[1]
            sums = np.empty((d + 1, d + 1))
            sums[:d, :d] = (products[:, :d] + products[:, :d].T) / 2
            sums[:d, d] = sums[d, :d] = products[:, d]
            sums[d, d] = self.v @ targets**2
        return sums, weight

    def _linked(self) -> Rows:
        """Return for every item the first that comparisons of a weight above 0 connect with it."""
        counted = self.v > 0
        return connected(self.X.H.shape[0], self.X.first[counted], self.X.second[counted])

    def _count_varying(self, varying: Rows) -> None:
        """Set in how many comparisons that count each feature differs, and at the end any."""
        varying[:] = 0
        for block in self.blocks(Pairs(None)):
            differs = (block.X != 0) & (self.v[block.rows] > 0)[:, None]
            varying[:-1] += differs.sum(axis=0)
            varying[-1] += differs.any(axis=1).sum()

    def _sparse_sums(self, targets: Vector) -> Vector:
        """Return the sums over [X, y] of CSR items, by the sparse matrix AᵀDA."""
        group = self._linked()
        H, d = less_shared(self.X.H, group, np.ones(len(group))), self.X.shape[1]
        ones, numbers = np.ones(len(targets)), np.arange(len(targets))
        places = np.tile(numbers, 2), np.concatenate([self.X.first, self.X.second])
        shape = len(targets), H.shape[0]
        A = scipy.sparse.csr_array((np.concatenate([ones, -ones]), places), shape=shape)
        weighted = A.multiply(self.v[:, None]).tocsr()
        laplacian = (weighted.T @ A).tocsr()
        sums = np.zeros((d + 1, d + 1))
        # About how many entries the product of the Laplacian with H has, up to each of its rows.
        entries = np.cumsum(np.abs(laplacian).sign() @ np.diff(H.indptr).astype(np.float64))
        cuts = np.unique(np.searchsorted(entries, np.arange(0.0, entries[-1], PRODUCT_ENTRIES)))
        for begin, end in pairwise([*cuts.tolist(), len(entries)]):
            part = slice(begin, end)
            sums[:d, :d] += (H[part].T @ (laplacian[part] @ H)).toarray()
        sums[:d, :d] = (sums[:d, :d] + sums[:d, :d].T) / 2
        sums[:d, d] = sums[d, :d] = H.T @ self.pull(Pairs(None))
        sums[d, d] = self.v @ targets**2
        both = np.bincount(places[1], np.tile(self.v, 2), minlength=H.shape[0])
        noise = sums.diagonal()[:d] <= NOISE * (H.power(2).T @ both)  # of what was subtracted
        sums[:d][noise], sums[:, :d][:, noise] = 0.0, 0.0
        return sums

    def direct_work(self, n_rows: int, n_held_alphas: int) -> dict[str, float]:
        """Return the work of sums of items, whose products are few, and of held-out scores."""
        d = float(self.n_features)
        work = d * (8.0 * n_rows + self.X.H.shape[0] * d)
        return {"gram": work + 4.0 * n_rows * d * n_held_alphas}

    def diagonal(self) -> Vector:
        """Return ``Σ w (x_ik − x_jk)²`` of every feature, (n_features,)."""
        total = np.zeros(self.X.shape[1])
        for block in self.blocks(Pairs(None)):
            total += self.v[block.rows] @ block.X.astype(np.float64) ** 2
        return total

    def blocks(self, settings: Pairs, *, constant: bool = False) -> Iterator[Block]:
        """Yield the comparisons in dense tiles, of whole queries unless these may be cut."""
        targets = self.targets(settings, constant=constant)
        offsets, order = self.queries.offsets, self.queries.order
        most = max(1, TILE_BYTES // (8 * max(1, self.X.shape[1])))
        if self.is_cut:
            offsets = np.append(np.arange(0, offsets[-1], most), offsets[-1])
        first = 0
        while first < len(offsets) - 1:
            begin = offsets[first]
            last = int(np.searchsorted(offsets, begin + most, side="right")) - 1
            last = max(last, first + 1)
            rows: Any = slice(int(begin), int(offsets[last]))
            rows = rows if order is None else order[rows]
            part = replace(
                self,
                y=self.y[rows],
                queries=Queries(np.ascontiguousarray(offsets[first : last + 1] - begin)),
                row_weights=None if self.row_weights is None else self.row_weights[rows],
            )
            X, of_rows = self.X[rows].made(), np.ascontiguousarray(targets[rows])
            numbers = np.arange(rows.start, rows.stop) if order is None else rows
            yield Block(numbers, part.problem(settings), X, of_rows, None)
            first = last

    def require_finite_features(self) -> None:
        """Raise a ValueError if a feature of an item is not finite."""
        require_finite(self.X.H, "X")


def connected(n_items: int, first: Rows, second: Rows) -> Rows:
    """Return for every item the first of those that comparisons connect with it, (n_items,)."""
    links = scipy.sparse.csr_array((np.ones(len(first), bool), (first, second)), (n_items, n_items))
    _, group = connected_components(links, directed=False)
    return np.unique(group, return_index=True)[1][group]


def compared(data: RankingData, H: Matrix) -> ComparedRows:
    """Return the comparisons of checked rows as a regression without an intercept.

    Features H of the rows are taken in float64, because differences of single ones lose digits.
    Dense ones are taken from those of a row that comparisons connect with them: scores of rows far
    from 0 would lose the digits of their differences. CSR features stay sparse unless many of their
    entries are not 0.
    """
    preferences = data.preferences
    rows = _in_double(data, H)
    offset = None if data.offset is None else preferences.differences(data.offset)
    told = preferences.margin, preferences.queries, preferences.weight
    first, second = preferences.winner, preferences.loser
    if not scipy.sparse.issparse(rows):
        with np.errstate(over="ignore", invalid="ignore"):  # sums are checked
            rows = rows - rows[connected(len(rows), first, second)]
    X = Differences(rows, first, second)
    return ComparedRows(X, *told, offset=offset, is_cut=preferences.groups is None)


def _in_double(data: RankingData, H: Matrix) -> Any:
    """Return features in float64 after a check, dense if many of their entries are not 0."""
    if first_not_finite(H) is not None:
        data.require_finite_features()
    if not scipy.sparse.issparse(H):
        return np.require(H, np.float64, ["C", "A"])
    many = H.nnz > limits.now.dense_share * H.shape[0] * H.shape[1]
    rows = scipy.sparse.csr_array(H, dtype=np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if many and machine.fits(8.0 * H.shape[0] * H.shape[1]):
        return np.require(rows.toarray(), np.float64, ["C", "A"])
    return rows
