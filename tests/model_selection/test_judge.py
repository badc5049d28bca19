"""How rows are held out, apart from the estimators that do so."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from pairgram import ELMRankCV, make_ranking
from parts.data import RankingData
from parts.model_selection import make_splits


def data_of(sizes, seed=0):
    X, y, _ = make_ranking(1, sum(sizes), n_features=3, random_state=seed)
    return RankingData.delimit(X, y, None, sizes)


def test_empty_queries_do_not_count_in_the_choice_of_folds():
    whole, beside_empty = data_of([30]), data_of([0, 30, 0])
    for expected, found in zip(make_splits(3, whole), make_splits(3, beside_empty), strict=True):
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)
    X, y = whole.X, whole.y
    alone = ELMRankCV(cv=3, n_nodes=4, random_state=0).fit(X, y)
    same = ELMRankCV(cv=3, n_nodes=4, random_state=0).fit(X, y, group=[30, 0])
    np.testing.assert_array_equal(alone.scores_, same.scores_)


def test_folds_of_short_data_alone_are_kept_and_nobody_can_change_them(set_limits):
    set_limits(cached_rows=20)
    expected = list(KFold(3, shuffle=True, random_state=0).split(np.empty((20, 1))))
    first, again = make_splits(3, data_of([20])), make_splits(3, data_of([20]))
    assert first is again
    for (train, test), (expected_train, expected_test) in zip(first, expected, strict=True):
        np.testing.assert_array_equal(train, expected_train)
        np.testing.assert_array_equal(test, expected_test)
        with pytest.raises(ValueError, match="read-only"):
            test[0] = 3
    assert make_splits(3, data_of([21])) is not make_splits(3, data_of([21]))
