"""What estimators and feature maps share: checks of rows, and fits that are whole or not at all."""

from __future__ import annotations

import functools
from typing import Any

__all__ = [
    "WholeFit",
]


class WholeFit:
    """Makes a `fit` that fails leave the estimator as it was, its view of X's columns included."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = _whole(cls.fit)  # type: ignore[attr-defined]


def _whole(fit: Any) -> Any:
    @functools.wraps(fit)
    def fit_or_restore(self: Any, *args: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit_or_restore
