"""Hold rows and folds out of a kernel problem by means of its one decomposition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import blocks, blocks_of_parts
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import cached_property, resolve_n_threads
from pairgram.data.dataset import RankingData, apply_half_laplacian, without_features
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.features.base import dense
from pairgram.solvers.ridge_path import BandPath, EigenPath, RidgePath, has_band

T = TypeVar("T")

# The band form gives held-out scores as differences from the targets. They lose digits where alpha
# is so many times λ_max, and the scores are as small beside the targets.
LARGEST_RIDGE = 1e3


def are_small(sizes: Iterable[int], n_rows: int) -> bool:
    """Tell whether folds of these sizes are held out by the band form of the system."""
    return has_band(n_rows) and max(sizes) <= limits.now.fold_share * n_rows


def scores_without_folds(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    folds: Sequence[Rows],
    alphas: Vector,
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row by the model without its fold, (n_alphas, n_rows).

    They are computed in blocks of folds from the decomposition of the problem of all rows: from its
    band form if there is one and folds `are_small`, and otherwise in its eigenbasis.

    Parameters
    ----------
    data : RankingData
        Data in dual form: their features are the columns of K.
    settings : PairSettings
    ridge : RidgePath
        The decomposition of the dual system of all rows.
    folds : list of ndarray of int64
        Every row is in exactly one fold. Folds must be whole queries, unless the problem is
        pointwise with a weighting other than "queries".
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    n_threads : int or None

    Notes
    -----
    In the eigenbasis, the time is 4 n² flops per alpha and step of conjugate gradients, and
    ``2 n² k`` for the k rows that do not follow from the Laplacian. The memory is about 64 MiB, or
    three times a fold's rows in the basis. For the band form see `BandForm.hold_out`.
    """
    labelled = without_features(data).as_scope(settings)
    if settings.pairs is None and settings.weighting != "queries":  # queries only give weights
        labelled = replace(
            labelled,
            queries=Queries(fold_offsets(folds), np.concatenate(folds)),
            row_weights=data.v * data.query_weight_of_rows,
            query_weights=None,
        )
    diagonal = _core.laplacian_diagonal(labelled.problem(settings))
    largest = float(diagonal.max(initial=0.0))
    sizes = [len(fold) for fold in folds]
    if ridge.band is not None and are_small(sizes, len(data.y)):
        found = _by_band(data, labelled, settings, ridge.band, folds, alphas, largest, n_threads)
        if found is not None:
            return found
    scores = np.empty((len(alphas), len(data.y)))
    row_bytes = 8 * len(ridge.eigen.eigenvalues)
    for part in batches(folds, [row_bytes * size for size in sizes], limits.now.fold_bytes):
        rows = np.concatenate(part)
        block = labelled.take(rows)
        problem = block.problem(settings)
        z = _rows_in_basis(data, ridge, rows, problem, largest, n_threads)
        lost = np.column_stack([z, block.targets(settings)])
        apply_half_laplacian(problem, lost, n_threads=n_threads)
        bounds = fold_offsets(part)
        scores[:, rows], _ = ridge.eigen.hold_out(alphas, lost, z, bounds, None, n_threads)
    return scores


def _by_band(
    data: RankingData,
    labelled: RankingData,
    settings: PairSettings,
    band: BandPath,
    folds: Sequence[Rows],
    alphas: Vector,
    largest: float,
    n_threads: int | None,
) -> Vector | None:
    """Return the scores from the band form, or None if eigenvectors are needed.

    The system is that of the differences ``R f`` of scores, which the model without a fold gives at
    once. The scores f follow from ``L f = Rᵀ R f`` and from products with K for the rows for which
    this tells nothing, one of each query and rows with little or no weight or pairs.
    """
    if not (alphas >= band.least).all() or alphas[0] > LARGEST_RIDGE * band.form.largest:
        return None
    problem = labelled.problem(settings)
    pivots, _, _ = _core.null_space(problem, largest=largest)
    is_pivot = pivots == np.arange(len(pivots))
    differences, levels = np.empty((len(pivots), len(alphas))), np.zeros((len(pivots), len(alphas)))
    n_bytes = [8 * len(pivots) * int(is_pivot[fold].sum()) for fold in folds]
    for part in batches(folds, n_bytes, limits.now.fold_bytes):
        known = [fold[is_pivot[fold]] for fold in part]
        beside = np.concatenate(known)
        points = np.zeros((len(beside), len(pivots)))
        if len(beside):
            points[:] = data.features(beside)
            apply_half_laplacian(problem, points, axis=1, n_threads=n_threads)
        found = band.form.hold_out(alphas, band.target, part, points, fold_offsets(known))
        if found is None:
            return None
        rows = np.concatenate(part)
        differences[rows] = band.target[rows, None] - found[0].T
        levels[beside] = found[1].T
    apply_half_laplacian(problem, differences, adjoint=True, n_threads=n_threads)
    _core.solve_laplacian(
        problem,
        differences,
        levels[is_pivot],
        largest=largest,
        n_threads=resolve_n_threads(n_threads),
    )
    return np.ascontiguousarray(differences.T)


def fold_offsets(folds: Sequence[Rows]) -> Rows:
    """Return the offsets of folds that stand one after the other, (n_folds + 1,)."""
    return np.cumsum([0, *map(len, folds)], dtype=np.int64)


def _rows_in_basis(
    data: RankingData,
    ridge: RidgePath,
    rows: Rows,
    problem: _core.RankingProblem,
    largest: float,
    n_threads: int | None,
) -> Vector:
    """Return z = K @ basis for the rows of whole queries, (n_rows, rank), from ``L z = basis Λ``.

    K is needed only for one row of each query, and for rows with little or no weight or pairs.
    """
    pivots, _, _ = _core.null_space(problem, largest=largest)
    pivot_rows = rows[pivots == np.arange(len(rows))]
    known = np.empty((0, len(ridge.eigen.eigenvalues)))
    if len(pivot_rows):
        known = np.asarray(data.features(pivot_rows) @ ridge.eigen.basis)
    z = ridge.rows_of_laplacian(rows)
    _core.solve_laplacian(
        problem, z, known, largest=largest, n_threads=resolve_n_threads(n_threads)
    )
    return z


def batches(items: Sequence[T], sizes: Sequence[int], most: int) -> Iterator[list[T]]:
    """Cut a sequence where its sizes would add up to more than `most`."""
    batch: list[T] = []
    total = 0
    for item, size in zip(items, sizes, strict=True):
        if batch and total + size > most:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


# L z is rounding error for rows whose weight is below this share of the largest.
SMALLEST_WEIGHT = 1e-10
# Held-out scores are rounding error if a pivot of I − H is below this.
SMALLEST_PIVOT = 5e-11


@dataclass(frozen=True, eq=False)
class RowRegression:
    """The pairs with ties of one query, or pointwise rows, as ridge regression on rows.

    With pairs with ties the objective is ``c Σ v (y − f − b)² + alpha ‖w‖²`` with an intercept b
    that has no ridge. Pointwise rows have the same objective without b. The factor c depends on the
    weight of the rows. If some of them are left out, the ridge is ``alpha / c`` with the c of the
    others.

    Attributes
    ----------
    data : RankingData
        Rows of one query. If they came from several queries, the row weights include the query
        weights.
    settings : PairSettings
    ridge : RidgePath
        The path of the problem of all rows.
    eigen : EigenPath
        That of `ridge`, divided by the factor. It belongs to ``Σ v z zᵀ``.
    factor : float
        The factor c of all rows.
    mean_y : float
        The mean target; 0 without an intercept.
    weight : float
        V, the sum of the row weights.
    """

    data: RankingData
    settings: PairSettings
    ridge: RidgePath
    eigen: EigenPath
    factor: float
    mean_y: float
    weight: float

    @classmethod
    def of(cls, data: RankingData, settings: PairSettings, ridge: RidgePath) -> RowRegression:
        """Make the regression from the decomposed problem of all rows.

        The rows are of one query, or pointwise rows of several queries with a weighting other than
        "queries".
        """
        data = in_one_query(data)
        v, y = data.v, data.target(settings)
        weight = float(v.sum())
        own = settings.scatter_factor(np.array([weight])) * data.query_weight_of_rows[0]
        factor = float(own[0]) or 1.0
        with_mean = settings.pairs is not None and weight > 0
        return cls(
            data,
            settings,
            ridge,
            replace(
                ridge.eigen,
                eigenvalues=ridge.eigen.eigenvalues / factor,
                projection=ridge.eigen.projection / factor,
            ),
            factor,
            float(v @ y / weight) if with_mean else 0.0,
            weight,
        )

    @property
    def intercept(self) -> bool:
        """Whether the regression has an intercept: it does with pairs with ties."""
        return self.settings.pairs is not None

    def features(self, rows: Rows | slice) -> Vector:
        """Return z, (n_rows, rank): the rows in the basis, measured from their mean."""
        if not self.ridge.is_dual:
            return self._products(rows)
        # In the dual form z follows from L z = factor · v (z − mean). A product with the basis
        # would lose half of the digits for a small eigenvalue.
        v = self.data.v[rows]
        told = v > SMALLEST_WEIGHT * self.data.v.max()
        z = self.ridge.rows_of_laplacian(rows)
        z /= np.where(told, self.factor * v, np.inf)[:, None]
        if not told.all():
            z[~told] = self._products(np.arange(len(self.data.y))[rows][~told])
        return z

    @cached_property
    def _mean_x(self) -> Vector:
        data = self.data
        mean = np.zeros(data.n_features)
        if self.intercept and self.weight > 0:
            for rows in blocks_of_rows(len(data.y), data.n_features):
                mean += data.v[rows] / self.weight @ data.features(rows)
        return mean

    def _products(self, rows: Rows | slice) -> Vector:
        X = dense(self.data.features(rows))
        return np.asarray((X - self._mean_x) @ self.ridge.eigen.basis)

    def factors_without(self, weights: Vector) -> Vector:
        """Return the factor c of the remaining rows, given the weights of the rows held out.

        It is 0 if no pair is left. The model is then constant.
        """
        return factors_without(self.data, self.settings, weights)

    def hold_out(
        self, rows: Rows, offsets: Rows, alphas: Vector, n_threads: int | None
    ) -> tuple[Vector, Vector]:
        """Return the scores of rows by models without their fold, and what to add to them.

        The scores, (n_alphas, n_rows), are measured from the mean of the other rows, so that they
        are exactly 0 where no feature varies. What is to add, (n_rows,), is the mean target of
        these. Both are 0 if no pair is left. The rows stand fold after fold.
        """
        v, targets = self.data.v[rows], self.data.target(self.settings)[rows] - self.mean_y
        scores, levels = np.empty((len(alphas), len(rows))), np.zeros(len(rows))
        most = max(1, limits.now.regression_bytes // (8 * max(1, len(self.eigen.eigenvalues))))
        for first, last in blocks_of_parts(offsets, most):
            part, begins = (
                slice(offsets[first], offsets[last]),
                offsets[first:last] - offsets[first],
            )
            z = self.features(rows[part])
            lost, weights = np.column_stack([z, targets[part]]), v[part, None]
            own = np.add.reduceat(v[part], begins)
            factors = self.factors_without(own)
            if self.intercept:
                # The means of the others are -share, since those of all rows are 0.
                left = np.where(factors > 0, self.weight - own, np.inf)[:, None]
                share = np.add.reduceat(weights * lost, begins) / left
                of_rows = np.repeat(np.arange(last - first), np.diff(offsets[first : last + 1]))
                z = z + share[of_rows, :-1]
                lost += (share / (1 + np.sqrt(self.weight / left)))[of_rows]
                levels[part] = np.where(factors > 0, self.mean_y - share[:, -1], 0.0)[of_rows]
            lost *= np.sqrt(weights)
            scores[:, part], _ = self.eigen.hold_out(
                alphas, lost, z, np.append(begins, len(z)), factors, n_threads
            )
        return scores, levels


def blocks_of_rows(n_rows: int, n_features: int) -> Iterator[slice]:
    """Cut rows into blocks of a few MiB."""
    return blocks(n_rows, max(1, limits.now.regression_bytes // (8 * max(1, n_features))))


def in_one_query(data: RankingData) -> RankingData:
    """Return the rows of all queries as one query; query weights become part of row weights."""
    if data.queries.n_filled <= 1:
        return data
    return replace(
        data,
        queries=Queries.make(len(data.y)),
        row_weights=data.v * data.query_weight_of_rows,
        query_weights=None,
        group_of=None,
    )


def factors_without(data: RankingData, settings: PairSettings, weights: Vector) -> Vector:
    """Return the factor c of the remaining rows of a query, given the weights of those held out."""
    weight = data.v.sum()
    left = weight - weights
    left = np.where(left > 1e-14 * weight, left, 0.0)
    return np.asarray(settings.scatter_factor(left) * data.query_weight_of_rows[0])


Splits = Sequence[tuple[Rows, Rows]]


def is_from_decomposition(
    data: RankingData, settings: PairSettings, is_dual: bool, splits: Splits
) -> bool:
    """Tell whether `fold_scores` can take these splits.

    It can if the problem is in dual form, every row is a test row exactly once, the training rows
    of a split are all other rows, and the folds are either whole queries, or any rows of a
    pointwise problem, or any rows of one query with pairs with ties.
    """
    if not is_dual:
        return False
    n_rows = len(data.y)
    tests = np.concatenate([test for _, test in splits])
    if len(tests) != n_rows or (np.bincount(tests, minlength=n_rows) != 1).any():
        return False
    for train, test in splits:
        seen = np.zeros(n_rows, np.int64)
        seen[train] += 1
        if len(train) + len(test) != n_rows or (seen != 1).sum() != len(test) or seen[test].any():
            return False
    return is_one_regression(data, settings) or _is_by_blocks(data, settings, splits)


def fold_scores(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    splits: Splits,
    alphas: Vector,
    n_threads: int | None = None,
) -> list[Vector]:
    """Return the scores of every fold by the models of all other rows, for all alphas.

    The scores are those of refits. For folds of rows of one query they differ from those of refits
    by a constant for each fold, because these models have an intercept. Scores that would be
    rounding error are NaN, as in `leave_query_out`.

    Parameters
    ----------
    data : RankingData
    settings : PairSettings
    ridge : RidgePath
        The decomposition of the dual system of all rows.
    splits : list of (training rows, test rows)
        Splits for which `is_from_decomposition` is true.
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    n_threads : int or None

    Returns
    -------
    list of ndarray of shape (n_alphas, n_test_rows), float64

    Raises
    ------
    ValueError
        If the training rows of a split have no pairs that count.

    Notes
    -----
    A fold B is a block of the hat matrix. ``(I − H_BB) x = residual_B`` is solved for all alphas by
    conjugate gradients, in 4 n² flops for each alpha and step. A refit of every fold would cost
    9 n³ flops each. Rows of one query need 8 n² bytes besides the decomposition.
    """
    for number, (train, _) in enumerate(splits):
        data.require_training_pairs(settings, number, train)
    tests = [test for _, test in splits]
    one = is_one_regression(data, settings)
    hold_out = rows_without_folds if one else scores_without_folds
    scores = hold_out(data, settings, ridge, tests, alphas, n_threads)
    return [scores[:, test] for test in tests]


def is_one_regression(data: RankingData, settings: PairSettings) -> bool:
    """Tell whether the rows form one regression, whose factor depends on the weight of the rows."""
    one = data.as_scope(settings).queries.n_filled == 1
    return one and (settings.pairs is None or settings.kind == "kept")


def _is_by_blocks(data: RankingData, settings: PairSettings, splits: Splits) -> bool:
    """Tell whether the half-Laplacian has a separate block for every fold."""
    queries = data.as_scope(settings).queries
    if settings.pairs is None and settings.weighting != "queries":
        return True
    of_row = queries.index()
    counts = (np.bincount(of_row[test], minlength=queries.n_queries) for _, test in splits)
    return all(((count == 0) | (count == queries.sizes)).all() for count in counts)


def rows_without_folds(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    folds: Sequence[Rows],
    alphas: Vector,
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row of one regression by the model without its fold.

    The arguments are those of `scores_without_folds`. The ridge is ``alpha / c`` with the factor c
    of the fold's training rows.
    """
    regression = RowRegression.of(data.as_scope(settings), settings, ridge)
    rows, offsets = np.concatenate(folds), fold_offsets(folds)
    scores = np.empty((len(alphas), len(rows)))
    found, levels = regression.hold_out(rows, offsets, alphas, n_threads)
    scores[:, rows] = found + levels
    return scores
