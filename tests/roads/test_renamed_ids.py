"""Renaming the ids of queries, to any ids of any types, changes nothing in any public function.

And no id may be missing.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import assume, given, settings, strategies as st
from query_ids import CONTAINERS, MISSING, RENAMINGS, objects

import pairgram as pg
from axes import every
from pairgram.clicks import credit

X, y, QUERY = pg.make_ranking(16, (2, 6), 3, random_state=3)
# A column that only tells queries apart.
X = np.column_stack([X, QUERY])
VALIDATION = X[:30] + 0.1, y[:30]
MODEL = pg.RankRLS().fit(X, y, qid=QUERY)


def _searched(model: Any) -> Any:
    return model.scores_, model.coef_, model.held_out_, model.best_score_


def _validated(ids: Any) -> Any:
    model = pg.RankRLSCV().fit(X, y, qid=ids, validation=(*VALIDATION, ids[:30]))
    return model.scores_, model.coef_


def _merged(ids: Any) -> Any:
    half = int(np.argmax(QUERY[len(QUERY) // 2] == QUERY))
    parts = [
        pg.Pairgram.from_rows(X[rows], y[rows], qid=ids[rows])
        for rows in (slice(None, half), slice(half, None))
    ]
    return (parts[0] + parts[1]).G, (parts[0] + parts[1] - parts[1]).g


def _frame(columns: dict[str, Any]) -> pandas.DataFrame:
    """Return a frame of the features and columns that hold what they are given, tuples as well."""
    frame = pandas.DataFrame({f"f{j}": column for j, column in enumerate(X.T)} | {"label": y})
    for name, ids in columns.items():
        listed = ids.to_pylist() if isinstance(ids, pyarrow.Array) else list(ids)
        frame[name] = pandas.Series(listed, dtype=object)
    return frame


def _batch(ids: Any) -> Any:
    batch = pg.fit_many(pg.RankRLS(), X, y, by=ids)
    keys = ids.to_pylist() if isinstance(ids, pyarrow.Array) else ids
    return batch.coef_, batch.predict(X, keys)


def _recommended(ids: Any) -> Any:
    batch = pg.fit_many(pg.RankRLS(), X, y, by=ids)
    users = list(batch.keys)[::-1]
    found = pg.recommend(batch, users, X[:8], 3, exclude=([users[1], users[0]], [0, 1]))
    return found.places, found.scores


def _negatives(ids: Any) -> Any:
    place = np.arange(len(y)) % 7
    of_users = pg.sample_negatives(ids, place, catalog=range(200), random_state=0)
    of_items = pg.sample_negatives(np.arange(len(y)), ids, by="popularity", random_state=0)
    return of_users.items, of_users.source, of_items.source, of_items.labels


def _inside(ids: Any) -> Any:
    return pg.fit_many(pg.RankRLS(), X, y, by=np.arange(len(y)) // 20, qid=ids).coef_


def _parity(ids: Any) -> Any:
    found = pg.export.verify(
        pg.export.to_solr(MODEL, "m", features=["a", "b", "c", "d"]), MODEL, X, ids
    )
    return found.spread, found.n_queries, found.n_close


def _run(ids: Any) -> Any:
    frame = _frame({"qid": ids}).assign(docno=[f"d{row}" for row in range(len(y))])
    run = frame.assign(score=MODEL.predict(X)).drop(columns="label")
    found = pg.evaluate_run(frame, run, ["map", "ndcg@3"], per_query=True)
    return found["map"], found["ndcg@3"]


def _fused(ids: Any) -> Any:
    frame = _frame({"qid": ids}).assign(docno=[f"d{row:03}" for row in range(len(y))])
    runs = [frame.assign(score=column).drop(columns="label") for column in (X[:, 0], X[:, 1])]
    found = pg.fuse(runs, frame)
    return found.run["score"], [int(name[1:]) for name in found.run["docno"]], found.gain


def _compared(ids: Any) -> Any:
    systems = {"a": MODEL.predict(X), "b": X[:, 0]}
    found = pg.compare(y, ids, systems, ["ndcg@3", "map"], n_permutations=200, n_resamples=50)
    if isinstance(ids, (list, tuple)):
        assert list(found.qid) == list(dict.fromkeys(ids))
    return [found.differences[name] for name in ("difference", "p", "wins", "ties")]


def _folds(splitter: Any, argument: str) -> Callable[[Any], Any]:
    return lambda ids: [np.sort(test) for _, test in splitter.split(X, y, **{argument: ids})]


def _weighted(ids: Any) -> Any:
    weights = 1.0 + QUERY % 3
    return pg.RankRLS().fit(X, y, qid=ids, query_weight=weights).coef_


# What functions refuse: statistics that are merged do not mix numbers and text, and runs know ids
# by their texts.
REFUSED = {
    ("Pairgram", renaming): "qid must be numbers, text, bytes, times, UUID or tuples of these"
    for renaming in ("fractions", "frozen sets")
}
REFUSED |= {
    (name, renaming): "must have different texts"
    for name in ("evaluate_run", "fuse")
    for renaming in (
        "numbers and numerals",
        "a tuple of numbers and numerals",
        "types of all kinds",
        "booleans and text",
        "objects in an array",
    )
}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "RankRLS.fit": lambda ids: pg.RankRLS().fit(X, y, qid=ids).coef_,
    "RankRLS.fit of weighted queries": _weighted,
    "RankRLSCV.fit": lambda ids: _searched(pg.RankRLSCV().fit(X, y, qid=ids)),
    "RankRLSCV.fit in folds": lambda ids: _searched(pg.RankRLSCV(cv=3).fit(X, y, qid=ids)),
    "RankRLSCV.fit with a validation set": _validated,
    "RankSVM.fit": lambda ids: pg.RankSVM().fit(X, y, qid=ids).coef_,
    "RankSVMCV.fit": lambda ids: pg.RankSVMCV(cv=2).fit(X, y, qid=ids).scores_,
    "ELMRankCV.fit": lambda ids: (
        pg.ELMRankCV(n_nodes=5, cv=2, random_state=0, pairs=pg.Pairs()).fit(X, y, qid=ids).scores_
    ),
    "AutoRanker.fit": lambda ids: (
        pg.AutoRanker(time_budget=1e-6).fit(X, y, qid=ids).trials_["score"]
    ),
    "score": lambda ids: MODEL.score(X, y, qid=ids),
    "weights": lambda ids: list(MODEL.column_weights(X, qid=ids).values())[1:],
    "scorer of scikit-learn": lambda ids: pg.make_scorer("map")(MODEL, X, y, qid=ids),
    "Pairgram": _merged,
    "evaluate": lambda ids: pg.evaluate(["ndcg@3", "auc"], y, X[:, 0], ids, per_query=True),
    "Metric": lambda ids: pg.get_metric("map")(y, X[:, 0], ids),
    "compare": _compared,
    "credit": lambda ids: list(credit(np.array(["a", "b"])[np.arange(len(y)) % 2], y, ids)),
    "groups": lambda ids: _searched(pg.RankRLSCV().fit(X, y, qid=QUERY, groups=ids)),
    "groups in folds": lambda ids: _searched(pg.RankRLSCV(cv=3).fit(X, y, qid=QUERY, groups=ids)),
    "QueryKFold": _folds(pg.QueryKFold(4), "qid"),
    "QueryKFold of groups": _folds(pg.QueryKFold(4), "groups"),
    "QueryKFold shuffled": _folds(pg.QueryKFold(4, shuffle=True, random_state=1), "groups"),
    "fit_many by keys": _batch,
    "fit_many of queries": _inside,
    "recommend": _recommended,
    "sample_negatives": _negatives,
    "leave_last_out": lambda ids: pg.leave_last_out(ids, X[:, 0]),
    "fit_many": lambda ids: pg.fit_many(pg.RankRLSCV(), [(X, y, ids)]).coef_[0],
    "export.verify": _parity,
    "evaluate_run": _run,
    "fuse": _fused,
}


def _numbers(found: Any) -> list[Any]:
    """Return the arrays of numbers in what a function returned."""
    if isinstance(found, dict):
        found = [value for name, value in found.items() if name != "qid"]
    if isinstance(found, (list, tuple)):
        return [array for one in found for array in _numbers(one)]
    return [np.asarray(found)]


def _called(name: str, ids: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _numbers(FUNCTIONS[name](ids))


def _renamed(name: str, renaming: str, ids: Any) -> None:
    """Call a function with ids that were renamed, and hold it against the numbers of queries."""
    if (name, renaming) in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name, renaming]):
            _called(name, ids)
        return
    for found, wanted in zip(_called(name, ids), _called(name, QUERY), strict=True):
        np.testing.assert_array_equal(found, wanted)


# Objects of these types, which a batch finds among its keys.
HASHED = ("times of numpy", "durations of numpy", "timestamps")


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=4)
@given(renaming=st.sampled_from(list(RENAMINGS)), container=st.sampled_from([None, *CONTAINERS]))
def test_renaming_ids_changes_nothing(name, renaming, container):
    time = np.datetime64(0, "ms")
    # Some versions of NumPy have other hashes for times than Python.
    assume(name != "fit_many by keys" or renaming not in HASHED or hash(time) == hash(time.item()))
    ids = RENAMINGS[renaming](QUERY)
    _renamed(name, renaming, ids if container is None else CONTAINERS[container](list(ids)))


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=4)
@given(st.sampled_from(["list", "array", "series"]), st.sampled_from(list(MISSING)))
def test_missing_ids_are_refused(name, container, missing):
    ids = [f"q{k}" for k in QUERY]
    ids[20:21] = [MISSING[missing]]
    with pytest.raises(ValueError, match=r"must not be missing, got .* in row 20"):
        _called(name, CONTAINERS[container](ids))


# The functions that take ids as an argument, not as a column of a frame.
OF_FRAMES = ("evaluate_run", "fuse")
OF_ARRAYS = [name for name in FUNCTIONS if name not in OF_FRAMES]
COLUMNS = {
    "polars": polars.Series,
    "pyarrow": pyarrow.array,
    "pyarrow, in chunks": lambda ids: pyarrow.chunked_array([ids[:5], ids[5:]]),
    "pandas, nullable": lambda ids: pandas.array(ids, dtype="Int64"),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
@settings(max_examples=2)
@given(column=st.sampled_from(list(COLUMNS)))
def test_missing_ids_in_columns_are_refused(name, column):
    ids = [2**60 + int(k) for k in QUERY]
    ids[20] = None
    with pytest.raises(ValueError, match=r"must not be missing, got (None|nan|<NA>) in row 20"):
        _called(name, COLUMNS[column](ids))


FRAMES = {
    "polars": polars.DataFrame,
    "polars, lazy": polars.LazyFrame,
    "pyarrow": pyarrow.table,
    "pandas": pandas.DataFrame,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_are_no_ids(frame):
    for fit in (pg.RankRLS().fit, pg.Pairgram.from_rows):
        with pytest.raises(ValueError, match=r"qid must have shape \(\d+,\), one id per row, got"):
            fit(X, y, qid=FRAMES[frame]({"qid": QUERY}))


@every(name=OF_ARRAYS)
def test_ids_that_cannot_be_hashed_are_refused(name):
    with pytest.raises(TypeError, match=r"must be hashable, got set in row 0"):
        _called(name, objects([set() for _ in QUERY]))


# Tables hold ids of the types of Arrow.
IN_TABLES = ("uint64", "int8", "text", "array of text", "numerals", "text that ends with a null")
TIMES = ("dates", "times of numpy", "datetimes", "neighbours above 2**53")


@every(renaming=(*IN_TABLES, *TIMES, "text of other scripts"))
def test_renaming_ids_of_tables_changes_nothing(renaming):
    order = np.argsort(QUERY, kind="stable")

    def of(ids):
        columns = {f"f{j}": column for j, column in enumerate(X.T)}
        table = pyarrow.table(columns | {"label": y, "query": pyarrow.array(ids)}).take(order)
        scanned = pg.scan(table, label="label", qid="query")
        model = pg.RankRLSCV().fit(scanned)
        return model.scores_, model.coef_, *pg.evaluate(["ndcg@3"], scanned, model).values()

    for found, wanted in zip(of(RENAMINGS[renaming](QUERY)), of(QUERY), strict=True):
        np.testing.assert_array_equal(found, wanted)
