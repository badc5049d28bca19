"""Data sets that are prepared for solutions of RankSVM; solver settings."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import blocks
from pairgram._support.checks import Rows, Vector, warn_caller
from pairgram._support.machine import single_threaded_blas, thread_count
from pairgram._support.parameters import Loss, check_parameters
from pairgram.data.blocks import Dataset, Task
from pairgram.data.dataset import RankingData, count_varying
from pairgram.data.pairs import Pairs, no_training_pairs
from pairgram.features.inputs import parts_of
from pairgram.solvers.group_fits import RowSets, Searched, Solved, as_compiled
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import ColumnSums
from pairgram.solvers.statistics import SMALLEST_SQUARES, SparseGram
from pairgram.solvers.svm_features import (
    make_rows,
    scatter_diagonal,
    with_stored_features,
    without_whitening,
)

# The default grid is these values divided by twice the trace of G.
DEFAULT_CS = np.exp2(np.arange(0.0, 21.0, 2.0))
# With a prior or offsets these come first. The smallest keeps them as they are.
STARTING_CS = np.array([1e-6, 1e-3, 1e-2, 1e-1])
# Gram matrices square labels, which play no part in this solver.
LARGEST_LABEL = 1e100
# Rows that are looked at together for columns that do not vary.
ROWS_COMPARED = 256
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


# The preconditioner is the diagonal if this many matrices of the Gram matrix's size do not fit into
# memory.
GRAM_COPIES = 6


@dataclass(frozen=True)
class SolverSettings:
    """The checked parameters that RankSVM and RankSVMCV share.

    Raises
    ------
    ValueError
        If a parameter is not as `RankSVM` describes it. The message names it.
    """

    loss: Loss
    pairs: Pairs
    tol: float

    def __post_init__(self) -> None:
        check_parameters(self, "loss", "tol")

    @property
    def steepness(self) -> float:
        """The largest curvature of the loss as a share of that of the squared loss."""
        return 0.125 if self.loss == "logistic" else 1.0


class Features(NamedTuple):
    """Rows with stored features, if these fit into memory, and their products."""

    data: RankingData
    rows: _core.RowFeatures

    def counting(self, counts: Vector) -> Features:
        """Return the same features, where row weights are multiplied by counts, (n_rows,)."""
        return self._replace(data=self.data.counting(counts))


@dataclass(frozen=True, eq=False)
class Training:
    """A data set that is prepared for any number of solutions.

    Attributes
    ----------
    features : Dataset of Features
    curvature : ndarray of shape (n_features, n_features) or (n_features,)
        The Gram matrix of the preference pairs, an estimate of it, or approximately its diagonal.
    settings : SolverSettings
    constant : ndarray of int64
        The features that are known to be the same in both rows of every pair.
    sums : PairSums or None
        The sums of the columns of X, if the curvature is their Gram matrix.
    """

    features: Dataset[Features]
    curvature: Vector
    settings: SolverSettings
    constant: Rows
    sums: PairSums | None = None

    @property
    def squares(self) -> Vector:
        """The sums of squares of the differences of features, 0 where they are constant."""
        squares = np.array(np.diag(self.curvature) if self.curvature.ndim == 2 else self.curvature)
        squares[self.constant] = 0.0
        return squares

    def column_sums(self, coef: Vector) -> ColumnSums | None:
        """Return how much the columns of X vary over the pairs, if this is known."""
        return None if self.sums is None else self.sums.column_sums(coef)

    @classmethod
    def make(
        cls, given: Dataset[RankingData], settings: SolverSettings, *, exact: bool
    ) -> Training:
        """Store the features, and compute their Gram matrix in n · n_features² flops.

        If there are many rows in memory and many features and `exact` is False, the Gram matrix is
        estimated from a sample of queries in 3 · n_features³ flops. This is faster for a single
        solution, although it may need a few more Hessian products. For a Nyström map, the kernel
        values are then stored in place of the features. A table is read once for its pairs, without
        features, and once for the matrix.

        Raises
        ------
        ValueError
            If no preference pair counts, or if a feature is not finite.
        """
        # Only the order of labels counts, so places take the place of those whose squares overflow.
        large = (
            np.abs(given.labels).max(initial=0.0) > LARGEST_LABEL
            and not settings.pairs.is_of_clicks
        )
        data = given.through(_in_places) if large else given
        counts = data.reduce(Task(partial(_counted, settings, False), _Counts.join, False))
        n_rows, n_features, pattern = given.n_rows, given.pattern.n_features, given.pattern
        counts.require(n_rows)
        large = 8 * n_rows * n_features > limits.now.smallest_single
        single = settings.tol >= limits.now.finest_single and large
        has_gram = _has_gram(n_features)
        samples = not (exact or given.is_read or pattern.preferences is not None)
        if samples and has_gram and n_features >= limits.now.sampled_features:
            training = cls._from_sample(data, settings, single)
            if training is not None:
                return training
        dtype = np.float32 if single or pattern.X.dtype == np.float32 else np.float64
        features = data.through(partial(_stored, settings, dtype))
        own = None
        if has_gram:
            try:
                total = features.reduce(Task(partial(_gram, settings), operator.add))
            except ValueError:
                given.reduce(_REQUIRE_FINITE)  # its error says whether X or the map is at fault
                raise
            curvature = total.G
            own = total if parts_of(pattern.feature_map)[1] is None else None
        else:
            with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):
                curvature, sums = features.reduce(Task(partial(_diagonal, settings), operator.add))
            if curvature.max(initial=0.0) < SMALLEST_SQUARES:
                read = Task(partial(_counted, settings, True), _Counts.join)
                if features.through(_data_of).reduce(read).varying.any():
                    raise ValueError(
                        "X too small: the squared differences of its features vanish: multiply X, "
                        "as StandardScaler does"
                    )
            if not (np.isfinite(curvature).all() and np.isfinite(sums).all()):
                given.reduce(_REQUIRE_FINITE)
                raise ValueError("X too large: the sum of squared differences overflows")
        varying = counts.varying
        if not len(varying):
            varying = curvature if curvature.ndim == 1 else curvature.diagonal()
        return cls(features, curvature, settings, np.flatnonzero(varying == 0), own)

    @classmethod
    def _from_sample(
        cls, given: Dataset[RankingData], settings: SolverSettings, single: bool
    ) -> Training | None:
        """Do the work of `make` with the Gram matrix of a sample of rows in memory.

        It is None if there is no such sample, or if features overflow.
        """
        (data,) = given.each(lambda data: data)
        weights = pair_operator(data, settings).pair_weights
        n_rows = max(limits.now.rows_per_feature * data.n_features, limits.now.fewest_sampled_rows)
        sample = sample_queries(data, weights, n_rows)
        if sample is None:
            return None
        sample = with_stored_features(replace(sample, offset=None), np.float32)
        curvature = PairSums.of(sample, settings.pairs).G
        del sample
        constant = np.empty(0, np.int64)
        if data.feature_map is None:
            constant = _constant_columns(data, weights > 0)
        data, whitening = without_whitening(data)
        narrow = single or (data.X.dtype == np.float32 and whitening is None)
        data = with_stored_features(data, np.float32 if narrow else np.float64)
        rows = make_rows(data, whitening)
        with single_threaded_blas, np.errstate(invalid="ignore"):
            finite = np.isfinite(rows.sum(np.ones(len(data.y)), thread_count())).all()
        features = given.through(lambda _: Features(data, rows))
        return cls(features, curvature, settings, constant) if finite else None

    def whole(self) -> tuple[_core.WeightsLoss, Rows]:
        """Return the loss of all rows, and the features that are constant."""
        return self._loss(self.features), self.constant

    def split(self, number: int, counts: Any) -> tuple[_core.WeightsLoss, Rows]:
        """Return the same of the rows that a split of `cv` trains on; see `Arrays.counting`.

        Raises
        ------
        ValueError
            If no pairs count.
        """
        features = self.features.counting(counts)
        counted = Task(partial(_counted, self.settings, True), _Counts.join)
        found = features.through(_data_of).reduce(counted)
        if not found.weigh:
            raise no_training_pairs(number)
        # Fewer columns may vary. Searches have exact trainings, whose columns of X are the
        # features; a training by a sample may have kernel values there.
        constant = np.flatnonzero(~found.varying) if len(found.varying) else self.constant
        return self._loss(features), constant

    def _loss(self, features: Dataset[Features]) -> _core.WeightsLoss:
        """Return the loss of some rows. Those of a table are read whenever it is asked for."""
        rows = features.through(partial(_with_pairs, self.settings))
        if not rows.is_read:
            return next(rows.each(lambda loss: loss))

        def at(*point: Any) -> tuple[Any, ...]:
            return rows.reduce(Task(operator.methodcaller("at", *point), _sums))

        def product(*vectors: Vector) -> Vector:
            return rows.reduce(Task(operator.methodcaller("product", *vectors), operator.add))

        return _core.loss_by_passes(len(self.curvature), at, product)

    def solve(
        self, losses: Sequence[tuple[_core.WeightsLoss, Rows]], Cs: Vector
    ) -> tuple[Vector, list[_core.Convergence]]:
        """Return the solutions, (n_losses, n_Cs, n_features), each started from the last C's.

        Parameters
        ----------
        losses : list of (loss, constant features)
            Those of `whole` or `split`.
        Cs : ndarray of shape (n_Cs,), ascending
        """
        settings = self.settings
        with single_threaded_blas:
            return _core.solve_svm(
                losses,
                self.curvature,
                Cs,
                steepness=settings.steepness,
                tol=float(settings.tol),
                max_iter=limits.now.newton_steps,
                n_threads=thread_count(),
            )

    @property
    def data(self) -> Dataset[RankingData]:
        """The rows with their stored features, and with labels of the same order."""
        return self.features.through(_data_of)


def solve_svm_sets(
    sets: RowSets,
    settings: SolverSettings,
    Cs: Vector,
    origin: Vector | None,
    *,
    tells: bool = False,
) -> tuple[Solved, list[_core.Convergence]] | None:
    """Solve RankSVM for every set, of one target, and tell how; None if compiled code cannot.

    There is a C for each. The weights `origin` are added to all. `tells` asks for sums.
    """
    told = _as_compiled(sets, settings)
    if told is None:
        return None
    problem, offset, blocks, others = told
    with single_threaded_blas:
        found, histories = _core.fit_group_svms(
            problem,
            sets.bounds,
            offset,
            blocks,
            Cs=Cs,
            origin=origin,
            tells=tells,
            **others,
        )
    return Solved(*found), histories


def search_svm_sets(sets: RowSets, settings: SolverSettings, Cs: Vector | None) -> Searched | None:
    """Hold the folds of sets out for every C; None if compiled code cannot take the rows.

    The Cs ascend; for None there is a grid for each set.
    """
    told = _as_compiled(sets, settings)
    if told is None or sets.units is None:
        return None
    problem, offset, blocks, others = told
    grid = default_grid(sets.data.offset is not None) if Cs is None else Cs
    with single_threaded_blas:
        states, values, scores = _core.search_group_svms(
            problem,
            sets.bounds,
            offset,
            blocks,
            range=(0, len(sets.n_targets)),
            Cs=grid,
            relative=Cs is None,
            units=sets.units,
            **others,
        )
    none = np.empty((*values.shape, 0))
    return Searched(states, values, none, scores, none, none)


def _as_compiled(
    sets: RowSets, settings: SolverSettings
) -> tuple[_core.RankingProblem, Vector, list[NDArray[Any]], dict[str, Any]] | None:
    """Return the problem, the offsets and rows, and further arguments of compiled code."""
    data, told = sets.data, None
    if _has_gram(data.n_features) and data.n_features < limits.now.sampled_features:
        told = as_compiled(sets, settings.pairs)
    if told is None:
        return None
    problem, blocks, node_map = told
    # Labels that are not numbers, which the problem cannot hold, leave their set to other code.
    offset = np.where(np.isfinite(sets.labels), 0.0 if data.offset is None else data.offset, np.nan)
    solver = settings.loss, settings.steepness, float(settings.tol), limits.now.newton_steps
    known = {"map": node_map, "settings": solver, "n_threads": thread_count()}
    return problem, offset, blocks, known


def default_grid(started: bool) -> Vector:
    """Return the default values of C times twice the trace of G; others where scores were there."""
    return np.concatenate([STARTING_CS, DEFAULT_CS]) if started else DEFAULT_CS


def no_preference_pairs(n_rows: int) -> ValueError:
    """Return the error for rows without preference pairs."""
    return ValueError(
        f"no preference pair counts, with n_samples={n_rows}: every query has a single row, rows "
        "of one label, or weight 0"
    )


def _has_gram(n_features: int) -> bool:
    """Tell whether the preconditioner is made of the Gram matrix, and not of its diagonal."""
    fits = memory.fits(GRAM_COPIES * 8 * n_features**2)
    return fits and n_features <= limits.now.widest_gram


def _in_places(data: RankingData) -> RankingData:
    """Return data in which the places of labels among all of them take their place."""
    return replace(data, y=np.unique(data.y, return_inverse=True)[1].astype(np.float64))


def _stored(settings: SolverSettings, dtype: type[np.floating[Any]], data: RankingData) -> Features:
    """Store features, if they fit into memory, and make them ready for products."""
    data = with_stored_features(data, dtype)
    return Features(data, make_rows(data))


def _with_pairs(settings: SolverSettings, features: Features) -> _core.WeightsLoss:
    """Return the loss of the pairs of some rows, as a function of the weights."""
    data, rows = features
    offset = np.zeros(len(data.y))
    if data.offset is not None:
        offset = data.queries.grouped(data.offset)
    return _core.loss_of_rows(rows, pair_operator(data, settings), offset, thread_count())


def _sums(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add up what two blocks of rows have at a point."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


# What features are made of.
_data_of = operator.attrgetter("data")


class _Counts(NamedTuple):
    """Which pairs of some rows count.

    Attributes
    ----------
    overflow, weigh, exist : bool
        Whether a weight of a pair overflows, whether any is above 0, and whether there are pairs
        that should be.
    varying : ndarray of bool, (n_features,), or (0,) if it is not known
        The columns of X that differ in the rows of a pair. It is known of sparse rows, of which the
        Gram matrix does not show it, because they are not centred.
    """

    overflow: bool
    weigh: bool
    exist: bool
    varying: NDArray[np.bool_]

    def join(self, other: _Counts) -> _Counts:
        """Return what is known of the queries of both."""
        return _Counts(*map(operator.or_, self, other))

    def require(self, n_rows: int) -> None:
        """Raise a ValueError if no pair counts, or if weights overflow."""
        if self.overflow:
            raise ValueError("sample_weight or query_weight too large: a pair's weight overflows")
        if not self.weigh and self.exist:
            raise ValueError(
                "sample_weight or query_weight too small: the weights of all pairs, products "
                "of two, vanish"
            )
        if not self.weigh:
            raise no_preference_pairs(n_rows)


def _counted(settings: SolverSettings, reads_features: bool, data: RankingData) -> _Counts:
    """Find out whether pairs of some queries count, and which features differ if they are read."""
    weights = pair_operator(data, settings).pair_weights
    weigh, varying = bool(weights.any()), np.ones(0, dtype=bool)
    if data.feature_map is None and (reads_features or scipy.sparse.issparse(data.X)):
        varying = np.ones(data.X.shape[1], dtype=bool)
        varying[_constant_columns(data, weights > 0)] = False
    exist = weigh or bool(data.has_pairs(settings.pairs).any())
    return _Counts(not np.isfinite(weights).all(), weigh, exist, varying)


def _gram(settings: SolverSettings, features: Features) -> PairSums:
    """Return the Gram matrix of the pairs of some queries: it does not depend on what is fitted."""
    total = PairSums(settings.pairs).with_rows(replace(features.data, offset=None))
    return replace(total, feature_map=None)


def _diagonal(settings: SolverSettings, features: Features) -> Vector:
    """Return the diagonal of the Gram matrix, approximately, and the sums, (2, n_features)."""
    data, rows = features
    if data.preferences is not None:
        whole = rows.sum(np.ones(len(data.y)), thread_count())
        differences = data.preferences.compared(replace(data, offset=None), data.features())
        return np.stack([differences.diagonal(), whole])
    if data.feature_map is None and scipy.sparse.issparse(data.X):
        diagonal = np.maximum(SparseGram.of(data, settings.pairs).diagonal()[0], 0.0)
    else:
        weights = pair_operator(data, settings).pair_weights
        total = np.bincount(data.queries.index(), data.v, minlength=len(weights))
        factor = np.divide(2 * weights, total, out=np.zeros_like(weights), where=total > 0)
        diagonal = scatter_diagonal(data, factor)
    # The diagonal is summed only over the queries with pairs.
    return np.stack([diagonal, rows.sum(np.ones(len(data.y)), thread_count())])


def _nothing(first: None, second: None) -> None:
    """Join checks of rows, which have no results."""


# It raises a ValueError that names a feature that is not finite.
_REQUIRE_FINITE = Task(RankingData.require_finite_features, _nothing)


def _constant_columns(data: RankingData, counted: NDArray[np.bool_]) -> Rows:
    """Return the columns of X that are the same in all rows of each of the queries that count."""
    if scipy.sparse.issparse(data.X):
        varying = np.zeros(data.X.shape[1] + 1, dtype=np.int64)
        count_varying(data, False, counted, varying)
        return np.flatnonzero(varying[:-1] == 0)
    columns, first = np.arange(data.X.shape[1]), data.queries.first_rows()
    rows = np.flatnonzero(counted[data.queries.index()])
    for part in blocks(len(rows), ROWS_COMPARED):
        own = rows[part]  # most columns vary in the first of them
        values, others = (data.X[np.ix_(some, columns)] for some in (own, first[own]))
        columns = columns[(values == others).all(axis=0)]
    return columns


def pair_operator(data: RankingData, settings: SolverSettings) -> _core.ScoreLoss:
    """Return the loss of the preference pairs, or of comparisons."""
    if data.preferences is not None:
        found: _core.ScoreLoss = data.preferences.loss(len(data.y), settings.loss)
        return found
    problem = data.problem(settings.pairs)
    return _core.PairOperator(problem, loss=settings.loss)


def fit_attributes(history: _core.Convergence, is_read: bool) -> dict[str, Any]:
    """Return the attributes that describe how the solver found the model.

    How often the rows were read is told of those that `is_read` says do not stay in memory.
    """
    names = ["objective", "relative_gradient", "n_hessian_products", "step"]
    names += ["n_passes"] * is_read
    return {
        "history_": {name: getattr(history, name) for name in names},
        "n_iter_": len(history.step),
        "n_hessian_products_": int(history.n_hessian_products.sum()),
    }


def warn_if_not_converged(histories: list[_core.Convergence], settings: SolverSettings) -> None:
    """Warn if a minimum was not reached."""
    failed = [history for history in histories if not history.converged]
    if failed:
        worst = max(history.relative_gradient[-1] for history in failed)
        warn_caller(
            f"{len(failed)} of {len(histories)} solutions did not reach tol={settings.tol:g} in "
            f"{limits.now.newton_steps} Newton steps: the relative gradient is {worst:.1e}",
            ConvergenceWarning,
        )
