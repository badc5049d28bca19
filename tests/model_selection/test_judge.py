"""How rows are held out, apart from the estimators that do so."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import pairgram as pg
from pairgram import make_ranking
from parts.data import RankingData
from parts.model_selection import make_splits


def data_of(sizes, seed=0):
    X, y, _ = make_ranking(1, sum(sizes), n_features=3, random_state=seed)
    return RankingData.delimit(X, y, np.repeat(np.arange(len(sizes)), sizes))


def test_folds_of_short_data_alone_are_kept_and_nobody_can_change_them(set_limits):
    set_limits(cached_rows=20)
    expected = list(KFold(3, shuffle=True, random_state=0).split(np.empty((20, 1))))
    first, again = make_splits(3, data_of([20])), make_splits(3, data_of([20]))
    assert first is again
    for (train, test), (expected_train, expected_test) in zip(first, expected, strict=True):
        np.testing.assert_array_equal(train, expected_train)
        np.testing.assert_array_equal(test, expected_test)
    with pytest.raises(ValueError, match="read-only"):
        first.of_rows[0] = 3
    assert make_splits(3, data_of([21])) is not make_splits(3, data_of([21]))


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("model", [pg.RankRLSCV, pg.RankSVMCV])
def test_the_table_of_queries_leaves_out_rows_of_weight_0_in_any_order(model, cv):
    rng = np.random.default_rng(0)
    X, y, qid = pg.make_ranking(20, (3, 9), 5, random_state=0)
    order = rng.permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    v = rng.choice([0.0, 0.5, 1.0, 2.0], len(y))
    search = model([1.0], scoring="ndcg@3", cv=cv).fit(X, y, qid=qid, sample_weight=v)
    table = search.per_query_
    if cv is None:
        assert list(table["qid"]) == [q for q in dict.fromkeys(qid) if v[qid == q].any()]
    for q, n, weight, value in zip(
        *(table[k] for k in ("qid", "n", "weight", "ndcg@3")), strict=True
    ):
        at = (qid == q) & (v > 0)
        assert (n, weight) == (at.sum(), v[at].mean())
        np.testing.assert_allclose(value, pg.get_metric("ndcg@3")(y[at], search.held_out_[at]))


def test_a_splitter_that_derives_from_ours_splits_by_itself():
    class Shorter(pg.QueryKFold):
        def split(self, X, y=None, groups=None, qid=None):
            for train, test in super().split(X, y, groups, qid):
                yield train[:30], test

    X, y, qid = pg.make_ranking(12, 8, 3, random_state=0)
    listed = list(Shorter(3).split(X, qid=qid))
    own = pg.RankRLSCV([1.0], cv=Shorter(3)).fit(X, y, qid=qid)
    assert own.best_score_ == pg.RankRLSCV([1.0], cv=listed).fit(X, y, qid=qid).best_score_
    assert own.best_score_ != pg.RankRLSCV([1.0], cv=3).fit(X, y, qid=qid).best_score_


def test_tables_are_made_when_they_are_asked_for_and_keep_no_more_than_they_need():
    X, y, qid = pg.make_ranking(40, 10, 3, random_state=0)
    search = pg.RankRLSCV(pairs=["with_ties", "without_ties"])
    for name in ("cv_results_", "held_out_", "per_query_"):
        assert not hasattr(search, name)
        with pytest.raises(AttributeError, match=f"'RankRLSCV' object has no attribute '{name}'"):
            getattr(search, name)
    search.fit(X, y, qid=qid)
    asked, other = search.fit(X, y, qid=qid).cv_results_, pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(other.cv_results_["mean_test_score"], asked["mean_test_score"])
    np.testing.assert_array_equal(other.held_out_, search.held_out_)
    assert len(pickle.dumps(search.fit(X, y, qid=qid).__dict__)) < 3 * len(pickle.dumps(other))


@pytest.mark.parametrize(
    ("search", "ranker"), [(pg.RankRLSCV, pg.RankRLS), (pg.RankSVMCV, pg.RankSVM)]
)
def test_the_best_parameters_of_the_table_fill_gaps_too(search, ranker):
    X, y, qid = pg.make_ranking(20, 10, 4, random_state=0)
    X[::7, 1] = np.nan
    maps = [pg.Fill("median"), make_pipeline(pg.Fill("median"), pg.Quantile())]
    model = search(feature_map=maps).fit(X, y, qid=qid)
    best = model.cv_results_["params"][model.best_index_]
    again = ranker(**best).fit(X, y, qid=qid)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9)
