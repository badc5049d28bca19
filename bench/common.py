"""What the benchmarks share: timing, memory, Markdown tables, the machine's line, the mains."""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import multiprocessing
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

import pairgram
from pairgram._support.machine import thread_count

MIB = 2**20
_STATUS = Path("/proc/self/status")
_PROCESSOR = Path("/proc/cpuinfo")


def interleaved(
    functions: Mapping[str, Callable[[], Any]], repeat: int, pause: float = 0.05
) -> dict[str, float]:
    """Return the median seconds of every function, called in turn so that drift hits all alike.

    The pause before each call lets the BLAS threads of the call before it go to sleep: OpenBLAS
    keeps them spinning for some 25 ms.
    """
    runs: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            time.sleep(pause)
            runs[name].append(stopwatch(function)[0])
    return {name: statistics.median(values) for name, values in runs.items()}


def stopwatch(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that one call takes, and what it returns."""
    gc.collect()
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def use_threads(asked: int | None) -> int:
    """Limit pairgram and BLAS, here and in fresh processes, if asked; return pairgram's threads."""
    if asked is not None:
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(asked)
        threadpool_limits(asked)
    return thread_count()


def on_threads(n: int, call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that makes the call while pairgram has so many threads."""

    def limited() -> Any:
        with pairgram.threads(n):
            return call()

    return limited


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of a module returns in a new interpreter, free of our memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


class PeakMemory:
    """How far resident memory rises at its highest above where it was on entry; Linux only.

    Attributes
    ----------
    rise : float
        Bytes, NaN where /proc does not tell.

    Notes
    -----
    Writing 5 to /proc/self/clear_refs resets the kernel's high-water mark (VmHWM) to the memory of
    the moment, so no earlier peak hides the one that is measured.
    """

    rise = float("nan")

    def __enter__(self) -> PeakMemory:
        gc.collect()
        if _STATUS.exists():
            Path("/proc/self/clear_refs").write_text("5")
            self._before = _status_bytes("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        if _STATUS.exists():
            self.rise = _status_bytes("VmHWM") - self._before


def _status_bytes(field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert match, f"{_STATUS} has no {field}"
    return 1024 * int(match[1])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table: the first column aligned left, the others right."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ratio_table(times: Mapping[str, float], **columns: Mapping[str, str]) -> str:
    """Return a table of ways: time, ratio to the first, further columns."""
    first = next(iter(times.values()))
    rows = [
        [way, seconds(time), f"{time / first:.2f}", *(c.get(way, "") for c in columns.values())]
        for way, time in times.items()
    ]
    return markdown_table(["way", "time", "ratio", *columns], rows)


def seconds(value: float) -> str:
    """Return a time with three digits: ``41.2 ms``, ``1.30 s``."""
    number, unit = (value, "s") if value >= 1 else (1e3 * value, "ms")
    return f"{number:#.3g}".rstrip(".") + f" {unit}"


def mebibytes(value: float) -> str:
    """Return bytes in MiB."""
    return f"{value / MIB:.1f} MiB"


def machine_line(packages: Sequence[str]) -> str:
    """Return a line on the machine, the threads of pairgram and of BLAS, and the versions."""
    blas = {f"{info['internal_api']} {info['num_threads']}" for info in threadpool_info()}
    versions = ", ".join(f"{name} {_version(name)}" for name in ("pairgram", *packages))
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{_processor()}, {os.cpu_count()} CPUs, {platform.system()}{load}; "
        f"threads: pairgram {thread_count()}, {', '.join(sorted(blas))}; "
        f"Python {platform.python_version()}, {versions}."
    )


def vector_set() -> str:
    """Return the widest vectors of the processor, or else its architecture."""
    if not _PROCESSOR.exists():
        return platform.machine()
    words = set(_PROCESSOR.read_text().split())
    return next((v for v in ("avx512f", "avx2") if v in words), platform.machine())


def _processor() -> str:
    """Return the processor's name and the widest vectors that it has."""
    if not _PROCESSOR.exists():
        return platform.processor() or platform.machine()
    name = re.search(r"^model name\s*: (.*)", _PROCESSOR.read_text(), re.MULTILINE)
    return f"{name[1] if name else platform.machine()} ({vector_set()})"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def progress(message: str) -> None:
    """Say on stderr what is being done."""
    print(message, file=sys.stderr, flush=True)


def print_tables(
    parser: argparse.ArgumentParser,
    tables: Mapping[str, Callable[[Any], Iterable[str]]],
    make_options: Callable[..., Any],
    packages: Sequence[str],
    repeat: int = 9,
) -> None:
    """Read the command line; print the machine's line, and the tables that it names, or else all.

    Adds the names of tables, ``--repeat`` and ``--threads`` to the parser's arguments. All but the
    names go to `make_options`, and what that returns to each table.
    """
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(tables)}")
    parser.add_argument("--repeat", type=int, default=repeat, metavar="N", help="runs of each")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="of pairgram and BLAS; else each has its default"
    )
    arguments = vars(parser.parse_args())
    names = arguments.pop("tables") or list(tables)
    unknown = set(names) - set(tables)
    if unknown:
        parser.error(f"unknown table {min(unknown)!r}; the tables are {', '.join(tables)}")
    arguments["threads"] = use_threads(arguments["threads"])
    options = make_options(**arguments)
    print(machine_line(packages))
    print(f"Medians of {options.repeat} runs.")
    for name in names:
        progress(f"table {name}")
        for text in tables[name](options):
            print(f"\n{text}", flush=True)
