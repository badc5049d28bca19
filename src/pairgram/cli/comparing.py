"""``pairgram compare`` compares the scores of several systems, query by query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import pairgram
from pairgram._support.parameters import check_text
from pairgram.cli import options as opt
from pairgram.cli.inputs import load_scores, name_of
from pairgram.cli.pictures import PlotFile, check_picture, draw
from pairgram.cli.report import count, print_json, print_lines, print_table
from pairgram.cli.tables import Columns

COMPARED = ("ndcg@10", "map")
DIFFERENCES = "Differences, system minus against"
# Columns of which a narrow terminal shows others that say the same.
LEFT_OUT = ("p_t", "p_t_holm", "value_against")


def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="LETOR (SVMlight) file or table, and two or more files with a score for each of "
            "its rows: one per line, or Parquet files with a column score. With --qrels, two or "
            "more TREC runs.",
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Metric, as of `pairgram evaluate`. Repeat it for several. [default: "
            f"{', '.join(COMPARED)}]",
            show_default=False,
        ),
    ] = None,
    *,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the labels of a table.")
    ] = None,
    qid: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the query ids of a table.")
    ] = None,
    qrels: opt.Qrels = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The one of the files that all others are compared with. [default: every two]",
            show_default=False,
        ),
    ] = None,
    convention: opt.RunConvention = None,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability of the intervals.")
    ] = 0.95,
    permutations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Permutations of the randomisation test.")
    ] = 100_000,
    queries: Annotated[
        int, typer.Option(metavar="N", min=0, help="Queries to print for every two systems.")
    ] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of what is drawn.")] = 0,
    threads: opt.Threads = None,
    plot: PlotFile = None,
    as_json: opt.Json = False,
) -> None:
    """Compare the scores of several systems, query by query.

    Prints the mean of every metric with its bootstrap interval; for every two systems the
    difference, how many queries are better, equal and worse, and p-values of the paired
    randomisation test (p) and t test (p_t); and the queries that differ most in the first metric.
    p_holm and p_t_holm are corrected for the number of pairs, but not for that of metrics. --plot
    draws the first row of the differences, query by query. Of a table, labels and query ids alone
    are read.

    A narrow terminal shows tables in parts, and without p_t, p_t_holm and value_against. --json has
    everything, with the files as they were given.

    \b
    Examples:
      pairgram compare test.txt a.scores b.scores
      pairgram compare test.txt a.scores b.scores c.scores --baseline a.scores --metric map
      pairgram compare test.parquet a.scores b.parquet --label relevance --qid query_id
      pairgram compare --qrels qrels.txt a.run b.run --metric map --metric ndcg@10
      pairgram compare test.txt a.scores b.scores --plot differences.png
      pairgram compare test.txt a.scores b.scores --json | jq .differences
    """
    opt.checked_names(metric, convention)
    systems = [Path(file) for file in (files if qrels is not None else files[1:])]
    columns = Columns(label=label, qid=qid)
    if qrels is not None and columns.make_table():
        raise ValueError("--label and --qid are for tables, not for --qrels and runs")
    if len(systems) < 2:
        wanted = "two runs" if qrels is not None else "FILE and two files of scores"
        raise ValueError(f"compare needs at least {wanted}, got {count(len(files), 'file')}")
    names = [str(path) for path in systems]
    if baseline is not None:
        check_text("--baseline", baseline, names)
    if len(set(names)) < len(names):
        raise ValueError("compare needs different files, got one of them twice")
    settings: dict[str, Any] = {
        "baseline": baseline,
        "confidence": confidence,
        "n_permutations": permutations,
        "n_changed": queries,
        "random_state": seed,
        "n_threads": threads,
    }
    inputs = {f"FILE {number}": Path(file) for number, file in enumerate(files, 1)}
    opt.check_one_stdin(**inputs, **{"--qrels": qrels})
    check_picture(plot)
    if qrels is not None:
        runs = {str(path): opt.load_run(path) for path in systems}
        judged, listed = opt.load_qrels(qrels), metric or COMPARED
        result = pairgram.compare_runs(
            judged, runs, listed, convention=convention or "trec", **settings
        )
    else:
        y, ids = _labels(files[0], columns, threads)
        wanted_metrics = [opt.metric_of(m, convention or "default") for m in metric or COMPARED]
        scores = {str(path): load_scores(path, len(y)) for path in systems}
        result = pairgram.compare(y, ids, scores, wanted_metrics, **settings)
    if plot is not None:
        draw(plot, lambda ax: pairgram.plots.differences(result, ax=ax))
    report = result.to_dict()
    if as_json:
        print_json({"file": str(files[0] if qrels is None else qrels), **report})
        return
    size = f"{report['n_queries']} queries, {100 * confidence:g} % intervals"
    tables = [(size, report["means"], 2), (DIFFERENCES, report["differences"], 3)]
    first = report["means"][0]["metric"]
    changed = [row for row in report["changed"] if row["metric"] == first]
    if changed:
        tables.append((f"Queries that differ most in {first}", changed, 4))
    short = _short(names)
    for number, (title, rows, n_keys) in enumerate(tables):
        if number:
            print_lines([""])
        cells = [
            [
                short[value] if name in ("system", "against") else value
                for name, value in row.items()
            ]
            for row in rows
        ]
        print_table(list(rows[0]), cells, title=title, n_keys=n_keys, optional=LEFT_OUT)


def _short(names: list[str]) -> dict[str, str]:
    """Return the names of files without their folders, unless two are then equal."""
    last = [name if name.startswith("/dev/") else Path(name).name for name in names]
    return dict(zip(names, last if len(set(last)) == len(last) else names, strict=True))


def _labels(file: str, columns: Columns, threads: int | None) -> tuple[Any, Any]:
    """Return the labels and the query ids of a LETOR file or a table."""
    if columns.make_table(file):
        return columns.labels(file)
    data = opt.load_data(Path(file), n_threads=threads)
    if data.qid is None:
        raise ValueError(f"{name_of(Path(file))}: found no qid, want qid:ID in every row")
    return data.y, data.qid
