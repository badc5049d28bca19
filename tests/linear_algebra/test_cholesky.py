"""The Cholesky factorisation over own threads, and the solver on top of it, against NumPy."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings, strategies as st
from threadpoolctl import threadpool_limits

from axes import every
from pairgram import Pairgram, _core
from parts.solvers import solve_definite
from parts.support import on_threads

# Around the orders at which halves, tiles and their width change.
ORDERS = (1, 2, 3, 63, 64, 65, 127, 128, 129, 255, 256, 257, 383, 384, 385, 511, 512, 513, 1025)
EPS = float(np.finfo(np.float64).eps)


def cholesky(matrix, n_threads=1):
    with threadpool_limits(1, user_api="blas"):
        return _core.cholesky(matrix, n_threads)


def slow_cholesky(A):
    """Return L, or the row of the first pivot that is not positive, column by column."""
    L = np.zeros_like(A)
    for j in range(len(A)):
        column = A[j:, j] - L[j:, :j] @ L[j, :j]
        if not column[0] > 0:
            return j
        L[j:, j] = column / np.sqrt(column[0])
    return L


def definite(order, rng, spread=20):
    """Return a symmetric matrix of a condition number of 1e3, scaled unevenly by powers of 2."""
    A = rng.normal(size=(order, order))
    A = A @ A.T / order
    A += 4e-3 * np.eye(order)
    scale = 2.0 ** rng.integers(-spread, spread + 1, size=order)
    A *= scale[:, None] * scale
    return (A + A.T) / 2


def with_marked_triangle(A, rng):
    """Return A with arbitrary values above the diagonal, and those."""
    above = np.triu(rng.normal(size=A.shape), 1)
    return np.tril(A) + above, above


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(ORDERS), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_factor(order, n_threads, seed):
    rng = np.random.default_rng(seed)
    A = definite(order, rng)
    matrix, above = with_marked_triangle(A, rng)
    assert cholesky(matrix, n_threads) == order
    np.testing.assert_array_equal(np.triu(matrix, 1), above)
    L = np.tril(matrix)
    root = np.sqrt(np.diag(A))  # |L Lᵀ − A| <= O(n eps) sqrt(a_ii a_jj), Demmel 1989
    assert np.max(np.abs(L @ L.T - A) / root[:, None] / root) < 4 * order * EPS
    assert (np.diag(L) > 0).all()
    if order <= 257:
        expected = slow_cholesky(A)
        np.testing.assert_allclose(L / root[:, None], expected / root[:, None], atol=1e-11)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(ORDERS[:15]), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_first_pivot_that_is_not_positive(data, order, n_threads, seed):
    rng = np.random.default_rng(seed)
    A = definite(order, rng)
    for row in data.draw(st.lists(st.integers(0, order - 1), min_size=1, max_size=3)):
        A[row, row] *= data.draw(st.sampled_from([-1.0, 0.5, np.nan]))
    expected = slow_cholesky(A)
    matrix, above = with_marked_triangle(A, rng)
    n_positive = cholesky(matrix, n_threads)
    assert n_positive == (order if isinstance(expected, np.ndarray) else expected)
    np.testing.assert_array_equal(np.triu(matrix, 1), above)


@every(row=[0, 200, 384], order=[385, 513, 1025])
def test_a_pivot_of_an_integer_matrix(order, row):
    """All pivots of L Lᵀ with integer L are exact: the one that is 0 is found at its row."""
    rng = np.random.default_rng(order + row)
    L = np.tril(rng.integers(-1, 2, size=(order, order)), -1) + np.eye(order)
    L[row, row] = 0
    for n_threads in (1, 2, 3):
        assert cholesky(L @ L.T, n_threads) == row


@pytest.mark.parametrize("order", [300, 385, 500, 1000, 1300])
def test_same_bits_for_any_number_of_threads(order):
    A = definite(order, np.random.default_rng(order))
    one = A.copy()
    cholesky(one, 1)
    for n_threads in (2, 3, 2, 3):
        more = A.copy()
        cholesky(more, n_threads)
        np.testing.assert_array_equal(more, one)


def test_more_threads_than_tiles():
    A = definite(400, np.random.default_rng(0))
    one, many = A.copy(), A.copy()
    assert cholesky(one, 1) == cholesky(many, 64) == 400
    np.testing.assert_array_equal(many, one)


def test_trivial_orders():
    assert cholesky(np.empty((0, 0))) == 0
    one = np.array([[4.0]])
    assert cholesky(one) == 1
    assert one == 2
    assert cholesky(np.array([[0.0]])) == 0


@pytest.mark.parametrize("matrix", [np.eye(3)[:2].copy(), np.ones(4), np.ones((2, 2, 2))])
def test_a_matrix_that_is_not_square(matrix):
    with pytest.raises(ValueError, match="matrix must be"):
        _core.cholesky(matrix)


def test_arrays_that_would_be_copied_or_must_not_be_written():
    A = definite(5, np.random.default_rng(0))
    for wrong in (np.asfortranarray(A), A.astype(np.float32), A[:3, :3], A.tolist()):
        with pytest.raises(TypeError):
            _core.cholesky(wrong)
    kept = A.copy()
    kept.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        _core.cholesky(kept)
    np.testing.assert_array_equal(kept, A)
    buffer = bytearray(A.nbytes + 1)
    unaligned = np.frombuffer(buffer, A.dtype, offset=1).reshape(A.shape)
    with pytest.raises(ValueError, match="aligned"):
        _core.cholesky(unaligned)


@pytest.mark.parametrize("order", [1, 5, 128, 400])
def test_solve(order):
    rng = np.random.default_rng(order)
    A, target = definite(order, rng, spread=0), rng.normal(size=order)
    matrix, above = with_marked_triangle(A, rng)
    kept = target.copy()
    (solution,) = on_threads([2], lambda: solve_definite(matrix, target))
    expected = np.linalg.solve(A, target)
    np.testing.assert_allclose(solution, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_array_equal(target, kept)
    np.testing.assert_array_equal(np.triu(matrix, 1), above)
    (more,) = on_threads([3], lambda: solve_definite(A.copy(), target))
    np.testing.assert_array_equal(more, solution)


def test_solve_a_singular_matrix():
    rng = np.random.default_rng(0)
    thin = rng.normal(size=(450, 30))
    assert solve_definite(thin @ thin.T, np.ones(450)) is None
    for size in (1.0, 1e-15, 1e15, 1e-100):  # units of the unknowns do not matter
        units = np.diag([1.0, size])
        almost = units @ np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]]) @ units
        assert solve_definite(almost, np.ones(2)) is None
        found = solve_definite(units @ [[1.0, 0.5], [0.5, 1.0]] @ units, units @ np.ones(2))
        np.testing.assert_allclose(found, [2 / 3, 2 / 3 / size], rtol=1e-15)
    assert solve_definite(np.diag([1.0, -1.0]), np.ones(2)) is None
    assert solve_definite(np.empty((0, 0)), np.empty(0)).shape == (0,)


def test_ridge_of_many_features_has_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(900, 420)), rng.normal(size=900), np.arange(900) // 30
    one, *others = on_threads((1, 2, 3), lambda: Pairgram.from_rows(X, y, qid=qid).solve(0.5))
    for other in others:
        np.testing.assert_array_equal(other, one)


@every(order=[*ORDERS, 300])
def test_the_inverse_of_a_factor(order):
    rng = np.random.default_rng(order)
    L, _ = with_marked_triangle(rng.normal(size=(order, order)) / np.sqrt(order), rng)
    L[np.diag_indices(order)] = 2.0 ** rng.integers(0, 3, order)
    L[np.triu_indices(order, 1)] = np.nan  # is not read
    with threadpool_limits(1, user_api="blas"):
        inverse, other = (_core.invert_transposed(L, n_threads) for n_threads in (1, 3))
    np.testing.assert_array_equal(inverse, other)
    np.testing.assert_array_equal(np.tril(inverse, -1), 0)
    expected = scipy.linalg.solve_triangular(np.tril(L), np.eye(order), lower=True).T
    np.testing.assert_allclose(inverse, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_only_square_factors_are_inverted():
    with pytest.raises(ValueError, match="factor must be square"):
        _core.invert_transposed(np.ones((3, 2)), 1)
