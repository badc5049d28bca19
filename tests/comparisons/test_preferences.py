"""`Preferences` checks its arguments, and no tool that wants labels can take it by mistake."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairgram import Preferences, RankRLS, RankRLSCV, RankSVM


def test_groups_are_those_that_were_given():
    groups = ["x", "y", "y"]
    y = Preferences([1, 2, 0], [0, 0, 1], groups=groups)
    groups[:] = ["z"] * 3
    assert y.groups.tolist() == ["x", "y", "y"]
    assert y.counting(np.ones(3)).queries.n_queries == 2


def test_a_value_that_does_not_change():
    winner = np.array([1, 2])
    y = Preferences(winner, [0, 0], weight=2.0, groups=["x", "y"])
    assert winner.flags.writeable and not y.winner.flags.writeable
    with pytest.raises(AttributeError):
        y.margin = 2.0
    for same in (copy.deepcopy(y), pickle.loads(pickle.dumps(y))):
        assert same.winner.tolist() == [1, 2] and same.groups.tolist() == ["x", "y"]
    assert repr(y) == "Preferences of 2 comparisons"


X = np.random.default_rng(0).normal(size=(20, 3))


Y = Preferences(np.arange(1, 20), np.arange(19))


@pytest.mark.parametrize(
    "use",
    [
        partial(cross_validate, RankRLS()),
        GridSearchCV(RankRLS(), {"alpha": [1.0, 2.0]}).fit,
        SelectKBest(f_regression, k=1).fit,
        make_pipeline(SelectKBest(f_regression, k=1), RankRLS()).fit,
    ],
)
def test_tools_that_take_labels_say_what_to_do(use):
    with pytest.raises(ValueError, match=r"RankRLSCV\(cv=...\) in place of GridSearchCV"):
        use(X, Y)


def test_a_pipeline_passes_comparisons_through():
    model = make_pipeline(StandardScaler(), RankRLS(2.0)).fit(X, Y)
    alone = RankRLS(2.0).fit(StandardScaler().fit_transform(X), Y)
    np.testing.assert_array_equal(
        model.predict(X), alone.predict(StandardScaler().fit_transform(X))
    )


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 3))
@settings(max_examples=36, deadline=None)
def test_pairs_of_intervals(seed, n_rows, n_queries):
    """Every two rows of a query, one after the other."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, n_rows).astype(float)
    high = low + rng.choice([0.0, 0.0, 1.0, 2.0, np.inf], n_rows)
    low = np.where(rng.random(n_rows) < 0.2, -np.inf, low)
    high = np.where(np.isinf(low) & np.isinf(high), 3.0, high)
    qid = rng.integers(0, n_queries, n_rows)
    expected = {}
    for i in range(n_rows):
        for j in range(n_rows):
            if i == j or qid[i] != qid[j]:
                continue
            exact = low[i] == high[i] and low[j] == high[j]
            if low[i] > high[j]:
                expected[i, j] = low[i] - high[j]
            elif exact and low[i] == low[j] and i < j:
                expected[i, j] = 0.0
    if not expected:
        with pytest.raises(ValueError, match="lower and upper do not tell for any two rows"):
            Preferences.from_intervals(low, high, qid)
        return
    y = Preferences.from_intervals(low, high, qid)
    pairs = zip(y.winner.tolist(), y.loser.tolist(), strict=True)
    assert dict(zip(pairs, y.margin.tolist(), strict=True)) == expected
    assert y.n_pairs == len(expected)
    assert (qid[y.winner] == qid[y.loser]).all()
    np.testing.assert_array_equal(y.groups, qid[y.winner])


def test_labels_that_are_known_are_those_of_lists():
    rng = np.random.default_rng(0)
    labels, qid = rng.integers(0, 4, 20).astype(float), np.repeat(np.arange(4), 5)
    y = Preferences.from_intervals(labels, labels, qid)
    np.testing.assert_allclose(
        RankRLS(2.0).fit(X, y).coef_, RankRLS(2.0).fit(X, labels, qid=qid).coef_, rtol=1e-9
    )
    assert RankRLSCV().fit(X, y).cv_ == "leave-group-out"


def test_more_pairs_than_are_listed():
    # Rows whose intervals touch are no pairs, however many they are.
    low, high = (np.repeat(ends, [4000, 4000, 1]) for ends in ([-np.inf, 3, 4], [3, np.inf, 4.0]))
    y = Preferences.from_intervals(low, high)
    assert y.n_pairs == 4000 and set(y.winner) == {8000}


def test_pairs_of_intervals_stand_winner_after_winner():
    y = Preferences.from_intervals([3.0, 10.0, 12.0, 3.0], [3.0, np.inf, 12.0, 3.0], qid=["a"] * 4)
    assert y.winner.tolist() == [0, 1, 1, 2, 2] and y.loser.tolist() == [3, 0, 3, 0, 3]
    assert y.groups.tolist() == ["a"] * 5


@pytest.mark.parametrize("model", [RankRLS(2.0), RankSVM(0.5, tol=1e-8)])
def test_fits_to_intervals_are_those_to_their_pairs(model):
    lower = np.array([3.0, 10.0, 12.0, 3.0, -np.inf, 1.0])
    upper = np.array([3.0, np.inf, 12.0, 3.0, 2.0, 5.0])
    listed = Preferences([0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3], [3, 4, 0, 3, 4, 5, 0, 3, 4, 5, 4],
                         margin=[0, 1, 7, 7, 8, 5, 9, 9, 10, 7, 1])  # fmt: skip
    found, expected = (
        model.fit(X[:6], y).coef_.copy() for y in (Preferences.from_intervals(lower, upper), listed)
    )
    np.testing.assert_array_equal(found, expected)
