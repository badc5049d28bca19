"""Units that compiled code holds out, against models of what is left."""

import numpy as np
import pytest

from pairgram import _core
from pairgram._support.machine import single_threaded_blas

ALPHAS = np.geomspace(1e3, 1e-2, 50)
# Few rows, more rows and many rows, beside the rank, take different ways.
SHAPES = [
    ([1] * 40, 3),
    ([3, 0, 5, 8, 32] * 4, 60),
    ([40, 33, 50], 110),
    ([60, 70, 1], 6),
    ([5] * 30, 1),
    ([300, 300], 250),
]


def problem(sizes, rank, size=1.0):
    """Return the path of a system of as many rows as units have, and twice as many beside them."""
    rng = np.random.default_rng(0)
    n = sum(sizes)
    Z = size * rng.normal(size=(3 * n + rank, rank)) * np.geomspace(1, 1e-2, rank)
    u = Z.sum(axis=1) + size * rng.normal(size=len(Z))
    values, basis = np.linalg.eigh(Z.T @ Z)
    lost = np.column_stack([Z @ basis, u])[:n].copy()
    scored = rng.normal(size=(n, rank))
    offsets = np.cumsum([0, *sizes])
    return values, basis.T @ (Z.T @ u), lost, scored, offsets


def models_without(values, projection, lost, alphas, scale):
    """Return the models of every ridge, by explicit solutions."""
    B, b = lost[:, :-1], lost[:, -1]
    G, g = scale * (np.diag(values) - B.T @ B), scale * (projection - B.T @ b)
    return np.array([np.linalg.solve(G + alpha * np.eye(len(G)), g) for alpha in alphas])


def held_out(*arguments):
    with single_threaded_blas:
        return _core.hold_out(*arguments)


@pytest.mark.parametrize(("sizes", "rank"), SHAPES)
@pytest.mark.parametrize("scaled", [False, True])
def test_units_as_refits(sizes, rank, scaled):
    values, projection, lost, scored, offsets = problem(sizes, rank)
    scales = np.where(np.arange(len(sizes)) % 3 == 1, 0.25, 2.0) if scaled else None
    path = values, projection, ALPHAS
    scores, held = held_out(*path, lost, scored, offsets, scales, 2)
    for unit in range(len(sizes)):
        own = slice(offsets[unit], offsets[unit + 1])
        scale = 1.0 if scales is None else scales[unit]
        models = models_without(values, projection, lost[own], ALPHAS, scale)
        expected = models @ scored[own].T
        np.testing.assert_allclose(scores[:, own], expected, rtol=1e-9, atol=1e-10)
    assert (held == 0).all()
    one, _ = held_out(*path, lost, scored, offsets, scales, 1)
    np.testing.assert_array_equal(one, scores)


def test_a_unit_without_which_nothing_is_left():
    values, projection, lost, scored, offsets = problem([2, 3], 4)
    scales = np.array([1.0, 0.0])
    scores, _ = held_out(values, projection, ALPHAS, lost, scored, offsets, scales, 1)
    assert (scores[:, 2:] == 0).all()
    assert (scores[:, :2] != 0).all()


@pytest.mark.parametrize("n", [2, 40, 200])
def test_a_direction_of_one_unit_alone(n):
    """It is told, and is NaN where the ridge leaves nothing but rounding errors of it."""
    rank, rng = 50, np.random.default_rng(1)
    Z = rng.normal(size=(n + 100, rank))
    Z[n:, 0] = Z[:n, 1:] = 0.0
    lost = np.column_stack([Z, rng.normal(size=len(Z))])
    values, basis = np.linalg.eigh(Z.T @ Z)
    lost[:, :-1] = Z @ basis
    projection = lost[:, :-1].T @ lost[:, -1]
    alphas = np.array([1.0, 1e-15]) * values[-1]
    rows, offsets = np.ascontiguousarray(lost[:n]), np.array([0, n])
    arguments = rows, np.ascontiguousarray(rows[:, :-1]), offsets, None, 1
    scores, held = held_out(values, projection, alphas, *arguments)
    np.testing.assert_allclose(scores[0], 0.0, atol=1e-13)
    assert np.isnan(scores[1]).all()
    np.testing.assert_allclose(held, (Z[:n, 0] ** 2).sum())


def test_rounds_of_conjugate_gradients_that_do_not_converge():
    """Units that hold much of many directions are solved by factors."""
    rng = np.random.default_rng(2)
    rank, n = 150, 60
    Z = rng.normal(size=(n + 200, rank)) * np.geomspace(1, 1e-3, rank)
    Z[:n] *= np.geomspace(1e3, 1e-1, n)[:, None]
    lost = np.column_stack([Z, rng.normal(size=len(Z))])
    values, basis = np.linalg.eigh(Z.T @ Z)
    lost[:, :-1] = Z @ basis
    projection = lost[:, :-1].T @ lost[:, -1]
    alphas = np.array([1e-3, 1e-5]) * values[-1]
    rows = np.ascontiguousarray(lost[:n])
    offsets, scored = np.array([0, n]), rng.normal(size=(n, rank))
    scores, _ = held_out(values, projection, alphas, rows, scored, offsets, None, 1)
    rest = lost[n:]
    G, g = rest[:, :-1].T @ rest[:, :-1], rest[:, :-1].T @ rest[:, -1]
    for alpha, found in zip(alphas, scores, strict=True):
        expected = scored @ np.linalg.solve(G + alpha * np.eye(rank), g)
        size = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * size)


def test_refused_arguments():
    good = {
        "eigenvalues": np.ones(2),
        "projection": np.ones(2),
        "alphas": np.ones(1),
        "lost": np.zeros((3, 3)),
        "scored": np.ones((3, 2)),
        "offsets": np.array([0, 1, 3]),
        "scales": np.ones(2),
        "n_threads": 1,
    }
    _core.hold_out(**good)
    for name, wrong in (
        ("eigenvalues", np.ones(3)),
        ("projection", np.ones((2, 1))),
        ("alphas", np.ones((1, 1))),
        ("lost", np.zeros((3, 2))),
        ("lost", np.zeros((2, 3))),
        ("scored", np.ones(3)),
        ("offsets", np.array([0, 1, 2])),
        ("scales", np.ones(3)),
    ):
        with pytest.raises(ValueError, match=name):
            _core.hold_out(**good | {name: wrong})
