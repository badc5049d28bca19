"""Runs campaigns of cases in child processes, so that crashes and hangs are counted."""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FAILURES", "Campaign", "Report", "run", "table", "work"]

# Outcomes that must not be; every other name is an outcome that may be, and is counted.
FAILURES = ("crash", "hang", "silent loss", "undocumented error")
PER_CHILD = 1200  # cases; a child that has had many is replaced
START = 300.0  # seconds that a child may take to import and to make what all cases share

# What a case returns: its outcome, and what it was for a report of failures.
Outcome = tuple[str, str]
Case = Callable[[int], Outcome]


class Campaign(NamedTuple):
    """Cases of one kind.

    Attributes
    ----------
    name : str
    module : str
        A module of this package, which a child imports when it needs it. Its function
        ``prepare(folder, short)`` writes what all cases share into a folder.
    cases : str
        Its function ``cases(folder, seed)``, which returns what runs a case, given its number.
    n_short, n_long : int
        How many cases.
    """

    name: str
    module: str
    cases: str
    n_short: int
    n_long: int

    def _function(self, name: str) -> Any:
        return getattr(importlib.import_module(f".{self.module}", __package__), name)


@dataclass
class Report:
    """The outcomes of a campaign, and what the failures were."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, number: int, outcome: str, detail: str) -> None:
        self.outcomes[outcome] += 1
        if outcome in FAILURES:
            self.failures.append(f"{self.name} {number}: {outcome}: {detail}")


def run(
    campaign: Campaign, *, seed: int, n_cases: int, short: bool, n_jobs: int, limit: float
) -> Report:
    """Return the report of a campaign's first cases.

    Parameters
    ----------
    campaign : Campaign
    seed : int
    n_cases : int
    short : bool
        What `prepare` is told.
    n_jobs : int
        Children at a time.
    limit : float
        Seconds for a case, after which it is a hang.
    """
    report = Report(campaign.name)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        campaign._function("prepare")(folder, short)
        size = min(PER_CHILD, -(-n_cases // n_jobs))
        parts = [(begin, min(begin + size, n_cases)) for begin in range(0, n_cases, size)]

        def part(bounds: tuple[int, int]) -> list[tuple[int, str, str]]:
            return list(_outcomes(campaign.name, folder, seed, *bounds, limit))

        with ThreadPoolExecutor(n_jobs) as pool:
            for outcomes in pool.map(part, parts):
                for outcome in outcomes:
                    report.add(*outcome)
    return report


def _outcomes(
    name: str, folder: Path, seed: int, begin: int, end: int, limit: float
) -> Iterator[tuple[int, str, str]]:
    """Yield (number, outcome, detail) of cases; a child that dies is replaced by another one."""
    while begin < end:
        with _Child(name, folder, seed, begin, end) as child:
            if child.line(START) is None:
                raise RuntimeError(f"{name}: a child did not start: {child.end(START)[1]}")
            while begin < end:
                line = child.line(limit)
                if line is None:
                    yield begin, *child.end(limit)
                    begin += 1
                    break
                yield begin, *line
                begin += 1


class _Child:
    """A process that runs cases and prints a line for each that is done."""

    def __init__(self, name: str, folder: Path, seed: int, begin: int, end: int) -> None:
        package = __package__ or ""
        root, tests = Path(__file__).parents[len(package.split("."))], Path(__file__).parents[1]
        before = os.environ.get("PYTHONPATH")
        path = os.pathsep.join(filter(None, [str(root), str(tests), before]))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in __exit__)
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-X", "faulthandler", "-m", f"{package}.child"),
                *(name, str(folder), str(seed), str(begin), str(end)),
            ],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2"},
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def line(self, limit: float) -> Outcome | None:
        """Return the outcome of the next case, None where the child ended or takes too long."""
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            return None
        if not line.endswith(b"\n"):
            return None
        outcome, detail = json.loads(line)
        return outcome, detail

    def end(self, limit: float) -> Outcome:
        """Return why there is no further line."""
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "hang", f"no end in {limit:g} s"
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").partition("Extension modules")[0]
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return "crash", f"{reason}\n{said.strip()[:3000]}"


def work(campaign: Campaign, folder: Path, seed: int, begin: int, end: int) -> None:
    """Run cases and print a line for each: what a child does."""
    case: Case = campaign._function(campaign.cases)(folder, seed)
    print(json.dumps(["ready", ""]), flush=True)
    for number in range(begin, end):
        print(json.dumps(case(number)), flush=True)


def table(reports: list[Report]) -> str:
    """Return a table of outcomes, a row for each campaign."""
    names = sorted({name for report in reports for name in report.outcomes} - set(FAILURES))
    columns = ["cases", *names, *FAILURES]
    rows = [["", *columns]]
    for report in reports:
        counts = [report.outcomes[name] for name in columns[1:]]
        rows.append([report.name, str(sum(counts)), *map(str, counts)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in pairs)
        for pairs in (enumerate(zip(row, widths, strict=True)) for row in rows)
    )
