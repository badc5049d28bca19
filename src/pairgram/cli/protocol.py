"""``pairgram letor`` runs LETOR's five-fold protocol: train, choose by validation, test."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any

import typer

import pairgram
from pairgram._support.files import printable
from pairgram.cli import options as opt
from pairgram.cli.models import ModelName, chosen, get_model, with_settings
from pairgram.cli.report import print_json, print_table, progress, show_rows
from pairgram.cli.settings import Settings

N_FOLDS = 5
PROTOCOL_METRICS = (
    *(f"ndcg@{k}" for k in range(1, 11)),
    "mean_ndcg",
    *(f"p@{k}" for k in range(1, 11)),
    "map",
)


@with_settings
def letor(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder with S1.txt ... S5.txt or Fold1 ... Fold5, compressed or not.",
        ),
    ],
    *,
    model: ModelName = "rankrls",
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="Metric to choose by on the validation part.")
    ] = "map",
    convention: opt.Convention = "letor",
    settings: Settings,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
    as_json: opt.Json = False,
) -> None:
    """Run LETOR's five-fold protocol on a folder.

    Each fold trains on three parts, chooses by the fourth and tests on the last. Settings are
    chosen for each fold by --metric on its validation part. Without options, this is the protocol
    of the RankRLS paper: tied pairs kept and dropped, ridges 2^-15 to 2^24, MAP, and the metrics of
    LETOR's evaluation tools. With --model elm-pairwise or elm-pointwise, it is the protocol of the
    paper on extreme learning machines: 1000 linear nodes or --kernel linear, and C 2^-30, 2^-28 to
    2^20. With RankSVMs, the grids are those of the paper on kernel approximation: C 2^-12 to 2^6
    and gamma 2^-12 to 2^2. (The tables of that paper have one choice for all folds.) The published
    NDCG@k of MQ2007 and MQ2008 (LETOR 4.0) is 0 for a list shorter than k. No convention here does
    this, so it is not comparable.

    The seconds of a fold are the time of fitting and choosing, without reading files and testing.

    \b
    Examples:
      pairgram letor MQ2008
      pairgram letor OHSUMED --model rls
      pairgram letor OHSUMED --model elm-pairwise --kernel linear
      pairgram letor OHSUMED --model rank-nystroem --gamma 2^-8:2^-4 --Cs 2^-9:2^-3
      pairgram letor MQ2008 --pairs gain --pairs kept --scale --alphas auto --metric ndcg@10
      pairgram letor MQ2008 --json | jq .mean.test.map
    """
    scoring = opt.choice_metric(metric, convention)
    assert scoring is not None
    entry = get_model(model, settings)
    protocol = {n: grid for n, grid in entry.protocol.items() if n not in settings}
    settings = {**settings, **protocol}
    entry.search(settings, scoring)  # refuses what it cannot take, before reading
    threads = settings.get("n_threads")
    folds = pairgram.load_letor_folds(
        folder, dtype="float32" if float32 else "float64", sparse=sparse, n_threads=threads
    )
    names = list(dict.fromkeys((*PROTOCOL_METRICS, scoring.name)))
    measuring: Any = {"convention": convention, "n_threads": threads}
    results = []
    with opt.warnings_as_notes():
        for fold in progress(folds, "folds", N_FOLDS):
            search = entry.search(settings, scoring)
            start = time.perf_counter()
            search.fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
            seconds = time.perf_counter() - start
            result: dict[str, Any] = {"fold": fold.name, "params": chosen(search)}
            for part in ("valid", "test"):
                X, y, qid = getattr(fold, part)
                result[part] = pairgram.evaluate(names, y, search.predict(X), qid, **measuring)
            results.append({**result, "seconds": seconds})
    report = {
        "dataset": folder.resolve().name,
        "model": model,
        "metric": scoring.name,
        "folds": results,
        "mean": {
            part: {name: math.fsum(r[part][name] for r in results) / len(results) for name in names}
            for part in ("valid", "test")
        },
    }
    if as_json:
        print_json(report)
    else:
        _print_report(report, convention)


def _print_report(report: dict[str, Any], convention: str) -> None:
    metric, folds, mean = report["metric"], report["folds"], report["mean"]
    params = show_rows([fold["params"] for fold in folds])
    varied = [
        name
        for name in params[0]
        if name in ("alpha", "C") or len({row[name] for row in params}) > 1
    ]
    shown = list(dict.fromkeys((metric, "map", "mean_ndcg", "ndcg@10")))
    print_table(
        ("fold", *varied, f"valid {metric}", *(f"test {shown[0]}", *shown[1:]), "seconds"),
        [
            (
                fold["fold"],
                *(row[name] for name in varied),
                fold["valid"][metric],
                *(fold["test"][name] for name in shown),
                fold["seconds"],
            )
            for fold, row in zip(folds, params, strict=True)
        ],
        title=f"{printable(report['dataset'])}: {report['model']}, chosen by validation {metric}, "
        f"convention {convention}",
        footer=(
            "mean",
            *("" for _ in varied),
            mean["valid"][metric],
            *(mean["test"][name] for name in shown),
            math.fsum(fold["seconds"] for fold in folds) / len(folds),
        ),
    )
    cuts = range(1, 11)
    print_table(
        ("k", *(f"mean test {name}" for name in ("ndcg@k", "p@k"))),
        [(k, *(mean["test"][f"{name}@{k}"] for name in ("ndcg", "p"))) for k in cuts],
    )
