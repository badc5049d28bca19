"""`PARAMETERS`: what the parameters of estimators and of `scan` take, once for all who ask.

Checks of arguments, fields of model files and options of the command line are made from this table.
It imports only what Python brings, because the help of the command line must not wait for NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeGuard

# The words that parameters take.
PairsName = Literal["with_ties", "without_ties", "gain_difference", "label_difference", "clicks"]
Scope = Literal["query", "global"]
Weighting = Literal["pairs", "documents", "queries"]
Target = Literal["label", "gain"]
Form = Literal["auto", "primal", "dual"]
Loss = Literal["squared_hinge", "squared", "logistic"]
ActivationName = Literal["linear", "sigmoid", "gaussian", "tanh", "relu", "hardlim", "sine"]
KernelName = Literal[
    "rbf", "laplacian", "polynomial", "linear", "tanimoto", "minmax", "precomputed"
]
FourierKernel = Literal["rbf", "laplacian", "cauchy"]
InputsName = Literal[
    "standard",
    "minmax",
    "maxabs",
    "quantile",
    "raw+quantile",
]
ListKind = Literal["raw+rank", "rank", "standard", "runs"]
Landmarks = Literal["uniform", "kmeans"]
FillName = Literal["mean", "median"]
PluginName = Literal["ltr_plugin", "elasticsearch", "opensearch"]  # one plugin
LoggingEngine = Literal["solr", PluginName, "vespa"]  # whose features can be read
EngineName = Literal["solr", PluginName, "vespa", "onnx", "ranklib", "sql", "python"]
FusionName = Literal["rrf", "combsum", "combmnz", "borda", "learnt"]
Convention = Literal["default", "letor", "trec", "lightgbm"]

# These kernels mix all columns in one number.
OF_DISTANCES = ("rbf", "laplacian", "polynomial", "cauchy")
# The kernels of rows x and z, and the parameters that each uses.
KERNEL_PARAMETERS: dict[str, tuple[str, ...]] = {
    "rbf": ("gamma",),  # exp(−gamma ‖x − z‖²)
    "laplacian": ("gamma",),  # exp(−gamma ‖x − z‖₁)
    "polynomial": ("gamma", "degree", "coef0"),  # (gamma xᵀz + coef0)^degree
    "linear": (),  # xᵀz
    "tanimoto": (),  # xᵀz / (‖x‖² + ‖z‖² − xᵀz), 1 for 0 / 0
    "minmax": (),  # Σ min(x, z) / Σ max(x, z) of both signs, 1 for 0 / 0
}


def words(literal: Any) -> tuple[str, ...]:
    """Return the words of a `Literal` type."""
    found: tuple[str, ...] = literal.__args__  # `get_args` takes several times as long
    return found


LARGEST_INTEGER = 2**63 - 1
LARGEST_NUMBER = sys.float_info.max
# Polynomial kernels have at most this degree.
MAX_DEGREE = 1000


class Setting(NamedTuple):
    """What a value must be: in words, and by a function that checks any value.

    If names are among the values, `names` has them.
    """

    wanted: str
    fits: Callable[[Any], bool]
    names: tuple[str, ...] = ()


def is_integer(value: object) -> TypeGuard[int]:
    """Tell whether a value is an integer. True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def integer(low: int, high: int = LARGEST_INTEGER) -> Setting:
    """Return the description of an integer in a range, including both ends."""

    def fits(value: object) -> bool:
        return is_integer(value) and low <= value <= high

    span = f">= {low}" if high == LARGEST_INTEGER else f"from {low} to {high}"
    return Setting(f"an integer {span}", fits)


def number(
    low: float = -LARGEST_NUMBER, *, above: bool = False, high: float = LARGEST_NUMBER
) -> Setting:
    """Return the description of a finite number that is at least `low`, or above it."""
    wanted = "a finite number"
    if high < LARGEST_NUMBER:
        wanted = f"a number from {low:g} to {high:g}"
    elif low > -LARGEST_NUMBER:
        wanted += f" {'>' if above else '>='} {low:g}"

    def fits(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        real: Any = value.item() if hasattr(value, "item") else value  # float32 has no such limits
        return bool(low <= real <= high) and not (above and real == low)  # False for NaN

    return Setting(wanted, fits)


def choice(
    *names: str, others: str = "", fits: Callable[[Any], bool] = lambda value: False
) -> Setting:
    """Return the description of one of these names; `others` and `fits` are about other values."""
    listed = ", ".join([*map(repr, names), *([others] if others else [])])
    return Setting(
        "one of " * (len(names) > 1) + listed,
        lambda value: (isinstance(value, str) and value in names) or fits(value),
        names,
    )


def optional(setting: Setting) -> Setting:
    """Return the description of a value that is None or as another setting describes."""
    wanted = f"{setting.wanted}, or None" if setting.names else f"None or {setting.wanted}"
    return setting._replace(wanted=wanted, fits=lambda value: value is None or setting.fits(value))


def list_of(setting: Setting, what: str, length: int | None = None) -> Setting:
    """Return the description of a list with at least one entry; `what` says it in words."""

    def fits(value: object) -> bool:
        if not isinstance(value, list) or not value:
            return False
        return len(value) == (length or len(value)) and all(map(setting.fits, value))

    return Setting(what, fits)


def _listed(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


FLAG = Setting("True or False", lambda value: type(value).__name__ in ("bool", "bool_"))  # NumPy's
COUNT = integer(1)
TEXT = Setting("text", lambda value: isinstance(value, str))
NAMES = list_of(TEXT, "a list of names")
_PAIR = list_of(number(), "", 2)
RANGE = Setting(
    "a pair low <= high of finite numbers, whose difference is finite too",
    lambda value: (
        _PAIR.fits(found := _listed(value)) and 0 <= found[1] - found[0] <= LARGEST_NUMBER
    ),
)
POSITIVE = number(0, above=True)
AT_LEAST_0 = number(0)
_UP_TO_MAX = number(1, high=MAX_DEGREE)
NAMED_KERNEL, FOURIER_KERNEL = choice(*KERNEL_PARAMETERS), choice(*words(FourierKernel))


# What parameters must be. "Class.name" is what "name" is for this class alone.
PARAMETERS: Mapping[str, Setting] = {
    "alpha": AT_LEAST_0,
    "C": POSITIVE,
    "pairs": choice(
        *words(PairsName),
        others="a callable w(y_i, y_j), or None (no pairs: least squares on rows)",
        fits=lambda value: value is None or callable(value),
    ),
    "target": choice(*words(Target)),
    "scale": FLAG,
    "inputs": optional(choice(*words(InputsName))),
    "constraint": Setting(
        "None, Positive(...), ElasticNet(...) or MaxNonzero(...)",
        lambda value: value is None or hasattr(value, "of_columns"),
    ),
    "weighting": choice(*words(Weighting)),
    "scope": choice(*words(Scope)),
    "n_nodes": COUNT,
    "activation": choice(*words(ActivationName)),
    "weight_range": RANGE,
    "bias_range": RANGE,
    "n_estimators": COUNT,
    "kernel": choice(*words(KernelName)),
    "Nystroem.kernel": NAMED_KERNEL,
    "RandomFourier.kernel": FOURIER_KERNEL,
    "gamma": optional(POSITIVE),
    "degree": Setting(
        f"an integer from 1 to {MAX_DEGREE}",
        lambda value: _UP_TO_MAX.fits(value) and value == int(value),
    ),
    "coef0": AT_LEAST_0,
    "n_components": COUNT,
    "Nystroem.n_components": optional(COUNT),
    "landmarks": choice(*words(Landmarks)),
    "Nystroem.tol": AT_LEAST_0,
    "loss": choice(*words(Loss)),
    "tol": POSITIVE,
    "time_budget": optional(POSITIVE),
}
# What a file holds of parameters, if that is not the same: a file has only JSON.
_STORED: Mapping[str, Setting] = {
    "kind": optional(choice(*words(PairsName))),
    "random_state": optional(integer(0, 2**32 - 1)),
    "missing": optional(choice(*words(FillName))),
}


def stored(owner: str, *names: str) -> dict[str, Setting]:
    """Return what files hold of the parameters of a class, by their names."""
    known = {**PARAMETERS, **_STORED}
    return {name: known.get(f"{owner}.{name}") or known[name] for name in names}


def check(key: str, value: object) -> Any:
    """Return the value of a parameter; it must be as `PARAMETERS` says for the key."""
    return check_setting(key, value, PARAMETERS[key])


def check_parameters(estimator: object, *keys: str) -> None:
    """Check parameters of an estimator, by their keys in `PARAMETERS`."""
    for key in keys:
        name, setting = key.rpartition(".")[2], PARAMETERS[key]
        value = getattr(estimator, name)
        if isinstance(value, str) and value in setting.names:
            continue  # a fit checks many names, and a call takes longer than this
        if not setting.fits(value):
            check_setting(name, value, setting)


def check_setting(name: str, value: object, setting: Setting) -> Any:
    """Return a value that fits a setting, or raise an error that asks for the likely name."""
    if setting.fits(value):
        return value
    from pairgram._support.checks import ArgumentError, did_you_mean, verbatim

    likely = did_you_mean(value, setting.names) if isinstance(value, str) else ""
    raise ArgumentError(name, f"must be {setting.wanted}, got {verbatim(repr(value))}{likely}")


def check_size(name: str, value: object, low: int = 1, high: int = LARGEST_INTEGER) -> int:
    """Return `value` as an int; it must be an integer ≥ `low`, and ≤ `high` if that is given."""
    return int(check_setting(name, value, integer(low, high)))


def check_text(name: str, value: object, choices: Iterable[str]) -> str:
    """Return `value`; it must be one of `choices`, or the error asks for the likely one."""
    return str(check_setting(name, value, choice(*choices)))


def check_C(name: str, value: object) -> float:
    """Return a C as a float; the number and its inverse must be finite and > 0."""
    wanted = POSITIVE.wanted if name == "C" else "a 1-d array of finite numbers > 0"
    invertible = number(1 / LARGEST_NUMBER, above=True)
    return float(check_setting(name, value, Setting(wanted, invertible.fits)))
