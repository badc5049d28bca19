"""The pair operator against the explicit matrices A and D of Chen et al. 2017, eq. 23-25."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import reference_svm
from axes import every
from problems import OfScores, pair_operator, problems

WEIGHTINGS = st.sampled_from(["pairs", "documents", "queries"])
LOSSES = st.sampled_from(["squared_hinge", "squared", "logistic"])


def grouped(problem):
    """Return labels, row weights and query numbers with the rows of every query together."""
    order = problem.order
    v = None if problem.v is None else problem.v[order]
    return problem.y[order], v, problem.query[order]


def of_scores(*arguments, **named):
    return OfScores(pair_operator(*arguments, **named))


def operator(problem, weighting="pairs", loss="squared_hinge"):
    y, v, _ = grouped(problem)
    weights = {"row_weights": v, "query_weights": problem.per_query_weight}
    return of_scores(y, problem.offsets, loss, weighting=weighting, **weights)


def explicit(problem, weighting="pairs"):
    y, v, query = grouped(problem)
    weight = None if problem.query_weight is None else problem.query_weight[problem.order]
    return reference_svm.preference_pairs(y, query, v, weight, weighting)


def drawn_scores(problem, seed, kind):
    """Scores that tie, that all tie, that lie on the margin, or that are far apart."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=len(problem.y))
    return {"plain": f, "ties": np.round(f * 2) / 2, "equal": 0 * f, "far": 1e3 * f}[kind]


KINDS = st.sampled_from(["plain", "ties", "equal", "far"])


@given(problems(), WEIGHTINGS, LOSSES, KINDS, st.integers(0, 9))
def test_loss_gradient_and_products_are_those_of_explicit_pairs(
    problem, weighting, loss, kind, seed
):
    f = drawn_scores(problem, seed, kind)
    u = np.random.default_rng(seed + 1).normal(size=len(f))
    A, W = explicit(problem, weighting)
    expected, expected_gradient, D = reference_svm.pair_loss(f, A, W, loss)
    pairs = operator(problem, weighting, loss)
    value, gradient = pairs.set_scores(f)
    size = max(1.0, np.abs(f).max(initial=0))
    np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-12 * size**2)
    np.testing.assert_allclose(
        gradient, expected_gradient, rtol=1e-10, atol=1e-12 * size * max(1.0, W.sum())
    )
    np.testing.assert_allclose(
        pairs.product(u), 2 * A.T @ (D * (A @ u)), rtol=1e-10, atol=1e-12 * max(1.0, W.sum())
    )


@given(problems(), LOSSES, st.integers(0, 9))
def test_bits_do_not_depend_on_threads(problem, loss, seed):
    f = drawn_scores(problem, seed, "plain")
    results = []
    for n_threads in (1, 2, 7):
        pairs = operator(problem, loss=loss)
        value, gradient = pairs.set_scores(f, n_threads)
        results.append((value, gradient, pairs.product(f, n_threads)))
    for value, gradient, product in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])
        np.testing.assert_array_equal(product, results[0][2])


def many_rows(n_levels, sizes, seed=0):
    rng = np.random.default_rng(seed)
    n = int(np.sum(sizes))
    y = rng.normal(size=n) if n_levels is None else rng.integers(0, n_levels, n).astype(float)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return rng, y, offsets


@every(n_levels=[2, 4, 5, 8, 9, None], sizes=[[1500], [600, 1, 900, 0, 300], [63, 64, 65, 8, 1]])
def test_any_number_of_levels_and_long_queries(n_levels, sizes):
    rng, y, offsets = many_rows(n_levels, sizes)
    f, u = rng.normal(size=(2, len(y)))
    expected_gradient, expected_product, expected = np.zeros(len(y)), np.zeros(len(y)), 0.0
    for begin, end in pairwise(offsets):
        rows = slice(begin, end)
        p = 1 - (f[rows, None] - f[rows])
        D = (y[rows, None] > y[rows]) & (p > 0)
        expected += (D * p**2).sum()
        expected_gradient[rows] = 2 * ((D * p).sum(axis=0) - (D * p).sum(axis=1))
        degree = D.sum(axis=0) + D.sum(axis=1)
        expected_product[rows] = 2 * (degree * u[rows] - (D + D.T) @ u[rows])
    for n_threads in (1, 3):
        pairs = of_scores(y, offsets)
        value, gradient = pairs.set_scores(f, n_threads)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=0, atol=1e-8)
        np.testing.assert_allclose(pairs.product(u, n_threads), expected_product, atol=1e-8)


@every(n_levels=[2, 5, None], scale=[1.0, 1e3])
def test_logistic_loss_of_long_queries(n_levels, scale):
    """Losers that fill several blocks, and the last one in part."""
    rng, y, offsets = many_rows(n_levels, [900, 1, 7, 0, 300])
    f, u = scale * rng.normal(size=len(y)), rng.normal(size=len(y))
    v = rng.random(len(y))
    query = np.repeat(np.arange(5), np.diff(offsets))
    A, W = reference_svm.preference_pairs(y, query, v)
    expected, expected_gradient, D = reference_svm.pair_loss(f, A, W, "logistic")
    first = None
    for n_threads in (1, 3):
        pairs = of_scores(y, offsets, "logistic", row_weights=v)
        value, gradient = pairs.set_scores(f, n_threads)
        product = pairs.product(u, n_threads)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(product, 2 * A.T @ (D * (A @ u)), rtol=1e-10, atol=1e-10)
        first = first or (value, gradient.tobytes(), product.tobytes())
        assert first == (value, gradient.tobytes(), product.tobytes())


def test_logistic_loss_of_a_pair_to_the_last_digits():
    """Within 4 ulp, the derivatives within 8: of differences that are tiny, large, or near 0."""
    rng = np.random.default_rng(0)
    size = np.concatenate((10.0 ** rng.uniform(-18, 2.8, 1000), rng.uniform(0, 40, 1000), [0, 1e6]))
    for d in np.concatenate((size, -size)):
        pairs = of_scores(np.array([1.0, 0.0]), np.array([0, 2]), "logistic")
        value, gradient = pairs.set_scores(np.array([d, 0.0]))
        product = pairs.product(np.array([1.0, 0.0]))
        small = np.exp(-np.abs(np.longdouble(d)))
        expected = np.log1p(small) + max(-np.longdouble(d), 0)
        less = (small if d > 0 else 1) / (1 + small)
        curve = small / (1 + small) ** 2
        if small == 0 or small > 1e-300:  # else the results have fewer digits
            for found, exact, ulp in ((value, expected, 4), (-gradient[0], less, 8)):
                assert abs(found - exact) <= ulp * np.spacing(float(exact)), d
            assert abs(product[0] - curve) <= 8 * np.spacing(float(curve)), d
        assert gradient[1] == -gradient[0] and product[1] == -product[0]


def of_row(i, rows, y, f, u):
    """The gradient and the product in row i of a query, by its pairs."""
    y, f, u, i = y[rows], f[rows], u[rows], i - rows.start
    lower, higher = (y < y[i]) & (f[i] - f < 1), (y > y[i]) & (f - f[i] < 1)
    gradient = 2 * ((1 - f + f[i])[higher].sum() - (1 - f[i] + f)[lower].sum())
    return gradient, 2 * (u[i] - u[lower | higher]).sum()


@every(n_levels=[3, 20, None], sizes=[[5000, 1, 4200, 0, 9000, 300], [200_000]])
def test_long_queries_row_by_row_with_the_same_bits_for_any_threads(n_levels, sizes):
    """Longer than a thread's share; by all pairs 200,000 rows would take minutes."""
    rng, y, offsets = many_rows(n_levels, sizes)
    f, u = rng.normal(size=(2, len(y)))
    pairs = of_scores(y, offsets)
    value, gradient = pairs.set_scores(f)
    product = pairs.product(u)
    for n_threads in (2, 5) if len(sizes) > 1 else ():
        again = of_scores(y, offsets)
        assert again.set_scores(f, n_threads)[0] == value
        np.testing.assert_array_equal(again.set_scores(f, n_threads)[1], gradient)
        np.testing.assert_array_equal(again.product(u, n_threads), product)
    for begin, end in pairwise(offsets):
        for i in range(begin, end, max(1, (end - begin) // 5)):
            expected = of_row(i, slice(begin, end), y, f, u)
            tolerance = 1e-10 * (end - begin)
            np.testing.assert_allclose((gradient[i], product[i]), expected, atol=tolerance)


def test_gradient_and_hessian_are_the_finite_differences():
    rng, y, offsets = many_rows(4, [40, 3, 57])
    f, u = rng.normal(size=(2, len(y)))
    pairs = of_scores(y, offsets, row_weights=rng.random(len(y)))
    # The loss is quadratic up to the next pair on the margin, so differences are exact till there.
    A, _ = reference_svm.preference_pairs(y, np.repeat(np.arange(3), np.diff(offsets)))
    step = 0.9 * np.min(np.abs(1 - A @ f) / np.abs(A @ u))
    assert step > 1e-5
    _, gradient = pairs.set_scores(f)
    product = pairs.product(u)
    up, down = pairs.set_scores(f + step * u), pairs.set_scores(f - step * u)
    np.testing.assert_allclose((up[0] - down[0]) / (2 * step), gradient @ u, rtol=1e-9)
    difference = (up[1] - down[1]) / (2 * step)
    assert np.abs(difference - product).max() < 1e-9 * np.abs(product).max()


@pytest.mark.parametrize("n_levels", [3, None])
def test_invariances(n_levels):
    rng, y, offsets = many_rows(n_levels, [30, 45])
    f, u = rng.normal(size=(2, len(y)))
    v = rng.random(len(y))
    pairs = of_scores(y, offsets, row_weights=v)
    loss, gradient = pairs.set_scores(f)
    product = pairs.product(u)
    shift = np.repeat([1e3, -7.0], [30, 45])
    shifted = of_scores(2 * y + shift, offsets, row_weights=v)
    again = shifted.set_scores(f)
    assert again[0] == loss
    np.testing.assert_array_equal(again[1], gradient)
    moved = shifted.set_scores(f + shift)
    np.testing.assert_allclose(moved[0], loss, rtol=1e-11)
    np.testing.assert_allclose(shifted.product(u + shift), product, atol=1e-10)
    order = np.concatenate((rng.permutation(30), 30 + rng.permutation(45)))
    permuted = of_scores(y[order], offsets, row_weights=v[order])
    value, values = permuted.set_scores(f[order])
    np.testing.assert_allclose(value, loss, rtol=1e-13)
    np.testing.assert_allclose(values, gradient[order], atol=1e-12)
    np.testing.assert_allclose(permuted.product(u[order]), product[order], atol=1e-12)
    assert abs(gradient.sum()) < 1e-10
    np.testing.assert_allclose(pairs.product(np.ones(len(y))), 0, atol=1e-12)


def test_scores_can_be_set_again_in_any_order():
    rng, y, offsets = many_rows(4, [300])
    pairs = of_scores(y, offsets)
    for _ in range(4):
        f, u = rng.normal(size=(2, 300))
        fresh = of_scores(y, offsets)
        value, gradient = fresh.set_scores(f)
        again, gradient_again = pairs.set_scores(f)
        assert value == again
        np.testing.assert_array_equal(gradient, gradient_again)
        np.testing.assert_array_equal(fresh.product(u), pairs.product(u))


@every(n_losers=[1, 99])  # few rows are compared in another way
def test_a_pair_on_the_margin_is_not_active(n_losers):
    first = np.append(1.0, np.zeros(n_losers))
    pairs = of_scores(first, np.array([0, 1 + n_losers]))
    for difference, active in ((1.0, 0.0), (np.nextafter(1.0, 0), 2.0)):
        pairs.set_scores(difference * first)
        expected = active * np.append(n_losers, np.full(n_losers, -1.0))
        np.testing.assert_array_equal(pairs.product(first), expected)
