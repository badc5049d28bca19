"""Every estimator, every value of its options, on every road that rows can take to it."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import scipy.sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairgram

from .data import FRAMES, Rows, frame_of, rows_of
from .public import Public, pg, with_sparse_scale
from .results import attempt, of_file, of_model

Configuration = Callable[[Path], Any]
# Whether `fit_many` takes labels, as it does not in 0.3.
OF_LABELS = "y" in inspect.signature(pairgram.fit_many).parameters


@dataclass(frozen=True)
class Kind:
    """An estimator, and values of its options.

    There are as many variants as the longest list of values is long, and each value of each option
    is in one of them.
    """

    make: str
    options: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    data: tuple[str, ...] = ("tall", "awkward", "wide")

    def __len__(self) -> int:
        return max(map(len, self.options.values()), default=1)

    def settings(self, variant: int) -> dict[str, Any]:
        return {k: values[variant % len(values)] for k, values in self.options.items()}

    def estimator(self, variant: int) -> Any:
        settings = self.settings(variant)
        if "feature_map" in settings and not isinstance(settings["feature_map"], list):
            settings["feature_map"] = clone(settings["feature_map"], safe=False)
        return getattr(pg, self.make)(**settings)

    def rows(self, variant: int) -> Rows:
        return rows_of(self.data[variant % len(self.data)])


def difference_of_roots(a: Any, b: Any) -> Any:
    """Weigh a pair, as a function that users may give."""
    return np.abs(np.sqrt(np.abs(a)) - np.sqrt(np.abs(b)))


PAIRS = (
    "with_ties",
    "without_ties",
    "gain_difference",
    "label_difference",
    None,
    difference_of_roots,
)
WEIGHTING = ("pairs", "documents", "queries")
INPUTS = (None, "standard", "minmax", "maxabs", "quantile", "raw+quantile")
KERNELS = ("rbf", "polynomial", "laplacian", "minmax", "linear", "tanimoto")
MAPS = (
    pg.RandomNodes(12, random_state=0),
    pg.RandomNodes(9, "sine", random_state=1),
    pg.RandomFourier(10, random_state=1),
    pg.RandomFourier(10, kernel="cauchy", gamma=0.2, random_state=1),
    pg.Nystroem(n_components=8, random_state=2),
    pg.Nystroem("laplacian", n_components=6, landmarks="kmeans", random_state=2),
    StandardScaler(),
)
ALPHAS = ([10.0, 1.0, 0.1], None)
CV = (None, 3, pg.QueryKFold(2, shuffle=True, random_state=0), pg.QueryKFold(4))
SCORING = (None, "map", "pairwise_accuracy", "ndcg@3", "pairwise_squared_error", "kendall")
SEARCH = {"scoring": SCORING}
NODES = {
    "n_nodes": (15, 8),
    "activation": ("linear", "sigmoid", "gaussian", "tanh", "relu", "hardlim", "sine"),
    "weight_range": ((-1.0, 1.0), (-0.5, 0.25)),
    "bias_range": ((0.0, 1.0), (0.1, 2.0)),
    "random_state": (0, 7),
}
ELM_KERNEL = {"kernel": ("rbf", "laplacian"), "gamma": (0.05, None), "inputs": (None, "standard")}
Cs = ([2.0**-10, 1.0, 2.0**8],)

KINDS = {
    "RankRLS": Kind(
        "RankRLS",
        {
            "alpha": (1.0, 0.01, 100.0),
            "pairs": PAIRS,
            "scope": ("query", "query", "query", "global"),
            "weighting": WEIGHTING,
            "target": ("label", "gain", "label", "gain", "label"),
            "scale": (False, True, False, False),
            "inputs": (*INPUTS, None),
            "form": ("smaller", "primal", "smaller", "smaller", "dual"),
        },
    ),
    "RankRLS of a map": Kind(
        "RankRLS",
        {"feature_map": MAPS, "pairs": PAIRS[:5], "inputs": (None, "standard", "minmax")},
    ),
    "RankRLS of a kernel": Kind(
        "RankRLS",
        {
            "kernel": KERNELS,
            "gamma": (None, 0.3),
            "degree": (3, 2, 2),
            "coef0": (1.0, 0.5, 0.5),
            "pairs": PAIRS[:5],
            "inputs": ("minmax", None, "standard"),
        },
        ("counts", "tall", "bits"),
    ),
    "RankRLS with constraints": Kind(
        "RankRLS",
        {
            "positive": (True, [0, 2], False, True, False, False),
            "l1_ratio": (0.0, 0.0, 0.5, 0.3, 1.0, 0.0),
            "n_nonzero_coefs": (None, None, None, None, None, 2),
            "alpha": (0.5, 5.0),
            "scale": (False, True),
            "inputs": (None, None, "standard"),
        },
    ),
    "RankRLSCV": Kind(
        "RankRLSCV",
        {
            "alphas": ALPHAS,
            "pairs": PAIRS,
            "weighting": WEIGHTING,
            "inputs": (None, *INPUTS),
            "cv": CV,
            "form": ("smaller", "smaller", "primal", "dual", "smaller"),
            **SEARCH,
        },
    ),
    "RankRLSCV of choices": Kind(
        "RankRLSCV",
        {
            "alphas": ALPHAS,
            "pairs": (
                ["with_ties", "without_ties"],
                "with_ties",
                ["gain_difference", None, "label_difference"],
            ),
            "scope": ("query", "query", "global"),
            "target": ("label", ["label", "gain"]),
            "scale": ([False, True], False),
            "inputs": (["quantile", None], [None, "standard", "raw+quantile"], None),
            **SEARCH,
        },
    ),
    "RankRLSCV of a map or kernel": Kind(
        "RankRLSCV",
        {
            "feature_map": (MAPS[0], None, None, MAPS[4], None),
            "kernel": (None, "rbf", "linear", None, "tanimoto"),
            "gamma": (None, [0.1, 1.0], None, None, None),
            "cv": (None, None, 3, None, None),
            "alphas": ([10.0, 1.0, 0.1],),
            **SEARCH,
        },
        ("counts", "tall", "bits"),
    ),
    "RankRLSCV with constraints": Kind(
        "RankRLSCV",
        {
            "positive": (True, False, False),
            "l1_ratio": (0.0, 0.5, 0.0),
            "n_nonzero_coefs": (None, None, 2),
            "alphas": ([10.0, 1.0],),
            "cv": (None, 2),
        },
    ),
    "PointwiseELM": Kind("PointwiseELM", {**NODES, "C": (1.0, 0.01), "inputs": INPUTS}),
    "PairwiseELM": Kind(
        "PairwiseELM", {**NODES, "C": (1.0, 0.01), "pairs": PAIRS[:4], "inputs": INPUTS}
    ),
    "PairwiseELM of a kernel": Kind("PairwiseELM", ELM_KERNEL),
    "PointwiseELMCV": Kind(
        "PointwiseELMCV",
        {"Cs": Cs, "cv": CV, **SEARCH, **NODES, "inputs": (None, [None, "minmax"])},
    ),
    "PairwiseELMCV": Kind(
        "PairwiseELMCV",
        {
            "Cs": Cs,
            "cv": CV,
            **SEARCH,
            **NODES,
            "pairs": ("with_ties", ["with_ties", "without_ties"], "gain_difference"),
        },
    ),
    "PointwiseELMCV of a kernel": Kind("PointwiseELMCV", {"Cs": Cs, **ELM_KERNEL, **SEARCH}),
    "ELMRank": Kind(
        "ELMRank",
        {
            **NODES,
            "bias_range": ((0.1, 1.0), None),
            "activation": ("sigmoid", "tanh", "sine"),
            "pairs": PAIRS[:4],
            "scope": ("global", "query"),
            "n_estimators": (1, 3),
            "inputs": (None, "minmax"),
        },
    ),
    "ELMRankCV": Kind(
        "ELMRankCV",
        {
            "alphas": ([1.0, 1e-3],),
            "Cs": ([1.0, 1024.0],),
            "cv": (3, None),
            "scoring": ("pairwise_squared_error", "ndcg@5", None),
            "scope": ("global", "query"),
            "n_nodes": (8,),
            "n_estimators": (1, 2),
            "weight_range": ([(-1.0, 1.0), (-0.3, 0.3)], (-1.0, 1.0)),
            "random_state": (0,),
            "inputs": (None, [None, "standard"]),
        },
    ),
    "RankSVM": Kind(
        "RankSVM",
        {
            "C": (0.1, 1.0, 0.01),
            "weighting": WEIGHTING,
            "loss": ("squared_hinge", "squared_hinge", "squared"),
            "tol": (1e-3, 1e-9),
            "inputs": INPUTS,
            "feature_map": (None, None, MAPS[0], None, MAPS[4]),
        },
    ),
    "RankSVMCV": Kind(
        "RankSVMCV",
        {
            "Cs": ([0.01, 1.0],),
            "cv": (3, pg.QueryKFold(2)),
            "feature_map": (None, [None, MAPS[0]], MAPS[2]),
            "weighting": WEIGHTING,
            "inputs": (None, [None, "standard"], "quantile"),
            **SEARCH,
        },
    ),
}

# Their refusal of tables is among the errors.
IN_MEMORY = ("ELMRank", "ELMRankCV")

# A road fits the estimator to the rows, and returns what is told of the model.
Road = Callable[[Any, Rows, int, Path], Any]
ROADS: dict[str, Road] = {}


def road(function: Road) -> Road:
    """Add a road, which is called as its function is."""
    ROADS[function.__name__.replace("_", " ").strip()] = function
    return function


def _weights(rows: Rows, variant: int) -> dict[str, Any]:
    return {"sample_weight": rows.weight} if variant % 2 else {}


def _fit(estimator: Any, rows: Rows, variant: int, X: Any = None, **named: Any) -> Any:
    arguments = {"qid": rows.query} | _weights(rows, variant) | named
    return Public(estimator).fit(
        rows.X if X is None else X,
        rows.y,
        **{name: value for name, value in arguments.items() if value is not None},
    )


@road
def arrays(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    return of_model(_fit(estimator, rows, variant), rows.new)


@road
def float32(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    model = _fit(estimator, rows, variant, rows.X.astype(np.float32))
    return of_model(model, rows.new.astype(np.float32))


@road
def csr(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    with_sparse_scale(estimator)
    thinned = scipy.sparse.csr_matrix(np.where(np.abs(rows.X) < 0.5, 0.0, rows.X))
    return of_model(_fit(estimator, rows, variant, thinned), scipy.sparse.csr_matrix(rows.new))


def _of_frame(package: str, estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    model = _fit(estimator, rows, variant, frame_of(package, rows.X, rows.names))
    return of_model(model, frame_of(package, rows.new, rows.names))


for _package in FRAMES:
    ROADS[f"{_package} frame"] = partial(_of_frame, _package)


@road
def lists_and_ids_of_text(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    ids = [f"query {number}" for number in rows.query]
    return of_model(_fit(estimator, rows, variant, rows.X.tolist(), qid=ids), rows.new.tolist())


@road
def sizes_and_weights_of_queries(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    weights = 1.0 + rows.query % 3
    model = _fit(estimator, rows, variant, query_weight=weights)
    return of_model(model, rows.new)


@road
def shuffled_rows(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    shuffled = rows.taken(np.random.default_rng(variant).permutation(len(rows.y)))
    return of_model(_fit(estimator, shuffled, variant, np.asfortranarray(shuffled.X)), rows.new)


@road
def offsets(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    model = _fit(estimator, rows, variant, offset=np.sin(rows.X[:, 1]))
    return of_model(model, rows.new, offset=np.sin(rows.new[:, 1]))


@road
def prior(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    first = pg.RankRLS(10.0).fit(rows.X, np.roll(rows.y, 1), qid=rows.query)
    is_linear = "ELM" not in type(estimator).__name__ and not any(
        estimator.get_params(deep=False).get(k) for k in ("kernel", "feature_map", "inputs")
    )
    weights = np.linspace(-0.5, 0.5, rows.X.shape[1])
    Public(estimator).set_params(
        prior=weights if is_linear and variant % 2 == 0 else FrozenEstimator(first)
    )
    return of_model(_fit(estimator, rows, variant), rows.new)


@road
def pipeline(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), estimator.set_fit_request(qid=True))
        model.fit(rows.X, rows.y, qid=rows.query)
        pg.save_model(model, folder / "model")
        again = pg.load_model(folder / "model").predict(rows.new)
        return of_model(model[-1], model[:-1].transform(rows.new)) | {"predict of pipeline": again}


def _of_table(estimator: Any, rows: Rows, table: Any) -> Any:
    named = {}
    if "store_held_out" in estimator.get_params(deep=False):  # which 0.3 refuses for tables
        estimator.set_params(store_held_out=False)
    if type(estimator).__name__ == "RankSVMCV":
        Public(estimator).set_params(cv=None)
        turned = {"label": rows.y[::-1], "query": rows.query[::-1]}
        held_out = pyarrow.table(rows.columns(weighted=False) | turned)
        named["validation"] = pg.scan(held_out, label="label", qid="query")
    model = Public(estimator).fit(table, **named)
    found = of_model(model, rows.new) | {"predict of table": model.predict(table)}
    if (rows.y >= 0).all():
        found["evaluate"] = pg.evaluate(["ndcg@5", "map"], table, model)
    return found


def _names(variant: int) -> dict[str, Any]:
    return {"label": "label", "qid": "query"} | ({"weight": "weight"} if variant % 2 else {})


def _pieces(rows: Rows, variant: int) -> Iterator[Any]:
    for begin, end in pairwise(rows.cuts):
        part = rows.taken(slice(begin, end))
        yield pyarrow.table(part.columns(weighted=variant % 2 == 1))


@road
def table_of_a_function(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    return _of_table(estimator, rows, pg.scan(lambda: _pieces(rows, variant), **_names(variant)))


@road
def table_of_a_frame(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    package = list(FRAMES)[variant % 3]
    frame = FRAMES[package](rows.columns(weighted=variant % 2 == 1))
    return _of_table(estimator, rows, pg.scan(frame, **_names(variant)))


@road
def table_of_csv_files(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    frame = pandas.DataFrame(rows.columns(weighted=variant % 2 == 1))
    for number, (begin, end) in enumerate(pairwise(rows.cuts)):
        frame[begin:end].to_csv(folder / f"{number}.csv", index=False)
    return _of_table(estimator, rows, pg.scan(str(folder / "*.csv"), **_names(variant)))


@road
def table_of_parquet_files(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    table = pyarrow.table(rows.columns(weighted=variant % 2 == 1) | {"extra": rows.y})
    for number, (begin, end) in enumerate(pairwise(rows.cuts)):
        piece = table.slice(begin, end - begin)
        pyarrow.parquet.write_table(piece, folder / f"{number}.parquet")
    return _of_table(estimator, rows, pg.scan(str(folder), exclude="extra", **_names(variant)))


@road
def table_of_letor_files(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    for number, (begin, end) in enumerate(pairwise(rows.cuts)):
        part = rows.taken(slice(begin, end))
        pg.dump_letor(folder / f"{number}.txt", part.X, part.y, part.query)
    paths = sorted(str(path) for path in folder.iterdir())
    return _of_table(estimator, rows, pg.scan(paths, n_features=rows.X.shape[1]))


@road
def table_of_a_lazy_frame(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    columns = rows.columns(weighted=variant % 2 == 1)
    frame = polars.DataFrame(columns).lazy().with_columns(polars.col("f0").cast(polars.Float32))
    return _of_table(estimator, rows, pg.scan(frame, **_names(variant), features=rows.names))


def _of_batch(batch: Any, new: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"keys": batch.keys}
    for number, models in enumerate(batch.models):
        for target, model in enumerate(models if isinstance(models, list) else [models]):
            it = {"error": "no model"} if model is None else of_model(model, new)
            found[f"{number}.{target}"] = it
    return found


@road
def many_problems(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    parts = [rows.taken(rows.query % 2 == k) for k in range(2)]
    problems = [(part.X, part.y, part.query) for part in parts]
    problems.append((rows.X[:3], np.array([1.0, np.nan, 0.0]), rows.query[:3]))
    return _of_batch(pg.fit_many(estimator, problems, fallback=0.0), rows.new)


@road
def many_keys(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    keys = np.array(["ann", "bob", "cy"])[rows.query % 3]
    columns = rows.columns(weighted=variant % 2 == 1) | {"key": keys}
    frame_of_columns = FRAMES[list(FRAMES)[variant % 3]]
    named_rows = frame_of("pandas", rows.X, rows.names)
    everybody = pg.RankRLS(5.0).fit(named_rows, rows.y, qid=rows.query)
    named = {"by": "key", "qid": "query", "fallback": everybody if variant % 3 else 0.5}
    named |= {"sample_weight": "weight"} if variant % 2 else {}
    frame = frame_of_columns(columns)
    if OF_LABELS:
        batch = pg.fit_many(estimator, frame, "label", **named)
    else:
        batch = pg.fit_many(estimator, frame, label="label", features=rows.names, **named)
    new = frame_of_columns(
        dict(zip(rows.names, np.ascontiguousarray(rows.new.T), strict=True))
        | {"key": np.array(["cy", "new", "ann", "bob"] * 3)}
    )
    path = folder / "batch"
    found = {
        "predict": attempt(lambda: batch.predict(new, "key")),
        "save": attempt(lambda: batch.save(path)),
    }
    if path.exists():
        found["file"] = of_file(path.read_bytes())
        found["of file"] = pg.BatchFit.load(path).predict(new, "key")
    return found | _of_batch(batch, rows.new)


@road
def many_targets(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    y = np.column_stack([rows.y, rows.y[::-1], 2 * rows.y])
    if OF_LABELS:
        models = pg.fit_many(estimator, rows.X, y, qid=rows.query).models
    else:
        (models,) = pg.fit_many(estimator, [(rows.X, y, rows.query)]).models
    return [of_model(model, rows.new) for model in models]


@road
def validation(estimator: Any, rows: Rows, variant: int, folder: Path) -> Any:
    first = rows.taken(rows.query % 3 > 0)
    held = rows.taken(rows.query % 3 == 0)
    chosen = {"validation": (held.X, held.y, held.query)}
    Public(estimator).set_params(cv=None)
    return of_model(_fit(estimator, first, variant, **chosen), rows.new)


def configurations() -> Iterator[tuple[str, Configuration]]:
    """Yield the name of every configuration of a fit, and what runs it."""
    for (name, kind), (way, go) in itertools.product(KINDS.items(), ROADS.items()):
        if way == "validation" and not kind.make.endswith("CV"):
            continue
        if way == "prior" and kind.make in ("ELMRank", "ELMRankCV"):
            continue
        if way.startswith("table") and kind.make in IN_MEMORY:
            continue
        for variant in range(len(kind)):
            yield f"{way}/{name}/{variant}", partial(_run, kind, go, variant)


def _run(kind: Kind, go: Road, variant: int, folder: Path) -> Any:
    return go(kind.estimator(variant), kind.rows(variant), variant, folder)
