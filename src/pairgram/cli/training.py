"""``pairgram train`` and ``letor`` fit models and choose settings by held-out queries."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import skew

import pairgram
from pairgram._rooms import public, room_with
from pairgram._support.checks import ArgumentError
from pairgram._support.files import printable, shown
from pairgram._support.parameters import OF_DISTANCES, check_text
from pairgram.cli import named_files
from pairgram.cli.named_files import load_letor, name_of, scan
from pairgram.cli.report import (
    notes,
    passes,
    print_json,
    print_table,
    significant,
    warn,
    working,
)
from pairgram.cli.table_of_commands import FIRST, KERNELS, KERNELS_OF, MODELS, OPTIONS
from pairgram.cli.values import parse_grid
from pairgram.data.queries import Queries, one_query_meant
from pairgram.datasets.letor import padded
from pairgram.features.row_values import WORDS, Chain, Fill

PROTOCOL_METRICS = (
    *(f"ndcg@{k}" for k in range(1, 11)),
    "mean_ndcg",
    *(f"p@{k}" for k in range(1, 11)),
    "map",
)
# The maps of kernels; others are those of `Kernel`.
MAPS = {"rank-nystroem": "Nystroem", "rank-fourier": "RandomFourier"}
# A column has a long tail if its skewness is above this, as that of prices and counts is.
SKEWED = 1.0
SAMPLE = 10_000  # rows of a table tell whether columns have long tails
TAKES = {one.parameter: one for one in OPTIONS if one.models}

Settings = dict[str, Any]


def check_model(name: str, given: Settings) -> Settings:
    """Return the settings of a model, with those that it has on the command line alone.

    Raises
    ------
    ValueError
        If the model does not take a setting, or two do not go together.
    """
    for setting in given:
        option = TAKES[setting]
        if name not in option.models.split():
            others = ", ".join(other for other in MODELS if other in option.models.split())
            raise ValueError(f"--model {name} takes no {option.flag}; {others} can")
        if setting in ("n_nodes", "activation") and "kernel" in given:
            raise ValueError(f"give --kernel or {option.flag}, not both: nodes have no kernel")
    settings = {**MODELS[name].defaults, **given}
    kernel: Any = settings.get("kernel")
    if kernel is not None:
        check_text("--kernel", kernel, KERNELS_OF.get(name, KERNELS_OF[""]))
    if "gamma" in settings and not KERNELS.get(kernel):
        raise ValueError(f"--gamma is for --kernel rbf, laplacian and others, got {kernel!r}")
    return settings


def search_of(name: str, settings: Settings, scoring: Any, missing: str | None = None) -> Any:
    """Return an estimator that chooses its settings in ``fit``; it fills gaps as told.

    It does so as `RankRLSCV` does: with ``validation``, ``predict``, ``save``, ``best_score_``,
    ``scoring_`` and ``cv_results_``.
    """
    given = {**settings, "scoring": scoring} if scoring is not None else dict(settings)
    maps: list[Any] = [None]
    if "kernel" in given:
        moved = ("kernel", "n_components", *["random_state"] * (name in MAPS))
        own = {key: given.pop(key) for key in moved if key in given}
        of_kernel = getattr(pairgram, MAPS.get(name, "Kernel"))
        maps = [of_kernel(gamma=gamma, **own) for gamma in given.pop("gamma", [None])]
    fill = None if missing is None else Fill(0.0 if missing == "zero" else missing)
    scales = given.pop("feature_map", [None])
    ways = [Chain(fill, WORDS.get(scale), one).short for scale in scales for one in maps]
    if ways != [None]:
        given["feature_map"] = ways[0] if ways == [fill] else ways
    if name == "auto":
        given["verbose"] = sys.stderr.isatty()
    return getattr(pairgram, MODELS[name].kind)(**given)


def with_scales(name: str, settings: Settings, sparse: bool, drawn: Callable[[], Any]) -> Settings:
    """Return the settings with the scales that a model tries, if none are given.

    Nonlinear nodes and kernels of distances may need scaled features. Linear models try scales and
    quantiles if rows that are `drawn` have a column with a long tail.
    """
    kernel, tried = settings.get("kernel"), []
    activation = settings.get("activation", "sigmoid" if name == "elmrank" else "linear")
    if kernel in OF_DISTANCES or (kernel is None and activation != "linear"):
        tried = ["maxabs" if sparse else "standard"]
    elif name in ("rankrls", "ranksvm") and kernel is None and not sparse:
        tried = ["standard", "quantile"] if has_long_tail(drawn()) else []
    return {"feature_map": [None, *tried], **settings} if tried else settings


def has_long_tail(X: Any) -> bool:
    """Tell whether a column of more than two values is skewed, as prices are."""
    X = np.nan_to_num(np.asarray(X, np.float64))
    X = X[:, ((X.min(0) < X) & (X.max(0) > X)).any(0)]
    with np.errstate(all="ignore"):  # infinities, which the fit names
        return bool((np.abs(skew(X)) > SKEWED).any())


def chosen(model: Any) -> Settings:
    """Return the settings that a fitted search has chosen, as values for JSON."""
    values = dict(model.cv_results_["params"][model.best_index_])
    values.pop("scale", None)  # which no option gives
    if "feature_map" in values:  # options can vary its scale, and gamma of a map
        chain = Chain.of(values.pop("feature_map"))
        if any(Chain.of(one).scaling for one in model.cv_results_["param_feature_map"]):
            values["feature_map"] = chain.kind
        if KERNELS.get(getattr(chain.then, "kernel", "")):
            values["gamma"] = chain.then.gamma_
    return values


def score_of_raw(model: Any) -> float | None:
    """Return the best held-out score of columns as they are, unless these were chosen."""
    results = model.cv_results_
    maps = results.get("param_feature_map", results.get("param_inputs", ()))
    raw = np.array([Chain.of(one).scaling is None for one in maps], bool)
    if "param_features" in results:  # of the automatic choice
        raw &= results["param_features"] == "columns"
    if not raw.any() or raw[model.best_index_]:
        return None
    best = np.nanmax if model.scoring_.greater_is_better else np.nanmin
    return float(best(results["mean_test_score"][raw]))


def train(given: Any) -> None:
    """Fit a model, choose its settings, and write it to a file."""
    file, valid, output = given.file, given.validation, given.output
    named_files.check_inputs(file, valid)
    named_files.check_output(output, file, valid)
    if named_files.is_stream(output):
        raise ValueError(
            f"--output {shown(output)}: a model goes to a file, not to a device or pipe"
        )
    on_table = named_files.is_table(given, file, valid)
    others = on_table or any(FIRST not in TAKES[key].models.split() for key in given.settings)
    name = given.model or ("rankrls" if others and not given.time_budget else FIRST)
    settings, scoring = check_model(name, given.settings), given.scoring
    if given.propensity:
        scoring = scoring or "ips_dcg@10"
        if "pairs" not in given.settings:
            settings.pop("pairs", None)  # there is one kind of clicks
    if scoring is not None:
        scoring = named_files.metric_of(scoring, "default")
    needs_ids = search_of(name, settings, scoring)._needs_queries
    kernel = settings.get("kernel", "linear") != "linear" and name not in MAPS
    whole = kernel or given.one_query or name in ("auto", "elmrank")
    with passes() as watch, one_query_meant():
        try:
            rows = (
                _of_tables(given, needs_ids, whole, watch)
                if on_table
                else _of_letor(given, needs_ids)
            )
            settings = with_scales(name, settings, given.sparse, rows.drawn)

            def fit(missing: str | None) -> Any:
                return search_of(name, settings, scoring, missing).fit(*rows.data, **rows.named)

            start = time.perf_counter()
            with working("fitting"):
                search = fit(given.missing)
        except ArgumentError as error:
            if not on_table or error.found != "NaN":
                raise
            if given.features or given.missing or error.parameter not in (None, "X"):
                filled = "the ranker feature_map=Fill('median') or Fill(0)"
                error.text = error.text.replace(filled, "--missing mean, median or zero")
                raise
            rows.assumed.append("missing values count as the mean of their column")
            search = fit("mean")
        seconds = time.perf_counter() - start
    if rows.assumed:
        warn(f"note: {'; '.join(rows.assumed)}: --features, --exclude and --missing say otherwise")
    search.save(output)
    _print_fit(given, name, search, seconds, rows.size)


def _of_letor(given: Any, needs_ids: bool) -> Any:
    """Return the rows of LETOR files."""
    files = [one for one in (given.file, given.validation) if one is not None]
    options: Settings = {"sparse": given.sparse, "zero_based": given.zero_based}
    data, *held = padded([load_letor(one, **options) for one in files])
    for one in held:
        if (data.qid is None) != (one.qid is None):
            bare, other = files if data.qid is None else files[::-1]
            raise ValueError(f"{name_of(bare)}: found no qid, want ids as in {name_of(other)}")
    if data.qid is None and needs_ids and not given.one_query:
        raise ValueError(
            f"{name_of(given.file)}: found no qid, want qid:ID after every label; --one-query "
            f"takes all {len(data.y)} rows as one query, all of whose rows are compared"
        )
    return SimpleNamespace(
        data=(data.X, data.y),
        named={"qid": data.qid, "validation": held[0] if held else None},
        size=(len(data.y), Queries.make(len(data.y), qid=data.qid).n_queries),
        drawn=lambda: data.X,
        assumed=[],
    )


def _of_tables(given: Any, needs_ids: bool, whole: bool, watch: Any) -> Any:
    """Return the rows of tables, which are read in passes, or as a whole."""
    file, valid, held_out = given.file, given.validation, None
    table, assumed = named_files.scan_assuming(given, file)
    table.refuse_output(given.output, "--output")
    if valid is not None:  # whose features are those of the training rows
        own = {
            "exclude": None,
            "features": None if table.is_letor else [*table.layout.features],
        }
        held_out = scan(given, valid, table.n_features, **own)
        held_out.refuse_output(given.output, "--output")
        table = table.widened(held_out.n_features)
        named_files.require(given, valid, held_out, needs_ids)
        held_out = watch(held_out)
    named_files.require(given, file, table, needs_ids)
    table = watch(table)
    survey = table.survey()
    rows = SimpleNamespace(
        data=[table],
        named={"validation": held_out},
        size=(sum(table.n_rows()), survey.n_queries),
        drawn=lambda: table.with_gaps().sample(SAMPLE, with_gaps=True).rows.X,
        assumed=assumed,
    )
    # Groups are held out in memory, and so are the rows of a single list, one by one.
    if whole or given.groups is not None or (survey.n_queries == 1 and valid is None):
        rows.data, rows.named = _in_memory(given, file, table)
        if given.groups is not None:
            read = room_with("command line", "read_labels")
            with named_files.naming_file(file, qid="--groups"):
                rows.named["groups"] = read(file, None, given.groups)[1]
        if held_out is not None:
            (X, y), named = _in_memory(given, valid, held_out)
            rows.named["validation"] = X, y, named["qid"]
    return rows


def _in_memory(given: Any, file: str, table: Any) -> tuple[tuple[Any, Any], Settings]:
    """Return the features of a table, with their names, its labels, and other arguments of fit.

    Missing values stay NaN, unless options say that there are none.

    Raises
    ------
    MemoryError
        If three copies of the features do not fit in memory.
    """
    rows = (table if given.features and not given.missing else table.with_gaps()).in_memory()
    if rows is None:
        raise MemoryError(
            f"{shown(file)}: the model needs all of its rows: take --model rankrls without "
            "--groups, and with --valid if they are one query, which reads them in blocks"
        )
    X, named = rows.X, {"qid": rows.query}
    if table.feature_names is not None:
        import pyarrow

        X = pyarrow.table(dict(zip(table.feature_names, X.T, strict=True)))
    if table.is_of_clicks:  # which are divided by propensities already
        return (X, public("Clicks")(rows.y, [1.0] * rows.n_rows)), named
    return (X, rows.y), named


def _print_fit(given: Any, name: str, search: Any, seconds: float, size: Any) -> None:
    """Print what was chosen, and how good it and its rivals are on held-out queries."""
    metric, (n_rows, n_queries), params = search.scoring_, size, chosen(search)
    report = {
        "metric": metric.name,
        "lower_is_better": not metric.greater_is_better or None,
        "held_out": name_of(given.validation)
        if given.validation
        else _held_out(search, given.groups is not None, n_queries),
        "score": float(search.best_score_),
        "raw_columns": score_of_raw(search),
        "n_rows": n_rows,
        "n_queries": n_queries,
        "n_features": int(search.n_features_in_),
        "seconds": seconds,
        "output": given.output,
    }
    report = {key: value for key, value in report.items() if value is not None}
    trials = {key: column.tolist() for key, column in getattr(search, "trials_", {}).items()}
    made = list(zip(*trials.values(), strict=True))
    if given.json:
        if made:
            report["trials"] = [dict(zip(trials, row, strict=True)) for row in made]
        print_json({"model": name, "params": params, **report})
        return
    shown_rows = {"model": name, "file": name_of(given.file), **params, **report}
    print_table((), shown_rows.items(), cell=significant)
    if made:
        print_table(
            list(trials),
            [["" if one is None or one != one else one for one in row] for row in made],
            title="what was tried; features and kernels must lead by a standard error",
        )


def _held_out(search: Any, has_groups: bool, n_queries: int) -> str:
    """Return as text what was held out if there was no validation set."""
    results = getattr(search, "best_estimator_", search).cv_results_
    n_splits = sum(key.startswith("split") for key in results)
    if n_splits:
        return f"{n_splits} folds" + " of groups" * has_groups
    return "leave-row-out" if n_queries == 1 else f"leave-{'group' if has_groups else 'query'}-out"


def letor(given: Any) -> None:
    """Run LETOR's five-fold protocol on a folder."""
    name, convention = given.model, given.convention
    scoring = named_files.metric_of(given.metric, convention)
    grids = {key: parse_grid(grid, key) for key, grid in MODELS[name].grids.items()}
    settings = check_model(name, given.settings)
    if not KERNELS.get(settings.get("kernel", "")):
        grids.pop("gamma", None)
    settings = {**grids, **settings}
    metric, names = scoring.name, list(dict.fromkeys((*PROTOCOL_METRICS, scoring.name)))
    folds: list[dict[str, Any]] = []
    with notes():
        for fold in pairgram.load_letor_folds(given.folder, sparse=given.sparse):
            search = search_of(name, settings, scoring)
            start = time.perf_counter()
            with working(f"fitting {fold.name}"):
                search.fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
            seconds = time.perf_counter() - start
            valid, test = (
                pairgram.evaluate(names, y, search.predict(X), qid, convention=convention)
                for X, y, qid in (fold.valid, fold.test)
            )
            report = {"fold": fold.name, "params": chosen(search), "valid": valid, "test": test}
            folds.append(report | {"seconds": seconds})
    means = {
        part: {key: float(np.mean([fold[part][key] for fold in folds])) for key in names}
        for part in ("valid", "test")
    }
    dataset = os.path.basename(os.path.abspath(given.folder))
    if given.json:
        report = {"dataset": dataset, "model": name, "metric": metric}
        print_json(report | {"folds": folds, "mean": means})
        return
    params = folds[0]["params"]
    print_table(
        ("fold", *params, f"valid {metric}", f"test {metric}", "seconds"),
        [
            (
                fold["fold"],
                *fold["params"].values(),
                fold["valid"][metric],
                fold["test"][metric],
                fold["seconds"],
            )
            for fold in folds
        ],
        title=f"{printable(dataset)}: {name}, chosen by validation {metric}, convention "
        f"{convention}",
        footer=("mean", *[""] * len(params), means["valid"][metric], means["test"][metric], ""),
    )
    print_table(("metric", "mean test"), means["test"].items())
