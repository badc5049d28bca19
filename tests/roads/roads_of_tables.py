"""The same rows as a table: arrays, functions, frames and files that are cut anywhere."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.dataframe
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet
from journeys import Journey
from outcomes import Outcome, outcome_of
from road import OF_CLICKS, WITH_GAPS, plain, road
from sklearn import clone, config_context
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from pairgram import dump_letor, evaluate, predict, scan

# Landmarks, widths of kernels and folds are drawn otherwise from a table, and all rows are one
# query, or held out row by row, in memory alone.
KINDS = (
    "RankRLS",
    "RankRLS with constraints",
    "RankRLSCV",
    "RankRLSCV of choices",
    "PointwiseELM",
    "PairwiseELM",
    "PairwiseELMCV",
    "RankSVM",
    *WITH_GAPS,
    *OF_CLICKS,
)


def in_primal_form(journey: Journey) -> Outcome:
    """The plain road in the form that tables have, with the held-out scores of tables."""
    return plain(journey.in_form("primal"))


def of_table(journey: Journey, table: Any) -> Outcome | None:
    """Fit and score a table; the scores of arrays and the metric of the table are the same."""
    if journey.is_search and len(journey.rows.offsets) == 2:
        return None
    model = journey.in_form("primal").estimator.fit(table)
    scores = np.asarray(model.predict(table))
    np.testing.assert_array_equal(scores, model.predict(journey.rows.X))
    rows = journey.rows
    if rows.propensity is not None:
        by_rows = evaluate("ips_dcg@5", rows.labels, scores, rows.query, sample_weight=rows.weight)
        of_table = evaluate("ips_dcg@5", table, model)
        np.testing.assert_allclose(of_table["ips_dcg@5"], by_rows["ips_dcg@5"])
    elif (rows.y >= 0).all():
        by_rows = evaluate("ndcg@5", rows.y, scores, rows.query, sample_weight=rows.weight)
        of_table = evaluate("ndcg@5", table, model)
        np.testing.assert_allclose([*of_table.values()], [*by_rows.values()])
    return outcome_of(journey, model, scores=scores)


def _cuts(journey: Journey) -> list[int]:
    n = len(journey.rows)
    inner = journey.rng().integers(1, n, 3) if n > 1 else []
    return [0, *sorted({*map(int, inner)}), n]


def table_road(**named: Any) -> Any:
    return road(**({"kinds": KINDS, "plain": in_primal_form} | named))


@table_road()
def function_that_fills_a_frame_again(journey: Journey) -> Outcome | None:
    """What was yielded changes when the next batch is asked for."""
    kinds = {
        "pandas": lambda columns: pandas.DataFrame(columns, copy=False),
        "pyarrow": pyarrow.table,
    }
    frame_of = kinds[("pandas", "pyarrow")[journey.seed % 2]]
    columns = _columns(journey)
    buffers = {name: np.empty_like(column) for name, column in columns.items()}
    cuts = _cuts(journey)

    def batches() -> Iterator[Any]:
        for begin, end in pairwise(cuts):
            for name, column in columns.items():
                buffers[name][: end - begin] = column[begin:end]
            yield frame_of({name: b[: end - begin] for name, b in buffers.items()})
            for buffer in buffers.values():
                buffer[:] = 1

    return of_table(journey, _scan(journey, batches))


def _columns(journey: Journey) -> dict[str, np.ndarray]:
    rows = journey.rows
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    columns = {name: np.ascontiguousarray(c) for name, c in zip(rows.names, rows.X.T, strict=True)}
    return {"label": rows.y, **columns, "query": rows.query, "weight": weight, **rows.others}


def _scan(journey: Journey, source: Any, **named: Any) -> Any:
    order = {"label": "label", "qid": "query", "weight": "weight"}
    order |= {name: name for name in journey.rows.others}
    return scan(source, **{**order, "features": journey.rows.names, **named})


@table_road()
def scanned_frame(journey: Journey) -> Outcome | None:
    frames = pandas.DataFrame, polars.DataFrame, pyarrow.table, polars.LazyFrame
    return of_table(journey, _scan(journey, frames[journey.seed % 4](_columns(journey))))


@table_road()
def lists_among_columns(journey: Journey) -> Outcome | None:
    """A column of lists, one of numbers and again one of lists have the features in their order."""
    columns, names = _columns(journey), list(journey.rows.names)
    if len(names) < 2:
        return None
    at = int(journey.rng().integers(len(names)))
    lists = {"before": names[:at], "behind": names[at + 1 :]}
    for name, own in lists.items():
        if own:
            rows = np.column_stack([columns.pop(one) for one in own])
            kind = pyarrow.from_numpy_dtype(rows.dtype)
            columns[name] = pyarrow.FixedSizeListArray.from_arrays(rows.ravel(), len(own))
            if journey.seed % 2:
                columns[name] = pyarrow.array(columns[name].to_pylist(), pyarrow.list_(kind))
    order = [name for name in ("before", names[at], "behind") if name in columns]
    return of_table(journey, _scan(journey, pyarrow.table(columns), features=order))


@table_road()
def csv_files(journey: Journey) -> Outcome | None:
    frame, cuts = pyarrow.table(_columns(journey)), _cuts(journey)
    with tempfile.TemporaryDirectory() as folder:
        for number, (begin, end) in enumerate(pairwise(cuts)):
            part = frame.slice(begin, end - begin).to_pandas()
            part = part.fillna({"propensity": 0.0})  # a first file without values has no type
            part.to_csv(Path(folder) / f"{number}.csv", index=False)
        return of_table(journey, _scan(journey, f"{folder}/*.csv"))


def _written(journey: Journey, folder: str, row_group_size: int | None = None) -> list[str]:
    frame, cuts = pyarrow.table(_columns(journey)), _cuts(journey)
    paths = []
    for number, (begin, end) in enumerate(pairwise(cuts)):
        paths.append(os.path.join(folder, f"{number}.parquet"))
        part = frame.slice(begin, end - begin)
        pyarrow.parquet.write_table(part, paths[-1], row_group_size=row_group_size)
    return paths


@table_road()
def parquet_files(journey: Journey) -> Outcome | None:
    """Files and groups of rows end in the middle of queries."""
    with tempfile.TemporaryDirectory() as folder:
        paths = _written(journey, folder, 1 + journey.seed % 7)
        return of_table(journey, _scan(journey, paths))


@table_road(kinds=("RankRLS", "RankRLSCV"))
def dask_frame(journey: Journey) -> Outcome | None:
    frame = dask.dataframe.from_pandas(
        pandas.DataFrame(_columns(journey)), npartitions=1 + journey.seed % 3, sort=False
    )
    with dask.config.set(scheduler="threads"):
        return of_table(journey, _scan(journey, frame))


@table_road(kinds=("RankRLS", "RankRLSCV"))
def letor_files(journey: Journey) -> Outcome | None:
    if journey.rows.weight is not None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.txt")
        dump_letor(path, journey.rows.X, journey.rows.y, qid=journey.rows.query)
        return of_table(journey, scan(path, n_features=journey.rows.X.shape[1]))


def of_times(journey: Journey) -> Outcome:
    """Times are no features, in any unit: they are refused, or have one scale."""
    ticks = np.round(journey.rows.X[:, 0] * 100).astype(np.int64)
    return _of_times(journey, ticks, "us")


def _of_times(journey: Journey, ticks: np.ndarray, unit: str) -> Outcome:
    columns = {"a time": ticks.astype("M8[us]").astype(f"M8[{unit}]"), "one": np.ones(len(ticks))}
    frame_of = (polars.DataFrame, pyarrow.table, pandas.DataFrame)[journey.seed % 3]
    frame, trained = frame_of(columns), frame_of({**columns, "a time": ticks.astype("M8[us]")})
    return outcome_of(journey, journey.fit(X=trained), frame)


@road(kinds=("RankRLS", "PairwiseELM", "RankSVM"), plain=of_times)
def times_of_another_unit(journey: Journey) -> Outcome:
    ticks = np.round(journey.rows.X[:, 0] * 100).astype(np.int64)
    return _of_times(journey, ticks, "ns")


WORDS = ["a", "10", "NA", "é"]  # of which a file of text tells neither type nor gaps


def _with_codes(journey: Journey) -> Journey:
    """Put the numbers of drawn words into the first column."""
    codes = journey.rng().integers(0, len(WORDS), len(journey.rows)).astype(float)
    X = np.column_stack([codes, journey.rows.X[:, 1:]])
    return replace(journey, rows=replace(journey.rows, X=X))


@road(
    kinds=("RankRLS", "RankRLSCV", "PointwiseELM", "RankSVM", *WITH_GAPS),
    plain=lambda journey: plain(_with_codes(journey)),
    refuses=("of Python's",),
)
def text_of_a_table(journey: Journey) -> Outcome | None:
    """A pipeline that encodes text scores and judges a table as it does a frame in memory."""
    journey = _with_codes(journey)
    rows, names = journey.rows, journey.rows.names
    frame = pandas.DataFrame(_columns(journey))
    frame[names[0]] = np.array(WORDS, object)[frame[names[0]].astype(int)]
    encoder = OrdinalEncoder(categories=[WORDS])
    columns = ColumnTransformer([("text", encoder, names[:1])], remainder="passthrough")
    with config_context(enable_metadata_routing=True):
        ranker = clone(journey.estimator).set_fit_request(**dict.fromkeys(rows.fit_arguments, True))
        model = make_pipeline(columns, ranker).fit(frame[names], rows.labels, **rows.fit_arguments)
    with tempfile.TemporaryDirectory() as folder:
        for number, (begin, end) in enumerate(pairwise(_cuts(journey))):
            frame[begin:end].to_csv(Path(folder) / f"{number}.csv", index=False)
        sources = (
            f"{folder}/*.csv",
            frame,
            lambda: (frame[a:b] for a, b in pairwise(_cuts(journey))),
        )
        table = _scan(journey, sources[journey.seed % 3])
        parts = predict(model, table, keep=[])
        scores = np.concatenate([part["score"].to_numpy() for part in parts])
        if (rows.y >= 0).all():
            judged = evaluate("ndcg@5", rows.y, scores, rows.query, sample_weight=rows.weight)
            np.testing.assert_allclose(
                [*evaluate("ndcg@5", table, model).values()], [*judged.values()]
            )
    return outcome_of(journey, model[-1], scores=scores)
