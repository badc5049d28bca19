"""`Metric`: a ranking metric with its options, its values in queries, and the metrics' names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from math import isfinite, nan
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

import pairgram._core as _core
from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Vector, not_finite
from pairgram._support.machine import thread_count
from pairgram._support.parameters import Setting, check_setting, choice, number
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
    takes. `aliases` has other names that error messages suggest this metric for.
    """

    cut: Literal["never", "optional", "always", "percent"]
    options: tuple[str, ...]
    labels: Literal["any", "gain", "grade"] = "any"
    scores: Literal["ordered", "finite"] = "ordered"
    greater_is_better: bool = True
    of_lists: bool = True  # if it ranks: meant for result lists, not for all rows as one list
    fixed: Mapping[str, str] = MappingProxyType({})
    aliases: tuple[str, ...] = ()
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
            aliases=("ndcg_cut",),
        ),
        "mean_ndcg": Family("never", (*_DCG, "empty"), "gain"),
        "map": Family(
            "optional",
            ("relevant", "ties", "empty", "divisor"),
            aliases=("ap", "average_precision"),
            in_runs=("map_cut", "AP"),
        ),
        "p": Family("always", ("relevant", "ties"), aliases=("precision",), in_runs=("P",)),
        "recall": Family("always", _HITS, in_runs=("recall", "R")),
        "rprec": Family("never", _HITS, aliases=("r_precision",), in_runs=("Rprec",)),
        "hit_rate": Family(
            "always", _HITS, aliases=("success", "hit", "hits"), in_runs=("success", "Success")
        ),
        "mrr": Family(
            "optional",
            _HITS,
            aliases=("rr", "recip_rank", "reciprocal_rank"),
            in_runs=("recip_rank", "RR"),
        ),
        "rbp": Family("optional", ("relevant", "ties", "persistence"), in_runs=("RBP",)),
        "err": Family("optional", ("ties", "max_grade"), "grade"),
        "ef": Family("percent", _HITS, of_lists=False, aliases=("enrichment", "enrichment_factor")),
        "bedroc": Family("never", (*_HITS, "alpha"), of_lists=False),
        "auc": Family("never", ("relevant",), fixed={"ties": "average"}, aliases=("roc_auc",)),
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
# The options: their values by default, and what values may be. Numbers may be written as text.
_OPTIONS: Mapping[str, tuple[Any, Setting]] = {
    "gain": ("exp2", choice(*get_args(Gain))),
    "discount": ("log2", choice(*get_args(Discount))),
    "ties": ("order", choice(*get_args(Ties))),
    "empty": (0.0, Setting("a finite number or 'skip'", number().fits)),
    "relevant": (1.0, number()),
    "divisor": ("relevant", choice(*get_args(Divisor))),
    "max_grade": (None, Setting("None or a number from 0 to 1000", number(0, high=1000).fits)),
    "alpha": (
        20.0,
        Setting("a number > 0 of at most 500", number(0, above=True, high=500).fits),
    ),
    "clip": (0.0, Setting("a number from 0 to 1", number(0, high=1).fits)),
    "persistence": (0.8, Setting("a number between 0 and 1", lambda value: 0 < value < 1)),
}
DEFAULT: Mapping[str, Any] = {name: default for name, (default, _) in _OPTIONS.items()}

_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "letor": {"discount": "letor"},
    "trec": {"gain": "linear"},
    "lightgbm": {"empty": 1.0, "divisor": "cut"},
}
# Short names that `get_metric` takes, but that results do not show.
SHORT_NAMES = {"msd": "pairwise_squared_error", "m1d": "pairwise_absolute_error"}
_ALIASES = SHORT_NAMES | {
    alias: name for name, family in FAMILIES.items() for alias in family.aliases
}
#: The named conventions. Each gives a value for every option. See `get_metric`.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType({**DEFAULT, **changes}) for name, changes in _CHANGES.items()}
)


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` takes, without the short names msd and m1d.

    ``@k`` stands for a cut such as ``@10``, and ``@k%`` for a percentage such as ``@1%``.
    """
    names = []
    for family, properties in FAMILIES.items():
        if properties.cut in ("never", "optional"):
            names.append(family)
        if properties.cut != "never":
            names.append(f"{family}@k%" if properties.cut == "percent" else f"{family}@k")
    return tuple(names)


def is_loss(name: str) -> bool:
    """Tell whether less is better for a metric, by its name here or in another tool."""
    family = FAMILIES.get(SHORT_NAMES.get(name, name))
    return family is not None and not family.greater_is_better


def check_option(option: str, value: Any) -> Any:
    """Return an option after checking it, or the default for None."""
    default, setting = _OPTIONS[option]
    if value is None:
        return default
    if setting.names:
        return str(check_setting(option, value, setting))
    if option == "empty" and value == "skip":
        return value
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = nan
    if not setting.fits(found):
        raise ValueError(f"{option} must be {setting.wanted}, got {value!r}")
    return found


def unknown_name(name: object) -> str:
    """Return the error message for an unknown name, with a suggestion if there is one."""
    known = f"metrics are {', '.join(metric_names())}, k an integer >= 1, k% such as 0.5%"
    if not isinstance(name, str):
        return f"unknown metric {name!r}, want a name such as 'ndcg@10'; the {known}"
    family, at, cut = name.partition("@")
    if FAMILIES.get(family, FAMILIES["map"]).cut == "percent":
        return (
            f"metric {name!r}: {family} needs a percentage above 0 and up to 100 behind @, such as "
            f"'{family}@1%'"
        )
    if at and family in FAMILIES and "," not in cut:
        return f"metric {name!r}: the cut behind @ must be an integer of 1 to 2^63 - 1, got {cut!r}"
    if "," in name:
        return f"unknown metric {name!r}, want one name; evaluate takes a list of them; the {known}"
    meant = _meant(name)
    if meant is None:
        return f"unknown metric {name!r}; the {known}"
    lower = " (names are in lower case)" if meant == name.lower() else ""
    return f"unknown metric {name!r}, did you mean {meant!r}?{lower} The {known}"


def _meant(name: str) -> str | None:
    """Return the known name that is most similar to `name`, or None if none is."""
    match = re.fullmatch(r"\s*([a-z_]*[a-z])[\s@_-]*([1-9][0-9]*)?\s*", name.lower())
    if match is None:
        return None
    family = _ALIASES.get(match[1], match[1])
    close = get_close_matches(family, FAMILIES, n=1)
    if not close:
        return None
    cut = FAMILIES[close[0]].cut
    if cut == "never":
        return close[0]
    k = match[2] or {"always": "10", "percent": "1"}.get(cut)
    if cut == "percent":
        return f"{close[0]}@{k}%"
    return close[0] if k is None else f"{close[0]}@{k}"


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
        known = ~np.isnan(values)
        own = np.where(known, weights, 0.0)
        total = own.sum(axis=1)
        share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        filled = np.where(known, values, 0.0)
        means = (own * filled).sum(axis=1) * share
        return cls(total, means, (own * (filled - means[:, None]) ** 2).sum(axis=1))

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
        if self.k is None and family.cut == "always":
            raise ValueError(f"{self.family} needs a cut, such as {self.family}@10")
        if family.cut == "percent":
            number = isinstance(self.k, (int, float, np.number)) and not isinstance(self.k, bool)
            if not (number and 0 < self.k <= 100):  # type: ignore[operator]
                raise ValueError(unknown_name(self.family))
            object.__setattr__(self, "k", float(self.k))  # type: ignore[arg-type]
        elif self.k is not None:
            if family.cut == "never":
                raise ValueError(f"{self.family} takes no cut, got k={self.k!r}")
            integer = isinstance(self.k, (int, np.integer)) and not isinstance(self.k, bool)
            if not (integer and 1 <= self.k <= _NO_CUT):
                raise ValueError(f"k must be None or an integer of 1 to {_NO_CUT}, got {self.k!r}")
            object.__setattr__(self, "k", int(self.k))
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
            object.__setattr__(self, option, check_option(option, value))

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
    is_list = is_list and not hasattr(metrics, "columns")
    listed = list(metrics) if is_list else [metrics]
    if not listed:
        raise ValueError(f"metrics must name at least one metric, got none{hint}")
    wrong = [type(each).__name__ for each in listed if not isinstance(each, (str, Metric))]
    if wrong:
        found = wrong[0]
        if is_list:
            found = f"{type(metrics).__name__} of {found}"
        raise TypeError(
            "metrics must be a name such as 'ndcg@10', a Metric, or a list of them, "
            f"got {found}{hint}"
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
            raise _bad_label(metric, y)
    return largest


def _bad_label(metric: Metric, y: Vector) -> ArgumentError:
    """Return the error for labels of which the metric cannot take one."""
    kind, most = FAMILIES[metric.family].labels, metric._label_range(len(y))[1]
    if kind == "any":
        wanted = f"labels of at most {most:.1e} in size (sums overflow)"
        return _refused(metric, y, int(np.argmax(np.abs(y))), wanted)
    exponential = kind == "grade" or metric.gain == "exp2"
    largest = _LARGEST_EXPONENT if exponential else most
    reason = "2**y overflows" if exponential else "sums overflow"
    wrong = {
        "labels >= 0": y < 0,
        f"labels <= {largest:g} ({reason})": y > largest,
        "integer labels": (y != np.floor(y)) & (kind == "grade"),
        f"labels <= max_grade = {most:g}": y > most,
    }
    wanted, bad = next((text, rows) for text, rows in wrong.items() if rows.any())
    free = ", ".join(
        name for name, f in FAMILIES.items() if f.labels == "any" and "relevant" not in f.options
    )
    advice = f"; metrics for any real labels: {free}"
    return _refused(metric, y, int(np.argmax(bad)), wanted, advice)


def _refused(metric: Metric, y: Vector, row: int, wanted: str, advice: str = "") -> ArgumentError:
    text = f"{metric.name} takes {wanted}, got {{argument}} = {y[row]:g} in {{place}}{advice}"
    return ArgumentError("y", text, row=row)


def check_scores(metrics: Sequence[Metric], scores: Vector) -> None:
    """Raise a ValueError for NaN, and for infinity if a metric needs finite scores.

    Metrics that rank take NaN, a document that was not retrieved, and one of these does not rank.
    """
    others = [metric.name for metric in metrics if not FAMILIES[metric.family].ranks]
    wants_finite = [m.name for m in metrics if FAMILIES[m.family].scores == "finite"]
    smallest = float(scores.min())  # NaN if there is one
    if smallest == smallest and not wants_finite:
        return
    limits = ((_largest(m.family, scores.shape[1]), m.name) for m in metrics)
    limit, name = min((each for each in limits if each[1] in wants_finite), default=(np.inf, ""))
    largest = float(scores.max())
    if isfinite(smallest) and isfinite(largest):
        if max(largest, -smallest) > limit:
            which, row = divmod(int(np.argmax(np.abs(scores))), scores.shape[1])
            raise ValueError(
                f"{name} takes scores of at most {limit:.1e} in size (its sums overflow), got "
                f"{scores[which, row]:g} in row {row}"
            )
        return
    bad = ~np.isfinite(scores) if wants_finite else np.isnan(scores)
    if not bad.any():
        return
    which, row = divmod(int(np.argmax(bad)), scores.shape[1])
    where = f"row {row}" if scores.shape[0] == 1 else f"row {row} of score vector {which}"
    wanted = f"finite for {wants_finite[0]}" if wants_finite else f"a number for {others[0]}"
    raise ValueError(f"score must be {wanted}, got {scores[which, row]} in {where}")


def query_weights(sample_weight: ArrayLike, queries: Queries) -> Vector:
    """Return the mean weight of the rows of every query."""
    weights = queries.grouped(check_weights(sample_weight, queries.n_rows, "sample_weight"))
    # A mean depends only on ratios of weights. Scaling keeps huge and tiny weights in range.
    weights = np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1]))
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    sums = np.bincount(query, weights=weights, minlength=queries.n_queries)
    return sums / np.maximum(queries.sizes, 1)
