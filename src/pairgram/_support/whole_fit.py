"""`WholeFit`, the base class of estimators and maps: a failed fit leaves them unchanged."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pairgram._support.arrays import column_names, with_entries
from pairgram._support.checks import ArgumentError, did_you_mean, name_column


class WholeFit:
    """If `fit` raises, this class restores the estimator's attributes from before the call."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = _whole(cls.fit)  # type: ignore[attr-defined]


def by_keyword(method: Callable[..., Any]) -> Any:
    """Make a method explain which arguments it takes if it gets too many by position.

    Python's own message would name the private class that has the method.
    """
    check = _check_of_positions(method)

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        check(self, args)
        return method(self, *args, **named)

    return checked


def _check_of_positions(method: Callable[..., Any]) -> Callable[[Any, tuple[Any, ...]], None]:
    """Return a function that raises a TypeError if a method gets too many arguments by position."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    taken = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    more = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def check(self: object, args: tuple[Any, ...]) -> None:
        if len(args) > len(taken) and more:
            example = ", ".join([*taken, f"{more[0]}={more[0]}"])
            raise TypeError(
                f"{type(self).__name__}.{method.__name__} takes {' and '.join(taken)} by position, "
                f"got {len(args)} arguments: {', '.join(more)} are keywords, as in "
                f"{method.__name__}({example})"
            )

    return check


# What to do in place of keywords that fits of rankers take elsewhere, or took in earlier versions.
ELSEWHERE = {
    "group": "give qid=np.repeat(np.arange(len(group)), group), an id for every row",
    **dict.fromkeys(("init_score", "base_margin"), "give offset="),
    **dict.fromkeys(("n_threads", "n_jobs", "num_threads"), "use with pairgram.threads(n):"),
    **dict.fromkeys(
        ("eval_set", "eval_group", "eval_qid"),
        "searches, whose names end in CV, and AutoRanker take validation=(X, y, qid)",
    ),
    **dict.fromkeys(
        ("early_stopping_rounds", "callbacks", "init_model", "xgb_model", "verbose_eval"),
        "it is not needed, because there are no rounds of boosting",
    ),
}


def _whole(fit: Callable[..., Any]) -> Any:
    check = _check_of_positions(fit)
    parameters = inspect.signature(fit).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    @functools.wraps(fit)
    def fit_or_restore(self: Any, *args: Any, **named: Any) -> Any:
        if len(args) > 2:
            check(self, args)
        if not takes_any and (named.keys() - parameters):
            unknown = next(name for name in named if name not in parameters)
            advice = did_you_mean(unknown, list(parameters)[1:])
            if unknown in ELSEWHERE and "qid" in parameters:
                advice = f": {ELSEWHERE[unknown]}"
            raise TypeError(  # Python would name the class that has `fit`
                f"{type(self).__name__}.fit() got an unexpected keyword argument {unknown!r}"
                f"{advice}"
            )
        before = dict(vars(self))
        try:
            return fit(self, *args, **named)
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            if isinstance(error, ArgumentError) and error.column is not None:
                X = args[0] if args else named.get("X")
                name_column(error, column_names(with_entries(X)))
            raise

    return fit_or_restore
