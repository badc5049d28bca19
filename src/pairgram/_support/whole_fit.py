"""What estimators and feature maps share: checks of rows, and fits that are whole or not at all."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pairgram._support.arrays import column_names
from pairgram._support.checks import naming_not_finite

__all__ = [
    "WholeFit",
]


class WholeFit:
    """Makes a `fit` that fails leave the estimator as it was, its view of X's columns included."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = _whole(cls.fit)  # type: ignore[attr-defined]


def by_keyword(method: Any) -> Any:
    """Make a method that gets too many arguments by position say which it takes.

    Python would name the private class that has the method.
    """
    check = _check_of_positions(method)

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        check(self, args)
        return method(self, *args, **named)

    return checked


def _check_of_positions(method: Any) -> Callable[[Any, tuple[Any, ...]], None]:
    """Return what raises a TypeError for more arguments by position than a method takes."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    taken = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    more = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def check(self: Any, args: tuple[Any, ...]) -> None:
        if len(args) > len(taken) and more:
            example = ", ".join([*taken, f"{more[0]}={more[0]}"])
            raise TypeError(
                f"{type(self).__name__}.{method.__name__} takes {' and '.join(taken)} by position, "
                f"got {len(args)} arguments: {', '.join(more)} are keywords, as in "
                f"{method.__name__}({example})"
            )

    return check


def _whole(fit: Any) -> Any:
    check = _check_of_positions(fit)

    @functools.wraps(fit)
    def fit_or_restore(self: Any, *args: Any, **named: Any) -> Any:
        check(self, args)
        before = dict(vars(self))
        try:
            with naming_not_finite(column_names(args[0] if args else named.get("X"))):
                return fit(self, *args, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit_or_restore
