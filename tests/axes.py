"""Tests of many combinations of values, as one case."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st


def every(**axes: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every combination of values; a failure names its values.

    Fixtures are the same for all combinations. None may skip: it would skip those that follow.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        values = [list(axis) for axis in axes.values()]

        @functools.wraps(test)
        def run(*arguments: Any, **fixtures: Any) -> None:
            for combination in itertools.product(*values):
                chosen = dict(zip(axes, combination, strict=True))
                try:
                    test(*arguments, **fixtures, **chosen)
                except pytest.skip.Exception as skipped:
                    raise AssertionError(f"{chosen} skips the combinations after it") from skipped
                except BaseException as error:
                    error.add_note(f"with {chosen}")
                    raise

        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name not in axes]
        run.__signature__ = signature.replace(parameters=others)
        return run

    return decorate


def drawn(n: int, /, **axes: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for n combinations of values that hypothesis draws."""
    strategies = {name: st.sampled_from(list(axis)) for name, axis in axes.items()}
    # Fixtures stay the same for all examples: the tests say nothing that one leaves to the next.
    check = settings(max_examples=n, suppress_health_check=list(HealthCheck))
    return lambda test: check(given(**strategies)(test))
