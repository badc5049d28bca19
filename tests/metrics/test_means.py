"""Means and deviations of a metric over queries and over splits, against loops in NumPy."""

import numpy as np
import pytest

from pairgram.model_selection.judge import Judged


def _weighted(values, weights):
    """Return the weighted mean and standard deviation of the values that are not NaN."""
    kept = ~np.isnan(values)
    if not weights[kept].sum() > 0:
        return np.nan, np.nan
    mean = np.average(values[kept], weights=weights[kept])
    return mean, np.sqrt(np.average((values[kept] - mean) ** 2, weights=weights[kept]))


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 40))
    values[rng.random(values.shape) < 0.2] = np.nan
    values[3] = np.nan
    weights = rng.integers(0, 3, 40).astype(float)
    return values, weights, rng.integers(0, 6, 40)


def test_means_and_deviations_over_queries(table):
    values, weights, _ = table
    means, deviations, by_split, _ = Judged.of(values, weights, None, 0)
    expected = np.array([_weighted(row, weights) for row in values])
    np.testing.assert_allclose(means, expected[:, 0], rtol=1e-14)
    np.testing.assert_allclose(deviations, expected[:, 1], rtol=1e-14)
    assert np.isnan(means[3])
    assert by_split is None


def test_means_of_splits_and_their_deviation(table):
    values, weights, split_of = table
    weights[split_of == 2] = 0  # a split that counts for nothing
    means, deviations, by_split, _ = Judged.of(values, weights, split_of, 7)  # and an empty one
    for model, row in enumerate(values):
        expected = np.array(
            [_weighted(row[split_of == s], weights[split_of == s])[0] for s in range(7)]
        )
        np.testing.assert_allclose(by_split[:, model], expected, rtol=1e-14)
        np.testing.assert_allclose(
            deviations[model], _weighted(expected, np.ones(7))[1], rtol=1e-14
        )
        np.testing.assert_allclose(means[model], _weighted(row, weights)[0], rtol=1e-14)
