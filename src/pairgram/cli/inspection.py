"""``pairgram inspect``: what a file of this package holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pairgram.cli import options as opt
from pairgram.cli.report import print_json, print_table

__all__ = ["inspect"]


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Model or Pairgram file.")],
    top: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many of the largest weights.")
    ] = 10,
    as_json: opt.Json = False,
) -> None:
    """Print what a model file holds.

    That is its kind, parameters, and the features with the largest weights. Features count from 1,
    as in LETOR files. A weight's size depends on the scale of its feature. A file of statistics,
    which Pairgram.save wrote, is described by its settings and counts.

    \b
    Examples:
      pairgram inspect model.safetensors
      pairgram inspect model.safetensors --json | jq .parameters.alpha
    """
    from pairgram.persistence import read_file, written_by

    kind, _, _ = read_file(file)
    report: dict[str, Any] = {"file": str(file), "kind": kind, "version": written_by(file)}
    if kind == "Pairgram":
        report |= _statistics(file)
    else:
        report |= _model(file, top)
    if as_json:
        print_json(report)
        return
    features = report.pop("largest_weights", None)
    parameters = report.pop("parameters")
    print_table((), {**report, **parameters}.items())
    if features:
        print_table(tuple(features[0]), [tuple(row.values()) for row in features])


def _model(file: Path, top: int) -> dict[str, Any]:
    import numpy as np

    from pairgram.model_files import load_model

    model = load_model(file)
    report: dict[str, Any] = {
        "parameters": {
            name: value
            for name, value in model.get_params(deep=False).items()
            if name != "n_threads"  # of the process, not of the model
        },
        "n_features": int(model.n_features_in_),
        "fitted_with_query_ids": bool(model.uses_qid_),
    }
    if model.feature_map_ is not None:  # the weights are not those of features
        report["parameters"]["feature_map"] = str(model.feature_map_)
        return report
    largest = np.argsort(-np.abs(model.coef_), kind="stable")[:top]
    names = getattr(model, "feature_names_in_", None)
    report["largest_weights"] = [
        {
            "feature": int(column) + 1,
            **({} if names is None else {"name": str(names[column])}),
            "weight": float(model.coef_[column]),
        }
        for column in largest
    ]
    return report


def _statistics(file: Path) -> dict[str, Any]:
    from dataclasses import asdict

    from pairgram.gram import Pairgram

    statistics = Pairgram.load(file)
    return {
        "parameters": asdict(statistics.settings),
        "n_features": statistics.n_features,
        "n_rows": statistics.n_rows,
        "n_queries": statistics.n_queries,
        "pair_weight": statistics.pair_weight,
    }
