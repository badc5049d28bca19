"""Check arguments: a ValueError names the argument, what was found, and what is wanted."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]  # numbers of rows, and other whole numbers
Vector = NDArray[np.float64]


# What to do about missing features, at the end of messages.
_FILL = "fill such values before, or fit a ranker with feature_map=Fill('mean')"

# What is found if there is no column of a name.
NO_COLUMN = "no column"
# What is found if there is nothing to hold out.
ONE_QUERY = "one query"
# What is found if columns hold something else than numbers.
NO_NUMBERS = "no numbers"


# What a text names: another argument and its value, {name=value}; words for Python alone, {=words};
# the argument itself; and the place in it. A doubled brace is one that `verbatim` has kept.
_SLOT = re.compile(r"\{(\w*)=([^{}]*)\}|\{(argument\}|place\}|\{)")


class ArgumentError(ValueError):
    """An argument is refused. The message is made of the attributes, which callers may change.

    Attributes
    ----------
    parameter : str or None
        The name of the argument.
    text : str
        What the message says after the name, such as "must be None" or ": column 2 is empty". If
        the name stands elsewhere, ``{argument}`` shows where. The text has ``{place}`` for the
        place, names other arguments as ``{name=value}``, and has words for Python alone as
        ``{=words}``. What callers have named or given stands in it by `verbatim`.
    row, column : int or None
        The place in it, counted from 0.
    of : str
        Words that follow the row, such as " of the frame".
    called : str
        Words that follow the column: its name in parentheses.
    before : str
        Where the argument was refused, such as "query 'a': ", to begin the message.
    place : str or None
        The words for the place, if they are not those for a row and a column.
    found : str or None
        "NaN" or "infinity", if the place holds such a number, `NO_COLUMN`, `ONE_QUERY` or
        `NO_NUMBERS`.
    kinds : dict of str to str
        With `NO_NUMBERS`, and for missing values of tables, the columns and what they hold.
    spell : callable
        ``spell(name, value)`` returns how the message names an argument and its value. The value
        may be "" in a text, and is None for the argument that is refused. Without a name, the
        value is words for Python alone.
    placed : bool
        Whether the message names the part of the table already.
    """

    def __init__(
        self,
        parameter: str | None,
        text: str = "",  # a copy is made of the whole message, then of the attributes
        *,
        row: int | np.integer[Any] | None = None,
        column: int | np.integer[Any] | None = None,
        of: str = "",
        place: str | None = None,
        found: str | None = None,
        placed: bool = False,
        before: str = "",
    ) -> None:
        self.parameter, self.text, self.placed = parameter, text, placed
        self.row = None if row is None else int(row)
        self.column = None if column is None else int(column)
        self.of, self.place, self.found = of, place, found
        self.called, self.before = "", before
        self.kinds: dict[str, str] = {}
        self.spell: Callable[[str, str | None], str] = _in_python
        super().__init__(str(self))

    def __str__(self) -> str:
        place = self.place
        if place is None:
            row = [] if self.row is None else [f"row {self.row}{self.of}"]
            column = [] if self.column is None else [f"column {self.column}{self.called}"]
            place = ", ".join(row + column)
        argument = self.spell(self.parameter, None) if self.parameter else ""
        own = {"argument}": argument, "place}": place, "{": "{"}
        text = self.text
        if argument and all(slot[3] != "argument}" for slot in _SLOT.finditer(text)):
            text = f"{{argument}}{'' if text[:1] in ('', ':') else ' '}{text}"
        return self.before + _SLOT.sub(
            lambda slot: own[slot[3]] if slot[3] else self.spell(slot[1], slot[2]), text
        )


def verbatim(words: object) -> str:
    """Return words for the text of an `ArgumentError` that are not its own, without slots.

    Names of columns, ids, paths and other messages may have any braces.
    """
    return str(words).replace("{", "{{")


def _in_python(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value}" if name else value


def did_you_mean(name: object, known: Iterable[Any]) -> str:
    """Return a question about the known name that is most like an unknown one, to end a message.

    Upper case counts as lower case. If no name is alike, the text is empty.
    """
    from difflib import get_close_matches

    by_lower = {str(one).lower(): one for one in known}
    found = get_close_matches(str(name).lower(), by_lower, n=1)
    return f": did you mean {by_lower[found[0]]!r}?" if found else ""


class naming_not_finite:  # entering a class takes less time than entering a generator
    """Within this context, an error of `require_finite` also gives the name of the column."""

    def __init__(self, names: Sequence[Any] | None) -> None:
        self._names = names

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            name_column(error, self._names)


def name_column(error: BaseException, names: Sequence[Any] | None) -> None:
    """Let an error of `require_finite` also give the name of the column."""
    if names is None or not isinstance(error, ArgumentError) or error.called:
        return
    number = error.column if error.found in ("NaN", "infinity") else None
    if number is not None and number < len(names) and names[number] != number:
        error.called = f" ({names[number]!r})"


def require_finite(X: Any, name: str, *, with_row: bool = True) -> None:
    """Raise a ValueError if a dense or CSR matrix is not finite; it names the row and the column.

    If all values are finite, X is read once.
    """
    if (found := first_not_finite(X)) is not None:
        what, row, column = found
        advice = f": {_FILL}" if what == "NaN" else ""
        text = f"Input {{argument}} contains {what}: {{place}}, counted from 0{advice}"
        at = row if with_row else None
        raise ArgumentError(name, text, row=at, column=column, found=what)


def not_finite(values: AnyArray) -> int | None:
    """Return the place of the first value of an array, read row by row, that is not finite."""
    finite = np.isfinite(values)
    return None if finite.all() else int(np.argmin(finite))


def first_not_finite(X: Any) -> tuple[str, int, int] | None:
    """Return ("NaN" or "infinity", row, column) for the first such value, or None."""
    sparse = scipy.sparse.issparse(X)
    values = X.data if sparse else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or (at := not_finite(values)) is None:
            return None
    if sparse:
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
    else:
        row, column = divmod(at, X.shape[1])
    return ("NaN" if np.isnan(values.ravel()[at]) else "infinity"), row, column


def called_by(package: str) -> bool:
    """Tell whether a module of a package is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(package) and name[len(package) :][:1] in ("", "."):
            return True
        frame = frame.f_back
    return False


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller's code from which this package was called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pairgram."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
