"""The options that `PARAMETERS` tells of: their declarations, and the parsing of their values."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pairgram._support.parameters import (
    FOURIER_KERNEL,
    KERNEL_PARAMETERS,
    PARAMETERS,
    check_setting,
    check_text,
    choice,
)

# The values of the options that are given, by the names of the library's parameters.
Settings = dict[str, Any]
# The kernels, and the parameters that each uses.
KERNELS = {**dict.fromkeys(FOURIER_KERNEL.names, ("gamma",)), **KERNEL_PARAMETERS}


def names_of(name: str) -> tuple[str, ...]:
    """Return the names that the option of a parameter takes.

    The word none stands for None, where an option may be repeated.
    """
    parameter = PARAMETERS[name]
    setting = parameter.setting or parameter.stored
    names = () if setting is None else setting.names
    return (*names, "none") if parameter.many and setting and setting.fits(None) else names


def heeds(kernel: str | None, parameter: str) -> bool:
    """Tell whether a kernel uses gamma, degree or coef0. An unknown kernel uses none of them."""
    return kernel is not None and parameter in KERNELS.get(kernel, ())


def parse_grid(text: str, option: str, *, zero: bool = False) -> list[float] | None:
    """Return the grid of a text such as ``2^-15:2^24`` or ``0.1,1,10``; ``auto`` gives None.

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
        return None
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


def parse_activation(text: str, option: str) -> str | list[str]:
    """Return the names in a mix such as ``sigmoid+gaussian``, or a plain name as it is."""
    names = [name.strip() for name in text.split("+")]
    for name in names:
        check_text(option, name, names_of("activation"))
    return names if len(names) > 1 else names[0]


def parse_components(text: str, option: str) -> int | None:
    """Return the number of components, or None for ``all``."""
    if text.strip() == "all":
        return None
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", text) and int(text) > 0:
        return int(text)
    raise ValueError(f"{option} must be an integer >= 1 or all, got {text!r}")


def parse_names(text: str, option: str) -> list[str]:
    """Return the names in a text such as ``a,b``."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"{option} takes different names such as a,b,c; got {text!r}")
    return names


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


# What makes values of the texts of options, by parameters, or by what a text looks like.
_PARSERS: Mapping[str, Callable[[str, str], Any]] = {
    "alphas": partial(parse_grid, zero=True),
    "activation": parse_activation,
    "n_components": parse_components,
    "GRID": parse_grid,
    "A:B": parse_range,
    "FEATURES": parse_features,
    "A,B,...": parse_names,
}
_TYPES = {"": bool, "N": int, "X": float, "SECONDS": float, "FILE": Path, "MODEL": Path}


def option(name: str, help_names: str = "", note: str = "") -> Any:
    """Return the declaration of a parameter's option.

    In the help, `help_names` takes the place of its names, and `note` that of its default.
    """
    parameter = PARAMETERS[name]
    flags, _, metavar = parameter.option.partition(" ")
    setting = parameter.setting or parameter.stored
    return typer.Option(
        flags,
        metavar=metavar or None,
        help=parameter.help.replace("{names}", help_names or ", ".join(names_of(name))) + note,
        min=setting.low if setting is not None and name not in _PARSERS else None,
        show_default=parameter.default is not None and not note,
    )


def sharing(
    keyword: str, names: Iterable[str], make: Callable[..., Any], **help_names: str
) -> Callable[..., Any]:
    """Return a decorator that gives a command options in place of its `keyword`.

    Parameters
    ----------
    keyword : str
    names : iterable of str
        The parameters whose options they are.
    make : callable
        What returns the value of the keyword. It gets the parsed values of the options that are
        given, and that differ from the defaults.
    **help_names : str
        What the help lists as the names that a parameter takes, if not those of `PARAMETERS`.
    """
    shared = [_declared(name, help_names.get(name, "")) for name in names]

    def with_options_of_names(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for name, parameter in own.parameters.items():
            parameters.extend(shared if name == keyword else [parameter])

        @functools.wraps(command)
        def with_options(**options: Any) -> None:
            values = {parameter.name: options.pop(parameter.name) for parameter in shared}
            given = {
                name: _parsed(name, value)
                for name, value in values.items()
                if value is not None and value != [] and value != PARAMETERS[name].default
            }
            command(**options, **{keyword: make(**given)})

        # Depending on its version, typer reads one or the other.
        with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_options

    return with_options_of_names


def _declared(name: str, help_names: str) -> inspect.Parameter:
    """Return the option of a parameter as an argument of a command."""
    parameter = PARAMETERS[name]
    metavar = parameter.option.partition(" ")[2]
    kind: Any = str if name in _PARSERS else _TYPES.get(metavar, str)
    if parameter.many:
        kind = list[str]
    if parameter.default is None:
        kind = kind | None
    annotation: Any = Annotated[kind, option(name, help_names)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default, annotation=annotation
    )


def _parsed(name: str, value: Any) -> Any:
    """Return the value of a parameter that its option has; the word none stands for None."""
    parameter = PARAMETERS[name]
    flags, _, metavar = parameter.option.partition(" ")
    parse = _PARSERS.get(name) or _PARSERS.get(metavar)
    if parse is not None:
        return parse(value, flags)
    names = names_of(name)
    if parameter.many:
        return [None if check_text(flags, one, names) == "none" else one for one in value]
    if parameter.setting is None:
        return value
    return check_setting(flags, value, choice(*names) if names else parameter.setting)
