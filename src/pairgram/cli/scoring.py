"""``pairgram predict``, ``fuse``, ``evaluate`` and ``compare``: scores, and how good they are."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Annotated, Any, NamedTuple, get_args

import typer

import pairgram
from pairgram._rooms import public, room_with
from pairgram._support.files import WRITTEN, naming, replacing
from pairgram._support.parameters import FusionName, check_text
from pairgram.cli import options as opt
from pairgram.cli.options import load_scores, name_of, option, parse_names
from pairgram.cli.report import (
    count,
    print_json,
    print_lines,
    print_table,
    warn,
)
from pairgram.cli.tables import Columns, refuse_with_table, with_columns

COMPARED = ("ndcg@10", "map")
ALL_ROWS = "all rows"  # the name of the only query of rows without ids


@with_columns("label", "qid")
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
    columns: Columns,
    qrels: opt.Qrels = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The file that all others are compared with. [default: every pair of files]",
            show_default=False,
        ),
    ] = None,
    convention: opt.RunConvention = None,
    queries: Annotated[
        int, typer.Option(metavar="N", min=0, help="Queries to print for every pair of systems.")
    ] = 5,
    as_json: opt.Json = False,
) -> None:
    """Compare the scores of several systems, query by query.

    The first table has the mean of every metric with its bootstrap interval. The second has, for
    every pair of systems, the difference, the numbers of queries that are better, equal and worse,
    and p-values of the paired randomisation test (p) and t test (p_t). p_holm and p_t_holm are
    corrected for the number of pairs, but not for the number of metrics. The third has the queries
    that differ most in the first metric. Only labels and query ids of a table are read.

    \b
    Examples:
      pairgram compare test.txt a.scores b.scores
      pairgram compare test.txt a.scores b.scores c.scores --baseline a.scores --metric map
      pairgram compare test.parquet a.scores b.parquet --label relevance --qid query_id
      pairgram compare --qrels qrels.txt a.run b.run --metric map --metric ndcg@10
      pairgram compare test.txt a.scores b.scores --json | jq .differences
    """
    systems = [Path(file) for file in (files if qrels is not None else files[1:])]
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
    settings: Any = {"baseline": baseline, "n_changed": queries}
    opt.check_one_stdin(*map(Path, files), qrels)
    if qrels is not None:
        runs = {str(path): opt.load_run(path) for path in systems}
        judged, listed = opt.load_qrels(qrels), metric or COMPARED
        result = public("compare_runs")(
            judged, runs, listed, convention=convention or "trec", **settings
        )
    else:
        y, ids = _labels(files[0], columns)
        wanted_metrics = [opt.metric_of(m, convention or "default") for m in metric or COMPARED]
        scores = {str(path): load_scores(path, len(y)) for path in systems}
        result = public("compare")(y, ids, scores, wanted_metrics, **settings)
    if as_json:
        print_json({"file": str(files[0] if qrels is None else qrels), **result.to_dict()})
        return
    short = _short(names)
    for number, (title, table) in enumerate(result._tables().values()):
        if number:
            print_lines([""])
        columns_of_table = [
            [short[value] if name in ("system", "against") else value for value in column.tolist()]
            for name, column in table.items()
        ]
        rows = zip(*columns_of_table, strict=True)
        print_table(list(table), rows, title=title, n_keys=number + 2)


def fuse(
    files: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Two or more TREC runs; - is standard input."),
    ],
    qrels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of TREC relevance judgements of some of the queries, to learn weights from.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"How to fuse: {', '.join(get_args(FusionName))}. [default: rrf; with --qrels "
            "learnt]",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Fuse by the weights of an earlier --save-model, of runs in the same order.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File, device or pipe for the fused run; - stands for standard output.",
        ),
    ] = Path("-"),
    *,
    save_model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Model file to write the learnt weights to."),
    ] = None,
) -> None:
    """Fuse TREC runs into one: reciprocal rank fusion, CombSUM, CombMNZ, Borda, or learnt weights.

    Without judgements, a document gets the sum of 1 / (60 + rank) over the runs. With --qrels,
    weights are learnt from the judged queries, for reciprocal ranks and for scores that are scaled
    to 0 to 1 in every query. They are used if they improve held-out queries. Documents that a run
    lacks count as beyond its end.

    \b
    Examples:
      pairgram fuse bm25.run dense.run --output fused.run
      pairgram fuse bm25.run dense.run --method combsum --output fused.run
      pairgram fuse bm25.run dense.run --qrels qrels.txt --output fused.run --save-model f.model
      pairgram fuse new-bm25.run new-dense.run --model f.model --output new.run
    """
    inputs = (*map(Path, files), qrels, model)
    opt.check_one_stdin(*inputs)
    if len(files) < 2:
        raise ValueError(f"fuse needs at least two runs, got {count(len(files), 'file')}")
    if method is not None:
        check_text("--method", method, get_args(FusionName))
    if model is not None and method is not None:
        raise ValueError("give --model or --method, not both")
    if save_model is not None and qrels is None:
        raise ValueError("--save-model needs --qrels: nothing is learnt without judgements")
    opt.check_output(output, *inputs, save_model)
    if save_model is not None:
        opt.check_output(save_model, *inputs, option="--save-model")
    runs = [opt.load_run(Path(file)) for file in files]
    judged = None if qrels is None else opt.load_qrels(qrels)
    how = method if model is None else opt.load_model_file(model)
    names = [] if model is None else list(getattr(how, "feature_names_in_", ()))
    if names and len(names) != len(runs):
        raise ValueError(f"--model fuses {len(names)} runs ({', '.join(names)}), got {len(runs)}")
    given = dict(zip(names, runs, strict=True)) if names else runs
    fused = public("fuse")(given, judged, how)
    lines = room_with("command line", "run_lines")(**fused.run, tag="pairgram")
    if save_model is not None:
        fused.model.save(save_model)
    if fused.n_judged is not None:
        warn(f"note: {_learnt(fused)}")
    write_lines(output, lines)


def _learnt(fused: Any) -> str:
    """Return words on what judged queries have taught."""
    n_judged = fused.n_judged or 0
    queries = f"{count(n_judged, 'judged query', 'judged queries')} of different labels"
    if fused.gain is None:
        verb = "is" if n_judged == 1 else "are"
        return f"{queries} {verb} too few to learn from: the weights are those of rrf"
    kept = "weights are learnt" if fused.is_learnt else "the weights are those of rrf"
    return (
        f"{kept}: those learnt have an NDCG@10 {fused.gain:+.4f} ± {fused.gain_error:.4f} above "
        f"rrf in {queries} that were held out"
    )


def _short(names: list[str]) -> dict[str, str]:
    """Return the names of files without their folders, unless two are then equal."""
    last = [name if name.startswith("/dev/") else Path(name).name for name in names]
    return dict(zip(names, last if len(set(last)) == len(last) else names, strict=True))


def _labels(file: str, columns: Columns) -> tuple[Any, Any]:
    """Return the labels and the query ids of a LETOR file or a table."""
    if columns.make_table(file):
        return columns.labels(file, "")
    data = opt.load_data(Path(file))
    if data.qid is None:
        raise ValueError(f"{name_of(Path(file))}: found no qid, want qid:ID in every row")
    return data.y, data.qid


@with_columns("qid", "one_query", "features", "exclude")
def predict(
    model: opt.ModelFile,
    file: opt.Rows,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File, device or pipe to write to; - stands for standard output. A name that ends "
            "with .parquet, .arrow, .csv or .tsv makes a file of columns, one of which is score.",
        ),
    ] = Path("-"),
    *,
    keep: Annotated[str | None, option("keep")] = None,
    columns: Columns,
    sparse: opt.Sparse = False,
) -> None:
    """Score the documents of a file, one number per line, or as a column of a table.

    Scores stand in the order of the rows of the file. A higher score is better. Each number is the
    shortest text that reads back to exactly the score. Labels are not used, but a LETOR line must
    have one; write 0 if there is none. A table may be larger than memory, and needs no labels. A
    model that was trained on named columns finds them by their names.

    \b
    Examples:
      pairgram predict model.safetensors test.txt --output scores.txt
      pairgram predict model.safetensors test.txt | pairgram evaluate test.txt --scores -
      pairgram predict model.safetensors 'new/*.parquet' --keep doc_id --output scores.parquet
      pairgram predict model.safetensors new.csv --keep name --output scores.csv
    """
    path, has_columns = Path(file), output.suffix.lower() in WRITTEN
    opt.check_output(output, path, model)
    if keep is not None and not has_columns:
        raise ValueError(f"--keep needs an --output whose name ends with {', '.join(WRITTEN)}")
    if columns.make_table(file) or has_columns:
        from pairgram import predict as scores_of

        refuse_with_table(sparse=sparse)
        kept = None if keep is None else parse_names(keep, "--keep")
        loaded = opt.load_model_file(model)
        with columns.reading() as watch:
            table = columns.scan(file, opt.columns_of(loaded), opt.width_of(loaded))
            table.refuse_output(output, "--output")
            table = watch(table, False)
            if has_columns:
                scores_of(loaded, table, output=output, keep=kept)
            else:
                batches = scores_of(loaded, table, keep=[])
                write_lines(output, (score for batch in batches for score in batch[0].to_numpy()))
        return
    try:
        _, scores = opt.predict_file(model, path, sparse=sparse)
    except ValueError as error:
        if not getattr(error, "lacks_label", False):
            raise
        raise ValueError(f"{error}: write 0 where there is none") from None
    write_lines(output, scores)


def write_lines(output: Path, lines: Iterable[Any]) -> None:
    """Write a score, or another text, per line."""
    if str(output) in ("-", "/dev/stdout"):
        print_lines(map(str, lines))
        return
    from pairgram.datasets.letor import compressing

    with naming(output), _opened(output) as raw, compressing(raw, str(output)) as target:
        target.writelines(f"{line!s}\n".encode() for line in lines)


def write_table(output: Path, columns: dict[str, Any]) -> None:
    """Write columns, by their names, as the ending of a file says: Parquet, commas or tabs."""
    ending = output.suffix.lower()
    if ending in (".parquet", ".pq"):
        import pyarrow
        import pyarrow.parquet

        arrays = {
            name: pyarrow.array(column if column.dtype.kind == "M" else column.tolist())
            for name, column in columns.items()
        }
        with naming(output), replacing(output) as raw:
            pyarrow.parquet.write_table(pyarrow.table(arrays), raw)
        return
    rows = zip(
        *((c.astype(str) if c.dtype.kind == "M" else c).tolist() for c in columns.values()),
        strict=True,
    )
    lines: list[str] = []
    text = SimpleNamespace(write=lines.append)  # of every row alone
    end = "\r\n"  # text with one of these is quoted
    separator = "," if ".csv" in output.name.lower() else "\t"
    csv.writer(text, delimiter=separator, lineterminator=end).writerows([tuple(columns), *rows])
    write_lines(output, (line.removesuffix(end) for line in lines))


def _opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    """Open an output: a device or pipe is written to; a file is replaced when it is complete."""
    if not opt.is_stream(path):
        return replacing(path)
    if path.parts[:3] == ("/", "dev", "fd"):  # opening it again would truncate a file behind it
        return os.fdopen(os.dup(int(path.name)), "wb")
    return open(path, "ab")  # /dev/stderr may lead to a file


@with_columns(
    *("label", "qid", "one_query", "features", "exclude"),
    *("weight", "propensity"),
)
def evaluate(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help=f"{opt.ROWS} Not with --qrels.", show_default=False),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with a score for each row of FILE, one per line; - is standard input. Or a "
            "Parquet file with a column score, as predict writes it.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Model file that scores FILE.")
    ] = None,
    metric: opt.Metrics = None,
    *,
    qrels: opt.Qrels = None,
    run: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TREC run, with --qrels in place of FILE.")
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Print the values of every query, with its id.")
    ] = False,
    columns: Columns,
    convention: opt.RunConvention = None,
    sparse: opt.Sparse = False,
    as_json: opt.Json = False,
) -> None:
    """Print ranking metrics of scores, of a model or of a TREC run.

    Each metric is the mean over queries. Conventions differ in gain, discount, ties and queries
    without relevant documents, so numbers of different conventions are not comparable. "letor" is
    the convention of LETOR's evaluation tools. The published NDCG@k of MQ2007 and MQ2008 (LETOR
    4.0) is 0 for a list shorter than k. No convention here does this, so it is not comparable.
    With --model, a table may be larger than memory. Its labels and query ids are read in a pass of
    their own. With --scores only these are read, into memory. With --propensity, labels are clicks,
    and the metric is ips_dcg@10.

    With --qrels and --run, the numbers are those of trec_eval -c: relevant documents that the run
    did not retrieve count, and so do queries that it lacks.

    \b
    Examples:
      pairgram evaluate test.txt --scores scores.txt
      pairgram evaluate test.txt --model model.safetensors --metric map --convention letor
      pairgram evaluate test.txt --model model.safetensors --json | jq .metrics.map
      pairgram evaluate 'test/*.parquet' --model model.safetensors --label relevance --qid query_id
      pairgram evaluate test.parquet --scores scores.txt --label relevance --qid query_id
      pairgram evaluate test.txt --scores scores.txt --metric ndcg@10 --per-query
      pairgram evaluate --qrels qrels.txt --run run.txt --metric map --metric P_10
    """
    if qrels is not None or run is not None:
        if file or scores or model or sparse or columns.make_table() or columns.one_query:
            raise ValueError("--qrels and --run take no FILE, and none of the options of files")
        convention = convention or "trec"
        found = _of_run(qrels, run, metric or opt.EVALUATED_RUN, convention)
    else:
        if file is None or (scores is None) == (model is None):
            raise ValueError("evaluate needs FILE with --scores or --model, or --qrels with --run")
        path = Path(file)
        opt.check_one_stdin(path, scores)
        convention = convention or "default"
        default = opt.EVALUATED if columns.propensity is None else ("ips_dcg@10",)
        wanted = [opt.metric_of(name, convention) for name in metric or default]
        on_table = columns.make_table(file)
        if on_table:
            refuse_with_table(sparse=sparse)
        if on_table and model is not None:
            found = _of_table(file, model, wanted, columns, per_query)
        else:
            if on_table:
                if replace(columns, label=None, qid=None, one_query=False) != Columns():
                    raise ValueError(
                        "--scores are final: of the options of tables, they go with --label, --qid "
                        "and --one-query alone"
                    )
                y, ids = columns.labels(file)
            elif model is not None:
                data, values = opt.predict_file(model, path, sparse=sparse)
            else:
                data = opt.load_data(path, sparse=sparse)
            if not on_table:
                opt.warn_of_no_ids(path, data)
                y, ids = data.y, data.qid
            if scores is not None:
                values = load_scores(scores, len(y))
            found = _of_values(file, y, values, ids, wanted)
    _print_evaluated(found, convention, per_query, as_json)


class _Evaluated(NamedTuple):
    """What was evaluated, and its metrics: their means, and their values with the ids of queries.

    A table in which no single query is asked for has no values.
    """

    file: str
    n_rows: int
    n_queries: int
    means: dict[str, float]
    values: dict[str, Any]


def _of_run(
    qrels: Path | None, run: Path | None, names: Sequence[str], convention: str
) -> _Evaluated:
    """Evaluate a TREC run, with a note on queries that it lacks."""
    if qrels is None or run is None:
        raise ValueError("--qrels and --run belong together: give both")
    opt.check_one_stdin(qrels, run)
    judged, lists = opt.load_qrels(qrels), opt.load_run(run)
    common: Any = {"convention": convention}
    means = public("evaluate_run")(judged, lists, names, **common)
    values = public("evaluate_run")(judged, lists, names, per_query=True, **common)
    lacking = len(set(values["qid"]) - set(lists["qid"]))
    if lacking:
        lacks = f"lacks {count(lacking, 'query', 'queries')} of {name_of(qrels)}"
        warn(f"note: {name_of(run)} {lacks}, counted as without results")
    return _Evaluated(str(run), len(lists["qid"]), len(values["qid"]), means, values)


def _of_table(
    file: str, model: Path, wanted: list[Any], columns: Columns, by_query: bool
) -> _Evaluated:
    """Evaluate a model on a table."""
    from pairgram.data.queries import one_query_meant, plain_ids

    if by_query and columns.weight is not None:
        raise ValueError("--weight weighs queries in the mean: --per-query takes none")
    loaded = opt.load_model_file(model)
    with columns.reading() as watch:
        table = columns.scan(file, opt.columns_of(loaded), opt.width_of(loaded))
        columns.require(file, table, True)
        table = watch(table)
        with one_query_meant():
            found = pairgram.evaluate(wanted, table, loaded, per_query=by_query)
        survey = table.survey()
    ids = plain_ids(found["qid"]) if "qid" in found else [ALL_ROWS]
    values = found | {"qid": ids} if by_query else {}
    if by_query:
        found = {metric.name: float(metric.mean(found[metric.name])) for metric in wanted}
    return _Evaluated(file, survey.n_rows, survey.n_queries, found, values)


def _of_values(file: str, y: Any, scores: Any, qid: Any, wanted: list[Any]) -> _Evaluated:
    """Evaluate scores of rows."""
    from pairgram.data.queries import Queries, one_query_meant, plain_ids

    with one_query_meant():  # a note has already been given
        found = pairgram.evaluate(wanted, y, scores, qid, per_query=True)
    means = {metric.name: float(metric.mean(found[metric.name])) for metric in wanted}
    queries = Queries.make(len(y), qid=qid)
    ids = [ALL_ROWS] if queries.ids is None else plain_ids(queries.ids)
    return _Evaluated(file, len(y), len(ids), means, {"qid": ids, **found})


def _print_evaluated(found: _Evaluated, convention: str, by_query: bool, as_json: bool) -> None:
    names = list(found.means)
    rows = []
    if by_query:
        columns = (found.values[name] for name in ("qid", *names))
        for one, *values in zip(*columns, strict=True):  # an id may be a time
            rows.append((one if isinstance(one, (int, float, str)) else str(one), *values))
    if as_json:
        report = {
            "file": found.file,
            "convention": convention,
            "n_rows": found.n_rows,
            "n_queries": found.n_queries,
            "metrics": found.means,
        }
        if by_query:
            report["queries"] = [dict(zip(("qid", *names), row, strict=True)) for row in rows]
        print_json(report)
        return
    size = opt.size_of(found.n_rows, found.n_queries)
    title = f"{name_of(Path(found.file))}: {size}, convention {convention}"
    if by_query:
        shown = [(str(row[0]), *row[1:]) for row in rows]
        print_table(("query", *names), shown, title=title, footer=("mean", *found.means.values()))
    else:
        print_table(("metric", "mean"), found.means.items(), title=title)
