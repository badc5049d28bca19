"""Rows of interactions: what is drawn, beside what users have seen; the last ones of every user."""

import datetime
import itertools
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pairgram import RankRLS, leave_last_out, sample_negatives

IDS = st.integers(0, 6)


@given(
    st.lists(st.tuples(IDS, IDS), min_size=1, max_size=40),
    st.integers(1, 4),
    st.sampled_from(["uniform", "popularity"]),
    st.booleans(),
    st.integers(0, 1000),
)
@pytest.mark.filterwarnings("ignore:.*users have seen so much")
def test_what_is_drawn(pairs, n, by, whole, seed):
    users = np.array([f"u{user}" for user, _ in pairs], object)
    items = np.array([item for _, item in pairs])
    catalog = np.arange(9)[::-1] if whole else None
    rows = sample_negatives(users, items, n, by=by, catalog=catalog, random_state=seed)
    known = set(items.tolist()) if by == "popularity" or not whole else set(range(9))
    assert list(dict.fromkeys(rows.users)) == list(dict.fromkeys(users))
    for user in dict.fromkeys(users):
        own = rows.users == user
        assert np.ptp(np.flatnonzero(own)) == own.sum() - 1  # they stand together
        chosen, drawn = own & (rows.labels == 1), own & (rows.labels == 0)
        assert rows.items[chosen].tolist() == items[users == user].tolist()
        assert rows.source[chosen].tolist() == np.flatnonzero(users == user).tolist()
        found = rows.items[drawn].tolist()
        left = known - set(items[users == user].tolist())
        assert len(set(found)) == len(found) == min(len(left), n * chosen.sum())
        assert set(found) <= left
        assert (users[rows.source[drawn]] == user).all()
        assert max(Counter(rows.source[drawn].tolist()).values(), default=0) <= n
    again = sample_negatives(users, items, n, by=by, catalog=catalog, random_state=seed)
    assert (again.items == rows.items).all()


def successive(weights, size):
    """Return the probability of every set of things that are drawn one after the other."""
    found = Counter()
    for drawn in itertools.permutations(weights, size):
        probability, rest = 1.0, dict(weights)
        for thing in drawn:
            probability *= rest[thing] / sum(rest.values())
            del rest[thing]
        found[frozenset(drawn)] += probability
    return found


@pytest.mark.parametrize("by", ["uniform", "popularity"])
def test_how_likely_things_are(by):
    n_copies = 20_000
    # Many users who have seen 1 and 4 of six things; one user makes the others popular.
    popular = [0] * 7 * n_copies + [2] * n_copies + [3] * 2 * n_copies + [5] * 3 * n_copies
    users = [*np.repeat(np.arange(n_copies), 2), *[-1] * len(popular)]
    items = [*np.tile([1, 4], n_copies), *popular]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = sample_negatives(users, items, 1, by=by, random_state=0)
    drawn = rows.items[(rows.users >= 0) & (rows.labels == 0)].reshape(n_copies, 2)
    weights = {0: 7, 2: 1, 3: 2, 5: 3} if by == "popularity" else dict.fromkeys((0, 2, 3, 5), 1)
    found = Counter(map(frozenset, drawn.tolist()))
    for things, probability in successive(weights, 2).items():
        error = np.sqrt(probability * (1 - probability) / n_copies)
        assert abs(found[things] / n_copies - probability) < 4.5 * error


def test_users_who_have_seen_almost_everything():
    with pytest.warns(UserWarning, match="2 of 3 users .* user 'all' gets 0 in place of 4"):
        rows = sample_negatives(
            ["all"] * 4 + ["most"] * 3 + ["new"], [0, 1, 2, 3, 0, 1, 2, 0], random_state=0
        )
    assert rows.items[(rows.users == "most") & (rows.labels == 0)].tolist() == [3]
    assert not (rows.labels[rows.users == "all"] == 0).any()
    assert ((rows.users == "new") & (rows.labels == 0)).sum() == 1


@pytest.mark.parametrize("by", ["uniform", "popularity"])
def test_the_last_users_have_seen_everything(by):
    users, items = [0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 0, 1, 0, 1]
    with pytest.warns(UserWarning, match="3 of 4 users"):
        rows = sample_negatives(users, items, by=by, random_state=0)
    drawn = rows.labels == 0
    assert (rows.users[drawn].tolist(), rows.items[drawn].tolist()) == ([0], [1])


def test_rows_go_to_fit():
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 20, 200), rng.integers(0, 300, 200)
    rows = sample_negatives(users, items, 2, catalog=range(300), random_state=0)
    things = rng.normal(size=(300, 3))
    model = RankRLS().fit(things[rows.items], rows.labels, qid=rows.users)
    assert np.isfinite(model.coef_).all()


def test_frames_and_ids():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    users, items = ["a", "b", "a"], ["x", "y", "z"]
    catalog = ["x", "y", "z", "w", "v"]
    plain = pandas.DataFrame(
        sample_negatives(users, items, catalog=catalog, random_state=0)._asdict()
    )
    assert plain.columns.tolist() == ["users", "items", "labels", "source"]
    for kind in (pandas.Series, polars.Series, pandas.Categorical):
        rows = sample_negatives(kind(users), kind(items), catalog=kind(catalog), random_state=0)
        assert pandas.DataFrame(rows._asdict()).equals(plain)


def test_no_interactions():
    assert len(sample_negatives([], []).labels) == 0
    assert leave_last_out([], []).test.tolist() == []


@given(st.lists(st.tuples(IDS, st.integers(0, 9)), max_size=40), st.integers(1, 3))
@pytest.mark.filterwarnings("ignore:.*users")
def test_the_last_of_every_user(pairs, n):
    users, times = [user for user, _ in pairs], [time for _, time in pairs]
    train, test = leave_last_out(users, times, n)
    for user in set(users):
        own = sorted((times[row], row) for row in range(len(users)) if users[row] == user)
        out = {row for _, row in own[-n:]} if len(own) > n else set()
        assert {row for row in np.flatnonzero(test) if users[row] == user} == out
    assert (train == ~test).all()


def test_times_of_all_kinds():
    pandas = pytest.importorskip("pandas")
    days = pandas.to_datetime(["2026-01-03", "2026-01-01", "2026-01-02"])
    users = ["a", "a", "a"]
    for times in (
        days,
        days.to_series(),
        days.tz_localize("UTC").to_series(),
        [day.date() for day in days],
        days - days[0],
        [
            datetime.datetime(2026, 1, 3, 1),
            datetime.datetime(2026, 1, 1),
            datetime.datetime(2026, 1, 2),
        ],
    ):
        assert leave_last_out(users, times).test.tolist() == [True, False, False]


def test_ties_and_few_interactions_are_told():
    with pytest.warns(UserWarning, match="for 1 of 2 users, the first interaction that is held"):
        found = leave_last_out(["a", "b", "a", "b"], [1, 2, 1, 3])
    assert found.test.tolist() == [False, False, True, True]
    with pytest.warns(UserWarning, match="1 of 2 users have 1 interactions or fewer"):
        found = leave_last_out(["a", "b", "b"], [1, 2, 3])
    assert found.test.tolist() == [False, False, True]
    with warnings.catch_warnings():  # ties within what is held out decide nothing
        warnings.simplefilter("error")
        leave_last_out(["a", "a", "a"], [1, 2, 2], n=2)
