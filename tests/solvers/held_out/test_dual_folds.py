"""Folds of a kernel problem from its one decomposition against a refit of each."""

import numpy as np
import pytest
from hypothesis import assume, given, settings as hypothesis_settings, strategies as st
from sklearn.model_selection import KFold, ShuffleSplit

from axes import every
from pairgram import Kernel, QueryKFold, RankRLSCV, kernel_matrix
from parts.data import Pairs
from parts.model_selection import ListedSplits
from parts.solvers import DualGram, fold_scores, is_from_decomposition, split_scores
from parts.support import on_threads
from problems import Problem, problems
from reference_dual import PAIRS, WEIGHTINGS, assert_scores, data_of, explicit, refits


def one_query(rng, n, weights):
    v = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weights else None
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n).round(1)
    return Problem(X, y, np.zeros(n, int), v, None)


@hypothesis_settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(9, 40),
    weights=st.booleans(),
    pairs=st.sampled_from(["with_ties", None]),
    weighting=st.sampled_from(WEIGHTINGS),
    target=st.sampled_from(["label", "gain"]),
    kernel=st.sampled_from(["linear", "rbf"]),
)
def test_folds_of_rows_of_one_query(seed, n, weights, pairs, weighting, target, kernel):
    problem = one_query(np.random.default_rng(seed), n, weights)
    K = kernel_matrix(problem.X, kernel=kernel)
    settings = Pairs(pairs, weighting=weighting, target=target)
    data, rows = data_of(problem, K), np.arange(n)
    splits = ListedSplits(KFold(4, shuffle=True, random_state=seed % 7).split(rows))
    v = np.ones(n) if problem.v is None else problem.v
    assume(all((v[train] > 0).sum() >= 2 for train, _ in splits))
    total = DualGram(data, settings)
    ridge = total.decompose()
    assert is_from_decomposition(data, settings, True, splits)
    alphas = ridge.eigen.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    t = settings.targets(problem.y)
    scores = fold_scores(data, total.settings, ridge, splits, alphas)
    for (train, test), part in zip(splits, scores, strict=True):
        share = v[train] / v[train].sum()
        for alpha, actual in zip(alphas, part, strict=True):
            f = K @ explicit(problem, K, settings, alpha, train)
            constant = 0.0 if pairs is None else share @ (t - f)[train]
            assert_scores(actual, f[test] + constant, t)


@pytest.mark.usefixtures("decomposition")
@hypothesis_settings(max_examples=12)
@given(
    problem=problems(min_queries=3),
    pairs=st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
    kernel=st.sampled_from(["linear", "rbf"]),
)
def test_folds_of_whole_queries(problem, pairs, weighting, kernel):
    K, settings = kernel_matrix(problem.X, kernel=kernel), Pairs(pairs, weighting=weighting)
    data, rows = data_of(problem, K), np.arange(len(problem.y))
    total = DualGram(data, settings)
    tests = [rows[problem.query % 3 == k] for k in range(3)]
    splits = ListedSplits(
        (np.setdiff1d(rows, test), test) for test in tests if 0 < len(test) < len(rows)
    )
    known = [data.take(train).has_pairs(settings).any() for train, _ in splits]
    assume(len(splits) > 1 and all(known) and np.count_nonzero(data.queries.sizes) > 1)
    ridge = total.decompose()
    assert is_from_decomposition(data, settings, True, splits)
    alphas = ridge.eigen.eigenvalues.max() * np.array([1.0, 1e-2, 1e-4])
    expected = refits(problem, K, settings, alphas, splits)
    scores = fold_scores(data, total.settings, ridge, splits, alphas)
    for actual, wanted in zip(scores, expected, strict=True):
        assert_scores(actual, wanted, problem.y)


@pytest.mark.usefixtures("decomposition")
@pytest.mark.parametrize("weighting", ["pairs", "documents"])
def test_pointwise_folds_may_cut_queries(weighting):
    rng = np.random.default_rng(0)
    problem = one_query(rng, 30, True)
    problem.query, problem.query_weight = (
        np.arange(30) % 4,
        rng.choice([0.5, 2.0], 4)[np.arange(30) % 4],
    )
    K, settings = kernel_matrix(problem.X), Pairs(None, weighting=weighting)
    data = data_of(problem, K)
    total = DualGram(data, settings)
    splits = ListedSplits(KFold(3).split(problem.y))
    ridge = total.decompose()
    assert is_from_decomposition(data, settings, True, splits)
    alphas = np.array([10.0, 0.1])
    scores = fold_scores(data, settings, ridge, splits, alphas)
    for actual, wanted in zip(scores, refits(problem, K, settings, alphas, splits), strict=True):
        assert_scores(actual, wanted, problem.y)


def test_what_is_refitted():
    rng = np.random.default_rng(0)
    problem = one_query(rng, 24, False)
    problem.query = np.arange(24) // 6
    data = data_of(problem, kernel_matrix(problem.X))
    rows = np.arange(24)
    whole = list(QueryKFold(2).split(problem.X, qid=problem.query))
    cut = list(KFold(3).split(rows))

    def taken(settings, splits):
        return is_from_decomposition(data, settings, True, ListedSplits(splits))

    assert not is_from_decomposition(data, Pairs("with_ties"), False, ListedSplits(whole))
    assert taken(Pairs("without_ties"), whole)
    assert not taken(Pairs("without_ties"), cut)
    assert not taken(Pairs(None, weighting="queries"), cut)
    assert taken(Pairs("with_ties", scope="global"), cut)
    assert not taken(Pairs("without_ties", scope="global"), cut)
    assert not taken(Pairs(None), list(ShuffleSplit(2, random_state=0).split(rows)))
    assert not taken(Pairs(None), whole[:1])
    assert not taken(Pairs(None), [(train[1:], test) for train, test in whole])
    assert not taken(Pairs(None), [(rows[:-12] * 0, rows[12:]), (rows[12:], rows[:12])])


@pytest.mark.parametrize("scope", ["query", "global"])
def test_the_search_scores_folds(scope):
    problem = one_query(np.random.default_rng(1), 40, False)
    qid = None if scope == "query" else np.arange(40) // 10
    K = kernel_matrix(problem.X)
    model = RankRLSCV(
        [10.0, 0.1],
        feature_map=Kernel("precomputed"),
        pairs=Pairs(scope=scope),
        cv=4,
        scoring="pairwise_squared_error",
    )
    model.fit(K, problem.y, qid=qid)
    splits = (
        list(KFold(4, shuffle=True, random_state=0).split(K))
        if qid is None
        else list(QueryKFold(4).split(K, qid=qid))
    )
    settings = Pairs("with_ties", scope=scope)
    parts = refits(problem, K, settings, model.alphas_, splits)
    means = [
        2 * np.var(problem.y[test] - part, axis=1)
        for (_, test), part in zip(splits, parts, strict=True)
    ]
    np.testing.assert_allclose(model.scores_, np.mean(means, axis=0), rtol=1e-8)


def test_folds_are_those_of_refits_and_of_any_threads():
    problem = one_query(np.random.default_rng(2), 50, True)
    data = data_of(problem, kernel_matrix(problem.X))
    total = DualGram(data, Pairs(None))
    ridge, splits = total.decompose(), ListedSplits(KFold(5).split(problem.y))
    alphas = np.array([1.0, 0.01])
    one, more = on_threads((1, 3), lambda: fold_scores(data, total.settings, ridge, splits, alphas))
    np.testing.assert_array_equal(np.hstack(one), np.hstack(more))
    slow = split_scores(data, total, splits, lambda rest: rest.decompose().coef(alphas))
    np.testing.assert_allclose(np.hstack(one), np.hstack(slow), atol=1e-9)


@every(
    queries=[1, 5],
    pairs=["with_ties", None],
    cv=[None, 4, "leave-pair-out", ShuffleSplit(2, random_state=0)],
)
def test_a_kernel_that_is_made_of_rows_is_held_out_as_a_precomputed_one(cv, pairs, queries):
    problem = one_query(np.random.default_rng(3), 30, True)
    qid = np.arange(30) % queries if cv != "leave-pair-out" else None
    named = {
        "pairs": pairs,
        "cv": cv,
        "scoring": None if cv == "leave-pair-out" else "pairwise_squared_error",
    }
    scores = [
        RankRLSCV([10.0, 0.1], feature_map=Kernel(kernel), **named)
        .fit(X, problem.y, qid=qid, sample_weight=problem.v)
        .scores_
        for kernel, X in (("rbf", problem.X), ("precomputed", kernel_matrix(problem.X)))
    ]
    np.testing.assert_allclose(*scores, rtol=1e-9)
