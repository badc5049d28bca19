"""Propensities of positions, against the likelihood that is written out and against the truth."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize

from pairgram import RankRLS, make_ranking
from pairgram.clicks import Clicks, Propensities, estimate_propensities, simulate


def log_of(seed=0, n_rankers=3, n_impressions=200, **named):
    """Return a log of users who look at position i with the probability 1 / i."""
    X, y, qid = make_ranking(30, 12, 6, random_state=seed)
    named = {"k": 6, "random_state": seed, **named}
    log = simulate(y, qid, X[:, :n_rankers].T, n_impressions=n_impressions, **named)
    return log, qid[log.row], X


def written_out(position, click, item):
    """Return the propensities of the largest likelihood of where the clicks of an item fall."""
    shown = position > 0
    position, click, item = position[shown], click[shown], item[shown]
    n_shown, n_clicks = np.zeros((2, item.max() + 1, position.max()))
    np.add.at(n_shown, (item, position - 1), 1.0)
    np.add.at(n_clicks, (item, position - 1), click)

    def loss(logs):
        weight = n_shown * np.exp(np.append(0.0, logs))
        share = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
        return -(n_clicks * np.log(np.where(n_clicks > 0, share, 1.0))).sum()

    start = np.zeros(position.max() - 1)
    return np.exp(np.append(0.0, minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).x))


def test_the_likelihood_is_the_largest():
    log, qid, _ = log_of(n_impressions=40)
    expected = written_out(log.position, log.click, log.row)
    for named in ({"item": log.row}, {"item": log.row, "qid": qid}):
        found = estimate_propensities(log.position, log.click, **named)
        np.testing.assert_allclose(found.propensity, expected, rtol=1e-4)
    names = np.array([f"d{row}" for row in log.row], dtype=object)
    far = log.row.astype(np.int64) * 10**9
    for item in (names, names.astype(str), far, far.astype(float)):
        found = estimate_propensities(log.position, log.click, item=item)
        np.testing.assert_allclose(found.propensity, expected, rtol=1e-4)
    counts = estimate_propensities(log.position, 2 * log.click, item=far)
    np.testing.assert_allclose(counts.propensity, expected, rtol=1e-4)
    missing = np.where(log.position == 0, np.nan, log.position)
    again = estimate_propensities(missing, log.click, item=log.row)
    np.testing.assert_array_equal(again.propensity, found.propensity)


def test_the_truth_is_within_standard_errors():
    away = []
    for seed in range(25):
        log, qid, _ = log_of(seed)
        found = estimate_propensities(log.position, log.click, qid=qid, item=log.row)
        np.testing.assert_array_equal(found.position, np.arange(1, 7))
        away.append(np.log(found.propensity * found.position)[1:] / found.standard_error[1:])
    away = np.array(away)
    assert np.abs(away.mean(axis=0)).max() < 0.8
    assert 0.7 < away.std() < 1.3
    assert (np.abs(away) < 1.96).mean() > 0.88


def test_items_that_were_always_at_one_place_say_nothing():
    log, _, _ = log_of(2)
    still = np.repeat([1, 3], 500)
    found = estimate_propensities(log.position, log.click, item=log.row)
    more = estimate_propensities(
        np.concatenate([log.position, still]),
        np.concatenate([log.click, np.ones(1000)]),
        item=np.concatenate([log.row, np.where(still == 1, 10_000, 10_001)]),
    )
    np.testing.assert_allclose(more.propensity, found.propensity)
    np.testing.assert_array_equal(more.n_clicks, found.n_clicks)


def test_propensities_of_rows_are_those_that_fits_take():
    log, qid, X = log_of(4)
    found = estimate_propensities(log.position, log.click, qid=qid, item=log.row)
    of_rows = found.of(log.position)
    assert (of_rows[log.position == 0] == 0).all()
    RankRLS().fit(X[log.row], Clicks(log.click, of_rows), qid=log.impression)
    wide = Propensities(np.array([1, 3]), np.array([1.0, 2.0]), np.zeros(2), np.ones(2, int))
    np.testing.assert_array_equal(wide.of([3, 1, 0, np.nan]), [1.0, 0.5, 0.0, 0.0])
    for position in (2, 4):
        with pytest.raises(ValueError, match=f"got position {position} in row 1"):
            wide.of([1, position])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.int64])
def test_ids_of_every_size_are_told_apart(dtype):
    log, qid, _ = log_of()
    item = (log.row % 200 - (100 if np.dtype(dtype).kind == "i" else 0)).astype(dtype)
    wanted = estimate_propensities(log.position, log.click, item=item.astype(str), qid=qid)
    found = estimate_propensities(log.position, log.click, item=item, qid=qid)
    np.testing.assert_allclose(found.propensity, wanted.propensity)


def test_a_far_position_takes_no_memory():
    log, qid, _ = log_of(n_impressions=40)
    expected = estimate_propensities(log.position, log.click, qid=qid, item=log.row)
    far = np.where(log.position == 6, 10**8, log.position)
    tracemalloc.start()
    found = estimate_propensities(far, log.click, qid=qid, item=log.row)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.position[-1] == 10**8 and most < 2**26
    np.testing.assert_array_equal(found.propensity, expected.propensity)


def test_the_only_position_has_a_propensity_of_1():
    """It is the reference, also where no item was shown at two positions."""
    found = estimate_propensities([2, 2], [1, 0], item=[0, 1])
    assert found.position.tolist() == [2] and found.propensity.tolist() == [1.0]
    assert found.standard_error.tolist() == [0.0]
