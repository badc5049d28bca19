"""QueryKFold."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.model_selection import GroupKFold, cross_val_score

from pairgram import QueryKFold, RankRLS, RankRLSCV, make_ranking


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.integers(2, 4), st.booleans())
def test_folds_partition_the_queries(ids, n_splits, shuffle):
    folds = QueryKFold(n_splits, shuffle=shuffle, random_state=0)
    X, ids = np.empty((len(ids), 1)), np.array(ids)
    if len(set(ids)) < n_splits:
        with pytest.raises(ValueError, match="needs as many queries"):
            list(folds.split(X, qid=ids))
        return
    splits = list(folds.split(X, qid=ids))
    assert len(splits) == folds.get_n_splits() == n_splits
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(len(ids)))
    sizes = [len(set(ids[test])) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1
    for train, test in splits:
        assert not set(ids[train]) & set(ids[test])
        assert len(train) + len(test) == len(ids)


def test_shuffles_are_seeded():
    def tests(seed):
        folds = QueryKFold(3, shuffle=True, random_state=seed)
        return [test.tolist() for _, test in folds.split(np.empty(20), qid=np.arange(20))]

    assert tests(1) == tests(1) == tests(np.random.RandomState(1))
    assert tests(1) != tests(2)
    assert tests(np.random.default_rng(1)) == tests(np.random.default_rng(1))


def test_groups_may_be_larger_than_queries():
    qid, groups = [1, 2, 1, 3, 4], ["b", "a", "b", "b", "c"]
    folds = [test.tolist() for _, test in QueryKFold(3).split(qid, qid=qid, groups=groups)]
    assert folds == [[0, 2, 3], [1], [4]]


def test_ids_come_as_groups_or_by_routing(routing):
    X, y, qid = make_ranking(12, 8, 4, random_state=0)
    routed = cross_val_score(RankRLS(), X, y, cv=QueryKFold(3), params={"qid": qid})
    by_hand = [
        RankRLS().fit(X[train], y[train], qid=qid[train]).score(X[test], y[test], qid=qid[test])
        for train, test in QueryKFold(3).split(X, y, qid=qid)
    ]
    np.testing.assert_allclose(routed, by_hand)


def test_an_array_of_splits():
    X, y, qid = make_ranking(9, 5, 3, random_state=0)
    splits = list(GroupKFold(3).split(X, y, qid))
    expected = RankRLSCV(cv=splits).fit(X, y, qid=qid).scores_
    found = RankRLSCV(cv=np.array(splits, dtype=object)).fit(X, y, qid=qid).scores_
    np.testing.assert_array_equal(found, expected)
