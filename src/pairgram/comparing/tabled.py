"""Tables as text."""

from __future__ import annotations

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


def _lines(table: Table) -> list[list[str]]:
    """Return the cells of a table, line by line; its first line has the names."""
    return [list(table), *([_cell(value) for value in row.values()] for row in rows_of(table))]


def _are_texts(table: Table) -> list[bool]:
    return [column.dtype.kind not in "biuf" for column in table.values()]


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"
