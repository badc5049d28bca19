"""The held-out scores that a search keeps: they give its own score, and are those of refits."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, RepeatedKFold

import forms
from axes import every
from pairgram import (
    ELMRankCV,
    Kernel,
    Pairs,
    PairwiseELMCV,
    PointwiseELMCV,
    QueryKFold,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    evaluate,
    fit_many,
    make_ranking,
)

NODES = {"n_nodes": 6, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X, y, qid = make_ranking(15, (3, 9), 4, random_state=2)
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"q{number}" for number in range(15)], dtype=object)
    return X[order], y[order], names[qid[order]]


SEARCHES = [
    RankRLSCV(),
    RankRLSCV(scoring="map", pairs=["with_ties", "without_ties"], scale=[True, False]),
    forms.RankRLSCV([0.1, 10.0], form="dual"),
    RankRLSCV([1.0], feature_map=[Kernel("rbf", gamma=g) for g in [0.1, 1.0]]),
    RankRLSCV([1.0, 2.0], pairs=Pairs(scope="global")),
    RankRLSCV(cv=3),
    RankRLSCV([0.01, 1.0], pairs=None, scoring="pairwise_squared_error", cv=QueryKFold(4)),
    RankRLSCV([1.0], feature_map=RandomNodes(5, "tanh", random_state=0), cv=4),
    PairwiseELMCV([0.1, 1.0], **NODES),
    PointwiseELMCV([0.1, 1.0], scoring="pairwise_accuracy", **NODES),
    ELMRankCV([0.1, 1.0], [1.0, 8.0], **NODES),
    RankSVMCV([1.0, 0.01]),
    RankSVMCV([0.1], feature_map=[None, RandomNodes(5, random_state=0)], cv=3),
]


@every(search=SEARCHES)
def test_the_scores_kept_give_the_best_score(rows, search):
    X, y, qid = rows
    search = search.fit(X, y, qid=qid)
    assert search.held_out_.shape == y.shape and search.held_out_.dtype == np.float64
    name = search.scoring_.name
    found = evaluate([search.scoring_], y, search.held_out_, qid)[name]
    assert found == pytest.approx(search.best_score_, rel=1e-12)
    table = pd.DataFrame(search.per_query_)
    assert {*table} - {"split"} == {"qid", "n", "weight", name}
    assert (table["weight"] == 1).all()
    each = evaluate([search.scoring_], y, search.held_out_, qid, per_query=True)[name]
    expected = pd.DataFrame({"n": pd.Series(qid).groupby(qid, sort=False).size()})
    expected[name] = each
    table = table.set_index("qid").loc[expected.index]
    assert table["n"].tolist() == expected["n"].tolist()
    np.testing.assert_allclose(table[name], expected[name], rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("search", [RankRLSCV([1.0]), RankSVMCV([1.0], cv=3)], ids=repr)
def test_the_mean_of_the_values_kept_has_their_weights(rows, search):
    X, y, qid = rows
    weights = np.random.default_rng(0).uniform(0.1, 2, len(y))
    search = search.fit(X, y, qid=qid, sample_weight=weights)
    values, own = (search.per_query_[name] for name in (search.scoring_.name, "weight"))
    known = ~np.isnan(values)
    assert np.average(values[known], weights=own[known]) == pytest.approx(search.best_score_)


def test_the_scores_are_those_of_models_without_the_query(rows):
    X, y, qid = rows
    search = RankRLSCV().fit(X, y, qid=qid)
    for query in np.unique(qid):
        out = qid == query
        model = RankRLS(search.alpha_).fit(X[~out], y[~out], qid=qid[~out])
        np.testing.assert_allclose(
            np.diff(search.held_out_[out]), np.diff(model.predict(X[out])), atol=1e-10
        )


def test_repeated_splits_are_averaged_and_rows_never_held_out_are_nan(rows):
    X, y, qid = rows
    groups = list(GroupKFold(5, shuffle=True, random_state=0).split(X, groups=qid))
    again = list(GroupKFold(5, shuffle=True, random_state=1).split(X, groups=qid))
    splits = [groups[0], groups[1], again[2]]
    model = RankSVMCV([0.1], cv=splits, tol=1e-9).fit(X, y, qid=qid)
    scores = np.full((3, len(y)), np.nan)
    for row, (train, test) in zip(scores, splits, strict=True):
        row[test] = RankSVM(0.1, tol=1e-9).fit(X[train], y[train], qid=qid[train]).predict(X[test])
    tested = ~np.isnan(scores).all(axis=0)
    assert (np.isnan(scores).sum(axis=0) == 1).any() and not tested.all()
    np.testing.assert_array_equal(np.isnan(model.held_out_), ~tested)
    expected = np.nanmean(scores[:, tested], axis=0)
    np.testing.assert_allclose(model.held_out_[tested], expected, atol=1e-6)
    table = pd.DataFrame(model.per_query_)
    for number, (_, test) in enumerate(splits):
        assert set(table["qid"][table["split"] == number]) == set(qid[test])
    assert table["ndcg@10"].mean() == pytest.approx(model.best_score_)


def test_a_validation_set_has_its_own_rows(rows):
    X, y, qid = rows
    first = np.isin(qid, [f"q{number}" for number in range(9)])
    validation = (X[~first], y[~first], qid[~first])
    for search in (RankRLSCV(), RankSVMCV([0.1])):
        model = search.fit(X[first], y[first], qid=qid[first], validation=validation)
        np.testing.assert_allclose(model.held_out_, model.predict(X[~first]), rtol=1e-9)
        found = evaluate("ndcg@10", y[~first], model.held_out_, qid[~first])["ndcg@10"]
        assert found == pytest.approx(model.best_score_, rel=1e-12)
        assert set(model.per_query_["qid"]) == set(qid[~first])
        assert "split" not in model.per_query_


def test_rows_of_one_query(rows):
    X, y, _ = rows
    for cv in (None, 4, RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)):
        model = RankRLSCV(cv=cv).fit(X, y)
        assert np.isfinite(model.held_out_).all()
        splits = {None: 1, 4: 4}.get(cv if cv is None or cv == 4 else "", 8)
        assert model.per_query_["qid"].tolist() == [0] * splits
    model = RankRLSCV().fit(X, y)
    found = evaluate("pairwise_accuracy", y, model.held_out_)["pairwise_accuracy"]
    assert found == pytest.approx(model.best_score_, rel=1e-12)


def test_rows_of_weight_0_have_scores_and_do_not_count(rows):
    X, y, qid = rows
    weights = np.random.default_rng(1).choice([0.0, 1.0], len(y), p=[0.3, 0.7])
    weights[qid == "q3"] = 0.0
    model = RankRLSCV().fit(X, y, qid=qid, sample_weight=weights)
    assert np.isfinite(model.held_out_).all()
    seen = weights > 0
    found = evaluate("ndcg@10", y[seen], model.held_out_[seen], qid[seen])["ndcg@10"]
    assert found == pytest.approx(model.best_score_, rel=1e-12)
    table = pd.DataFrame(model.per_query_).set_index("qid")
    assert "q3" not in table.index
    assert table["n"].to_dict() == pd.Series(qid[seen]).value_counts().to_dict()


@pytest.mark.filterwarnings("ignore:settings are chosen by")
def test_queries_stand_in_the_order_of_their_first_rows():
    X, y, _ = make_ranking(1, 30, 3, random_state=0)
    model = RankRLSCV().fit(X, y, qid=np.repeat([7, 2, 3], [10, 12, 8]))
    assert model.per_query_["qid"].tolist() == [7, 2, 3]
    assert model.per_query_["n"].tolist() == [10, 12, 8]


def test_models_of_many_data_sets_keep_their_scores(rows):
    X, y, qid = rows
    search = RankRLSCV(cv=3, scale=True)
    model = fit_many(search, [(X, y, qid)]).models[0]
    alone = search.fit(X, y, qid=qid)
    np.testing.assert_allclose(model.held_out_, alone.held_out_, atol=1e-9)


def test_a_file_does_not_hold_them(rows, tmp_path):
    X, y, qid = rows
    for search in SEARCHES[:1] + SEARCHES[-5:-1]:
        search.fit(X, y, qid=qid).save(tmp_path / "m")
        assert b"held_out" not in (tmp_path / "m").read_bytes()


def test_pairs_that_are_left_out_have_no_scores_of_rows(rows):
    X, y, _ = rows
    assert RankRLSCV(cv="leave-pair-out").fit(X[:20], y[:20]).held_out_ is None
