"""R and its adjoint on the vectors of a matrix, against the explicit R."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from threadpoolctl import threadpool_limits

import reference
from axes import every
from pairgram import _core
from problems import Problem, compiled, problems, ranking_problem

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
WEIGHTINGS = ["pairs", "documents", "queries"]


def explicit_root(problem, pairs, weighting):
    """R, (n, n), applied to the identity."""
    root = np.eye(len(problem.y))
    _core.apply_half_laplacian(ranking_problem(problem, pairs, weighting), root)
    return root


def assert_close(actual, expected, tolerance=1e-13):
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


@given(problems(), st.sampled_from(PAIRS), st.sampled_from(WEIGHTINGS), st.integers(0, 5))
def test_adjoint_is_the_transpose(problem, pairs, weighting, width):
    root = explicit_root(problem, pairs, weighting)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(len(problem.y), width))
    adjoint = z.copy()
    _core.apply_half_laplacian(ranking_problem(problem, pairs, weighting), adjoint, adjoint=True)
    assert_close(adjoint, root.T @ z)
    x = rng.normal(size=z.shape)
    assert_close(((root @ x) * z).sum(), (x * adjoint).sum(), 1e-12)


@given(
    problem=problems(),
    pairs=st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
    axis=st.sampled_from([0, 1]),
    adjoint=st.booleans(),
    width=st.sampled_from([1, 3, 37, 1100]),  # the last more than a strip
)
def test_in_place_in_row_order(problem, pairs, weighting, axis, adjoint, width):
    root = explicit_root(problem, pairs, weighting)
    bound = ranking_problem(problem, pairs, weighting)
    laplacian, _ = reference.laplacian(
        problem.y, problem.query, pairs, problem.v, weighting, problem.query_weight
    )
    assert_close(root.T @ root, laplacian)
    x = np.random.default_rng(0).normal(size=(len(problem.y), width))
    expected = (root.T if adjoint else root) @ x
    vectors = np.ascontiguousarray(x if axis == 0 else x.T)
    threaded = vectors.copy()
    assert _core.apply_half_laplacian(bound, vectors, axis=axis, adjoint=adjoint) is None
    assert_close(vectors if axis == 0 else vectors.T, expected)
    _core.apply_half_laplacian(bound, threaded, axis=axis, adjoint=adjoint, n_threads=3)
    np.testing.assert_array_equal(threaded, vectors)


@every(pairs=PAIRS, axis=[0, 1])
def test_strips_of_many_vectors_and_a_long_query(pairs, axis):
    """More vectors than a strip, of a query of which few fit one."""
    rng = np.random.default_rng(0)
    n, width = 4200, 70
    problem = Problem(
        rng.normal(size=(n, width)),
        rng.integers(0, 5, n).astype(float),
        rng.integers(0, 2, n) * (rng.uniform(size=n) < 0.01),
        rng.choice([0.0, 1.0, 2.0], n),
        None,
    )
    bound, X, targets = compiled(problem, pairs, "documents")
    results = []
    for threads in (1, 4):
        vectors = np.array(problem.X if axis == 0 else problem.X.T, order="C")
        _core.apply_half_laplacian(bound, vectors, axis=axis, n_threads=threads)
        results.append(vectors)
    np.testing.assert_array_equal(results[1], results[0])
    root_of_X = results[0] if axis == 0 else results[0].T
    for column in (0, width // 2, width - 1):
        alone = X[:, [column]].copy()
        _core.apply_half_laplacian(bound, alone)
        assert_close(root_of_X[:, [column]], alone)
    with threadpool_limits(1, user_api="blas"):
        sums, _ = _core.gram(bound, X, targets)
    assert_close(root_of_X.T @ root_of_X, sums[:-1, :-1])


@pytest.mark.parametrize("pairs", PAIRS[:4])
def test_large_offset_does_not_cancel(pairs):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 64, size=(200, 3)) / 64, rng.integers(0, 4, 200).astype(float)
    problem = Problem(X, y, np.repeat([0, 1], [20, 180]), None, None)
    bound = ranking_problem(problem, pairs)
    expected, shifted = X.copy(), X + 2.0**40
    for vectors in (expected, shifted):
        _core.apply_half_laplacian(bound, vectors)
    np.testing.assert_allclose(shifted, expected, atol=1e-12 * np.abs(expected).max())
