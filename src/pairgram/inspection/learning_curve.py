"""`learning_curve`: how good a ranker is when it is fitted to more and more queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import check_random_state

import pairgram
from pairgram._support.arrays import judged, require_label_each, take_rows
from pairgram._support.tabled import Table, Tabled
from pairgram.data.queries import Queries, check_weights

if TYPE_CHECKING:
    from pairgram import Metric
    from pairgram._support.types import Estimator, RandomState, RowsLike, Splitter

Numbers = NDArray[np.int64]
# With these parameters of RankRLS, statistics of rows are not enough.
NEED_ROWS = ("feature_map", "kernel", "inputs", "prior", "missing")
CONSTRAINTS = ("scale", "positive", "l1_ratio", "n_nonzero_coefs")


@dataclass(frozen=True, eq=False)
class LearningCurve(Tabled):
    """What `learning_curve` measured.

    Attributes
    ----------
    n_queries : ndarray of shape (n_sizes,), int64
        How many queries the models were fitted to, ascending.
    scores : ndarray of shape (n_sizes, n_folds)
        The metric on the queries of each fold, for a model that was fitted to other queries. NaN
        where the ranker could not be fitted.
    metric : str
        The name of the metric.
    """

    n_queries: Numbers
    scores: NDArray[np.float64]
    metric: str

    @property
    def mean(self) -> NDArray[np.float64]:
        """The means over the folds with a score, shape (n_sizes,); NaN where there is none."""
        return pairgram.Metric.mean(self.scores)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """The standard errors of the means, shape (n_sizes,); NaN for less than two folds."""
        found = np.isfinite(self.scores)
        n_folds = found.sum(axis=1)
        squares = np.where(found, self.scores - self.mean[:, None], 0.0) ** 2
        with np.errstate(invalid="ignore", divide="ignore"):
            errors: NDArray[np.float64] = np.sqrt(squares.sum(axis=1) / (n_folds - 1) / n_folds)
        return errors

    def _tables(self) -> dict[str, tuple[str, Table]]:
        columns = {"queries": self.n_queries, self.metric: self.mean}
        return {"curve": ("", {**columns, "standard_error": self.standard_error})}


def learning_curve(
    estimator: Estimator,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    sample_weight: float | ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    cv: int | Splitter | None = None,
    scoring: str | Metric = "ndcg@10",
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> LearningCurve:
    """Measure how good a ranker is when it is fitted to more and more queries.

    Training queries are added in a random order, and are never cut. scikit-learn's `learning_curve`
    counts rows, and cuts the last query.

    Parameters
    ----------
    estimator : ranker of this package
        For `RankRLS` on the columns themselves, each row is read once: the statistics of further
        queries are added to those before. Every other ranker is fitted anew for every size.
    X : array-like or CSR matrix of shape (n_rows, n_features), or data frame
    y : array-like of shape (n_rows,)
        Labels.
    qid : array-like of shape (n_rows,)
        Query ids, of any hashable type. They must be given: rows of a single list have no curve.
    sample_weight : array-like of shape (n_rows,), ≥ 0, float or None
        Row weights of the fits, as `fit` takes them. The metric is not weighted.
    sizes : array-like of int ≥ 1, or of float in (0, 1], or None
        Numbers of training queries, or shares of the number in the fold that leaves the fewest.
        None stands for ten equal steps.
    cv : int, splitter, or None
        An int k stands for ``QueryKFold(k, shuffle=True)``, and None for 5. A splitter, which must
        keep queries whole, gets one number for each query as ``groups``.
    scoring : str or Metric, default="ndcg@10"
        As in `evaluate`.
    random_state : int, RandomState or None, default=None
        Draws the order of the queries, and the folds unless `cv` is a splitter.
    n_threads : int ≥ 1 or None, default=None
        As in `evaluate`.

    Returns
    -------
    LearningCurve

    Raises
    ------
    ValueError
        If an argument is not as described, or if the ranker cannot be fitted to the queries of the
        largest size.
    TypeError
        If an id is not hashable.

    Warns
    -----
    FitFailedWarning
        If the ranker cannot be fitted at a smaller size, for example because all queries have a
        single row, and so no pairs. The score of this size and fold is then NaN, and the mean over
        folds leaves it out.

    Notes
    -----
    The curve of `RankRLS` takes one pass over the rows of a fold, and O(n_features³) for each size.

    Examples
    --------
    >>> from pairgram import RankRLS, learning_curve, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> curve = learning_curve(RankRLS(), X, y, qid=qid, sizes=[5, 20, 80], random_state=0)
    >>> curve.n_queries.tolist(), curve.scores.shape
    ([5, 20, 80], (3, 5))
    """
    if qid is None:
        raise ValueError(
            "qid must be the query ids of the rows, got None: whole queries are added, one after "
            "the other, so a single list has no such curve"
        )
    rng = check_random_state(random_state)
    metric = pairgram.get_metric(scoring) if isinstance(scoring, str) else scoring
    require_label_each(X, y)
    labels = np.asarray(y)
    queries = Queries.make(len(labels), qid=qid)
    query = queries.index()
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(labels), "sample_weight")
    if cv is None or isinstance(cv, (int, np.integer)):
        seed = int(rng.randint(2**31 - 1))
        cv = pairgram.QueryKFold(5 if cv is None else cv, shuffle=True, random_state=seed)
    splits = list(cv.split(X, labels, groups=query))
    fewest = min(len(np.unique(query[train])) for train, _ in splits)
    numbers = _sizes(sizes, fewest)
    scores = np.empty((len(numbers), len(splits)))
    rows = _Rows(X, labels, query, weights)
    failed: list[ValueError] = []
    for fold, (train, test) in enumerate(splits):
        place = np.zeros(queries.n_queries, np.int64)
        place[rng.permutation(queries.n_queries)] = np.arange(queries.n_queries)
        train = train[np.argsort(place[query[train]], kind="stable")]
        held = take_rows(X, test)
        for number, model in enumerate(_models(estimator, rows, train, numbers)):
            if isinstance(model, ValueError):
                if number == len(numbers) - 1:  # no lack of queries, which the curve goes up to
                    raise model
                scores[number, fold] = np.nan
                failed.append(model)
                continue
            found = pairgram.evaluate(
                metric,
                labels[test],
                judged(model, held, query[test]),
                query[test],
                n_threads=n_threads,
            )
            scores[number, fold] = next(iter(found.values()))
    if failed:
        warnings.warn(
            f"{len(failed)} of {scores.size} fits failed, and their scores are NaN: the queries of "
            f"small sizes may be too few. The first error is: {failed[0]}",
            FitFailedWarning,
            stacklevel=2,
        )
    return LearningCurve(numbers, scores, metric.name)


@dataclass(frozen=True)
class _Rows:
    """All rows; those of a query have the same number as their query."""

    X: Any
    y: NDArray[Any]
    query: Numbers
    weights: NDArray[Any] | None

    def take(self, rows: Numbers) -> tuple[Any, NDArray[Any], dict[str, Any]]:
        """Return the arguments of `fit` for some rows."""
        weights = None if self.weights is None else self.weights[rows]
        return (
            take_rows(self.X, rows),
            self.y[rows],
            {"qid": self.query[rows], "sample_weight": weights},
        )


def _sizes(sizes: ArrayLike | None, n_queries: int) -> Numbers:
    """Return numbers of queries, ascending and each once."""
    found = np.asarray(np.linspace(0.1, 1.0, 10) if sizes is None else sizes)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iuf":
        raise ValueError(f"sizes must be a list of numbers, got {sizes!r}")
    if found.dtype.kind == "f":
        wrong = ~((found > 0) & (found <= 1))
        wanted = "shares in (0, 1]"
        numbers = np.maximum(1, np.rint(found * n_queries))
    else:
        wrong = (found < 1) | (found > n_queries)
        wanted = f"from 1 to the {n_queries} queries that a fold leaves"
        numbers = found
    if wrong.any():
        raise ValueError(f"sizes must be {wanted}, got {found[np.argmax(wrong)]}")
    return np.unique(numbers).astype(np.int64)


def _models(estimator: BaseEstimator, rows: _Rows, train: Numbers, sizes: Numbers) -> Iterator[Any]:
    """Yield a model of the first queries of `train`, whose rows stand together, for each size.

    An error stands in place of a model that could not be fitted.
    """
    begins = np.flatnonzero(np.r_[True, np.diff(rows.query[train]) != 0, True])
    total = None
    if _is_plain(estimator):
        total = pairgram.Pairgram(
            pairs=estimator.pairs,
            scope=estimator.scope,
            weighting=estimator.weighting,
            target=estimator.target,
            n_threads=estimator.n_threads,
            ids=None,
        )
    has_pairs = False
    for first, size in zip([0, *sizes.tolist()], sizes.tolist(), strict=False):
        if total is not None:
            X, y, named = rows.take(train[begins[first] : begins[size]])
            total.update(X, y, **named)
        if total is not None and has_pairs:
            yield pairgram.RankRLS.from_pairgram(
                total,
                estimator.alpha,
                **{name: getattr(estimator, name) for name in CONSTRAINTS},
            )
            continue
        X, y, named = rows.take(train[: begins[size]])  # fit can tell whether there are pairs
        try:
            model: Any = clone(estimator).fit(X, y, **named)
            has_pairs = True
        except ValueError as error:
            model = error
        yield model


def _is_plain(estimator: BaseEstimator) -> bool:
    """Tell whether statistics of rows are all that a ranker is fitted to."""
    return (
        type(estimator) is pairgram.RankRLS
        and all(getattr(estimator, name) is None for name in NEED_ROWS)
        and estimator.form != "dual"
        and (estimator.scope == "query" or estimator.pairs == "with_ties")
    )
