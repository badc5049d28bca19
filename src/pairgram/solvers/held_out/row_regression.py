"""Treat the rows of one query as ridge regression, and hold rows out by its hat matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from pairgram._support.arrays import blocks
from pairgram._support.cached import cached_property
from pairgram._support.checks import Rows, Vector
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.solvers.ridge_path import RidgePath

# Blocks of rows take about this many bytes.
ROW_BYTES = 32 << 20
# L z is rounding error for rows whose weight is below this share of the largest.
SMALLEST_WEIGHT = 1e-10
# Held-out scores are rounding error if a pivot of I − H is below this.
SMALLEST_PIVOT = 5e-11


@dataclass(frozen=True, eq=False)
class RowRegression:
    """The kept pairs of one query, or pointwise rows, as ridge regression on rows.

    With kept pairs the objective is ``c Σ v (y − f − b)² + alpha ‖w‖²`` with an intercept b that
    has no ridge. Pointwise rows have the same objective without b. The factor c depends on the
    weight of the rows. If some of them are left out, the ridge is ``alpha / c`` with the c of the
    others, and the scores follow from the hat matrix
    ``H_ij = (1/V + z_iᵀ (Λ + alpha/c)⁻¹ z_j) v_j``.

    Attributes
    ----------
    data : RankingData
        Rows of one query. If they came from several queries, the row weights include the query
        weights.
    settings : PairSettings
    ridge : RidgePath
        The path of the problem of all rows.
    eigenvalues, projection : ndarray of shape (rank,)
        Those of `ridge`, divided by the factor. They belong to ``Σ v z zᵀ``.
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
    eigenvalues: Vector
    projection: Vector
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
            ridge.eigenvalues / factor,
            ridge.projection / factor,
            factor,
            float(v @ y / weight) if with_mean else 0.0,
            weight,
        )

    @property
    def intercept(self) -> bool:
        """Whether the regression has an intercept: it does with kept pairs."""
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
        X = self.data.features(rows)
        X = X.toarray() if scipy.sparse.issparse(X) else X
        return np.asarray((X - self._mean_x) @ self.ridge.basis)

    def factors_without(self, weights: Vector) -> Vector:
        """Return the factor c of the remaining rows, given the weights of the rows held out.

        It is 0 if no pair is left. The model is then constant.
        """
        return factors_without(self.data, self.settings, weights)

    def leave_one_out(self, alphas: Vector) -> Vector:
        """Return the scores of every row by the model without it, (n_alphas, n_rows).

        With an intercept, targets and fits are measured from the mean target of the other rows. The
        score is ``(t_i − a_i d_i) / (1 − H_ii)``. Here t is the fit without the intercept, a is H
        without its share v / V, and d is the target less that mean. So the score is exactly 0
        where no feature varies. The mean offset of the other rows is subtracted, because the offset
        of the row is added to this score. A score that would be rounding error is NaN.
        """
        v, y, n_rows = self.data.v, self.data.target(self.settings), len(self.data.y)
        scores = np.zeros((len(alphas), n_rows))
        if self.weight == 0:
            return scores
        factors = self.factors_without(v)
        others = 1 - v / self.weight if self.intercept else np.ones(n_rows)
        apart = np.divide(y - self.mean_y, others, out=np.zeros(n_rows), where=factors > 0)
        offsets = np.zeros(n_rows)
        if self.intercept:
            offset = self.settings.targets(self.data.y) - y
            np.divide(v @ offset - v * offset, self.weight - v, out=offsets, where=factors > 0)
        for rows in blocks_of_rows(n_rows, self.data.n_features):
            z = self.features(rows)
            known = factors[rows] > 0
            for i, alpha in enumerate(alphas):
                ridges = np.divide(alpha, factors[rows], out=np.full(len(z), np.inf), where=known)
                inverse = 1 / (self.eigenvalues + ridges[:, None])
                fit = np.einsum("ij,j,ij->i", z, self.projection, inverse)
                own = v[rows] * np.einsum("ij,ij,ij->i", z, z, inverse)
                left = others[rows] - own
                left = np.where(left < SMALLEST_PIVOT, np.nan, left)
                held = (fit - own * apart[rows]) / left - offsets[rows]
                scores[i, rows] = np.where(known, held, 0.0)
        return scores


def blocks_of_rows(n_rows: int, n_features: int) -> Iterator[slice]:
    """Cut rows into blocks of a few MiB."""
    return blocks(n_rows, max(1, ROW_BYTES // (8 * max(1, n_features))))


def in_one_query(data: RankingData) -> RankingData:
    """Return the rows of all queries as one query; query weights become part of row weights."""
    if data.queries.n_filled <= 1:
        return data
    return replace(
        data,
        queries=Queries.make(len(data.y)),
        row_weights=data.v * data.query_weight_of_rows,
        query_weights=None,
    )


def factors_without(data: RankingData, settings: PairSettings, weights: Vector) -> Vector:
    """Return the factor c of the remaining rows of a query, given the weights of those held out."""
    weight = data.v.sum()
    left = weight - weights
    left = np.where(left > 1e-14 * weight, left, 0.0)
    return np.asarray(settings.scatter_factor(left) * data.query_weight_of_rows[0])
