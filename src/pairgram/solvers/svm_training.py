"""Data that are prepared for solutions of RankSVM, in memory or in a table; solver settings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import pairgram._core as _core
from pairgram._support import memory
from pairgram._support.checks import Rows, Vector
from pairgram._support.parameters import Loss, Weighting, check_parameters
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.features.input_map import parts_of
from pairgram.solvers.interface import ColumnSums
from pairgram.solvers.newton import (
    Convergence,
    FeatureRows,
    PairSolver,
    Preconditioner,
    cholesky_preconditioner,
    diagonal_preconditioner,
    in_single,
    make_rows,
    norm_of,
    scatter_diagonal,
    with_stored_features,
    without_whitening,
)
from pairgram.solvers.pairgram import Pairgram
from pairgram.solvers.passes import statistics_of
from pairgram.solvers.statistics import SMALLEST_SQUARES, count_varying
from pairgram.tables.blocks import BlockReader
from pairgram.tables.rows import TableRows
from pairgram.tables.table import Table

# A sample must have room for at least this many queries of the largest size.
FEWEST_QUERIES = 8


def sample_queries(data: RankingData, pair_weights: Vector, n_rows: int) -> RankingData | None:
    """Return about `n_rows` rows, in whole queries, whose Gram matrix estimates that of `data`.

    A query is taken with probability ``p = min(1, t · pair weight)``, and its weight is divided by
    p. The estimate is therefore unbiased, and no heavy query is missed. The queries are taken by
    systematic sampling in their order, so the choice depends only on the data. This takes
    O(n_queries) time, and the rows are copied.

    Parameters
    ----------
    data : RankingData
    pair_weights : ndarray of shape (n_queries,)
        The sum of the weights of the pairs of each query.
    n_rows : int
        Number of rows to aim at.

    Returns
    -------
    RankingData or None
        None if the sample would be more than half of the rows that have pairs, or if a query is
        longer than an eighth of the sample.
    """
    sizes = np.where(pair_weights > 0, data.queries.sizes, 0)
    if 2 * n_rows > sizes.sum() or FEWEST_QUERIES * sizes.max() > n_rows:
        return None
    share = _probabilities(pair_weights / pair_weights.max(), sizes, n_rows)
    taken = (np.diff(np.floor(np.cumsum(share) + 0.5), prepend=0.0) > 0) | (share >= 1)
    weights = np.ones(len(share)) if data.query_weights is None else data.query_weights
    weighted = replace(data, query_weights=weights / np.where(taken, share, 1.0))
    return weighted.take(np.flatnonzero(taken[data.queries.index()]))


def _probabilities(weights: Vector, sizes: NDArray[np.int64], n_rows: int) -> Vector:
    """Return ``min(1, t · weight)`` for every query; t is such that `n_rows` rows are expected."""
    sure = np.zeros(len(weights), dtype=bool)
    while True:
        left = n_rows - sizes[sure].sum()
        share = np.where(sure, 1.0, left / (weights * sizes)[~sure].sum() * weights)
        if not (share > 1).any():
            return share
        sure |= share >= 1


# With more features than this, the preconditioner is the diagonal instead of the Gram matrix.
WIDEST_GRAM = 4096
# It is also the diagonal if this many matrices of the Gram matrix's size do not fit into memory.
GRAM_COPIES = 6
# With a smaller tolerance than this, mapped features are stored in double precision.
FINEST_SINGLE = 1e-5
# Up to this many bytes they are also stored in double precision: half of them would save no time.
SMALLEST_SINGLE = 1 << 20

# From this many features on, the Gram matrix is estimated from a sample of rows.
FEWEST_SAMPLED_FEATURES = 1024
# The sample has max(SAMPLE_ROWS · n_features, FEWEST_SAMPLE_ROWS) rows.
SAMPLE_ROWS, FEWEST_SAMPLE_ROWS = 3, 4096


@dataclass(frozen=True)
class SolverSettings:
    """The checked parameters that RankSVM and RankSVMCV share.

    Raises
    ------
    ValueError
        If a parameter is not as `RankSVM` describes it. The message names it.
    """

    loss: Loss
    weighting: Weighting
    tol: float
    max_iter: int
    memory_limit: float | None
    n_threads: int | None

    def __post_init__(self) -> None:
        PairSettings(weighting=self.weighting)
        check_parameters(self, "loss", "tol", "max_iter", "memory_limit")

    @property
    def pair_settings(self) -> PairSettings:
        """The settings of least squares that have the same pairs."""
        return PairSettings("dropped", weighting=self.weighting)


@dataclass(frozen=True, eq=False)
class Training:
    """A data set that is prepared for any number of solutions.

    Attributes
    ----------
    data : RankingData
        The data, with stored features if these fit into memory.
    rows : FeatureRows
    curvature : ndarray of shape (n_features, n_features) or (n_features,)
        The Gram matrix of the preference pairs, an estimate of it, or approximately its diagonal.
    settings : SolverSettings
    constant : ndarray of int64
        The features that are known to be the same in both rows of every pair.
    """

    data: RankingData
    rows: FeatureRows
    curvature: Vector
    settings: SolverSettings
    constant: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    pair_weight: float | None = None  # if the curvature is the Gram matrix of the columns of X

    def column_sums(self, coef: Vector) -> ColumnSums | None:
        """Return how much the columns of X vary over the pairs, if this is known."""
        if self.pair_weight is None:
            return None
        return ColumnSums(self.curvature.diagonal().copy(), self.curvature @ coef, self.pair_weight)

    @classmethod
    def make(cls, data: RankingData, settings: SolverSettings, *, exact: bool) -> Training:
        """Store the features, and compute their Gram matrix in n · n_features² flops.

        If there are many rows and many features and `exact` is False, the Gram matrix is estimated
        from a sample of queries in 3 · n_features³ flops. This is faster for a single solution,
        although it may need a few more Hessian products. For a Nyström map, the kernel values are
        then stored in place of the features.

        Raises
        ------
        ValueError
            If no preference pair counts, or if a feature is not finite.
        """
        # Only the order of labels counts. They are scaled, because the Gram matrix squares them.
        _, exponent = np.frexp(np.abs(data.y).max(initial=0.0))
        data = replace(data, y=np.ldexp(data.y, -exponent))
        weights = pair_operator(data, settings).pair_weights
        if not np.isfinite(weights).all():
            raise ValueError("sample_weight or query_weight too large: a pair's weight overflows")
        if not weights.any():
            if data.has_pairs(settings.pair_settings).any():
                raise ValueError(
                    "sample_weight or query_weight too small: the weights of all pairs, products "
                    "of two, vanish"
                )
            raise ValueError(
                f"no preference pair counts, with n_samples={len(data.y)}: every query has a "
                "single row, rows of one label, or weight 0"
            )
        large = 8 * len(data.y) * data.n_features > SMALLEST_SINGLE
        single = settings.tol >= FINEST_SINGLE and large
        fits = memory.fits(GRAM_COPIES * 8 * data.n_features**2)
        has_gram = fits and data.n_features <= WIDEST_GRAM
        if not exact and has_gram and data.n_features >= FEWEST_SAMPLED_FEATURES:
            n_rows = max(SAMPLE_ROWS * data.n_features, FEWEST_SAMPLE_ROWS)
            sample = sample_queries(data, weights, n_rows)
            if sample is not None:
                training = cls._from_sample(data, settings, sample, single, weights)
                if training is not None:
                    return training
        dtype = np.float32 if single or data.X.dtype == np.float32 else np.float64
        pair_weight = None
        given, data = data, with_stored_features(data, dtype, settings.memory_limit)
        if has_gram:
            labelled = replace(data, offset=None)  # G does not depend on what is fitted
            try:
                gram = Pairgram.from_data(labelled, settings.pair_settings, settings.n_threads)
                curvature = gram.G
                known = parts_of(given.feature_map)[1] is None
                pair_weight = gram.pair_weight if known else None
            except ValueError:
                given.require_finite_features()  # its error says whether X or the map is at fault
                raise
        else:
            total = np.bincount(data.queries.index(), data.v, minlength=len(weights))
            factor = np.divide(2 * weights, total, out=np.zeros_like(weights), where=total > 0)
            curvature = scatter_diagonal(data, factor)
        if not has_gram and curvature.max(initial=0.0) < SMALLEST_SQUARES:
            spread = float(data.X.max()) - float(data.X.min())
            if 0 < spread < 1:
                raise ValueError(
                    f"X too small: its values differ by {spread:.1g} at most, whose square "
                    "vanishes: multiply X, as StandardScaler does"
                )
        rows = make_rows(data, resolve_n_threads(settings.n_threads))
        if curvature.ndim == 1:  # this was summed only over the queries with pairs
            with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
                sums = rows.sum(np.ones(len(data.y)))
            if not (np.isfinite(curvature).all() and np.isfinite(sums).all()):
                given.require_finite_features()
                raise ValueError("X too large: the sum of squared differences overflows")
        constant = _constant_features(data, curvature, weights)
        return cls(data, rows, curvature, settings, constant, pair_weight)

    @classmethod
    def _from_sample(
        cls,
        data: RankingData,
        settings: SolverSettings,
        sample: RankingData,
        single: bool,
        weights: Vector,
    ) -> Training | None:
        """Do the work of `make` with the Gram matrix of a sample; None if features overflow."""
        limit, n_threads = settings.memory_limit, resolve_n_threads(settings.n_threads)
        stored = in_single(replace(sample, offset=None), limit, n_threads)
        curvature = Pairgram.from_data(stored, settings.pair_settings, n_threads).G
        del stored
        constant = np.empty(0, np.int64)
        if data.feature_map is None:
            constant = _constant_columns(data, weights > 0)
        data, whitening = without_whitening(data)
        narrow = single or (data.X.dtype == np.float32 and whitening is None)
        data = with_stored_features(data, np.float32 if narrow else np.float64, limit)
        rows = make_rows(data, n_threads, whitening)
        with single_threaded_blas(), np.errstate(invalid="ignore"):
            finite = np.isfinite(rows.sum(np.ones(len(data.y)))).all()
        return cls(data, rows, curvature, settings, constant) if finite else None

    def solver(self, start: Vector | None = None, counts: Vector | None = None) -> PairSolver:
        """Return a solver that starts at `start`. `counts` multiply the row weights."""
        begin = np.zeros(len(self.curvature)) if start is None else start
        pairs, offset = pair_operator(self.data, self.settings, counts), self.data.offset
        constant = self.constant
        # Fewer columns may vary. Searches, which count rows, have exact trainings, whose columns of
        # X are the features; a training by a sample may have kernel values there.
        if counts is not None and self.data.feature_map is None:
            constant = _constant_columns(self.data, pairs.pair_weights > 0)
        fixed = np.zeros(pairs.n_rows) if offset is None else self.data.queries.grouped(offset)
        threads = resolve_n_threads(self.settings.n_threads)
        return PairSolver(self.rows, pairs, begin, fixed, constant, threads)

    def preconditioner(self, C: float) -> Preconditioner:
        """Return the inverse of the Hessian with all pairs active, or of its diagonal."""
        if self.curvature.ndim == 2:
            return cholesky_preconditioner(self.curvature, C)
        return diagonal_preconditioner(self.curvature, C)


def _constant_features(data: RankingData, curvature: Vector, weights: Vector) -> Rows:
    """Return the features that are the same in both rows of every pair.

    `weights` are those of the queries. For sparse rows, which are not centred, a curvature of 0 is
    no proof.
    """
    if data.feature_map is None and scipy.sparse.issparse(data.X):
        return _constant_columns(data, weights > 0)
    return np.flatnonzero((curvature if curvature.ndim == 1 else curvature.diagonal()) == 0)


def _constant_columns(data: RankingData, counted: NDArray[np.bool_]) -> Rows:
    """Return the columns of X that are the same in all rows of each of the queries that count."""
    if scipy.sparse.issparse(data.X):
        varying = np.zeros(data.X.shape[1] + 1, dtype=np.int64)
        count_varying(data, False, counted, varying)
        return np.flatnonzero(varying[:-1] == 0)
    columns, queries = np.arange(data.X.shape[1]), np.flatnonzero(counted)
    order, offsets = data.queries.order, data.queries.offsets
    begin, step = 0, 1
    while len(columns) and begin < len(queries):  # most columns vary in the first few queries
        part = queries[begin : begin + step]
        sizes = offsets[part + 1] - offsets[part]
        ends = np.cumsum(sizes)
        rows = np.arange(ends[-1]) + np.repeat(offsets[part] - (ends - sizes), sizes)
        values = data.X[np.ix_(rows if order is None else order[rows], columns)]
        same = (values == values[np.repeat(ends - sizes, sizes)]).all(axis=0)
        columns, begin, step = columns[same], begin + step, 2 * step
    return columns


def pair_operator(
    data: RankingData, settings: SolverSettings, counts: Vector | None = None
) -> _core.PairOperator:
    """Return the loss of the preference pairs. `counts` multiply the row weights."""
    if counts is not None:
        data = replace(data, row_weights=data.v * counts)
    problem = data.problem(PairSettings("dropped", weighting=settings.weighting))
    return _core.PairOperator(problem, loss=settings.loss)


def fit_attributes(history: Convergence) -> dict[str, Any]:
    """Return the attributes that describe how the solver found the model."""
    passes = {"n_passes": np.array(history.n_passes, dtype=np.int64)}
    return {
        "history_": (passes if any(history.n_passes) else {})
        | {
            "objective": np.array(history.objective),
            "relative_gradient": np.array(history.relative_gradient),
            "n_hessian_products": np.array(history.n_hessian_products, dtype=np.int64),
            "step": np.array(history.step),
        },
        "n_iter_": len(history.step),
        "n_hessian_products_": sum(history.n_hessian_products),
    }


def warn_if_not_converged(histories: list[Convergence], settings: SolverSettings) -> None:
    """Warn if a minimum was not reached."""
    failed = [history for history in histories if not history.converged]
    if failed:
        worst = max(history.relative_gradient[-1] for history in failed)
        warnings.warn(
            f"{len(failed)} of {len(histories)} solutions did not reach tol={settings.tol:g} in "
            f"max_iter={settings.max_iter} Newton steps: the relative gradient is {worst:.1e}",
            ConvergenceWarning,
            stacklevel=3,
        )


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
        if n_features > WIDEST_GRAM or not memory.fits(GRAM_COPIES * 8 * n_features**2):
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
