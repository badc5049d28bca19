"""Results in a file, and what differs between two of these.

A file is one of safetensors. Its tensors are the arrays, its metadata are the texts, and both are
named "configuration -> result".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from .public import in_later_words
from .results import Result

ARROW = " -> "
# The result of a configuration, or of one model of a batch, that failed.
_ERROR = re.compile(rf"({ARROW}(?:\d+\.\d+\.)?)error$")
REVISION = "revision"
# Two numbers that differ by this share of the largest number of their array are the same.
SHARE = 1e-9
_DECIMAL = re.compile(r"(-?\b\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))")


def write(path: Path, results: dict[str, dict[str, Result]], revision: str) -> None:
    """Write the results of all configurations."""
    arrays, texts = {}, {REVISION: revision}
    for configuration, found in results.items():
        for name, value in found.items():
            key = f"{configuration}{ARROW}{name}"
            if isinstance(value, str):
                texts[key] = value
            else:
                arrays[key] = np.ascontiguousarray(value).reshape(value.shape)
    save_file(arrays, path, metadata=texts)


def read(path: Path) -> tuple[dict[str, Result], str]:
    """Return the results by their names, and the revision that gave them."""
    with safe_open(path, framework="numpy") as file:
        texts = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    revision = texts.pop(REVISION)
    return arrays | texts, revision


@dataclass(frozen=True)
class Difference:
    """What is not the same: the share is NaN where there is no number for it."""

    what: str
    share: float = np.nan


def difference(old: Result | None, new: Result | None) -> Difference | None:
    """Return how two results differ, or None if they are equal to the bit."""
    if old is None or new is None:
        return Difference(
            f"only {'new' if old is None else 'old'}: {_brief(old if new is None else new)}"
        )
    if isinstance(old, str) or isinstance(new, str):
        if not (isinstance(old, str) and isinstance(new, str)):
            return Difference(f"{_brief(old)} has become {_brief(new)}")
        return _of_texts(old, new)
    if old.dtype != new.dtype or old.shape != new.shape:
        return Difference(f"{old.dtype}{old.shape} has become {new.dtype}{new.shape}")
    if old.tobytes() == new.tobytes():
        return None
    if old.dtype.kind != "f":
        return Difference(f"{int((old != new).sum())} of {old.size} values")
    finite = np.isfinite(old) & np.isfinite(new)
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    if not (finite | same).all():
        return Difference("other values are finite")
    size = max(np.abs(old[finite]).max(initial=0.0), np.abs(new[finite]).max(initial=0.0))
    gap = np.abs(np.where(finite, new, 0.0) - np.where(finite, old, 0.0)).max(initial=0.0)
    return Difference("numbers", float(gap / size) if size else 0.0)


def _of_texts(old: str, new: str) -> Difference | None:
    """Compare the decimals of texts that are equal otherwise, each with its own size."""
    if old == new or (old := in_later_words(old)) == (new := in_later_words(new)):
        return None
    mine, theirs = _DECIMAL.split(old), _DECIMAL.split(new)
    if mine[::2] == theirs[::2]:
        pairs = np.array([mine[1::2], theirs[1::2]], dtype=float)
        size = np.abs(pairs).max(axis=0)
        gaps = np.abs(pairs[0] - pairs[1]) / np.where(size > 0, size, 1.0)
        return Difference("decimals of a text", float(gaps.max(initial=0.0)))
    lines = zip(old.splitlines(), new.splitlines(), strict=False)
    one, other = next(((a, b) for a, b in lines if a != b), (old[-100:], new[-100:]))
    begin = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    begin = max(0, begin - 30)
    return Difference(f"{one[begin : begin + 110]!r} has become {other[begin : begin + 110]!r}")


def _brief(value: Result | None) -> str:
    return (
        f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else repr(str(value)[:110])
    )


@dataclass
class Allowed:
    """Differences that have a reason: globs of configurations and of results."""

    configuration: str
    result: str
    reason: str
    met: int = 0

    def holds(self, configuration: str, result: str) -> bool:
        return fnmatchcase(configuration, self.configuration) and fnmatchcase(result, self.result)


@dataclass
class Count:
    """How many results of an area are what."""

    configurations: set[str]
    equal: int = 0
    close: int = 0
    explained: int = 0
    unexplained: int = 0


def compare(
    old: dict[str, Result], new: dict[str, Result], allowed: list[Allowed]
) -> tuple[dict[str, Count], list[tuple[str, Difference]], list[tuple[str, Difference]]]:
    """Return counts by area, the differences without a reason, and those that have one."""
    names = {in_later_words(key): key for key in [*old, *new]}
    old, new = ({in_later_words(key): it for key, it in one.items()} for one in (old, new))
    counts: dict[str, Count] = {}
    unexplained, explained = [], []
    # An error in place of all other results says it alone.
    errors = [key for key in old.keys() ^ new.keys() if _ERROR.search(key)]
    failed = tuple(_ERROR.sub(r"\1", key) for key in errors)
    for key, name in names.items():
        if key.startswith(failed) and not _ERROR.search(key):
            continue
        configuration, _, result = name.partition(ARROW)
        count = counts.setdefault(configuration.partition("/")[0], Count(set()))
        count.configurations.add(configuration)
        found = difference(old.get(key), new.get(key))
        if found is None:
            count.equal += 1
        elif found.share <= SHARE:
            count.close += 1
        elif entry := next((one for one in allowed if one.holds(configuration, result)), None):
            entry.met += 1
            count.explained += 1
            explained.append((name, found))
        else:
            count.unexplained += 1
            unexplained.append((name, found))
    return counts, unexplained, explained


def allowed_of(entries: list[dict[str, Any]]) -> list[Allowed]:
    """Return the entries of a list of allowed differences."""
    wanted = {"configuration", "result", "reason"}
    for entry in entries:
        if set(entry) != wanted or not str(entry["reason"]).endswith("."):
            raise ValueError(
                f"an entry must have {', '.join(sorted(wanted))}, of which the reason is a "
                f"sentence, got {entry}"
            )
    return [Allowed(**entry) for entry in entries]
