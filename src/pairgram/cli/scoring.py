"""``pairgram predict`` and ``pairgram evaluate``: scores of rows, and how good they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pairgram.cli import options as opt
from pairgram.cli.report import print_json, print_table

__all__ = ["evaluate", "predict"]

EVALUATED = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")


def predict(
    model: opt.ModelFile,
    file: opt.File,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write, - for standard output."
        ),
    ] = Path("-"),
    threads: opt.Threads = None,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
) -> None:
    """Score the documents of a file, one number per line.

    Scores stand in the order of the file's rows, the higher, the better. Each number is the
    shortest text that reads back to exactly the score. Labels are not used, but a LETOR line has
    one: write 0 where there is none.

    \b
    Examples:
      pairgram predict model.safetensors test.txt --output scores.txt
      pairgram predict model.safetensors test.txt | pairgram evaluate test.txt --scores -
    """
    opt.check_output(output)
    _, scores = opt.predict_file(model, file, float32=float32, sparse=sparse, n_threads=threads)
    lines = (f"{score}\n" for score in scores)
    if str(output) == "-":
        sys.stdout.writelines(lines)
        return
    from pairgram._files import replacing

    with replacing(output) as target:
        target.writelines(line.encode() for line in lines)


def evaluate(
    file: opt.File,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with a score per line of FILE, - for standard input."
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Model file that scores FILE.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Metric such as ndcg@10, map, p@5, mrr, err, kendall; repeat it for several. "
            f"[default: {', '.join(EVALUATED)}]",
            show_default=False,
        ),
    ] = None,
    convention: opt.Convention = "default",
    threads: opt.Threads = None,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
    as_json: opt.Json = False,
) -> None:
    """Print ranking metrics of scores or of a model.

    Each is the mean over queries. Conventions differ in gain, discount, ties and queries without
    relevant documents: numbers of different ones are not comparable. "letor" is that of LETOR's
    evaluation tools.

    \b
    Examples:
      pairgram evaluate test.txt --scores scores.txt
      pairgram evaluate test.txt --model model.safetensors --metric map --convention letor
      pairgram evaluate test.txt --model model.safetensors --json | jq .metrics.map
    """
    from pairgram import metrics

    if (scores is None) == (model is None):
        raise ValueError("evaluate needs --scores or --model, one of them")
    wanted = [metrics.get_metric(name, convention) for name in metric or EVALUATED]
    if model is not None:
        data, values = opt.predict_file(
            model, file, float32=float32, sparse=sparse, n_threads=threads
        )
    else:
        assert scores is not None
        data = opt.load_data(file, float32=float32, sparse=sparse, n_threads=threads)
        values = opt.load_scores(scores, len(data.y))
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
    size = f"{len(data.y)} rows, {opt.n_queries(data)} queries"
    print_table(
        ("metric", "mean"), results.items(), title=f"{file}: {size}, convention {convention}"
    )
