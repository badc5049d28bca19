"""Query ids that do not reach an estimator are noticed."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forms
import pairgram as pg
from axes import every
from pairgram import MissingQueryWarning

X, Y, QID = pg.make_ranking(60, 20, 4, random_state=0)
FEW = slice(0, 1000)
FORGETFUL = [
    pg.RankRLS(),
    forms.RankRLS(pairs="without_ties", form="primal"),
    pg.RankRLSCV([1.0], cv=2),
    pg.RankRLSCV([1.0], pairs=[None, "with_ties"], cv=2),
    pg.PairwiseELM(n_nodes=4),
    pg.PairwiseELMCV([1.0], n_nodes=4, cv=2),
    pg.ELMRank(n_nodes=4, pairs=pg.Pairs()),
    pg.RankSVM(),
    pg.RankSVMCV([1.0], cv=2),
]
CONTENT = [
    pg.RankRLS(pairs=None),
    pg.RankRLS(pairs=pg.Pairs(scope="global")),
    pg.RankRLSCV([1.0], pairs=[None], cv=2),
    pg.PointwiseELM(n_nodes=4),
    pg.PointwiseELMCV([1.0], n_nodes=4, cv=2),
    pg.ELMRank(n_nodes=4),
    pg.ELMRankCV([1.0], [1.0], n_nodes=4, cv=2),
]


@every(model=FORGETFUL)
def test_many_rows_without_ids_are_warned_of(model):
    message = rf"^{type(model).__name__}\.fit got 1200 rows without qid: they are one"
    with pytest.warns(MissingQueryWarning, match=message) as caught:
        model.fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    model.fit(X[FEW], Y[FEW])
    model.fit(X, Y, qid=QID)
    model.fit(X, Y, qid=np.zeros(1200))


@pytest.mark.parametrize("model", CONTENT, ids=repr)
def test_models_of_rows_or_of_all_pairs_need_no_ids(model):
    model.fit(X, Y)


@pytest.mark.parametrize("model", [FORGETFUL[0], FORGETFUL[2], FORGETFUL[6]], ids=repr)
def test_a_problem_of_a_batch_may_be_one_query(model):
    pg.fit_many(model, [(X, Y), (X[:30], Y[:30])])
    pg.fit_many(make_pipeline(StandardScaler(), clone(model)), [(X, Y)])
    with pytest.warns(MissingQueryWarning):  # and only there
        clone(model).fit(X, Y)


@every(wrap=[clone, lambda model: make_pipeline(StandardScaler(), model)], model=FORGETFUL)
def test_cross_validation_without_ids_is_warned_of(model, wrap):
    message = r"fit got \d+ rows without qid.*params=.*scope='global'\) if that is meant"
    with pytest.warns(MissingQueryWarning, match=message):
        cross_val_score(wrap(model), X[:60], Y[:60], cv=GroupKFold(3), groups=QID[:60])


@pytest.mark.parametrize("model", CONTENT, ids=repr)
def test_cross_validation_of_models_of_rows_or_of_all_pairs(model):
    cross_val_score(model, X[:60], Y[:60], cv=3)


def test_statistics_may_be_of_one_query():
    pg.Pairgram.from_rows(X, Y)
    assert issubclass(MissingQueryWarning, UserWarning)


def test_groups_do_not_reach_the_estimator():
    for call in (
        lambda: cross_val_score(pg.RankRLS(), X[FEW], Y[FEW], cv=pg.QueryKFold(3), groups=QID[FEW]),
        lambda: GridSearchCV(pg.RankRLS(), {"alpha": [1.0]}, cv=pg.QueryKFold(3)).fit(
            X[FEW], Y[FEW], groups=QID[FEW]
        ),
    ):
        with (
            pytest.warns(MissingQueryWarning, match="groups, which the estimator does not see"),
            pytest.warns(MissingQueryWarning, match="fit got .* rows without qid"),
        ):
            call()
    splits = list(pg.QueryKFold(3).split(X, groups=QID))  # of a caller who knows them
    np.testing.assert_array_equal(splits[1][1], list(pg.QueryKFold(3).split(X, qid=QID))[1][1])


@pytest.mark.parametrize("scoring", [None, pg.make_scorer("map")], ids=repr)
def test_ids_that_reach_fit_and_not_score_are_named(scoring):
    message = r"^RankRLS was fitted with query ids.*set_config\(enable_metadata_routing=True\)"
    for call in (
        lambda: cross_val_score(pg.RankRLS(), X, Y, cv=3, params={"qid": QID}, scoring=scoring),
        lambda: GridSearchCV(pg.RankRLS(), {"alpha": [1.0]}, cv=3, scoring=scoring).fit(
            X, Y, qid=QID
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn, with a traceback
            with pytest.warns(MissingQueryWarning, match=message):
                call()
    with pytest.raises(ValueError, match=message):  # and no warning
        (scoring or (lambda model, *data: model.score(*data)))(
            pg.RankRLS().fit(X, Y, qid=QID), X, Y
        )
    with pytest.raises(ValueError, match=r"QueryKFold needs .*enable_metadata_routing=True"):
        cross_val_score(pg.RankRLS(), X, Y, cv=pg.QueryKFold(3), params={"qid": QID})


@pytest.mark.parametrize("metric", ["ndcg@10", "map", "err", ["kendall", "mrr"]])
def test_many_rows_are_seldom_one_result_list(metric):
    with pytest.warns(MissingQueryWarning, match="^evaluate got 1200 rows .* one result list") as w:
        pg.evaluate(metric, Y, X[:, 0])
    assert [warning.filename for warning in w] == [__file__]
    pg.evaluate(metric, Y[FEW], X[FEW, 0])
    pg.evaluate(metric, Y, X[:, 0], QID)
    pg.evaluate(metric, Y, X[:, 0], np.zeros(1200))
    pg.evaluate(
        ["kendall", "pearson", "pairwise_squared_error", "misranking", "ranking_error"], Y, X[:, 0]
    )


def test_routed_ids_and_our_own_searches_are_not_warned_of(routing):
    scores = cross_val_score(pg.RankRLS(), X, Y, cv=pg.QueryKFold(3), params={"qid": QID})
    assert scores.min() > 0.6
    for model in (pg.RankRLSCV([1.0], cv=pg.QueryKFold(3)), pg.RankSVMCV([1.0], cv=3)):
        model.fit(X, Y, qid=QID)
