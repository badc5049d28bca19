"""Solve RankSVM on a table: every loss, gradient and Hessian product is a pass over its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import pairgram._core as _core
from pairgram._support.memory import available_memory
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram._support.types import Rows, Vector
from pairgram.feature_maps.input_map import parts_of
from pairgram.least_squares.gram import Pairgram
from pairgram.least_squares.statistics import ColumnSums
from pairgram.least_squares.table_fit import statistics_of
from pairgram.queries_and_pairs.pair_weights import PairSettings
from pairgram.rankers.table_blocks import BlockReader
from pairgram.svm.feature_rows import (
    FeatureRows,
    make_rows,
    scatter_diagonal,
    with_stored_features,
)
from pairgram.svm.newton import (
    PairSolver,
    Preconditioner,
    cholesky_preconditioner,
    diagonal_preconditioner,
    norm_of,
)
from pairgram.svm.training import (
    FINEST_SINGLE,
    GRAM_COPIES,
    WIDEST_GRAM,
    SolverSettings,
    pair_operator,
)
from pairgram.tables.rows import TableRows
from pairgram.tables.table import Table

__all__ = ["TableSolver", "TableTraining"]

# The line search looks at these multiples of a Newton step, in one pass.
STEPS = (
    1 / 16,
    1 / 8,
    1 / 4,
    3 / 8,
    1 / 2,
    5 / 8,
    3 / 4,
    7 / 8,
    1,
    9 / 8,
    5 / 4,
    3 / 2,
    2,
    3,
    6,
    16,
)
# It looks again, nearer to 0, at most so often.
MOST_LINES = 8


class _Block(NamedTuple):
    """Some rows, as a solver reads them."""

    rows: FeatureRows
    pairs: _core.PairOperator
    offset: Vector


@dataclass(frozen=True)
class BlockMaker:
    """Makes blocks of a table into features and pairs.

    Attributes
    ----------
    reader : BlockReader
    settings : SolverSettings
    exponent : int
        Labels are divided by two to this power. Only their order counts.
    """

    reader: BlockReader
    settings: SolverSettings
    exponent: int

    def block(self, rows: TableRows) -> _Block:
        """Return the features and the pairs of some queries."""
        data = self.reader.data(rows)
        data = replace(data, y=np.ldexp(data.y, -self.exponent))
        pairs = pair_operator(data, self.settings)
        single = self.settings.tol >= FINEST_SINGLE or data.X.dtype == np.float32
        dtype = np.float32 if single else np.float64
        data = with_stored_features(data, dtype, self.settings.memory_limit)
        offset = np.zeros(len(data.y)) if data.offset is None else data.offset
        return _Block(make_rows(data, resolve_n_threads(self.settings.n_threads)), pairs, offset)


class LossSums(NamedTuple):
    """The loss of the preference pairs, its gradient, and the weight of all pairs."""

    loss: float
    gradient: Vector
    weight: float


@dataclass(frozen=True, eq=False)
class LossTask:
    """Finds the loss of a model and its gradient."""

    maker: BlockMaker
    w: Vector
    reads_features: bool = True
    needs_queries: bool = True

    def of_rows(self, rows: TableRows) -> LossSums:
        """Return the loss of some queries."""
        block = self.maker.block(rows)
        with single_threaded_blas():
            scores = block.offset + block.rows.scores(self.w) if self.w.any() else block.offset
            threads = resolve_n_threads(self.maker.settings.n_threads)
            loss, gradient = block.pairs.set_scores(scores, threads)
            return LossSums(loss, block.rows.sum(gradient), float(block.pairs.pair_weights.sum()))

    def join(self, first: LossSums, second: LossSums) -> LossSums:
        """Return the loss of the queries of both."""
        return LossSums(
            first.loss + second.loss,
            first.gradient + second.gradient,
            first.weight + second.weight,
        )


@dataclass(frozen=True, eq=False)
class ProductTask:
    """Multiplies a direction with the Hessian of the loss at a model."""

    maker: BlockMaker
    w: Vector
    direction: Vector
    reads_features: bool = True
    needs_queries: bool = True

    def of_rows(self, rows: TableRows) -> Vector:
        """Return the product for some queries, (n_features,)."""
        block = self.maker.block(rows)
        threads = resolve_n_threads(self.maker.settings.n_threads)
        with single_threaded_blas():
            block.pairs.set_scores(block.offset + block.rows.scores(self.w), threads)
            return block.rows.hessian_product(block.pairs, self.direction)[0]

    def join(self, first: Vector, second: Vector) -> Vector:
        """Return the product for the queries of both."""
        return first + second


@dataclass(frozen=True, eq=False)
class LineTask:
    """Finds the slope of the loss along a step from a model, at several lengths."""

    maker: BlockMaker
    w: Vector
    step: Vector
    lengths: Vector
    reads_features: bool = True
    needs_queries: bool = True

    def of_rows(self, rows: TableRows) -> Vector:
        """Return the slopes for some queries, (n_lengths,)."""
        block = self.maker.block(rows)
        threads = resolve_n_threads(self.maker.settings.n_threads)
        slopes = np.empty(len(self.lengths))
        with single_threaded_blas():
            scores = block.offset + block.rows.scores(self.w)
            along = block.rows.scores(self.step)
            for k, length in enumerate(self.lengths.tolist()):
                _, gradient = block.pairs.set_scores(scores + length * along, threads)
                slopes[k] = gradient @ along
        return slopes

    def join(self, first: Vector, second: Vector) -> Vector:
        """Return the slopes for the queries of both."""
        return first + second


class TableSolver(PairSolver):
    """Minimises the objective of `PairSolver` on a table, whose scores are not kept.

    Attributes
    ----------
    n_passes : int
        How often the rows have been read.
    """

    def __init__(self, table: Table, maker: BlockMaker, start: Vector, constant: Rows) -> None:
        self._table, self._maker, self._constant = table, maker, constant
        start = start.copy()
        start[constant] = 0.0
        self.w, self._scores = start, np.empty(0)
        self.n_passes = 0
        found = self._evaluated(np.zeros_like(start))
        self.pair_weight = found.weight
        self._pull_at_zero = norm_of(found.gradient)
        if start.any():
            self._evaluated(start)

    def _evaluated(self, w: Vector) -> LossSums:
        """Set the loss and its gradient to those of w."""
        found: LossSums = self._run(LossTask(self._maker, w))
        found.gradient[self._constant] = 0.0
        self._loss, self._pull = found.loss, found.gradient
        return found

    def _run(self, task: Any) -> Any:
        self.n_passes += 1
        return self._table.run(task)

    def _product(self, direction: Vector) -> tuple[Vector, Vector]:
        """Return the product of the Hessian of the loss with a direction, and no scores."""
        return self._run(ProductTask(self._maker, self.w, direction)), np.empty(0)

    def _move(self, C: float, step: Vector, along: Vector) -> float:
        """Move to where the objective is least along the step, nearly; return the step length.

        The slope is found at 16 lengths, and taken as linear between two of them.
        """
        linear, square = float(self.w @ step), float(step @ step)
        start, before = self.w, 0.5 * float(self.w @ self.w) + C * self._loss
        first = linear + C * float(self._pull @ step)
        scale, t = 1.0, 0.0
        for _ in range(MOST_LINES):
            lengths = scale * np.array(STEPS)
            slopes = self._run(LineTask(self._maker, start, step, lengths))
            t = _root(
                np.append(0.0, lengths),
                np.append(first, linear + lengths * square + C * slopes),
            )
            self.w = start + t * step
            self._evaluated(self.w)
            after = 0.5 * float(self.w @ self.w) + C * self._loss
            if after <= before:
                break
            scale = t / STEPS[-1]
        return t


def _root(lengths: Vector, slopes: Vector) -> float:
    """Return where the slope, which ascends, crosses 0 if it is linear between lengths."""
    above = np.flatnonzero(slopes >= 0)
    if not len(above):
        return float(lengths[-1])
    right = max(1, int(above[0]))
    low, high = slopes[right - 1], slopes[right]
    share = -low / (high - low) if high > low else 1.0
    return float(lengths[right - 1] + share * (lengths[right] - lengths[right - 1]))


@dataclass(frozen=True, eq=False)
class TableTraining:
    """A table that is prepared for any number of solutions; see `Training`.

    Attributes
    ----------
    table : Table
    maker : BlockMaker
    curvature : ndarray of shape (n_features, n_features) or (n_features,)
    pair_weight : float or None
        If the curvature is the Gram matrix of the columns of X.
    """

    table: Table
    maker: BlockMaker
    curvature: Vector
    pair_weight: float | None

    @classmethod
    def make(cls, table: Table, reader: BlockReader, settings: SolverSettings) -> TableTraining:
        """Compute the Gram matrix of the preference pairs in one pass, or its diagonal.

        Raises
        ------
        ValueError
            If no preference pair counts.
        """
        survey = table.survey()
        _, exponent = np.frexp(max(abs(survey.lowest), abs(survey.highest)))
        maker = BlockMaker(reader, settings, int(exponent))
        pairs = settings.pair_settings
        n_features = reader.pattern.n_features
        if n_features > WIDEST_GRAM or GRAM_COPIES * 8 * n_features**2 > available_memory():
            diagonal = table.run(_DiagonalTask(maker, pairs))
            if not diagonal[-1] > 0:
                raise ValueError(
                    f"no preference pair counts, with n_samples={survey.n_rows}: every query has a "
                    "single row, rows of one label, or weight 0"
                )
            return cls(table, maker, diagonal[:-1], None)
        labelled = replace(
            reader, prior=None, exponent=int(exponent)
        )  # G does not depend on what is fitted
        totals = statistics_of(table, [labelled], [pairs], False, None, settings.n_threads)
        gram: Pairgram = totals[0, pairs, 0].with_pairs(pairs)
        known = parts_of(reader.feature_map)[1] is None
        return cls(table, maker, gram.G, gram.pair_weight if known else None)

    @property
    def settings(self) -> SolverSettings:
        """The parameters of the solver."""
        return self.maker.settings

    def column_sums(self, coef: Vector) -> ColumnSums | None:
        """Return how much the columns of X vary over the pairs, if this is known."""
        if self.pair_weight is None:
            return None
        return ColumnSums(self.curvature.diagonal().copy(), self.curvature @ coef, self.pair_weight)

    def preconditioner(self, C: float) -> Preconditioner:
        """Return the inverse of the Hessian with all pairs active, or of its diagonal."""
        if self.curvature.ndim == 2:
            return cholesky_preconditioner(self.curvature, C)
        return diagonal_preconditioner(self.curvature, C)

    def solver(self, start: Vector | None = None) -> TableSolver:
        """Return a solver that starts at `start`."""
        begin = np.zeros(len(self.curvature)) if start is None else start
        diagonal = self.curvature.diagonal() if self.curvature.ndim == 2 else self.curvature
        return TableSolver(self.table, self.maker, begin, np.flatnonzero(diagonal == 0))


@dataclass(frozen=True, eq=False)
class _DiagonalTask:
    """Finds the diagonal of the Gram matrix of the preference pairs, approximately.

    The last value is the weight of all pairs.
    """

    maker: BlockMaker
    pairs: PairSettings
    reads_features: bool = True
    needs_queries: bool = True

    def of_rows(self, rows: TableRows) -> Vector:
        """Return the diagonal for some queries."""
        data = self.maker.reader.data(rows)
        data = replace(data, y=np.ldexp(data.y, -self.maker.exponent))
        weights = pair_operator(data, self.maker.settings).pair_weights
        total = np.bincount(data.queries.index(), data.v, minlength=len(weights))
        factor = np.divide(2 * weights, total, out=np.zeros_like(weights), where=total > 0)
        return np.append(scatter_diagonal(data, factor), weights.sum())

    def join(self, first: Vector, second: Vector) -> Vector:
        """Return the diagonal for the queries of both."""
        return first + second
