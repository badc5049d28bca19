"""Ridges of many groups of rows against dense matrices, in many digits where units differ."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pairgram as pg
from axes import every
from pairgram import _core
from parts.features import node_map_of
from problems import Problem, problems, ranking_problem
from reference import laplacian, ridge, statistics

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
WEIGHTINGS = ["pairs", "documents", "queries"]
SOLVED, NO_PAIRS, UNSOLVED = range(3)


def fit_groups(problem, bounds, Y=None, pairs="with_ties", weighting="pairs", blocks=None, **named):
    """Weights of all targets (n_models, n_features) and states; Y has the targets of every row."""
    bounds, named = np.asarray(bounds, np.int64), {"alpha": 0.5, "n_threads": 1} | named
    Y = problem.y[:, None] if Y is None else Y
    return _core.fit_groups(
        ranking_problem(problem, pairs, weighting),
        bounds,
        np.full(len(bounds) - 1, Y.shape[1]),
        Y.ravel(),
        [problem.X] if blocks is None else blocks,
        **named,
    )


def rows_of(problem, begin, end):
    return np.flatnonzero((problem.query >= begin) & (problem.query < end))


def part(problem, rows):
    others = [None if one is None else one[rows] for one in (problem.v, problem.query_weight)]
    return Problem(problem.X[rows], problem.y[rows], problem.query[rows], *others)


def lists(sizes, n_features, seed=0, dtype=np.float64):
    """Queries that stand one after the other."""
    rng, query = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    n = len(query)
    X = rng.normal(size=(n, n_features)).astype(dtype)
    return Problem(X, rng.integers(0, 4, n) * 1.0, query, None, None)


@pytest.mark.parametrize("pairs", PAIRS)
@settings(max_examples=25)
@given(
    problem=problems(max_features=60),
    weighting=st.sampled_from(WEIGHTINGS),
    alpha=st.sampled_from([1e-3, 0.5, 100.0]),
    cuts=st.lists(st.integers(0, 7), max_size=4),
)
def test_groups_have_the_weights_of_dense_systems(pairs, problem, weighting, alpha, cuts):
    n_queries = len(problem.offsets) - 1
    bounds = sorted([0, n_queries, *(min(cut, n_queries) for cut in cuts)])
    named = {"pairs": pairs, "weighting": weighting, "alpha": alpha}
    weights, states, sums = fit_groups(problem, bounds, **named, tells=True)
    for g, (begin, end) in enumerate(pairwise(bounds)):
        rows = rows_of(problem, begin, end)
        if not len(rows):
            assert states[g] == UNSOLVED and np.isnan(weights[g]).all()
            continue
        own = part(problem, rows)
        given = own.y, own.query, pairs, own.v, weighting, own.query_weight
        if not laplacian(*given)[0].any():
            assert states[g] == NO_PAIRS and np.isnan(weights[g]).all()
            continue
        S, total = statistics(own.X, *given)
        size = 1e-9 * max(abs(S).max() / alpha, 1.0)
        np.testing.assert_allclose(weights[g], ridge(S, alpha), rtol=1e-9, atol=size)
        assert states[g] == SOLVED
        G, told = S[:-1, :-1], [values[g] for values in sums]
        np.testing.assert_allclose(told[0], G.diagonal(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(told[1], G @ weights[g], rtol=1e-9, atol=1e-9 * abs(S).max())
        np.testing.assert_allclose(told[2], total, rtol=1e-12)


@every(n_targets=[1, 3, 600], n_features=[7, 70], pairs=["with_ties", None])
def test_targets_of_a_group_are_fitted_side_by_side(pairs, n_features, n_targets):
    problem = lists([9, 4, 20, 60], n_features)
    Y = np.random.default_rng(1).integers(-50, 50, (93, n_targets)) / 16
    weights, _, *_ = fit_groups(problem, [0, 2, 4], Y, pairs)
    if pairs is not None:  # what all rows of a query share cancels exactly
        shared = np.exp2(40 + problem.query)[:, None]
        assert (fit_groups(problem, [0, 2, 4], Y + shared, pairs)[0] == weights).all()
    for g, rows in enumerate((slice(0, 13), slice(13, 93))):
        S, _ = statistics(problem.X[rows], problem.y[rows], problem.query[rows], pairs)
        L, _ = laplacian(problem.y[rows], problem.query[rows], pairs)
        for t in range(n_targets):
            S[:-1, -1] = problem.X[rows].T @ L @ Y[rows, t]
            found = weights[g * n_targets + t]
            np.testing.assert_allclose(found, ridge(S, 0.5), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("activation", ["linear", "sigmoid"])
@pytest.mark.parametrize("n_nodes", [5, 80])
def test_maps_are_applied_to_every_group(activation, n_nodes):
    problem = lists([9, 4, 20, 30], 6)
    nodes = pg.RandomNodes(n_nodes, activation, random_state=0).fit(problem.X)
    found = fit_groups(problem, [0, 1, 3, 4], map=node_map_of(nodes, np.float64))
    problem.X = nodes.transform(problem.X)
    np.testing.assert_allclose(found[0], fit_groups(problem, [0, 1, 3, 4])[0], rtol=1e-7, atol=1e-9)


def gap_to_the_best(problem, w, alpha):
    """f(w) - f* as a share of f(0), in 150 digits."""
    with mpmath.workdps(150):
        L = mpmath.matrix(laplacian(problem.y, problem.query, "with_ties")[0].tolist())
        X = mpmath.matrix(problem.X.astype(np.float64).tolist())
        y, w = (mpmath.matrix(values.tolist()) for values in (problem.y, w))
        G, g = X.T * L * X, X.T * L * y
        G += alpha * mpmath.eye(len(w))

        def gain(w):
            return (w.T * G * w)[0] - 2 * (w.T * g)[0]

        return float((gain(w) - gain(mpmath.lu_solve(G, g))) / (y.T * L * y)[0])


@settings(max_examples=15)
@given(
    n_features=st.sampled_from([3, 9]),
    powers=st.lists(st.integers(-60, 60), min_size=9, max_size=9),
    alpha=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_columns_in_any_units_lose_nothing(n_features, powers, alpha, seed, dtype):
    problem = lists([3, 4], n_features, seed, dtype)
    if dtype == np.float32:
        powers = [power // 2 for power in powers]
    problem.X *= np.exp2(powers[:n_features]).astype(dtype)
    problem.y[0] = 9.0
    weights, states, *_ = fit_groups(problem, [0, 2], alpha=alpha)
    if states[0] == SOLVED:  # other code is as exact, if slower
        assert gap_to_the_best(problem, weights[0], alpha) <= 1e-9
    model = pg.RankRLS(alpha).fit(problem.X, problem.y, qid=problem.query)
    assert gap_to_the_best(problem, model.coef_, alpha) <= 1e-9


@pytest.mark.parametrize("n_features", [3, 50, 100])
def test_a_group_has_the_same_bits_on_any_threads_in_a_block_of_its_own_and_alone(n_features):
    problem = lists([60, 30, 9, 2] * 40, n_features)
    bounds = np.arange(0, 161, 2)
    Y = np.random.default_rng(1).normal(size=(len(problem.y), 3))
    weights, states, *_ = fit_groups(problem, bounds, Y)
    assert not states.any()
    groups = [rows_of(problem, *pair) for pair in pairwise(bounds)]
    blocks = [problem.X[rows].copy() for rows in groups]
    for changed in ({"n_threads": 3}, {"blocks": blocks}):
        np.testing.assert_array_equal(fit_groups(problem, bounds, Y, **changed)[0], weights)
    for g, rows in enumerate(groups[:9]):
        own = part(problem, rows)
        own.query -= own.query[0]
        found = fit_groups(own, [0, 2], Y[rows])[0]
        np.testing.assert_array_equal(found, weights[3 * g : 3 * g + 3])


def test_rows_in_any_order_have_the_weights_of_rows_that_stand_together():
    problem = lists([20, 5, 40], 4)
    weights = fit_groups(problem, [0, 1, 3])[0]
    order = np.argsort(np.random.default_rng(0).random(65))
    mixed = part(problem, order)
    np.testing.assert_allclose(fit_groups(mixed, [0, 1, 3])[0], weights, rtol=1e-12)


def state_of(problem, **named):
    weights, states, *_ = fit_groups(problem, [0, len(problem.offsets) - 1], **named)
    assert np.isnan(weights).all() == (states[0] != SOLVED)
    return states[0]


def test_large_groups_are_left_to_other_code():
    assert state_of(lists([257], 256)) == state_of(lists([256], 257)) == SOLVED
    assert state_of(lists([257], 257)) == UNSOLVED
    assert state_of(lists([1024], 512)) == UNSOLVED  # of a side above 256
    assert state_of(lists([2**18], 2)) == SOLVED
    assert state_of(lists([2**18 + 1], 2)) == UNSOLVED


@every(value=[np.nan, np.inf, 1e200, 1e-200], n_features=[2, 60])
def test_rows_that_are_not_finite_or_vanish_are_left_to_other_code(n_features, value):
    problem = lists([9, 9], n_features)
    if value < 1:
        problem.X *= value
    else:
        problem.X[3, 1] = value
    assert state_of(problem) == UNSOLVED
    nodes = pg.RandomNodes(4, "tanh", random_state=0).fit(lists([9], n_features).X)
    if not np.isfinite(value):
        assert state_of(problem, map=node_map_of(nodes, np.float64)) == UNSOLVED


@pytest.mark.parametrize("n_features", [3, 60, 12])
def test_singular_systems_are_left_to_other_code(n_features):
    problem = lists([10, 10], n_features)
    assert state_of(problem, alpha=1e-9) == SOLVED
    problem.X[:, 0] = problem.X[:, 1]
    assert state_of(problem, alpha=0.0) == state_of(problem, alpha=1e-16) == UNSOLVED
    narrow = lists([10, 10], 2)
    narrow.X[:, 0] *= 1e-9
    assert state_of(narrow, alpha=0.0) == SOLVED


def test_narrow_features_beside_wide_ones_keep_their_digits_where_rows_are_few():
    problem = lists([6], 8)
    scales = np.where(np.arange(8) < 2, 1.0, 1e-6)
    problem.X *= scales
    weights, states, *_ = fit_groups(problem, [0, 1], alpha=1e-13)
    with mpmath.workdps(50):
        X, L = (
            mpmath.matrix(problem.X.tolist()),
            mpmath.matrix(laplacian(problem.y, problem.query, "with_ties")[0].tolist()),
        )
        G = X.T * L * X + mpmath.mpf(1e-13) * mpmath.eye(8)
        expected = mpmath.lu_solve(G, X.T * L * mpmath.matrix(problem.y.tolist()))
    assert states[0] == SOLVED
    expected = np.array(expected.tolist(), dtype=float).ravel()
    np.testing.assert_allclose(
        weights[0] * scales, expected * scales, rtol=0, atol=1e-9 * abs(expected * scales).max()
    )


@pytest.mark.parametrize("n_features", [7, 60])
def test_groups_of_many_rows(n_features):
    problem = lists([300, 12, 200], n_features)
    weights, states, *_ = fit_groups(problem, [0, 1, 3])
    assert (states == SOLVED).all()
    for found, rows in zip(weights, (rows_of(problem, 0, 1), rows_of(problem, 1, 3)), strict=True):
        S, _ = statistics(problem.X[rows], problem.y[rows], problem.query[rows], "with_ties")
        np.testing.assert_allclose(found, ridge(S, 0.5), rtol=1e-8, atol=1e-10)
