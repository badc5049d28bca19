"""The time at which the work of a thread ends: what cannot be interrupted asks for it before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local

import pairgram._core as _core


@dataclass(frozen=True)
class Deadline:
    """When the work of a thread ends.

    Attributes
    ----------
    end : float
        The time of `time.perf_counter`.
    slowness : float
        How many times the expected seconds work takes on this machine now.
    """

    end: float = float("inf")
    slowness: float = 1.0

    def require(self, seconds: float = 0.0) -> None:
        """Raise a TimeoutError if work that is expected to take so long would not end in time."""
        if time.perf_counter() + self.slowness * seconds > self.end:
            raise TimeoutError("the time for this computation is over")


class _OfThread(local):
    deadline = Deadline()


_now = _OfThread()


def deadline() -> Deadline:
    """Return the deadline of this thread. Threads that it starts are handed it, or have none."""
    return _now.deadline


@contextmanager
def until(end: float, slowness: float = 1.0) -> Iterator[None]:
    """End what this thread does within this context by a TimeoutError at a time.

    Compiled code looks at the clock about ten times a second. Long work that is not compiled here
    has to ask: a call of LAPACK before it begins, a loop of NumPy in every round.
    """
    before = _now.deadline
    _now.deadline = Deadline(end, slowness)
    _core.set_deadline(end - time.perf_counter() if end < float("inf") else None)
    try:
        yield
    finally:
        _now.deadline = before
        left = before.end - time.perf_counter()
        _core.set_deadline(left if before.end < float("inf") else None)
