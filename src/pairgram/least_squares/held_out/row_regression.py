"""Rows of one query as ridge regression, from which rows are held out by the hat matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse

from pairgram._support.blocks import blocks
from pairgram._support.types import Rows, Vector
from pairgram.least_squares.ridge_path import RidgePath
from pairgram.preferences.pairs import PairSettings
from pairgram.preferences.queries import Queries
from pairgram.problem.data import RankingData

__all__ = ["SMALLEST_PIVOT", "RowRegression", "blocks_of_rows", "factors_without", "in_one_query"]

BLOCK_BYTES = 32 << 20
SMALLEST_WEIGHT = 1e-10  # beside the largest: below, L z is rounding error
SMALLEST_PIVOT = 5e-11  # of I − H: below, what is held out is rounding error


@dataclass(frozen=True, eq=False)
class RowRegression:
    """One query's kept pairs, or rows on their own, as ridge regression on rows.

    With pairs kept the objective is ``c Σ v (y − f − b)² + alpha ‖w‖²`` with an intercept b that
    has no ridge, and pointwise the same without it. The factor c depends on the weight of the rows:
    without some of them the ridge is ``alpha / c``, and the rest follows from the hat matrix
    ``H_ij = (1/V + z_iᵀ (Λ + alpha/c)⁻¹ z_j) v_j``.

    Attributes
    ----------
    data : RankingData
        One query; where its rows were of several, their weights hold those of the queries.
    settings : PairSettings
    ridge : RidgePath
        Of the problem of all rows.
    eigenvalues, projection : ndarray of shape (rank,)
        Its, over the factor: those of ``Σ v z zᵀ``.
    factor : float
        c of all rows.
    mean_y : float
        0 without an intercept.
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
        """Make it of the decomposed problem of all rows, some of which count.

        Of one query, or of pointwise rows of several, whose weights count rows (not "queries").
        """
        data = in_one_query(data)
        v, y = data.v, settings.targets(data.y)
        weight = float(v.sum())
        factor = float(_objective_factor(data, settings, np.array([weight]))[0]) or 1.0
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
        """Whether there is one."""
        return self.settings.pairs is not None

    def features(self, rows: Rows | slice) -> Vector:
        """Return rows in the basis, from the mean: z, (n_rows, rank)."""
        if not self.ridge.is_dual:
            return self._products(rows)
        # L z = factor · v (z − mean) in the dual, where a product with the basis has lost half of
        # its digits for a small eigenvalue.
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
        """Return c for the rows that are left, given the weights of those held out.

        0 where no pair is left: the model is then constant.
        """
        return factors_without(self.data, self.settings, weights)

    def leave_one_out(self, alphas: Vector) -> Vector:
        """Return the scores of every row by the model without it, (n_alphas, n_rows).

        ``(fit_i − H_ii y_i) / (1 − H_ii)``, with an intercept less the mean label of the other
        rows; NaN where that is rounding error. Rows are taken in blocks.
        """
        v, y, n_rows = self.data.v, self.settings.targets(self.data.y), len(self.data.y)
        scores = np.zeros((len(alphas), n_rows))
        if self.weight == 0:
            return scores
        factors = self.factors_without(v)
        means = np.zeros(n_rows)
        if self.intercept:
            np.divide(v @ y - v * y, self.weight - v, out=means, where=factors > 0)
        for rows in blocks_of_rows(n_rows, self.data.n_features):
            z = self.features(rows)
            known = factors[rows] > 0
            for i, alpha in enumerate(alphas):
                ridges = np.divide(alpha, factors[rows], out=np.full(len(z), np.inf), where=known)
                inverse = 1 / (self.eigenvalues + ridges[:, None])
                fit = np.einsum("ij,j,ij->i", z, self.projection, inverse) + self.mean_y
                own = np.einsum("ij,ij,ij->i", z, z, inverse) + self.intercept / self.weight
                leverage = v[rows] * own
                left = np.where(1 - leverage < SMALLEST_PIVOT, np.nan, 1 - leverage)
                held = (fit - leverage * y[rows]) / left - means[rows]
                scores[i, rows] = np.where(known, held, 0.0)
        return scores


def blocks_of_rows(n_rows: int, n_features: int) -> Iterator[slice]:
    """Cut rows into blocks of a few MiB."""
    return blocks(n_rows, max(1, BLOCK_BYTES // (8 * max(1, n_features))))


def in_one_query(data: RankingData) -> RankingData:
    """Return rows of several queries as one, where the weights of queries are those of rows."""
    if data.queries.n_filled <= 1:
        return data
    return replace(
        data,
        queries=Queries.make(len(data.y)),
        row_weights=data.v * data.query_weight_of_rows,
        query_weights=None,
    )


def factors_without(data: RankingData, settings: PairSettings, weights: Vector) -> Vector:
    """Return c for the rows of one query that are left, given the weights of those held out."""
    weight = data.v.sum()
    left = weight - weights
    left = np.where(left > 1e-14 * weight, left, 0.0)
    return _objective_factor(data, settings, left)


def _objective_factor(data: RankingData, settings: PairSettings, weight: Vector) -> Vector:
    """What multiplies Σ v (y − f − b)² in the objective of one query, by the weight of its rows."""
    inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)
    ones = np.where(weight > 0, 1.0, 0.0)
    if settings.pairs is None:
        factor = inverse if settings.weighting == "queries" else ones
    else:
        factor = {"pairs": weight, "documents": ones, "queries": 2 * inverse}[settings.weighting]
    return np.asarray(factor * data.query_weight_of_rows[0])
