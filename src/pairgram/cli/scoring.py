"""``pairgram predict`` scores rows, and ``pairgram evaluate`` measures how good scores are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from pairgram._support.files import naming, replacing
from pairgram.cli import options as opt
from pairgram.cli.report import passes, print_json, print_lines, print_table
from pairgram.cli.tables import Columns, parse_names, refuse_with_table, with_columns

__all__ = ["evaluate", "predict"]

HINT = ": the order is MODEL FILE"
EVALUATED = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")


@with_columns
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
            "with .parquet makes a Parquet file, with a column score.",
        ),
    ] = Path("-"),
    *,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Columns of a table that stand before the scores in a Parquet file. "
            "[default: that of --qid]",
            show_default=False,
        ),
    ] = None,
    columns: Columns,
    offset: opt.Offset = None,
    threads: opt.Threads = None,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
) -> None:
    """Score the documents of a file, one number per line, or in a Parquet file.

    Scores stand in the order of the rows of the file. A higher score is better. Each number is the
    shortest text that reads back to exactly the score. Labels are not used, but a LETOR line must
    have one; write 0 if there is none. A model that was trained with --offset needs the offsets of
    these rows. A table may be larger than memory, and needs no labels. It is read once. A model
    that was trained on named columns finds them by their names.

    \b
    Examples:
      pairgram predict model.safetensors test.txt --output scores.txt
      pairgram predict model.safetensors test.txt | pairgram evaluate test.txt --scores -
      pairgram predict model.safetensors 'new/*.parquet' --keep doc_id --output scores.parquet
    """
    path, is_parquet = Path(file), output.suffix.lower() in (".parquet", ".pq")
    opt.check_one_stdin(FILE=path, **{"--offset": offset})
    opt.check_output(output, input=path, model=model, offset=offset)
    if keep is not None and not is_parquet:
        raise ValueError("--keep needs an --output whose name ends with .parquet")
    if columns.make_table(file) or is_parquet:
        from pairgram.rankers import table_scores

        refuse_with_table(offset=offset, float32=float32, sparse=sparse)
        kept = None if keep is None else parse_names(keep, "--keep")
        with _scored(model, file, columns, threads) as (loaded, table, watch):
            table.refuse_output(output, "--output")
            if is_parquet:
                table_scores.predict(loaded, watch(table, False), output=output, keep=kept)
            else:
                batches = table_scores.predict(loaded, watch(table, False), keep=[])
                scored = (batch["score"].to_numpy() for batch in batches)
                _write(output, chain.from_iterable(scored))
        return
    try:
        _, scores = opt.predict_file(
            *(model, path),
            hint=HINT,
            offset=offset,
            float32=float32,
            sparse=sparse,
            n_threads=threads,
        )
    except ValueError as error:
        if "want a label" not in str(error):
            raise
        raise ValueError(f"{error}: write 0 where there is none") from None
    _write(output, scores)


@contextmanager
def _scored(
    model_path: Path, file: str, columns: Columns, threads: int | None
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield a model, the table of a file with its features, and what shows the passes over it."""
    from pairgram._support.threads import at_most_threads, resolve_n_threads

    model = opt.load_model_file(model_path, HINT)
    names = getattr(model, "feature_names_in_", None)
    reading = at_most_threads(resolve_n_threads(threads))
    with reading, opt.warnings_as_notes(), columns.cluster() as client, passes() as watch:
        names = None if names is None else list(names)
        yield model, columns.scan(file, client, names, opt.width_of(model)), watch


def _write(output: Path, scores: Iterable[Any]) -> None:
    """Write a score per line."""
    if str(output) in ("-", "/dev/stdout"):
        print_lines(map(str, scores))
        return
    with _written(output) as target:
        target.writelines(f"{score!s}\n".encode() for score in scores)


@contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """Open an output: a device or pipe is written to; a file is replaced when it is complete."""
    with naming(path), _opened(path) as file:
        yield file


def _opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    if not opt.is_stream(path):
        return replacing(path)
    if path.parts[:3] == ("/", "dev", "fd"):  # opening it again would truncate a file behind it
        return os.fdopen(os.dup(int(path.name)), "wb")
    return open(path, "ab")  # /dev/stderr may lead to a file


@with_columns
def evaluate(
    file: opt.Rows,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with a score per line of FILE; - is standard input."
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Model file that scores FILE.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Metric such as ndcg@10, ndcg_linear@10, map, p@5, recall@10, rprec, mrr, "
            f"hit_rate@10, rbp, err, auc, ef@1%, bedroc, kendall. Repeat it for several. "
            f"[default: {', '.join(EVALUATED)}]",
            show_default=False,
        ),
    ] = None,
    *,
    columns: Columns,
    convention: opt.Convention = "default",
    offset: opt.Offset = None,
    threads: opt.Threads = None,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
    as_json: opt.Json = False,
) -> None:
    """Print ranking metrics of scores or of a model.

    Each metric is the mean over queries. Conventions differ in gain, discount, ties and queries
    without relevant documents, so numbers of different conventions are not comparable. "letor" is
    the convention of LETOR's evaluation tools. The published NDCG@k of MQ2007 and MQ2008 (LETOR
    4.0) is 0 for a list shorter than k. No convention here does this, so it is not comparable.
    A table, with --model, may be larger than memory. Its labels and query ids are read once more.

    \b
    Examples:
      pairgram evaluate test.txt --scores scores.txt
      pairgram evaluate test.txt --model model.safetensors --metric map --convention letor
      pairgram evaluate test.txt --model model.safetensors --json | jq .metrics.map
      pairgram evaluate 'test/*.parquet' --model model.safetensors --label relevance --qid query_id
    """
    from pairgram import metrics
    from pairgram.queries_and_pairs.queries import one_query_meant

    if (scores is None) == (model is None):
        raise ValueError("evaluate needs --scores or --model, one of them")
    if offset is not None and model is None:
        raise ValueError("--offset is for --model: --scores are final")
    for name in metric or ():
        if "," in name:
            raise ValueError(f"--metric takes one name, got {name!r}: repeat --metric for several")
    wanted = [opt.metric_of(name, convention) for name in metric or EVALUATED]
    path = Path(file)
    opt.check_one_stdin(FILE=path, **{"--scores": scores, "--offset": offset})
    if columns.make_table(file):
        refuse_with_table(scores=scores, offset=offset, float32=float32, sparse=sparse)
        assert model is not None
        with _scored(model, file, columns, threads) as (loaded, table, watch):
            columns.require(file, table, True)
            table = watch(table)
            results: Any = metrics.evaluate(wanted, table, loaded, n_threads=threads)
            survey = table.survey()
        n_rows, n_queries = survey.n_rows, survey.n_queries
    else:
        if model is not None:
            data, values = opt.predict_file(
                *(model, path),
                offset=offset,
                float32=float32,
                sparse=sparse,
                n_threads=threads,
            )
        else:
            assert scores is not None
            data = opt.load_data(path, float32=float32, sparse=sparse, n_threads=threads)
            values = opt.load_scores(scores, len(data.y))
        opt.warn_of_no_ids(path, data)
        with one_query_meant():  # a note has already been given
            results = metrics.evaluate(wanted, data.y, values, data.qid, n_threads=threads)
        n_rows, n_queries = len(data.y), opt.n_queries(data)
    if as_json:
        print_json(
            {
                "file": file,
                "convention": convention,
                "n_rows": n_rows,
                "n_queries": n_queries,
                "metrics": results,
            }
        )
        return
    title = f"{opt.name_of(path)}: {opt.size_of(n_rows, n_queries)}, convention {convention}"
    print_table(("metric", "mean"), results.items(), title=title)
