"""Products with rows of features against NumPy's, and the Hessian's one pass against two."""

from itertools import pairwise

import numpy as np
import pytest

from pairgram import _core

SIZES = {
    "small": [3, 1, 0, 12],
    "uneven": [100, 1, 700, 0, 333, 41],
    "long": [20, 9000, 5, 7000],  # beyond the cache for 300 features
}


def problem(kind, width, dtype):
    rng = np.random.default_rng(width)
    offsets = np.concatenate(([0], np.cumsum(SIZES[kind]))).astype(np.int64)
    n = int(offsets[-1])
    y = rng.integers(0, 3, n).astype(float)
    return rng, rng.normal(size=(n, width)).astype(dtype), y, offsets


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [1, 7, 300])
@pytest.mark.parametrize("kind", SIZES)
def test_products_are_numpys_in_any_order_with_the_same_bits_for_any_threads(kind, width, dtype):
    rng, H, y, offsets = problem(kind, width, dtype)
    n = len(y)
    w, z = rng.normal(size=width), rng.normal(size=n)
    z[n // 3 : n // 2] = 0.0
    query_weights = rng.choice([0.0, 2.0], len(offsets) - 1)
    pairs = _core.PairOperator(y, offsets, query_weights=query_weights)
    pairs.set_scores(H.astype(float) @ w)
    for order in (None, rng.permutation(n)):
        rows = H.astype(float) if order is None else H.astype(float)[order]
        scores = _core.score_rows(H, w, order)
        np.testing.assert_allclose(scores, rows @ w, atol=1e-12 * width)
        total = _core.sum_rows(H, z, order)
        np.testing.assert_allclose(total, rows.T @ z, atol=1e-12 * n)
        product, seen = pairs.hessian_product(H, w, order)
        expected = rows.T @ pairs.product(rows @ w)
        tolerance = 1e-11 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(product, expected, rtol=0, atol=tolerance)
        varied = [len(set(y[begin:end])) > 1 for begin, end in pairwise(offsets)]
        counted = np.repeat(varied & (query_weights > 0), np.diff(offsets))
        np.testing.assert_array_equal(seen[counted], scores[counted])
        for n_threads in (2, 5):
            np.testing.assert_array_equal(_core.score_rows(H, w, order, n_threads), scores)
            np.testing.assert_array_equal(_core.sum_rows(H, z, order, n_threads), total)
            again = pairs.hessian_product(H, w, order, n_threads)
            np.testing.assert_array_equal(again[0], product)
            np.testing.assert_array_equal(again[1], seen)


def test_wrong_arguments_are_refused():
    H, y = np.zeros((4, 2)), np.arange(4.0)
    pairs = _core.PairOperator(y, np.array([0, 4]))
    with pytest.raises(ValueError, match="one per feature"):
        _core.score_rows(H, np.zeros(3))
    with pytest.raises(ValueError, match="one per row"):
        _core.sum_rows(H, np.zeros(3))
    with pytest.raises(ValueError, match="one per feature"):
        pairs.hessian_product(H, np.zeros(3))
    with pytest.raises(ValueError, match="rows of the operator"):
        pairs.hessian_product(H[:3].copy(), np.zeros(2))
    for order in (np.array([0, 1, 2, 4]), np.array([0, 1, 2, 2]), np.arange(3)):
        for call in (
            lambda order: _core.score_rows(H, np.zeros(2), order),
            lambda order: _core.sum_rows(H, np.zeros(4), order),
            lambda order: pairs.hessian_product(H, np.zeros(2), order),
        ):
            with pytest.raises(ValueError, match="order"):
                call(order)
    for wrong in (H.T, H.astype(int), H.astype(np.float16)):
        with pytest.raises(TypeError):
            _core.score_rows(wrong, np.zeros(2))
