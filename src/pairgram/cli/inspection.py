"""``pairgram inspect`` prints what a file of this package holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairgram
from pairgram.cli import options as opt
from pairgram.cli.options import heeds
from pairgram.cli.report import print_json, print_table, show_rows, significant

if TYPE_CHECKING:
    from pairgram._support.checks import Vector
    from pairgram._support.types import BaseEstimator


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Model or Pairgram file.")],
    top: Annotated[int, typer.Option(metavar="N", min=0, help="How many features to print.")] = 10,
    as_json: opt.Json = False,
) -> None:
    """Print what a model file holds.

    It prints the kind of the model, its parameters, and the most important features. Features count
    from 1, as in LETOR files. The size of a weight depends on the unit of its feature. The
    importance does not: it is |weight| times spread, the standard deviation of the feature within
    queries. The share is that of the variance of the scores within queries. If the file does not
    hold spreads, as for linear nodes, features are sorted by |weight|. Other nodes and kernels have
    no weights of features. For a pipeline it prints the steps too, and features are the columns
    that the ranker gets. For a file of statistics (Pairgram.save) it prints settings and counts,
    and for a file of many models (BatchFit.save) how many they are.

    \b
    Examples:
      pairgram inspect model.safetensors
      pairgram inspect model.safetensors --json | jq .parameters.alpha
    """
    from pairgram.files.read_write import read_file, written_by

    kind, _, _ = read_file(file)
    report: dict[str, Any] = {"file": str(file), "kind": kind, "version": written_by(file)}
    if kind == "Pairgram":
        report |= _statistics(file)
    elif kind == "BatchFit":
        report |= _batch(file)
    else:
        report |= _model(file, top)
    if as_json:
        print_json(report)
        return
    weights = report.pop("largest_weights", None)
    parameters = report.pop("parameters")
    if "steps" in report:
        report["steps"] = ", ".join(report["steps"])
    rows = {**report, **show_rows([_of_use(parameters)])[0]}
    if "adds_scores_of" in report:
        rows["weights"] = "none of features: the scores of a prior are added"
    elif kind not in ("Pairgram", "BatchFit") and weights is None:
        rows["weights"] = f"none of features: coefficients of what {rows['feature_map']} makes"
    print_table((), rows.items(), cell=significant)
    if weights:
        print_table(tuple(weights[0]), [row.values() for row in weights], cell=significant)


def _model(file: Path, top: int) -> dict[str, Any]:
    from pairgram.features.row_values import Chain
    from pairgram.rankers.scores import input_weights

    loaded = pairgram.load_model(file)
    model, steps = _ranker_of(loaded)
    parameters = model.get_params(deep=False)
    report = {
        **({"steps": steps} if steps else {}),
        "parameters": parameters,
        "n_features": opt.width_of(loaded),
        "fitted_with_query_ids": bool(model.uses_qid_),
    }
    chain = Chain.of(model.feature_map_)
    if chain.fill is not None:
        values = "values that the file holds" if chain.fill.fill_.any() else "0"
        report["missing_features"] = f"take {values}"
    for name in ("prior", "constraint"):
        if parameters.get(name) is not None:
            parameters[name] = str(parameters[name])
    feature_map = chain.then
    if "feature_map" in parameters:
        parameters["feature_map"] = chain.kind
    if feature_map is not None:
        after = {} if chain.kind is None else {"after": chain.kind}
        parameters["feature_map"] = _map_parameters(feature_map) | after
        report["n_coefficients"] = len(model.coef_)
        rows = getattr(feature_map, "support_rows_", None)
        if rows is not None:
            report["training_rows"] = f"{rows.shape[0]} are in the file"
    if model.prior_ is not None:
        report["adds_scores_of"] = type(model.prior_).__name__
        return report
    weights = input_weights(model)
    if weights is None:
        return report
    table = _sorted_weights(model, weights)
    rows = zip(*(values[:top].tolist() for values in table.values()), strict=True)
    report["largest_weights"] = [dict(zip(table, row, strict=True)) for row in rows]
    return report


def _batch(file: Path) -> dict[str, Any]:
    batch = pairgram.BatchFit.load(file)
    first = next(model for model in batch.models if model is not None)
    own = ("alpha", "C", "prior", "feature_map")  # of each model, or of its class
    parameters = first.get_params(deep=False).items()
    fallback = batch.fallback
    return {
        "parameters": {name: value for name, value in parameters if name not in own},
        "n_models": len(batch),
        "n_failed": sum(model is None for model in batch.models),
        "kind_of_each": type(first).__name__,
        "n_features": opt.width_of(first),
        "fallback": type(fallback).__name__ if hasattr(fallback, "predict") else fallback,
    }


def _ranker_of(model: BaseEstimator) -> tuple[Any, list[str]]:
    """Return the ranker of a pipeline, with names of the columns that it gets, and the steps."""
    import numpy as np

    if not hasattr(model, "steps"):
        return model, []
    ranker = model.steps[-1][1]
    if len(model.steps) > 1 and not hasattr(ranker, "feature_names_in_"):
        width = opt.width_of(model)
        given = getattr(model, "feature_names_in_", [f"x{i}" for i in range(width)])
        try:
            names = model[:-1].get_feature_names_out(given)
        except AttributeError:  # of functions whose names nobody told
            names = [f"x{i}" for i in range(int(ranker.n_features_in_))]
        if list(names) != [f"x{i}" for i in range(width)]:
            ranker.feature_names_in_ = np.asarray(names, dtype=object)
    return ranker, [f"{name}: {_shown_step(step)}" for name, step in model.steps]


def _shown_step(step: object) -> str:
    """Return the class of a step, and in parentheses those of the transformers within it."""
    if isinstance(step, str):
        return step
    if type(step).__name__ == "FunctionTransformer":  # what a ColumnTransformer makes of the word
        return "passthrough"
    within = [(name, part) for name, part, _ in getattr(step, "transformers_", ())]
    within = within or getattr(step, "steps", [])
    inner = ", ".join(f"{name}: {_shown_step(part)}" for name, part in within)
    return type(step).__name__ + (f" ({inner})" if inner else "")


def _sorted_weights(model: BaseEstimator, weights: Vector) -> dict[str, Any]:
    """Return the columns of the table of weights; features count from 1."""
    import numpy as np

    from pairgram.features.row_values import Chain

    names, inputs = getattr(model, "feature_names_in_", None), Chain.of(model.feature_map_).inputs
    if model._known_sums() is not None:
        table = model.column_weights()
        columns = table.pop("column")
        del table["name"]
    else:
        columns = np.argsort(-np.abs(weights), kind="stable")
        table = {"weight": weights[columns]}
    second, features = np.divmod(columns, model.n_features_in_)
    named = {} if names is None else {"name": names[features].astype(str)}
    if inputs is not None:
        named["part"] = np.array(inputs.parts)[second]
    return {"feature": features + 1, **named, **table}


def _map_parameters(feature_map: BaseEstimator) -> dict[str, Any]:
    """Return the class of a fitted map of this package and the parameters of its fit."""
    from pairgram.features.base import describe_map

    _, settings = describe_map(feature_map)
    assert settings is not None
    fitted = settings.pop("fitted", {})
    if hasattr(feature_map, "gamma_"):
        fitted["gamma"] = feature_map.gamma_
    of_file = ("shape", "rows_dtype", "bits")
    parameters = {name: settings[name] for name in settings if name not in of_file}
    return {name: fitted.get(name, value) for name, value in parameters.items()}


def _of_use(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model and of its feature map in one list.

    Parameters of nodes are left out if there is a kernel, as are those that the kernel does not
    use, and a constraint that there is not.
    """
    value = parameters.get("feature_map")
    of_map = dict(value) if isinstance(value, dict) else {"kind": value}
    shown = {**parameters, "feature_map": of_map.pop("kind")}
    shown |= {name: value for name, value in of_map.items() if shown.get(name) is None}
    kernel = shown.get("kernel")
    hidden = {name for name in ("gamma", "degree", "coef0") if not heeds(kernel, name)}
    if kernel is not None:
        hidden |= {"n_nodes", "activation", "weight_range", "bias_range", "random_state"}
    for name in ("constraint", "kernel", "feature_map"):
        if not shown.get(name):
            hidden.add(name)
    return {name: value for name, value in shown.items() if name not in hidden}


def _statistics(file: Path) -> dict[str, Any]:

    statistics = pairgram.Pairgram.load(file)
    counts = ("n_features", "n_rows", "n_queries", "pair_weight")
    shown = {name: getattr(statistics, name) for name in counts}
    return {"parameters": {"pairs": statistics.settings.short}, **shown}
