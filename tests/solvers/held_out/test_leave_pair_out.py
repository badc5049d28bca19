"""Leave-pair-out against explicit refits without every pair."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import reference
from axes import every
from pairgram import Kernel, PointwiseELMCV, RankRLSCV, kernel_matrix
from parts.data import Pairs, checked_data
from parts.solvers import DualGram, LeavePairOut, PairSums, RidgeModels

WEIGHTINGS = ["pairs", "documents", "queries"]
WEIGHTS = {
    "none": lambda rng, n: None,
    "levels": lambda rng, n: rng.choice([0.0, 0.5, 1.0, 3.0], n),
    "real": lambda rng, n: rng.uniform(0.2, 3.0, n),
}


def refit(H, y, v, settings, alpha, pair):
    """f_i − f_j of the model without the pair, with features H."""
    rest = np.delete(np.arange(len(y)), pair)
    t = y if settings.target == "label" else 2.0**y - 1
    weights = np.ones(len(y)) if v is None else v
    L, _ = reference.laplacian(
        y[rest], np.zeros(len(rest)), settings.kind, weights[rest], settings.weighting
    )
    G = H[rest].T @ L @ H[rest]
    w = np.linalg.solve(G + alpha * np.eye(len(G)), H[rest].T @ L @ t[rest])
    return (H[pair[0]] - H[pair[1]]) @ w


def accuracy(H, y, v, settings, alpha):
    """The share of pairs, one by one."""
    weights = np.ones(len(y)) if v is None else v
    right = total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j] and weights[i] * weights[j] > 0:
                difference = refit(H, y, v, settings, alpha, [i, j])
                credit = 0.5 if abs(difference) < 1e-13 else float(difference > 0)
                right += weights[i] * weights[j] * credit
                total += weights[i] * weights[j]
    return right / total


def problem_of(seed, n, weights, form):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.0
    X[1] = X[0]
    y = rng.integers(0, 3, n).astype(float)
    y[:2] = 0.0, 2.0
    v = WEIGHTS[weights](rng, n)
    if form == "primal":
        return X, X, y, v
    K = kernel_matrix(X) + 1e-3 * np.eye(n)
    return K, np.linalg.cholesky(K), y, v


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(5, 12),
    weights=st.sampled_from(list(WEIGHTS)),
    form=st.sampled_from(["primal", "dual"]),
    pairs=st.sampled_from(["with_ties", None]),
    weighting=st.sampled_from(WEIGHTINGS),
    target=st.sampled_from(["label", "gain"]),
)
def test_every_pair_equals_a_refit(seed, n, weights, form, pairs, weighting, target):
    X, H, y, v = problem_of(seed, n, weights, form)
    assume(v is None or (v > 0).sum() >= 4)
    data, settings = (
        checked_data(X, y, sample_weight=v),
        Pairs(pairs, scope="query", weighting=weighting, target=target),
    )
    total = (DualGram if form == "dual" else PairSums.of)(data, settings)
    ridge = total.decompose()
    alphas = ridge.eigen.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    judge = LeavePairOut.make(data, None)
    models = RidgeModels(settings, ridge, alphas, lambda: total, lambda coefs: coefs)
    size, seen = max(1.0, np.abs(settings.targets(y)).max()), []
    for first, second, found in judge._differences(models, alphas):
        for i, j, differences in zip(first, second, found.T, strict=True):
            expected = [refit(H, y, v, settings, alpha, [i, j]) for alpha in alphas]
            np.testing.assert_allclose(differences, expected, rtol=0, atol=1e-8 * size)
            seen.append((i, j))
    counts = np.ones(n, bool) if v is None else v > 0
    assert seen == list(zip(*np.nonzero((y[:, None] > y) & np.outer(counts, counts)), strict=True))


@every(
    pairs=["with_ties", None],
    form=["primal", "dual"],
    weights=WEIGHTS,
)
def test_scores_are_shares_of_pairs(weights, form, pairs):
    X, H, y, v = problem_of(3, 11, weights, form)
    settings = Pairs(pairs)
    kernel = "precomputed" if form == "dual" else None
    model = RankRLSCV(
        [10.0, 0.1], pairs=pairs, feature_map=kernel and Kernel(kernel), cv="leave-pair-out"
    )
    model.fit(X, y, sample_weight=v)
    assert model.form_ == form
    expected = [accuracy(H, y, v, settings, alpha) for alpha in (10.0, 0.1)]
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-12)
    assert model.scoring_.name == "pairwise_accuracy"


def test_rows_of_all_queries_form_pairs_of_a_global_problem():
    X, _, y, _ = problem_of(5, 12, "none", "primal")
    one = RankRLSCV([1.0, 0.1], cv="leave-pair-out").fit(X, y)
    many = RankRLSCV([1.0, 0.1], cv="leave-pair-out", pairs=Pairs(scope="global"))
    many.fit(X, y, qid=np.arange(12) // 4)
    np.testing.assert_array_equal(many.scores_, one.scores_)
    with pytest.raises(ValueError, match=r"leave-pair-out.*one query.*got 3 queries"):
        RankRLSCV(cv="leave-pair-out").fit(X, y, qid=np.arange(12) // 4)


@every(form=["primal", "dual"], weighting=WEIGHTINGS[:2], weighted=[False, True])
def test_pointwise_rows_of_several_queries(form, weighting, weighted):
    X, H, y, v = problem_of(7, 12, "levels", form)
    query = np.array([0, 1, 1, 2, 0, 1, 0, 2, 0, 0, 0, 0])
    c = np.array([0.1, 5.0, 1.0])[query] if weighted else None
    kernel = "precomputed" if form == "dual" else None
    model = RankRLSCV(
        [30.0, 1.0, 0.01],
        pairs=Pairs(None, scope="global", weighting=weighting),
        feature_map=kernel and Kernel(kernel),
    ).set_params(cv="leave-pair-out")
    model.fit(X, y, qid=query, sample_weight=v, query_weight=c)
    w = v if c is None else v * c
    for alpha, score in zip(model.alphas_, model.scores_, strict=True):
        right = total = 0.0
        for i, j in zip(*np.nonzero((y[:, None] > y) & (np.outer(v, v) > 0)), strict=True):
            rest = np.delete(np.arange(len(y)), [i, j])
            L, _ = reference.laplacian(
                y[rest], query[rest], None, v[rest], weighting, None if c is None else c[rest]
            )
            G = H[rest].T @ L @ H[rest] + alpha * np.eye(H.shape[1])
            f = H @ np.linalg.solve(G, H[rest].T @ L @ y[rest])
            right += w[i] * w[j] * (0.5 if abs(f[i] - f[j]) < 1e-13 else float(f[i] > f[j]))
            total += w[i] * w[j]
        np.testing.assert_allclose(score, right / total, rtol=1e-12)


def test_equal_rows_are_ties():
    """Without a pair of equal rows, or two left alone, nothing tells which comes first."""
    X, y = np.ones((6, 2)), np.array([0.0, 1, 2, 0, 1, 2])
    X[:, 1] = np.arange(6) // 3 * 0.7
    X[:3, 0], X[3:, 0] = 0.1, 0.2
    model = RankRLSCV([1.0], cv="leave-pair-out", pairs=None).fit(X, y)
    v = np.ones(6)
    assert model.scores_[0] == accuracy(X, y, v, Pairs(None), 1.0)
    same = RankRLSCV([1.0], cv="leave-pair-out", pairs=None).fit(np.ones((6, 2)), y)
    assert same.scores_[0] == 0.5


@pytest.mark.parametrize("seed", range(4))
def test_a_preference_that_would_be_rounding_error_is_nan(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 20)), np.arange(8.0)
    # With the smallest alpha, rows fit themselves exactly, or more than exactly by rounding.
    model = RankRLSCV([1.0, 1e-14, 1e-17], cv="leave-pair-out").fit(X, y)
    assert np.isfinite(model.scores_[0])
    assert np.isnan(model.scores_[1:]).all()


def test_searches_on_nodes_hold_pairs_out_too():
    X, _, y, _ = problem_of(6, 12, "none", "primal")
    model = PointwiseELMCV([1.0], feature_map=Kernel("linear"), cv="leave-pair-out").fit(X, y)
    expected = accuracy(X, y, None, Pairs(None), 1.0)
    np.testing.assert_allclose(model.scores_, [expected], rtol=1e-12)


def test_what_takes_long_is_refused():
    rng = np.random.default_rng(0)
    long = rng.normal(size=(5000, 150))
    with pytest.raises(ValueError, match=r"5000 rows, rank 150 and 34 alphas.*fewer alphas"):
        RankRLSCV(cv="leave-pair-out").fit(
            long, long[:, 0], qid=np.zeros(5000), sample_weight=rng.uniform(1, 2, 5000)
        )
