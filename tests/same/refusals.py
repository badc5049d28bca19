"""The messages of errors and warnings that the documentation states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import scipy.sparse

from .data import frame_of, rows_of
from .fits import Configuration
from .public import Public, pg
from .results import attempt

ROWS = rows_of("tall")
X, Y, QID = ROWS.X, ROWS.y, ROWS.query
FRAME = frame_of("pandas", X, ROWS.names)
Case = Callable[[Path], Any]


def _fit(**named: Any) -> Case:
    """Return a case that fits `RankRLS` with other arguments of ``fit``."""
    return lambda folder: pg.RankRLS().fit(**{"X": X, "y": Y, "qid": QID} | named)


def _with(make: str, fit: dict[str, Any] | None = None, **settings: Any) -> Case:
    """Return a case that fits an estimator with such settings."""
    arguments = {"X": X, "y": Y, "qid": QID} | (fit or {})
    return lambda folder: getattr(pg, make)(**settings).fit(**arguments)


def _changed(array: np.ndarray, value: Any) -> np.ndarray:
    changed = array.astype(float)
    changed.flat[3] = value
    return changed


def _linear(**named: Any) -> Any:
    return pg.RankRLS(**named).fit(FRAME, Y, qid=QID)


def _table(folder: Path, **named: Any) -> Any:
    frame = pandas.DataFrame(ROWS.columns(weighted=True))
    frame.to_parquet(folder / "rows.parquet")
    return pg.scan(folder / "rows.parquet", **{"label": "label", "qid": "query"} | named)


def _broken_file(folder: Path, change: Callable[[bytes], bytes]) -> Any:
    _linear().save(folder / "model")
    (folder / "model").write_bytes(change((folder / "model").read_bytes()))
    return pg.load_model(folder / "model")


def _text(folder: Path, name: str, text: str, read: Callable[[Path], Any]) -> Any:
    (folder / name).write_text(text)
    return read(folder / name)


def _changed_table(folder: Path) -> Any:
    table = _table(folder)
    pandas.DataFrame(ROWS.taken(slice(0, 40)).columns(weighted=True)).to_parquet(
        folder / "rows.parquet"
    )
    return pg.RankRLS().fit(table)


def _subtracted_twice(folder: Path) -> Any:
    total = pg.Pairgram.from_rows(X, Y, qid=QID)
    part = pg.Pairgram.from_rows(X[QID == 4], Y[QID == 4], qid=QID[QID == 4])
    return total - part - part


_TIMES = pandas.date_range("2026-01-01", periods=len(Y), unit="ns")
_INDICES = scipy.sparse.csr_matrix(X)
_INDICES.indices[5] = 10_000

CASES: dict[str, Case] = {
    # rows
    "NaN in X": _fit(X=_changed(X, np.nan)),
    "infinity in X": _fit(X=_changed(X, np.inf)),
    "X of one dimension": _fit(X=X[:, 0]),
    "a series as X": _fit(X=FRAME["f0"]),
    "no rows": _fit(X=X[:0], y=Y[:0], qid=QID[:0]),
    "no columns": _fit(X=X[:, :0]),
    "other lengths of X and y": _fit(y=Y[1:]),
    "y of two dimensions": _fit(y=np.column_stack([Y, Y])),
    "NaN in y": _fit(y=_changed(Y, np.nan)),
    "text in y": _fit(y=np.array(["a"] * len(Y))),
    "no y": _fit(y=None),
    "complex X": _fit(X=X.astype(complex)),
    "text in X": _fit(X=X.astype(str)),
    "objects in X": _fit(X=np.array([[{}] * 2] * len(Y))),
    "times in a frame of pandas": _fit(X=FRAME.assign(f2=_TIMES)),
    "times in a frame of polars": _fit(X=polars.DataFrame({"a": X[:, 0], "b": _TIMES.to_numpy()})),
    "times in a table of pyarrow": _fit(
        X=pyarrow.table({"a": X[:, 0], "b": pyarrow.array(_TIMES)})
    ),
    "text in a frame": _fit(X=FRAME.assign(f2="a")),
    "numerals in a frame": _fit(X=FRAME.assign(f2="1")),
    "lists in a frame": _fit(X=polars.DataFrame({"a": [[1.0]] * len(Y)})),
    "categories in a frame": _fit(X=FRAME.assign(f2=pandas.Categorical(["a"] * len(Y)))),
    "repeated names": _fit(X=pandas.DataFrame(X, columns=["a"] * X.shape[1])),
    "a lazy frame": _fit(X=polars.DataFrame(X).lazy()),
    "wrong indices of CSR": _fit(X=_INDICES),
    # queries and weights
    "other lengths of qid": _fit(qid=QID[1:]),
    "a missing id": _fit(qid=np.where(QID == 3, np.nan, QID)),
    "an id None": _fit(qid=[None, *QID[1:]]),
    "ids that are lists": _fit(qid=[[1]] * len(Y)),
    "a frame as qid": _fit(qid=FRAME),
    "qid and group": _fit(group=ROWS.sizes),
    "sizes of other rows": _fit(qid=None, group=ROWS.sizes[1:]),
    "a negative weight": _fit(sample_weight=_changed(ROWS.weight, -1.0)),
    "weights of 0 alone": _fit(sample_weight=np.zeros(len(Y))),
    "weights that differ in a query": _fit(query_weight=ROWS.weight),
    "no pairs": _fit(qid=np.arange(len(Y))),
    "labels all alike": _fit(y=np.ones(len(Y))),
    "a short offset": _fit(offset=Y[1:]),
    "an unknown argument": _fit(weight=Y),
    "no ids in 1,200 rows": _fit(X=np.tile(X, (12, 1))[:1200], y=np.tile(Y, 12)[:1200], qid=None),
    # settings
    "a negative alpha": _with("RankRLS", alpha=-1.0),
    "alpha of text": _with("RankRLS", alpha="1"),
    "unknown pairs": _with("RankRLS", pairs="all"),
    "unknown scope": _with("RankRLS", scope="all"),
    "unknown weighting": _with("RankRLS", weighting="query"),
    "unknown target": _with("RankRLS", target="labels"),
    "unknown inputs": _with("RankRLS", inputs="standrad"),
    "unknown kernel": _with("RankRLS", kernel="gaussian"),
    "unknown form": _with("RankRLS", form="duel"),
    "map and kernel": _with("RankRLS", kernel="rbf", feature_map=pg.RandomNodes(3)),
    "primal form of a kernel": _with("RankRLS", kernel="rbf", form="primal"),
    "gamma below 0": _with("RankRLS", kernel="rbf", gamma=-1.0),
    "positive column that is missing": _with("RankRLS", {"X": FRAME}, positive=["f00"]),
    "l1_ratio above 1": _with("RankRLS", l1_ratio=1.5),
    "positive with a kernel": _with("RankRLS", positive=True, kernel="rbf"),
    "few columns and l1_ratio": _with("RankRLS", n_nonzero_coefs=2, l1_ratio=0.5),
    "prior of another length": _with("RankRLS", prior=np.ones(3)),
    "prior that is not fitted": _with("RankRLS", prior=pg.RankRLS()),
    "no alphas": _with("RankRLSCV", alphas=[]),
    "unknown scoring": _with("RankRLSCV", scoring="ndgc@10"),
    "unknown cv": _with("RankRLSCV", cv="leave-one-out"),
    "a single fold": _with("RankRLSCV", cv=1),
    "more folds than queries": _with("RankRLSCV", cv=1000),
    "leave-pair-out of queries": _with("RankRLSCV", cv="leave-pair-out"),
    "cv and validation": _with("RankRLSCV", {"validation": (X, Y, QID)}, cv=3),
    "validation of other columns": _with("RankRLSCV", {"validation": (X[:, 1:], Y, QID)}),
    "two evaluation sets": _with("RankRLSCV", {"eval_set": [(X, Y), (X, Y)]}),
    "C of 0": _with("RankSVM", C=0.0),
    "unknown loss": _with("RankSVM", loss="hinge"),
    "too few Newton steps": _with("RankSVM", max_iter=1, tol=1e-12),
    "unknown activation": _with("PairwiseELM", activation="sigmoidal"),
    "no nodes": _with("PairwiseELM", n_nodes=0),
    "Gaussian nodes of negative biases": _with("ELMRank", activation="gaussian"),
    "threads below 1": _with("RankRLS", n_threads=0),
    "an unknown parameter": lambda folder: pg.RankRLS(ridge=1.0),
    "CSR with scaled inputs": _with("RankRLS", {"X": scipy.sparse.csr_matrix(X)}, inputs="minmax"),
    # models
    "not fitted": lambda folder: pg.RankRLS().predict(X),
    "predict of fewer columns": lambda folder: _linear().predict(X[:, 1:]),
    "predict of other names": lambda folder: _linear().predict(FRAME.rename(columns={"f0": "g"})),
    "predict of another order": lambda folder: _linear().predict(FRAME[FRAME.columns[::-1]]),
    "predict of NaN": lambda folder: _linear().predict(_changed(X, np.nan)),
    "predict without offsets": lambda folder: _fit(offset=Y)(folder).predict(X),
    "weights of a kernel": lambda folder: Public(_linear(kernel="rbf")).column_weights(),
    "scorer of a vector": lambda folder: Public(_linear()).row_scorer()(X[0]),
    "score of negative labels": lambda folder: _linear().score(X, Y - 2, qid=QID),
    "a file that is cut": lambda folder: _broken_file(folder, lambda data: data[:-5]),
    "a file of text": lambda folder: _text(folder, "text", "hello", pg.load_model),
    "a file that is missing": lambda folder: pg.load_model(folder / "nothing"),
    "a map that a file cannot hold": lambda folder: (
        pg.RankRLS(pairs=lambda a, b: np.abs(a - b), kernel=lambda x, z: x @ z.T)
        .fit(X, Y, qid=QID)
        .save(folder / "model")
    ),
    # tables
    "kernel of a table": lambda folder: pg.RankRLS(kernel="rbf").fit(_table(folder)),
    "ELMRank of a table": lambda folder: pg.ELMRank().fit(_table(folder)),
    "ELMRankCV of a table": lambda folder: pg.ELMRankCV().fit(_table(folder)),
    "AutoRanker of a table": lambda folder: pg.AutoRanker().fit(_table(folder)),
    "RankSVMCV of a table": lambda folder: pg.RankSVMCV().fit(_table(folder)),
    "held-out scores of a table": lambda folder: pg.RankRLSCV().fit(_table(folder)),
    "table and y": lambda folder: pg.RankRLS().fit(_table(folder), Y),
    "a column that is missing": lambda folder: _table(folder, label="lable"),
    "qid that is the label": lambda folder: pg.RankRLS().fit(_table(folder, qid="label")),
    "unknown missing": lambda folder: _table(folder, missing="most"),
    "a changed file": _changed_table,
    "files that are missing": lambda folder: pg.scan(str(folder / "*.parquet"), label="label"),
    "scan of a number": lambda folder: pg.scan(7, label="label"),
    "queries that are cut": lambda folder: pg.RankRLS().fit(
        pg.scan(lambda: [(X, Y, QID), (X, Y, QID)])
    ),
    "times of a table": lambda folder: pg.RankRLS().fit(
        pg.scan(FRAME.assign(f2=_TIMES, label=Y, query=QID), label="label", qid="query")
    ),
    "NaN of a table": lambda folder: pg.RankRLS().fit(
        pg.scan(lambda: [(_changed(X, np.nan), Y, QID)])
    ),
    "text ids and numbers in CSV": lambda folder: pg.RankRLS().fit(
        _text(
            folder,
            "rows.csv",
            "label,query,a\n1,1,0.5\n0,1,0.25\n1,x,3\n0,x,4\n",
            lambda path: pg.scan(path, label="label", qid="query"),
        )
    ),
    "empty ids in CSV": lambda folder: pg.RankRLS().fit(
        _text(
            folder,
            "rows.csv",
            "label,query,a\n1,u,0.5\n0,u,0.25\n1,,3\n0,,4\n",
            lambda path: pg.scan(path, label="label", qid="query"),
        )
    ),
    # many models
    "one problem": lambda folder: pg.fit_many(pg.RankRLS(), (X, Y)),
    "no problems": lambda folder: pg.fit_many(pg.RankRLS(), []),
    "a key that is missing": lambda folder: pg.fit_many(
        pg.RankRLS(),
        pandas.DataFrame({"k": [None, "a"], "y": [0, 1], "a": [1, 2]}),
        by="k",
        label="y",
    ),
    "by without a label": lambda folder: pg.fit_many(pg.RankRLS(), FRAME, by="f0"),
    "targets of weighted pairs": lambda folder: pg.fit_many(
        pg.RankRLS(pairs="gain_difference"), [(X, np.column_stack([Y, Y]), QID)], on_error="raise"
    ),
    "all problems fail": lambda folder: pg.fit_many(pg.RankRLS(), [(X, _changed(Y, np.nan), QID)]),
    "keys of another kind": lambda folder: pg.fit_many(
        pg.RankRLS(), FRAME.assign(k=QID % 3, y=Y), by="k", label="y", fallback=0.0
    ).predict(FRAME, ["0"] * len(Y)),
    # statistics
    "a query twice": lambda folder: (
        pg.Pairgram.from_rows(X, Y, qid=QID) + pg.Pairgram.from_rows(X, Y, qid=QID)
    ),
    "a query that is not there": _subtracted_twice,
    "statistics of other settings": lambda folder: (
        pg.Pairgram.from_rows(X, Y, qid=QID)
        + pg.Pairgram.from_rows(X, Y, qid=QID + 100, pairs="gain_difference")
    ),
    "statistics of other columns": lambda folder: (
        pg.Pairgram.from_rows(X, Y, qid=QID) + pg.Pairgram.from_rows(X[:, 1:], Y, qid=QID + 100)
    ),
    "bytes that are cut": lambda folder: pg.Pairgram.from_bytes(
        pg.Pairgram.from_rows(X, Y, qid=QID).to_bytes()[:-3]
    ),
    "empty statistics": lambda folder: pg.Pairgram().solve(1.0),
    # metrics
    "an unknown metric": lambda folder: pg.evaluate("ndgc", Y, Y),
    "an option that a metric lacks": lambda folder: pg.get_metric("kendall", gain="exp2"),
    "an unknown convention": lambda folder: pg.get_metric("map", "trec_eval"),
    "scores of another length": lambda folder: pg.evaluate("map", Y, Y[1:]),
    "negative labels": lambda folder: pg.evaluate("ndcg", Y - 2, Y, QID),
    "arguments in another order": lambda folder: pg.evaluate(Y, Y, "map"),
    "one system": lambda folder: pg.compare(Y, QID, {"a": Y}),
    "a document twice": lambda folder: pg.evaluate_run(
        {"qid": ["1", "1"], "docno": ["a", "a"], "label": [0, 1]}, {"1": {"a": 1.0}}
    ),
    "a run without a score": lambda folder: _text(folder, "r", "1 Q0 a 1 x t\n", pg.read_run),
    "judgements of three fields": lambda folder: _text(folder, "q", "1 0 a\n", pg.read_qrels),
    "blanks in an id": lambda folder: pg.write_run(folder / "r", ["a b"], ["d"], [1.0]),
    # LETOR
    "LETOR with NaN": lambda folder: _text(folder, "l", "1 qid:1 1:nan\n", pg.load_letor),
    "LETOR that does not increase": lambda folder: _text(
        folder, "l", "1 qid:1 2:1 1:1\n", pg.load_letor
    ),
    "LETOR with some ids": lambda folder: _text(folder, "l", "1 qid:1 1:1\n1 1:1\n", pg.load_letor),
    "an empty LETOR file": lambda folder: _text(folder, "l", "\n", pg.load_letor),
    "LETOR ids with blanks": lambda folder: pg.dump_letor(
        folder / "l", X, Y, [f"a {k}" for k in QID]
    ),
    # the rest
    "kernel for Solr": lambda folder: pg.export.to_solr(_linear(kernel="rbf"), "m"),
    "another number of names": lambda folder: pg.export.to_sql(_linear(), features=["a"]),
    "no rank feature": lambda folder: pg.export.to_vespa(
        _linear(), "m", features=[f"a b{j}" for j in range(6)]
    ),
    "unknown dialect": lambda folder: pg.export.to_sql(_linear(), dialect="oracle"),
    "check of text": lambda folder: pg.export.verify("hello", _linear(), X, QID),
    "folds without ids": lambda folder: list(pg.QueryKFold(3).split(X)),
    "more folds than ids": lambda folder: list(pg.QueryKFold(300).split(X, qid=QID)),
    "rows of precomputed kernels": _with("RankRLS", kernel="precomputed"),
    "kernel matrix with NaN": lambda folder: pg.kernel_matrix(_changed(X, np.nan)),
    "no queries to make": lambda folder: pg.make_ranking(0),
}


def _refusal(case: Case, folder: Path) -> Any:
    """Return the error, or that there was none: what is made is in other configurations."""
    outcome = attempt(lambda: case(folder))
    return outcome if isinstance(outcome, str) else "no error"


def configurations() -> Iterator[tuple[str, Configuration]]:
    """Yield the name of every configuration, and what runs it."""
    for name, case in CASES.items():
        yield f"refusals/{name}", partial(_refusal, case)
