"""`Metric`: a ranking metric with its options, its values in queries, and the metrics' names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from math import isfinite, nan
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

import pairgram._core as _core
from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Vector, not_finite
from pairgram._support.machine import thread_count
from pairgram._support.parameters import (
    POSITIVE,
    Setting,
    check_setting,
    check_size,
    choice,
    number,
)
from pairgram._support.row_warnings import warn_of_clicks, warn_of_threshold
from pairgram.data.judgements import as_judgements
from pairgram.data.queries import Queries, check_weights

Gain = Literal["exp2", "linear"]
Discount = Literal["log2", "letor"]
Ties = Literal["order", "average", "worst"]
Empty = float | Literal["skip"]
Divisor = Literal["relevant", "cut"]


class Family(NamedTuple):
    """The properties of all metrics of one name.

    Compiled code knows the metric by its name. `fixed` may give another name for it, and values of
    options that callers cannot choose. `in_runs` has other tools' names, which `evaluate_run`
    takes, and for which error messages suggest this metric.
    """

    cut: Literal["never", "optional", "always", "percent"]
    options: tuple[str, ...]
    labels: Literal["any", "gain", "grade"] = "any"
    scores: Literal["ordered", "finite"] = "ordered"
    greater_is_better: bool = True
    of_lists: bool = True  # if it ranks: meant for result lists, not for all rows as one list
    fixed: Mapping[str, str] = MappingProxyType({})
    in_runs: tuple[str, ...] = ()  # in trec_eval and ir_measures

    @property
    def ranks(self) -> bool:
        """Whether the metric looks at a ranking from its top; it then has a rule for ties."""
        return "ties" in self.options


_DCG = ("gain", "discount", "ties")
_HITS = ("relevant", "ties", "empty")
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "dcg": Family("optional", _DCG, "gain"),
        "ips_dcg": Family(
            "optional",
            ("discount", "ties", "clip"),
            "gain",
            fixed={"family": "dcg", "gain": "linear"},
        ),
        "ndcg": Family("optional", (*_DCG, "empty"), "gain", in_runs=("ndcg_cut", "nDCG")),
        "ndcg_linear": Family(
            "optional",
            ("discount", "ties", "empty"),
            "gain",
            fixed={"family": "ndcg", "gain": "linear"},
        ),
        "mean_ndcg": Family("never", (*_DCG, "empty"), "gain"),
        "map": Family(
            "optional",
            ("relevant", "ties", "empty", "divisor"),
            in_runs=("map_cut", "AP"),
        ),
        "p": Family("always", ("relevant", "ties"), in_runs=("P",)),
        "recall": Family("always", _HITS, in_runs=("recall", "R")),
        "rprec": Family("never", _HITS, in_runs=("Rprec",)),
        "hit_rate": Family("always", _HITS, in_runs=("success", "Success")),
        "mrr": Family(
            "optional",
            _HITS,
            in_runs=("recip_rank", "RR"),
        ),
        "rbp": Family("optional", ("relevant", "ties", "persistence"), in_runs=("RBP",)),
        "err": Family("optional", ("ties", "max_grade"), "grade"),
        "ef": Family("percent", _HITS, of_lists=False),
        "bedroc": Family("never", (*_HITS, "alpha"), of_lists=False),
        "auc": Family("never", ("relevant",), fixed={"ties": "average"}),
        "kendall": Family("never", ()),
        "spearman": Family("never", ()),
        "misranking": Family("never", (), greater_is_better=False),
        "pairwise_accuracy": Family("never", (), fixed={"family": "misranking"}),
        "ranking_error": Family("never", (), greater_is_better=False),
        "pearson": Family("never", (), scores="finite"),
        "pairwise_squared_error": Family(
            "never", (), scores="finite", greater_is_better=False, fixed={"family": "msd"}
        ),
        "pairwise_absolute_error": Family(
            "never", (), scores="finite", greater_is_better=False, fixed={"family": "m1d"}
        ),
    }
)
# The options: their values by default, and what values may be.
_OPTIONS: Mapping[str, tuple[Any, Setting]] = {
    "gain": ("exp2", choice(*get_args(Gain))),
    "discount": ("log2", choice(*get_args(Discount))),
    "ties": ("order", choice(*get_args(Ties))),
    "empty": (0.0, choice("skip", others="a finite number", fits=number().fits)),
    "relevant": (1.0, number()),
    "divisor": ("relevant", choice(*get_args(Divisor))),
    "max_grade": (None, Setting("None or a number from 0 to 1000", number(0, high=1000).fits)),
    "alpha": (
        20.0,
        Setting("a number > 0 of at most 500", number(0, above=True, high=500).fits),
    ),
    "clip": (0.0, Setting("a number from 0 to 1", number(0, high=1).fits)),
    "persistence": (
        0.8,
        Setting("a number between 0 and 1", lambda value: POSITIVE.fits(value) and value < 1),
    ),
}
_PERCENTAGE = number(0, above=True, high=100)
DEFAULT: Mapping[str, Any] = {name: default for name, (default, _) in _OPTIONS.items()}

_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "letor": {"discount": "letor"},
    "trec": {"gain": "linear"},
    "lightgbm": {"empty": 1.0, "divisor": "cut"},
}
_OTHER_NAMES = {other.lower(): name for name, one in FAMILIES.items() for other in one.in_runs}
_OTHER_NAMES |= {"precision": "p", "enrichment_factor": "ef", "ndcg_cut": "ndcg_linear"}
#: The named conventions. Each gives a value for every option. See `get_metric`.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType({**DEFAULT, **changes}) for name, changes in _CHANGES.items()}
)


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` takes.

    ``@k`` stands for a cut such as ``@10``, and ``@k%`` for a percentage such as ``@1%``.
    """
    return tuple(name for family in FAMILIES for name in _names_of(family))


def _names_of(family: str) -> list[str]:
    cut = FAMILIES[family].cut
    names = [family] if cut in ("never", "optional") else []
    return names if cut == "never" else [*names, f"{family}@k{'%' * (cut == 'percent')}"]


def is_loss(name: str) -> bool:
    """Tell whether less is better for a metric, by its name here or in another tool."""
    return name in FAMILIES and not FAMILIES[name].greater_is_better


def unknown_name(name: object) -> str:
    """Return the error message for an unknown name, with a suggestion if there is one."""
    words = re.findall("[a-z_]*[a-z]", str(name).lower())[:1]
    family = _OTHER_NAMES.get(words[0], words[0]) if words else ""
    close = get_close_matches(family, FAMILIES, n=1)
    meant = f", did you mean {' or '.join(_names_of(close[0]))}?" if close else "."
    return (
        f"unknown metric {name!r}{meant} The metrics are {', '.join(metric_names())}, k an integer "
        ">= 1, k% a percentage of at most 100 such as 0.5%; evaluate takes a list of them"
    )


# Gains are at most this, so that their sum over any list stays finite.
_LARGEST_GAIN = 2.0**1000
_LARGEST_EXPONENT = 1000.0
_NO_CUT = int(np.iinfo(np.intp).max)


class MetricSums(NamedTuple):
    """The mean of a metric over queries, and the squared differences from it.

    Attributes
    ----------
    weights, means, squares : ndarray of shape (n_models,), float64
    """

    weights: Vector
    means: Vector
    squares: Vector

    @classmethod
    def of(cls, values: Vector, weights: Vector) -> MetricSums:
        """Return the sums of values (n_models, n_queries); NaN where the metric is undefined."""
        means = np.nan_to_num(Metric.mean(values, weights))
        own = np.where(np.isnan(values), 0.0, weights)
        differences = np.nan_to_num(values - means[:, None])
        return cls(own.sum(axis=1), means, (own * differences**2).sum(axis=1))

    def join(self, other: MetricSums) -> MetricSums:
        """Return the sums of the queries of both, by Chan's formula."""
        total = self.weights + other.weights
        share = np.divide(other.weights, total, out=np.zeros_like(total), where=total > 0)
        difference = other.means - self.means
        return MetricSums(
            total,
            self.means + share * difference,
            self.squares + other.squares + self.weights * share * difference**2,
        )

    @property
    def defined(self) -> Vector:
        """The means, NaN where no query has a value."""
        return np.where(self.weights > 0, self.means, np.nan)

    @property
    def deviations(self) -> Vector:
        """The standard deviations over queries."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.squares / self.weights)


@dataclass(frozen=True, repr=False)
class Metric:
    """A ranking metric with all its options. `get_metric` makes one from a name.

    Parameters
    ----------
    family : str
        The name without its cut, such as ``"ndcg"`` or ``"map"``.
    k : int ≥ 1, float or None
        The cut: only the first k ranks count. None counts all ranks. For ``"ef"`` it is the
        percentage of the ranks that count, above 0 and at most 100.
    gain, discount, ties, empty, relevant, divisor, max_grade, alpha, persistence, clip
        See `get_metric`. None takes the value of the convention ``"default"``. An option that the
        family does not have must be None.

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
    k: float | None = None
    gain: Gain | None = None
    discount: Discount | None = None
    ties: Ties | None = None
    empty: Empty | None = None
    relevant: float | None = None
    divisor: Divisor | None = None
    max_grade: float | None = None
    alpha: float | None = None
    persistence: float | None = None
    clip: float | None = None

    def __post_init__(self) -> None:
        """Check the options and fill in the defaults."""
        family = FAMILIES.get(self.family)
        if family is None:
            raise ValueError(unknown_name(self.family))
        k: Any = self.k
        cut = family.cut
        if cut == "percent":
            if not _PERCENTAGE.fits(k):
                raise ValueError(unknown_name(self.family))
            k = float(k)
        elif k is not None:
            if cut == "never":
                raise ValueError(f"{self.family} takes no cut, got k={k!r}")
            k = check_size("k", k, 1, _NO_CUT)
        elif cut == "always":
            raise ValueError(f"{self.family} needs a cut, such as {self.family}@10")
        object.__setattr__(self, "k", k)
        for option in DEFAULT:
            value = getattr(self, option)
            if option not in family.options:
                if value is not None:
                    taken = ", ".join(family.options) or "none"
                    raise ValueError(
                        f"{self.family} takes no option {option!r} (got {value!r}); its options: "
                        f"{taken}"
                    )
                continue
            default, setting = _OPTIONS[option]
            if value is not None:
                value = check_setting(option, value, setting)
                value = float(value) if isinstance(value, Real) else value
            object.__setattr__(self, option, default if value is None else value)

    @property
    def name(self) -> str:
        """The name with its cut, such as ``"ndcg@10"`` or ``"ef@1%"``."""
        if self.k is None:
            return self.family
        percent = FAMILIES[self.family].cut == "percent"
        return f"{self.family}@{self.k:.15g}%" if percent else f"{self.family}@{self.k}"

    @property
    def greater_is_better(self) -> bool:
        """Whether greater is better: not for misranking and for names that end in error."""
        return FAMILIES[self.family].greater_is_better

    @property
    def reads_largest(self) -> bool:
        """Whether values depend on the largest label of the data set, the highest grade."""
        return FAMILIES[self.family].labels == "grade" and self.max_grade is None

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
        sample_weight: ArrayLike | None = None,
        per_query: bool = False,
    ) -> Any:
        """Return the mean over queries, or the value of every query.

        The parameters are those of `evaluate`, but `score` is a single vector of shape (n_rows,).
        For scikit-learn's ``scoring``, which is called with an estimator, use
        ``make_scorer(metric)``.

        Returns
        -------
        float, or ndarray of shape (n_queries,) if `per_query`
            NaN stands for a query for which the metric is undefined. The mean leaves it out.

        Raises
        ------
        TypeError
            If `y` is an estimator.
        ValueError
            As in `evaluate`.
        """
        if hasattr(y, "predict"):
            raise TypeError(
                f"a metric takes (y, score), got the estimator {type(y).__name__}: use "
                "make_scorer(metric) as scikit-learn's scoring"
            )
        if np.ndim(score) != 1:
            raise ValueError(f"score must have shape (n_rows,), got {np.shape(score)}")
        values = evaluate_metrics(
            (self,), y, score, qid, sample_weight=sample_weight, per_query=per_query
        )
        return values[self.name]

    def judged_labels(self, labels: Vector, clicks: Any) -> Vector:
        """Return the labels that the metric takes: clicks / propensities, clipped if it has a clip.

        Parameters
        ----------
        labels : ndarray of shape (n_rows,), float64
        clicks : Clicks or None
            What took the place of labels, if y was more than that.

        Raises
        ------
        ValueError
            If the metric has a clip and there are no clicks, or if there are clicks and it is no
            metric of clicks.
        """
        if clicks is None:
            if self.clip:
                text = f"must be Clicks(...) with the clip of {self!r}, got labels alone"
                raise ArgumentError("y", text)
            return labels
        self.require_clicks("metrics")
        return np.asarray(clicks.clipped(self.clip or 0.0))

    def require_clicks(self, name: str) -> None:
        """Raise a ValueError if this is no metric of clicks; `name` is that of the argument."""
        if self.family != "ips_dcg":
            raise ArgumentError(
                name,
                "must be of clicks, such as 'ips_dcg@10', which counts them 1 / propensity times: "
                f"{self.name!r} would judge by clicks with their bias",
            )

    def _label_range(self, n_rows: int) -> tuple[float, float]:
        """Return the smallest and the largest label of so many rows that the metric takes."""
        kind = FAMILIES[self.family].labels
        if kind == "any":
            largest = _largest(self.family, n_rows)
            return -largest, largest
        if kind == "grade":
            return 0.0, _LARGEST_EXPONENT if self.max_grade is None else self.max_grade
        return 0.0, _LARGEST_EXPONENT if self.gain == "exp2" else _LARGEST_GAIN

    @staticmethod
    def mean(per_query: Vector, weights: Vector | None = None) -> Vector:
        """Return the weighted mean over the last axis, leaving NaN out.

        Parameters
        ----------
        per_query : ndarray of shape (…, n_queries)
            The metric in every query; NaN where it is undefined.
        weights : ndarray of shape (n_queries,), ≥ 0, or None
            Weights of queries. None gives every query the weight 1.

        Returns
        -------
        ndarray of shape (…)
            NaN if there is no query with a value, or if all of them have weight 0.
        """
        defined = ~np.isnan(per_query)
        weight = defined.astype(np.float64) if weights is None else defined * weights
        total = weight.sum(axis=-1)
        sums = (np.where(defined, per_query, 0.0) * weight).sum(axis=-1)
        means = np.full(np.shape(total), nan)
        np.divide(sums, total, out=means, where=total > 0)
        return means


@lru_cache(maxsize=256)
def _compiled(
    metric: Metric, largest_label: float
) -> tuple[str, int, str, str, str, float, float, float, str, float]:
    """Return the options for `_core.evaluate_metrics`; unused ones have default values."""
    family = FAMILIES[metric.family]
    chosen = {**DEFAULT, "family": metric.family}
    for name in ("gain", "discount", "ties", "divisor"):
        value = getattr(metric, name)
        if value is not None:
            chosen[name] = value
    chosen |= family.fixed
    percent = family.cut == "percent"
    shape = metric.k if percent else metric.alpha or metric.persistence
    return (
        chosen["family"],
        _NO_CUT if percent or metric.k is None else int(metric.k),
        chosen["gain"],
        chosen["discount"],
        chosen["ties"],
        nan if metric.empty is None or metric.empty == "skip" else metric.empty,
        nan if metric.relevant is None else metric.relevant,
        largest_label if metric.max_grade is None else metric.max_grade,
        chosen["divisor"],
        0.0 if shape is None else shape,
    )


def listed_metrics(metrics: Any, hint: str) -> list[str | Metric]:
    """Return metrics as a list of at least one; errors end with the hint.

    A mapping or a frame is no list of metrics, since it is a run or labels in the wrong place.
    """
    if isinstance(metrics, (str, Metric)):
        return [metrics]
    is_list = isinstance(metrics, Iterable) and not isinstance(metrics, Mapping)
    listed = list(metrics) if is_list and not hasattr(metrics, "columns") else [metrics]
    if not listed:
        raise ValueError(f"metrics must name at least one metric, got none{hint}")
    if not all(isinstance(each, (str, Metric)) for each in listed):
        raise TypeError(
            "metrics must be a name such as 'ndcg@10', a Metric, or a list of them, got "
            f"{type(metrics).__name__}{hint}"
        )
    names = [each if isinstance(each, str) else each.name for each in listed]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"metrics must have distinct names, got {name!r} more than once")
    return listed


def evaluate_metrics(
    metrics: Sequence[Metric],
    y: Any,
    score: object,
    qid: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    per_query: bool = False,
) -> dict[str, Any]:
    """Do the work of `pairgram.metrics.evaluate` for `Metric` objects."""
    names = [metric.name for metric in metrics]
    judgements = as_judgements(y)
    labels = real_array(y, "y") if judgements is None else judgements.labels
    if labels.ndim != 1 or labels.size == 0:
        raise ArgumentError("y", f"must have shape (n_rows,) with n_rows >= 1, got {labels.shape}")
    scores = real_array(score, "score")
    if scores.ndim not in (1, 2) or scores.shape[-1] != labels.size:
        raise ValueError(
            f"score must have shape ({labels.size},) or (n_scores, {labels.size}) to go with y, "
            f"got {scores.shape}"
        )
    queries = Queries.make(labels.size, qid=qid)
    if per_query and sample_weight is not None:
        raise ValueError("sample_weight weighs queries in the mean: per_query=True takes none")
    weights = None if sample_weight is None else query_weights(sample_weight, queries)
    one_vector = scores.ndim == 1
    told: dict[str, Vector] = {}
    rows = np.atleast_2d(scores)
    if judgements is None:
        for metric in metrics:
            metric.judged_labels(labels, None)
        values = per_query_scores(metrics, labels, rows, queries, are_all=True)
    else:
        values, told = judgements.judged(metrics, rows, queries, weights)
    if one_vector:
        values = values[:, 0]
    if per_query:
        return dict(zip(names, values, strict=True))
    means = Metric.mean(values, weights)
    found = dict(zip(names, means.tolist() if one_vector else means, strict=True))
    for name, one in told.items():
        found[name] = one.item() if one.size == 1 and one_vector else one
    return found


def per_query_scores(
    metrics: Sequence[Metric], y: Vector, scores: Vector, queries: Queries, *, are_all: bool = False
) -> Vector:
    """Check labels and scores; return values of shape (n_metrics, n_scores, n_queries)."""
    largest = check_labels(metrics, y, are_all=are_all)
    if not all(FAMILIES[metric.family].ranks for metric in metrics) and scores.size:
        check_scores(metrics, scores)
    specs = [_compiled(metric, largest) for metric in metrics]
    values = _core.evaluate_metrics(
        y, scores, queries.offsets, queries.order, specs, thread_count()
    )
    for t, metric in enumerate(metrics):
        if metric.family == "pairwise_accuracy":
            np.subtract(1.0, values[t], out=values[t])
    return values


def _largest(family: str, n_rows: int) -> float:
    """Return the largest size of labels and scores for which the sums of a metric stay finite."""
    most = float(np.finfo(np.float64).max) / max(1, n_rows)
    if family == "pairwise_squared_error":
        return float(np.sqrt(most / 32))
    if family in ("pairwise_absolute_error", "ranking_error"):
        return most / max(1, n_rows) / 8
    return most / 4 if family == "pearson" else np.inf


def warn_of_relevant(
    metrics: Sequence[Metric], smallest: float, largest: float, n_rows: int
) -> None:
    """Warn of metrics for which all labels of a data set count as relevant, though they differ.

    Warn of those of clicks as well if no click was divided by a propensity.
    """
    for metric in metrics:
        if metric.family == "ips_dcg":
            warn_of_clicks(metric.name, smallest, largest, n_rows)
        if metric.relevant is not None:
            warn_of_threshold(metric.name, metric.relevant, smallest, largest, n_rows)


def check_labels(metrics: Sequence[Metric], y: Vector, *, are_all: bool = False) -> float:
    """Raise a ValueError for labels that a metric cannot take; return the largest label.

    If these are all labels of a data set, `warn_of_relevant` looks at them.
    """
    smallest, largest = (float(y.min()), float(y.max())) if y.size else (0.0, 0.0)
    if not (isfinite(smallest) and isfinite(largest)) and (row := not_finite(y)) is not None:
        raise ArgumentError("y", f"must be finite, got {y[row]} in {{place}}", row=row)
    if are_all:
        warn_of_relevant(metrics, smallest, largest, len(y))
    for metric in metrics:
        least, most = metric._label_range(len(y))
        whole = FAMILIES[metric.family].labels == "grade"
        if smallest < least or largest > most or (whole and (y != np.floor(y)).any()):
            row = int(np.argmax((y < least) | (y > most) | (whole & (y != np.floor(y)))))
            raise ArgumentError(
                "y",
                f"{metric.name} takes {'integer ' * whole}labels from {least:g} to {most:g}, got "
                f"{{argument}} = {y[row]:g} in {{place}}; kendall and pairwise_accuracy take any "
                "real labels",
                row=row,
            )
    return largest


def check_scores(metrics: Sequence[Metric], scores: Vector) -> None:
    """Raise a ValueError for NaN, and for infinity if a metric needs finite scores.

    Metrics that rank take NaN, a document that was not retrieved, and one of these does not rank.
    """
    smallest, largest = float(scores.min()), float(scores.max())  # NaN if there is one
    for metric in metrics:
        family, most = FAMILIES[metric.family], np.inf
        if family.scores == "finite":
            most = _largest(metric.family, scores.shape[1])
        if family.ranks or (smallest >= -most and largest <= most):
            continue
        which, row = divmod(int(np.argmax(~(np.abs(scores) <= most))), scores.shape[1])
        where = f"row {row}" if len(scores) == 1 else f"row {row} of score vector {which}"
        wanted = "a number" if most == np.inf else f"at most {most:.1e} in size"
        text = f"score must be {wanted} for {metric.name}, got {scores[which, row]} in {where}"
        raise ValueError(text)


def query_weights(sample_weight: ArrayLike, queries: Queries) -> Vector:
    """Return the mean weight of the rows of every query."""
    weights = queries.grouped(check_weights(sample_weight, queries.n_rows, "sample_weight"))
    # A mean depends only on ratios of weights. Scaling keeps huge and tiny weights in range.
    weights = np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1]))
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    sums = np.bincount(query, weights=weights, minlength=queries.n_queries)
    return sums / np.maximum(queries.sizes, 1)
