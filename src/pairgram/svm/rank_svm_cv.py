"""RankSVMCV: a RankSVM that chooses C and a feature map on held-out rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.progress import Progress

from pairgram._support.checks import check_alphas, check_flag
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Rows, Vector
from pairgram.feature_maps.known import is_known
from pairgram.least_squares.held_out.leave_out import predict_rows
from pairgram.metrics import Metric
from pairgram.model_selection.judge import HeldOutScoring, Splits, choose, is_validation_set
from pairgram.preferences.pairs import Weighting
from pairgram.problem.data import RankingData
from pairgram.rankers.base import LinearRanker
from pairgram.svm.newton import Convergence, PairSolver
from pairgram.svm.rank_svm import (
    Loss,
    SolverSettings,
    Training,
    fit_attributes,
    pair_operator,
    warn_if_not_converged,
)

__all__ = ["RankSVMCV"]

LARGEST_TRACE = 1e290  # whose inverse is far from 0
DEFAULT_CS = 2.0 ** np.arange(0, 21, 2)  # over twice the trace


class RankSVMCV(LinearRanker):
    """RankSVM that chooses C, and a feature map on request, on held-out rows.

    Its own `score` is NDCG@10 whatever `scoring` is, as that of every ranker here.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,), each > 0, or None, default=None
        None: ``2^k / (2 tr G)`` for k = 0, 2, …, 20, for each feature map; G is the Gram matrix of
        the preference pairs, so that the grid moves with the size of the data.
    feature_map : as in `RankSVM`, or a list of such to choose from
        None may be in the list.
    cv : int, splitter, iterable of splits, (X, y) or (X, y, qid), default=5
        How rows are held out:

        - an int k for ``QueryKFold(k)``, with a single query for
          ``KFold(k, shuffle=True, random_state=0)`` over its rows; a
          splitter, or (training rows, test rows) pairs;
        - a validation set, as a tuple or the `LetorData` of `load_letor_folds`.
    scoring : str, Metric, scorer or None, default=None
        As in `RankRLSCV`.
    loss, weighting, tol, max_iter, memory_limit, n_threads : as in `RankSVM`
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Of the model with the chosen settings, fitted to all rows.
    C_ : float
        The chosen one.
    feature_map_ : fitted transformer or None
        The chosen one.
    best_score_ : float
        Mean held-out score of the chosen settings.
    Cs_ : ndarray of shape (n_Cs,), ascending
        The grid of the chosen feature map.
    scores_ : ndarray of shape (n_Cs,)
        Mean held-out scores along `Cs_`.
    cv_results_ : dict of str to ndarray
        A row for every feature map and C: ``params`` (dicts), ``param_C``, ``param_feature_map``,
        ``mean_test_score``, ``rank_test_score``, the mean over each split's test queries
        ``split0_test_score``, … (of a validation set the first alone), and ``std_test_score``, the
        standard deviation of these.
    scoring_ : Metric
    history_, n_iter_, n_hessian_products_, n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankSVM`, of the final fit.

    Notes
    -----
    The mean is over all held-out queries of all splits, as in `RankRLSCV`. A feature map of this
    package, which does not see labels, is fitted to all rows, and its features and their Gram
    matrix, of all rows, are made once; any other transformer is fitted to each split's training
    rows again. Each split goes along C from one solution to the next. Ties go to the first feature
    map and the smallest C.

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

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        feature_map: Any | Sequence[Any] = None,
        cv: Any = 5,
        scoring: str | Metric | None = None,
        loss: Loss = "squared_hinge",
        weighting: Weighting = "pairs",
        tol: float = 1e-3,
        max_iter: int = 100,
        memory_limit: float | None = None,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.Cs = Cs
        self.feature_map = feature_map
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Score every feature map and C on held-out rows, and fit the best to all.

        Parameters and errors are those of `RankSVM.fit`. Besides, a ValueError where `scoring`
        cannot take the labels, `cv` makes no splits, or no pair is left to fit to.
        """
        settings = SolverSettings(
            self.loss, self.weighting, self.tol, self.max_iter, self.memory_limit, self.n_threads
        )
        check_flag("verbose", self.verbose)
        given = None if self.Cs is None else check_alphas(self.Cs, "Cs")[::-1].copy()
        data = self._check_rows(X, y, qid, group, sample_weight, query_weight)
        self._warn_of_missing_queries(data, qid, group)
        if len(data.y) < 2:
            raise ValueError("RankSVMCV holds rows out, so X must have two or more, got 1 sample")
        uses_qid = qid is not None or group is not None
        judge = self._judge(data, uses_qid)
        maps = _as_list(self.feature_map)
        candidates: list[_Candidate] = []
        training = None
        with Progress(disable=not self.verbose) as progress:
            n_splits = 1 if judge.splits is None else len(judge.splits)
            n_Cs = len(DEFAULT_CS) if given is None else len(given)
            bar = progress.add_task("RankSVM", total=len(maps) * n_splits * n_Cs)
            for feature_map in maps:
                text = "X" if feature_map is None else " ".join(repr(feature_map).split())
                progress.update(bar, description=f"RankSVM on {text}")
                mapped = self._with_map(data, feature_map)
                training = None  # makes room for the next one's features
                training = Training.make(mapped, settings, exact=True)
                search = _Search(
                    mapped,
                    training,
                    judge,
                    partial(self._mapped_part, data, feature_map),
                    partial(progress.advance, bar),
                )
                candidates.append(search.along(given))
        means = np.concatenate([c.means for c in candidates])
        best, ranks = choose(means, judge.metric)
        Cs = np.concatenate([c.Cs for c in candidates])
        of_row = np.repeat(np.arange(len(candidates)), [len(c.Cs) for c in candidates])
        chosen = candidates[int(of_row[best])]
        if training is None or chosen is not candidates[-1]:
            training = Training.make(chosen.data, settings, exact=True)
        solver, C = training.solver(), float(Cs[best])
        precondition = training.preconditioner(C)
        with single_threaded_blas():
            history = solver.solve(C, precondition, settings.tol, settings.max_iter)
        param_map = _object_array([c.data.feature_map for c in candidates])[of_row]
        results = {
            "params": _object_array(
                [{"C": C, "feature_map": m} for C, m in zip(Cs.tolist(), param_map, strict=True)]
            ),
            "param_C": Cs,
            "param_feature_map": param_map,
            "mean_test_score": means,
            "rank_test_score": ranks,
        }
        parts = np.hstack([c.parts for c in candidates])
        results |= {f"split{number}_test_score": part for number, part in enumerate(parts)}
        results["std_test_score"] = parts.std(axis=0)
        self.coef_, self.C_, self.best_score_ = solver.w, C, float(means[best])
        self.feature_map_, self.uses_qid_ = chosen.data.feature_map, uses_qid
        self.Cs_, self.scores_, self.scoring_ = chosen.Cs, chosen.means, judge.metric
        self.cv_results_ = results
        self.__dict__.update(fit_attributes(history))
        warn_if_not_converged(
            [*itertools.chain(*(c.histories for c in candidates)), history], settings
        )
        return self

    def _mapped_part(self, data: RankingData, feature_map: Any, rows: Rows) -> RankingData:
        """Return some rows with a clone of the feature map, fitted to them."""
        return self._with_map(data.take(rows), feature_map)

    def _judge(self, data: RankingData, uses_qid: bool) -> HeldOutScoring:
        """Return how rows are held out and judged; validation rows are without the feature map."""
        if self.cv is None:
            raise ValueError("cv must be an int, a splitter, splits or a validation set, got None")
        validation = None
        if is_validation_set(self.cv):
            validation = self._validation(None, uses_qid, *self.cv)
        return HeldOutScoring.make(data, self.cv, validation, self.scoring, self.n_threads)

    def _parameters_to_save(self) -> dict[str, Any]:
        """A model file holds the chosen RankSVM."""
        parameters = super()._parameters_to_save()
        for name in ("Cs", "cv", "scoring", "verbose"):
            del parameters[name]
        return parameters | {"C": self.C_}


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A feature map, with its mean held-out scores along C, and those of every split."""

    data: RankingData
    Cs: Vector
    means: Vector
    parts: Vector
    histories: list[Convergence]


@dataclass(frozen=True, eq=False)
class _Search:
    """The solutions of every split and C on one feature map.

    Attributes
    ----------
    data : RankingData
        With the map, fitted to all rows.
    training : Training
        The same, ready for solutions.
    judge : HeldOutScoring
    mapped_part : callable
        Takes row numbers to these rows with a map that is fitted to them.
    advance : callable
        Is told of every solution.
    """

    data: RankingData
    training: Training
    judge: HeldOutScoring
    mapped_part: Callable[[Rows], RankingData]
    advance: Callable[[], object]

    def along(self, Cs: Vector | None) -> _Candidate:
        """Solve for every split and C, and judge the held-out scores."""
        Cs = _default_Cs(self.training) if Cs is None else Cs
        with single_threaded_blas():
            scores, histories = self._held_out(Cs)
        means = self.judge.mean(np.hstack(scores))
        parts = [means]
        if self.judge.splits is not None:
            parts = self.judge.means_of_splits(scores)
        return _Candidate(self.data, Cs, means, np.array(parts), histories)

    def _held_out(self, Cs: Vector) -> tuple[list[Vector], list[Convergence]]:
        """Return the scores of every split's test rows, (n_Cs, n_rows), and how they were found."""
        data, training, judge = self.data, self.training, self.judge
        threads = training.settings.n_threads
        if judge.splits is None:
            assert judge.validation is not None
            coefs, histories = self._paths(training, [training.solver()], Cs)
            validation = replace(judge.validation, feature_map=data.feature_map)
            return [predict_rows(validation, slice(None), coefs[0], threads)], histories
        counts = [
            _counts(data, training.settings, judge.splits, k) for k in range(len(judge.splits))
        ]
        if data.feature_map is None or is_known(data.feature_map):
            solvers = [training.solver(counts=count) for count in counts]
            coefs, histories = self._paths(training, solvers, Cs)
            scores = [
                predict_rows(training.data, test, coef, threads)
                for (_, test), coef in zip(judge.splits, coefs, strict=True)
            ]
            return scores, histories
        scores, histories = [], []
        for train, test in judge.splits:  # whose maps may see labels
            part = self.mapped_part(train)
            own = Training.make(part, training.settings, exact=True)
            coefs, more = self._paths(own, [own.solver()], Cs)
            held = replace(data, feature_map=part.feature_map)
            scores.append(predict_rows(held, test, coefs[0], threads))
            histories += more
        return scores, histories

    def _paths(
        self, training: Training, solvers: list[PairSolver], Cs: Vector
    ) -> tuple[Vector, list[Convergence]]:
        """Return the solutions, (n_solvers, n_Cs, n_features), from one C to the next."""
        settings = training.settings
        histories: list[Convergence] = []
        coefs = np.empty((len(solvers), len(Cs), len(training.curvature)))
        for i, C in enumerate(Cs.tolist()):
            precondition = training.preconditioner(C)
            for solver, coef in zip(solvers, coefs, strict=True):
                histories.append(solver.solve(C, precondition, settings.tol, settings.max_iter))
                coef[i] = solver.w
                self.advance()
        return coefs, histories


def _counts(data: RankingData, settings: SolverSettings, splits: Splits, number: int) -> Vector:
    """Return how often a split trains on each row; a ValueError if no pair of them counts."""
    counts = np.bincount(splits[number][0], minlength=len(data.y)).astype(np.float64)
    if not pair_operator(data, settings, counts).pair_weights.any():
        raise ValueError(f"cv: the training rows of split {number} have no pairs that count")
    return counts


def _default_Cs(training: Training) -> Vector:
    curvature = training.curvature
    trace = float(np.trace(curvature) if curvature.ndim == 2 else curvature.sum())
    if not trace <= LARGEST_TRACE:
        raise ValueError(
            f"X or the weights too large: weighted squared differences add up to {trace:.1g}, want "
            f"at most {LARGEST_TRACE:g} for a grid of C"
        )
    return np.asarray(DEFAULT_CS / (2 * trace if trace > 0 else 1.0))


def _object_array(values: list[Any]) -> NDArray[np.object_]:
    array: NDArray[np.object_] = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError("feature_map: a list of maps to choose from must not be empty")
        return list(value)
    return [value]
