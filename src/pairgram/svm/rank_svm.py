"""RankSVM minimises the squared hinge loss on preference pairs by a truncated Newton method."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from pairgram import _core
from pairgram._support.checks import check_flag, check_positive, check_size, check_text
from pairgram._support.memory import available_memory
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram._support.types import Vector
from pairgram._support.words import InputsName, Loss, Weighting
from pairgram.feature_maps.input_map import after_inputs, parts_of, whole_map
from pairgram.feature_maps.known import same_map
from pairgram.least_squares.accumulate import SMALLEST_SQUARES
from pairgram.least_squares.gram import Pairgram
from pairgram.problem.data import RankingData, RowInfo
from pairgram.queries_and_pairs.pair_weights import PairSettings
from pairgram.rankers.base import LinearRanker
from pairgram.rankers.column_weights import ColumnSums
from pairgram.svm.feature_rows import (
    FeatureRows,
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
    "RankSVM",
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
    """

    data: RankingData
    rows: FeatureRows
    curvature: Vector
    settings: SolverSettings
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
                training = cls._from_sample(data, settings, sample, single)
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
        return cls(data, rows, curvature, settings, pair_weight)

    @classmethod
    def _from_sample(
        cls, data: RankingData, settings: SolverSettings, sample: RankingData, single: bool
    ) -> Training | None:
        """Do the work of `make` with the Gram matrix of a sample; None if features overflow."""
        limit, n_threads = settings.memory_limit, resolve_n_threads(settings.n_threads)
        stored = with_stored_features(replace(sample, offset=None), np.float32, limit)
        curvature = Pairgram.from_data(stored, settings.pair_settings, n_threads).G
        del stored
        data, whitening = without_whitening(data)
        narrow = single or (data.X.dtype == np.float32 and whitening is None)
        data = with_stored_features(data, np.float32 if narrow else np.float64, limit)
        rows = make_rows(data, n_threads, whitening)
        with single_threaded_blas(), np.errstate(invalid="ignore"):
            finite = np.isfinite(rows.sum(np.ones(len(data.y)))).all()
        return cls(data, rows, curvature, settings) if finite else None

    def solver(self, start: Vector | None = None, counts: Vector | None = None) -> PairSolver:
        """Return a solver that starts at `start`. `counts` multiply the row weights."""
        begin = np.zeros(len(self.curvature)) if start is None else start
        pairs, offset = pair_operator(self.data, self.settings, counts), self.data.offset
        fixed = np.zeros(pairs.n_rows) if offset is None else self.data.queries.grouped(offset)
        threads = resolve_n_threads(self.settings.n_threads)
        return PairSolver(self.rows, pairs, begin, fixed, threads)

    def preconditioner(self, C: float) -> Preconditioner:
        """Return the inverse of the Hessian with all pairs active, or of its diagonal."""
        if self.curvature.ndim == 2:
            return cholesky_preconditioner(self.curvature, C)
        return diagonal_preconditioner(self.curvature, C)


def pair_operator(
    data: RankingData, settings: SolverSettings, counts: Vector | None = None
) -> _core.PairOperator:
    """Return the loss of the preference pairs. `counts` multiply the row weights."""
    if counts is not None:
        data = replace(data, row_weights=data.v * counts)
    problem = data.problem(PairSettings("dropped", weighting=settings.weighting))
    return _core.PairOperator(problem, loss=settings.loss)


class RankSVM(LinearRanker):
    """Rank by the squared hinge loss on preference pairs (RankSVM).

    The model is linear in the inputs or in a feature map.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the loss relative to ``½ ‖w‖²``. The loss is a sum over pairs, not a mean, so the
        same C has a larger effect for more data.
    feature_map : transformer or None, default=None
        `RandomNodes`, or any other transformer of arrays. A clone of it is fitted to X and y,
        without the weights, and the model is linear in its features. With approximate features of a
        kernel, such as those of `Nystroem`, this is a kernel RankSVM. A RandomState or Generator in
        the map is cloned too, so every fit draws the same features.
    loss : {"squared_hinge", "squared"}, default="squared_hinge"
        "squared" takes ``(1 − (f_i − f_j))²`` for all preference pairs, including those that are
        already far apart in the right order.
    weighting : {"pairs", "documents", "queries"}, default="pairs"
        What has weight 1 in the objective:

        - "pairs": every pair;
        - "documents": every row (the pairs of a query are multiplied by ``1 / Σ v``);
        - "queries": every query (its pairs are multiplied by ``1 / Σ v_i v_j`` over its pairs).
    tol : float > 0, default=1e-3
        The solver stops when the norm of the gradient is this share of its norm at w = 0, or at
        the prior.
    max_iter : int ≥ 1, default=100
        Largest number of Newton steps.
    warm_start : bool, default=False
        If True, start from the `coef_` of the last fit, provided that its features are the same.
    memory_limit : float or None, default=None
        Bytes that the features of `feature_map`, or the kernel values, may take. If they need more,
        they are computed again, block by block, whenever they are used. This changes the result by
        rounding errors. None stands for half of the free memory.
    prior : array-like of shape (n_features,), FrozenEstimator or None, default=None
        What the fit starts from, in place of the model 0: the ridge is on the difference from it.
        Weights of the inputs, or of the features that `feature_map` makes; or
        ``sklearn.frozen.FrozenEstimator(model)`` of a fitted model with `predict`. See the notes.
    inputs : str or None, default=None
        As in `RankRLS`; they act before the feature map.
    n_threads : int or None, default=None
        Number of threads. None takes the CPUs that the process may use, but at most
        ``OMP_NUM_THREADS``. The result has the same bits for any number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Weights of the inputs, or of the features that `feature_map_` makes.
    inputs_ : object or None
        As in `RankRLS`.
    feature_map_ : fitted transformer or None
    history_ : dict of str to ndarray
        ``objective`` and ``relative_gradient`` hold a value before the first Newton step and after
        every step. ``n_hessian_products`` and ``step`` (its length) hold a value for every step.
        The objective is exact to about 1e-16 ``C Σ W_ij (1 + f_i² + f_j²)``. If mapped features are
        stored in single precision (see the notes), it is the objective of the rounded features,
        with a relative error of about 1e-9. Model files do not hold `history_`, `n_iter_` and
        `n_hessian_products_`.
    n_iter_ : int
        Number of Newton steps.
    n_hessian_products_ : int
        Number of steps of conjugate gradients in all Newton steps together.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only present if X had column names.
    uses_qid_ : bool
        Whether the model was fitted with query ids or sizes.
    prior_ : fitted model or None
        The model of `prior` if `predict` adds its scores. Weights of the same features are part of
        `coef_` instead.
    uses_offset_ : bool
        Whether the model was fitted with offsets, so that `predict` and `score` need them.

    See Also
    --------
    RankSVMCV : Chooses C, and a feature map on request, by held-out rows.
    RankRLS : Least squares on pairs, in closed form.

    Notes
    -----
    Minimises ``½ ‖w‖² + C Σ W_ij max(0, 1 − (f_i − f_j))²`` with ``f = Xw``. The sum is over the
    preference pairs, that is, the pairs with ``y_i > y_j`` within a query. ``W_ij = c v_i v_j``,
    where v are the sample weights, and c is the query's weight times the factor of `weighting`.
    There is a ``ConvergenceWarning`` if `max_iter` steps do not reach `tol`, or if numbers
    overflow. The solver stops without a warning if the next step promises to lower the objective by
    less than a share of 1e-15, which is rounding error.

    With the scores p of a `prior` and the offsets o of `fit`, ``f = Xw + p + o``, so that w is the
    difference from the prior. For weights w₀ of the same features, the ridge is ``½ ‖w − w₀‖²`` and
    `coef_` is w. See `RankRLS` for how `predict` and files treat other models.

    The solver is a truncated Newton method. Loss, gradient and products with the Hessian take
    O(n log n) time, and pairs are never listed. Each step of conjugate gradients reads the features
    once. The preconditioner is a Cholesky factor of ``I + 2C G``, the Hessian if all pairs are
    active, where G is the statistic of `RankRLS` for ``pairs="dropped"``. It takes
    n · n_features² + n_features³ / 3 flops before the first step, and then few steps are needed.
    With more than 4,096 features, or if memory is short, the preconditioner is only the diagonal.

    From 1,024 features on, G is estimated from a sample of queries with about 3 n_features rows,
    and at least 4,096. This takes 3 n_features³ flops, and a few more steps are needed. Queries are
    taken with a probability proportional to their share of the pairs, and weighted by its inverse.
    The minimum does not change. No sample is taken if it would be more than half of all rows, or if
    a query is longer than an eighth of the sample.

    Features of a map are stored in single precision and summed in double precision. For float64 X,
    they are stored in double precision if they take up to 1 MiB or if ``tol`` < 1e-5. CSR rows stay
    sparse. BLAS uses one thread. If G is estimated from a sample, the kernel values between rows
    and landmarks are stored in place of Nyström features. Their means over the landmarks are
    subtracted, which changes no difference of scores and keeps rounding errors small. The whitening
    is then applied to vectors, in n_landmarks² flops twice a step, instead of to n rows.

    References
    ----------
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. Eq. 22-25 and Algorithm 3; their program's C
    is twice that of eq. 22 and of this class. Lee, Lin. Large-scale linear RankSVM. Neural
    Computation, 2014.

    Examples
    --------
    >>> from pairgram import RankSVM, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankSVM(C=0.1).fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    _file_kind = "RankSVM"

    def __init__(
        self,
        C: float = 1.0,
        *,
        feature_map: Any = None,
        loss: Loss = "squared_hinge",
        weighting: Weighting = "pairs",
        tol: float = 1e-3,
        max_iter: int = 100,
        warm_start: bool = False,
        memory_limit: float | None = None,
        prior: Any = None,
        inputs: InputsName | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.feature_map = feature_map
        self.loss = loss
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.prior = prior
        self.inputs = inputs
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
            C-contiguous arrays of either type are not copied.
        y : array-like of shape (n_rows,)
            Relevance labels, any numbers that are finite as float64. Only their order within a
            query counts.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids; the rows may come in any order. With neither `qid` nor `group`, all rows are
            one query. A `MissingQueryWarning` warns of this if there are more than 1,000 rows.
        group : array-like of shape (n_queries,) of int, or None
            Sizes of the queries, in place of `qid`, if the rows of each query stand together.
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
            A weight of 2 is the same as having the row twice, except for a feature map that is
            fitted to the rows: the map does not see the weights.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Weights of queries, given for every row and constant within a query.
        offset : array-like of shape (n_rows,), finite, or None
            Scores of the rows by something else, which are added to those of the model. `predict`
            and `score` then need the offsets of their rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described; the message names it.
        """
        check_positive("C", self.C)
        check_flag("warm_start", self.warm_start)
        settings = SolverSettings(
            self.loss, self.weighting, self.tol, self.max_iter, self.memory_limit, self.n_threads
        )
        info = RowInfo(qid, group, sample_weight, query_weight, offset)
        data = self._check(X, y, info)
        self._warn_of_missing_queries(data, info)
        training = Training.make(data, settings, exact=False)
        start, prior = None, self._prior_of(whole_map(data))
        origin = 0.0 if prior is None or prior.coef is None else prior.coef
        if self.warm_start and len(getattr(self, "coef_", ())) == len(training.curvature):
            last = after_inputs(self.inputs_, self.feature_map_)
            start = self.coef_ - origin if same_map(last, whole_map(data)) else None
        precondition = training.preconditioner(float(self.C))
        with single_threaded_blas():
            solver = training.solver(start)
            history = solver.solve(float(self.C), precondition, self.tol, self.max_iter)
        # The attributes are set last, so that a fit that fails leaves the last solution in place.
        self.coef_ = origin + solver.w
        self.inputs_, self.feature_map_ = parts_of(whole_map(data))
        self.uses_qid_ = info.has_queries
        self._column_sums = training.column_sums(self.coef_)
        self.__dict__.update(fit_attributes(history))
        warn_if_not_converged([history], settings)
        return self


def fit_attributes(history: Convergence) -> dict[str, Any]:
    """Return the attributes that describe how the solver found the model."""
    return {
        "history_": {
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
