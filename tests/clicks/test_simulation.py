"""Users that are drawn click as their model says."""

import numpy as np

from pairgram.clicks import simulate

Y = np.array([2.0, 0.0, 1.0, 0.0, 2.0, 1.0, 0.0])
QID = np.array(["a", "b", "a", "a", "b", "a", "a"])
SCORES = np.array([[5.0, 1, 4, 3, 2, 2, 1], [1.0, 2, 2, 3, 1, 4, 5]])
N = 40_000


def attraction(noise):
    return noise + (1 - noise) * (2**Y - 1) / 3


def rates(log, values):
    """Return the mean of values for every (row, position) that was shown, and its error."""
    found = {}
    for row, place in set(zip(log.row.tolist(), log.position.tolist(), strict=True)):
        own = values[(log.row == row) & (log.position == place)]
        found[row, place] = own.mean(), 4 * np.sqrt(own.mean() / len(own)) + 1e-12
    return found


def test_lists_are_those_of_one_ranker_each():
    log = simulate(Y, QID, SCORES, n_impressions=50, k=3, random_state=0)
    seen = set()
    for number in np.unique(log.impression):
        own = log.impression == number
        rows = log.row[own]
        assert set(QID[rows]) in ({"a"}, {"b"})
        assert len(rows) == np.sum(QID[rows[0]] == QID)
        (ranker,) = (r for r in (0, 1) if (np.diff(SCORES[r, rows]) < 0).all())
        seen.add((QID[rows[0]], ranker))
        expected = np.arange(1, len(rows) + 1)
        np.testing.assert_array_equal(log.position[own], np.where(expected <= 3, expected, 0))
    assert len(seen) == 4
    assert len(np.unique(log.impression)) == 100
    assert (log.click[log.position == 0] == 0).all()
    assert (log.propensity[log.position == 0] == 0).all()


def test_users_of_positions_click_what_they_look_at_and_like():
    looks = [0.9, 0.5, 0.4]
    log = simulate(
        Y, QID, SCORES, n_impressions=N, k=4, examination=looks, noise=0.2, random_state=1
    )
    wanted = attraction(0.2)
    for (row, place), (found, error) in rates(log, log.click).items():
        seen = 0.0 if place == 0 else looks[min(place, 3) - 1]
        assert abs(found - seen * wanted[row]) <= error
    shown = log.position > 0
    np.testing.assert_allclose(
        log.propensity[shown], np.array([*looks, 0.4])[log.position[shown] - 1]
    )
    default = simulate(Y, QID, SCORES, k=None, random_state=1)
    np.testing.assert_allclose(default.propensity, 1 / default.position)


def test_a_seed_draws_the_same_users():
    first, second, third = (
        simulate(Y, QID, SCORES, n_impressions=9, random_state=s) for s in (4, 4, 5)
    )
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (first.click != third.click).any()


def test_rows_of_the_highest_grade_are_always_liked():
    for y, highest in (([0.0, 0.5], None), ([0.0, 0.5], 0.5), ([0.0, 3.0], None)):
        log = simulate(y, None, [0.0, 1.0], k=2, noise=0, examination=[1, 1], max_grade=highest)
        assert log.click[log.row == 1].all() and not log.click[log.row == 0].any()
