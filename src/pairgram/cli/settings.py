"""The checked values of the options of a model, and the parsing of grids and ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pairgram._support.words import (
    KERNEL_PARAMETERS,
    ActivationName,
    InputsName,
    Landmarks,
    PairsName,
    Scope,
    Target,
    Weighting,
    words,
)

PAIRS = (*words(PairsName), "none")
TARGETS, WEIGHTINGS, SCOPES = words(Target), words(Weighting), words(Scope)
INPUTS = (*words(InputsName), "none")
ACTIVATIONS, LANDMARKS = words(ActivationName), words(Landmarks)
# The kernels, and the parameters that each uses.
KERNELS = {**KERNEL_PARAMETERS, "cauchy": ("gamma",)}
#: The option that sets each setting.
OPTIONS = {
    "alphas": "--alpha or --alphas",
    "Cs": "--Cs",
    "pairs": "--pairs",
    "targets": "--target",
    "scale": "--scale",
    "inputs": "--inputs",
    "positive": "--positive",
    "prior": "--prior",
    "weighting": "--weighting",
    "scope": "--scope",
    "n_nodes": "--nodes",
    "activation": "--activation",
    "weight_range": "--weight-range",
    "bias_range": "--bias-range",
    "kernel": "--kernel",
    "gammas": "--gamma",
    "degree": "--degree",
    "coef0": "--coef0",
    "n_components": "--components",
    "landmarks": "--landmarks",
    "tol": "--tol",
    "n_estimators": "--estimators",
    "random_state": "--random-state",
    "budget": "--budget",
}
_OF_NODES = ("n_nodes", "activation", "weight_range", "bias_range", "random_state")


@dataclass(frozen=True)
class Settings:
    """The values of the options. An option that is not given has its default.

    An empty grid means that the model makes the grid itself (``auto``). 0 components stand for as
    many as there are rows (``all``). The possible kernels depend on the model.
    Columns in `positive` count from 0, or are names.
    """

    alphas: Sequence[float] | None = None
    Cs: Sequence[float] | None = None
    pairs: Sequence[str] = ()
    targets: Sequence[str] = ("label",)
    scale: bool = False
    inputs: Sequence[str] = ()
    positive: bool | Sequence[int] | Sequence[str] = False
    prior: Path | None = None
    weighting: str = "pairs"
    scope: str | None = None
    n_nodes: int | None = None
    activation: Sequence[str] = ()
    weight_range: tuple[float, float] | None = None
    bias_range: tuple[float, float] | None = None
    kernel: str | None = None
    gammas: Sequence[float] | None = None
    degree: int | None = None
    coef0: float | None = None
    n_components: int | None = None
    landmarks: str | None = None
    tol: float | None = None
    n_estimators: int | None = None
    random_state: int | None = None
    budget: float | None = None
    n_threads: int | None = None

    def __post_init__(self) -> None:
        from pairgram._support.checks import check_text

        for name, values, known in (
            ("pairs", self.pairs, PAIRS),
            ("targets", self.targets, TARGETS),
            ("inputs", self.inputs, INPUTS),
            ("weighting", (self.weighting,), WEIGHTINGS),
            ("scope", (self.scope,), SCOPES),
            ("activation", self.activation, ACTIVATIONS),
            ("landmarks", (self.landmarks,), LANDMARKS),
        ):
            for value in values:
                if value is not None:
                    check_text(OPTIONS[name], value, known)
        for name in _OF_NODES:
            if self.kernel is not None and name in given(self):
                raise ValueError(
                    f"give --kernel or {OPTIONS[name]}, not both: nodes have no kernel"
                )
        if self.positive and self.prior is not None:
            raise ValueError("give --positive or --prior, not both: signs are those of all weights")
        if self.positive and self.kernel not in (None, "linear"):
            raise ValueError("give --positive or --kernel, not both: a kernel has no weights")
        if self.tol is not None and not (math.isfinite(self.tol) and self.tol > 0):
            raise ValueError(f"--tol must be finite and > 0, got {self.tol:g}")
        if self.budget is not None and not (math.isfinite(self.budget) and self.budget > 0):
            raise ValueError(f"--budget must be finite and > 0, got {self.budget:g}")
        if self.coef0 is not None and not (math.isfinite(self.coef0) and self.coef0 >= 0):
            raise ValueError(f"--coef0 must be finite and >= 0, got {self.coef0:g}")


def given(settings: Settings) -> list[str]:
    """Return the names of the settings that differ from their defaults."""
    return [
        field.name
        for field in fields(settings)
        if field.name in OPTIONS and getattr(settings, field.name) != field.default
    ]


def heeds(kernel: str | None, parameter: str) -> bool:
    """Tell whether a kernel uses gamma, degree or coef0. An unknown kernel uses none of them."""
    return kernel is not None and parameter in KERNELS.get(kernel, ())


def parse_grid(text: str, option: str, *, zero: bool = False) -> list[float]:
    """Return the grid of a text such as ``2^-15:2^24`` or ``0.1,1,10``; ``auto`` gives [].

    ``b^i:b^j`` stands for b to all whole powers from i to j, and ``b^i:b^j:s`` for every s-th of
    them. Repeated values count once.

    Parameters
    ----------
    text, option : str
        The text, and the option that errors name.
    zero : bool, default=False
        Whether 0 may be a value.

    Raises
    ------
    ValueError
        If the text is none of these, or a value is not finite and > 0.
    """
    if text.strip() == "auto":
        return []
    values: list[float] = []
    for item in text.split(","):
        if item.strip() == "auto":
            raise ValueError(f"{option}: auto stands alone, got {text!r}")
        parts = item.split(":")
        (base, low), (other, high) = (_power(end, option) for end in (parts[0], parts[:2][-1]))
        if len(parts) == 1:
            values.append(0.0 if zero and base == 0 < low else _positive(base, low, item, option))
            continue
        step = parts[2] if len(parts) == 3 else "1"
        good = len(parts) <= 3 and re.fullmatch("[1-9][0-9]{0,5}", step)
        if not good or "^" not in item or base != other or low > high:
            raise ValueError(f"{option}: a range is like 2^-15:2^24 or 2^-30:2^20:2, got {item!r}")
        powers = range(low, high + 1, int(step))
        values.extend(_positive(base, power, item, option) for power in powers)
    return list(dict.fromkeys(values))


def parse_activation(text: str) -> tuple[str, ...]:
    """Return the names in a mix such as ``sigmoid+gaussian``; a plain name gives one."""
    return tuple(name.strip() for name in text.split("+"))


def parse_components(text: str) -> int:
    """Return the number of ``--components``, or 0 for ``all``."""
    if text.strip() == "all":
        return 0
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", text) and int(text) > 0:
        return int(text)
    raise ValueError(f"--components must be an integer >= 1 or all, got {text!r}")


def parse_features(text: str, option: str) -> bool | list[int] | list[str]:
    """Return True for ``all``, the numbers from 0 of features such as ``1,2,5``, or their names."""
    if text.strip() == "all":
        return True
    items = [item.strip() for item in text.split(",")]
    if all(re.fullmatch("[1-9][0-9]{0,8}", item) for item in items):
        return [int(item) - 1 for item in items]
    if all(items) and not any(re.fullmatch("[-+.0-9]+", item) for item in items):
        return items
    raise ValueError(
        f"{option} takes all, features counted from 1 such as 1,2,5, or names of columns of a "
        f"table; got {text!r}"
    )


def _power(text: str, option: str) -> tuple[float, int]:
    """Return (base, exponent) of a text such as ``2^-15``. A plain number has exponent 1."""
    match = re.fullmatch(r"\s*([^\s^]+?)(?:\^([+-]?[0-9]{1,6}))?\s*", text)
    try:
        if match is not None:
            return float(match[1]), int(match[2] or 1)
    except ValueError:
        pass
    raise ValueError(
        f"{option} takes numbers and ranges such as 0.1,1,10 or 2^-15:2^24, or auto; got {text!r}"
    )


def _positive(base: float, exponent: int, item: str, option: str) -> float:
    try:
        value = base**exponent
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{option}: each must be finite and > 0, got {item.strip()!r}")
    return value


def parse_range(text: str, option: str) -> tuple[float, float]:
    """Return the two ends of a range such as ``-1:1``. Errors name the option."""
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        low, high = math.nan, math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"{option} is two numbers such as -1:1, the lower one first; got {text!r}")
    return low, high
