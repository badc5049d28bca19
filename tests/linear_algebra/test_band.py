"""The band form of symmetric matrices, over own threads, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from threadpoolctl import threadpool_limits

from pairgram import _core
from parts.solvers import BandForm, band_width

EPS = float(np.finfo(np.float64).eps)
# Around multiples of the width, of strips of rows, and of what is reflected one by one.
WIDTHS = (1, 2, 7, 8, 9, 16, 33)
ORDERS = (1, 2, 3, 5, 8, 15, 16, 17, 18, 31, 32, 33, 34, 35, 64, 65, 99, 130, 161, 257, 300)


@pytest.fixture(autouse=True)
def _one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def symmetric(kind, order, rng):
    """Return a symmetric matrix with entries of at most about 1."""
    H = rng.normal(size=(order, order)) / np.sqrt(order)
    if kind == "any":
        return (H + H.T) / 2
    if kind == "definite":
        return H @ H.T
    if kind == "low rank":
        return H[:, : order // 3] @ H[:, : order // 3].T
    if kind == "repeated":
        Q = np.linalg.qr(H)[0]
        return Q @ np.diag(rng.integers(0, 3, order) * 0.5) @ Q.T
    if kind == "diagonal":
        return np.diag(rng.uniform(size=order))
    if kind == "tiny beside large":
        A = H @ H.T
        A[1::2] *= 1e-150
        A[:, 1::2] *= 1e-150
        return A
    return np.zeros((order, order))


KINDS = ("any", "definite", "low rank", "repeated", "diagonal", "tiny beside large", "zero")


def reduce(A, width, n_threads=1):
    """Return the overwritten matrix, the band and the factors; the lower triangle must stay."""
    marked = np.tril(np.random.default_rng(0).normal(size=A.shape), -1)
    matrix = np.triu(A) + marked
    band, factors = _core.reduce_to_band(matrix, width, n_threads)
    np.testing.assert_array_equal(np.tril(matrix, -1), marked)
    return matrix, band, factors


def full(band):
    n = len(band)
    B = np.zeros((n, n))
    for d in range(min(band.shape[1], n)):
        i = np.arange(n - d)
        B[i, i + d] = B[i + d, i] = band[: n - d, d]
    return B


def basis(matrix, factors, n_threads=1):
    rows = np.eye(len(matrix))
    _core.apply_band_basis(matrix, factors, rows, False, n_threads)
    return rows.T


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(ORDERS),
    st.sampled_from(WIDTHS),
    st.sampled_from(KINDS),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_reduction(order, width, kind, n_threads, seed):
    A = symmetric(kind, order, np.random.default_rng(seed))
    matrix, band, factors = reduce(A, width, n_threads)
    Q, bound = basis(matrix, factors, n_threads), 30 * np.sqrt(order) * EPS
    np.testing.assert_allclose(Q.T @ Q, np.eye(order), rtol=0, atol=bound)
    np.testing.assert_allclose(Q @ full(band) @ Q.T, A, rtol=0, atol=bound * np.linalg.norm(A, 2))
    back = np.eye(order)
    _core.apply_band_basis(matrix, factors, back, True, n_threads)
    np.testing.assert_allclose(back, Q, rtol=0, atol=bound)
    _core.form_band_basis(matrix, factors, n_threads)
    np.testing.assert_allclose(matrix, Q.T, rtol=0, atol=bound)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(ORDERS),
    st.sampled_from(WIDTHS),
    st.sampled_from(KINDS),
    st.integers(0, 2**32 - 1),
)
def test_largest_eigenvalue(order, width, kind, seed):
    A = symmetric(kind, order, np.random.default_rng(seed))
    _, band, _ = reduce(A, width)
    values = np.linalg.eigvalsh(A)
    bound = 30 * np.sqrt(order) * EPS * np.abs(values).max()
    assert abs(_core.largest_of_band(band) - values[-1]) <= bound
    assert abs(_core.largest_of_band(-band) + values[0]) <= bound


@settings(max_examples=36, deadline=None)
@given(
    st.sampled_from(ORDERS),
    st.sampled_from(WIDTHS),
    st.integers(0, 20),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_shifted_systems(order, width, n_shifts, n_threads, seed):
    rng = np.random.default_rng(seed)
    band = reduce(symmetric("any", order, rng), width)[1]
    B, target = full(band), rng.normal(size=order)
    smallest = np.linalg.eigvalsh(B)[0]
    shifts = rng.permutation(np.append(rng.uniform(0.1, 3, n_shifts // 2), -rng.random(n_shifts)))
    solved, logs = _core.solve_band(band, shifts - smallest, target, n_threads)
    definite = shifts > 0
    np.testing.assert_array_equal(np.isnan(logs), ~definite)
    for shift, x, log in zip(shifts[definite], solved[definite], logs[definite], strict=True):
        shifted = B + (shift - smallest) * np.eye(order)
        expected = np.linalg.solve(shifted, target)
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
        np.testing.assert_allclose(log, np.linalg.slogdet(shifted)[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [70, 300, 641])
def test_same_bits_for_any_number_of_threads(order):
    rng = np.random.default_rng(order)
    A, target, rows = (
        symmetric("any", order, rng),
        rng.normal(size=order),
        rng.normal(size=(9, order)),
    )
    results = []
    for n_threads in (1, 2, 3, 2):
        matrix, band, factors = reduce(A, 16, n_threads)
        moved = rows.copy()
        _core.apply_band_basis(matrix, factors, moved, False, n_threads)
        solved = _core.solve_band(band, np.arange(5.0, 23.0), target, n_threads)[0]
        _core.form_band_basis(matrix, factors, n_threads)
        results.append((band, factors, moved, solved, matrix))
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1e-150, 1e-70, 1.0, 1e70, 1e150])
@pytest.mark.parametrize("order", [1, 40, 150])
def test_a_matrix_of_any_size(order, size):
    rng = np.random.default_rng(order)
    A, target = symmetric("definite", order, rng), rng.normal(size=order)
    shifts = np.array([0.5, 1.0, 40.0])
    form = BandForm(size * A)
    np.testing.assert_allclose(form.largest, size * np.linalg.eigvalsh(A)[-1], rtol=1e-12)
    assert form.is_definite(0.01 * size)
    assert not form.is_definite(-1.5 * form.largest)
    expected = [np.linalg.solve(A + shift * np.eye(order), target) for shift in shifts]
    solved = form.solve(size * shifts, size * target)
    np.testing.assert_allclose(solved, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert form.solve(np.array([size, -1.5 * form.largest]), target) is None


def test_what_is_not_a_number_is_not_definite():
    A = np.eye(100)
    A[3, 60] = np.nan
    assert not BandForm(A).is_definite(1.0)


def test_width_grows_with_the_order():
    assert [band_width(order) for order in (64, 256, 1000, 4000)] == [16, 16, 32, 64]


def test_refused_arguments():
    matrix, band, factors = reduce(np.eye(50), 8)
    for call in (
        lambda: _core.reduce_to_band(np.ones((2, 3)), 8),
        lambda: _core.reduce_to_band(np.eye(3), 0),
        lambda: _core.apply_band_basis(matrix, factors[:2].copy(), np.ones((1, 50))),
        lambda: _core.apply_band_basis(matrix, factors, np.ones((1, 49))),
        lambda: _core.form_band_basis(np.eye(70), factors),
        lambda: _core.solve_band(band, np.ones((2, 2)), np.ones(50)),
        lambda: _core.solve_band(band, np.ones(2), np.ones(49)),
        lambda: _core.solve_band(np.ones((50, 1)), np.ones(2), np.ones(50)),
        lambda: _core.largest_of_band(np.ones(50)),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()
    fixed = np.eye(20)
    fixed.setflags(write=False)
    own = reduce(np.eye(20), 4)[2]
    for call in (
        lambda: _core.reduce_to_band(fixed, 4),
        lambda: _core.form_band_basis(fixed, own),
    ):
        with pytest.raises(ValueError, match="not writeable"):
            call()
    with pytest.raises(TypeError):
        _core.reduce_to_band(np.eye(3, dtype=np.float32), 2)
