"""The objective of pairs beside the Laplacian itself, and in LightGBM."""

import pickle
from dataclasses import replace

import lightgbm
import numpy as np
import pytest

from pairgram import Pairs, RankRLS, make_ranking, trees

KINDS = {
    "with_ties": lambda a, b: np.ones(np.broadcast(a, b).shape),
    "without_ties": lambda a, b: (a != b).astype(float),
    "gain_difference": lambda a, b: np.abs(2.0**a - 2.0**b),
    "label_difference": lambda a, b: np.abs(a - b),
    "own": lambda a, b: (1 + a + b) / 2,
}


def laplacian(y, query, kind, weighting):
    """Return the Laplacian of all pairs, whose weights are divided query by query."""
    W = KINDS[kind](y[:, None], y) * (query[:, None] == query)
    for q in np.unique(query):
        own = np.ix_(query == q, query == q)
        if weighting == "queries" and W[own].any():
            W[own] /= W[own].sum() / 2  # rows with themselves counted, as everywhere
        if weighting == "documents":
            W[own] /= (query == q).sum()
    return np.diag(W.sum(axis=1)) - W


def rows(seed=0, n=60):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, n).astype(float), rng.integers(0, 7, n), rng.normal(size=n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighting", ["pairs", "documents", "queries"])
@pytest.mark.parametrize("scope", ["query", "global"])
@pytest.mark.parametrize("target", ["label", "gain"])
def test_gradient_and_curvature_are_those_of_the_laplacian(kind, weighting, scope, target):
    y, qid, f = rows()
    pairs = Pairs(KINDS.get(kind) if kind == "own" else kind, scope=scope, weighting=weighting)
    found = trees.objective(y, qid, pairs=replace(pairs, target=target))
    L = laplacian(y, qid if scope == "query" else np.zeros(len(y)), kind, weighting)
    mean = np.diag(L).mean()
    goal = y if target == "label" else 2**y - 1
    for one in (found, pickle.loads(pickle.dumps(found))):
        gradient, curvature = one(f)
        np.testing.assert_allclose(gradient, L @ (f - goal) / mean, atol=1e-12)
        np.testing.assert_allclose(curvature, np.diag(L) / mean, atol=1e-12)


def test_rows_in_any_order_have_the_same_gradient():
    y, qid, f = rows()
    order = np.random.default_rng(1).permutation(len(y))
    here, there = (
        trees.objective(y[own], qid[own], pairs="without_ties")(f[own])[0]
        for own in (slice(None), order)
    )
    np.testing.assert_allclose(there, here[order], atol=1e-12)


def test_labels_of_any_size_without_levels():
    rng = np.random.default_rng(0)
    y, qid, f = rng.normal(size=3000), np.arange(3000) // 20, rng.normal(size=3000)
    gradient, curvature = trees.objective(y, qid, pairs="with_ties")(f)
    rest = (f - y).reshape(-1, 20)
    expected = 20 * rest - rest.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(gradient, expected.ravel() / 19, atol=1e-12)
    assert (curvature == 1).all()


def test_one_tree_that_tells_every_row_is_a_step_to_the_labels():
    y, qid = np.array([2.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 1])
    settings = {"objective": trees.objective(y, qid, pairs="with_ties"), "min_data_in_leaf": 1}
    settings |= {"min_sum_hessian_in_leaf": 0, "learning_rate": 1.0, "verbosity": -1, "max_bin": 9}
    X = np.arange(4.0)[:, None]
    data = lightgbm.Dataset(X, y, params={"min_data_in_bin": 1})
    scores = lightgbm.train(settings, data, 1).predict(X)
    np.testing.assert_allclose(scores[0] - scores[1], 4.0)  # a Newton step of the curvature alone
    np.testing.assert_allclose(scores[2] - scores[3], 2.0)


def test_a_linear_model_of_the_same_loss_is_where_it_is_least():
    X, y, qid = make_ranking(20, 15, random_state=0)
    pairs = Pairs(weighting="documents")
    model = RankRLS(0.0, pairs=pairs).fit(X, y, qid=qid)
    gradient, _ = trees.objective(y, qid, pairs=pairs)(model.predict(X))
    np.testing.assert_allclose(X.T @ gradient, 0, atol=1e-8)
