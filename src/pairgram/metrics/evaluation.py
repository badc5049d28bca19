"""Ranking metrics of every query and their mean, under named conventions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.checks import check_text
from pairgram._support.words import Convention
from pairgram.metrics.metric import Metric, evaluate_metrics
from pairgram.metrics.options import (
    CONVENTIONS,
    FAMILIES,
    Discount,
    Divisor,
    Empty,
    Gain,
    Ties,
    metric_names,
    unknown_name,
)
from pairgram.metrics.scorer import RankingScorer
from pairgram.preferences.queries import warn_of_missing_queries

__all__ = ["CONVENTIONS", "Metric", "evaluate", "get_metric", "make_scorer", "metric_names"]


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
) -> Metric:
    r"""Return the metric of a name, with the options of a convention and your changes to them.

    Parameters
    ----------
    name : str
        One of `metric_names`, such as ``"ndcg@10"``; see Notes.
    convention : {"default", "letor", "trec", "lightgbm", "sklearn"}
        Values of all options below (`CONVENTIONS`):

        ============  =======  =========  =========  =====  ==========
        convention    gain     discount   ties       empty  divisor
        ============  =======  =========  =========  =====  ==========
        default       exp2     log2       order      0      relevant
        letor         exp2     letor      order      0      relevant
        trec          linear   log2       order      0      relevant
        lightgbm      exp2     log2       order      1      cut
        sklearn       linear   log2       average    0      relevant
        ============  =======  =========  =========  =====  ==========

    gain : {"exp2", "linear"}
        What a document of label y adds: ``2**y - 1`` or y.
    discount : {"log2", "letor"}
        Weight of rank i = 1, 2, …: ``1 / log2(1 + i)``; or 1, 1, then ``1 / log2(i)``.
    ties : {"order", "average", "worst"}
        Documents with equal scores (0.0 equals -0.0) stand in the order of their rows; or the
        metric is its exact mean over all orders of them; or the lowest label stands first. For
        kendall, spearman, misranking, pairwise_accuracy, ranking_error a tie is part of the
        definition; pearson, msd and m1d know none.
    empty : float or "skip"
        What a query without relevant documents (ideal DCG 0, or no label ≥ `relevant`) counts as;
        "skip" makes it NaN, which means leave out. For ndcg, mean_ndcg, map, recall and mrr; the
        others are defined for such a query (dcg, p and err are 0).
    relevant : float
        Labels ≥ this are relevant (map, p, recall, mrr); 1 in every convention.
    divisor : {"relevant", "cut"}
        map@k is divided by the number R of relevant documents, or by min(k, R).
    max_grade : float or None
        The highest label there can be, for err. None: the highest in `y`, so name it where results
        on different data are to be compared.

    Returns
    -------
    Metric

    Raises
    ------
    ValueError
        If a name, convention or value is unknown or the metric does not take the option.

    Notes
    -----
    With documents ranked by descending score, n in the query, g the gain, d the discount, and rel_i
    = 1 where the document at rank i is relevant, R of them in all:

    ==================  =============================================================  =========
    name                value in a query                                               range
    ==================  =============================================================  =========
    dcg@k               Σ_{i≤k} g_i d_i                                                [0, ∞)
    ndcg@k              dcg@k / its highest possible value [1]_                        [0, 1]
    mean_ndcg           mean of ndcg@i over i = 1…n [2]_                               [0, 1]
    map@k               (1/R) Σ_{i≤k} rel_i (p@i), average precision                   [0, 1]
    p@k                 (1/k) Σ_{i≤k} rel_i, also where n < k                          [0, 1]
    recall@k            (1/R) Σ_{i≤k} rel_i                                            [0, 1]
    mrr@k               1 / rank of the first relevant document, 0 after k             [0, 1]
    err@k               Σ_{i≤k} (1/i) R_i Π_{j<i} (1 - R_j), R = (2^y - 1)/2^max [3]_  [0, 1)
    kendall             tau b: (conc. - disc.) / sqrt(pairs untied in y · in score)    [-1, 1]
    spearman            correlation of the ranks; tied values share their mean rank    [-1, 1]
    pearson             correlation of y and f                                         [-1, 1]
    misranking          fraction of pairs y_i ≠ y_j in wrong order, tied score = ½     [0, 1]
    pairwise_accuracy   1 - misranking                                                 [0, 1]
    ranking_error       mean over pairs i < j of abs(y_i - y_j) · (wrong order: 1,     [0, ∞)
                        tied score: ½, right order: 0) [6]_
    msd                 (1/n²) Σ_ij ((y_i - y_j) - (f_i - f_j))² [4]_                  [0, ∞)
    m1d                 (1/n²) Σ_ij abs((y_i - y_j) - (f_i - f_j))                     [0, ∞)
    ==================  =============================================================  =========

    The mean of ranking_error is over all n(n - 1)/2 pairs; those with equal labels add 0.

    The sums of msd and m1d run over all ordered pairs and divide by n², as the paper does for msd
    (it names m1d without a formula); over the pairs i < j alone both are n / (n - 1) times that.

    Undefined (NaN, left out of the mean): kendall, spearman and pearson where labels or scores are
    constant; misranking and pairwise_accuracy where labels are; ranking_error, msd and m1d for
    fewer than two documents; every metric for a query without rows.

    ndcg, mean_ndcg, dcg and err need labels ≥ 0 (err: integers); the others take any finite label,
    of a size that leaves sums over all rows finite: for msd up to about 1e150. So do the scores
    that pearson, m1d and msd take.

    A list shorter than k counts as padded with irrelevant documents, in every convention. The
    published results on MQ2007 and MQ2008 of LETOR 4.0 count NDCG@k as 0 for a list shorter than
    k, which no convention here does: they are not comparable.

    trec_eval breaks ties by descending document name, which rows do not have; with its order of
    rows within ties, "trec" gives its numbers (labels ≥ 0). "sklearn" gives those of ``ndcg_score``
    and ``dcg_score``.

    Cost for each query and score vector: O(n log n), O(n) for a cut up to 64 without averaged ties;
    err with averaged ties O(t min(t, k)) for t tied documents.

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

    Examples
    --------
    >>> from pairgram.metrics import get_metric
    >>> get_metric("ndcg@10", "letor", ties="worst")([2, 1], [0.5, 0.5])
    1.0
    >>> get_metric("p@3")([2, 1, 0], [3, 2, 1])
    0.6666666666666666
    """
    preset = CONVENTIONS[check_text("convention", convention, CONVENTIONS)]
    text = name if isinstance(name, str) else ""
    match = re.fullmatch(r"([a-z0-9_]+)(?:@([1-9][0-9]{0,18}))?", text)
    if match is None or match[1] not in FAMILIES:
        raise ValueError(unknown_name(name))
    changes = {
        "gain": gain,
        "discount": discount,
        "ties": ties,
        "empty": empty,
        "relevant": relevant,
        "divisor": divisor,
        "max_grade": max_grade,
    }
    taken = FAMILIES[match[1]].options
    options = {option: preset[option] for option in taken}
    options.update({option: value for option, value in changes.items() if value is not None})
    return Metric(match[1], int(match[2]) if match[2] else None, **options)


def evaluate(
    metrics: str | Metric | Iterable[str | Metric],
    y: ArrayLike,
    score: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    convention: Convention = "default",
    per_query: bool = False,
    n_threads: int | None = None,
) -> dict[str, Any]:
    """Return several metrics from one ranking of every query.

    Parameters
    ----------
    metrics : str, Metric, or iterable of them
        Names follow `convention`; a `Metric` brings its own.
    y : array-like of shape (n_rows,), finite
        Labels: the higher, the more relevant.
    score : array-like of shape (n_rows,) or (n_scores, n_rows), not NaN
        Predictions, several of which can be evaluated against the same labels. float64 and
        C-contiguous arrays are used as they are, others are copied to float64.
    qid : array-like of shape (n_rows,) or None
        Rows with equal ids form a query, wherever they stand. None with `group` None: one query,
        of which a `MissingQueryWarning` warns for more than 1,000 rows and a metric of the order
        of a result list: all but kendall, spearman, pearson, msd, m1d and those of pairs, which
        are measured on all rows too.
    group : array-like of shape (n_queries,) of int, or None
        Sizes of the queries instead, whose rows stand together.
    sample_weight : array-like of shape (n_rows,), ≥ 0, or None
        A query weighs in the mean as much as its rows do on average. Rankings are not weighted.
    convention : str
        See `get_metric`.
    per_query : bool
        Return the value of every query, in the order of their first rows, instead of the mean.
    n_threads : int ≥ 1 or None
        None: all CPUs of the process. Results have the same bits for any number.

    Returns
    -------
    dict
        Under the name of every metric a float, or an array of shape (n_queries,) where
        `per_query`; with several score vectors of shape (n_scores,) or (n_scores, n_queries).
        NaN marks queries in which the metric is undefined; the mean leaves them out, and is NaN
        where no query is left.

    Raises
    ------
    TypeError
        If `metrics` holds anything but names and metrics, as where the arguments are in another
        order.
    ValueError
        If a name, shape or value is wrong; if there is no metric or two share a name; if a label
        is not one that a metric takes; names the row.

    Examples
    --------
    >>> from pairgram.metrics import evaluate
    >>> y, score, qid = [1, 0, 0, 2], [0.9, 0.5, 0.7, 0.1], [1, 1, 2, 2]
    >>> evaluate(["map", "p@1", "misranking"], y, score, qid)
    {'map': 0.75, 'p@1': 0.5, 'misranking': 0.5}
    """
    wanted = [
        m if isinstance(m, Metric) else get_metric(m, convention) for m in _metric_list(metrics)
    ]
    if qid is None and group is None:
        # A metric that ranks documents has a rule for ties.
        of_lists = any("ties" in FAMILIES[metric.family].options for metric in wanted)
        if of_lists and np.ndim(y) == 1:
            warn_of_missing_queries("evaluate", len(np.asarray(y)), "one result list")
    return evaluate_metrics(
        wanted,
        y,
        score,
        qid,
        group=group,
        sample_weight=sample_weight,
        per_query=per_query,
        n_threads=n_threads,
    )


def _metric_list(metrics: Any) -> list[str | Metric]:
    """Return the metrics as a list of at least one; refuse labels and scores in their place."""
    if isinstance(metrics, (str, Metric)):
        return [metrics]
    wanted = list(metrics) if isinstance(metrics, Iterable) else [metrics]
    if not wanted:
        raise ValueError("metrics must name at least one metric, got none")
    wrong = [m for m in wanted if not isinstance(m, (str, Metric))]
    if wrong:
        found = type(wrong[0]).__name__
        if isinstance(metrics, Iterable):
            found = f"{type(metrics).__name__} of {found}"
        raise TypeError(
            "metrics, the first argument, must be a name such as 'ndcg@10', a Metric, or a list "
            f"of them, got {found}; the order is evaluate(metrics, y, score, qid)"
        )
    return wanted


def make_scorer(
    metric: str | Metric, convention: Convention = "default", *, n_threads: int | None = None
) -> RankingScorer:
    """Return a scorer for scikit-learn's cross-validation and search, the greater the better.

    Parameters
    ----------
    metric : str or Metric
        A loss (misranking, ranking_error, msd, m1d) is negated.
    convention : str
        Of a name, see `get_metric`.
    n_threads : int ≥ 1 or None
        None: all CPUs of the process.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, *, qid=None, sample_weight=None) -> float``. Can be pickled. Under
        ``sklearn.set_config(enable_metadata_routing=True)`` it requests qid and sample_weight
        (``set_score_request`` changes that). Without qid all rows are one query; if the
        estimator was fitted with qid (``uses_qid_``), that is an error.

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
    return RankingScorer(metric, n_threads)
