"""Logs of clicks as the input of commands: their options, and the propensities of positions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairgram._support import limits
from pairgram.cli import options as opt
from pairgram.cli.report import print_table, working
from pairgram.cli.tables import Columns

if TYPE_CHECKING:
    from pairgram.clicks.propensities import Propensities

Clicks = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of clicks of a table, in place of --label."),
]
Position = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the positions at which rows were shown, from 1; 0 means not shown. The "
        "probability that users look at each position is estimated from --clicks.",
    ),
]
Item = Annotated[
    str | None,
    typer.Option(
        metavar="[QUERY,]COLUMN",
        help="Column of the ids of documents. Propensities are estimated from documents that were "
        "shown at several positions for the same query. If a document has one id in all queries, "
        "give the column of the search query too, as in query,sku. [default: propensities are "
        "estimated by a regression of clicks on the features]",
    ),
]


def of_clicks(
    file: str, columns: Columns, clicks: str | None, position: str | None, item: str | None
) -> tuple[Columns, Any]:
    """Return the columns of a log with what is divided by, and the estimated propensities.

    These are None if --propensity names a column.
    """
    import numpy as np

    from pairgram.clicks import estimate_propensities
    from pairgram.tables.scan import read_labels

    if clicks is None:
        raise ValueError("--position and --item are for logs: give --clicks, the column of clicks")
    if columns.label is not None:
        raise ValueError("give --clicks or --label, not both: clicks take the place of labels")
    if (position is None) == (columns.propensity is None):
        raise ValueError("with --clicks, give --position or --propensity, and not both")
    if item is not None:
        if position is None:
            raise ValueError("--item is for --position, whose propensities it helps to estimate")
        named = opt.parse_names(item, "--item")
        if len(named) > 2:
            raise ValueError(f"--item takes a column, or two such as query,sku; got {item!r}")
        left_out = None if columns.features else [*(columns.exclude or []), *named]
        columns = replace(columns, exclude=left_out)
    columns = replace(columns, label=clicks)
    if position is None:
        return columns, None
    columns = replace(columns, propensity=position)
    with opt.warnings_as_notes(), working("estimating propensities"):
        if item is not None:
            (clicked, *_), (place, *_) = read_labels(file, clicks), read_labels(file, position)
            *searched, items = (read_labels(file, clicks, name)[1] for name in named)
            query = searched[0] if searched else None
            found = estimate_propensities(place, clicked, qid=query, item=items)
        else:
            names = [*columns.scan_assuming(file, None)[0].layout.features]
            own = replace(columns, features=[position, *names], exclude=None, propensity=None)
            rows = own.scan(file, None).filled().sample(limits.now.sample_rows).rows
            assert rows.y is not None
            found = estimate_propensities(rows.X[:, 0], rows.y, X=rows.X[:, 1:])
    looks = np.zeros(int(found.position[-1]) + 1)
    looks[found.position] = found.of(found.position)
    return replace(columns, looks=looks), found


def propensities_of(estimated: Propensities | None) -> dict[str, Any]:
    """Return what a report tells of estimated propensities, if there are any."""
    if estimated is None:
        return {}
    names = ("position", "propensity", "standard_error", "n_clicks")
    values = (getattr(estimated, name).tolist() for name in names)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return {"propensities": rows}


def print_propensities(looks: list[dict[str, Any]], item: str | None) -> None:
    """Print the propensities of a report, if there are any."""
    if not looks:
        return
    found_by = (
        "found by a regression on the features; --item finds it without one"
        if item is None
        else "standard errors are those of logarithms"
    )
    print_table(
        list(looks[0]),
        [[row["position"], f"{row['propensity']:.4f}", *_known(row)] for row in looks],
        title=f"how likely users look at each position; {found_by}",
    )


def _known(row: dict[str, Any]) -> list[Any]:
    """Return the cells of a standard error, if it is known, and the number of clicks."""
    error = row["standard_error"]
    return ["" if math.isnan(error) else f"{error:.4f}", row["n_clicks"]]
