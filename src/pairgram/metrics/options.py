"""The ranking metrics, their options, and the named conventions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from math import isfinite, nan
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from pairgram._support.checks import check_text

__all__ = [
    "CHOICES",
    "CONVENTIONS",
    "DEFAULT",
    "FAMILIES",
    "Discount",
    "Divisor",
    "Empty",
    "Family",
    "Gain",
    "Ties",
    "check_option",
    "metric_names",
    "unknown_name",
]

Gain = Literal["exp2", "linear"]
Discount = Literal["log2", "letor"]
Ties = Literal["order", "average", "worst"]
Empty = float | Literal["skip"]
Divisor = Literal["relevant", "cut"]


class Family(NamedTuple):
    """The properties of all metrics of one name."""

    cut: Literal["never", "optional", "always", "percent"]
    options: tuple[str, ...]
    labels: Literal["any", "gain", "grade"] = "any"
    scores: Literal["ordered", "finite"] = "ordered"
    greater_is_better: bool = True
    of_lists: bool = True  # if it ranks: made for result lists, not for all rows as one list

    @property
    def ranks(self) -> bool:
        """Whether the metric looks at a ranking from its top; it then has a rule for ties."""
        return "ties" in self.options


_DCG = ("gain", "discount", "ties")
_HITS = ("relevant", "ties", "empty")
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "dcg": Family("optional", _DCG, "gain"),
        "ndcg": Family("optional", (*_DCG, "empty"), "gain"),
        "ndcg_linear": Family("optional", ("discount", "ties", "empty"), "gain"),
        "mean_ndcg": Family("never", (*_DCG, "empty"), "gain"),
        "map": Family("optional", ("relevant", "ties", "empty", "divisor")),
        "p": Family("always", ("relevant", "ties")),
        "recall": Family("always", _HITS),
        "rprec": Family("never", _HITS),
        "hit_rate": Family("always", _HITS),
        "mrr": Family("optional", _HITS),
        "rbp": Family("optional", ("relevant", "ties", "persistence")),
        "err": Family("optional", ("ties", "max_grade"), "grade"),
        "ef": Family("percent", _HITS, of_lists=False),
        "bedroc": Family("never", (*_HITS, "alpha"), of_lists=False),
        "auc": Family("never", ("relevant",)),
        "kendall": Family("never", ()),
        "spearman": Family("never", ()),
        "misranking": Family("never", (), greater_is_better=False),
        "pairwise_accuracy": Family("never", ()),
        "ranking_error": Family("never", (), greater_is_better=False),
        "pearson": Family("never", (), scores="finite"),
        "msd": Family("never", (), scores="finite", greater_is_better=False),
        "m1d": Family("never", (), scores="finite", greater_is_better=False),
    }
)
CHOICES: Mapping[str, tuple[str, ...]] = {
    "gain": get_args(Gain),
    "discount": get_args(Discount),
    "ties": get_args(Ties),
    "divisor": get_args(Divisor),
}
DEFAULT: Mapping[str, Any] = {
    "gain": "exp2",
    "discount": "log2",
    "ties": "order",
    "empty": 0.0,
    "relevant": 1.0,
    "divisor": "relevant",
    "max_grade": None,
    "alpha": 20.0,
    "persistence": 0.8,
}

_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "letor": {"discount": "letor"},
    "trec": {"gain": "linear"},
    "lightgbm": {"empty": 1.0, "divisor": "cut"},
    "sklearn": {"gain": "linear", "ties": "average"},
}
# Names of other tools that are not similar to a name here.
_ALIASES: Mapping[str, str] = {
    "precision": "p",
    "ap": "map",
    "average_precision": "map",
    "rr": "mrr",
    "recip_rank": "mrr",
    "reciprocal_rank": "mrr",
    "r_precision": "rprec",
    "success": "hit_rate",
    "hit": "hit_rate",
    "hits": "hit_rate",
    "roc_auc": "auc",
    "enrichment": "ef",
    "enrichment_factor": "ef",
    "ndcg_cut": "ndcg_linear",
}
#: The named conventions. Each gives a value for every option. See `get_metric`.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType({**DEFAULT, **changes}) for name, changes in _CHANGES.items()}
)


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` takes.

    ``@k`` stands for a cut such as ``@10``, and ``@k%`` for a percentage such as ``@1%``.
    """
    names = []
    for family, properties in FAMILIES.items():
        if properties.cut in ("never", "optional"):
            names.append(family)
        if properties.cut != "never":
            names.append(f"{family}@k%" if properties.cut == "percent" else f"{family}@k")
    return tuple(names)


def check_option(option: str, default: Any, value: Any) -> Any:
    """Return an option after checking it, or the default for None."""
    if value is None:
        return default
    if option in CHOICES:
        return check_text(option, value, CHOICES[option])
    if option == "empty" and value == "skip":
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = nan
    wrong = {
        "max_grade": not 0 <= number <= 1000,
        "alpha": not 0 < number <= 500,
        "persistence": not 0 < number < 1,
    }
    if not isfinite(number) or wrong.get(option):
        wanted = {
            "empty": "a finite number or 'skip'",
            "relevant": "a finite number",
            "max_grade": "None or a number from 0 to 1000",
            "alpha": "a number > 0 of at most 500",
            "persistence": "a number between 0 and 1",
        }[option]
        raise ValueError(f"{option} must be {wanted}, got {value!r}")
    return number


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
