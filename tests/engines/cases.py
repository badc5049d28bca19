"""The table of cases: models by their inputs, and the rows that engines score."""

import sys
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from pairgram import (
    Cross,
    ELMRank,
    Kernel,
    Nystroem,
    RandomFourier,
    RandomNodes,
    RankRLS,
    RankSVM,
    make_ranking,
    scan,
)

sys.path.append(str(Path(__file__).parents[1]))  # as the tests have it
import shop
from row_value import fill_of, row_value

NAMES = [f"f{j}" for j in range(6)]
SCALES = (None, "standard", "minmax", "maxabs")
INPUTS = (*SCALES, "quantile", "raw+quantile")
POSITIVE = ("minmax", "quantile")


def _nodes(activation):
    return RandomNodes(12, activation=activation, random_state=0)


# What makes a model, given its inputs, and the inputs that it takes.
KINDS = {
    "columns": (lambda i: RankRLS(feature_map=i), INPUTS),
    "columns, RankSVM": (lambda i: RankSVM(feature_map=i), INPUTS),
    "linear kernel": (lambda i: RankRLS(feature_map=row_value(i, Kernel("linear"))), INPUTS),
    "linear nodes": (lambda i: RankRLS(feature_map=row_value(i, _nodes("linear"))), INPUTS),
    "products": (
        lambda i: RankRLS(feature_map=row_value(i, Cross([1, 4], [0, 3], keep=[2]))),
        INPUTS,
    ),
    "sigmoid nodes": (lambda i: RankRLS(feature_map=row_value(i, _nodes("sigmoid"))), INPUTS),
    "tanh nodes": (lambda i: RankRLS(feature_map=row_value(i, _nodes("tanh"))), INPUTS),
    "relu nodes": (lambda i: RankRLS(feature_map=row_value(i, _nodes("relu"))), INPUTS),
    "ELMRank": (lambda i: ELMRank(n_nodes=10, feature_map=i, random_state=0), INPUTS),
    "gaussian nodes": (lambda i: RankRLS(feature_map=row_value(i, _nodes("gaussian"))), INPUTS),
    "hardlim nodes": (lambda i: RankRLS(feature_map=row_value(i, _nodes("hardlim"))), INPUTS),
    "sine nodes": (lambda i: RankRLS(feature_map=row_value(i, _nodes("sine"))), INPUTS),
    "Fourier": (
        lambda i: RankRLS(feature_map=row_value(i, RandomFourier(20, random_state=0))),
        INPUTS,
    ),
    "Nyström": (
        lambda i: RankRLS(feature_map=row_value(i, Nystroem(n_components=20, random_state=0))),
        INPUTS,
    ),
    "rbf kernel": (lambda i: RankRLS(feature_map=row_value(i, Kernel("rbf"))), INPUTS),
    "laplacian kernel": (lambda i: RankRLS(feature_map=row_value(i, Kernel("laplacian"))), INPUTS),
    "polynomial kernel": (
        lambda i: RankRLS(feature_map=row_value(i, Kernel("polynomial"))),
        INPUTS,
    ),
    "minmax kernel": (lambda i: RankRLS(feature_map=row_value(i, Kernel("minmax"))), POSITIVE),
    "tanimoto kernel": (lambda i: RankRLS(feature_map=row_value(i, Kernel("tanimoto"))), POSITIVE),
}
PIPELINES = {
    "StandardScaler": lambda: make_pipeline(StandardScaler(), RankRLS()),
    "RobustScaler": lambda: make_pipeline(RobustScaler(), RankRLS()),
    "MinMaxScaler(clip=True)": lambda: make_pipeline(MinMaxScaler(clip=True), RankRLS()),
    "OneHotEncoder": lambda: make_pipeline(
        ColumnTransformer(
            [
                ("one", OneHotEncoder(handle_unknown="ignore"), [0]),
                ("rest", StandardScaler(), [1, 2]),
            ],
            sparse_threshold=0,
        ),
        RankRLS(),
    ),
}


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted model, and the rows on which `predict` is right."""

    kind: str
    inputs: str
    model: Any
    fills: bool = False  # whether the model fills missing values itself
    categories: tuple[int, ...] = ()  # the columns in which NaN is none of the categories
    sells: bool = False  # whether the rows are those of a shop, whose missing values are columns

    @property
    def fill_values(self):
        """What takes the place of missing values in the model, or None."""
        return fill_of(self.model[-1] if hasattr(self.model, "steps") else self.model)

    @property
    def group(self):
        """Which rows it scores, of `groups`."""
        return "shop" if self.sells else ""

    @property
    def name(self):
        """A name that every engine takes."""
        text = f"{self.kind} {self.inputs}".encode().hex()
        return f"m{text}"

    def __str__(self):
        return f"{self.kind}, {self.inputs}"


@cache
def training():
    """Return (X, y, qid): a column of categories, one with ties, and others of several scales."""
    X, y, qid = make_ranking(40, 8, 6, random_state=0)
    X = X * [1, 3, 0.1, 1, 2, 1] + [0, 5, 0, 3, -1, 20]
    X[:, 0], X[:, 3] = np.round(X[:, 0]), np.round(X[:, 3], 1)
    return X, y, qid


@cache
def rows():
    """Return (X, qid): queries of a kind of rows each. NaN is a missing value."""
    X, _, _ = training()
    rng = np.random.default_rng(0)
    ties = np.repeat(X[100:104], 3, axis=0)
    knots = np.tile(np.median(X, axis=0), (18, 1))  # every column at values of training rows
    for j in range(X.shape[1]):
        values = np.sort(np.unique(X[:, j]))
        at = values[len(values) // 3]
        # A number beside a category would be the category in float32.
        beside = values[0] if j == 0 else np.nextafter(at, np.inf)
        knots[3 * j : 3 * j + 3, j] = [at, beside, values[-1]]
    far = np.repeat(X[:2], 6, axis=0)
    for j in range(6):
        far[j, j] += 1e3 * np.ptp(X[:, j])
        far[j + 6, j] -= 1e3 * np.ptp(X[:, j])
    gaps = np.where(rng.random((12, 6)) < 0.3, np.nan, X[200:212])
    parts = {"plain": X[240:252], "ties": ties, "knots": knots, "far": far, "gaps": gaps}
    qid = np.repeat([*parts], [len(part) for part in parts.values()])
    return np.vstack([*parts.values()]), qid


@cache
def wares():
    """Return (frame, qid): numbers with ties and text, both with gaps, some of it never seen."""
    known, other = shop.frame(brands=shop.HARMLESS)[:40], shop.others(80, brands=shop.HARMLESS)
    frame = pd.concat([known, other], ignore_index=True)
    return frame, np.array([f"shop{k // 10}" for k in range(len(frame))])


@cache
def groups():
    """Return the (frame, qid) of every group of cases."""
    X, qid = rows()
    return {"": (pd.DataFrame(X, columns=NAMES), qid), "shop": wares()}


@cache
def cases():
    """Return the fitted cases."""
    X, y, qid = training()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, (make, inputs) in KINDS.items():
            for one in inputs:
                found.append(Case(kind, one or "raw", make(one).fit(X, y, qid=qid)))
        for name, make in PIPELINES.items():
            categories = (0,) if name == "OneHotEncoder" else ()
            model = make().fit(X, y, rankrls__qid=qid)
            found.append(Case("columns", name, model, categories=categories))
        missing = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)
        frame = pd.DataFrame(missing, columns=NAMES).assign(y=y, q=qid)
        for one in (None, "standard", "quantile"):
            table = scan(frame, label="y", qid="q")
            model = RankRLS(feature_map=row_value(one, fill="mean")).fit(table)
            found.append(Case("columns with filled gaps", one or "raw", model, fills=True))
        for name in shop.TRANSFORMERS:
            model = shop.fitted(name, shop.frame(brands=shop.HARMLESS))
            found.append(Case("columns", name, model, sells=True))
    return found
