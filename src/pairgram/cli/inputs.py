"""The inputs of commands: files, or standard input for the path ``-``."""

from __future__ import annotations

import io
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pairgram._support.files import kind_of_binary, naming, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The column of a Parquet file of scores.
SCORE = "score"
# A line of a file of scores has at most this many bytes.
MAX_LINE = 1000
_SCORE = re.compile(rb"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE)


def is_stdin(path: Path | None) -> bool:
    """Tell whether a path stands for standard input."""
    return str(path) == "-"


def name_of(path: Path) -> str:
    """Return the name of an input file for messages."""
    return "standard input" if is_stdin(path) else shown(path)


def same_file(path: Path, read: Path) -> bool:
    """Tell whether an output path is the same file as an input."""
    if not path.is_file():
        return False
    if is_stdin(read):
        try:
            return os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
        except (OSError, ValueError):  # standard input is closed, or is not a file of the system
            return False
    return read.exists() and path.samefile(read)


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file, or standard input, to read its bytes."""
    if not is_stdin(path):
        with open(path, "rb") as file, naming(path):
            yield file
        return
    source: Any = sys.stdin.buffer
    buffered = io.BufferedReader(source)
    try:
        with naming("standard input"):
            yield buffered
    finally:
        buffered.detach()  # so that standard input stays open


def load_scores(path: Path, n_rows: int) -> NDArray[Any]:
    """Read a file with one number per line, ``-`` for standard input, or a Parquet file of scores.

    Raises
    ------
    ValueError
        If a Parquet file has no column of scores, or lacks one in a row; if a line is neither a
        decimal number that fits into float64 nor ``inf`` (with or without a sign); or if there are
        not `n_rows` scores. The message names the file, and the line or row.
    """
    import numpy as np

    if path.suffix.lower() in (".parquet", ".pq"):
        scores = _scores_of_parquet(path)
        n_scores = len(scores)
    else:
        scores, n_scores = np.empty(n_rows), 0
        with opened(path) as file:
            found = kind_of_binary(file.peek(1024)[:1024])
            if found is not None:
                raise ValueError(f"{name_of(path)}: found {found}, want a score on every line")
            for score in _scores(file, name_of(path)):
                if n_scores == n_rows:
                    raise ValueError(
                        f"{name_of(path)}:{n_rows + 1}: found more scores than the {n_rows} rows"
                    )
                scores[n_scores] = score
                n_scores += 1
    if n_scores != n_rows:
        raise ValueError(
            f"{name_of(path)}: found {n_scores} scores, want one for each of {n_rows} rows"
        )
    return scores


def _scores_of_parquet(path: Path) -> NDArray[Any]:
    """Read the column of scores that ``pairgram predict`` writes."""
    from pairgram._support.checks import NO_COLUMN, ArgumentError
    from pairgram.tables.scan import read_labels

    try:
        return read_labels(path, SCORE)[0]
    except ArgumentError as error:
        if error.found != NO_COLUMN:
            raise
        error.parameter, error.place = None, name_of(path)
        text = str(error).removeprefix(": ")
        raise ValueError(f"{text}: pairgram predict writes such a column") from None


def _scores(file: IO[bytes], name: str) -> Iterator[float]:
    """Yield the score of every line. Lines at the end may be blank."""
    blank = 0  # the number of the first blank line so far
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        found = line.strip(b" \t\r\n")
        if not found:
            blank = blank or number
            continue
        if blank:
            raise ValueError(f"{name}:{blank}: found '', want a score, one number per line")
        text = found[:60].decode("ascii", "backslashreplace")
        if len(line) > MAX_LINE:
            raise ValueError(f"{name}:{number}: found {text!r}..., want at most {MAX_LINE} bytes")
        if found.lower().lstrip(b"+-") == b"nan":
            raise ValueError(f"{name}:{number}: found NaN, want a score, a number")
        if _SCORE.fullmatch(found) is None:
            raise ValueError(f"{name}:{number}: found {text!r}, want a score, one number per line")
        score = float(found)
        if math.isinf(score) and b"n" not in found.lower():
            raise ValueError(f"{name}:{number}: found {text!r}, too large for a float64")
        yield score
