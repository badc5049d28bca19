"""Folds held out by the band form of a system, against explicit solutions."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from threadpoolctl import ThreadpoolController

from pairgram import Kernel, RankRLSCV, _core, make_ranking
from parts.solvers import BandForm
from parts.support import on_threads, threads

LIBRARIES = ThreadpoolController()  # looking for them takes milliseconds


def folds_of(rng, order, largest):
    """Return folds of some of the rows, some of them empty, and offsets of points."""
    rows, sizes = rng.permutation(order), []
    while sum(sizes) < 0.8 * order:
        sizes.append(int(rng.integers(0, largest + 1)))
    parts = np.split(rows, np.cumsum(sizes))[:-1]
    if rng.random() < 0.5:
        parts = [np.sort(part) for part in np.split(np.arange(order), np.cumsum(sizes))[:-1]]
    offsets = np.cumsum(np.append(0, rng.integers(0, 3, len(parts))))
    return parts, offsets


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([1, 2, 7, 8, 16, 17, 40, 129, 200, 300]),
    st.sampled_from([1, 3, 30, 230]),
    st.integers(1, 11),
    st.integers(1, 3),
    st.sampled_from([1.0, 1e-150, 1e150]),
    st.integers(0, 2**32 - 1),
)
def test_folds_as_explicit_solutions(order, largest, n_alphas, n_threads, size, seed):
    # Waking other threads takes longer than small products.
    with LIBRARIES.limit(limits=1, user_api="blas"):
        compare_with_explicit(order, largest, n_alphas, n_threads, size, seed)


def compare_with_explicit(order, largest, n_alphas, n_threads, size, seed):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(order, order)) / np.sqrt(order)
    A, target = H @ H.T, rng.normal(size=order)
    folds, offsets = folds_of(rng, order, largest)
    points = rng.normal(size=(offsets[-1], order))
    alphas = np.sort(rng.uniform(0.05, 2, n_alphas))[::-1]
    with threads(n_threads):
        form = BandForm(size * A)
        residuals, products = form.hold_out(size * alphas, target, folds, points, offsets)
    starts = np.cumsum([0, *map(len, folds)])
    for i in rng.permutation(n_alphas)[:3]:
        alpha, C = alphas[i], np.linalg.inv(A + alphas[i] * np.eye(order))
        for number in rng.permutation(len(folds))[:4]:
            fold, at = folds[number], starts[number]
            begin, end = offsets[number : number + 2]
            rest = np.setdiff1d(np.arange(order), fold)
            model = np.zeros(order)
            kept = np.ix_(rest, rest)
            model[rest] = np.linalg.solve(A[kept] + alpha * np.eye(len(rest)), target[rest])
            x = target[fold] - A[fold] @ model
            np.testing.assert_allclose(residuals[i, at : at + len(fold)], x, rtol=0, atol=1e-10)
            expected = points[begin:end] @ model
            scale = np.abs(C @ target).max() * np.sqrt(order)
            atol = 1e-10 * scale
            np.testing.assert_allclose(size * products[i, begin:end], expected, rtol=0, atol=atol)
    # Q has taken the place of its reflectors, and still serves.
    expected = [np.linalg.solve(A + alpha * np.eye(order), target) for alpha in alphas]
    solved = form.solve(size * alphas, size * target)
    np.testing.assert_allclose(solved, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_an_answer_that_would_be_rounding_error_is_nan():
    """A fold that alone has a direction leaves nothing to be told of it."""
    A = np.diag(np.append(1.0, np.full(99, 1e-3)))
    rows = [np.arange(5), np.arange(5, 100)]
    offsets = np.array([0, 1, 1])
    form = BandForm(A.copy())
    alphas = np.array([1.0, 1e-12])
    residuals, products = form.hold_out(alphas, np.ones(100), rows, np.ones((1, 100)), offsets)
    np.testing.assert_allclose(residuals[0], 1.0, rtol=0, atol=1e-12)
    assert np.isnan(residuals[1, :5]).all()
    assert np.isnan(products[1, 0])
    assert form.hold_out(np.array([-0.5]), np.ones(100), rows, np.ones((1, 100)), offsets) is None


@pytest.mark.parametrize("cv", [None, 12])
def test_same_bits_for_any_number_of_threads(cv):
    X, y, qid = make_ranking(60, (2, 9), 5, random_state=0)
    one, *others = on_threads(
        (1, 2, 3), lambda: RankRLSCV(feature_map=Kernel("rbf"), cv=cv).fit(X, y, qid=qid)
    )
    for other in others:
        np.testing.assert_array_equal(other.scores_, one.scores_)
        np.testing.assert_array_equal(other.coef_path_, one.coef_path_)


@pytest.mark.parametrize("alphas", [[1e9, 1.0], [1.0, 1e-17]])
def test_ridges_that_need_eigenvectors(set_limits, alphas):
    """Beside them the others have the same scores."""
    X, y, qid = make_ranking(60, (2, 9), 5, random_state=0)
    search = RankRLSCV(alphas, feature_map=Kernel("rbf"), scoring="ndcg@10")
    by_band = search.fit(X, y, qid=qid)
    scores, path = by_band.scores_, by_band.coef_path_
    set_limits(band_order=len(y) + 1)
    search.fit(X, y, qid=qid)
    np.testing.assert_allclose(scores, search.scores_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(path[:1], search.coef_path_[:1], rtol=1e-8, atol=1e-14)


def test_refused_arguments():
    form = BandForm(np.eye(100))
    good = {
        "band": form._band,
        "basis": np.eye(100),
        "target": np.ones(100),
        "alphas": np.ones(2),
        "rows": np.arange(4),
        "row_offsets": np.array([0, 4]),
        "points": np.ones((1, 100)),
        "point_offsets": np.array([0, 1]),
    }
    _core.hold_out_band(**good)
    for name, wrong in (
        ("basis", np.eye(99)),
        ("target", np.ones(99)),
        ("alphas", np.ones((1, 2))),
        ("rows", np.array([0, 1, 2, 100])),
        ("rows", np.array([0, 1, 2, -1])),
        ("row_offsets", np.array([0, 3])),
        ("row_offsets", np.array([1, 4])),
        ("row_offsets", np.array([0, 5, 4])),
        ("row_offsets", np.array([], dtype=np.int64)),
        ("points", np.ones((1, 99))),
        ("points", np.ones((1, 101))),
        ("point_offsets", np.array([0, 2])),
        ("point_offsets", np.array([0, 0, 1])),
    ):
        with pytest.raises(ValueError, match=r"must (be|rise)"):
            _core.hold_out_band(**good | {name: wrong})
