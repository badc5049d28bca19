"""Team-draft interleaving: fair lists, and the sign test of their clicks."""

import numpy as np
from hypothesis import given, strategies as st
from scipy import stats

from pairgram.clicks import credit, interleave

ITEMS = st.lists(st.integers(0, 12), unique=True, max_size=9)


@given(a=ITEMS, b=ITEMS, k=st.none() | st.integers(1, 10), seed=st.integers(0, 2**32 - 1))
def test_each_ranker_puts_its_best_item_that_is_left(a, b, k, seed):
    items, team = interleave(a, b, k=k, random_state=seed)
    assert len(items) == len(set(items)) == len(team) <= (k or 100)
    for place, (item, turn) in enumerate(zip(items, team, strict=True)):
        own = a if turn == "a" else b
        assert item == next(one for one in own if one not in items[:place])
        counts = [(team[: place + 1] == name).sum() for name in "ab"]
        assert abs(counts[0] - counts[1]) <= 1
    if len(items) < (k or 100):  # only a ranker without another item ends the list
        assert set(a) <= set(items) or set(b) <= set(items)


def test_who_comes_first_is_drawn_anew_in_every_round():
    rng = np.random.default_rng(0)
    teams = [interleave("abcdef", "fedcba", k=4, random_state=rng).team for _ in range(400)]
    for place in (0, 2):
        assert abs(np.mean([team[place] == "a" for team in teams]) - 0.5) < 0.1
    assert {"".join(team) for team in teams} == {"abab", "abba", "baab", "baba"}


def test_random_clicks_favour_none_and_a_better_ranker_wins():
    rng = np.random.default_rng(1)
    small = 0
    for _ in range(100):
        team, clicks, qid = [], [], []
        for number in range(40):
            shown = interleave("abcdef", "cdefab", k=4, random_state=rng)
            team += shown.team.tolist()
            clicks += (rng.random(4) < [0.6, 0.4, 0.3, 0.2]).tolist()  # by place alone
            qid += [number] * 4
        small += credit(team, clicks, qid).p <= 0.05
    assert small <= 12
    team, clicks, qid = [], [], []
    for number in range(60):
        shown = interleave("xyz", "zwv", random_state=rng)
        team += shown.team.tolist()
        clicks += [item in "xy" for item in shown.items]
        qid += [number] * len(shown.items)
    found = credit(team, clicks, qid)
    assert found.share > 0.9
    assert found.p < 1e-6


def test_lists_are_won_tied_or_lost_and_the_sign_test_is_exact():
    team = ["a", "b"] * 12
    clicks = [2, 1] * 7 + [0, 1] * 2 + [1, 1] * 2 + [0, 0]
    found = credit(team, clicks, np.repeat(np.arange(12), 2))
    assert (found.wins_a, found.wins_b, found.ties) == (7, 2, 3)
    test = stats.binomtest(7, 9)
    assert found.p == test.pvalue
    assert (found.low, found.high) == tuple(test.proportion_ci(0.95))
    assert found.share == 7 / 9
    none = credit(["a", "b"], [0, 0], [1, 1])
    assert none.ties == 1
    assert np.isnan(none.p)
