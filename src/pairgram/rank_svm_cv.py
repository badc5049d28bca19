"""RankSVMCV: a RankSVM that chooses C and a feature map on held-out rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.progress import Progress

from pairgram._checks import check_flag
from pairgram._map_base import BLOCK_ROWS
from pairgram._threads import single_threaded_blas
from pairgram.cross_validation import HeldOutScoring, choose, is_validation_set
from pairgram.data import RankingData
from pairgram.held_out import predict_path, predict_rows
from pairgram.linear import LinearRanker
from pairgram.metrics import Metric
from pairgram.newton import Convergence, PairSolver
from pairgram.pairs import Weighting
from pairgram.rank_svm import Loss, SolverSettings, Training, pairs_of, told, warn_of_failure
from pairgram.ridge import check_alphas

__all__ = ["RankSVMCV"]

Vector = NDArray[np.float64]


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
        A row for every feature map and C: ``param_C``, ``param_feature_map``, ``mean_test_score``,
        ``rank_test_score``.
    scoring_ : Metric
    history_, n_iter_, n_hessian_products_, n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankSVM`, of the final fit.

    Notes
    -----
    The mean is over all held-out queries of all splits, as in `RankRLSCV`. A feature map is fitted
    to all rows, and its features and their Gram matrix, of all rows, are made once; each split goes
    along C from one solution to the next. Ties go to the first feature map and the smallest C.

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
        if len(data.y) < 2:
            raise ValueError("RankSVMCV holds rows out, so X must have two or more, got 1 sample")
        uses_qid = qid is not None or group is not None
        judge = self._judge(data, uses_qid)
        candidates: list[_Candidate] = []
        training = None
        for feature_map in _as_list(self.feature_map):
            mapped = self._with_map(data, feature_map)
            training = None  # makes room for the next one's features
            training = Training.make(mapped, settings, exact=True)
            candidates.append(_candidate(mapped, training, judge, given, self.verbose))
        means = np.concatenate([c.means for c in candidates])
        best, ranks = choose(means, judge.metric)
        Cs = np.concatenate([c.Cs for c in candidates])
        of_row = np.repeat(np.arange(len(candidates)), [len(c.Cs) for c in candidates])
        chosen = candidates[int(of_row[best])]
        if training is None or chosen is not candidates[-1]:
            training = Training.make(chosen.data, settings, exact=True)
        self.C_, self.best_score_ = float(Cs[best]), float(means[best])
        history = self._fit_chosen(training)
        warn_of_failure([*itertools.chain(*(c.histories for c in candidates)), history], settings)
        self.feature_map_, self.uses_qid_ = chosen.data.feature_map, uses_qid
        self.Cs_, self.scores_, self.scoring_ = chosen.Cs, chosen.means, judge.metric
        self.cv_results_ = {
            "param_C": Cs,
            "param_feature_map": _object_array([c.data.feature_map for c in candidates])[of_row],
            "mean_test_score": means,
            "rank_test_score": ranks,
        }
        return self

    def _judge(self, data: RankingData, uses_qid: bool) -> HeldOutScoring:
        """Return how rows are held out and judged; validation rows are without the feature map."""
        if self.cv is None:
            raise ValueError("cv must be an int, a splitter, splits or a validation set, got None")
        validation = None
        if is_validation_set(self.cv):
            validation = self._validation(None, uses_qid, *self.cv)
        return HeldOutScoring.make(data, self.cv, validation, self.scoring, self.n_threads)

    def _fit_chosen(self, training: Training) -> Convergence:
        settings, C = training.settings, self.C_
        precondition = training.preconditioner(C)
        with single_threaded_blas():
            solver = training.solver()
            history = solver.solve(C, precondition, settings.tol, settings.max_iter)
        self.coef_ = solver.w
        self.__dict__.update(told(history))
        return history

    def _parameters_to_save(self) -> dict[str, Any]:
        """A model file holds the chosen RankSVM."""
        parameters = super()._parameters_to_save()
        for name in ("Cs", "cv", "scoring", "verbose"):
            del parameters[name]
        return parameters | {"C": self.C_}


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A feature map, with its mean held-out scores along C."""

    data: RankingData
    Cs: Vector
    means: Vector
    histories: list[Convergence]


def _candidate(
    data: RankingData,
    training: Training,
    judge: HeldOutScoring,
    Cs: Vector | None,
    verbose: bool,
) -> _Candidate:
    """Solve for every split and C, and judge the held-out scores."""
    settings = training.settings
    Cs = _default_Cs(training) if Cs is None else Cs
    histories = []
    with single_threaded_blas():
        solvers = _solvers(training, judge)
        coefs = np.empty((len(solvers), len(Cs), len(training.curvature)))
        name = type(data.feature_map).__name__ if data.feature_map is not None else "X"
        with Progress(disable=not verbose) as progress:
            task = progress.add_task(f"RankSVM on {name}", total=len(solvers) * len(Cs))
            for i, C in enumerate(Cs.tolist()):
                precondition = training.preconditioner(C)
                for solver, coef in zip(solvers, coefs, strict=True):
                    history = solver.solve(C, precondition, settings.tol, settings.max_iter)
                    histories.append(history)
                    coef[i] = solver.w
                    progress.advance(task)
        if judge.validation is not None:
            validation = replace(judge.validation, feature_map=data.feature_map)
            held = predict_rows(validation, slice(None), coefs[0])
        else:
            assert judge.splits is not None
            parts = [
                _scores(training.data, test, coef)
                for (_, test), coef in zip(judge.splits, coefs, strict=True)
            ]
            held = np.hstack(parts)
    return _Candidate(data, Cs, judge.mean(held), histories)


def _solvers(training: Training, judge: HeldOutScoring) -> list[PairSolver]:
    """Return a solver of each split's training rows, or one of all rows beside a validation set."""
    if judge.splits is None:
        return [training.solver()]
    n_rows = len(training.data.y)
    solvers = []
    for number, (train, _) in enumerate(judge.splits):
        counts = np.bincount(train, minlength=n_rows).astype(np.float64)
        if not pairs_of(training.data, training.settings, counts).pair_weights.any():
            raise ValueError(f"cv: the training rows of split {number} have no pairs that count")
        solvers.append(training.solver(counts=counts))
    return solvers


def _scores(data: RankingData, rows: NDArray[np.int64], coefs: Vector) -> Vector:
    """Return the scores of rows by every model, in blocks: (n_models, n_rows)."""
    blocks = np.split(rows, range(BLOCK_ROWS, len(rows), BLOCK_ROWS))
    return np.hstack([predict_path(data.features(block), coefs) for block in blocks])


def _default_Cs(training: Training) -> Vector:
    curvature = training.curvature
    trace = float(np.trace(curvature) if curvature.ndim == 2 else curvature.sum())
    return np.asarray(2.0 ** np.arange(0, 21, 2) / (2 * trace if trace > 0 else 1.0))


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
