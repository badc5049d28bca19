"""``pairgram predict`` scores rows, and ``pairgram evaluate`` measures how good scores are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from pairgram._support.files import naming, replacing
from pairgram.cli import options as opt
from pairgram.cli.report import print_json, print_lines, print_table

__all__ = ["evaluate", "predict"]

EVALUATED = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")


def predict(
    model: opt.ModelFile,
    file: opt.File,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File, device or pipe to write to; - stands for standard output.",
        ),
    ] = Path("-"),
    offset: opt.Offset = None,
    threads: opt.Threads = None,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
) -> None:
    """Score the documents of a file, one number per line.

    Scores stand in the order of the rows of the file. A higher score is better. Each number is the
    shortest text that reads back to exactly the score. Labels are not used, but a LETOR line must
    have one; write 0 if there is none. A model that was trained with --offset needs the offsets of
    these rows.

    \b
    Examples:
      pairgram predict model.safetensors test.txt --output scores.txt
      pairgram predict model.safetensors test.txt | pairgram evaluate test.txt --scores -
    """
    opt.check_one_stdin(FILE=file, **{"--offset": offset})
    opt.check_output(output, input=file, model=model, offset=offset)
    try:
        _, scores = opt.predict_file(
            *(model, file),
            hint=": the order is MODEL FILE",
            offset=offset,
            float32=float32,
            sparse=sparse,
            n_threads=threads,
        )
    except ValueError as error:
        if "want a label" not in str(error):
            raise
        raise ValueError(f"{error}: write 0 where there is none") from None
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


def evaluate(
    file: opt.File,
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
            help=f"Metric such as ndcg@10, map, p@5, mrr, err, kendall. Repeat it for several. "
            f"[default: {', '.join(EVALUATED)}]",
            show_default=False,
        ),
    ] = None,
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

    \b
    Examples:
      pairgram evaluate test.txt --scores scores.txt
      pairgram evaluate test.txt --model model.safetensors --metric map --convention letor
      pairgram evaluate test.txt --model model.safetensors --json | jq .metrics.map
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
    opt.check_one_stdin(FILE=file, **{"--scores": scores, "--offset": offset})
    if model is not None:
        data, values = opt.predict_file(
            *(model, file),
            offset=offset,
            float32=float32,
            sparse=sparse,
            n_threads=threads,
        )
    else:
        assert scores is not None
        data = opt.load_data(file, float32=float32, sparse=sparse, n_threads=threads)
        values = opt.load_scores(scores, len(data.y))
    opt.warn_of_no_ids(file, data)
    with one_query_meant():  # a note has already been given
        results = metrics.evaluate(wanted, data.y, values, data.qid, n_threads=threads)
    if as_json:
        print_json(
            {
                "file": str(file),
                "convention": convention,
                "n_rows": len(data.y),
                "n_queries": opt.n_queries(data),
                "metrics": results,
            }
        )
        return
    title = f"{opt.name_of(file)}: {opt.size_of(data)}, convention {convention}"
    print_table(("metric", "mean"), results.items(), title=title)
