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

    cut: Literal["never", "optional", "always"]
    options: tuple[str, ...]
    labels: Literal["any", "gain", "grade"] = "any"
    scores: Literal["ordered", "finite"] = "ordered"
    greater_is_better: bool = True


_DCG = ("gain", "discount", "ties")
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "dcg": Family("optional", _DCG, "gain"),
        "ndcg": Family("optional", (*_DCG, "empty"), "gain"),
        "mean_ndcg": Family("never", (*_DCG, "empty"), "gain"),
        "map": Family("optional", ("relevant", "ties", "empty", "divisor")),
        "p": Family("always", ("relevant", "ties")),
        "recall": Family("always", ("relevant", "ties", "empty")),
        "mrr": Family("optional", ("relevant", "ties", "empty")),
        "err": Family("optional", ("ties", "max_grade"), "grade"),
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
}

_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "letor": {"discount": "letor"},
    "trec": {"gain": "linear"},
    "lightgbm": {"empty": 1.0, "divisor": "cut"},
    "sklearn": {"gain": "linear", "ties": "average"},
}
# Names of other tools that are not similar to a name here.
_ALIASES: Mapping[str, str] = {"precision": "p", "ap": "map", "average_precision": "map"}
#: The named conventions. Each gives a value for every option. See `get_metric`.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType({**DEFAULT, **changes}) for name, changes in _CHANGES.items()}
)


def metric_names() -> tuple[str, ...]:
    """Return the names that `get_metric` takes, where ``@k`` stands for a cut such as ``@10``."""
    names = []
    for family, properties in FAMILIES.items():
        if properties.cut != "always":
            names.append(family)
        if properties.cut != "never":
            names.append(f"{family}@k")
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
    if not isfinite(number) or (option == "max_grade" and not 0 <= number <= 1000):
        wanted = {
            "empty": "a finite number or 'skip'",
            "relevant": "a finite number",
            "max_grade": "None or a number from 0 to 1000",
        }[option]
        raise ValueError(f"{option} must be {wanted}, got {value!r}")
    return number


def unknown_name(name: object) -> str:
    """Return the error message for an unknown name, with a suggestion if there is one."""
    known = f"metrics are {', '.join(metric_names())}, k an integer >= 1"
    if not isinstance(name, str):
        return f"unknown metric {name!r}, want a name such as 'ndcg@10'; the {known}"
    family, at, cut = name.partition("@")
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
    k = match[2] or ("10" if cut == "always" else None)
    return close[0] if k is None else f"{close[0]}@{k}"
