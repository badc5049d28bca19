"""The number of threads to use, and the guard that keeps BLAS to one thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Any

from threadpoolctl import ThreadpoolController


def resolve_n_threads(n_threads: int | None) -> int:
    """Return the number of threads to use.

    Parameters
    ----------
    n_threads : int or None
        None takes the CPUs that the process may run on, but at most ``OMP_NUM_THREADS`` of them if
        that is set, and at most the threads that a worker of a cluster has. A number ≥ 1 is used
        as it is, up to 1,024.

    Raises
    ------
    ValueError
        If `n_threads` is neither None nor an integer ≥ 1.
    """
    if n_threads is not None:
        if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
            raise ValueError(f"n_threads must be None or an integer >= 1, got {n_threads!r}")
        return min(int(n_threads), MAX_THREADS)
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        available = os.cpu_count() or 1
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    allowed = min(available, int(first)) if first.isdecimal() and int(first) > 0 else available
    return min(allowed, _most.get())


MAX_THREADS = 1024
_most: ContextVar[int] = ContextVar("most", default=MAX_THREADS)


@contextmanager
def at_most_threads(n_threads: int) -> Iterator[None]:
    """Within this context, ``n_threads=None`` takes at most so many threads."""
    token = _most.set(n_threads)
    try:
        yield
    finally:
        _most.reset(token)


class _BlasGuard:
    """Holds BLAS to one thread while at least one context is open.

    The first context saves the number of threads, and the last one restores it. With overlapping
    ``threadpool_limits`` contexts in two Python threads, BLAS would stay at one thread for good,
    because the second context would save the number that the first has set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._libraries: list[Any] | None = None
        self._saved: list[int] = []
        self._due = False  # whether saved numbers must still be restored although none is inside

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                if self._libraries is None:  # looking for the libraries takes milliseconds
                    controller = ThreadpoolController().select(user_api="blas")
                    self._libraries = list(controller.lib_controllers)
                if not self._due:
                    self._saved = [library.num_threads for library in self._libraries]
                self._set([1] * len(self._saved))
                self._due = False
            self._depth += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            if self._depth > 0:
                self._depth -= 1
            elif not self._due:  # left by a forked child, which has restored the numbers
                return
            if self._depth == 0:
                self._set(self._saved)
                self._due = False

    def _set(self, wanted: list[int]) -> None:
        for library, saved, n_threads in zip(
            self._libraries or (), self._saved, wanted, strict=True
        ):
            if saved == 1:
                continue
            # OpenBLAS has one setting for the process. threadpoolctl lets only the Python thread
            # that set it first set it again. The lock of this guard makes that unnecessary.
            release = getattr(library, "clear_controlling_thread", None)
            if release is not None:
                release(force=True)
            library.set_num_threads(n_threads)
            if release is not None:
                release(force=True)

    def before_fork(self) -> None:
        """Wait until no thread changes the setting: a forked child would find the lock taken."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """Let the threads of the parent go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget the threads of the parent, none of which the child has.

        If they held BLAS to one thread, the next one in restores the numbers that they saved. The
        fork itself does not touch BLAS, which may be in the middle of a call. A context that was
        open in the thread that forked may still be left in the child.
        """
        self._lock = threading.Lock()
        self._due = self._depth > 0 or self._due
        self._depth = 0


_guard = _BlasGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_guard.before_fork,
        after_in_parent=_guard.after_fork,
        after_in_child=_guard.after_fork_in_child,
    )


def single_threaded_blas() -> AbstractContextManager[None]:
    """Hold BLAS to one thread in this process while the context is open (reentrant, any thread)."""
    return _guard
