# ruff: noqa: F401, F403, F405
"""The names that calls of the tables see: public names, and small values to call them with."""

import datetime
import gzip
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from numpy import inf, nan
from safetensors.numpy import save as safetensors_of
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

import pairgram
from pairgram import *
from pairgram import _core, clicks, export, make_ranking, plots, trees
from pairgram.metrics import Metric
from table_sources import scanned

X, y, qid = make_ranking(6, 5, 3, random_state=0)
frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y, query=qid)
arrow = pa.Table.from_pandas(frame)
model = RankRLS().fit(frame[["a", "b", "c"]], y, qid=qid)
sizes = pd.DataFrame({"size": ["S", "M"] * 15, "price": X[:, 0]})
to_numbers = make_column_transformer((OneHotEncoder(), ["size"]), remainder="passthrough")
text_model = make_pipeline(to_numbers, RankRLS()).fit(sizes, y, rankrls__qid=qid)
plain = RankRLS().fit(X, y, qid=qid)
curved = RankRLS(feature_map=Kernel("rbf")).fit(X, y, qid=qid)
fused = RankRLS().fit(within_lists(X, qid, "runs"), y, qid=qid)
two_runs = frame[["a", "b", "c", "label"]].rename(columns={"a": "a scaled", "b": "b scaled"})
sure = posterior(plain, X, y, qid=qid)
batch = fit_many(RankRLS(), frame, "label", by="query")
crossed = RankRLS(feature_map=Cross([0], [1, 2])).fit(X, y, qid=qid)
scorer = row_scorer(make_pipeline(StandardScaler(), RankRLS()).fit(frame[["a", "b", "c"]], y))
total = Pairgram.from_rows(X, y, qid=qid)
clicked, propensity = (y > 1) * 1.0, np.tile([1.0, 0.8, 0.6, 0.5, 0.4], 6)
people, things = X[:4, :1], X[:5, 1:]
votes = Preferences([0, 1, 2, 0], [1, 2, 3, 3])
qrels = {"q": {"a": 1, "b": 0}}
runs = {"a": {"q": {"a": 2.0, "b": 1.0}}, "b": {"q": {"a": 1.0, "b": 2.0}}}
problem = _core.RankingProblem(
    np.arange(6) % 3.0, np.array([0, 6]), pairs="kept", weighting="pairs"
)


def fit(estimator, X=X, y=y, qid=qid, **named):
    """Return the model of these rows."""
    return estimator.fit(X, y, qid=qid, **named)


def table(source=frame, **named):
    """Return a table of these rows, with the label and the ids of `frame`."""
    return scan(source, **{"label": "label", "qid": "query"} | named)


def batches(*batches, **named):
    """Return a table of a function that yields these batches."""
    return scan(lambda: iter(batches), **named)


def put(values, place, value):
    """Return a copy with one value at a place."""
    values = np.array(values, dtype=object if isinstance(value, str) else None)
    values[place] = value
    return values


def mask(values):
    """Mask the entries of row 7, in all columns but the first."""
    where = np.zeros(np.shape(values), dtype=bool)
    where[7 if where.ndim == 1 else (7, slice(1, None))] = True
    return np.ma.array(values, mask=where)


def broken(make=sp.csr_array, **parts):
    """Return a sparse matrix of ones, 50 x 5, with one wrong number in a part."""
    matrix = make(np.ones((50, 5)))
    for name, (place, value) in parts.items():
        (matrix.coords[1] if name == "columns" else getattr(matrix, name))[place] = value
    return matrix


def mapped(function):
    """Fit a model whose feature map is this function."""
    RankRLS(feature_map=FunctionTransformer(function)).fit(X, y, qid=qid)


FOLDER = tempfile.TemporaryDirectory()


def file(data, name="file.txt"):
    """Return the path of a file with this text, or these bytes."""
    path = Path(FOLDER.name) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def ranking(labels=(0.0, 1.0, 2.0, 0.0, 1.0, 2.0), offsets=(0, 6), **named):
    """Return the compiled problem of six rows, with the pairs of RankSVM."""
    named = {"pairs": "dropped", "weighting": "pairs"} | named
    return _core.RankingProblem(np.array(labels), np.array(offsets), **named)


def in_lists(offsets):
    """Return the operator of six rows in these lists."""
    return _core.PairOperator(ranking(offsets=offsets))


def of_weights(width=2, rows=6, offset=None):
    """Return the loss of six rows in a list, by the weights of their features."""
    features = _core.dense_features(1e2 * np.arange(rows * width, dtype=float).reshape(rows, -1))
    offset = np.zeros(6) if offset is None else offset
    return _core.loss_of_rows(features, in_lists([0, 6]), offset)


def solve_svm(curvature, Cs=(1.0,), constant=()):
    """Minimise the objective of RankSVM for six rows of two features."""
    losses = [(of_weights(), np.array(constant, np.int64))]
    settings = {"steepness": 1.0, "tol": 1e-3, "max_iter": 100, "n_threads": 1}
    return _core.solve_svm(losses, curvature, np.array(Cs), **settings)


def sparse_pairs(*problems, indptr=range(7), indices=(0, 1, 2, 0, 1, 2), n_columns=3):
    """Return the systems of six sparse rows of one entry each."""
    arrays = np.array(indptr, np.int64), np.array(indices, np.int32), np.ones(6)
    return _core.sparse_pairs(*arrays, n_columns, list(problems or [ranking()]))


def node_map(**changes):
    """Return compiled nodes of three columns."""
    return _core.NodeMap64(np.ones((3, 4)), np.ones(4), None, [(0, 4, "linear")], **changes)


def count_varying(offsets, indices, n_counts):
    """Count in a CSR matrix of three entries, of which these are the parts."""
    parts = (np.array(offsets), np.array(indices, np.int32), np.ones(3))
    counts, bounds = np.zeros(n_counts, np.int64), np.array([0, 3])
    _core.count_varying(*parts, counts, bounds, counted=np.ones(1, bool), pointwise=False)


def solr_log(features):
    """Return what Solr logged of one document."""
    return [{"qid": 1, "response": {"docs": [{"id": "a", "[features]": features}]}}]


def plugin_log(features, **others):
    """Return what the plugin of OpenSearch logged of one document."""
    hit = {"_id": "a", "fields": {"_ltrlog": [{"main": features, **others}]}}
    return [{"qid": 1, "hits": {"hits": [hit]}}]


def saved(model=model, name="model"):
    """Return the path of the file of a model."""
    path = Path(FOLDER.name) / name
    save_model(model, path)
    return path


rows = file("".join(f"{i % 3} qid:{i // 5} 1:{i} 2:{i * i % 5}\n" for i in range(12)), "rows.txt")
csv = file(frame.to_csv(index=False), "rows.csv")
out = Path(FOLDER.name) / "out"


def shell(*arguments):
    """Run a command of the shell; what it prints when it fails is the error."""
    from parts.cli import invoke

    result = invoke(*arguments)
    if result.exit_code:
        assert result.exit_code == 2 and not result.stdout
        raise ValueError(result.stderr.splitlines()[-1].removeprefix("pairgram: error: "))


def train(*options, rows=rows):
    """Run the command that trains a model."""
    shell("train", rows, "-o", out, *options)


def evaluate_scores(scores):
    """Run the command that evaluates a file with this text."""
    shell("evaluate", rows, "--scores", file(scores, "scores"))


N = 10
METRIC = ("ndcg", 5, "exp2", "log2", "order", 0.0, 1.0, 1.0, "relevant", 0.0)
OF_PROBLEMS = ("labels", "offsets", "order", "row_weights", "query_weights", "pairs", "weighting")
OF_PROBLEMS += ("level_values", "omega")


def call(name, **changes):
    """Call compiled code with arguments that fit each other, but for the changes."""
    rng = np.random.default_rng(0)
    labels = np.arange(N) % 3.0
    arguments = {"labels": labels, "offsets": np.array([0, 4, N])}
    if name == "evaluate_metrics":
        arguments |= {"scores": rng.normal(size=(2, N)), "order": None}
        arguments |= {"specs": [METRIC], "n_threads": 1}
        return _core.evaluate_metrics(**(arguments | changes))
    arguments |= {"pairs": "dropped", "weighting": "pairs"}
    features = {"features": rng.normal(size=(N, 2)), "targets": labels[:, None].copy()}
    if name == "fit_groups":
        counts = {"queries": np.array([0, 1, 2]), "n_targets": np.ones(2, int)}
        blocks = [features["features"]]
        features = counts | {"targets": labels, "blocks": blocks, "alpha": 1.0, "n_threads": 1}
    if name == "cross_hold_out":
        features |= {"basis": np.eye(2), "eigenvalues": np.ones(2), "projection": np.ones(2)}
        features |= {"alphas": np.array([2.0, 1.0])}
    own = {key: changes.pop(key) for key in list(changes) if key in OF_PROBLEMS}
    made = _core.RankingProblem(**(arguments | own))
    if name == "RankingProblem":
        return made
    return getattr(_core, name)(made, **(features | changes))


def metric(field, value):
    """Evaluate a metric one of whose fields has this value."""
    call("evaluate_metrics", specs=[(*METRIC[:field], value, *METRIC[field + 1 :])])


def unaligned(array, by=1):
    """Return a copy that begins so many bytes after an aligned address."""
    buffer = bytearray(array.nbytes + by)
    copy = np.frombuffer(buffer, array.dtype, offset=by).reshape(array.shape)
    copy[...] = array
    assert copy.flags.c_contiguous and not copy.flags.aligned
    return copy


def format_letor(**changes):
    """Return lines of a LETOR file of these parts of a CSR matrix."""
    indptr, indices = np.array([0, 2, 3]), np.array([0, 1, 0])
    arguments = {"values": np.ones(3), "indptr": indptr, "indices": indices, "labels": np.zeros(2)}
    arguments |= {"first": 0, "n_rows": 2, "ids": None, "comments": None, "zero_based": False}
    return _core.format_letor(**(arguments | changes))


def functions(**changes):
    """Return functions of columns between these knots."""
    good = {"knots": np.array([0.0, 1.0, 2.0]), "values": np.zeros(3), "ends": np.array([1, 3])}
    return _core.InputColumns.functions(**good | changes, keeps_inputs=False)


def taken(first, second):
    """Take the rows of a parsed file twice."""
    options = {"n_features": -1, "zero_based": False, "keep_comments": False}
    parser = _core.LetorParser64(name="a", **options, piece_size=100, n_threads=1)
    parser.feed(b"1 qid:1 1:2 2:3\n0 qid:1 2:5\n")
    parser.finish()
    getattr(parser, first)()
    getattr(parser, second)()


def saved_steps(*steps, rows=X):
    """Save a pipeline of these transformers and a ranker."""
    save_model(make_pipeline(*steps, RankRLS()).fit(rows, y), file("", "model"))


def saved_part(transformer, **named):
    """Save a pipeline in which the transformer takes a column of a frame."""
    saved_steps(make_column_transformer((transformer, ["a"]), **named), rows=frame)
