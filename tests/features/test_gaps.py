"""What takes the place of missing values: compiled medians and means, and rows that are filled."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from parts.features import fill_values, filled, known_medians

DTYPES = (np.float64, np.float32)


def slow_median(column, weights):
    """The middle of the values up to which there is half of the weight, and more than half."""
    rows = sorted(
        (value, weight)
        for value, weight in zip(column.tolist(), weights.tolist(), strict=True)
        if value == value and weight > 0
    )
    if not rows:
        return np.nan
    half, upto, low, high = sum(weight for _, weight in rows) / 2, 0.0, None, None
    for value, weight in rows:
        upto += weight
        low = value if low is None and upto >= half * (1 - 1e-11) else low
        high = value if high is None and upto > half * (1 + 1e-11) else high
    return low / 2 + high / 2


@st.composite
def matrices(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 60)), draw(st.sampled_from([1, 2, 15, 16, 17, 33]))
    X = rng.normal(size=(n, d)) if draw(st.booleans()) else rng.integers(0, 4, (n, d)) * 1.0
    X[rng.random((n, d)) < draw(st.sampled_from([0.0, 0.3, 0.9]))] = np.nan
    weights = rng.choice(draw(st.sampled_from([[1.0], [0.0, 1.0, 2.0], [0.1, 0.2, 0.7]])), n)
    return X, weights


@settings(max_examples=90, deadline=None)
@given(matrices(), st.sampled_from(DTYPES))
def test_medians_follow_their_definition(drawn, dtype):
    X, weights = drawn
    X = X.astype(dtype)
    want = [slow_median(column, weights) for column in X.T.astype(np.float64)]
    found = known_medians(X, weights)
    np.testing.assert_allclose(found, want, rtol=1e-15)
    if (weights == 1).all():
        np.testing.assert_array_equal(known_medians(X, None), found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_medians_of_many_rows(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 20)).astype(dtype)
    X[:, 3] = np.round(X[:, 3])
    X[:, 4] = 7.5
    X[:, 5] = np.exp(20 * X[:, 5])
    X[rng.random(X.shape) < 0.2] = np.nan
    np.testing.assert_allclose(
        known_medians(X, None), np.nanmedian(X.astype(np.float64), axis=0), rtol=1e-15
    )
    weights = rng.integers(0, 3, len(X)) * 1.0
    repeated = np.repeat(X.astype(np.float64), weights.astype(int), axis=0)
    found = known_medians(X, weights)
    np.testing.assert_allclose(found, np.nanmedian(repeated, axis=0), rtol=1e-15)
    # The weights' own size says nothing, and their rounding chooses no other value.
    np.testing.assert_array_equal(known_medians(X, 0.1 * weights), found)


@settings(max_examples=36, deadline=None)
@given(matrices(), st.sampled_from(DTYPES), st.sampled_from(["C", "F", "strided"]))
def test_rows_are_filled(drawn, dtype, order):
    X = drawn[0].astype(dtype)
    fill = np.arange(X.shape[1]) + 0.25
    own = np.repeat(X, 2, axis=0)[::2] if order == "strided" else np.asarray(X, order=order)
    before = own.copy()
    np.testing.assert_array_equal(filled(own, fill), np.where(np.isnan(X), fill, X))
    assert filled(own, fill).dtype == dtype
    np.testing.assert_array_equal(own, before)


def test_rows_without_gaps_are_not_copied():
    X = np.ones((1000, 3), np.float32)
    assert filled(X, np.zeros(3)) is X
    X[999, 2] = np.nan
    assert filled(X, np.zeros(3)) is not X


@settings(max_examples=60, deadline=None)
@given(matrices(), st.sampled_from(DTYPES))
def test_means_are_weighted_means_of_what_is_known(drawn, dtype):
    X, weights = drawn
    X = X.astype(dtype)
    if np.isnan(X).all(axis=0).any() or not ((weights > 0) @ ~np.isnan(X)).all():
        return  # which warns
    masked = np.ma.masked_invalid(X.astype(np.float64))
    want = np.ma.average(masked, axis=0, weights=weights)
    np.testing.assert_allclose(fill_values("mean", X, weights), want, rtol=1e-12, atol=1e-15)


def test_the_mean_of_equal_values_is_this_value():
    X = np.full((10_001, 2), [1.7e9, 0.1])
    X[::3] = np.nan
    weights = np.random.default_rng(0).random(len(X))
    assert fill_values("mean", X, weights).tolist() == [1.7e9, 0.1]


def test_a_mean_that_overflows_is_an_error():
    X = np.array([[1e308], [-1.7e308], [np.nan]])
    with pytest.raises(ValueError, match="X too large: the mean of its column 0 overflows"):
        fill_values("mean", X, None)


def test_rows_without_weight_leave_the_digits_of_a_mean():
    X = np.array([[1e20], [1.0], [2.0], [np.nan], [3.0]])
    assert fill_values("mean", X, np.array([0.0, 1, 1, 1, 1])).tolist() == [2.0]
