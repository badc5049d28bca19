"""Ids of queries are read in one place, so that they are the same queries for every function."""

import ast
import uuid
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import FitFailedWarning

import pairgram
from pairgram import (
    Pairgram,
    QueryKFold,
    RankRLS,
    RankRLSCV,
    compare,
    evaluate,
    evaluate_run,
    export,
    fit_many,
    learning_curve,
    make_ranking,
    query_permutation_importance,
)

SOURCE = Path(pairgram.__file__).parent
X, Y, QUERY = make_ranking(12, (3, 7), 3, random_state=0)
X = np.column_stack([X, QUERY])  # a column that tells queries apart
MODEL = RankRLS().fit(X, Y, qid=QUERY)
# Functions of the number of a query. NumPy, pandas or text make some of the ids equal.
NAMES = {
    "ints and texts": lambda k: k // 2 if k % 2 else str(k // 2),
    "large ints": lambda k: 2**63 + k if k % 2 else -k,
    "neighbours": lambda k: 2**60 + k,
    "tuples": lambda k: (k // 4, k % 4),
    "tuples of mixed types": lambda k: (0, k // 2 if k % 2 else str(k // 2)),
    "decimals": lambda k: Decimal(k) / 7,
    "decimals and floats": lambda k: Decimal(k) if k % 2 else k + 0.5,
    "bytes": lambda k: b"q\0" if k == 0 else b"q" + b"\0" * (k + 1),
    "texts that end in NUL": lambda k: "q" + "\0" * k,
    "bytes and texts": lambda k: f"{k // 2}" if k % 2 else f"{k // 2}".encode(),
    "dates": lambda k: date(2020, 1, 1 + k),
    "times": lambda k: pd.Timestamp(2020, 1, 1) + pd.Timedelta(k, "ns"),
    "uuids": lambda k: uuid.UUID(int=k),
    "booleans and texts": lambda k: [True, False, "True", "False"][k] if k < 4 else f"{k}",
    "frozen sets": lambda k: frozenset({k}),
    "all types": lambda k: (
        [7, "7", (7,), b"7", Decimal("7.5"), 7.25, date(2020, 1, 7)][k % 7] if k < 7 else k + 100
    ),
}
KINDS = {
    "list": list,
    "tuple": tuple,
    "array": lambda ids: objects(ids),
    "series": lambda ids: pd.Series(objects(ids)),
}
MISSING = {
    "None": [None],
    "NaN": [float("nan")],
    "NaT": [pd.NaT],
    "NA": [pd.NA],
    "NumPy's NaT": [np.datetime64("NaT")],
}


def objects(ids):
    found = np.empty(len(ids), dtype=object)
    found[:] = ids
    return found


def polars_series(ids):
    return pytest.importorskip("polars").Series(ids)


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def frame_by(ids):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y, "key": objects(list(ids))})


def of_learning_curve(ids):
    named = {"sizes": [2, 5], "cv": 3, "random_state": 0}
    return learning_curve(RankRLS(), X, Y, qid=ids, **named).scores


def of_importance(ids):
    found = query_permutation_importance(MODEL, X, Y, qid=ids, random_state=0)
    assert found.importances[-1] == pytest.approx(0)
    return found.importances


def of_compare(ids):
    scores = {"a": X[:, 0], "b": X[:, 1]}
    found = compare(Y, ids, scores, n_permutations=50, n_resamples=50)
    assert list(found.qid) == list(dict.fromkeys(ids))
    return np.array([found.values["ndcg@10"][name] for name in scores])


def of_folds(ids):
    return np.concatenate([test for _, test in QueryKFold(3).split(X, Y, qid=ids)])


def of_groups(ids):
    return np.concatenate([test for _, test in QueryKFold(3).split(X, Y, groups=ids)])


def of_batch(ids):
    frame = frame_by(ids)
    batch = fit_many(RankRLS(), frame, by="key", label="y")
    assert len(batch) == len(set(QUERY.tolist()))
    return batch.predict(frame, ids)


def of_batch_of_queries(ids):
    frame = frame_by(ids).assign(user=0)
    batch = fit_many(RankRLSCV(), frame, by="user", label="y", qid="key")
    return batch.models[0].scores_


def of_parity(ids):
    parity = export.check(export.to_python(MODEL, features=list("abcd")), MODEL, X, qid=ids)
    return np.array([parity.n_queries, parity.spread])


FUNCTIONS = {
    "fit": lambda ids: RankRLS().fit(X, Y, qid=ids).coef_,
    "search": lambda ids: RankRLSCV().fit(X, Y, qid=ids).scores_,
    "evaluate": lambda ids: evaluate("map", Y, X[:, 0], ids, per_query=True)["map"],
    "Pairgram": lambda ids: Pairgram.from_rows(X, Y, qid=ids).G,
    "weights": lambda ids: MODEL.weights(X, qid=ids)["weight"],
    "learning_curve": of_learning_curve,
    "query_permutation_importance": of_importance,
    "compare": of_compare,
    "QueryKFold": of_folds,
    "groups of QueryKFold": of_groups,
    "keys of fit_many": of_batch,
    "qid of fit_many": of_batch_of_queries,
    "export.check": of_parity,
}

OF_ARRAYS = sorted(name for name in FUNCTIONS if not name.endswith("of fit_many"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_names_of_queries_change_nothing(function, name):
    of_row = [NAMES[name](k) for k in QUERY.tolist()]
    assert len(set(of_row)) == len(set(QUERY.tolist()))
    expected = FUNCTIONS[function](QUERY)
    for kind in KINDS:
        np.testing.assert_array_equal(FUNCTIONS[function](KINDS[kind](of_row)), expected)


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_missing_ids_are_an_error(function, kind):
    of_row = [f"q{k}" for k in QUERY.tolist()]
    of_row[4:5] = MISSING[kind]
    for make in (list, objects, pd.Series):
        with pytest.raises(ValueError, match=r"must not be missing, got .* in row 4"):
            FUNCTIONS[function](make(of_row))


@pytest.mark.parametrize("function", OF_ARRAYS)
@pytest.mark.parametrize("frame", [polars_series, pa.array, lambda ids: pa.chunked_array([ids])])
def test_missing_ids_in_columns_of_arrow(function, frame):
    of_row = [2**60 + k for k in QUERY.tolist()]
    of_row[4] = None
    with pytest.raises(ValueError, match=r"must not be missing, got .* in row 4"):
        FUNCTIONS[function](frame(of_row))


def nullable_frame(columns):
    return pd.DataFrame(columns | {"q": pd.array(columns["q"], dtype="Int64")})


@pytest.mark.parametrize("frame", [polars_frame, pa.table, nullable_frame])
def test_ids_of_a_column_with_missing_ones_stay_apart(frame):
    """The user without missing ids has as many queries as before."""
    qid = [2**60 + k // 2 for k in range(20)]
    columns = {"x": np.arange(20.0) % 7, "y": np.arange(20.0) % 3, "user": [0] * 10 + [1] * 10}
    with pytest.warns(FitFailedWarning, match="qid must not be missing, got (None|<NA>) in row 15"):
        batch = fit_many(
            RankRLS(), frame(columns | {"q": [*qid[:15], None, *qid[16:]]}),
            by="user", label="y", qid="q",
        )  # fmt: skip
    assert batch.table["n_queries"][0] == 5


@pytest.mark.parametrize("frame", [polars_frame, lambda ids: polars_frame(ids).lazy(), pa.table])
def test_frames_are_no_ids(frame):
    for function in OF_ARRAYS:
        with pytest.raises(ValueError, match=r"must have shape \(\d+,\), one id per row, got \("):
            FUNCTIONS[function](frame({"qid": QUERY}))


def test_what_cannot_be_hashed_is_named():
    for function in OF_ARRAYS:
        with pytest.raises(TypeError, match=r"must be hashable, got set in row 0"):
            FUNCTIONS[function]([set() for _ in QUERY])


@pytest.mark.parametrize(
    "qrels",
    [
        {"qid": [1.0, 1.0, 2.0], "docno": [10.0, 11.0, 10.0], "label": [1, 0, 1]},
        {"qid": ["1", "1", "2"], "docno": ["10", "11", "10"], "label": [1, 0, 1]},
        {"qid": [1, 1, 2], "docno": [Decimal(10), Decimal(11), Decimal(10)], "label": [1, 0, 1]},
    ],
)
def test_runs_know_ids_by_their_texts(qrels):
    run = {"qid": [1, 1, 2], "docno": [10, 11, 10], "score": [2.0, 1.0, 1.0]}
    for make in (dict, pd.DataFrame, polars_frame):
        assert evaluate_run(make(qrels), make(run), "map") == {"map": 1.0}
    nested = {q: dict(zip(qrels["docno"][:2], (1, 0), strict=True)) for q in qrels["qid"][:1]}
    assert evaluate_run(nested, run, "map") == {"map": 1.0}


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            {"qid": ["1", None], "docno": ["a", "a"], "score": [1.0, 1.0]},
            "query ids of run must not be missing, got None in row 1",
        ),
        (
            pd.DataFrame({"qid": [1, np.nan], "docno": ["a", "a"], "score": [1.0, 1.0]}),
            "query ids of run must not be missing, got nan in row 1",
        ),
        (
            pd.DataFrame({"qid": [1, 1], "docno": ["a", np.nan], "score": [1.0, 1.0]}),
            "documents of run must not be missing, got nan in row 1",
        ),
        (
            {1: {"a": 1.0}, "1": {"a": 2.0}},
            "query ids of run must have different texts, got 1 and '1', which are different ids",
        ),
        (
            {"qid": [1, "1"], "docno": ["a", "b"], "score": [1.0, 1.0]},
            "query ids of run must have different texts, got 1 and '1'",
        ),
        (
            {1: {"10": 1.0, 10: 2.0}},
            "documents of query '1' of run must have different texts, got '10' and 10",
        ),
        ({1: {"a": 1.0}, None: {"a": 2.0}}, "query ids of run must not be missing, got None"),
    ],
)
def test_ids_that_runs_cannot_tell_apart(run, message):
    with pytest.raises(ValueError, match=message):
        evaluate_run({"1": {"a": 1}}, run, "map")


# What makes arrays, sets or numbers of ids, each in its own way.
READERS = {
    "array", "asanyarray", "asarray", "ascontiguousarray", "Categorical", "Counter", "factorize",
    "frozenset", "fromiter", "fromkeys", "groupby", "in1d", "isin", "lexsort", "require", "Series",
    "set", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
}  # fmt: skip
# What arguments, attributes and variables that hold the ids of rows are called.
OF_IDS = {"by", "groups", "ids", "keys", "q", "qid", "qids", "query_id", "query_ids"}
# Modules whose ids are no longer those of callers, and what they make of them.
AFTER_THE_DOOR = {
    "cli/scoring.py": {"set"},  # how many queries a run lacks, by the texts in files
    "least_squares/batch_fit.py": {"set"},  # that the keys in a file are different
    "tables/dask.py": {"factorize"},  # which rows stand together before they are read
}


def readings(tree):
    """Yield (line, function) where a function of `READERS` is given ids."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        if name not in READERS:
            continue
        given = [*node.args, *(one.value for one in node.keywords)]
        if isinstance(node.func, ast.Attribute):  # qid.unique(), but not np.unique
            given.append(node.func.value)
        if any(holds_ids(one) for one in given):
            yield node.lineno, name


def holds_ids(node):
    """Tell whether an expression is ids, or rows, entries or a conversion of ids."""
    if isinstance(node, ast.Name):
        return node.id in OF_IDS
    if isinstance(node, ast.Attribute):
        return node.attr in OF_IDS
    if isinstance(node, ast.Constant):
        return False
    if isinstance(node, ast.Subscript):  # frame["qid"], data[qid] or qid[rows]
        named = isinstance(node.slice, ast.Constant) and node.slice.value in OF_IDS
        return named or holds_ids(node.value) or holds_ids(node.slice)
    if isinstance(node, ast.Call):  # qid.tolist(), list(qid)
        parts = [*node.args, node.func.value if isinstance(node.func, ast.Attribute) else node.func]
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        converts = name in {"astype", "list", "tolist", "to_list", "to_numpy", "tuple"}
        return converts and any(map(holds_ids, parts))
    if isinstance(node, ast.IfExp):
        return holds_ids(node.body) or holds_ids(node.orelse)
    if isinstance(node, ast.Starred):
        return holds_ids(node.value)
    return False


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(SOURCE.rglob("*.py")) if path.parent.name != "queries_and_pairs"],
    ids=lambda path: path.relative_to(SOURCE).as_posix(),
)
def test_ids_are_read_by_queries_alone(path):
    found = list(readings(ast.parse(path.read_text())))
    excused = AFTER_THE_DOOR.get(path.relative_to(SOURCE).as_posix(), set())
    wrong = [(line, name) for line, name in found if name not in excused]
    assert wrong == [], "ids are for Queries.make, as_ids or id_texts of queries_and_pairs"
    assert excused <= {name for _, name in found}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("np.unique(qid, return_inverse=True)", "unique"),
        ("np.unique(np.asarray(qid))", "asarray"),
        ("set(data.qid.tolist())", "set"),
        ("dict.fromkeys(qid if isinstance(qid, list) else x)", "fromkeys"),
        ("part[qid].factorize()", "factorize"),
        ("pd.factorize(frame['qid'])", "factorize"),
        ("frame.groupby(by)", "groupby"),
        ("numpy.asarray(a=keys)", "asarray"),
        ("np.unique(list(groups))", "unique"),
    ],
)
def test_other_ways_to_read_ids_are_found(code, name):
    assert name in {found for _, found in readings(ast.parse(code))}
    assert not list(readings(ast.parse(code.replace("np.", "Queries.make").replace(name, "make"))))
