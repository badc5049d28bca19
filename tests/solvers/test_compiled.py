"""Half-Laplacian, Gram and leave-query-out kernels against dense references."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from threadpoolctl import ThreadpoolController

import reference
from axes import every
from pairgram import _core
from parts.data import Pairs, checked_data
from parts.solvers import EigenPath, RidgePath, lists_out
from parts.support import threads
from problems import Problem, compiled, problems, ranking_problem

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
WEIGHTINGS = ["pairs", "documents", "queries"]
LIBRARIES = ThreadpoolController()  # looking for them takes milliseconds


def gram(*arguments, **named):
    with LIBRARIES.limit(limits=1, user_api="blas"):
        return _core.gram(*arguments, **named)


def of_labels(labels):
    """One query of rows that are sorted by their labels, whose last one may stay in its place."""
    n = len(labels)
    return Problem(np.eye(n), np.array(labels), np.zeros(n, dtype=int), None, None)


def assert_close(actual, expected, tolerance):
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties"])
def test_half_laplacian_is_the_symmetric_square_root_for_unit_weights(pairs):
    y = np.array([0.0, 1, 1, 2, 0, 2])
    problem = Problem(np.eye(6), y, np.zeros(6, dtype=int), None, None)
    root = np.eye(6)
    _core.apply_half_laplacian(ranking_problem(problem, pairs), root)
    laplacian, _ = reference.laplacian(y, problem.query, pairs)
    np.testing.assert_allclose(root, root.T, atol=1e-14)
    np.testing.assert_allclose(root @ root, laplacian, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=60)
@given(
    problem=problems(),
    pairs=st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
    block_rows=st.sampled_from([1, 2, 5, 33, 10_000, 0]),
    threads=st.sampled_from([2, 3, 17]),
)
def test_gram_of_any_blocks_and_threads(dtype, problem, pairs, weighting, block_rows, threads):
    arguments = compiled(problem, pairs, weighting, dtype)
    sums, total = gram(*arguments, block_rows=block_rows)
    expected, expected_total = reference.statistics(
        problem.X, problem.y, problem.query, pairs, problem.v, weighting, problem.query_weight
    )
    assert_close(sums, expected, 1e-13 if dtype == np.float64 else 3e-6)
    np.testing.assert_allclose(total, expected_total, rtol=1e-13)
    again, _ = gram(*arguments, block_rows=block_rows, n_threads=threads)
    np.testing.assert_array_equal(again, sums)


@every(width=[511, 724, 1023, 1024])
def test_gram_in_slots_and_in_tiles(width):
    rng = np.random.default_rng(width)
    query = np.repeat(np.arange(12), rng.integers(1, 50, 12))
    y = rng.integers(0, 3, len(query)).astype(float)
    problem = Problem(rng.normal(size=(len(query), width)), y, query, None, None)
    expected, _ = reference.statistics(problem.X, y, query, "without_ties")
    for dtype, block_rows in itertools.product((np.float64, np.float32), (16, 0)):
        arguments = compiled(problem, "without_ties", dtype=dtype)
        sums, _ = gram(*arguments, block_rows=block_rows, n_threads=1)
        assert_close(sums, expected, 1e-13 if dtype == np.float64 else 3e-6)
        threaded, _ = gram(*arguments, block_rows=block_rows, n_threads=4)
        np.testing.assert_array_equal(threaded, sums)


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties"])
def test_tiny_weights_do_not_vanish_where_parts_are_joined(pairs):
    rng = np.random.default_rng(0)
    X, y, query = rng.normal(size=(200, 3)), rng.integers(0, 4, 200).astype(float), np.zeros(200)
    tiny = Problem(X, y, query.astype(int), np.full(200, 1e-160), None)
    found, _ = gram(*compiled(tiny, pairs, "documents"), block_rows=8)
    ones = Problem(X, y, query.astype(int), np.ones(200), None)
    expected, _ = gram(*compiled(ones, pairs, "documents"), block_rows=8)
    np.testing.assert_allclose(found, 1e-160 * expected, rtol=1e-12)


@every(block_rows=[8, 0], pairs=PAIRS[:4])
def test_large_offset_does_not_cancel(pairs, block_rows):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 64, size=(200, 3)) / 64, rng.integers(0, 4, 200).astype(float)
    query = np.repeat([0, 1], [20, 180])
    arguments = compiled(Problem(X, y, query, None, None), pairs)
    expected, _ = gram(*arguments, block_rows=block_rows)
    arguments = compiled(Problem(X + 2.0**40, y, query, None, None), pairs)
    shifted, _ = gram(*arguments, block_rows=block_rows)
    np.testing.assert_allclose(shifted, expected, rtol=1e-12)


def test_a_nan_reaches_the_diagonal():
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(9, 3)), np.zeros(9), np.repeat([0, 1], [8, 1]), None, None)
    problem.X[8, 1] = np.nan  # in a query without pairs
    for pairs in PAIRS:
        arguments = compiled(problem, pairs)
        sums, _ = gram(*arguments)
        assert np.isnan(sums[1, 1])
        assert np.isfinite(sums[0, 0])


def test_read_only_input_is_taken():
    rng = np.random.default_rng(0)
    y = rng.normal(size=6)
    problem = Problem(rng.normal(size=(6, 2)), y, np.zeros(6, dtype=int), None, None)
    bound, X, targets = compiled(problem, "with_ties")
    X.setflags(write=False)
    gram(bound, X, targets)


def path_of(S, scale=None):
    """The path of statistics of [X, y], with features scaled."""
    values, vectors = np.linalg.eigh(S[:-1, :-1])
    basis = vectors if scale is None else scale[:, None] * vectors
    return RidgePath(EigenPath(np.maximum(values, 0), basis, vectors.T @ S[:-1, -1]))


def held_out(problem, pairs, path, alphas, n_threads=1, weighting="pairs", dtype=np.float64):
    """The scores of queries by models without them."""
    named = {"sample_weight": problem.v, "query_weight": problem.query_weight}
    data = checked_data(problem.X.astype(dtype), problem.y, qid=problem.query, **named)
    settings = Pairs(pairs, weighting=weighting)
    with threads(n_threads):
        return lists_out(data, settings, path, data.held_together, alphas)[0]


@settings(deadline=None)
@given(
    problem=problems(min_queries=2),
    pairs=st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
    scaled=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_leave_query_out_equals_refits(problem, pairs, weighting, scaled, dtype):
    problem.X = problem.X.astype(dtype).astype(float)
    named = {
        "v": problem.v,
        "weighting": weighting,
        "query_weight": problem.query_weight,
    }
    S, _ = reference.statistics(problem.X, problem.y, problem.query, pairs, **named)
    unscaled = S
    largest = np.linalg.eigvalsh(S[:-1, :-1]).max()
    if not largest > 1e-12:
        return
    scale = None
    if scaled and (np.diag(S)[:-1] > 1e-9 * largest).all():
        scale = 1 / np.sqrt(np.diag(S)[:-1])
        S = np.append(scale, 1)[:, None] * S * np.append(scale, 1)
        largest = np.linalg.eigvalsh(S[:-1, :-1]).max()
    alphas = largest * np.array([10.0, 1.0, 1e-2, 1e-4])
    path = path_of(S, scale)
    scores = [held_out(problem, pairs, path, alphas, n, weighting, dtype) for n in (1, 3)]
    np.testing.assert_array_equal(scores[0], scores[1])
    for q in np.unique(problem.query):
        rest, held = problem.query != q, problem.query == q
        weights = {k: value[rest] for k, value in named.items() if isinstance(value, np.ndarray)}
        R, _ = (
            reference.statistics(
                problem.X[rest], problem.y[rest], problem.query[rest], pairs, **{**named, **weights}
            )
            if rest.any()
            else (np.zeros_like(S), 0)
        )
        for alpha, row in zip(alphas, scores[0], strict=True):
            expected = problem.X[held] @ reference.ridge(R, alpha, scale)
            full = np.abs(problem.X) @ np.abs(reference.ridge(unscaled, alpha, scale))
            tolerance = (
                1e-9 * max(full.max(), np.abs(expected).max()) + 1e-10 * abs(problem.y).max()
            )
            np.testing.assert_allclose(row[held], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("n_features", "n_alphas"), [(5, 1), (140, 9), (140, 37)])
def test_leave_query_out_of_many_columns_and_alphas(n_features, n_alphas):
    rng = np.random.default_rng(n_features)
    query = np.repeat(np.arange(6), [1, 2, 50, 131, 150, 300])
    X, y = rng.normal(size=(len(query), n_features)), rng.normal(size=len(query))
    S, _ = reference.statistics(X, y, query, "with_ties")
    path = path_of(S)
    alphas = np.geomspace(1e2, 1e-3, n_alphas) * path.largest
    scores = held_out(Problem(X, y, query, None, None), "with_ties", path, alphas)
    for q in range(6):
        R, _ = reference.statistics(X[query != q], y[query != q], query[query != q], "with_ties")
        expected = [X[query == q] @ reference.ridge(R, alpha) for alpha in alphas]
        np.testing.assert_allclose(scores[:, query == q], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("length", [50, 20])  # more and fewer than features
def test_leave_query_out_at_high_leverage_takes_the_direct_solver(length):
    """One query carries nearly all of a direction, so conjugate gradients would crawl."""
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(6), length)
    X = rng.normal(size=(len(query), 40)) * np.geomspace(1, 1e-4, 40)
    X[query == 2] *= 1e3
    y = rng.normal(size=len(query))
    problem = Problem(X, y, query, None, None)
    S, _ = reference.statistics(X, y, query, "with_ties")
    path = path_of(S)
    alphas = path.largest * np.array([1e-6, 1e-8])
    scores = held_out(problem, "with_ties", path, alphas)
    for q in range(6):
        R, _ = reference.statistics(X[query != q], y[query != q], query[query != q], "with_ties")
        for alpha, row in zip(alphas, scores, strict=True):
            expected = X[query == q] @ reference.ridge(R, alpha)
            np.testing.assert_allclose(row[query == q], expected, atol=1e-6 * np.ptp(expected))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(problem=problems(), pairs=st.sampled_from(PAIRS), block_rows=st.sampled_from([2, 33, 0]))
@example(problem=of_labels([1.0, 0.0, 2.0]), pairs="without_ties", block_rows=0)
@example(problem=of_labels([1.0, 2.0, 0.0]), pairs="without_ties", block_rows=0)
def test_mapped_rows_are_those_of_the_map(dtype, problem, pairs, block_rows):
    """Statistics map rows on the way: the same as mapping them first."""
    rng = np.random.default_rng(0)
    n_inputs = problem.X.shape[1]
    make = _core.NodeMap64 if dtype == np.float64 else _core.NodeMap32
    node_map = make(
        rng.uniform(-1, 1, (n_inputs, 7)).astype(dtype),
        rng.uniform(0, 1, 7).astype(dtype),
        np.array([0, 0, 0, 0, 0, 0.5, 0.5], dtype=dtype),
        [(0, 3, "sigmoid"), (3, 5, "linear"), (5, 7, "gaussian")],
    )
    bound, X, targets = compiled(problem, pairs, dtype=dtype)
    with LIBRARIES.limit(limits=1, user_api="blas"):
        mapped = node_map.map(X, n_threads=2)
        expected, _ = _core.gram(bound, mapped, targets)
        actual, _ = _core.gram(bound, X, targets, map=node_map, block_rows=block_rows)
        assert_close(actual, expected, 1e-12 if dtype == np.float64 else 1e-5)
