"""Metrics of every query and their mean, for arrays and tables; scorers for scikit-learn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from pairgram._support.arrays import judged
from pairgram._support.parameters import Convention, check_text
from pairgram.data.judgements import Judgements, as_judgements
from pairgram.data.queries import refuse_score_without_ids, warn_of_missing_queries
from pairgram.data.streams import Stream, as_stream
from pairgram.metrics.metric import (
    CONVENTIONS,
    FAMILIES,
    Discount,
    Divisor,
    Empty,
    Gain,
    Metric,
    Ties,
    evaluate_metrics,
    listed_metrics,
    unknown_name,
)

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, Estimator, RowsLike


class RankingScorer:
    """The scorer that `metrics.make_scorer` returns."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.set_score_request()

    def __call__(
        self,
        estimator: Estimator,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean of the metric for ``estimator.predict(X)``; greater is better."""
        if qid is None and _was_fitted_with_qid(estimator):
            refuse_score_without_ids(estimator)
        value = self.metric(y, judged(estimator, X), qid, sample_weight=sample_weight)
        return value if self.metric.greater_is_better else -value

    def __repr__(self) -> str:
        """Return the call that makes this scorer."""
        return f"make_scorer({self.metric!r})"

    def set_score_request(
        self,
        *,
        qid: bool | str | None = True,
        sample_weight: bool | str | None = True,
    ) -> RankingScorer:
        """Set what scikit-learn's metadata routing passes on. At first all are requested.

        Parameters
        ----------
        qid, sample_weight : bool, str or None
            True: pass it on. False: do not pass it on. None: it is an error if it is given. A str:
            pass on the metadata of this name.
        """
        self._requests = {"qid": qid, "sample_weight": sample_weight}
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request of this scorer for scikit-learn's routing."""
        request = MetadataRequest(owner=self)
        for parameter, alias in self._requests.items():
            request.score.add_request(param=parameter, alias=alias)
        return request


Scoring = str | Metric | RankingScorer | None


def _was_fitted_with_qid(estimator: BaseEstimator) -> bool:
    """Tell whether a ranker, or the ranker in a pipeline or a search, was fitted with qid."""
    while not hasattr(estimator, "uses_qid_"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif getattr(estimator, "steps", None):
            estimator = estimator.steps[-1][1]
        else:
            return False
    return bool(estimator.uses_qid_)


_ORDER = "; the order is evaluate(metrics, y, score, qid)"


def get_metric(
    name: str,
    convention: Convention = "default",
    *,
    gain: Gain | None = None,
    discount: Discount | None = None,
    ties: Ties | None = None,
    empty: Empty | None = None,
    relevant: float | None = None,
    divisor: Divisor | None = None,
    max_grade: float | None = None,
    alpha: float | None = None,
    persistence: float | None = None,
    clip: float | None = None,
) -> Metric:
    r"""Return a metric by its name, with the options of a convention and your changes to them.

    Parameters
    ----------
    name : str
        One of `metric_names`, such as ``"ndcg@10"``; see Notes.
    convention : {"default", "letor", "trec", "lightgbm"}
        A convention sets all options below (see `CONVENTIONS`):

        ============  =======  =========  =====  ==========
        convention    gain     discount   empty  divisor
        ============  =======  =========  =====  ==========
        default       exp2     log2       0      relevant
        letor         exp2     letor      0      relevant
        trec          linear   log2       0      relevant
        lightgbm      exp2     log2       1      cut
        ============  =======  =========  =====  ==========

    gain : {"exp2", "linear"}
        The gain of a document with label y: "exp2" is ``2**y - 1``, "linear" is y.
    discount : {"log2", "letor"}
        The weight of rank i = 1, 2, …: "log2" is ``1 / log2(1 + i)``; "letor" is 1 for the first
        two ranks, then ``1 / log2(i)``.
    ties : {"order", "average", "worst"}
        How documents with equal scores are ranked (0.0 equals -0.0). "order", in every convention:
        in the order of their rows. "average": the metric is its exact mean over all their orders.
        "worst": the lowest label comes first. For auc, kendall, spearman, misranking,
        pairwise_accuracy and ranking_error, a tie is part of the definition. For pearson,
        pairwise_squared_error and pairwise_absolute_error, ties play no part.
    empty : float or "skip"
        The value of a query without relevant documents (its ideal DCG is 0, or no label is ≥
        `relevant`). "skip" makes it NaN, so that the mean leaves it out. This applies to ndcg,
        ndcg_linear, mean_ndcg, map, recall, rprec, hit_rate, mrr, ef and bedroc. For such a query
        dcg, ips_dcg, p, rbp and err are 0, and auc is undefined.
    relevant : float
        Labels ≥ this are relevant, for map, p, recall, rprec, hit_rate, mrr, rbp, ef, bedroc and
        auc. It is 1 in every convention.
    divisor : {"relevant", "cut"}
        "relevant" divides map@k by the number R of relevant documents, "cut" by min(k, R).
    max_grade : float or None
        The highest possible label, for err, from 0 to 1000. None takes the highest label in `y`, so
        set it if you compare results on different data.
    alpha : float, above 0 and at most 500
        How strongly bedroc favours the first ranks: the larger, the more. With 20, the first 8 % of
        the ranks have 80 % of the weight. It is 20 in every convention, as is usual.
    persistence : float between 0 and 1
        The probability p that the reader of rbp goes on to the next rank. It is 0.8 in every
        convention, as in ir_measures.
    clip : float from 0 to 1
        For ips_dcg, propensities below this are raised to it. It is 0 in every convention, which
        means no clipping: a clip makes the mean less noisy, but biased. Tables take no clip.

    Returns
    -------
    Metric

    Raises
    ------
    ValueError
        If a name, a convention or a value is unknown, or if the metric does not take an option.

    Notes
    -----
    The n documents of a query are ranked by descending score. In the table, g is the gain, d is the
    discount, rel_i is 1 if the document at rank i is relevant and 0 otherwise, and R is the number
    of relevant documents. A document whose score is NaN was not retrieved. It has no rank, but
    counts in n, in R and in the ideal ranking; see `evaluate`.

    =======================  =============================================================  =======
    name                     value in a query                                               range
    =======================  =============================================================  =======
    dcg@k                    Σ_{i≤k} g_i d_i                                                [0, ∞)
    ips_dcg@k                Σ_{i≤k} a_i d_i, a = click / max(propensity, clip)             [0, ∞)
    ndcg@k                   dcg@k / its highest possible value                             [0, 1]
    ndcg_linear@k            ndcg@k with the gain y, as in trec_eval, ir_measures and ranx  [0, 1]
    mean_ndcg                mean of ndcg@i over i = 1…n                                    [0, 1]
    map@k                    (1/R) Σ_{i≤k} rel_i (p@i), average precision                   [0, 1]
    p@k                      (1/k) Σ_{i≤k} rel_i, also where n < k                          [0, 1]
    recall@k                 (1/R) Σ_{i≤k} rel_i                                            [0, 1]
    rprec                    (1/R) Σ_{i≤R} rel_i, precision at R                            [0, 1]
    hit_rate@k               1 if one of the first k is relevant, else 0; success           [0, 1]
    mrr@k                    1 / rank of the first relevant document, 0 after k             [0, 1]
    err@k                    Σ_{i≤k} (1/i) R_i Π_{j<i} (1 - R_j), R = (2^y - 1)/2^max       [0, 1)
    rbp@k                    (1 - p) Σ_{i≤k} rel_i p^(i-1), rank-biased precision           [0, 1]
    ef@k%                    enrichment: (precision of the first m) / (R/n), m = ⌈n k/100⌉  [0, n/m]
    bedroc                   (RIE - lowest RIE) / (highest RIE - lowest RIE)                [0, 1]
    auc                      fraction of pairs of a relevant and an irrelevant document in  [0, 1]
                             right order, tied score = ½: the area under the ROC curve
    kendall                  tau b: (conc. - disc.) / sqrt(pairs untied in y · in score)    [-1, 1]
    spearman                 correlation of the ranks; tied values share their mean rank    [-1, 1]
    pearson                  correlation of y and f                                         [-1, 1]
    misranking               fraction of pairs y_i ≠ y_j in wrong order, tied score = ½     [0, 1]
    pairwise_accuracy        1 - misranking                                                 [0, 1]
    ranking_error            mean over pairs i < j of abs(y_i - y_j) · (wrong order: 1,     [0, ∞)
                             tied score: ½, right order: 0)
    pairwise_squared_error   (1/n²) Σ_ij ((y_i - y_j) - (f_i - f_j))²                       [0, ∞)
    pairwise_absolute_error  (1/n²) Σ_ij abs((y_i - y_j) - (f_i - f_j))                     [0, ∞)
    =======================  =============================================================  =======

    Sources: ndcg [1]_, mean_ndcg [2]_, err [3]_, pairwise_squared_error and pairwise_absolute_error
    [4]_, ranking_error [6]_, rbp [7]_, bedroc [8]_.

    RIE, the robust initial enhancement, is Σ_i rel_i exp(-alpha i/n), divided by its mean over
    all orders. bedroc is 1 if all documents are relevant. It is 0 if relevant documents that were
    not retrieved bring RIE below the lowest value of a whole ranking; with ties="average", RIE is
    the mean over the orders. ef and bedroc are those of RDKit, whose fractions are ef's
    percentages, and auc is scikit-learn's ``roc_auc_score``. RDKit multiplies in floating point, so
    that 7 % of its 100 documents are 8; here they are 7. rbp takes documents as relevant or not, as
    ir_measures does if it is given `rel`.

    ips_dcg is for clicks: its labels are clicks divided by propensities, as those of
    ``y=Clicks(...)`` are. ips_dcg is not divided by a highest value, because the few clicks on a
    list do not show its best order. A list without clicks counts as 0.

    The mean of ranking_error is over all n(n - 1)/2 pairs. Pairs with equal labels add 0.

    pairwise_squared_error and pairwise_absolute_error measure how far the differences of scores are
    from those of labels. The paper calls the former the mean squared difference, and names the
    latter without a formula. Their sums are over all ordered pairs and are divided by n², as in the
    paper. Means over the pairs i < j would be n / (n - 1) times as large.

    A metric can be undefined for a query. It is then NaN, and the mean leaves the query out. This
    holds for kendall, spearman and pearson if labels or scores are constant; for misranking and
    pairwise_accuracy if labels are constant; for auc if all documents are relevant, or none; for
    ranking_error, pairwise_squared_error and pairwise_absolute_error if there are fewer than two
    documents; and for every metric if the query has no rows.

    ndcg, ndcg_linear, mean_ndcg, dcg, ips_dcg and err need labels ≥ 0, and err needs whole
    numbers. The other metrics take any finite labels, provided that sums over all rows stay finite:
    for pairwise_squared_error up to about 1e150 in size. The same holds for the scores of pearson
    and of both pairwise errors.

    In every convention, a list shorter than k counts as filled up with irrelevant documents. The
    published results on MQ2007 and MQ2008 of LETOR 4.0 count NDCG@k as 0 for a list shorter than k.
    No convention here does this, so those results are not comparable.

    trec_eval breaks ties by descending document name, which rows do not have; `evaluate_run` takes
    names. If the rows within ties stand in its order, "trec" gives the numbers of trec_eval (for
    labels ≥ 0). ``get_metric("ndcg", gain="linear", ties="average")``
    gives those of scikit-learn's ``ndcg_score``.

    Each query and score vector costs O(n log n), or O(n) for a cut up to 64 without averaged ties.
    err with averaged ties costs O(t min(t, k)) for t tied documents.

    References
    ----------
    .. [1] Järvelin, Kekäläinen (2002). Cumulated gain-based evaluation of IR techniques. TOIS 20.
    .. [2] Qin, Liu, Xu, Li (2010). LETOR: a benchmark collection for research on learning to rank
       for information retrieval. Information Retrieval 13.
    .. [3] Chapelle, Metzler, Zhang, Grinspan (2009). Expected reciprocal rank for graded relevance.
       CIKM.
    .. [4] Chen, Peng, Zhou, Li, Pan (2014). Extreme learning machine for ranking: generalization
       analysis and applications. Neural Networks 53. Section 4.2.2.
    .. [5] McSherry, Najork (2008). Computing information retrieval performance measures efficiently
       in the presence of tied scores. ECIR. (Averaged ties.)
    .. [6] Agarwal, Dugar, Sengupta (2010). Ranking chemical structures for drug discovery: a new
       machine learning approach. Journal of Chemical Information and Modeling 50.
    .. [7] Moffat, Zobel (2008). Rank-biased precision for measurement of retrieval effectiveness.
       TOIS 27.
    .. [8] Truchon, Bayly (2007). Evaluating virtual screening methods: good and bad metrics for the
       "early recognition" problem. Journal of Chemical Information and Modeling 47.

    Examples
    --------
    >>> from pairgram.metrics import get_metric
    >>> get_metric("ndcg@10", "letor", ties="worst")([2, 1], [0.5, 0.5])
    1.0
    >>> get_metric("p@3")([2, 1, 0], [3, 2, 1])
    0.6666666666666666
    >>> active, score = [1, 0, 1, 0, 0, 0, 0, 0, 0, 0], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    >>> {name: round(get_metric(name)(active, score), 4) for name in ("auc", "ef@20%", "bedroc")}
    {'auc': 0.9375, 'ef@20%': 2.5, 'bedroc': 0.8969}
    """
    preset = CONVENTIONS[check_text("convention", convention, CONVENTIONS)]
    text = name if isinstance(name, str) else ""
    match = re.fullmatch(r"([a-z0-9_]+)(?:@(?:([1-9][0-9]{0,18})|([0-9]*\.?[0-9]+)%))?", text)
    if match is None or match[1] not in FAMILIES:
        raise ValueError(unknown_name(name))
    family, cut, percent = match.groups()
    if (FAMILIES[family].cut == "percent") != (percent is not None):
        raise ValueError(unknown_name(name))
    changes = {
        "gain": gain,
        "discount": discount,
        "ties": ties,
        "empty": empty,
        "relevant": relevant,
        "divisor": divisor,
        "max_grade": max_grade,
        "alpha": alpha,
        "persistence": persistence,
        "clip": clip,
    }
    taken = FAMILIES[family].options
    options = {option: preset[option] for option in taken}
    options.update({option: value for option, value in changes.items() if value is not None})
    k = float(percent) if percent else int(cut) if cut else None
    return Metric(family, k, **options)


def evaluate(
    metrics: str | Metric | Iterable[str | Metric],
    y: ArrayLike | Stream | Judgements,
    score: ArrayLike | Estimator,
    qid: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    convention: Convention = "default",
    per_query: bool = False,
) -> dict[str, Any]:
    """Return several metrics from one ranking of every query.

    Parameters
    ----------
    metrics : str, Metric, or iterable of them
        The metrics, such as "ndcg@10", "map" or "auc"; `get_metric` has the whole list. Names
        follow `convention`; a `Metric` has its own options.
    y : array-like of shape (n_rows,), finite; table of `scan`; Clicks; or Preferences
        Labels. A higher label is more relevant. A table has its own labels, query ids and weights.
        Comparisons have their own metrics: "accuracy", the weighted share of comparisons whose
        winner has the higher score (equal scores count ½, and ties do not count);
        "squared_error", the mean square of the margin minus the difference of scores; and
        "log_loss", the mean of ``log(1 + exp(−d))``, where d is the difference of scores in
        log-odds, as ``RankSVM(loss="logistic")`` predicts it (a tie is half a win of each).
        `Clicks` are for ips_dcg alone, because other metrics would judge by clicks with their bias.
    score : array-like of shape (n_rows,) or (n_scores, n_rows); or fitted model
        One or several predictions for the same labels. C-contiguous float64 arrays are used as they
        are; others are copied to float64. NaN stands for a document that was not retrieved: it has
        no rank, but counts among the relevant documents and in the ideal ranking. Without rows of
        such documents, map and recall come out too high; see also `evaluate_run`. Only metrics that
        rank take it, not auc, kendall and the others whose value comes from pairs or scores. With a
        table as y, this is a fitted model, whose `predict` scores the rows.
    qid : array-like of shape (n_rows,) or None
        Rows with equal ids form a query, wherever they stand. Without `qid`, all rows are one
        query. A `MissingQueryWarning` warns of this if there are more than 1,000 rows
        and a metric is made for result lists. These are all metrics except auc, ef, bedroc,
        kendall, spearman, pearson and the metrics of pairs, which are also used on all rows.
    sample_weight : array-like of shape (n_rows,), ≥ 0, or None
        The weight of a query in the mean is the mean weight of its rows. The ranking within a query
        is not weighted.
    convention : str
        See `get_metric`.
    per_query : bool
        If True, return the value of every query, in the order of their first rows, or of every
        comparison, instead of the mean.

    Returns
    -------
    dict
        For the name of every metric, a float, or an array of shape (n_queries,) if `per_query`.
        With several score vectors, the shape is (n_scores,) or (n_scores, n_queries). NaN marks
        queries for which the metric is undefined. The mean leaves them out, and is NaN if no query
        is left. For a table, `per_query` adds the ids of the queries, as "qid".

        For `Clicks`, and without `per_query`, there are four more numbers for every metric:
        "ips_dcg@10 standard error", over queries, NaN for a single one; "ips_dcg@10
        self-normalised", the mean divided by the mean of all clicks / propensities, which is at
        most the first discount and varies less; "ips_dcg@10 clipped", the share of clicked rows
        whose propensity is below the clip; and "ips_dcg@10 effective clicks", the number of equally
        weighted clicks that would be as noisy.

    Raises
    ------
    TypeError
        If `metrics` holds anything but names and metrics, for instance because the arguments are in
        the wrong order.
    ValueError
        If a name, a shape or a value is wrong, if there is no metric, if two metrics have the same
        name, or if a metric does not take a label. For a value, the message names the row.

    Examples
    --------
    >>> from pairgram.metrics import evaluate
    >>> y, score, qid = [1, 0, 0, 2], [0.9, 0.5, 0.7, 0.1], [1, 1, 2, 2]
    >>> evaluate(["map", "p@1", "misranking"], y, score, qid)
    {'map': 0.75, 'p@1': 0.5, 'misranking': 0.5}

    If the first query has another relevant document that was not retrieved:

    >>> evaluate(["map", "p@1"], [*y, 1], [*score, float("nan")], [*qid, 1])
    {'map': 0.5, 'p@1': 0.5}
    """
    others = {"qid": qid, "sample_weight": sample_weight}
    listed, judgements = listed_metrics(metrics, _ORDER), as_judgements(y)
    if judgements is not None:
        judgements.require_alone(others)
        if judgements.comparisons is not None:
            return judgements.comparisons.evaluate(listed, score, per_query)
    usual = convention == "default"
    of_name = named_metric if usual else partial(get_metric, convention=convention)
    wanted = [m if isinstance(m, Metric) else of_name(m) for m in listed]
    families = [FAMILIES[metric.family] for metric in wanted]
    of_lists = any(family.ranks and family.of_lists for family in families)
    stream = as_stream(y, **others)
    if stream is not None:
        return stream.evaluate(wanted, score, per_query=per_query, of_lists=of_lists)
    if qid is None and of_lists and np.ndim(y) == 1:  # type: ignore[arg-type]
        warn_of_missing_queries("evaluate", len(y), "one result list")  # type: ignore[arg-type]
    return evaluate_metrics(wanted, y, score, qid, sample_weight=sample_weight, per_query=per_query)


@lru_cache(32)
def named_metric(name: str) -> Metric:
    """Return a metric by its name; the last ones are remembered."""
    return get_metric(name)


def make_scorer(metric: str | Metric, convention: Convention = "default") -> RankingScorer:
    """Return a scorer for scikit-learn's cross-validation and searches; greater is better.

    Parameters
    ----------
    metric : str or Metric
        The metric. A loss (misranking, or a name that ends in error) is negated.
    convention : str
        The convention if `metric` is a name; see `get_metric`.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, *, qid=None, sample_weight=None) -> float``. It can be pickled.
        After ``sklearn.set_config(enable_metadata_routing=True)`` it requests qid and
        sample_weight; ``set_score_request`` changes this.
        Without qid, all rows are one query. This is an error if the estimator was fitted with qid
        (``uses_qid_``).

    Examples
    --------
    >>> from pairgram.metrics import make_scorer
    >>> from sklearn.linear_model import Ridge
    >>> X, y, qid = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0], [1, 1, 2, 2]
    >>> make_scorer("ndcg@10")(Ridge().fit(X, [1, 2, 3, 4]), X, y, qid=qid)
    0.8154648767857288
    """
    if not isinstance(metric, Metric):
        metric = get_metric(metric, convention)
    return RankingScorer(metric)
