"""``pairgram update``, ``forget``, ``solve`` and ``drift``: statistics of days and models."""

from __future__ import annotations

import re
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any

import typer

import pairgram
from pairgram._support.files import locked, shown
from pairgram._support.parameters import AT_LEAST_0, check_setting
from pairgram.cli import options as opt
from pairgram.cli.options import option, parse_grid
from pairgram.cli.report import print_json, print_table, show_rows, warn
from pairgram.cli.tables import Columns, note_assumed, with_columns_by_id

Statistics = Annotated[Path, typer.Argument(metavar="TOTAL", help="File of statistics.")]


@with_columns_by_id
def update(
    total: Statistics,
    file: opt.Rows,
    *,
    decay: Annotated[
        float,
        typer.Option(metavar="X", min=0, max=1, help="Factor for TOTAL before rows are added."),
    ] = 1.0,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Weight of a pair, for a new file; see train --help."),
    ] = None,
    columns: Columns,
    threads: opt.Threads = None,
    as_json: opt.Json = False,
) -> None:
    """Add the rows of a day to a file of statistics; a file that does not exist is created.

    Least squares needs nothing but these statistics of the rows; solve makes models from them.
    Their size depends on the features alone. With --decay 0.95, the rows that TOTAL already has
    count 5 % less. A query that the file already has is an error, so that no day is added twice.
    --pairs is for a new file; an existing one keeps its own. If an error occurs, TOTAL stays as it
    was. An update or forget of a file that exists waits until the one before it has ended.

    \b
    Examples:
      pairgram update total.pairgram monday.parquet --label relevance --qid query_id
      pairgram update total.pairgram today.parquet --label relevance --qid query_id --decay 0.95
    """
    with locked(total):
        known = total.exists()
        if known:
            statistics = pairgram.Pairgram.load(total)
            own = statistics.settings.pairs
            if pairs is not None and pairs != (own or "none"):
                raise ValueError(
                    f"--pairs {pairs}: {shown(total)} has {own or 'none'}, which stays"
                )
            statistics.n_threads = threads
            statistics = decay * statistics
        else:
            given: Any = {} if pairs is None else {"pairs": None if pairs == "none" else pairs}
            statistics = pairgram.Pairgram(n_threads=threads, **given)
        before = statistics.n_rows, statistics.n_queries
        with columns.reading(threads) as (client, watch):
            names = statistics.feature_names_in_ if known else None
            width = statistics.n_features if known else 0
            table, assumed = columns.scan_assuming(file, client, names, width)
            columns.require(file, table, statistics.settings.pairs is not None)
            statistics.update(watch(table))
        note_assumed(assumed)
        if not known and total.exists():
            raise ValueError(f"{shown(total)}: another process made it meanwhile: run this again")
        statistics.save(total)
    report = {
        "file": str(total),
        "decay": decay,
        "added_rows": statistics.n_rows - before[0],
        "added_queries": statistics.n_queries - before[1],
        "n_rows": statistics.n_rows,
        "n_queries": statistics.n_queries,
        "n_features": statistics.n_features,
    }
    if as_json:
        print_json(report)
    else:
        print_table((), show_rows([report])[0].items())


@with_columns_by_id
def forget(
    total: Statistics,
    file: opt.Rows,
    *,
    columns: Columns,
    threads: opt.Threads = None,
    as_json: opt.Json = False,
) -> None:
    """Subtract rows from a file of statistics, such as those of a user who asks to be forgotten.

    FILE must have all rows of its queries, as they were when they were added, with their weights.
    The queries may be of any days. Each is subtracted with the factor that it has now, after all
    --decay since it was added. TOTAL is then as if these queries had never been seen, but for the
    range of values, which drift compares with. A query that TOTAL does not have, or that lacks rows
    in FILE, is an error; features that have changed since are not noticed. If an error occurs,
    TOTAL stays as it was.

    \b
    Examples:
      pairgram forget total.pairgram user-7.parquet --label relevance --qid query_id
    """
    with locked(total):
        statistics = pairgram.Pairgram.load(total)
        statistics.n_threads = threads
        before = statistics.n_rows, statistics.n_queries
        with columns.reading(threads) as (client, watch):
            names = statistics.feature_names_in_
            table = columns.scan(file, client, names, statistics.n_features)
            columns.require(file, table, True)
            statistics.forget(watch(table))
        statistics.save(total)
    report = {
        "file": str(total),
        "forgotten_rows": before[0] - statistics.n_rows,
        "forgotten_queries": before[1] - statistics.n_queries,
        "n_rows": statistics.n_rows,
        "n_queries": statistics.n_queries,
    }
    if as_json:
        print_json(report)
    else:
        print_table((), show_rows([report])[0].items())


def solve(
    files: Annotated[
        list[Path], typer.Argument(metavar="DAYS...", help="Files of statistics, in their order.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")
    ],
    *,
    alpha: Annotated[float | None, option("alpha")] = None,
    alphas: Annotated[str | None, option("alphas")] = None,
    decays: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y,...", help="Decays to choose from; the files are days in their order."
        ),
    ] = None,
    scale: Annotated[bool, option("scale")] = False,
    threads: opt.Threads = None,
    as_json: opt.Json = False,
) -> None:
    """Make a model from files of statistics.

    One file needs --alpha. With several files, such as those of the last days, the ridge is chosen:
    each file is held out in turn and judged by its loss, half of the mean squared error of
    differences, from the statistics alone. The mean is over all pairs of rows of a query, of which
    one is that of a row with itself. With --decays, each day is judged by the model of the days
    before it, and the best decay is chosen as well.

    \b
    Examples:
      pairgram solve total.pairgram --alpha 100 -o model.safetensors
      pairgram solve monday.pairgram tuesday.pairgram wednesday.pairgram -o model.safetensors
      pairgram solve days/*.pairgram --decays 0.9,0.95,1 -o model.safetensors
    """
    for file in files:
        opt.check_output(output, statistics=file)
    if decays is not None and files == sorted(files, key=str) != sorted(files, key=_by_numbers):
        warn(
            f"warning: --decays takes the days in their order, from {shown(files[0])} to "
            f"{shown(files[-1])}: these are sorted by letters, and the numbers in their names are "
            "not; name days like 2026-01-31, or list them one by one"
        )
    days = [pairgram.Pairgram.load(file) for file in files]
    for day in days:
        day.n_threads = threads
    report: dict[str, Any] = {"n_days": len(days)}
    if alpha is not None or len(days) == 1:
        if alpha is None:
            raise ValueError("give --alpha, or the files of two days or more to choose it by")
        if alphas is not None or decays is not None:
            raise ValueError("give --alpha, or --alphas and --decays to choose from, not both")
        check_setting("--alpha", alpha, AT_LEAST_0)
        model: Any = pairgram.RankRLS.from_pairgram(reduce(add, days), alpha, scale=scale)
        report["alpha"] = alpha
    else:
        grid = None if alphas is None else parse_grid(alphas, "--alphas", zero=True)
        listed = None if decays is None else parse_grid(decays, "--decays")
        model = pairgram.RankRLSCV.from_pairgrams(days, grid, decays=listed, scale=scale)
        report |= {"alpha": model.alpha_, "decay": model.decay_, "loss": model.best_score_}
    model.save(output)
    report |= {"n_features": model.n_features_in_, "output": str(output)}
    if as_json:
        print_json(report)
        return
    rows = {name: value for name, value in report.items() if value is not None}
    print_table((), show_rows([rows])[0].items())


@with_columns_by_id
def drift(
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="File of statistics, or one like TODAY.")
    ],
    today: Annotated[str, typer.Argument(metavar="TODAY", help="File of statistics or of rows.")],
    *,
    level: Annotated[
        float,
        typer.Option(metavar="X", help="Probability of a false alarm, for all columns together."),
    ] = 0.05,
    columns: Columns,
    threads: opt.Threads = None,
    as_json: opt.Json = False,
) -> None:
    """Tell which columns of today's rows differ from the rows in a file of statistics.

    Every column is tested for changes of its mean, its range and its missing values, and for having
    become constant. Queries count as independent. If nothing has changed, there is no alarm with a
    probability of 95 %. Labels are not read. REFERENCE is a file that update wrote, such as the
    total from which the model was made. --json prints all columns.

    \b
    Examples:
      pairgram drift total.pairgram today.parquet --label relevance --qid query_id
      pairgram drift total.pairgram today.pairgram --json
    """
    with columns.reading(threads) as (client, watch):
        sides: list[Any] = []
        for file in (reference, today):
            if _holds_statistics(file):
                sides.append(pairgram.Pairgram.load(file))
                continue
            known = sides[0] if sides and isinstance(sides[0], pairgram.Pairgram) else None
            names = None if known is None else known.feature_names_in_
            width = 0 if known is None else known.n_features
            table, assumed = columns.scan_assuming(file, client, names, width)
            note_assumed(assumed)
            columns.require_queries(file, table)
            sides.append(watch(table))
        found = pairgram.drift(*sides, level=level, n_threads=threads)
    if as_json:
        print_json(found.to_dict())
    else:
        for title, shown_columns in found._tables().values():
            rows = zip(*(column.tolist() for column in shown_columns.values()), strict=True)
            print_table(list(shown_columns), rows, title=title)


def _by_numbers(file: Path) -> list[str | int]:
    """Return a key by which names with numbers are sorted as people do: 2 before 10."""
    parts = re.split("([0-9]+)", str(file))  # text and numbers in turn
    return [int(part) if number % 2 else part for number, part in enumerate(parts)]


def _holds_statistics(file: str) -> bool:
    """Tell whether a file is one of safetensors, whose JSON begins after eight bytes."""
    try:
        with open(file, "rb") as opened:
            return opened.read(9)[8:] == b"{"
    except OSError:  # an address, a folder or a pattern; or scan says what is wrong
        return False
