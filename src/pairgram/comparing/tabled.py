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
    """Return a table with aligned columns, numbers to the right."""
    columns = []
    for name, values in table.items():
        texts = [name, *map(_cell, values.tolist())]
        pad = str.rjust if values.dtype.kind in "biuf" else str.ljust
        columns.append([pad(text, max(map(len, texts))) for text in texts])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"
