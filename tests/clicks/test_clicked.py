"""The value `Clicks`, and the tools of scikit-learn that split it."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, KFold, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairgram import Clicks, QueryKFold, RankRLS, RankSVM, evaluate, make_ranking, make_scorer

X, labels, qid = make_ranking(30, 8, 3, random_state=0)
rng = np.random.default_rng(0)
clicked = (labels > rng.integers(0, 3, len(labels))) * 1.0
propensity = np.where(clicked > 0, rng.choice([1.0, 0.5, 0.2], len(labels)), np.nan)
y = Clicks(clicked, propensity)


def test_a_part_is_the_clicks_of_its_rows():
    assert len(y) == len(clicked) and y.shape == (len(clicked),)
    np.testing.assert_array_equal(y.labels, np.where(clicked > 0, clicked / propensity, 0.0))
    rows = np.array([5, 0, 77])
    for part in (rows, slice(3, 9), clicked > 0, (rows, ...)):
        found = y[part]
        np.testing.assert_array_equal(found.clicked, clicked[part])
        np.testing.assert_array_equal(found.propensity, propensity[part])
        np.testing.assert_array_equal(found.labels, y.labels[part])
    assert repr(Clicks([0, 2, 1], [0.0, 1.0, 0.5])) == "Clicks on 2 of 3 rows"
    for made in (
        Clicks(list(clicked), list(propensity)),
        Clicks(*map(pd.Series, (clicked, propensity))),
    ):
        np.testing.assert_array_equal(made.labels, y.labels)


def test_the_arrays_are_not_copied():
    assert y.clicked is clicked and y.propensity is propensity


@pytest.mark.parametrize(
    "ranker", [RankRLS(), RankSVM(), make_pipeline(StandardScaler(), RankRLS())]
)
@pytest.mark.parametrize("scoring", [None, make_scorer("ips_dcg@10")])
def test_cross_validation_splits_clicks(ranker, scoring):
    folds = list(QueryKFold(3).split(X, qid=qid))
    with config_context(enable_metadata_routing=True):
        if hasattr(ranker, "steps"):
            ranker[-1].set_fit_request(qid=True).set_score_request(qid=True)
        found = cross_validate(
            ranker, X, y, cv=folds, params={"qid": qid}, scoring=scoring, error_score="raise"
        )["test_score"]
        for (train, test), score in zip(folds, found, strict=True):
            model = ranker.fit(X[train], y[train], qid=qid[train])
            scores = model.predict(X[test])
            expected = evaluate("ips_dcg@10", y[test], scores, qid[test])["ips_dcg@10"]
            assert score == expected == model.score(X[test], y[test], qid=qid[test])


@pytest.mark.filterwarnings("ignore::pairgram.MissingQueryWarning")
def test_other_tools_split_clicks():
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert len(y_train) == len(train) and len(y_test) == len(test)
    grid = GridSearchCV(RankRLS(), {"alpha": [1.0, 10.0]}, cv=KFold(3)).fit(X, y)
    assert grid.best_score_ > 0
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cross_validate(RankRLS(), X[1:], y, cv=KFold(3))


def test_a_fold_without_clicks_is_told():
    none = Clicks(0 * clicked, propensity)
    with pytest.raises(ValueError, match="y has no click"):
        RankRLS().fit(X, none, qid=qid)
    model = RankRLS().fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="y has no click"):
        model.score(X, none, qid=qid)
