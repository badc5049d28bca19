"""Renaming the ids of queries, to any ids of any types, changes nothing in any public function.

And no id may be missing.
"""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from query_ids import MISSING, RENAMINGS
from sklearn.linear_model import LinearRegression

from pairgram import (
    AutoRanker,
    ELMRankCV,
    Pairgram,
    QueryKFold,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    compare,
    evaluate,
    evaluate_run,
    export,
    fit_many,
    get_metric,
    learning_curve,
    make_ranking,
    make_scorer,
    query_permutation_importance,
    scan,
)

X, y, QUERY = make_ranking(16, (2, 6), 3, random_state=3)
# A column that only tells queries apart.
X = np.column_stack([X, QUERY])
VALIDATION = X[:30] + 0.1, y[:30]
MODEL = RankRLS().fit(X, y, qid=QUERY)


def _searched(model: Any) -> Any:
    return model.scores_, model.coef_, model.held_out_, model.best_score_


def _validated(ids: Any) -> Any:
    model = RankRLSCV().fit(X, y, qid=ids, validation=(*VALIDATION, ids[:30]))
    return model.scores_, model.coef_


def _merged(ids: Any) -> Any:
    half = int(np.flatnonzero(QUERY == QUERY[len(QUERY) // 2])[0])
    parts = [
        Pairgram.from_rows(X[rows], y[rows], qid=ids[rows])
        for rows in (slice(None, half), slice(half, None))
    ]
    return (parts[0] + parts[1]).G, (parts[0] + parts[1] - parts[1]).g


def _curve(estimator: Any) -> Callable[[Any], Any]:
    return lambda ids: learning_curve(estimator, X, y, qid=ids, sizes=[4, 8], random_state=0).scores


def _frame(columns: dict[str, Any]) -> pandas.DataFrame:
    """Return a frame of the features and columns that hold what they are given, tuples as well."""
    frame = pandas.DataFrame({f"f{j}": column for j, column in enumerate(X.T)} | {"label": y})
    for name, ids in columns.items():
        listed = ids.to_pylist() if isinstance(ids, pyarrow.Array) else list(ids)
        frame[name] = pandas.Series(listed, dtype=object)
    return frame


def _batch(ids: Any) -> Any:
    batch = fit_many(RankRLS(), _frame({"user": ids}), by="user", label="label")
    keys = ids.to_pylist() if isinstance(ids, pyarrow.Array) else ids
    return batch.coef_, batch.predict(X, keys)


def _inside(ids: Any) -> Any:
    frame = _frame({"user": np.arange(len(y)) // 20, "query": ids})
    batch = fit_many(
        RankRLS(), frame, by="user", label="label", qid="query", on_error="raise"
    )
    return batch.coef_


def _parity(ids: Any) -> Any:
    found = export.check(export.to_solr(MODEL, "m", features=["a", "b", "c", "d"]), MODEL, X, ids)
    return found.spread, found.n_queries, found.n_close


def _run(ids: Any) -> Any:
    frame = _frame({"qid": ids}).assign(docno=[f"d{row}" for row in range(len(y))])
    run = frame.assign(score=MODEL.predict(X)).drop(columns="label")
    found = evaluate_run(frame, run, ["map", "ndcg@3"], per_query=True)
    return found["map"], found["ndcg@3"]


def _compared(ids: Any) -> Any:
    systems = {"a": MODEL.predict(X), "b": X[:, 0]}
    found = compare(y, ids, systems, ["ndcg@3", "map"], n_permutations=200, n_resamples=50)
    return [found.differences[name] for name in ("difference", "p", "p_t", "wins", "ties")]


def _folds(splitter: Any) -> Callable[[Any], Any]:
    return lambda ids: [np.sort(test) for _, test in splitter.split(X, y, groups=ids)]


def _weighted(ids: Any) -> Any:
    weights = 1.0 + QUERY % 3
    return RankRLS().fit(X, y, qid=ids, query_weight=weights).coef_


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "RankRLS.fit": lambda ids: RankRLS().fit(X, y, qid=ids).coef_,
    "RankRLS.fit of weighted queries": _weighted,
    "RankRLSCV.fit": lambda ids: _searched(RankRLSCV(store_held_out=True).fit(X, y, qid=ids)),
    "RankRLSCV.fit in folds": lambda ids: _searched(
        RankRLSCV(cv=3, store_held_out=True).fit(X, y, qid=ids)
    ),
    "RankRLSCV.fit with a validation set": _validated,
    "RankSVM.fit": lambda ids: RankSVM().fit(X, y, qid=ids).coef_,
    "RankSVMCV.fit": lambda ids: RankSVMCV(cv=2).fit(X, y, qid=ids).scores_,
    "ELMRankCV.fit": lambda ids: (
        ELMRankCV(n_nodes=5, cv=2, random_state=0, scope="query").fit(X, y, qid=ids).scores_
    ),
    "AutoRanker.fit": lambda ids: (
        AutoRanker(budget=1e-6).fit(X, y, qid=ids).trials_["score"]
    ),
    "score": lambda ids: MODEL.score(X, y, qid=ids),
    "weights": lambda ids: list(MODEL.weights(X, qid=ids).values())[1:],
    "scorer of scikit-learn": lambda ids: make_scorer("map")(MODEL, X, y, qid=ids),
    "Pairgram": _merged,
    "evaluate": lambda ids: evaluate(["ndcg@3", "auc"], y, X[:, 0], ids, per_query=True),
    "Metric": lambda ids: get_metric("map")(y, X[:, 0], ids),
    "compare": _compared,
    "learning_curve of statistics": _curve(RankRLS()),
    "learning_curve of fits": _curve(RankRLSCV()),
    "query_permutation_importance": lambda ids: query_permutation_importance(
        MODEL, X, y, qid=ids, random_state=0
    ).importances,
    "query_permutation_importance of other models": lambda ids: query_permutation_importance(
        LinearRegression().fit(X, y), X, y, qid=ids, random_state=0
    ).importances,
    "QueryKFold": _folds(QueryKFold(4)),
    "QueryKFold shuffled": _folds(QueryKFold(4, shuffle=True, random_state=1)),
    "fit_many by keys": _batch,
    "fit_many of queries": _inside,
    "fit_many": lambda ids: fit_many(RankRLSCV(), [(X, y, ids)]).models[0].scores_,
    "export.check": _parity,
    "evaluate_run": _run,
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


@pytest.mark.parametrize("renaming", RENAMINGS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_renaming_ids_changes_nothing(name, renaming):
    try:
        renamed = _called(name, RENAMINGS[renaming](QUERY))
    except ValueError as error:
        # Statistics do not mix numbers with text that reads as numbers, and runs know texts alone.
        refused = {"Pairgram": "one side has query ids", "evaluate_run": "must have different texts"}
        assert re.search(refused.get(name, "^$"), str(error))
        return
    for found, wanted in zip(renamed, _called(name, QUERY), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_missing_ids_are_refused(name, missing):
    ids = np.empty(len(QUERY), dtype=object)
    ids[:] = QUERY
    ids[20] = MISSING[missing]
    with pytest.raises(ValueError, match=r"missing.* in row 20|row 20.*missing"):
        _called(name, ids)


# Tables hold ids of the types of Arrow.
IN_TABLES = ("uint64", "int8", "text", "array of text", "numerals", "text that ends with a null")
TIMES = ("dates", "times of numpy", "datetimes", "neighbours above 2**53")


@pytest.mark.parametrize("renaming", (*IN_TABLES, *TIMES, "text of other scripts"))
def test_renaming_ids_of_tables_changes_nothing(renaming):
    def of(ids):
        columns = {f"f{j}": column for j, column in enumerate(X.T)}
        table = pyarrow.table(columns | {"label": y, "query": pyarrow.array(ids)})
        scanned = scan(table, label="label", qid="query", group_queries=True)
        model = RankRLSCV().fit(scanned)
        return model.scores_, model.coef_, *evaluate(["ndcg@3"], scanned, model).values()

    for found, wanted in zip(of(RENAMINGS[renaming](QUERY)), of(QUERY), strict=True):
        np.testing.assert_array_equal(found, wanted)
