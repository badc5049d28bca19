"""`fuse`: one result list of those of several systems, by ranks, scores or learnt weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from scipy.special import ndtr, stdtrit
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import object_array, without_names
from pairgram._support.checks import AnyArray, ArgumentError, Flags, Rows, Vector, verbatim
from pairgram._support.parameters import FusionName, check_text
from pairgram.datasets.result_lists import Lists, by_trec_order, qrels_of, run_of
from pairgram.lists.within_lists import RANK_OFFSET, within_lists
from pairgram.metrics.evaluation import get_metric
from pairgram.rankers.rank_rls import RankRLS, RankRLSCV
from pairgram.solvers.pairgram import Pairgram

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator

# What the names of columns of a ranker add to those of the runs.
COLUMNS = (" scaled", " reciprocal rank")
# With fewer judged queries nothing can tell learnt weights from equal ones.
FEWEST_QUERIES = 5


class Fusion(NamedTuple):
    """What `fuse` returns.

    Attributes
    ----------
    run : dict of str to ndarray of shape (n_rows,)
        ``qid``, ``docno`` and ``score``, as `read_run` returns them: every document that any of
        the runs has, the best first in every query. `write_run` and `evaluate_run` take it.
    model : ranker or None
        For learnt weights the ranker of ``within_lists(scores, qid, "runs")``. It can be saved, and
        be the `method` of another `fuse`. Its `coef_` has the weights of the runs' scores from 0 to
        1, and then of ``60 / (60 + rank)``. None for other methods.
    n_judged : int or None
        How many queries could teach weights: those with documents of different labels. None if
        nothing was to be learnt.
    gain, gain_error : float or None
        NDCG@10 of learnt weights minus that of RRF, on judged queries that were held out: the mean,
        and its standard error. It is that of `evaluate_run`, but of the documents of the runs
        alone: relevant ones that no run has do not count. It is slightly optimistic, because the
        same queries chose the ridge. None if there were too few queries to learn.
    is_learnt : bool or None
        Whether the weights of `model` are learnt. If False, learning did not help or there were too
        few judgements, and `model` has the weights of RRF. None if nothing was to be learnt.
    """

    run: dict[str, AnyArray]
    model: Any
    n_judged: int | None = None
    gain: float | None = None
    gain_error: float | None = None
    is_learnt: bool | None = None


def fuse(
    runs: Mapping[Any, object] | Sequence[object],
    qrels: object = None,
    method: FusionName | BaseEstimator | None = None,
) -> Fusion:
    """Fuse the result lists of several systems, such as BM25, dense retrieval and rerankers.

    Parameters
    ----------
    runs : dict of names to runs, or list of runs
        At least two runs, each in one of the forms of `evaluate_run`: a file of TREC, a data frame,
        or a dict of columns or of dicts. A higher score is better. A score NaN leaves a document
        out.
    qrels : path, data frame, mapping or None
        Judgements of some of the queries, in the forms of `evaluate_run`, for learnt weights alone.
        A document without a judgement is not relevant.
    method : str, fitted ranker or None
        How a document gets its score in a query. None stands for "learnt" if there are `qrels`, and
        else for "rrf".

        - "rrf": the sum of 1 / (60 + rank) over the runs (reciprocal rank fusion [1]_);
        - "combsum": the sum of the scores [2]_, from 0 to 1 in every query of every run;
        - "combmnz": the same, times the number of runs that have the document [2]_;
        - "borda": the sum of the shares of the query's other documents that a run has below it
          [3]_;
        - "learnt": a weighted sum of the scores from 0 to 1 and of the reciprocal ranks, with
          weights from the judged queries, which all queries then have;
        - a fitted ranker of ``within_lists(scores, qid, "runs")``, such as the `model` of an
          earlier `fuse`. If it knows names of columns, such as "bm25 scaled" and "bm25 reciprocal
          rank", `runs` must be a dict with the names of runs, and else a list in the same order.

    Returns
    -------
    Fusion
        The fused run, and the fusing model.

    Raises
    ------
    ValueError
        If a run or the judgements are not as `evaluate_run` wants them, if a score is infinite, if
        `method` or the number of runs is wrong, or if no judged query is in a run.
    TypeError
        If an argument has another type.

    Notes
    -----
    Documents that a run lacks count as beyond its end: their score and reciprocal rank are 0, and
    for "borda" they share the last places. The lowest score of a list also becomes 0. Where all
    scores of a list are equal, as that of a single document, they become 1. Tied documents have
    their mean rank. Ids are compared as texts, as by `evaluate_run`.

    Learnt weights are those of a `RankRLSCV` whose `prior` are the weights of RRF, times the number
    that fits the labels best. NDCG@10 of judged queries, each held out exactly in turn, chooses how
    far the weights may go from the prior. The weights are those of RRF themselves if fewer than
    five judged queries have documents of different labels, or if the mean gain over RRF in held-out
    queries is too small. It must be larger than one standard error for many queries, and 1.14
    standard errors for five (the same quantile of Student's t). Few judgements can therefore do
    harm only by chance.

    References
    ----------
    .. [1] Cormack, Clarke, Büttcher (2009). Reciprocal rank fusion outperforms Condorcet and
       individual rank learning methods. SIGIR.
    .. [2] Fox, Shaw (1993). Combination of multiple searches. TREC-2.
    .. [3] Aslam, Montague (2001). Models for metasearch. SIGIR.

    Examples
    --------
    >>> from pairgram import fuse
    >>> bm25 = {"q1": {"a": 12.0, "b": 9.0, "c": 3.0}, "q2": {"a": 7.0, "d": 5.0}}
    >>> dense = {"q1": {"b": 0.9, "d": 0.8}, "q2": {"d": 0.7, "a": 0.6}}
    >>> fused = fuse({"bm25": bm25, "dense": dense}, method="combsum")
    >>> for row in zip(*fused.run.values()):
    ...     print(*row)
    q1 b 1.6666666666666665
    q1 a 1.0
    q1 d 0.0
    q1 c 0.0
    q2 d 1.0
    q2 a 1.0
    """
    word, model = _method_of(method, qrels)
    names, lists = _runs_of(runs, model)
    rows = _Rows.of(names, lists)
    results: dict[str, Any] = {}
    if model is None and word == "learnt":
        model, results = _learn(rows, qrels)
        if isinstance(runs, Mapping):
            called = [name + end for end in COLUMNS for name in names]
            model.feature_names_in_ = object_array(called)
    function = _FUNCTIONS[word] if model is None else _of_model(model)
    scores = function(rows)
    return Fusion(rows.run(np.asarray(scores, np.float64)), model, **results)


def _method_of(
    method: FusionName | BaseEstimator | None, qrels: object
) -> tuple[str, BaseEstimator | None]:
    """Return the word of a method, and the ranker that it is in place of a word, or None."""
    if method is None:
        method = "rrf" if qrels is None else "learnt"
    elif hasattr(method, "predict"):
        check_is_fitted(method)
        if qrels is not None:
            raise ArgumentError("qrels", "must be None: a fitted ranker learns nothing more")
        return "learnt", method
    check_text("method", method, get_args(FusionName))
    if (method == "learnt") != (qrels is not None):
        wanted = "must be given for" if qrels is None else "is for method='learnt' alone, not"
        raise ArgumentError("qrels", f"{wanted} method={method!r}")
    return method, None


def _runs_of(
    runs: Mapping[Any, object] | Sequence[object], model: BaseEstimator | None
) -> tuple[list[Any], list[Lists]]:
    """Return the names of runs, in the order of a model that knows them, and the runs."""
    is_named = isinstance(runs, Mapping)
    if not is_named and (isinstance(runs, (str, bytes)) or not isinstance(runs, Sequence)):
        raise TypeError(f"runs must be a dict or a list of runs, got {type(runs).__name__}")
    names = list(runs) if is_named else list(range(len(runs)))
    if is_named and not all(isinstance(name, str) for name in names):
        raise TypeError(f"runs must have names that are text, got {names}")
    if len(names) < 2:
        raise ArgumentError("runs", f"must be at least two, got {len(names)}")
    if model is not None:
        known = getattr(model, "feature_names_in_", None)
        half = model.n_features_in_ // 2
        own, wanted = list[Any](range(half)), f"a list of {half} runs, in the order"
        if known is not None:
            own = [name.removesuffix(COLUMNS[0]) for name in known[:half].tolist()]
            wanted = f"a dict with the names {own}"
        if set(own) != set(names):
            text = f"must be {wanted} of those that the ranker was fitted to, got {names}"
            raise ArgumentError("runs", verbatim(text))
        names = own
    return names, [run_of(runs[name], f"runs[{name!r}]") for name in names]


# --- rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """The documents of all runs, those of a query together.

    Attributes
    ----------
    queries : list of str
    begins : ndarray of shape (n_queries + 1,), int64
        Where the documents of every query begin.
    documents : list of str
    scores : ndarray of shape (n_rows, n_runs), float64
        NaN where a run lacks the document.
    """

    queries: list[str]
    begins: Rows
    documents: list[str]
    scores: Vector

    @cached_property
    def query(self) -> Rows:
        """The number of the query of every row."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.begins))

    @classmethod
    def of(cls, names: list[Any], runs: list[Lists]) -> _Rows:
        """Bring runs together by the ids of queries and documents."""
        queries: list[str] = []
        documents: list[str] = []
        begins = [0]
        places: list[list[int]] = [[] for _ in runs]
        values: list[list[float]] = [[] for _ in runs]
        for query in dict.fromkeys(chain.from_iterable(runs)):
            known: dict[str, int] = {}
            for run, at, found in zip(runs, places, values, strict=True):
                for document, score in run.get(query, {}).items():
                    if score == score:  # NaN is no result
                        at.append(begins[-1] + known.setdefault(document, len(known)))
                        found.append(score)
            if known:
                queries.append(query)
                begins.append(begins[-1] + len(known))
                documents += known
        if not documents:
            raise ArgumentError("runs", "must have documents with scores, got none")
        scores = np.full((len(documents), len(runs)), np.nan)
        for column, (at, found) in enumerate(zip(places, values, strict=True)):
            scores[at, column] = found
        if np.isinf(scores).any():
            row, column = np.argwhere(np.isinf(scores))[0]
            query = queries[np.searchsorted(begins, row, "right") - 1]
            text = f"{scores[row, column]} of document {documents[row]!r} of query {query!r}"
            text = verbatim(f"must have finite scores, got {text}")
            raise ArgumentError(f"runs[{names[column]!r}]", text)
        return cls(queries, np.array(begins), documents, scores)

    @property
    def columns(self) -> Vector:
        """The columns that a ranker learns from."""
        return within_lists(self.scores, self.query, "runs")

    def halves(self) -> tuple[Vector, Vector]:
        """Return the scores from 0 to 1, and 60 / (60 + rank), (n_rows, n_runs) each."""
        columns = self.columns
        return columns[:, : self.scores.shape[1]], columns[:, self.scores.shape[1] :]

    def labels(self, judgements: Lists) -> tuple[Vector, Flags]:
        """Return the labels of the rows, 0 where there is none, and which queries can teach."""
        y = np.zeros(len(self.documents))
        for query, begin, end in zip(self.queries, self.begins, self.begins[1:], strict=False):
            own = judgements.get(query)
            if own is not None:
                found = [own.get(document, 0.0) for document in self.documents[begin:end]]
                y[begin:end] = np.maximum(found, 0.0)  # below 0 says that it was not judged
        low, high = (least.reduceat(y, self.begins[:-1]) for least in (np.minimum, np.maximum))
        return y, low < high

    def run(self, scores: Vector) -> dict[str, AnyArray]:
        """Return scores as a run, the best documents first, as trec_eval sees them."""
        orders = [
            begin + by_trec_order(self.documents[begin:end], scores[begin:end])
            for begin, end in zip(self.begins[:-1].tolist(), self.begins[1:].tolist(), strict=True)
        ]
        order = np.concatenate(orders)
        documents = object_array(self.documents)[order]
        queries = object_array(self.queries)[self.query[order]]
        return {"qid": queries, "docno": documents, "score": scores[order]}


# --- methods -----------------------------------------------------------------------------------

Function = Callable[[_Rows], Vector]


def _total(columns: Vector) -> Vector:
    """Return the sums of rows, which have the same bits for columns in any order."""
    return np.sort(columns, axis=1).sum(axis=1)


def _rrf(rows: _Rows) -> Vector:
    return _total(rows.halves()[1] / RANK_OFFSET)


def _combsum(rows: _Rows) -> Vector:
    return _total(rows.halves()[0])


def _borda(rows: _Rows) -> Vector:
    reciprocal = rows.halves()[1]  # which is 0, the lowest, for what a run lacks
    return _total(within_lists(reciprocal, rows.query, "rank"))


def _combmnz(rows: _Rows) -> Vector:
    return _combsum(rows) * (~np.isnan(rows.scores)).sum(axis=1)


_FUNCTIONS: dict[str, Function] = {
    "rrf": _rrf,
    "combsum": _combsum,
    "combmnz": _combmnz,
    "borda": _borda,
}


def _of_model(model: BaseEstimator) -> Function:
    """Return the method that scores documents by a ranker of their columns."""
    return lambda rows: without_names(model).predict(rows.columns)


def _learn(rows: _Rows, qrels: object) -> tuple[Any, dict[str, Any]]:
    """Return a ranker of the columns of scores, and what `Fusion` tells of it."""
    n_runs = rows.scores.shape[1]
    weights = np.repeat([0.0, 1.0], n_runs)  # of RRF
    judgements = qrels_of(qrels)
    if not any(query in judgements for query in rows.queries):
        raise ArgumentError("qrels", "and runs must have queries in common, but they have none")
    y, teaches = rows.labels(judgements)
    results: dict[str, Any] = {"n_judged": int(teaches.sum()), "is_learnt": False}
    if results["n_judged"] >= FEWEST_QUERIES:
        kept = teaches[rows.query]
        y, query, metric = y[kept], rows.query[kept], get_metric("ndcg@10", "trec")
        rrf = rows.halves()[1][kept].sum(axis=1)
        only = Pairgram.from_rows(rrf[:, None], y, qid=query)
        multiple = max(only.g[0] / only.G[0, 0], 0.0) if only.G[0, 0] > 0 else 0.0
        search = RankRLSCV(prior=multiple * weights, scoring=metric).fit(
            rows.columns[kept], y, qid=query
        )
        gains = search.per_query_[metric.name] - metric(y, rrf, query, per_query=True)
        results["gain"] = float(gains.mean())
        results["gain_error"] = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        # One standard error for many queries, and more for few, whose error itself is uncertain.
        if results["gain"] > stdtrit(len(gains) - 1, ndtr(1.0)) * results["gain_error"]:
            return search, {**results, "is_learnt": True}
    # Weights that explain the labels of rows exactly stay as they are, but for rounding errors.
    X = within_lists(np.repeat([[1.0], [0.0]], n_runs, axis=1), None, "runs")
    model = RankRLS(prior=weights / RANK_OFFSET)
    model.fit(X, X @ weights / RANK_OFFSET).coef_ = weights / RANK_OFFSET
    return model, results
