"""The methods that the papers compare with, beside slow references and scikit-learn's solvers."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.svm import SVC, SVR

import pairgram


def made(n_rows, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n_rows, n_features)) / 5
    y = np.rint(2 * X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n_rows))
    return X, y


def boosted_by_loops(X, y, n_rounds):
    """Freund et al. 2003: pairs one by one, the weights of the pairs kept from round to round."""
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] < y[j]]
    weights = {pair: 1 / len(pairs) for pair in pairs}
    rankers, bound = [], 1.0
    for _ in range(n_rounds):
        found = []
        for column in range(X.shape[1]):
            for threshold in sorted(set(X[:, column]))[:-1]:
                h = [int(row[column] > threshold) for row in X]
                r = sum(weight * (h[j] - h[i]) for (i, j), weight in weights.items())
                found.append((abs(r), r, column, threshold, h))
        _, r, column, threshold, h = max(found, key=lambda one: one[0])
        alpha = 0.5 * np.log((1 + r) / (1 - r))
        weights = {(i, j): w * np.exp(alpha * (h[i] - h[j])) for (i, j), w in weights.items()}
        z = sum(weights.values())
        bound *= z
        weights = {pair: weight / z for pair, weight in weights.items()}
        rankers.append((column, threshold, alpha))
    return rankers, bound, pairs


def test_rankboost_is_that_of_loops_over_pairs(script):
    X, y = made(25)
    model = script("comparators").RankBoost(12).fit(X, y)
    rankers, bound, pairs = boosted_by_loops(X, y, 12)
    np.testing.assert_allclose(np.array(model.rankers_), np.array(rankers), rtol=1e-9)
    scores = model.predict(X)
    # Theorem 1 of the paper: the share of misordered pairs is at most the product of all Z.
    assert np.mean([scores[i] >= scores[j] for i, j in pairs]) <= bound < 1


def test_rankboost_at_its_ends(script):
    RankBoost = script("comparators").RankBoost
    X = np.arange(6.0)[:, None]
    perfect = RankBoost(400).fit(X, -X[:, 0])  # falls along the column
    assert (np.diff(perfect.predict(X)) < 0).all() and np.isfinite(perfect.predict(X)).all()
    two = RankBoost(300).fit(X, (X[:, 0] > 2).astype(float))  # one ranker makes no error
    assert np.isfinite(two.predict(X)).all()
    assert pairgram.get_metric("auc")((X[:, 0] > 2).astype(float), two.predict(X)) == 1
    for X_rest, y in ((X, np.ones(6)), (np.ones((6, 2)), np.arange(6.0))):  # nothing to learn
        assert RankBoost().fit(X_rest, y).predict(X_rest).tolist() == [0] * 6


def pair_kernel(X, gamma, first, second):
    K = rbf_kernel(X, gamma=gamma)
    both = np.zeros((len(first), len(X)))
    both[np.arange(len(first)), first], both[np.arange(len(first)), second] = 1, -1
    return both, both @ K @ both.T


def test_rank_svm_is_a_kernel_svm_of_all_pairs(script):
    rng = np.random.default_rng(0)
    X = rng.random((16, 4))
    y = np.sort(np.rint(6 * X[:, 0] + 2 * rng.normal(size=16)) / 2)
    model = script("comparators").RankSVM(C=300.0, gamma=0.7).fit(X, y)
    first, second = np.nonzero(np.not_equal.outer(y, y))  # each pair twice: no intercept
    both, K = pair_kernel(X, 0.7, first, second)
    t = y[first] - y[second]
    # the rows s/|t| in the classes ±1, of half weight each, for each pair stands here twice
    svc = SVC(C=300.0 / len(t), kernel="precomputed", tol=1e-6)
    svc.fit(K / np.abs(np.outer(t, t)), np.sign(t), sample_weight=np.abs(t))
    dual = np.zeros(len(t))
    dual[svc.support_] = svc.dual_coef_[0]
    f = rbf_kernel(X, gamma=0.7) @ both.T @ (dual / np.abs(t))
    np.testing.assert_allclose(
        np.subtract.outer(model.predict(X), model.predict(X)),
        np.subtract.outer(f, f),
        atol=0.02 * np.ptp(f),
    )
    assert np.ptp(f) > 1


def test_svrank_is_a_kernel_regression_of_all_differences(script):
    rng = np.random.default_rng(1)
    X = rng.random((15, 3))
    y = np.rint(6 * X[:, 0] + rng.normal(size=15))
    model = script("comparators").SVRank(C=300.0, gamma=0.7, epsilon=0.2).fit(X, y)
    first, second = np.nonzero(~np.eye(15, dtype=bool))
    both, K = pair_kernel(X, 0.7, first, second)
    svr = SVR(C=300.0 / len(first), epsilon=0.2, kernel="precomputed", tol=1e-6)
    svr.fit(K, y[first] - y[second])
    dual = np.zeros(len(first))
    dual[svr.support_] = svr.dual_coef_[0]
    f = rbf_kernel(X, gamma=0.7) @ both.T @ dual
    ours = model.predict(X)
    np.testing.assert_allclose(ours - ours.mean(), f - f.mean(), atol=0.02 * np.ptp(f))
    assert np.ptp(f) > 1


@pytest.mark.parametrize("scoring", ["pairwise_squared_error", "pairwise_accuracy"])
def test_settings_are_the_best_of_held_out_folds(script, scoring):
    comparators = script("comparators")
    X, y = made(40, seed=2)
    folds = KFold(4, shuffle=True, random_state=0)
    grid = {"gamma": [0.1, 10.0], "C": [0.1, 10.0]}
    fitted = comparators.choose(SVR(), grid, X, y, folds=folds, scoring=scoring)
    metric = pairgram.get_metric(scoring)
    found = {}
    for gamma in grid["gamma"]:
        for C in grid["C"]:
            model = SVR(gamma=gamma, C=C)
            parts = [
                metric(y[test], model.fit(X[train], y[train]).predict(X[test]))
                for train, test in folds.split(X)
            ]
            found[gamma, C] = np.mean(parts)
    best = max(found, key=found.get) if metric.greater_is_better else min(found, key=found.get)
    assert (fitted.gamma, fitted.C) == best and len(set(found.values())) == 4
    np.testing.assert_array_equal(
        fitted.predict(X), SVR(gamma=best[0], C=best[1]).fit(X, y).predict(X)
    )


def test_folds_without_pairs_count_nothing(script):
    comparators = script("comparators")
    y = np.array([0.0, 1, 2, 3, 3, 2, 1, 0, 2, 2, 2, 2])  # the last fold has no pairs
    fitted = comparators.choose(
        comparators.RankBoost(),
        {"n_rounds": [1, 30]},
        y[:, None],
        y,
        folds=KFold(3),
        scoring="misranking",
    )
    assert fitted.n_rounds == 30  # one threshold leaves ties
