"""``pairgram train`` and ``letor`` fit models and choose settings by held-out queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairgram
from pairgram._rooms import public
from pairgram._support.files import printable, shown
from pairgram._support.parameters import check
from pairgram.cli import options as opt
from pairgram.cli.models import (
    MODELS,
    Model,
    ModelName,
    ModelOrAuto,
    chosen,
    default_model,
    filling,
    fills,
    get_model,
    require_table,
    trials,
    with_settings,
)
from pairgram.cli.options import Settings, name_of, option
from pairgram.cli.report import (
    count,
    print_json,
    print_table,
    show_rows,
    working,
)
from pairgram.cli.tables import Columns, note_assumed, refuse_with_table, with_columns

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator
    from pairgram.datasets import LetorData

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
    convention: Annotated[str, option("convention")] = "letor",
    settings: Settings,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
    as_json: opt.Json = False,
) -> None:
    """Run LETOR's five-fold protocol on a folder.

    Each fold trains on three parts, chooses by the fourth and tests on the last. Settings are
    chosen for each fold by --metric on its validation part. Without options, this is the protocol
    of the RankRLS paper: with and without tied pairs, ridges 2^-15 to 2^24, MAP, and the metrics of
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
      pairgram letor MQ2008 --pairs gain_difference --pairs with_ties --metric ndcg@10
      pairgram letor MQ2008 --json | jq .mean.test.map
    """
    scoring = opt.metric_of(metric, convention)
    entry = get_model(model, settings)
    protocol = {n: grid for n, grid in entry.protocol.items() if n not in settings}
    settings = {**settings, **protocol}
    entry.search(settings, scoring)  # refuses what it cannot take, before reading
    folds = pairgram.load_letor_folds(
        folder, dtype="float32" if float32 else "float64", sparse=sparse
    )
    names = list(dict.fromkeys((*PROTOCOL_METRICS, scoring.name)))
    measuring: Any = {"convention": convention}
    results = []
    with opt.warnings_as_notes():
        for fold in folds:
            search = entry.search(settings, scoring)
            start = time.perf_counter()
            with working(f"fitting {fold.name}"):
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
    varied = [name for name in params[0] if len({row[name] for row in params}) > 1]
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
    print_table(
        ("k", "mean test ndcg@k", "mean test p@k"),
        [(k, mean["test"][f"ndcg@{k}"], mean["test"][f"p@{k}"]) for k in range(1, 11)],
    )


@with_settings
@with_columns(
    *("label", "qid", "one_query", "features", "exclude", "missing"),
    *("weight", "groups", "propensity"),
)
def train(
    file: opt.Rows,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")
    ],
    *,
    model: ModelOrAuto = None,
    valid: Annotated[str | None, option("validation")] = None,
    settings: Settings,
    columns: Columns,
    metric: opt.ChoiceMetric = None,
    float32: opt.Float32 = False,
    sparse: opt.Sparse = False,
    as_json: opt.Json = False,
) -> None:
    """Fit a model, choose its settings, and write it to a file.

    Without --model, several models are tried on held-out queries, linear ones first, and the best
    is kept; see --time-budget. With --model, or options of rankrls, every combination of --alphas
    or --Cs, --gamma, --pairs, --target and --feature-map is scored. Queries are scored by models
    that have not seen them: each query in turn (exact leave-query-out), those of five folds
    (elmrank, RankSVMs), or those of --valid. The best is fitted to all of FILE, without the rows of
    --valid. The printed score is its score on held-out queries, and the seconds are the time of
    fitting and choosing. A file without qids, or a table without --qid, is refused unless
    --one-query is given. It is accepted for models that do not compare rows within queries (rls,
    elm-pointwise, elmrank).

    A table may be larger than memory. Its rows are read in blocks: once for labels and query ids,
    once to fit, and once more to score held-out queries. Without --model, rankrls is fitted to it.
    RankSVMs take a pass or more for every step of every fold; with --valid there are no folds.
    --model auto and elmrank read the whole table into memory. So do others with --metric evidence,
    or if all rows are one query, because these rows are held out one by one. Models with kernels
    cannot be fitted to a table of several queries.

    With --propensity, a table is a log of the lists that were shown, --label is the column of
    clicks, and --qid that of the ids of lists. Each click is divided by its propensity, both in the
    fit and in the metric that chooses settings.

    \b
    Examples:
      pairgram train train.txt -o model.safetensors
      pairgram train 'data/*.parquet' --label relevance --qid query_id -o model.safetensors
      pairgram train train.txt -o model.safetensors --time-budget 5
      pairgram train train.txt -o model.safetensors --valid vali.txt --metric map
      pairgram train train.txt -o model.safetensors --alphas 100 --pairs without_ties
      pairgram train train.txt -o model.safetensors --prior last-week.safetensors
      pairgram train train.txt -o model.safetensors --pairs gain_difference --scale
      pairgram train train.txt -o model.safetensors --model elm-pairwise --activation sigmoid
      pairgram train train.txt -o model.safetensors --model rank-fourier --gamma 2^-9:2^0:3
    """
    from pairgram.data.queries import one_query_meant

    path, valid_path = Path(file), None if valid is None else Path(valid)
    opt.check_one_stdin(path, valid_path)
    opt.check_output(output, settings.get("prior"), path, valid_path)
    if opt.is_stream(output):
        raise ValueError(
            f"--output {shown(output)}: a model goes to a file, not to a device or pipe"
        )
    settings, metric = _with_pairs(settings, model, metric, columns)
    on_table = columns.make_table(file, valid)
    model = default_model(settings, on_table) if model is None else model
    entry = get_model(model, settings)
    if on_table:
        if not columns.one_query:  # else all rows are read into memory
            require_table(model, settings)
        refuse_with_table(float32=float32, sparse=sparse)
    settings = entry.with_scales(settings, sparse)
    metric = metric or entry.metric
    known = metric is None or metric == opt.EVIDENCE
    search = entry.search(settings, metric if known else opt.metric_of(str(metric), "default"))
    # The search fills missing values itself.
    if columns.missing is not None:
        filling(search, check("missing", columns.missing))
    columns = replace(columns, missing=None)
    start = time.perf_counter()
    if on_table:
        size = _fit_table(search, columns, settings, file, valid, output, entry)
    else:
        data, held_out = _load_both(path, valid_path, entry, settings, float32, sparse)
        opt.require_ids(path, data, search, columns.one_query)
        opt.warn_of_no_ids(path, data)
        size = len(data.y), opt.n_queries(data)
        start = time.perf_counter()
        with opt.warnings_as_notes(), working("fitting"), one_query_meant():
            search.fit(data.X, data.y, qid=data.qid, validation=held_out)
    seconds = time.perf_counter() - start
    search.save(output)
    held_by = (
        _held_out(search, columns.groups is not None, size[1])
        if valid_path is None
        else name_of(valid_path)
    )
    report = {
        "model": model,
        "params": chosen(search),
        "metric": search.scoring_.name,
        "held_out": held_by,
        "score": float(search.best_score_),
        **dict(zip(("n_rows", "n_queries"), size, strict=True)),
        "n_features": int(search.n_features_in_),
        "seconds": seconds,
        "output": str(output),
    }
    if hasattr(search, "trials_"):
        report["trials"] = trials(search)
    if as_json:
        print_json(report)
        return
    (params,), made = show_rows([report.pop("params")]), report.pop("trials", [])
    name = search.scoring_.name
    judged_by = name if name == opt.EVIDENCE else f"held-out {name}"
    lower = "" if search.scoring_.greater_is_better else " (lower is better)"
    shape = f"{opt.size_of(*size)}, {count(report['n_features'], 'feature')}"
    print_table(
        (),
        [
            ("model", f"{model} of {name_of(path)}: {shape}"),
            *params.items(),
            (judged_by, f"{search.best_score_:.4f}{lower}, {held_by}"),
            ("seconds", f"{seconds:.2f}"),
            ("written", output),
        ],
    )
    if made:
        print_table(
            [*made[0], ""],
            [[*_cells(row), "*" * (row["outcome"] == "best")] for row in show_rows(made)],
            title="what was tried; features and kernels must lead by a standard error",
        )


def _with_pairs(
    settings: Settings, model: str | None, metric: str | None, columns: Columns
) -> tuple[Settings, str | None]:
    """Return the settings, with the pairs that clicks or the evidence take, and the metric."""
    pairs = None
    if columns.propensity is not None:
        pairs, metric = "clicks", metric or "ips_dcg@10"
    elif metric == opt.EVIDENCE:  # which cannot compare pairs
        pairs = "with_ties"
    known = MODELS.get(model or "rankrls")
    if pairs and known and "pairs" in known.takes and "pairs" not in settings:
        settings = {**settings, "pairs": [pairs]}
    return settings, metric


def _fit_table(
    search: BaseEstimator,
    columns: Columns,
    settings: Settings,
    file: str,
    valid: str | None,
    output: Path,
    entry: Model,
) -> tuple[int, int]:
    """Fit a search to a table."""
    from pairgram.data.queries import one_query_meant

    with columns.reading() as watch:
        table, assumed = columns.scan_assuming(file)
        table.refuse_output(output, "--output")
        held_out = None
        if valid is not None:
            same = replace(columns, exclude=None)  # the features are those of the training rows
            held_out = same.scan(valid, [*table.layout.features], table.n_features)
            held_out.refuse_output(output, "--output")
            table = table.widened(held_out.n_features)
            columns.require(valid, held_out, search._needs_queries)
            held_out = watch(held_out)
        columns.require(file, table, search._needs_queries)
        table = watch(table)
        survey = table.survey()
        # The rows of a single list are held out one by one, which needs all of them.
        is_list = survey.n_queries == 1 and valid is None
        needs_all = is_list or search.scoring == opt.EVIDENCE

        def fit() -> None:
            if not (entry.in_memory or columns.one_query or needs_all):
                _fit_by_passes(search, table, held_out)
                return
            X, y, named_rows = _read_all(file, table, search)
            validation = None
            if held_out is not None:
                rows, labels, ids = _read_all(str(valid), held_out, search)
                if "sample_weight" in ids:
                    raise ValueError(
                        "--weight: weights of the rows of --valid need a model that reads tables "
                        "in blocks, such as --model rankrls, with query ids"
                    )
                validation = (rows, labels, ids["qid"])
            with one_query_meant():
                search.fit(X, y, **named_rows, validation=validation)

        _fit_assuming(fit, search, columns, assumed)
    note_assumed(assumed)
    return survey.n_rows, survey.n_queries


def _fit_assuming(
    fit: Callable[[], None], search: BaseEstimator, columns: Columns, assumed: list[str]
) -> None:
    """Fit; if nobody said what features are, missing values count as the mean of their column."""
    from pairgram._support.checks import ArgumentError

    try:
        fit()
    except ArgumentError as error:
        says = columns.features or fills(search)
        if says or error.found != "NaN" or error.parameter not in (None, "X"):
            raise
        filling(search, "mean")
        assumed.append("missing values count as the mean of their column")
        fit()


def _fit_by_passes(search: BaseEstimator, table: Any, held_out: Any) -> None:
    from pairgram._support.checks import ONE_QUERY, ArgumentError

    try:
        search.fit(table, validation=held_out)
    except ArgumentError as error:
        if error.found == ONE_QUERY:
            error.text += ": give --valid, --metric evidence, or --model auto, which reads all rows"
        raise


def _read_all(file: str, table: Any, search: BaseEstimator) -> tuple[Any, Any, dict[str, Any]]:
    """Return the features of a table, with their names, its labels, and other arguments of fit.

    Missing values stay NaN if the search fills them.

    Raises
    ------
    MemoryError
        If three copies of the features do not fit in memory.
    """
    from pairgram._support import machine as memory
    from pairgram.data.queries import Queries

    rows, table = None, table.with_gaps() if fills(search) else table
    if table.layout.sparse or memory.fits(table.bytes_in_memory):
        rows = table.in_memory()
    if rows is None:
        raise memory.lacking(
            f"{shown(file)}, all of whose rows the model needs,",
            table.bytes_in_memory,
            "take pairgram train --model rankrls with --valid, which reads them in blocks"
            if table.survey().n_queries == 1
            else "take pairgram train --model rankrls, which reads them in blocks",
        )
    X, named = rows.X, {"qid": rows.query}
    if table.layout.weight is not None:
        named["sample_weight"] = rows.weights
    group_of = table.survey().group_of
    if group_of is not None:
        named["groups"] = group_of[Queries.make(rows.n_rows, qid=rows.query).index()]
    if table.feature_names is not None:
        import pyarrow

        X = pyarrow.table(dict(zip(table.feature_names, X.T, strict=True)))
    if table.is_of_clicks:  # which are divided by propensities already
        return X, public("Clicks")(rows.y, [1.0] * rows.n_rows), named
    return X, rows.y, named


def _load_both(
    file: Path, valid: Path | None, entry: Model, settings: Settings, float32: bool, sparse: bool
) -> tuple[LetorData, LetorData | None]:
    """Read the LETOR files to fit to and to choose by."""
    from pairgram.datasets.letor import padded

    data = _load(file, entry, settings, float32, sparse)
    if valid is None:
        return data, None
    held_out = _load(valid, entry, settings, float32, sparse)
    data, held_out = padded([data, held_out])
    if (data.qid is None) != (held_out.qid is None):
        without, other = (file, valid) if data.qid is None else (valid, file)
        names = (name_of(without), name_of(other))
        raise ValueError("{}: found no qid, want ids as in {}".format(*names))
    opt.warn_of_no_ids(valid, held_out)
    return data, held_out


def _load(path: Path, entry: Model, settings: Settings, float32: bool, sparse: bool) -> LetorData:
    """Read a LETOR file; it has at most the features of the model of --prior."""
    options: dict[str, Any] = {"float32": float32, "sparse": sparse}
    if "prior" in settings:
        width = opt.width_of(entry.search(settings, None).prior.estimator)
        return opt.load_data_of(settings["prior"], width, path, **options)
    return opt.load_data(path, **options)


def _cells(row: dict[str, Any]) -> list[Any]:
    """Return the cells of a row of trials, with four decimals of held-out scores."""
    shown = {**row, "inputs": row["inputs"] or "none"}
    for name in ("lead", "standard_error"):
        shown[name] = "" if shown[name] is None else f"{shown[name]:.4f}"
    return ["" if value is None else value for value in shown.values()]


def _held_out(search: BaseEstimator, has_groups: bool, n_queries: int) -> str:
    """Return as text what was held out if there was no validation set."""
    if search.scoring_.name == opt.EVIDENCE:
        return "nothing held out"
    search = getattr(search, "best_estimator_", search)
    n_splits = sum(name.startswith("split") for name in search.cv_results_)
    if n_splits:
        return f"{n_splits} folds of groups" if has_groups else f"{n_splits} folds"
    if n_queries == 1:
        return "leave-row-out"
    return "leave-group-out" if has_groups else "leave-query-out"
