"""What the runs of the papers' tables share: the benchmarks' tools, differences, pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import machine_line, markdown_table, progress, seconds, stopwatch, use_threads
from letor import default_folder

__all__ = [
    "comparison",
    "default_folder",
    "markdown_table",
    "parser",
    "picture",
    "progress",
    "seconds",
    "start",
    "stopwatch",
]

PICTURES = Path(__file__).resolve().parents[2] / "build" / "papers"


def comparison(
    paper: Mapping[str, Sequence[Any]],
    ours: Mapping[str, np.ndarray],
    measures: Sequence[str],
    *,
    spread: bool = False,
    difference: bool = True,
    decimals: int = 4,
) -> str:
    """Return a table with paper, ours and their difference for every way.

    Parameters
    ----------
    paper : mapping of str to sequence of n_measures numbers
        NaN where the paper has none. A pair is a mean and its standard deviation.
    ours : mapping of str to ndarray of shape (n_runs, n_measures)
        Printed are means over the runs that have a number, with their standard deviation where
        there are several such runs and `spread`.
    measures : sequence of str
        Names of the rows.
    difference : bool
        Whether there is a column of ours less theirs, which means nothing of other data.
    """
    rows = [[name] for name in measures]
    for way, values in ours.items():
        for row, theirs, runs in zip(rows, paper[way], values.T, strict=True):
            known = [value for value in np.atleast_1d(theirs) if np.isfinite(value)]
            cell = " ± ".join(f"{value:.{decimals}f}" for value in known)
            runs = runs[np.isfinite(runs)]
            found = f"{runs.mean():.{decimals}f}" if len(runs) else ""
            if spread and len(runs) > 1:
                found += f" ± {runs.std(ddof=1):.{decimals}f}"
            both = bool(known) and len(runs) > 0
            row += [cell, found]
            if difference:
                row.append(f"{runs.mean() - known[0]:+.{decimals}f}" if both else "")
    shown = ("paper", "ours", "difference") if difference else ("paper", "ours")
    header = [f"{way}: {what}" for way in ours for what in shown]
    return markdown_table(["", *header], rows)


@contextmanager
def picture(folder: Path, name: str, rows: int, columns: int) -> Iterator[Any]:
    """Yield the axes, (rows, columns), of a picture that is written on leaving; say where."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    size = (5.2 * columns, 3.6 * rows)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    yield axes
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=110)
    pyplot.close(figure)
    print(f"\npicture: {folder / name}.png")


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all runs have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--data", type=Path, default=default_folder(), metavar="FOLDER")
    made.add_argument("--threads", type=int, metavar="N", help="of pairgram and of BLAS")
    made.add_argument(
        "--pictures", type=Path, default=PICTURES, metavar="FOLDER", help="default: %(default)s"
    )
    return made


def start(arguments: argparse.Namespace) -> None:
    """Set the threads and print the machine's line."""
    use_threads(arguments.threads)
    print(machine_line(("numpy", "scipy")))
