"""Fitted models and statistics of every kind that a file can hold, small, of made rows."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import forms
from pairgram import (
    Cross,
    ELMRank,
    ELMRankCV,
    Fill,
    Kernel,
    Nystroem,
    Pairgram,
    Pairs,
    PairwiseELM,
    PairwiseELMCV,
    PointwiseELM,
    PointwiseELMCV,
    Quantile,
    RandomFourier,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from table_sources import scanned

N_FEATURES = 4
KERNELS = ("rbf", "laplacian", "polynomial", "linear", "tanimoto", "minmax")
ACTIVATIONS = ("linear", "sigmoid", "gaussian", "tanh", "relu", "hardlim", "sine")


def rows(n=18, seed=0):
    """Return (X, y, qid) in three queries; the entries of X have short decimals."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, N_FEATURES)), 2)
    return X, rng.integers(0, 3, n) * 1.0, np.arange(n) % 3


# Further ones, of rooms: (name, unfitted map), and (name, what `models` yields).
MORE_MAPS, MORE_MODELS = [], []
MORE_MAPS.append(("cross", Cross([0, 1], [2], keep=[3])))


def feature_maps():
    """Yield (name, unfitted map) for every class of maps and each of its settings that matters."""
    for activation in ACTIVATIONS:
        yield f"nodes {activation}", RandomNodes(6, activation, random_state=0)
    for kernel in ("rbf", "laplacian", "cauchy"):
        yield f"fourier {kernel}", RandomFourier(5, kernel=kernel, random_state=0)
    for kernel in KERNELS:
        yield f"nystroem {kernel}", Nystroem(kernel, n_components=3, random_state=0)
    yield from MORE_MAPS
    yield "nystroem kmeans", Nystroem(n_components=3, landmarks="kmeans", random_state=0)


def estimators():
    """Yield (name, unfitted estimator) of every class, kernel and feature map."""
    yield "RankRLS", RankRLS(2.0, pairs=Pairs("gain_difference", target="gain"), scale=True)
    yield (
        "RankRLS dual",
        forms.RankRLS(
            feature_map=Kernel("linear"), form="dual", pairs=Pairs(weighting="documents")
        ),
    )
    yield "RankRLS pointwise", RankRLS(pairs=Pairs(None, scope="global"))
    yield "RankRLSCV", RankRLSCV(pairs=["with_ties", "without_ties"], scale=[True, False])
    X, y, qid = rows()
    prior = FrozenEstimator(RankRLS(feature_map=RandomNodes(3, random_state=0)).fit(X, y, qid=qid))
    yield "RankRLS of a prior", RankRLS(prior=prior)
    yield "ELMRank", ELMRank(n_nodes=3, random_state=0)
    yield "ELMRank of draws", ELMRank(n_nodes=3, n_estimators=2, activation="tanh", random_state=0)
    yield "ELMRankCV", ELMRankCV([1e-3], [2.0], cv=2, n_nodes=3, random_state=0)
    for machine in (PointwiseELM, PairwiseELM):
        name = machine.__name__
        for activation in ("linear", "sigmoid", "gaussian"):
            yield f"{name} {activation}", machine(n_nodes=5, activation=activation, random_state=0)
        yield f"{name} rbf", machine(feature_map=Kernel("rbf", gamma=0.5))
    yield "PointwiseELMCV", PointwiseELMCV([1.0, 4.0], n_nodes=4, random_state=0)
    yield (
        "PairwiseELMCV",
        PairwiseELMCV([1.0, 4.0], feature_map=[Kernel("rbf", gamma=g) for g in [0.5, 1.0]]),
    )
    yield "RankSVM", RankSVM(loss="squared", pairs=Pairs("without_ties", weighting="queries"))
    yield "RankSVMCV", RankSVMCV([0.1, 1.0], cv=2)
    yield "RankNystroem", RankSVM(feature_map=Nystroem(n_components=4, random_state=0))
    yield "RankRandomFourier", RankSVM(feature_map=RandomFourier(n_components=4, random_state=0))
    yield "RankRLS dual", forms.RankRLS(form="dual")
    for kernel in KERNELS:
        yield f"RankRLS {kernel}", RankRLS(feature_map=Kernel(kernel))
    for estimator in (RankRLS, RankSVM, RankRLSCV):
        for name, feature_map in feature_maps():
            yield f"{estimator.__name__} {name}", estimator(feature_map=feature_map)


def _fit(estimator, X, y, qid, to_predict=None, **options):
    """Return a fitted clone of an estimator and rows to predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.__class__(**estimator.get_params(deep=False))
        model.fit(X, y, qid=qid, **options)
    return model, X[:5] if to_predict is None else to_predict


def models():
    """Yield (name, what returns a fitted model and rows to predict), dense and CSR."""
    X, y, qid = rows()
    S, K, single = sp.csr_array(X), X @ X.T, X.astype(np.float32)
    for name, estimator in estimators():
        yield name, partial(_fit, estimator, X, y, qid)
        yield f"{name}, CSR", partial(_fit, estimator, S, y, qid)
    for estimator in (RankRLS, PairwiseELM):
        ranker = estimator(feature_map=Kernel("precomputed"))
        yield f"{estimator.__name__} precomputed", partial(_fit, ranker, K, y, qid)
    for name, ranker in (("linear", RankRLS()), ("rbf", RankRLS(feature_map=Kernel("rbf")))):
        yield f"RankRLS {name}, float32", partial(_fit, ranker, single, y, qid)
    for kind in ("standard", "minmax", "maxabs", "quantile", "raw+quantile"):
        yield f"RankRLS of {kind}", partial(_fit, RankRLS(feature_map=kind), X, y, qid)
    nodes = RankSVM(feature_map=make_pipeline(Quantile(raw=True), RandomNodes(3, random_state=0)))
    yield "RankSVM of quantiles and nodes", partial(_fit, nodes, X, y, qid)
    half = np.where(np.arange(len(y)) < 6, 0.0, 1.0)
    few = partial(_fit, RankRLS(feature_map=Kernel("rbf")), S, y, qid, X[:5], sample_weight=half)
    yield "RankRLS rbf of some rows, CSR", few
    gaps = np.where(X < 0.2, np.nan, X)
    yield "RankRLS of gaps", partial(_fit, RankRLS(feature_map=Fill("median")), gaps, y, qid)
    yield from MORE_MODELS
    frame = _frame(X, ["a", "b b", "ç", "d\n"])
    yield "RankRLS, named columns", partial(_fit, RankRLS(), frame, y, qid)


def _fit_table(estimator):
    """Return an estimator fitted to a table with missing values, and rows to predict."""
    X, y, qid = rows()
    X[1, 1] = X[4, 2] = np.nan
    qid = np.sort(qid)
    return estimator.fit(scanned((X, y, qid))), X[:5]


MORE_MODELS.append(
    (
        "RankRLS of a table",
        partial(_fit_table, RankRLS(feature_map=make_pipeline(Fill(), Quantile(raw=True)))),
    )
)


def statistics():
    """Yield (name, what returns a Pairgram) of every kind."""
    X, y, qid = rows()
    for pairs in ("with_ties", "without_ties", "gain_difference", "label_difference", None):
        for scope in ("query", "global"):
            options = {"pairs": Pairs(pairs, scope=scope, weighting="queries", target="gain")}
            made = partial(Pairgram.from_rows, X, y, qid=qid, **options)
            yield f"Pairgram {pairs} {scope}", made
    yield (
        "Pairgram merged",
        lambda: _merged(Pairgram.from_rows(X, y, qid=qid, pairs=Pairs(scope="global"))),
    )
    for name, ids in (("str", qid.astype(str)), ("float", qid + 0.5), ("tuple", [(0,)] * len(y))):
        yield f"Pairgram, ids of {name}", partial(Pairgram.from_rows, X, y, qid=ids)
    frame = _frame(X, list("abcd"))
    yield "Pairgram, named columns", partial(Pairgram.from_rows, frame, y, qid=qid)
    gaps = partial(
        Pairgram.from_rows, np.where(X < 0.2, np.nan, X), y, qid=qid, feature_map=Fill([0.5] * 4)
    )
    yield "Pairgram of gaps", gaps
    yield "Pairgram, CSR", partial(Pairgram.from_rows, sp.csr_array(X), y, qid=qid)
    for name, feature_map in feature_maps():
        made = partial(Pairgram.from_rows, X, y, qid=qid, feature_map=feature_map)
        yield f"Pairgram {name}", made


def _frame(X, columns):
    import pandas as pd  # takes a while

    return pd.DataFrame(X, columns=columns)


def _merged(total):
    return total + total - total
