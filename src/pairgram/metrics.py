"""Ranking metrics of every query and their mean, under named conventions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import isfinite, nan
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairgram import _core
from pairgram._scorer import RankingScorer
from pairgram._threads import resolve_n_threads
from pairgram.queries import Queries, check_weights

__all__ = ["CONVENTIONS", "Metric", "evaluate", "get_metric", "make_scorer", "metric_names"]

Gain = Literal["exp2", "linear"]
Discount = Literal["log2", "letor"]
Ties = Literal["order", "average", "worst"]
Empty = float | Literal["skip"]
Divisor = Literal["relevant", "cut"]


class _Family(NamedTuple):
    """What metrics of one name have in common."""

    code: int  # MetricKind in metrics.hpp
    cut: Literal["never", "optional", "always"]
    options: tuple[str, ...]
    labels: Literal["any", "gain", "grade"] = "any"
    greater_is_better: bool = True


_DCG = ("gain", "discount", "ties")
_FAMILIES: Mapping[str, _Family] = MappingProxyType(
    {
        "dcg": _Family(0, "optional", _DCG, "gain"),
        "ndcg": _Family(1, "optional", (*_DCG, "empty"), "gain"),
        "mean_ndcg": _Family(2, "never", (*_DCG, "empty"), "gain"),
        "map": _Family(3, "optional", ("relevant", "ties", "empty", "divisor")),
        "p": _Family(4, "always", ("relevant", "ties")),
        "recall": _Family(5, "always", ("relevant", "ties", "empty")),
        "mrr": _Family(6, "optional", ("relevant", "ties", "empty")),
        "err": _Family(7, "optional", ("ties", "max_grade"), "grade"),
        "kendall": _Family(8, "never", ()),
        "spearman": _Family(9, "never", ()),
        "misranking": _Family(10, "never", (), greater_is_better=False),
        "pairwise_accuracy": _Family(10, "never", ()),
        "msd": _Family(11, "never", (), greater_is_better=False),
        "m1d": _Family(12, "never", (), greater_is_better=False),
    }
)
_CODES: Mapping[str, Mapping[str, int]] = {
    "gain": {"exp2": 0, "linear": 1},
    "discount": {"log2": 0, "letor": 1},
    "ties": {"order": 0, "average": 1, "worst": 2},
    "divisor": {"relevant": 0, "cut": 1},
}
_DEFAULT: Mapping[str, Any] = {
    "gain": "exp2",
    "discount": "log2",
    "ties": "order",
    "empty": 0.0,
    "relevant": 1.0,
    "divisor": "relevant",
    "max_grade": None,
}

_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "letor": {"discount": "letor"},
    "trec": {"gain": "linear"},
    "lightgbm": {"empty": 1.0, "divisor": "cut"},
    "sklearn": {"gain": "linear", "ties": "average"},
}
#: The named conventions: each is a value for every option, nothing else. See `get_metric`.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType({**_DEFAULT, **changes}) for name, changes in _CHANGES.items()}
)
_LARGEST_GAIN = 2.0**1000  # sums of gains over any list stay finite
_NO_CUT = int(np.iinfo(np.intp).max)


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` takes; ``@k`` stands for a cut such as ``@10``."""
    names = []
    for family, properties in _FAMILIES.items():
        if properties.cut != "always":
            names.append(family)
        if properties.cut != "never":
            names.append(f"{family}@k")
    return tuple(names)


@dataclass(frozen=True, repr=False)
class Metric:
    """A ranking metric with every convention settled; `get_metric` makes one from a name.

    Parameters
    ----------
    family : str
        The name without its cut: ``"ndcg"``, ``"map"``, …
    k : int ≥ 1 or None
        Only the first k ranks count; None: all.
    gain, discount, ties, empty, relevant, divisor, max_grade
        See `get_metric`. None takes the value of the convention ``"default"``; an option that the
        family does not have must be None and stays so.

    Raises
    ------
    ValueError
        If a name, a cut or an option is not one of those that the family takes.

    Examples
    --------
    >>> from pairgram.metrics import get_metric
    >>> metric = get_metric("ndcg@2")
    >>> metric([0, 1, 0, 2], [0.9, 0.5, 0.1, 0.7], qid=["a", "a", "b", "b"], per_query=True)
    array([0.63092975, 1.        ])
    >>> metric.name, metric.greater_is_better
    ('ndcg@2', True)
    """

    family: str
    k: int | None = None
    gain: Gain | None = None
    discount: Discount | None = None
    ties: Ties | None = None
    empty: Empty | None = None
    relevant: float | None = None
    divisor: Divisor | None = None
    max_grade: float | None = None

    def __post_init__(self) -> None:
        """Check the options and fill in the defaults."""
        family = _FAMILIES.get(self.family)
        if family is None:
            raise ValueError(_unknown_name(self.family))
        if self.k is None and family.cut == "always":
            raise ValueError(f"{self.family} needs a cut, such as {self.family}@10")
        if self.k is not None:
            if family.cut == "never":
                raise ValueError(f"{self.family} takes no cut, got k={self.k!r}")
            if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
                raise ValueError(f"k must be None or an integer >= 1, got {self.k!r}")
            object.__setattr__(self, "k", min(int(self.k), _NO_CUT))
        for option, default in _DEFAULT.items():
            value = getattr(self, option)
            if option not in family.options:
                if value is not None:
                    taken = ", ".join(family.options) or "none"
                    raise ValueError(
                        f"{self.family} takes no option {option!r} (got {value!r}); its options: "
                        f"{taken}"
                    )
                continue
            object.__setattr__(self, option, _check_option(option, default, value))

    @property
    def name(self) -> str:
        """The name with its cut, such as ``"ndcg@10"``."""
        return self.family if self.k is None else f"{self.family}@{self.k}"

    @property
    def greater_is_better(self) -> bool:
        """False for losses: misranking, msd, m1d."""
        return _FAMILIES[self.family].greater_is_better

    def __repr__(self) -> str:
        """Return the call that makes this metric."""
        options = [
            f", {field.name}={value!r}"
            for field in fields(self)[2:]
            if (value := getattr(self, field.name)) is not None
        ]
        return f"get_metric({self.name!r}{''.join(options)})"

    def __call__(
        self,
        y: ArrayLike,
        score: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        per_query: bool = False,
        n_threads: int | None = None,
    ) -> float | NDArray[np.float64]:
        """Return the mean over queries, or the value of every query.

        Parameters are those of `evaluate`; `score` is one vector, of shape (n_rows,).

        Returns
        -------
        float, or ndarray of shape (n_queries,) where `per_query`
            NaN stands for a query in which the metric is undefined; the mean leaves it out.
        """
        if np.ndim(score) != 1:
            raise ValueError(f"score must have shape (n_rows,), got {np.shape(score)}")
        values: dict[str, float | NDArray[np.float64]] = evaluate(
            self,
            y,
            score,
            qid,
            group=group,
            sample_weight=sample_weight,
            per_query=per_query,
            n_threads=n_threads,
        )
        return values[self.name]

    def per_query_scores(
        self,
        y: NDArray[np.float64],
        scores: NDArray[np.float64],
        queries: Queries,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Return the metric of every score vector in every query, without conversions.

        Parameters
        ----------
        y : ndarray of shape (n_rows,), float64, C-contiguous
            Labels in the caller's row order.
        scores : ndarray of shape (n_scores, n_rows), float64, C-contiguous
            In the caller's row order too.
        queries : Queries
            Of these n_rows rows.
        n_threads : int ≥ 1 or None
            None: all CPUs of the process.

        Returns
        -------
        ndarray of shape (n_scores, n_queries)
        """
        values: NDArray[np.float64] = _per_query_scores((self,), y, scores, queries, n_threads)[0]
        return values

    @staticmethod
    def mean(
        per_query: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the weighted mean over the last axis that leaves NaN out.

        Parameters
        ----------
        per_query : ndarray of shape (…, n_queries)
            As `per_query_scores` returns them.
        weights : ndarray of shape (n_queries,), ≥ 0, or None
            None: every query counts 1.

        Returns
        -------
        ndarray of shape (…)
            NaN where the queries with a value have no weight or there are none.
        """
        defined = ~np.isnan(per_query)
        weight = defined.astype(np.float64) if weights is None else defined * weights
        total = weight.sum(axis=-1)
        sums = (np.where(defined, per_query, 0.0) * weight).sum(axis=-1)
        means: NDArray[np.float64] = np.full(np.shape(total), nan)
        np.divide(sums, total, out=means, where=total > 0)
        return means

    def _spec(
        self, largest_label: float
    ) -> tuple[int, int, int, int, int, float, float, float, bool]:
        """Return what _core.evaluate_metrics takes."""

        def code(option: str) -> int:
            return _CODES[option].get(getattr(self, option), 0)

        max_grade = largest_label if self.max_grade is None else self.max_grade
        return (
            _FAMILIES[self.family].code,
            self.k or _NO_CUT,
            code("gain"),
            code("discount"),
            code("ties"),
            nan if self.empty is None or self.empty == "skip" else self.empty,
            nan if self.relevant is None else self.relevant,
            max_grade,
            self.divisor == "cut",
        )


def get_metric(
    name: str,
    convention: str = "default",
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
        kendall, spearman, misranking, pairwise_accuracy a tie is part of the definition; msd and
        m1d know none.
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
    misranking          fraction of pairs y_i ≠ y_j in wrong order, tied score = ½     [0, 1]
    pairwise_accuracy   1 - misranking                                                 [0, 1]
    msd                 (1/n²) Σ_ij ((y_i - y_j) - (f_i - f_j))² [4]_                  [0, ∞)
    m1d                 (1/n²) Σ_ij abs((y_i - y_j) - (f_i - f_j))                     [0, ∞)
    ==================  =============================================================  =========

    The sums of msd and m1d run over all ordered pairs and divide by n², as the paper does for msd
    (it names m1d without a formula); over the pairs i < j alone both are n / (n - 1) times that.

    Undefined (NaN, left out of the mean): kendall and spearman where labels or scores are constant;
    misranking and pairwise_accuracy where labels are; msd and m1d for fewer than two documents;
    every metric for a query without rows.

    ndcg, mean_ndcg, dcg and err need labels ≥ 0 (err: integers); the others take any finite label.

    A list shorter than k counts as padded with irrelevant documents, in every convention.
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

    Examples
    --------
    >>> from pairgram.metrics import get_metric
    >>> get_metric("ndcg@10", "letor", ties="worst")([2, 1], [0.5, 0.5])
    1.0
    >>> get_metric("p@3")([2, 1, 0], [3, 2, 1])
    0.6666666666666666
    """
    preset = CONVENTIONS.get(convention)
    if preset is None:
        known = ", ".join(map(repr, CONVENTIONS))
        raise ValueError(f"convention must be one of {known}, got {convention!r}")
    match = (
        re.fullmatch(r"([a-z0-9_]+)(?:@([1-9][0-9]*))?", name) if isinstance(name, str) else None
    )
    if match is None or match[1] not in _FAMILIES:
        raise ValueError(_unknown_name(name))
    changes = {
        "gain": gain,
        "discount": discount,
        "ties": ties,
        "empty": empty,
        "relevant": relevant,
        "divisor": divisor,
        "max_grade": max_grade,
    }
    taken = _FAMILIES[match[1]].options
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
    convention: str = "default",
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
        Rows with equal ids form a query, wherever they stand. None with `group` None: one query.
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
    ValueError
        If a name, shape or value is wrong; if two metrics share a name; if a label is not one that
        a metric takes; names the row.

    Examples
    --------
    >>> from pairgram.metrics import evaluate
    >>> y, score, qid = [1, 0, 0, 2], [0.9, 0.5, 0.7, 0.1], [1, 1, 2, 2]
    >>> evaluate(["map", "p@1", "misranking"], y, score, qid)
    {'map': 0.75, 'p@1': 0.5, 'misranking': 0.5}
    """
    if isinstance(metrics, (str, Metric)):
        metrics = (metrics,)
    wanted = [m if isinstance(m, Metric) else get_metric(m, convention) for m in metrics]
    names = [metric.name for metric in wanted]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"metrics must have distinct names, got {name!r} more than once")
    labels = _as_float64(y, "y")
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"y must have shape (n_rows,) with n_rows >= 1, got {labels.shape}")
    scores = _as_float64(score, "score")
    if scores.ndim not in (1, 2) or scores.shape[-1] != labels.size:
        raise ValueError(
            f"score must have shape ({labels.size},) or (n_scores, {labels.size}) to go with y, "
            f"got {scores.shape}"
        )
    queries = Queries.make(labels.size, qid=qid, group=group)
    if per_query and sample_weight is not None:
        raise ValueError("sample_weight weighs queries in the mean: per_query=True takes none")
    weights = None if sample_weight is None else _query_weights(sample_weight, queries)
    values = _per_query_scores(
        wanted, labels, np.atleast_2d(scores), queries, resolve_n_threads(n_threads)
    )
    if scores.ndim == 1:
        values = values[:, 0]
    if per_query:
        return dict(zip(names, values, strict=True))
    means = Metric.mean(values, weights)
    return dict(zip(names, means.tolist() if scores.ndim == 1 else means, strict=True))


def make_scorer(
    metric: str | Metric, convention: str = "default", *, n_threads: int | None = None
) -> RankingScorer:
    """Return a scorer for scikit-learn's cross-validation and search, the greater the better.

    Parameters
    ----------
    metric : str or Metric
        A loss (misranking, msd, m1d) is negated.
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


def _per_query_scores(
    metrics: Iterable[Metric],
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    queries: Queries,
    n_threads: int | None,
) -> NDArray[np.float64]:
    """Check the values; return shape (n_metrics, n_scores, n_queries)."""
    metrics = tuple(metrics)
    largest = _check_labels(metrics, y)
    _check_scores(metrics, scores)
    specs = [metric._spec(largest) for metric in metrics]
    values = _core.evaluate_metrics(
        y, scores, queries.offsets, queries.order, specs, resolve_n_threads(n_threads)
    )
    for t, metric in enumerate(metrics):
        if metric.family == "pairwise_accuracy":
            np.subtract(1.0, values[t], out=values[t])
    return values


def _check_labels(metrics: tuple[Metric, ...], y: NDArray[np.float64]) -> float:
    """Refuse labels that a metric cannot take; return the largest."""
    smallest, largest = (float(y.min()), float(y.max())) if y.size else (0.0, 0.0)
    if not (isfinite(smallest) and isfinite(largest)):
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(f"y must be finite, got {y[row]} in row {row}")
    for metric in metrics:
        kind = _FAMILIES[metric.family].labels
        if kind == "any":
            continue
        if smallest < 0:
            raise ValueError(_bad_label(metric, y, y < 0, "labels >= 0"))
        exponential = kind == "grade" or metric.gain == "exp2"
        limit = 1000.0 if exponential else _LARGEST_GAIN
        if largest > limit:
            reason = "2**y overflows" if exponential else "sums overflow"
            raise ValueError(_bad_label(metric, y, y > limit, f"labels <= {limit:g} ({reason})"))
        if kind == "grade":
            if (y != np.floor(y)).any():
                raise ValueError(_bad_label(metric, y, y != np.floor(y), "integer labels"))
            if metric.max_grade is not None and largest > metric.max_grade:
                wanted = f"labels <= max_grade = {metric.max_grade:g}"
                raise ValueError(_bad_label(metric, y, y > metric.max_grade, wanted))
    return largest


def _bad_label(metric: Metric, y: NDArray[np.float64], bad: NDArray[np.bool_], wanted: str) -> str:
    row = int(np.argmax(bad))
    free = ", ".join(
        name for name, f in _FAMILIES.items() if f.labels == "any" and "relevant" not in f.options
    )
    return (
        f"{metric.name} takes {wanted}, got y = {y[row]:g} in row {row}; metrics for any real "
        f"labels: {free}"
    )


def _check_scores(metrics: tuple[Metric, ...], scores: NDArray[np.float64]) -> None:
    """Refuse NaN, and for metrics of differences infinities."""
    if scores.size == 0:
        return
    wants_finite = [metric.name for metric in metrics if metric.family in ("msd", "m1d")]
    smallest = float(scores.min())  # NaN if there is one
    if smallest == smallest and not wants_finite:
        return
    if isfinite(smallest) and isfinite(float(scores.max())):
        return
    bad = ~np.isfinite(scores) if wants_finite else np.isnan(scores)
    if not bad.any():
        return
    which, row = divmod(int(np.argmax(bad)), scores.shape[1])
    where = f"row {row}" if scores.shape[0] == 1 else f"row {row} of score vector {which}"
    wanted = f"finite for {wants_finite[0]}" if wants_finite else "a number"
    raise ValueError(f"score must be {wanted}, got {scores[which, row]} in {where}")


def _check_option(option: str, default: Any, value: Any) -> Any:
    """Return a checked option, the default for None."""
    if value is None:
        return default
    if option in _CODES:
        if value not in _CODES[option]:
            known = ", ".join(map(repr, _CODES[option]))
            raise ValueError(f"{option} must be one of {known}, got {value!r}")
        return value
    if option == "empty" and value == "skip":
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number) or (option == "max_grade" and not 0 <= number <= 1000):
        wanted = {
            "empty": "a finite number or 'skip'",
            "relevant": "a finite number",
            "max_grade": "None or a number from 0 to 1000",
        }[option]
        raise ValueError(f"{option} must be {wanted}, got {value!r}")
    return number


def _unknown_name(name: object) -> str:
    return (
        f"unknown metric {name!r}; the metrics are {', '.join(metric_names())}, k an integer >= 1"
    )


def _as_float64(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "biufO":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}")
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be real numbers: {error}") from None


def _query_weights(sample_weight: ArrayLike, queries: Queries) -> NDArray[np.float64]:
    """Return the mean weight of the rows of every query."""
    weights = queries.grouped(check_weights(sample_weight, queries.n_rows, "sample_weight"))
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    sums = np.bincount(query, weights=weights, minlength=queries.n_queries)
    return sums / np.maximum(queries.sizes, 1)
