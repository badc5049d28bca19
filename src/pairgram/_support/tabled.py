"""Tables as text, in notebooks and for papers."""

from __future__ import annotations

from html import escape
from typing import Any

from numpy.typing import NDArray

Table = dict[str, NDArray[Any]]


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


def latex_of(table: Table) -> str:
    """Return a table as a ``tabular`` with the rules of the package booktabs."""
    columns = "".join("l" if is_text else "r" for is_text in _are_texts(table))
    head, *rows = (" & ".join(map(_latex, line)) + r" \\" for line in _lines(table))
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _lines(table: Table) -> list[list[str]]:
    """Return the cells of a table, line by line; its first line has the names."""
    return [list(table), *([_cell(value) for value in row.values()] for row in rows_of(table))]


def _are_texts(table: Table) -> list[bool]:
    return [column.dtype.kind not in "biuf" for column in table.values()]


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"


def html_of(table: Table) -> str:
    """Return a table in the language of notebooks; "" if it has no rows."""
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
