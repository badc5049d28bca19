"""What public functions refuse, as tables: `ROOM.txt` has a line for each call.

A line is a call, the place that the error names, and words of its message::

    kernel_matrix(put(X, (2, 1), nan))  | X row 2 column 1  | contains NaN

The call is Python, and sees the names of `values.py`. The place is the argument, then its row and
its column where the message has them; it is empty where the error is no `ArgumentError`. The words
stand in the message in this order, with anything in the place of each "…"; a message that begins
with ^ begins so. The error is a ValueError, or what the words begin with, such as "TypeError:".
Lines that begin with # are comments, and lines that begin with a blank go on with the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
TABLES = sorted(path.stem for path in FOLDER.glob("*.txt"))


@dataclass
class Refusal:
    """A line of a table."""

    line: int
    call: str
    place: str
    words: str


def refusals_of(room: str) -> Iterator[Refusal]:
    """Yield what a table says."""
    rows: list[tuple[int, str]] = []
    for number, line in enumerate((FOLDER / f"{room}.txt").read_text().splitlines(), 1):
        if line.startswith(" "):
            first, begun = rows.pop()
            rows.append((first, f"{begun} {line.strip()}"))
        elif line and not line.startswith("#"):
            rows.append((number, line))
    for number, line in rows:
        call, place, words = line.rsplit("|", 2)
        yield Refusal(number, call.strip(), place.strip(), words.strip())
