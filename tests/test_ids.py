"""Ids of queries are read in one place, so that they are the same queries for every function.

That names of queries change nothing is told in ``roads/test_renamed_ids.py``.
"""

import ast
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pairgram
from axes import every
from pairgram import RankRLS, evaluate_run, fit_many
from test_layers import nodes_of

SOURCE = Path(pairgram.__file__).parent


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def nullable_frame(columns):
    return pd.DataFrame(columns | {"q": pd.array(columns["q"], dtype="Int64")})


@pytest.mark.parametrize("frame", [polars_frame, pa.table, nullable_frame])
def test_ids_of_a_column_with_missing_ones_stay_apart(frame):
    qid = [2**60 + k // 2 for k in range(20)]
    columns = {"x": np.arange(20.0) % 7, "y": np.arange(20.0) % 3, "user": [0] * 10 + [1] * 10}
    missing = frame(columns | {"q": [*qid[:15], None, *qid[16:]]})
    with pytest.raises(ValueError, match=r"qid must not be missing, got (None|<NA>) in row 15"):
        fit_many(RankRLS(), missing, "y", by="user", qid="q")
    found = fit_many(RankRLS(), frame(columns | {"q": qid}), "y", by="user", qid="q")
    X, y, own = (np.array(values)[:10] for values in (columns["x"][:, None], columns["y"], qid))
    assert (found[0].coef_ == RankRLS().fit(X, y, qid=own).coef_).all()


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


# What makes arrays, sets or numbers of ids, each in its own way.
READERS = {
    "array", "asanyarray", "asarray", "ascontiguousarray", "Categorical", "Counter", "factorize",
    "frozenset", "fromiter", "fromkeys", "groupby", "in1d", "isin", "lexsort", "require", "Series",
    "set", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
}  # fmt: skip
# What arguments, attributes and variables that hold the ids of rows are called.
OF_IDS = {"by", "groups", "ids", "keys", "q", "qid", "qids", "query_id", "query_ids"}
# Modules whose ids are no longer those of callers, and what they make of them.
DOOR = (SOURCE / "data" / "queries.py", SOURCE / "data" / "hashed_ids.py")
AFTER_THE_DOOR = {
    # That the keys in a file are different, and the keys to save, which are numbers of 64 bits.
    "rankers/batch_fit.py": {"set", "array"},
}


def readings(nodes):
    """Yield (line, function) where a function of `READERS` is given ids."""
    for node in nodes:
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


@every(path=[path for path in sorted(SOURCE.rglob("*.py")) if path not in DOOR])
def test_ids_are_read_by_queries_alone(path):
    found = list(readings(nodes_of(path)))
    excused = AFTER_THE_DOOR.get(path.relative_to(SOURCE).as_posix(), set())
    wrong = [(line, name) for line, name in found if name not in excused]
    assert wrong == [], "ids are for Queries.make, as_ids or id_texts of data.queries"
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
    assert name in {found for _, found in readings(ast.walk(ast.parse(code)))}
    code = code.replace("np.", "Queries.make").replace(name, "make")
    assert not list(readings(ast.walk(ast.parse(code))))
