"""Results that are tables: as text, in notebooks, as frames and for papers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any

from numpy.typing import NDArray

from pairgram._support.parameters import check_text

Table = dict[str, NDArray[Any]]


class Tabled(ABC):
    """A result that is one table or more."""

    @abstractmethod
    def _tables(self) -> dict[str, tuple[str, Table]]:
        """Return the title and the columns of every table that is shown, by its name."""

    def __str__(self) -> str:
        """Return the tables as text."""
        parts = self._tables().values()
        return "\n\n".join(f"{title}\n{text_of(table)}".strip("\n") for title, table in parts)

    def _repr_html_(self) -> str:
        parts = self._tables().values()
        return "".join(f"<p>{escape(title)}</p>{_html(table)}" for title, table in parts)

    def to_frame(self, table: str | None = None) -> Any:
        """Return a table as a frame of pandas, which must be installed.

        Parameters
        ----------
        table : str or None, default=None
            The name of the table, if there are several. None takes the first.

        Raises
        ------
        ValueError
            If there is no such table. The message names those that there are.
        """
        import pandas

        return pandas.DataFrame(self._table(table))

    def to_latex(self, table: str | None = None) -> str:
        r"""Return a table for a paper: a ``tabular`` with the rules of the package booktabs.

        Parameters
        ----------
        table : str or None, default=None
            As in `to_frame`.

        Raises
        ------
        ValueError
            As in `to_frame`.
        """
        chosen = self._table(table)
        columns = "".join("l" if is_text else "r" for is_text in _are_texts(chosen))
        head, *rows = (" & ".join(map(_latex, line)) + r" \\" for line in _lines(chosen))
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def _table(self, name: str | None) -> Table:
        tables = self._tables()
        if name is not None:
            check_text("table", name, tuple(tables))
        return tables[next(iter(tables)) if name is None else name][1]


def rows_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts of plain values."""
    names, columns = list(table), [column.tolist() for column in table.values()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def text_of(table: Table) -> str:
    """Return a table with aligned columns, numbers to the right; "" if it has no rows."""
    lines, texts = _lines(table), _are_texts(table)
    if len(lines) == 1:
        return ""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if is_text else cell.rjust(width)
            for cell, width, is_text in zip(line, widths, texts, strict=True)
        ).rstrip()
        for line in lines
    )


def _lines(table: Table) -> list[list[str]]:
    """Return the cells of a table, line by line; its first line has the names."""
    return [list(table), *([_cell(value) for value in row.values()] for row in rows_of(table))]


def _are_texts(table: Table) -> list[bool]:
    return [column.dtype.kind not in "biuf" for column in table.values()]


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"


def _html(table: Table) -> str:
    head, *rows = _lines(table)
    if not rows:
        return ""
    styles = [f'style="text-align:{"left" if text else "right"}"' for text in _are_texts(table)]

    def line(cells: list[str], tag: str) -> str:
        parts = zip(cells, styles, strict=True)
        return "".join(f"<{tag} {style}>{escape(cell)}</{tag}>" for cell, style in parts)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{line(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _latex(cell: str) -> str:
    """Return a cell with the characters escaped that mean something in LaTeX."""
    return "".join(_ESCAPED.get(character, character) for character in cell)


_ESCAPED = {
    "\\": r"\textbackslash{}",
    "\n": " ",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # The usual font of text has other signs in their places.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # The end of the line before would take them for its own.
    "[": "{[}",
    "*": "{*}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
