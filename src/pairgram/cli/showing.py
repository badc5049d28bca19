"""``pairgram inspect`` prints what a file holds, and ``demo`` shows what pairs are good for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

import pairgram
from pairgram.cli.named_files import width_of
from pairgram.cli.report import print_json, print_table, significant
from pairgram.features.row_values import Chain
from pairgram.files.read_write import written_by
from pairgram.rankers.scores import input_weights

METRICS = ("ndcg@10", "map", "pairwise_accuracy")
N_TRAIN, N_TEST, N_DOCUMENTS, N_FEATURES = 60, 200, 30, 50


def demo(given: Any) -> None:
    """Print scores and choices of pointwise RLS and RankRLS.

    Both get centred data. It acts like an intercept, without which the comparison would not be fair
    to the pointwise model, and changes nothing for pairs.
    """
    shape = N_TRAIN + N_TEST, N_DOCUMENTS, N_FEATURES
    X, y, qid = pairgram.make_ranking(*shape, noise=0.5, query_effect=1.0, random_state=given.seed)
    train, rows = qid < N_TRAIN, []
    search: Any = pairgram.RankRLSCV
    features, labels = X[train] - X[train].mean(axis=0), y[train] - y[train].mean()
    for name, pairs in (("RLS, pointwise", None), ("RankRLS, pairwise", "with_ties")):
        model = search(pairs=pairs, scoring="pairwise_accuracy")
        model.fit(features, labels, qid=qid[train])
        values = pairgram.evaluate(METRICS, y[~train], model.predict(X[~train]), qid[~train])
        rows.append((name, *values.values(), model.alpha_))
    print_table(
        ("model", *METRICS, "alpha"),
        rows,
        title=f"{N_TRAIN} queries to train on, {N_TEST} to test on, {N_DOCUMENTS} documents of "
        f"{N_FEATURES} features each; metrics are those of the test queries",
    )


def inspect(given: Any) -> None:
    """Print what a model file holds."""
    report = _of_model(given.file, given.top)
    if given.json:
        print_json(report)
        return
    weights = report.pop("largest_weights", [])
    parameters = report.pop("parameters")
    print_table((), {**report, **parameters}.items(), cell=significant)
    if weights:
        print_table(tuple(weights[0]), [row.values() for row in weights], cell=significant)


def _plain(value: Any) -> Any:
    """Return a value of a parameter as a file of JSON and a table can show it."""
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return value if is_plain else " ".join(str(value).split())


def _of_model(file: str, top: int) -> dict[str, Any]:
    """Return what the file of a model holds."""
    loaded = model = pairgram.load_model(file)
    report: dict[str, Any] = {"file": file, "kind": type(loaded).__name__}
    report["version"] = written_by(file)
    if hasattr(loaded, "steps"):
        model = _ranker_of(loaded)
        report["steps"] = ", ".join(f"{name}: {_plain(step)}" for name, step in loaded.steps)
    parameters = model.get_params(deep=False)
    report["parameters"] = {name: _plain(value) for name, value in parameters.items()}
    report["n_features"] = width_of(loaded)
    then = Chain.of(model.feature_map_).then
    if then is not None:
        report["n_coefficients"] = len(model.coef_)
        if hasattr(then, "gamma_"):
            report["gamma"] = then.gamma_
        if (rows := getattr(then, "support_rows_", None)) is not None:
            report["training_rows"] = f"{rows.shape[0]} are in the file"
    weights = input_weights(model)
    if model.prior_ is not None:
        report["weights"] = "none of features: the scores of a prior are added"
    elif weights is None:
        report["weights"] = "none of features: coefficients of what the feature map makes"
    else:
        table = _sorted_weights(model, weights)
        listed = zip(*(values[:top].tolist() for values in table.values()), strict=True)
        report["largest_weights"] = [dict(zip(table, row, strict=True)) for row in listed]
    return report


def _ranker_of(pipeline: Any) -> Any:
    """Return the ranker of a pipeline, with the names of the columns that it gets, if known."""
    ranker = pipeline.steps[-1][1]
    if not hasattr(ranker, "feature_names_in_"):
        with suppress(AttributeError, ValueError):  # of functions whose names nobody told
            ranker.feature_names_in_ = pipeline[:-1].get_feature_names_out()
    return ranker


def _sorted_weights(model: Any, weights: Any) -> dict[str, Any]:
    """Return the columns of the table of weights; features count from 1."""
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
