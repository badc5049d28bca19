"""The threads, the memory and the time of the machine, and values that are computed once."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from threadpoolctl import ThreadpoolController

import pairgram._core as _core
from pairgram._support import limits

# From this order of a matrix on, the size of the workspace of LAPACK's driver "evd" leaves 32 bits.
TOO_LARGE_FOR_EVD = 32_767

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A property that is computed once and then kept with the instance.

        That of functools holds one lock for all instances while it computes: other threads would
        wait, and a child that is forked meanwhile would wait for ever.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


def available_memory(root: Path = Path("/")) -> float:
    """Return the bytes that may be allocated without swapping, or infinity if it is not known.

    This is the smallest of several numbers. One is the free memory of the system (``MemAvailable``,
    otherwise its physical memory). The others are what the limits of the process's cgroup (v2) and
    of those around it leave: ``memory.max`` minus ``memory.current``, where unused file cache
    (``inactive_file``) is not counted. The files of the system lie in the folder `root`.
    """
    given = limits.now.available_memory
    return min(_of_system(root), *_of_cgroups(root), inf) if given is None else given


def fits(needed: float) -> bool:
    """Tell whether so many bytes are free."""
    return needed <= limits.now.unasked_bytes or needed <= available_memory()


def require(what: str, needed: float, advice: str = "") -> None:
    """Raise a MemoryError if `what` takes more bytes than are free.

    `what` is a noun in the singular. The message ends with `advice`.
    """
    if not fits(needed):
        raise lacking(what, needed, advice)


def lacking(what: str, needed: float, advice: str = "") -> MemoryError:
    """Return the error of `require`."""
    free = available_memory()
    return MemoryError(
        f"{what} takes {needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free"
        f"{': ' * bool(advice)}{advice}"
    )


def _of_system(root: Path) -> float:
    for line in _lines(root / "proc" / "meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return inf


def _of_cgroups(root: Path) -> Iterator[float]:
    for line in _lines(root / "proc" / "self" / "cgroup"):
        if not line.startswith("0::/"):  # a line of version 1
            continue
        group = PurePosixPath(line[len("0::/") :])
        if ".." in group.parts:
            continue
        for folder in (group, *group.parents):
            yield _room(root / "sys" / "fs" / "cgroup" / folder)


def _room(folder: Path) -> float:
    """Return the bytes that one cgroup leaves, or infinity if it has no limit that can be read."""
    try:
        limit, current = (int(_lines(folder / f"memory.{name}")[0]) for name in ("max", "current"))
    except (IndexError, ValueError):  # the file does not exist, or says "max"
        return inf
    for line in _lines(folder / "memory.stat"):
        if line.startswith("inactive_file "):
            current -= int(line.split()[1])
    return max(0, limit - current)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


class threads:
    """Let everything in this process take so many threads, within a context.

    Without it, every fit, score and metric takes the CPUs that the process may run on, but at most
    ``OMP_NUM_THREADS`` of them if that is set, as the processes of joblib and Dask set it. The
    results have the same bits for any `n`.

    Parameters
    ----------
    n : int ≥ 1
        The number of threads, which may exceed the CPUs; at most 1,024.

    Raises
    ------
    ValueError
        If `n` is not such a number.

    Notes
    -----
    Contexts may be nested, and be open in several Python threads. The smallest number counts, and
    it counts for all threads of the process, whatever ``OMP_NUM_THREADS`` says. Other processes,
    such as the workers of joblib, do not see it.

    Examples
    --------
    >>> import pairgram
    >>> with pairgram.threads(1):
    ...     model = pairgram.RankRLS().fit([[0.0], [1.0]], [0, 1])
    """

    _open: ClassVar[list[tuple[int, int]]] = []  # the thread and the number of each context

    def __init__(self, n: int) -> None:
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n must be an integer >= 1, the number of threads, got {n!r}")
        self._n: int = min(int(n), MOST_THREADS)
        self._entered: list[tuple[int, int]] = []

    def __enter__(self) -> None:
        self._entered.append((threading.get_ident(), self._n))
        self._open.append(self._entered[-1])

    def __exit__(self, *error: object) -> None:
        with suppress(ValueError):  # a forked child has forgotten it
            self._open.remove(self._entered.pop())


def _forget_other_threads() -> None:
    """Forget the contexts that other threads have opened: a forked child has none of them."""
    threads._open[:] = [one for one in threads._open if one[0] == threading.get_ident()]


MOST_THREADS = 1024
# Work on fewer values takes less time than starting a thread.
FEW_VALUES = 1 << 17


def thread_count(n_values: float = inf) -> int:
    """Return the number of threads to use now, see `threads`, or 1 for work on so few values."""
    if n_values < FEW_VALUES:
        return 1
    asked = [n for _, n in tuple(threads._open)]
    return min(asked) if asked else _free_threads()


def _free_threads() -> int:
    """Return the number of threads where no context says one."""
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        available = os.cpu_count() or 1
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(available, int(first)) if first.isdecimal() and int(first) > 0 else available


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

    end: float = inf
    slowness: float = 1.0

    def require(self, seconds: float = 0.0) -> None:
        """Raise a TimeoutError if work that is expected to take so long would not end in time."""
        if time.perf_counter() + self.slowness * seconds > self.end:
            raise TimeoutError("the time for this computation is over")


class _OfThread(threading.local):
    deadline = Deadline()


_of_thread = _OfThread()


def deadline() -> Deadline:
    """Return the deadline of this thread. Threads that it starts are handed it, or have none."""
    return _of_thread.deadline


@contextmanager
def until(end: float, slowness: float = 1.0) -> Iterator[None]:
    """End what this thread does within this context by a TimeoutError at a time.

    Compiled code looks at the clock about ten times a second. Long work that is not compiled here
    has to ask: a call of LAPACK before it begins, a loop of NumPy in every round.
    """
    before = _of_thread.deadline
    end = min(end, before.end)
    _of_thread.deadline = Deadline(end, slowness)
    _core.set_deadline(end - time.perf_counter() if end < inf else None)
    try:
        yield
    finally:
        _of_thread.deadline = before
        left = before.end - time.perf_counter()
        _core.set_deadline(left if before.end < inf else None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End what this thread fits or computes within a context once so many seconds have passed.

    A fit that is ended leaves its estimator as it was.

    Parameters
    ----------
    seconds : float ≥ 0

    Raises
    ------
    TimeoutError
        If the time is over. Compiled code looks at the clock about ten times a second; a single
        call of LAPACK, or of code of other packages, is not ended before it returns.
    ValueError
        If `seconds` is not such a number.

    Examples
    --------
    >>> import pairgram
    >>> with pairgram.time_limit(60):
    ...     model = pairgram.RankRLS().fit([[0.0], [1.0]], [0, 1])
    """
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds >= 0:
        raise ValueError(f"seconds must be a number >= 0, got {seconds!r}")
    with until(time.perf_counter() + float(seconds)):
        yield


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
        self._saved: list[tuple[Any, int]] = []  # the libraries with more than one thread
        self._due = False  # whether saved numbers must still be restored although none is inside

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                if self._libraries is None:  # looking for the libraries takes milliseconds
                    controller = ThreadpoolController().select(user_api="blas")
                    self._libraries = list(controller.lib_controllers)
                if not self._due:
                    known = [(library, library.num_threads) for library in self._libraries]
                    self._saved = [(library, n) for library, n in known if n > 1]
                for library, _ in self._saved:
                    _set_threads(library, 1)
                self._due = False
            self._depth += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            if self._depth > 0:
                self._depth -= 1
            elif not self._due:  # left by a forked child, which has restored the numbers
                return
            if self._depth == 0:
                for library, n_threads in self._saved:
                    _set_threads(library, n_threads)
                self._due = False

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


def _set_threads(library: Any, n_threads: int) -> None:
    # OpenBLAS has one setting for the process. threadpoolctl lets only the Python thread that set
    # it first set it again. The lock of the guard makes that unnecessary.
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


# Holds BLAS to one thread in this process while the context is open (reentrant, any thread).
single_threaded_blas = _BlasGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
    os.register_at_fork(
        before=single_threaded_blas.before_fork,
        after_in_parent=single_threaded_blas.after_fork,
        after_in_child=single_threaded_blas.after_fork_in_child,
    )
