"""What is made of models and scores: exports, statistics, metrics, comparisons, files, splits."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas
import scipy.sparse
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from .data import Rows, frame_of, rows_of
from .fits import Configuration, difference_of_roots
from .public import OF_TABLES, Public, attribute, map_of, pg
from .results import attempt, of_file, of_model

# ---- Exports

Fitted = Callable[[Rows], Any]


def _ranker(name: str, **named: Any) -> Fitted:
    return lambda rows: getattr(pg, name)(**named).fit(
        frame_of("pandas", rows.X, rows.names), rows.y, qid=rows.query
    )


def _of_steps(*steps: Any) -> Fitted:
    def fitted(rows: Rows) -> Any:
        with config_context(enable_metadata_routing=True):
            model = make_pipeline(*steps, pg.RankRLS(2.0).set_fit_request(qid=True))
            return model.fit(rows.X, rows.y, qid=rows.query)

    return fitted


def _filling(rows: Rows) -> Any:
    columns = rows.columns(weighted=False)
    columns["f1"] = np.where(np.arange(len(rows.y)) % 4 == 0, np.nan, columns["f1"])
    table = pg.scan(pandas.DataFrame(columns), label="label", qid="query")
    return pg.RankRLS(2.0, inputs="standard", missing="mean").fit(table)


def _after(prior: Any, rows: Rows) -> Any:
    X = frame_of("pandas", rows.X, rows.names)
    return pg.RankRLS(prior=prior).fit(X, rows.y, qid=rows.query)


_CATEGORIES = ColumnTransformer(
    [("category", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [1])],
    remainder=StandardScaler(),
)
MODELS: dict[str, Fitted] = {
    "linear": _ranker("RankRLS", alpha=2.0),
    "of a search": _ranker("RankRLSCV"),
    **{
        f"inputs of {kind}": _ranker("RankRLS", alpha=2.0, inputs=kind)
        for kind in ("standard", "minmax", "maxabs", "quantile", "raw+quantile")
    },
    "svm": _ranker("RankSVM", C=0.1, inputs="standard"),
    **{
        f"nodes of {kind}": _ranker("PairwiseELM", n_nodes=6, activation=kind, random_state=0)
        for kind in ("linear", "sigmoid", "tanh", "relu", "gaussian", "sine", "hardlim")
    },
    "elm of draws": _ranker("ELMRank", n_nodes=5, n_estimators=2, random_state=0),
    "fourier": _ranker("RankRLS", feature_map=pg.RandomFourier(7, random_state=0)),
    "nystroem": _ranker("RankSVM", feature_map=pg.Nystroem(n_components=5, random_state=0)),
    **{
        f"kernel of {kind}": _ranker("RankRLS", kernel=kind)
        for kind in ("linear", "rbf", "polynomial", "laplacian", "minmax", "tanimoto")
    },
    "pipeline of scalers": _of_steps(MinMaxScaler(), StandardScaler()),
    "pipeline of categories": _of_steps(_CATEGORIES),
    "with missing values": _filling,
    "few columns": _ranker("RankRLS", n_nonzero_coefs=2),
    "prior of a model": lambda rows: _after(FrozenEstimator(_ranker("RankSVM")(rows)), rows),
}
ENGINES: dict[str, Callable[..., Any]] = {
    "solr": partial(pg.export.to_solr, name="m", store="s"),
    "plugin": partial(pg.export.to_ltr_plugin, name="m"),
    "plugin, shifted": partial(pg.export.to_ltr_plugin, name="m", shift="one", lowest=-5.0),
    "vespa": partial(pg.export.to_vespa, name="m", phase="first"),
    "ranklib": pg.export.to_ranklib,
    **{
        f"sql of {dialect}": partial(pg.export.to_sql, dialect=dialect)
        for dialect in ("standard", "sqlite")
    },
    "python": partial(pg.export.to_python, name="rank"),
    "onnx": pg.export.to_onnx,
    "onnx of float32": partial(pg.export.to_onnx, precision="float32"),
    "onnx of float64": partial(pg.export.to_onnx, precision="float64"),
}


def _export(fitted: Fitted, engine: Callable[..., Any], folder: Path) -> Any:
    rows = rows_of("awkward")
    rows.X.flags.writeable = rows.new.flags.writeable = False
    model = fitted(rows)
    names = [f"attribute({name})" for name in rows.names] if "vespa" in str(engine) else rows.names
    exported = engine(model=model, features=names)
    found = {"check": attempt(lambda: str(pg.export.verify(exported, model, rows.X, rows.query)))}
    if isinstance(exported, bytes):
        session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
        scores = session.run(None, {"features": rows.new.astype(np.float32)})
        return found | {"scores": scores[0], "names": session.get_modelmeta().custom_metadata_map}
    text = json.dumps(exported, indent=1) if isinstance(exported, dict) else str(exported)
    if getattr(exported, "onnx", None):
        found["onnx"] = hashlib.sha256(exported.onnx).hexdigest()
    return found | {"text": text}


def _run_texts(folder: Path) -> Any:
    """Run exported Python and SQL, which the check of an export does in its own way."""
    rows = rows_of("awkward")
    model = MODELS["inputs of quantile"](rows)
    names: dict[str, Any] = {}
    exec(str(pg.export.to_python(model, name="rank")), names)
    with sqlite3.connect(":memory:") as base:
        base.execute(f"CREATE TABLE t ({', '.join(rows.names)})")
        base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 5)})", rows.new.tolist())
        text = pg.export.to_sql(model, dialect="sqlite")
        scores = [row[0] for row in base.execute(f"SELECT {text} FROM t ORDER BY rowid")]
    base.close()
    return {
        "python": np.array([names["rank"](row) for row in rows.new.tolist()]),
        "sqlite": np.array(scores),
    }


# ---- Statistics

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"pairs": "without_ties", "weighting": "documents"},
    {"pairs": "gain_difference", "weighting": "queries", "target": "gain"},
    {"pairs": None, "target": "gain"},
    {"pairs": "label_difference", "scope": "global"},
    {"pairs": "with_ties", "scope": "global", "weighting": "documents"},
    {"pairs": difference_of_roots},
    {"feature_map": pg.RandomNodes(6, random_state=0)},
    {"ids": None},
)


def _of_statistics(total: Any) -> dict[str, Any]:
    def model() -> Any:
        return of_model(pg.RankRLS.from_pairgram(total, alpha=3.0), rows_of("tall").new)

    return {
        **{name: attribute(total, name) for name in ("G", "g", "yy", "pair_weight", "n_features")},
        "bytes": attempt(lambda: of_file(total.to_bytes())),
        "default_alphas": total.default_alphas(scale=True),
        "solve": attempt(lambda: total.solve(2.0)),
        "scaled": attempt(lambda: total.solve(2.0, scale=True)),
        "positive": attempt(lambda: Public(total).solve(2.0, positive=True)),
        "sparse": attempt(lambda: Public(total).solve(2.0, l1_ratio=0.5)),
        "few": attempt(lambda: Public(total).solve(2.0, n_nonzero_coefs=2)),
        "prior": attempt(lambda: total.solve(2.0, prior=np.ones(total.n_features))),
        "path": attempt(total.path),
        "path of alphas": attempt(lambda: total.path([5.0, 0.5], scale=True)),
        "model": attempt(model),
    }


def _statistics(way: str, settings: dict[str, Any], folder: Path) -> Any:
    rows = rows_of("tall")
    halves = [rows.taken(rows.query % 2 == k) for k in range(2)]
    named = [{"qid": one.query, "sample_weight": one.weight} for one in (rows, *halves)]

    def of(part: Rows, arguments: dict[str, Any]) -> Any:
        return pg.Pairgram.from_rows(part.X, part.y, **arguments, **settings)

    if way == "rows":
        return _of_statistics(of(rows, named[0]))
    if way == "float32":
        return _of_statistics(
            pg.Pairgram.from_rows(rows.X.astype(np.float32), rows.y, **named[0], **settings)
        )
    if way == "csr":
        thin = scipy.sparse.csr_matrix(np.where(np.abs(rows.X) < 0.5, 0.0, rows.X))
        return _of_statistics(pg.Pairgram.from_rows(thin, rows.y, **named[0], **settings))
    if way == "frame":
        frame = frame_of("polars", rows.X, rows.names)
        return _of_statistics(pg.Pairgram.from_rows(frame, rows.y, **named[0], **settings))
    if way == "table":
        table = pg.scan(
            pandas.DataFrame(rows.columns(weighted=True)),
            label="label",
            qid="query",
            weight="weight",
        )
        return _of_statistics(pg.Pairgram.from_rows(table, **settings))
    if way == "sum":
        return _of_statistics(of(halves[0], named[1]) + of(halves[1], named[2]))
    if way == "difference":
        return _of_statistics(of(rows, named[0]) - of(halves[0], named[1]))
    total = pg.Pairgram(**settings)
    for part, arguments in zip(halves, named[1:], strict=True):
        total.update(part.X, part.y, **arguments)
    total.save(folder / "statistics")
    again = pg.Pairgram.load(folder / "statistics")
    whole = pg.Pairgram.from_bytes(again.to_bytes())
    return _of_statistics(whole) | {"file": of_file((folder / "statistics").read_bytes())}


WAYS = ("rows", "float32", "csr", "frame", "table", "sum", "difference", "updates and a file")


# ---- Measuring

CONVENTIONS = ("default", "letor", "trec", "lightgbm")


def _scores(rows: Rows) -> np.ndarray:
    """Return scores with ties."""
    return np.round(rows.X[:, 1] + 0.3 * rows.y, 1)


def _names() -> list[str]:
    return [
        name
        for one in pg.metric_names()
        for name in [f"{one.partition('@')[0]}@{k}" for k in (1, 5)] + [one.partition("@")[0]]
    ]


def _metrics(convention: str, folder: Path) -> Any:
    rows = rows_of("tall")
    found: dict[str, Any] = {"names": pg.metric_names()}
    score = _scores(rows)
    unseen = np.where(np.arange(len(score)) % 7 == 0, np.nan, score)
    for name in _names():
        for way, named in {
            "mean": {"sample_weight": rows.weight},
            "per query": {"per_query": True},
        }.items():
            arguments = {"qid": rows.query, "convention": convention} | named
            found[f"{name}, {way}"] = attempt(
                partial(pg.evaluate, name, rows.y, score, **arguments)
            )
        found[f"{name}, unseen"] = attempt(
            partial(pg.evaluate, name, rows.y, unseen, rows.query, convention=convention)
        )
    return found


OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("ndcg@5", {"gain": one}) for one in ("exp2", "linear")),
    *(("ndcg@5", {"discount": one}) for one in ("log2", "letor")),
    *(("ndcg@5", {"ties": one}) for one in ("order", "average", "worst")),
    *(("map", {"empty": one}) for one in (0.0, 1.0, "skip")),
    *(("map", {"relevant": one}) for one in (1.0, 2.0)),
    *(("map@3", {"divisor": one}) for one in ("relevant", "cut")),
    ("err", {"max_grade": 5.0}),
    ("bedroc", {"alpha": 5.0, "relevant": 2.0}),
    ("ef@20%", {"relevant": 2.0}),
    ("rbp", {"persistence": 0.5}),
)


def _options(folder: Path) -> Any:
    rows, found = rows_of("tall"), {}
    for name, named in OPTIONS:
        metric = pg.get_metric(name, **named)
        key = f"{name} {named}"
        found[key] = {
            "value": metric(rows.y, _scores(rows), rows.query),
            "repr": repr(metric),
            "better": metric.greater_is_better,
        }
    return found


def _two_of_scores(folder: Path) -> Any:
    rows = rows_of("tall")
    both = np.stack([_scores(rows), rows.X[:, 0]])
    y = np.minimum(rows.y, 1)
    ids, place = np.unique(rows.query, return_inverse=True)
    missed = np.repeat(ids, 4 - np.bincount(place, y).astype(int))  # so that each list has four
    return {
        "two": pg.evaluate(["ndcg", "map"], rows.y, both, rows.query),
        "two per query": pg.evaluate("kendall", rows.y, both, rows.query, per_query=True),
        "counted": pg.evaluate(
            "map",
            np.append(y, np.ones(len(missed))),
            np.append(both[0], np.full(len(missed), np.nan)),
            np.append(rows.query, missed),
        ),
        "real": {
            name: attempt(partial(pg.evaluate, name, rows.X[:, 2], both[1], rows.query))
            for name in _names()
        },
    }


def _compare(folder: Path) -> Any:
    rows = rows_of("tall")
    systems = {"a": rows.X[:, 0], "b": _scores(rows), "c": -rows.X[:, 1]}
    named = {"n_permutations": 2000, "n_resamples": 500}
    found = {
        "all": pg.compare(
            rows.y, rows.query, systems, ["ndcg@5", "map", "pairwise_squared_error"], **named
        ),
        "baseline": pg.compare(
            rows.y,
            rows.query,
            systems,
            "kendall",
            baseline="b",
            **named,
        ),
    }
    return found | {"dict": str(found["all"].to_dict())}


def compared_runs(qrels: Any, runs: dict[str, Any]) -> Any:
    """Compare runs; versions up to 0.3 have a function for it."""
    of_size = {"n_permutations": 500, "n_resamples": 200}
    if hasattr(pg, "compare_runs"):
        return pg.compare_runs(qrels, runs, **of_size)
    metrics = ["map", "ndcg@10"]
    values = {
        name: pg.evaluate_run(qrels, run, metrics, per_query=True) for name, run in runs.items()
    }
    return pg.compare_values(values, **of_size)


def _runs(folder: Path) -> Any:
    rows = rows_of("tall")
    docno = [f"d{number:03}" for number in range(len(rows.y))]
    ids = [f"q{number}" for number in rows.query]
    for name, column in (("a", _scores(rows)), ("b", rows.X[:, 0])):
        kept = [i for i in range(len(docno)) if (i + len(name)) % 5 and rows.query[i] != 3]
        pg.write_run(
            folder / f"{name}.run", [ids[i] for i in kept], [docno[i] for i in kept], column[kept]
        )
    lines = [f"{q} 0 {d} {y:.0f}\n" for q, d, y in zip(ids, docno, rows.y, strict=True)]
    (folder / "qrels").write_text("# judgements\n" + "".join(lines))
    metrics = ["map", "ndcg@10", "P_5", "ndcg_cut_10", "recip_rank", "Rprec", "success_5", "bpref"]
    metrics += ["AP", "nDCG@10", "RR", "err@5", "recall@5"]
    qrels, run = str(folder / "qrels"), str(folder / "a.run")
    found = {
        "text": (folder / "a.run").read_text(),
        "run": pg.read_run(run),
        "qrels": pg.read_qrels(qrels),
        "compare": compared_runs(qrels, {"a": run, "b": str(folder / "b.run")}),
        "of frames": pg.evaluate_run(
            pandas.DataFrame({"qid": ids, "docno": docno, "label": rows.y}),
            {"q1": {"d003": 1.0, "d001": 0.5}, "q2": {"d010": 2.0}},
        ),
    }
    for name in metrics:
        found[name] = {
            "zero": attempt(partial(pg.evaluate_run, qrels, run, name)),
            "skip": attempt(
                partial(pg.evaluate_run, qrels, run, name, missing="skip", per_query=True)
            ),
        }
    return found


# ---- Kernels, maps, splits


def _kernels(folder: Path) -> Any:
    rows, found = rows_of("counts"), {}
    forms = {"dense": np.asarray, "sparse": scipy.sparse.csr_matrix, "float32": np.float32}
    for kernel in ("linear", "rbf", "polynomial", "laplacian", "tanimoto", "minmax"):
        for form, made in forms.items():
            found[f"{kernel}, {form}"] = attempt(
                partial(_of_kernel, made(rows.X), made(rows.new), kernel)
            )
    return found


def _of_kernel(X: Any, new: Any, kernel: Any) -> Any:
    return {
        "rows": pg.kernel_matrix(X, kernel=kernel, gamma=0.2),
        "new": pg.kernel_matrix(X, new, kernel),
    }


def _maps(folder: Path) -> Any:
    rows = rows_of("tall")
    made = {
        **{
            kind: pg.RandomNodes(5, kind, random_state=3, bias_range=(0.1, 1.0))
            for kind in ("linear", "sigmoid", "gaussian", "tanh", "relu", "hardlim", "sine")
        },
        **{
            f"fourier, {kind}": pg.RandomFourier(5, kernel=kind, random_state=3)
            for kind in ("rbf", "laplacian", "cauchy")
        },
        **{
            f"nystroem, {kind}": pg.Nystroem(n_components=5, landmarks=kind, random_state=3)
            for kind in ("uniform", "kmeans")
        },
    }
    thin = scipy.sparse.csr_matrix(np.where(np.abs(rows.X) < 0.5, 0.0, rows.X))
    return {
        name: {
            "dense": one.fit(rows.X).transform(rows.new),
            "float32": one.fit(np.float32(rows.X)).transform(np.float32(rows.new)),
            "sparse": attempt(partial(one.fit_transform, thin)),
            "names": one.get_feature_names_out(),
        }
        for name, one in made.items()
    }


def _products(inputs: str | None, folder: Path) -> Any:
    rows = rows_of("tall")
    first = np.unique(rows.query, return_index=True)[1]
    people, things = rows.X[first, :2], rows.X[:9, 2:]
    X = np.hstack([people[np.searchsorted(np.unique(rows.query), rows.query)], rows.X[:, 2:]])
    found = {}
    for name, feature_map in (
        ("all", pg.Cross([1, 0], slice(2, None))),
        ("kept", pg.Cross(0, slice(3, None), keep=2)),
    ):
        model = pg.RankRLSCV(feature_map=feature_map, inputs=inputs)
        model.fit(X, rows.y, qid=rows.query)
        left = list(dict.fromkeys((map_of(model).left_ % X.shape[1]).tolist()))
        numbers = (map_of(model).kept_, map_of(model).right_)
        others = np.unique(np.concatenate(numbers) % X.shape[1]) - 2
        listed = pg.recommend(model, people[:, left], things[:, others], 4, exclude=([0], [1]))
        found[name] = {
            "model": of_model(model, rows.new),
            "held out": model.held_out_,
            "places": listed.places,
            "scores": listed.scores,
        }
    return found


def _interactions(folder: Path) -> Any:
    rows = rows_of("tall")
    item = np.arange(len(rows.y)) % 11
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        drawn = {
            by: pg.sample_negatives(
                rows.query, item, 2, by=by, catalog=np.arange(40), random_state=0
            )
            for by in ("uniform", "popularity")
        }
        return drawn, pg.leave_last_out(rows.query, rows.X[:, 0], 2)


def _precomputed(make: str, named: dict[str, Any], folder: Path) -> Any:
    rows = rows_of("counts")
    K = pg.kernel_matrix(rows.X, kernel="tanimoto")
    model = getattr(pg, make)(kernel="precomputed", **named)
    model.fit(K, rows.y, qid=rows.query)
    return of_model(model, pg.kernel_matrix(rows.new, rows.X, "tanimoto"))


def _certainty(named: dict[str, Any], folder: Path) -> Any:
    rows = rows_of("tall")
    make = pg.RankRLSCV if "scoring" in named else pg.RankRLS
    model = make(weighting="documents", **named).fit(rows.X, rows.y, qid=rows.query)
    if hasattr(pg, "posterior"):
        sure = pg.posterior(model, rows.X, rows.y, qid=rows.query)
        std = sure.std
    else:  # as in 0.3
        sure = make(weighting="documents", keep_covariance=True, **named)
        sure.fit(rows.X, rows.y, qid=rows.query)

        def std(X: Any, **told: Any) -> Any:
            return sure.predict(X, return_std=True, **told)[1]

    return {
        "model": of_model(model, rows.new),
        "of lists": std(rows.new),
        "of training": std(rows.new, reference="training"),
        "above": sure.probability_above(rows.new[1:], rows.new[:-1]),
        "ranges": sure.rank_ranges(rows.new, level=0.8),
        "proposed": [
            pg.propose(sure, rows.new, 3, strategy=strategy) for strategy in ("variance", "upper")
        ],
    }


def _splits(folder: Path) -> Any:
    rows, found = rows_of("tall"), {}
    for shuffle, ids in ((False, rows.query), (True, rows.query), (True, rows.query.astype(str))):
        folds = pg.QueryKFold(3, shuffle=shuffle, random_state=5 if shuffle else None)
        found[f"{shuffle}, {ids.dtype.kind}"] = {
            str(number): {"train": train, "test": test}
            for number, (train, test) in enumerate(folds.split(rows.X, qid=ids))
        }
    return found | {
        "groups": [test for _, test in pg.QueryKFold(4).split(rows.X, groups=rows.query)]
    }


def _grid_search(folder: Path) -> Any:
    rows = rows_of("tall")
    with config_context(enable_metadata_routing=True):
        ranker = pg.RankRLS(feature_map=pg.RandomNodes(6, random_state=0)).set_fit_request(qid=True)
        search = GridSearchCV(
            make_pipeline(MinMaxScaler(), ranker),
            {"rankrls__alpha": [0.1, 10.0]},
            scoring=pg.make_scorer("map"),
            cv=pg.QueryKFold(3),
        ).fit(rows.X, rows.y, qid=rows.query)
        return {
            "scores": search.cv_results_["mean_test_score"],
            "predict": search.predict(rows.new),
            "score": search.best_estimator_[-1].score(rows.X, rows.y, qid=rows.query),
        }


# ---- Lists of one, warm starts, tables of results


def _single(make: str, named: dict[str, Any], folder: Path) -> Any:
    rows = rows_of("single")
    return of_model(getattr(pg, make)(**named).fit(rows.X, rows.y), rows.new)


SINGLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("RankRLSCV", {}),
    ("RankRLSCV", {"cv": "leave-pair-out", "alphas": [1.0, 0.1]}),
    ("RankRLSCV", {"cv": "leave-pair-out", "kernel": "rbf"}),
    ("RankRLSCV", {"cv": "leave-pair-out", "pairs": None, "scope": "global"}),
    ("RankRLSCV", {"cv": 4, "scoring": "spearman"}),
    ("RankRLSCV", {"kernel": "laplacian", "scoring": "pearson"}),
    ("RankRLSCV", {"pairs": None, "scoring": "pairwise_squared_error"}),
    (
        "PairwiseELMCV",
        {"cv": "leave-pair-out", "pairs": "with_ties", "n_nodes": 6, "random_state": 0},
    ),
    ("PointwiseELMCV", {"scoring": "pairwise_absolute_error", "n_nodes": 6, "random_state": 0}),
    ("ELMRankCV", {"random_state": 0, "n_nodes": 6, "n_estimators": 2}),
    ("RankSVMCV", {"cv": 3, "scoring": "kendall"}),
    ("RankRLS", {}),
    ("RankSVM", {}),
)
CERTAIN: tuple[dict[str, Any], ...] = (
    {},
    {"kernel": "rbf"},
    {"inputs": "standard"},
    {"scoring": "evidence"},
)
LABELS = ("real", "signed", "binary")


def _labels(kind: str, make: str, folder: Path) -> Any:
    rows = rows_of(kind)
    named = {"random_state": 0, "n_nodes": 6} if "ELM" in make else {}
    return of_model(getattr(pg, make)(**named).fit(rows.X, rows.y, qid=rows.query), rows.new)


def _prior(make: str, folder: Path) -> Any:
    rows = rows_of("tall")
    prior = pg.RankRLS(kernel="rbf").fit(rows.X, np.roll(rows.y, 1), qid=rows.query)
    named = {"random_state": 0} if "ELM" in make else {}
    model = getattr(pg, make)(prior=prior, **named).fit(rows.X, rows.y, qid=rows.query)
    return of_model(model, rows.new)


def _automatic(named: dict[str, Any], kind: str, folder: Path) -> Any:
    rows = rows_of(kind)
    model = pg.AutoRanker(time_budget=1e4, **named)
    fitted = model.fit(frame_of("pandas", rows.X, rows.names), rows.y, qid=rows.query)
    return of_model(fitted, frame_of("pandas", rows.new, rows.names))


def _scored_table(folder: Path) -> Any:
    rows = rows_of("tall")
    frame = pandas.DataFrame(rows.columns(weighted=False) | {"doc": np.arange(len(rows.y)) * 2})
    model = pg.RankRLSCV().fit(rows.X, rows.y, qid=rows.query)
    table = pg.scan(frame, label="label", qid="query", features=rows.names)
    pg.predict(model, table, output=folder / "scores.parquet", keep=["doc", "query"])
    written = pandas.read_parquet(folder / "scores.parquet")
    found = {name: written[name].to_numpy() for name in written.columns}
    measured = pg.evaluate(["ndcg@5", "map"], table, model, per_query=True)
    return found | {"evaluate": measured, "scores": pg.predict(model, table)}


def _table_of_tables(folder: Path) -> Any:
    """A validation table, folders with names of days, and folds of a table."""
    rows = rows_of("tall")
    for day in range(2):
        (folder / f"day={day}").mkdir()
        part = rows.taken(rows.query % 2 == day)
        frame = pandas.DataFrame(part.columns(weighted=False))
        frame.to_parquet(folder / f"day={day}" / "rows.parquet")
    names = {"label": "label", "qid": "query"}
    whole = pg.scan(folder, **names)
    with_day = pg.scan(folder, **names, features=[*rows.names, "day"])
    first, second = (pg.scan(folder / f"day={day}", **names) for day in range(2))
    return {
        "whole": of_model(pg.RankRLSCV(**OF_TABLES).fit(whole), rows.new),
        "day": of_model(pg.RankRLS().fit(with_day), np.column_stack([rows.new, rows.new[:, 0]])),
        "validation": of_model(pg.RankRLSCV(**OF_TABLES).fit(first, validation=second), rows.new),
        "folds": of_model(pg.RankRLSCV(cv=3, **OF_TABLES).fit(whole), rows.new),
    }


def _letor(sparse: bool, dtype: str, folder: Path) -> Any:
    rows = rows_of("counts" if sparse else "tall")
    X = scipy.sparse.csr_matrix(rows.X) if sparse else rows.X.astype(dtype)
    comments = [f"doc {number}" for number in range(len(rows.y))]
    found = {}
    for name in ("plain.txt", "packed.gz", "packed.xz", "packed.bz2"):
        path = folder / name
        pg.dump_letor(path, X, rows.y, rows.query, comments=comments)
        read = pg.load_letor(path, sparse=sparse, dtype=np.dtype(dtype), comments=True)
        found[name] = dict(zip(("X", "y", "qid", "comments"), read, strict=True))
    text = (folder / "plain.txt").read_text()
    pg.dump_letor(folder / "ids", X, rows.y, [f"q{k}" for k in rows.query], zero_based=True)
    return found | {"text": text, "ids": pg.load_letor(folder / "ids", zero_based=True)[2]}


def _letor_folds(folder: Path) -> Any:
    rows = rows_of("tall")
    for fold in range(1, 6):
        (folder / f"Fold{fold}").mkdir()
        for number, name in enumerate(("train", "vali", "test")):
            part = rows.taken((rows.query + fold) % 3 == number)
            pg.dump_letor(folder / f"Fold{fold}" / f"{name}.txt", part.X, part.y, part.query)
    return {str(n): str(fold) for n, fold in enumerate(pg.load_letor_folds(folder))}


def _made(folder: Path) -> Any:
    cases: dict[str, dict[str, Any]] = {
        "default": {},
        "sizes": {"n_queries": 10, "n_documents": (2, 7), "n_features": 4},
        "informative": {"n_queries": 8, "n_informative": 2, "n_levels": 3, "noise": 0.5},
        "factors": {"n_queries": 8, "n_factors": 2, "query_effect": 0.0},
    }
    return {
        name: dict(zip("Xyq", pg.make_ranking(**named, random_state=4), strict=True))
        for name, named in cases.items()
    }


def configurations() -> Iterator[tuple[str, Configuration]]:
    """Yield the name of every configuration, and what runs it."""
    for model, fitted in MODELS.items():
        for engine, export in ENGINES.items():
            yield f"export/{model}/{engine}", partial(_export, fitted, export)
    yield "export/texts that run", _run_texts
    for way in WAYS:
        for number, settings in enumerate(SETTINGS):
            yield f"statistics/{way}/{number}", partial(_statistics, way, settings)
    for convention in CONVENTIONS:
        yield f"metrics/{convention}", partial(_metrics, convention)
    yield "metrics/options", _options
    yield "metrics/two scores", _two_of_scores
    yield "metrics/compare", _compare
    yield "metrics/runs", _runs
    yield "kernels", _kernels
    yield "feature maps", _maps
    for inputs in (None, "standard"):
        yield f"products/{inputs}", partial(_products, inputs)
    for make_name, named in (
        ("RankRLS", {}),
        ("RankRLSCV", {}),
        ("PairwiseELM", {}),
        ("PointwiseELMCV", {}),
    ):
        yield f"precomputed/{make_name}", partial(_precomputed, make_name, named)
    for number, certain in enumerate(CERTAIN):
        yield f"certainty/{number}", partial(_certainty, certain)
    yield "splits", _splits
    yield "interactions", _interactions
    yield "grid search", _grid_search
    for number, (make_name, named) in enumerate(SINGLE):
        yield f"single list/{make_name}/{number}", partial(_single, make_name, named)
    for kind in LABELS:
        for make_name in ("RankRLSCV", "RankSVMCV", "PairwiseELMCV", "ELMRankCV", "RankSVM"):
            yield f"labels/{make_name}/{kind}", partial(_labels, kind, make_name)
    for make_name in ("RankRLS", "RankRLSCV", "RankSVM", "PairwiseELM"):
        yield f"prior that is a model/{make_name}", partial(_prior, make_name)
    yield "automatic/None", partial(_automatic, {}, "tall")
    yield "automatic/folds", partial(_automatic, {"cv": 3, "scoring": "map"}, "binary")
    yield "automatic/wide", partial(_automatic, {}, "bits")
    yield "tables/scores", _scored_table
    yield "tables/of folders", _table_of_tables
    for dtype in ("float64", "float32"):
        yield f"letor/dense {dtype}", partial(_letor, False, dtype)
        yield f"letor/sparse {dtype}", partial(_letor, True, dtype)
    yield "letor/folds", _letor_folds
    yield "made rows", _made
