"""Weights, features and labels at the ends of the range of numbers: right, or refused by name."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import forms
import pairgram as pg
from axes import every
from parts.data import Pairs, apply_half_laplacian, checked_data
from problems import BY_STEPS

RNG = np.random.default_rng(0)
N = 48
X, Y, QID = RNG.normal(size=(N, 4)), RNG.integers(0, 3, N).astype(float), np.arange(N) // 6
FEW = RNG.random(N) < 0.6
NODES = {"n_nodes": 8, "random_state": 0}
MODELS = {
    "RankRLS": pg.RankRLS(),
    "gain": pg.RankRLS(pairs="gain_difference"),
    "without_ties": pg.RankRLS(pairs="without_ties"),
    "pointwise": pg.RankRLS(pairs=None),
    "dual": forms.RankRLS(form="dual"),
    "rbf": pg.RankRLS(feature_map=pg.Kernel("rbf")),
    "rbf, gain": pg.RankRLS(feature_map=pg.Kernel("rbf"), pairs="gain_difference"),
    "queries": pg.RankRLS(pairs=pg.Pairs(weighting="queries")),
    "documents": pg.RankRLS(pairs=pg.Pairs(weighting="documents")),
    "scale": pg.RankRLS(scale=True),
    "global": pg.RankRLS(pairs=pg.Pairs(scope="global")),
    "RankRLSCV": pg.RankRLSCV(),
    "RankRLSCV, dual": forms.RankRLSCV(form="dual"),
    "RankRLSCV, scale": pg.RankRLSCV(scale=True),
    "RankRLSCV, folds": pg.RankRLSCV(cv=3),
    "PairwiseELM": pg.PairwiseELM(activation="sigmoid", **NODES),
    "PairwiseELMCV": pg.PairwiseELMCV(**NODES),
    "ELMRank": pg.ELMRank(**NODES),
    "ELMRankCV": pg.ELMRankCV([1e-3], [1024.0], cv=3, **NODES),
    "RankSVM": pg.RankSVM(),
    "RankSVMCV": pg.RankSVMCV(cv=3),
    "RankNystroem": pg.RankSVM(feature_map=pg.Nystroem(n_components=10, random_state=0)),
}
SIZES = [1e50, 1e100, 1e153, 1e200, 1e-50, 1e-100, 1e-120, 1e-153, 1e-180, 1e-200, 1e-300]


def right_or_refused(model, rows, labels, weights):
    """Fit; a model must be finite and rank, and no warning is given: warnings are errors here."""
    try:
        scores = model.fit(rows, labels, qid=QID, sample_weight=weights).predict(rows)
    except ValueError as error:
        assert any(
            word in str(error)
            for word in ("too large", "too small", "takes labels from", "of at most")
        ), error
        return False
    assert np.isfinite(model.coef_).all() and np.isfinite(scores).all()
    assert model.coef_.any() and np.ptp(scores) > 0
    return True


@every(name=MODELS)
def test_weights(name):
    model = MODELS[name]
    passed = [right_or_refused(model, X, Y, np.full(N, size)) for size in SIZES]
    assert passed[0] and passed[4]
    if "ELMRank" in name:  # whose objective is a mean
        assert all(passed)
        expected = model.fit(X, Y, qid=QID).coef_
        for size in (2.0**600, 2.0**-1000):
            weighted = model.fit(X, Y, qid=QID, sample_weight=np.full(N, size)).coef_
            np.testing.assert_allclose(weighted, expected, rtol=1e-10)


@every(name=MODELS)
def test_weights_beside_others(name):
    for size in SIZES:
        passed = right_or_refused(MODELS[name], X, Y, np.where(FEW, size, 1.0))
        assert passed or size > 1e100 or size < 1e-180


@every(name=[n for n in MODELS if not any(k in n for k in ("rbf", "Nys"))])
def test_features(name):
    nodes = "ELM" in name
    for size in SIZES:
        if not (nodes and size < 1):  # nodes see equal rows
            passed = right_or_refused(MODELS[name], X * size, Y, None)
            assert passed or nodes or size > 1e100 or size < 1e-120


@every(name=[n for n in MODELS if "gain" not in n and "SVM" not in n])
def test_labels(name):
    for size in SIZES:
        labels = Y * size
        if size < 1e-300:
            labels = Y * 1e-250
        assert right_or_refused(MODELS[name], X, labels, None) or size > 1e100


def test_one_feature_beside_others():
    """A tiny feature counts for nothing, unless features are scaled to like size."""
    rows = X * [1, 1, 1e-200, 1]
    others = pg.RankRLS().fit(X[:, [0, 1, 3]], Y, qid=QID).coef_
    np.testing.assert_allclose(pg.RankRLS().fit(rows, Y, qid=QID).coef_[[0, 1, 3]], others)
    constant = np.where(np.arange(4) == 2, 1e-200, X)  # does not vary: nothing is lost
    assert pg.RankRLS(scale=True).fit(constant, Y, qid=QID).coef_[2] == 0


def test_features_that_do_not_vary_are_no_error():
    for rows in (np.zeros((N, 3)), np.full((N, 3), 1e-200), np.repeat(X[::6], 6, axis=0)):
        for model in (pg.RankRLS(), pg.RankRLS(feature_map=pg.Kernel("rbf"))):
            assert np.isfinite(model.fit(rows, Y, qid=QID).predict(rows)).all()


def test_sparse_rows(set_limits):
    set_limits(**BY_STEPS)
    for rows, weights in ((X * 1e-200, None), (X, np.full(N, 1e-200)), (X, np.full(N, 1e154))):
        with pytest.raises(ValueError, match=r"too small|too large"):
            pg.RankRLS().fit(sp.csr_array(rows), Y, qid=QID, sample_weight=weights)
    pg.RankRLS().fit(sp.csr_array(np.eye(N, 4) * 0), Y, qid=QID)


@every(
    tiny=[1e-100, 1e-120, 1e-150],
    pairs=["with_ties", "without_ties", "gain_difference", "label_difference"],
)
def test_dual_and_primal_agree_beside_tiny_weights(pairs, tiny):
    weights = np.where(FEW, tiny, 1.0)
    named = {"qid": QID, "sample_weight": weights}
    primal = forms.RankRLS(pairs=pairs, form="primal").fit(X, Y, **named).predict(X)
    for model in (
        forms.RankRLS(pairs=pairs, form="dual"),
        pg.RankRLS(pairs=pairs, feature_map=pg.Kernel("linear")),
    ):
        np.testing.assert_allclose(model.fit(X, Y, **named).predict(X), primal, atol=1e-11)
    kernel = pg.RankRLS(pairs=pairs, feature_map=pg.Kernel("precomputed")).fit(X @ X.T, Y, **named)
    np.testing.assert_allclose(kernel.predict(X @ X.T), primal, atol=1e-10)


def test_the_root_of_a_laplacian_and_its_adjoint_beside_tiny_weights():
    """X' R y is the same from either side, for rows of weights that are far apart."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(2, 9))
        weights = 10.0 ** rng.choice([0, -100, -200, -250], n)
        data = checked_data(rng.normal(size=(n, 1)), rng.integers(0, 3, n), sample_weight=weights)
        for pairs in ("gain_difference", "label_difference"):
            settings = Pairs(pairs)
            root = apply_half_laplacian(data.problem(settings), np.eye(n))
            adjoint = apply_half_laplacian(data.problem(settings), np.eye(n), adjoint=True)
            assert np.isfinite(adjoint).all()
            np.testing.assert_allclose(adjoint, root.T, rtol=1e-9, atol=1e-14 * abs(root).max())


def exact_statistics(rows, labels, weights, omega):
    """[X, y]' L [X, y] in rational numbers."""
    H = [[Fraction(float(x)) for x in (*row, y)] for row, y in zip(rows, labels, strict=True)]
    v = [Fraction(float(w)) for w in weights]
    G = [[Fraction(0)] * len(H[0]) for _ in H[0]]
    for i, j in itertools.combinations(range(len(H)), 2):
        w = v[i] * v[j] * Fraction(float(omega(labels[i], labels[j])))
        d = [a - b for a, b in zip(H[i], H[j], strict=True)]
        G = [[G[k][m] + w * d[k] * d[m] for m in range(len(d))] for k in range(len(d))]
    return np.array([[float(g) for g in row] for row in G])


@pytest.mark.parametrize("decades", [6, 12, 16])
def test_weights_of_one_query_that_span_many_decades(decades):
    omegas = {
        "with_ties": lambda a, b: 1.0,
        "without_ties": lambda a, b: float(a != b),
        "low": lambda a, b: ((a < 2) & (b < 2)) * 1.0,  # tied pairs of some labels
    }
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows, labels = rng.normal(size=(10, 2)), rng.integers(0, 4, 10).astype(float)
        weights = 10.0 ** rng.uniform(-decades, decades, 10)
        for name, omega in omegas.items():
            expected = exact_statistics(rows, labels, weights, omega)
            if expected.any():
                pairs = omega if name == "low" else name
                found = pg.Pairgram.from_rows(rows, labels, pairs=pairs, sample_weight=weights)
                found = np.block([[found.G, found.g[:, None]], [found.g, found.yy]])
                assert np.abs(found - expected).max() <= 1e-14 * np.abs(expected).max()


def test_RankSVM_sees_the_order_of_labels_of_any_size():
    far = np.array([1e-300, 2e-300, 1e300])[Y.astype(int)]
    for model in (pg.RankSVM(), pg.RankSVMCV([0.1, 1.0], cv=3, scoring="kendall")):
        expected = model.fit(X, Y, qid=QID).coef_
        np.testing.assert_array_equal(model.fit(X, far, qid=QID).coef_, expected)
    frame = {**dict(zip("abcd", X.T, strict=True)), "y": far, "q": QID}
    table = pg.scan(pd.DataFrame(frame), label="y", qid="q")
    np.testing.assert_allclose(model.fit(table).coef_, expected, rtol=1e-12)
