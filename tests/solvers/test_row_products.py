"""Products with rows of features against NumPy's, and the Hessian's one pass against two."""

import math
from fractions import Fraction

import numpy as np

from axes import every
from pairgram import _core
from problems import OfScores, pair_operator

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


@every(dtype=[np.float64, np.float32], width=[1, 7, 300], kind=SIZES)
def test_products_are_numpys_in_any_order_with_the_same_bits_for_any_threads(kind, width, dtype):
    rng, H, y, offsets = problem(kind, width, dtype)
    n = len(y)
    w, z = rng.normal(size=width), rng.normal(size=n)
    z[n // 3 : n // 2] = 0.0
    query_weights = rng.choice([0.0, 2.0], len(offsets) - 1)
    pairs = pair_operator(y, offsets, query_weights=query_weights)
    at, offset = rng.normal(size=width), rng.normal(size=n)
    scores = _core.score_rows(H, w)
    np.testing.assert_allclose(scores, H.astype(float) @ w, atol=1e-12 * width)
    for n_threads in (2, 5):
        np.testing.assert_array_equal(_core.score_rows(H, w, n_threads), scores)
    for order in (None, rng.permutation(n)):
        rows = H.astype(float) if order is None else H.astype(float)[order]
        features = _core.dense_features(H, order)
        total = features.sum(z)
        np.testing.assert_allclose(total, rows.T @ z, atol=1e-12 * n)
        product = _core.loss_of_rows(features, pairs, offset).product(at, w)
        of_scores = OfScores(pairs)
        of_scores.set_scores(rows @ at + offset)
        expected = rows.T @ of_scores.product(rows @ w)
        tolerance = 1e-11 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(product, expected, rtol=0, atol=tolerance)
        for n_threads in (2, 5):
            np.testing.assert_array_equal(features.sum(z, n_threads), total)
            again = _core.loss_of_rows(features, pairs, offset, n_threads).product(at, w)
            np.testing.assert_array_equal(again, product)


def exact_scores(H, coefs):
    """Return the correctly rounded products of rows and models, and the sums of sizes."""
    terms = H.astype(float)[None] * coefs[:, None]
    exact = [[math.fsum(fractions_of(h, c)) for h in H.astype(float)] for c in coefs]
    return np.array(exact), np.abs(terms).sum(axis=-1)


def fractions_of(h, c):
    """Return the products of two vectors, each as two numbers that add up to it exactly."""
    products = [Fraction(float(a)) * Fraction(float(b)) for a, b in zip(h, c, strict=True)]
    heads = [float(product) for product in products]
    return heads + [float(p - Fraction(head)) for p, head in zip(products, heads, strict=True)]


@every(dtype=[np.float64, np.float32], width=[1, 7, 8, 9, 46])
def test_scores_of_many_models_are_exact_sums_within_their_rounding(width, dtype):
    rng = np.random.default_rng(width)
    H = rng.normal(size=(13, width)).astype(dtype)
    coefs = rng.normal(size=(6, width)) * 10.0 ** rng.integers(-8, 8, (6, 1))
    exact, sizes = exact_scores(H, coefs)
    found = _core.score_rows(H, coefs)
    assert found.shape == (6, 13)
    assert (np.abs(found - exact) <= 2.3e-16 * (width / 8 + 4) * sizes).all()
    np.testing.assert_array_equal(_core.score_rows(H, coefs[:0]), np.empty((0, 13)))
    np.testing.assert_array_equal(_core.score_rows(H[:0], coefs), np.empty((6, 0)))


@every(dtype=[np.float64, np.float32], width=[1, 3, 8, 46, 136, 700, 5001])
def test_a_score_has_the_same_bits_whatever_rows_and_models_are_beside_it(width, dtype):
    rng = np.random.default_rng(width)
    H = rng.normal(size=(331, width)).astype(dtype)
    coefs = rng.normal(size=(11, width))
    alone = np.array([[_core.score_rows(h[None], c)[0] for h in H] for c in coefs[:3]])
    np.testing.assert_array_equal(_core.score_rows(H, coefs)[:3], alone)
    for n in (1, 2, 3, 4, 5, 7, 16, 31, 300, 331):
        for begin in (0, 1, 17, 331 - n):
            rows = slice(begin, begin + n)
            part = np.ascontiguousarray(H[rows])
            for m in (1, 2, 3, 4, 5, 8, 11):
                found = _core.score_rows(part, coefs[:m], 1 + n % 3)
                np.testing.assert_array_equal(found[:3], alone[:m, rows])
            found = _core.score_rows(part, coefs[2])
            np.testing.assert_array_equal(found, alone[2, rows])
    repeated = np.ascontiguousarray(np.repeat(H[:1], 40_000 // width + 9, axis=0))
    assert len(set(_core.score_rows(repeated, coefs[0], 2).tolist())) == 1


@every(value=[np.nan, np.inf, -np.inf], dtype=[np.float64, np.float32])
def test_a_row_that_is_not_finite_leaves_the_others_alone_and_shows(dtype, value):
    rng = np.random.default_rng(0)
    H = rng.normal(size=(9, 21)).astype(dtype)
    coefs = rng.normal(size=(5, 21))
    coefs[3] = 0.0
    before = _core.score_rows(H, coefs)
    for row in range(9):
        for column in range(21):
            spoilt = H.copy()
            spoilt[row, column] = value
            after = _core.score_rows(spoilt, coefs)
            assert not np.isfinite(after[:, row]).any()
            np.testing.assert_array_equal(np.delete(after, row, 1), np.delete(before, row, 1))
            assert not np.isfinite(_core.score_rows(spoilt, coefs[0])[row])
