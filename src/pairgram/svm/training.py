"""`Training`: a data set that is prepared for solutions of RankSVM, and the solver's settings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import pairgram._core as _core
from pairgram._support.checks import check_positive, check_size, check_text
from pairgram._support.memory import available_memory
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram._support.types import Rows, Vector
from pairgram._support.words import Loss, Weighting
from pairgram.feature_maps.input_map import parts_of
from pairgram.least_squares.accumulate import SMALLEST_SQUARES
from pairgram.least_squares.gram import Pairgram
from pairgram.least_squares.sparse_gram import count_varying
from pairgram.least_squares.statistics import ColumnSums
from pairgram.problem.data import RankingData
from pairgram.queries_and_pairs.pair_weights import PairSettings
from pairgram.svm.feature_rows import (
    FeatureRows,
    in_single,
    make_rows,
    scatter_diagonal,
    with_stored_features,
    without_whitening,
)
from pairgram.svm.newton import (
    Convergence,
    PairSolver,
    Preconditioner,
    cholesky_preconditioner,
    diagonal_preconditioner,
)
from pairgram.svm.query_sample import sample_queries

__all__ = [
    "SolverSettings",
    "Training",
    "fit_attributes",
    "pair_operator",
    "warn_if_not_converged",
]

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
        check_text("loss", self.loss, ("squared_hinge", "squared"))
        check_positive("tol", self.tol)
        check_size("max_iter", self.max_iter)
        limit = self.memory_limit
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, Real) or not float(limit) >= 0
        ):
            raise ValueError(f"memory_limit must be None or bytes >= 0, got {limit!r}")

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
        fits = GRAM_COPIES * 8 * data.n_features**2 <= available_memory()
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
