"""Find out how much memory is free, and refuse work that needs more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf
from pathlib import Path, PurePosixPath

# So many bytes are not worth asking for: that takes as long as a small fit.
SMALL = 1 << 24
_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def available_memory() -> float:
    """Return the bytes that may be allocated without swapping, or infinity if it is not known.

    This is the smallest of several numbers. One is the free memory of the system (``MemAvailable``,
    otherwise its physical memory). The others are what the limits of the process's cgroup (v2) and
    of those around it leave: ``memory.max`` minus ``memory.current``, where unused file cache
    (``inactive_file``) is not counted.
    """
    return min(_of_system(), *_of_cgroups(), inf)


def fits(needed: float) -> bool:
    """Tell whether so many bytes are free."""
    return needed <= SMALL or needed <= available_memory()


def require(what: str, needed: float, advice: str = "") -> None:
    """Raise a MemoryError if `what` takes more bytes than are free.

    `what` is a noun in the singular. The message ends with `advice`.
    """
    if not fits(needed):
        free = available_memory()
        raise MemoryError(
            f"{what} takes {needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free"
            f"{': ' * bool(advice)}{advice}"
        )


def _of_system() -> float:
    for line in _lines(_PROC / "meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return inf


def _of_cgroups() -> Iterator[float]:
    for line in _lines(_PROC / "self" / "cgroup"):
        if not line.startswith("0::/"):  # a line of version 1
            continue
        group = PurePosixPath(line[len("0::/") :])
        if ".." in group.parts:
            continue
        for folder in (group, *group.parents):
            yield _room(_CGROUPS / folder)


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
