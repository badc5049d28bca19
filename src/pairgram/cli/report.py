"""Print results on standard output, and all else on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

from pairgram._support.files import naming, printable


def warn(message: str) -> None:
    """Print a note or a warning about the results on standard error."""
    print(f"pairgram: {printable(message)}", file=sys.stderr)


def print_lines(lines: Iterable[str]) -> None:
    """Print results line by line. An error of writing names standard output."""
    with naming("standard output"):
        sys.stdout.writelines(f"{line}\n" for line in lines)


def print_json(value: object) -> None:
    """Print JSON. Numbers that are not finite become null, because JSON does not have them."""
    text = json.dumps(value, default=str)
    found = json.loads(text, parse_constant=lambda not_finite: None)
    print_lines([json.dumps(found, indent=2)])


def print_table(
    names: Sequence[str],
    rows: Iterable[Iterable[Any]],
    *,
    title: str = "",
    footer: Sequence[Any] = (),
    cell: Callable[[Any], str] | None = None,
) -> None:
    """Print rows under column names; columns that begin with a number are aligned right.

    Parameters
    ----------
    names, rows, title
        The table. Cells may be anything that `show` takes. Without names there is no head.
    footer : sequence
        A last row below a blank line.
    cell : callable or None
        The function that returns the text of a cell. None takes `show`.
    """
    columns = []
    for number, values in enumerate(zip(*rows, *[footer] * bool(footer), strict=True)):
        texts = [*names[number : number + 1], *map(cell or show, values)]
        pad = str.rjust if isinstance(values[0], Real) else str.ljust
        columns.append([pad(text, max(map(len, texts))) for text in texts])
    lines = [f" {'  '.join(row)}".rstrip() for row in zip(*columns, strict=True)]
    if names:
        lines.insert(1, " " + "─" * (len(lines[0]) - 1))
    if footer:
        lines.insert(-1, "")
    print_lines([*[title] * bool(title), "", *lines])


def significant(value: object) -> str:
    """Return the text of a cell, with six digits for a float, however small it is."""
    return f"{value:.6g}" if isinstance(value, float) else show(value)


def show(value: object) -> str:
    """Return the text of a cell.

    A float has four decimals or digits. Other texts are yes and no, and none.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if 0 < abs(value) < 1e-3:
            return f"{value:.4g}"
        return f"{value:.4f}" if abs(value) < 1e5 else f"{value:.6g}"
    return "none" if value is None else printable(str(value))


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as ``1 row`` or ``2 rows``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


@contextmanager
def notes() -> Iterator[None]:
    """Within this context, print the library's warnings as notes of one line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # Rows of a file have no names, which scikit-learn would say of every model that has some.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                warn(f"warning: {message}")


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error what is being done, if it is a terminal; yield what shows more."""

    def tell(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{printable(text)}\x1b[K", end="", file=sys.stderr, flush=True)

    tell(what)
    try:
        yield tell
    finally:
        tell("")


@contextmanager
def passes() -> Iterator[Callable[[Any], Any]]:
    """Yield a function that returns a table whose rows are counted on a terminal as they are read.

    Warnings are notes.
    """
    n_read = 0
    with notes(), working("") as tell:

        def advance(n_rows: int) -> None:
            nonlocal n_read
            n_read += n_rows
            tell(f"{n_read:,} rows read")

        yield lambda table: table.watched(advance)
