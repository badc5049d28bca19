"""From L z back to z, and the null vectors of Rᵀ, against dense Laplacians."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from test_laplacian_root import WEIGHTINGS, assert_close

import reference
from pairgram import _core
from problems import Problem, problems, ranking_problem

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", "apart", None]


def laplacian_of(problem, pairs, weighting):
    arguments = (problem.y, problem.query, pairs, problem.v, weighting, problem.query_weight)
    return reference.laplacian(*arguments)[0]


drawn = given(
    problem=problems(integer_labels=True) | problems(),
    pairs=st.sampled_from(PAIRS),
    weighting=st.sampled_from(WEIGHTINGS),
)


@drawn
def test_solution(problem, pairs, weighting):
    compiled = ranking_problem(problem, pairs, weighting)
    pivots = _core.laplacian_pivots(compiled)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(len(problem.y), 3)) * [1, 1e-9, 1e9]
    known = z[pivots == np.arange(len(z))]
    b = laplacian_of(problem, pairs, weighting) @ z
    for threads in (1, 3):
        solved = b.copy()
        _core.solve_laplacian(compiled, solved, known, n_threads=threads)
        np.testing.assert_allclose(solved / [1, 1e-9, 1e9], z / [1, 1e-9, 1e9], atol=1e-12)


@drawn
def test_pivots(problem, pairs, weighting):
    """A row beside another one: the Laplacian of their query has no other null vector."""
    compiled = ranking_problem(problem, pairs, weighting)
    pivots = _core.laplacian_pivots(compiled)
    L = laplacian_of(problem, pairs, weighting)
    v = np.ones(len(pivots)) if problem.v is None else problem.v
    rows = np.arange(len(pivots))
    for q in np.unique(problem.query):
        counted = np.flatnonzero((problem.query == q) & (v > 0))
        own = counted[pivots[counted] == counted]
        if len(counted) and pairs is not None and len(own) < len(counted):
            assert np.linalg.matrix_rank(L[np.ix_(counted, counted)]) == len(counted) - 1
            assert (pivots[counted] == counted[0]).all()
        elif len(counted) and len(own) < len(counted):
            assert (pivots[counted] == -1).all()
    assert (pivots[v == 0] == rows[v == 0]).all()


@pytest.mark.parametrize("pairs", PAIRS)
def test_many_columns_and_any_threads(pairs):
    rng = np.random.default_rng(0)
    n = 300
    query = rng.permutation(np.repeat(np.arange(5), 60))
    y, v = rng.integers(0, 4, n) * 1.0, rng.choice([0.0, 1.0, 2.0], n)
    problem = Problem(np.empty((n, 0)), y, query, v, None)
    compiled = ranking_problem(problem, pairs, "documents")
    pivots = _core.laplacian_pivots(compiled)
    z = rng.normal(size=(n, 1100))
    b = laplacian_of(problem, pairs, "documents") @ z
    solved = []
    for threads in (1, 4):
        solved.append(b.copy())
        known = z[pivots == np.arange(n)]
        _core.solve_laplacian(compiled, solved[-1], known, n_threads=threads)
    np.testing.assert_array_equal(*solved)
    assert_close(solved[0], z, 1e-11)


@pytest.mark.parametrize("pairs", [*PAIRS[:4], None])
def test_diagonal_beside_a_weight_that_has_nearly_all(pairs):
    v = np.array([1.0, 1e-17, 2e-17, 0.0])
    problem = Problem(np.empty((4, 0)), np.array([1.0, 0.0, 2.0, 3.0]), np.zeros(4, int), v, None)
    compiled = ranking_problem(problem, pairs, "pairs")
    omega = reference.OMEGAS.get(pairs)
    expected = [
        v[i] if pairs is None else v[i] * sum(v[j] * omega(*problem.y[[i, j]]) for j in range(4))
        for i in range(4)
    ]
    np.testing.assert_allclose(_core.laplacian_diagonal(compiled), expected, rtol=1e-14)
