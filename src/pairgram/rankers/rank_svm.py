"""RankSVM and RankSVMCV: the squared hinge loss on preference pairs, by a Newton method."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

import pairgram._core as _core
from pairgram._support import limits
from pairgram._support.arrays import check_alphas
from pairgram._support.checks import ArgumentError, Vector
from pairgram._support.parameters import Loss, check_parameters
from pairgram._support.row_warnings import warn_of_narrow_columns
from pairgram.data.blocks import Dataset
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs, PairsLike
from pairgram.features.kernel_map import refuse_kernel
from pairgram.features.row_values import Chain, chain_of
from pairgram.model_selection.judge import (
    Judge,
    Judged,
    ModelJudge,
    Tried,
    as_list,
    choose_among,
    in_order_of,
)
from pairgram.rankers.linear_ranker import LinearRanker, LinearSearch
from pairgram.rankers.preparation import (
    GivenRows,
    Preparation,
    Search,
    Spec,
)
from pairgram.rankers.set_search import choose_for_sets, with_units
from pairgram.solvers.group_fits import SOLVED, RowSets
from pairgram.solvers.svm_training import (
    DEFAULT_CS,
    SolverSettings,
    Training,
    default_grid,
    fit_attributes,
    no_preference_pairs,
    search_svm_sets,
    solve_svm_sets,
    warn_if_not_converged,
)

if TYPE_CHECKING:
    from pairgram._support.types import CV, Estimator, Transformer
    from pairgram.metrics.evaluation import Scoring
    from pairgram.rankers.validation import Validation

# A larger trace counts as this one, whose inverse is still far from 0.
LARGEST_TRACE = 1e290


def _pairs_of(value: PairsLike) -> Pairs:
    """Return the pairs of rows with different labels, whatever their weighting is."""
    pairs = Pairs.of(value)
    if (pairs.kind, pairs.scope, pairs.target) != ("without_ties", "query", "label"):
        raise ArgumentError(
            "pairs",
            "must be 'without_ties' or Pairs('without_ties', weighting=...): the loss is that of "
            f"rows of one query in the wrong order, got {value!r}",
        )
    return pairs


@dataclass(frozen=True, eq=False)
class SvmSpec(Spec):
    """What RankSVM and its search fit.

    Attributes
    ----------
    rows : Preparation
        What a row is, or the ways to choose from, and the prior.
    settings : SolverSettings
    Cs : ndarray of shape (n_Cs,), or None
        What to choose from, in the caller's order. None stands for a grid that depends on the data.
    search : Search or None
        How to choose. None fits one of each.
    """

    settings: SolverSettings
    Cs: Vector | None
    search: Search | None = None

    def of_preferences(self, preferences: Any) -> Self:
        """Return the same: comparisons take the place of the pairs of labels."""
        if self.settings.pairs.weighting != "pairs":
            raise ArgumentError(
                "pairs",
                "must have weighting='pairs' beside y=Preferences(...), which have weights "
                f"themselves, got {self.settings.pairs!r}",
            )
        return self

    def of_clicks(self) -> Self:
        """Return what the ranker fits to clicks."""
        if self.settings.loss == "logistic":
            raise ArgumentError("loss", "must not be 'logistic' for clicks: take 'squared_hinge'")
        search = None if self.search is None else self.search.of_clicks()
        settings = replace(self.settings, pairs=replace(self.settings.pairs, kind="clicks"))
        return replace(self, settings=settings, search=search)

    def fit_arrays(self, rows: GivenRows, validation: Validation) -> dict[str, Any]:
        """Return the attributes of the model that is fitted to arrays, or to a table alike."""
        if self.search is None:
            fitted, histories = self._solved(rows)
        else:
            fitted, histories = self._searched(rows, self.search, validation)
        warn_if_not_converged(histories, self.settings)
        return fitted | {"_loss": self.settings.loss}

    def fit_stream(self, rows: GivenRows, validation: Validation) -> dict[str, Any]:
        """Return the attributes of the model that is fitted to a stream."""
        return self.fit_arrays(rows, validation)

    def _solved(self, rows: GivenRows) -> tuple[dict[str, Any], list[_core.Convergence]]:
        """Fit one feature map and one C."""
        assert self.Cs is not None
        data = rows.fitted(self.rows.ways[0])
        C, origin = float(self.Cs[0]), rows.prior and rows.prior.coef
        found = self._solved_as_set(data, C, origin)
        if found is None:
            found = _solution(Training.make(data, self.settings, exact=False), C, origin)
        fitted, history = found
        return fitted | {"feature_map_": chain_of(data.pattern).value}, [history]

    def _solved_as_set(
        self, rows: Dataset[RankingData], C: float, origin: Vector | None
    ) -> tuple[dict[str, Any], _core.Convergence] | None:
        """Return what `_solution` does, if compiled code solves small rows."""
        data = rows.pattern
        if rows.is_read or 8 * len(data.y) * data.n_features > limits.now.smallest_single:
            return None
        found = solve_svm_sets(RowSets.of(data), self.settings, np.array([C]), origin, tells=True)
        if found is None or found[0].states[0] != SOLVED:
            return None  # other code says what is wrong
        solved, (history,) = found
        mapped = chain_of(data).then is not None
        sums = None if mapped else solved.column_sums()
        fitted = {"coef_": solved.weights[0], "_column_sums": sums}
        return fitted | fit_attributes(history, False), history

    @property
    def takes_sets(self) -> bool:
        """Whether compiled code can solve sets of rows, of which the feature map reads none."""
        by_folds = self.search is None or not isinstance(self.search.cv, str)
        return by_folds and self.rows.takes_sets

    @property
    def n_searched(self) -> int:
        """How many values of C a search judges; 0 if there is none."""
        if self.search is None:
            return 0
        return len(DEFAULT_CS) if self.Cs is None else len(self.Cs)

    joins_all_rows: ClassVar[bool] = False
    shares_targets: ClassVar[bool] = False
    no_pairs = staticmethod(no_preference_pairs)

    def models_of_sets(self, sets: RowSets) -> dict[str, Any] | None:
        """Return attributes of the models of all sets, and their "state".

        None if compiled code cannot take the rows.
        """
        search, n_sets = self.search, len(sets.n_targets)
        Cs, found = np.full(n_sets, 1.0 if self.Cs is None else self.Cs[0]), {}
        known = np.full(n_sets, SOLVED)
        if search is not None:
            sets = with_units(sets, search.cv, exact=False)
            ascending = None if self.Cs is None else np.sort(self.Cs)
            searched = search_svm_sets(sets, self.settings, ascending)
            if searched is None:
                return None
            found = choose_for_sets(sets, searched, search.scoring, in_folds=True)
            known, found["C_"] = found["state"], found.pop("value")
            Cs = np.where(known == SOLVED, found["C_"], 1.0)
        final = solve_svm_sets(sets, self.settings, Cs, None)
        if final is None:
            return None
        solved, histories = final
        states = np.where(known == SOLVED, solved.states, known)
        solved.weights[states != SOLVED] = np.nan
        told = [fit_attributes(history, False) for history in histories]
        found |= {name: np.array([one[name] for one in told]) for name in told[0]}
        loss = np.full(n_sets, self.settings.loss)
        return found | {"coef_": solved.weights, "state": states, "_loss": loss}

    def _searched(
        self, rows: GivenRows, search: Search, validation: Validation
    ) -> tuple[dict[str, Any], list[_core.Convergence]]:
        """Judge every feature map and C on rows that are held out, and fit the best to all rows."""
        settings = self.settings
        whole = rows.fitted(Chain() if self.rows.no_columns else self.rows.ways[0])
        judge = rows.judge(whole, search, validation)
        candidates: list[_Candidate] = []
        training, fill = None, self.rows.filler
        for way in self.rows.ways:
            training = None  # frees the memory for the features of the next map
            candidate, training = self._candidate(rows.fitted(way), judge)
            candidates.append(candidate)
        order = in_order_of(self.Cs, len(candidates[0].Cs))
        tried = [
            Tried(c.judged, {"C": c.Cs}, {"feature_map": c.way._replace(fill=fill).short})
            for c in candidates
        ]
        number, at, told = choose_among(tried, order, judge.metric)
        chosen = candidates[number]
        C, origin = float(chosen.Cs[at]), rows.prior and rows.prior.coef
        final = self._solved_as_set(chosen.data, C, origin)
        if final is None:
            if training is None or chosen is not candidates[-1]:
                training = Training.make(chosen.data, settings, exact=True)
            final = _solution(training, C, origin)
        fitted, history = final
        if self.Cs is None and chosen.way.then is None:  # whose grid suits the widest column
            sums, pattern = fitted["_column_sums"], chosen.data.pattern
            known: Any = training if sums is None else sums
            names = pattern.names if pattern.feature_map is None else None
            warn_of_narrow_columns(known.squares, names)
        fitted |= told | {"C_": C, "Cs_": chosen.Cs[order], "feature_map_": chosen.way.value}
        return fitted, [*itertools.chain(*(c.histories for c in candidates)), history]

    def _candidate(
        self, data: Dataset[RankingData], judge: ModelJudge
    ) -> tuple[_Candidate, Training | None]:
        """Return the candidate of a map; and its rows, prepared for solutions, if they were."""
        as_set = self._searched_as_set(data, judge)
        if as_set is not None:
            return as_set, None
        training = Training.make(data, self.settings, exact=True)
        started = data.pattern.offset is not None
        Cs = _default_Cs(training, started) if self.Cs is None else np.sort(self.Cs)
        found, histories = _held_out(training, data, judge, Cs)
        return _Candidate(data, Cs, found, histories), training

    def _searched_as_set(self, rows: Dataset[RankingData], judge: ModelJudge) -> _Candidate | None:
        """Return the candidate of a map, if compiled code searches small rows in folds."""
        data = rows.pattern
        if rows.is_read or 8 * len(data.y) * data.n_features > limits.now.smallest_single:
            return None
        if not (isinstance(judge, Judge) and judge.splits) or (units := judge.units()) is None:
            return None
        Cs = None if self.Cs is None else np.sort(self.Cs)
        sets = RowSets.of(data)._replace(units=units)
        found = search_svm_sets(sets, self.settings, Cs)
        if found is None or found.states[0] != SOLVED:
            return None  # other code says what is wrong
        return _Candidate(rows, found.values[0], judge.judge_units(found.scores), [])


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A feature map, with its held-out scores along C."""

    data: Dataset[RankingData]
    Cs: Vector  # ascending
    judged: Judged
    histories: list[_core.Convergence]

    @property
    def way(self) -> Chain:
        """What a row is, fitted."""
        return chain_of(self.data.pattern)


def _held_out(
    training: Training,
    data: Dataset[RankingData],
    judge: ModelJudge,
    Cs: Vector,
) -> tuple[Judged, list[_core.Convergence]]:
    """Solve for every split and C, and judge the held-out scores.

    Parameters
    ----------
    training : Training
        The rows, prepared for solutions.
    data : Dataset of RankingData
        The rows, with the feature map fitted to all of them.
    judge : ModelJudge
    Cs : ndarray of shape (n_Cs,), ascending
    """
    of_splits = [training.split(*split) for split in enumerate(judge.counts())]
    found, histories = training.solve(of_splits or [training.whole()], Cs)
    return judge.judge_models(data, [training.data] * len(found), list(found)), histories


def _solution(
    training: Training, C: float, origin: Vector | None
) -> tuple[dict[str, Any], _core.Convergence]:
    """Return the attributes of the model for one C, and how it was found."""
    ((w,),), (history,) = training.solve([training.whole()], np.array([C]))
    coef = w if origin is None else origin + w
    attributes = fit_attributes(history, training.features.is_read)
    return {"coef_": coef, "_column_sums": training.column_sums(coef)} | attributes, history


def _default_Cs(training: Training, started: bool) -> Vector:
    curvature = training.curvature
    trace = float(np.trace(curvature) if curvature.ndim == 2 else curvature.sum())
    trace *= training.settings.steepness
    if not trace <= LARGEST_TRACE:
        raise ValueError(
            f"X or the weights too large: weighted squared differences add up to {trace:.1g}, want "
            f"at most {LARGEST_TRACE:g} for a grid of C"
        )
    return np.asarray(default_grid(started) / (2 * trace if trace > 0 else 1.0))


def _way_of(value: Any, model: str) -> Chain:
    """Return what a row is to one of these models, which take no kernel."""
    way = Chain.of(value)
    refuse_kernel(way.then, model)
    return way


@dataclass(eq=False, repr=False)
class RankSVM(LinearRanker):
    """Rank by the squared hinge loss on preference pairs (RankSVM).

    The model is linear in the columns or in a feature map.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the loss relative to ``½ ‖w‖²``. The loss is a sum over pairs, not a mean, so the
        same C has a larger effect for more data.
    pairs : Pairs or "without_ties", default="without_ties"
        ``Pairs("without_ties", weighting=...)`` says what has weight 1 in the objective: pairs,
        documents or queries.
    feature_map : str, transformer, Pipeline of these, or None, default=None
        As in `RankRLS`, but no `Kernel`. With approximate features of a kernel, such as those of
        `Nystroem`, this is a kernel RankSVM. A RandomState or Generator in the map is cloned too,
        so every fit draws the same features.
    loss : {"squared_hinge", "squared", "logistic"}, default="squared_hinge"
        "squared" takes ``(1 − (f_i − f_j))²`` for all preference pairs, including those that are
        already far apart in the right order. "logistic" takes ``log(1 + exp(−(f_i − f_j)))``, the
        likelihood of Bradley and Terry, so that differences of scores are log-odds: see
        `probability_preferred`. It goes through all pairs of a query, in time that grows with the
        square of its rows.
    tol : float > 0, default=1e-3
        The solver stops when the norm of the gradient is this share of its norm at w = 0, or at
        the prior.
    prior : array-like of shape (n_features,), fitted model or None, default=None
        A model to start from, in place of the model 0, and not a distribution: the ridge is on the
        difference from it. Weights of the columns, or of the features that `feature_map` makes; or
        a fitted model with `predict`, which stays fitted in clones. See the notes.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Weights of the columns, or of the features that `feature_map_` makes.
    feature_map_ : fitted transformer or None
    history_ : dict of str to ndarray
        ``objective`` and ``relative_gradient`` hold a value before the first Newton step and after
        every step. ``n_hessian_products`` and ``step`` (its length) hold a value for every step.
        For a table, so does ``n_passes``: how often the solver has read the rows up to that step.
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
        Whether the model was fitted with query ids.
    prior_ : fitted model or None
        The model of `prior` if `predict` adds its scores. Weights of the same features are part of
        `coef_` instead.

    See Also
    --------
    RankSVMCV : Chooses C, and a feature map on request, by held-out rows.
    RankRLS : Least squares on pairs, in closed form.

    Notes
    -----
    Minimises ``½ ‖w‖² + C Σ W_ij max(0, 1 − (f_i − f_j))²`` with ``f = Xw``. The sum is over the
    preference pairs, that is, the pairs with ``y_i > y_j`` within a query. ``W_ij = c v_i v_j``,
    where v are the sample weights, and c is the query's weight times the factor of the weighting
    of `pairs`. There is a ``ConvergenceWarning`` if 100 steps do not reach `tol`, or if
    numbers overflow. The solver stops without a warning if the next step promises to lower the
    objective by less than a share of 1e-15, which is rounding error.

    With the scores p of a `prior` and the offsets o of `fit`, ``f = Xw + p + o``, so that w is the
    difference from the prior. For weights w₀ of the same features, the ridge is ``½ ‖w − w₀‖²`` and
    `coef_` is w. See `RankRLS` for how `predict` and files treat other models.

    With comparisons, `Preferences`, as y, the sum is ``C Σ_p w_p max(0, m_p − (f_i − f_j))²`` over
    these, with their weights and margins m, and `pairs` must be the default. A tie, of margin 0, is
    half a win of each row. With "logistic", margins must be 1 or 0. On one-hot rows this is the
    model of Bradley and Terry with a Gaussian prior of the variance C, and its maximum likelihood
    as C grows.

    The solver is a truncated Newton method. Loss, gradient and products with the Hessian take
    O(n log n) time, and pairs are never listed. Each step of conjugate gradients reads the features
    once. The preconditioner is a Cholesky factor of ``I + 2C G``, the Hessian if all pairs are
    active, where G is the statistic of `RankRLS` for ``pairs="without_ties"``. It takes
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

    Labels are any numbers that are finite as float64, and only their order within a query counts. A
    `sample_weight` of 2 is the same as having the row twice, except for a feature map that is
    fitted to the rows: scales and fills alone see the weights. The features of a table are read
    once for the preconditioner and once for the first gradient. Every Newton step reads them once
    for every Hessian product, and once for every length of the step that is tried, mostly one or
    two. What is fitted to the rows takes passes as in `RankRLS.fit`.

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

    C: float = 1.0
    _: KW_ONLY
    pairs: PairsLike = "without_ties"
    feature_map: Transformer | None = None
    loss: Loss = "squared_hinge"
    tol: float = 1e-3
    prior: Estimator | ArrayLike | None = None

    def _spec(self) -> SvmSpec:
        check_parameters(self, "C")
        settings = SolverSettings(self.loss, _pairs_of(self.pairs), self.tol)
        rows = Preparation((_way_of(self.feature_map, "RankSVM"),), prior=self.prior)
        return SvmSpec(rows, settings, np.array([float(self.C)]))


@dataclass(eq=False, repr=False)
class RankSVMCV(LinearSearch):
    """RankSVM that chooses C, and a feature map on request, by scores of held-out rows.

    Its method `score` returns NDCG@10 whatever `scoring` is, as for every ranker of this package.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,), each > 0, or None, default=None
        The values of C to choose from. None stands for ``2^k / (2 tr G)`` with k = 0, 2, …, 20,
        computed for every feature map. G is the Gram matrix of the preference pairs, so the grid
        adapts to the size of the data. With the logistic loss, whose curvature is an eighth, the
        values are 8 times as large. With a `prior` or offsets there are also ``c / (2 tr G)``
        for c = 0.1, 0.01, 1e-3 and 1e-6, of which the last keeps the prior.
    feature_map : as in `RankSVM`, or a list of such to choose from
        The list may contain None.
    cv : None, int, splitter or iterable of splits, default=None
        How rows are held out if `fit` gets no validation set:

        - None: five folds of queries, or of the rows if there is a single query. There are
          fewer folds if there are fewer queries;
        - an int k: ``QueryKFold(k)``, or ``KFold(k, shuffle=True, random_state=0)`` over the rows
          of a single query;
        - a splitter such as ``QueryKFold(5)``, or an iterable of (training rows, test rows).

        If `fit` gets ``groups``, whole groups are held out, as in `RankRLSCV`. "forward" holds
        every group out by the model of those before it.

        Comparisons, `Preferences`, are split as in `RankRLSCV` with constrained weights: into five
        folds of their groups, of items or of comparisons. `cv_` names what was held out.

        A table of `scan` takes None, an int or a `QueryKFold`, and has the folds of the same rows
        in memory. It needs query ids, and feature maps of this package.
    scoring : str, Metric, scorer or None, default=None
        As in `RankRLSCV`. Comparisons take "log_loss" too with the logistic loss.
    pairs, loss, tol : as in `RankSVM`
    prior : array-like of shape (n_features,), fitted model or None, default=None
        As in `RankSVM`. Weights are those of the columns of X, as they are or scaled. Any other
        feature map, or a list, takes a frozen model only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Weights of the model with the chosen settings, fitted to all rows. They belong to the
        columns, as in `RankSVM`.
    C_ : float
        The chosen C.
    feature_map_ : fitted transformer or None
        The chosen feature map.
    best_score_ : float
        Mean held-out score of the chosen settings.
    best_index_ : int
        The row of `cv_results_` that was chosen.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C for the chosen feature map: `Cs` in the caller's order, or the default grid
        in ascending order.
    scores_ : ndarray of shape (n_Cs,)
        Mean held-out scores along `Cs_`.
    cv_results_ : dict
        A row for every feature map and C, in the columns that `RankRLSCV` names, with ``param_C``,
        and ``param_feature_map``.
    scoring_ : Metric
        The metric that judged the held-out scores.
    held_out_, per_query_ :
        As in `RankRLSCV`.
    history_, n_iter_, n_hessian_products_, n_features_in_, feature_names_in_, \
uses_qid_, prior_ :
        As in `RankSVM`, for the final fit.

    Notes
    -----
    The mean is over all held-out queries of all splits, as in `RankRLSCV`. Feature maps get no
    labels. They are fitted once to all rows, and their features and Gram matrix are computed once.
    Within a split, the solver starts for each C from the solution for the last C. If several
    settings are equally good, the first feature map and the smallest C win. A prior that has seen
    the labels of held-out rows makes their scores too good: fit it to other queries. Every map, C
    and fold reads the rows of a table anew; a validation table spares the folds.

    Examples
    --------
    >>> from pairgram import RandomNodes, RankSVMCV, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> maps = [None, RandomNodes(30, random_state=0)]
    >>> model = RankSVMCV([0.01, 1.0], feature_map=maps, cv=3).fit(X, y, qid=qid)
    >>> model.cv_results_["mean_test_score"].shape
    (4,)
    """

    _file_kind = "RankSVM"

    Cs: ArrayLike | None = None
    _: KW_ONLY
    pairs: PairsLike = "without_ties"
    feature_map: Any | Sequence[Any] = None
    cv: CV = None
    scoring: Scoring = None
    loss: Loss = "squared_hinge"
    tol: float = 1e-3
    prior: Estimator | ArrayLike | None = None

    def _spec(self) -> SvmSpec:
        settings = SolverSettings(self.loss, _pairs_of(self.pairs), self.tol)
        Cs = None if self.Cs is None else check_alphas(self.Cs, "Cs")
        ways = [_way_of(one, "RankSVMCV") for one in as_list(self.feature_map, "feature_map")]
        rows = Preparation(tuple(ways), prior=self.prior, maps_change=True)
        log_odds = self.loss == "logistic"
        search = Search(self.cv, self.scoring, has_probabilities=log_odds)
        return SvmSpec(rows, settings, Cs, search)
