"""The whole family of least squares beside dense matrices: weights, and every kind of hold-out."""

import numpy as np
import pytest

import pairgram as pg
from axes import every
from reference import laplacian, ridge, statistics

ALPHA = 3.0
KINDS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
RNG = np.random.default_rng(1)
X = RNG.normal(size=(36, 4))
QID = np.repeat(np.arange(12), 3)
Y = np.digitize(X[:, 0] + RNG.normal(size=36), [-0.5, 0.5, 1.0]) * 1.0
V, Q = RNG.uniform(0.5, 2, 36), RNG.uniform(0.5, 2, 12)[QID]
K = pg.kernel_matrix(X, X, "rbf", gamma=0.1)
ALL = np.zeros(36, dtype=int)


@pytest.mark.parametrize("pairs", KINDS)
@every(
    weighting=["pairs", "documents", "queries"],
    target=["label", "gain"],
    scope=["query", "global"],
    scale=[False, True],
    sample_weight=[None, V],
    query_weight=[None, Q],
)
def test_weights(pairs, weighting, target, scope, scale, sample_weight, query_weight):
    if scope == "global" and query_weight is not None:
        return  # which is refused
    told = {"weighting": weighting, "target": target}
    model = pg.RankRLS(ALPHA, pairs=pg.Pairs(pairs, scope=scope, **told), scale=scale)
    model.fit(X, Y, qid=QID, sample_weight=sample_weight, query_weight=query_weight)
    query = ALL if scope == "global" and pairs is not None else QID
    S, _ = statistics(X, Y, query, pairs, sample_weight, query_weight=query_weight, **told)
    factor = 1 / np.sqrt(np.diag(S)[:-1]) if scale else None
    np.testing.assert_allclose(model.coef_, ridge(S, ALPHA, factor), rtol=1e-9, atol=1e-12)


def scores_without(unit, kind, query, pairs, v):
    """The scores of all rows by a fit of those outside a unit, by columns or by a kernel."""
    rest = ~unit
    L, _ = laplacian(Y[rest], query[rest], pairs, v[rest])
    if kind == "columns":
        H = X[rest]
        return X @ np.linalg.solve(H.T @ L @ H + ALPHA * np.eye(4), H.T @ L @ Y[rest])
    system = L @ K[np.ix_(rest, rest)] + ALPHA * np.eye(rest.sum())
    return K[:, rest] @ np.linalg.solve(system, L @ Y[rest])


UNITS = {
    "queries": (QID, {}),
    "groups": (QID // 2, {"groups": QID // 2}),
    "folds": (
        QID % 3,
        {"cv": [(np.flatnonzero(own == 0), np.flatnonzero(own)) for own in np.eye(3)[:, QID % 3]]},
    ),
}


@pytest.mark.parametrize("pairs", KINDS)
@pytest.mark.parametrize("units", UNITS)
@every(kind=["columns", "rbf"], v=[np.ones(36), V])
def test_queries_that_are_held_out(pairs, units, kind, v):
    unit_of, told = UNITS[units]
    kernel = {} if kind == "columns" else {"feature_map": pg.Kernel("rbf", gamma=0.1)}
    search = pg.RankRLSCV([ALPHA], pairs=pairs, cv=told.get("cv"), **kernel)
    search.fit(X, Y, qid=QID, groups=told.get("groups"), sample_weight=v)
    for unit in np.unique(unit_of):
        own = unit_of == unit
        expected = scores_without(own, kind, QID, pairs, v)[own]
        np.testing.assert_allclose(search.held_out_[own], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("kind", "v"), [("columns", V), ("rbf", np.ones(36))])
def test_rows_and_pairs_that_are_held_out(kind, v):
    kernel = {} if kind == "columns" else {"feature_map": pg.Kernel("rbf", gamma=0.1)}
    rows = pg.RankRLSCV([ALPHA], **kernel).fit(X, Y, sample_weight=v)
    pairs = pg.RankRLSCV([ALPHA], cv="leave-pair-out", **kernel).fit(X, Y, sample_weight=v)
    right, weights = 0.0, 0.0
    for i in range(36):
        own = np.arange(36) == i
        scores = scores_without(own, kind, ALL, "with_ties", v)
        expected = scores[i] - np.average(scores[~own], weights=v[~own])
        np.testing.assert_allclose(rows.held_out_[i], expected, rtol=1e-7, atol=1e-9)
        for j in np.flatnonzero(Y[i] > Y):
            both = own | (np.arange(36) == j)
            scores = scores_without(both, kind, ALL, "with_ties", v)
            right += v[i] * v[j] * (scores[i] > scores[j])
            weights += v[i] * v[j]
    np.testing.assert_allclose(pairs.scores_, [right / weights], rtol=1e-12)


def test_comparisons_that_are_held_out():
    winner = RNG.integers(0, 36, 90)
    loser = (winner + RNG.integers(1, 36, 90)) % 36
    weight, margin, groups = (
        RNG.uniform(0.5, 2, 90),
        RNG.uniform(0.5, 1.5, 90),
        RNG.integers(0, 9, 90),
    )
    Z = X[winner] - X[loser]

    def without(unit):
        rest = ~unit
        G = (Z[rest].T * weight[rest]) @ Z[rest] + ALPHA * np.eye(4)
        return Z[unit] @ np.linalg.solve(G, (Z[rest].T * weight[rest]) @ margin[rest])

    def found(cv, **told):
        compared = pg.Preferences(winner, loser, weight=weight, margin=margin, **told)
        return pg.RankRLSCV([ALPHA], cv=cv).fit(X, compared).held_out_

    expected = np.empty((3, 90))
    expected[2] = 0
    for c in range(90):
        expected[0, c] = without(np.arange(90) == c)[0]
    for group in range(9):
        expected[1, groups == group] = without(groups == group)
    for item in range(36):
        own = (winner == item) | (loser == item)
        expected[2, own] += without(own) / 2
    for way, scores in zip(
        (found("leave-comparison-out"), found(None, groups=groups), found("leave-item-out")),
        expected,
        strict=True,
    ):
        np.testing.assert_allclose(way, scores, rtol=1e-9, atol=1e-11)
