"""The models that the command line knows, and how its options become their settings.

A new model is one entry of `MODELS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairgram.metrics import Metric

__all__ = ["MODELS", "Model", "Settings", "chosen", "get_model", "parse_alphas", "tried"]

PAIRS = ("kept", "dropped", "gain", "absdiff", "none")
TARGETS = ("label", "gain")
WEIGHTINGS = ("pairs", "documents", "queries")


@dataclass(frozen=True)
class Settings:
    """What the options say; an empty sequence or None stands for the model's own default."""

    alphas: list[float] | None = None
    pairs: Sequence[str] = ()
    targets: Sequence[str] = ("label",)
    scale: bool = False
    weighting: str = "pairs"
    n_threads: int | None = None

    def __post_init__(self) -> None:
        for option, values, known in (
            ("--pairs", self.pairs, PAIRS),
            ("--target", self.targets, TARGETS),
            ("--weighting", (self.weighting,), WEIGHTINGS),
        ):
            for value in values:
                if value not in known:
                    raise ValueError(f"{option} must be one of {', '.join(known)}, got {value!r}")


@dataclass(frozen=True)
class Model:
    """One model of the command line.

    Attributes
    ----------
    summary : str
        One line for the help.
    search : callable
        ``search(settings, cv, scoring)`` returns an estimator that chooses its settings in
        ``fit(X, y, qid=...)`` as `RankRLSCV` does: with ``predict``, ``save``, ``best_score_``,
        ``scoring_`` and ``cv_results_``.
    protocol : str
        The grid of ``pairgram letor``, as an ``--alphas`` text.
    """

    summary: str
    search: Callable[[Settings, Any, Metric | None], Any]
    protocol: str = "2^-15:2^24"


def _rankrls(settings: Settings, cv: Any, scoring: Metric | None) -> Any:
    from pairgram.least_squares import RankRLSCV

    names = settings.pairs or ("kept", "dropped")
    return RankRLSCV(
        settings.alphas,
        pairs=[None if name == "none" else name for name in names],  # type: ignore[misc]
        target=list(settings.targets),  # type: ignore[arg-type]
        scale=settings.scale,
        weighting=settings.weighting,  # type: ignore[arg-type]
        cv=cv,
        scoring=scoring,
        n_threads=settings.n_threads,
    )


def _rls(settings: Settings, cv: Any, scoring: Metric | None) -> Any:
    if set(settings.pairs) - {"none"}:
        raise ValueError("--model rls is pointwise and takes no --pairs; --model rankrls does")
    return _rankrls(
        Settings(
            settings.alphas,
            ("none",),
            settings.targets,
            settings.scale,
            settings.weighting,
            settings.n_threads,
        ),
        cv,
        scoring,
    )


MODELS: Mapping[str, Model] = {
    "rankrls": Model("linear, least squares on pairs; tries tied pairs kept and dropped", _rankrls),
    "rls": Model("linear, least squares on rows (pointwise), without intercept", _rls),
}


def get_model(name: str) -> Model:
    """Return the entry of a name; another name is a ValueError that lists them."""
    if name not in MODELS:
        raise ValueError(f"--model must be one of {', '.join(MODELS)}, got {name!r}")
    return MODELS[name]


def parse_alphas(text: str) -> list[float] | None:
    """Return the grid that a text such as ``2^-15:2^24``, ``0.1,1,10`` or ``auto`` (None) names.

    ``b^i:b^j`` stands for b to all whole powers from i to j. Repeated values count once.

    Raises
    ------
    ValueError
        If the text is none of these, or a value is not finite and > 0.
    """
    if text.strip() == "auto":
        return None
    values: list[float] = []
    for item in text.split(","):
        ends = [_power(end) for end in item.split(":")]
        if len(ends) == 1:
            base, exponent = ends[0]
            values.append(_positive(base, exponent, item))
            continue
        (base, low), (other, high) = ends[0], ends[-1]
        if len(ends) != 2 or "^" not in item or base != other or low > high:
            raise ValueError(f"--alphas: a range is like 2^-15:2^24, got {item!r}")
        values.extend(_positive(base, exponent, item) for exponent in range(low, high + 1))
    return list(dict.fromkeys(values))


def _power(text: str) -> tuple[float, int]:
    """Return (base, exponent) of ``2^-15``, exponent 1 for a plain number."""
    match = re.fullmatch(r"\s*([^\s^]+?)(?:\^([+-]?[0-9]{1,6}))?\s*", text)
    try:
        if match is not None:
            return float(match[1]), int(match[2] or 1)
    except ValueError:
        pass
    raise ValueError(
        f"--alphas takes numbers and ranges such as 0.1,1,10 or 2^-15:2^24, or auto; got {text!r}"
    )


def _positive(base: float, exponent: int, item: str) -> float:
    try:
        value = base**exponent
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"--alphas: each must be finite and > 0, got {item.strip()!r}")
    return value


def chosen(model: Any) -> dict[str, Any]:
    """Return the settings that a fitted search has chosen, as JSON can hold them."""
    best = int(model.cv_results_["rank_test_score"].argmin())
    return _row(model.cv_results_, best)


def tried(model: Any) -> list[dict[str, Any]]:
    """Return a row for every combination of settings, with its held-out ``score``."""
    scores = model.cv_results_["mean_test_score"]
    return [
        {**_row(model.cv_results_, row), "score": float(score)} for row, score in enumerate(scores)
    ]


def _row(results: Mapping[str, Any], row: int) -> dict[str, Any]:
    values = {
        name.removeprefix("param_"): column[row]
        for name, column in results.items()
        if name.startswith("param_")
    }
    return {name: getattr(value, "item", lambda v=value: v)() for name, value in values.items()}
