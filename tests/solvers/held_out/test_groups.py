"""Groups of queries that are held out together, against a refit without each of them."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings as hypothesis_settings, strategies as st
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    TimeSeriesSplit,
    cross_validate,
)

import forms
import pairgram as pg
from pairgram import Kernel, QueryKFold, RandomNodes, RankRLS, RankRLSCV, RankSVMCV

ALPHAS = [1e3, 0.1]
# From how many rows a feature on a group is held out by a refit.
ROADS = {"rows": 1e30, "refits": 0.0}


def rows_in_groups(seed, n_queries=20, n_groups=6, n=160):
    """Return rows of shuffled queries, of which each is in one group; a group holds a column."""
    rng = np.random.default_rng(seed)
    group_of = np.concatenate(
        [np.arange(n_groups), rng.integers(0, n_groups, n_queries - n_groups)]
    )
    qid = np.concatenate([np.arange(n_queries), rng.integers(0, n_queries, n - n_queries)])
    rng.shuffle(qid)
    X = rng.standard_normal((n, 4))
    X[:, 3] *= group_of[qid] == 2
    y = np.clip(np.rint(X[:, 0] + rng.standard_normal(n)), 0, 2)
    return X, y, qid, group_of[qid]


def refitted(model, splits, X, y, qid, **rows):
    """Return the held-out scores (n_alphas, n_rows) by a fit of every split and ridge."""
    scores = np.full((len(ALPHAS), len(y)), np.nan)
    for train, test in splits:
        of_train = {name: values[train] for name, values in rows.items()}
        for number, alpha in enumerate(ALPHAS):
            own = model.set_params(alpha=alpha).fit(X[train], y[train], qid=qid[train], **of_train)
            added = rows["offset"][test] if "offset" in rows else 0.0
            scores[number, test] = own.predict(X[test]) + added
    return scores


def held_out(search, *given, **rows):
    """Return the held-out scores of every ridge, each of which is the only one of a search."""
    return np.array(
        [search.set_params(alphas=[alpha]).fit(*given, **rows).held_out_ for alpha in ALPHAS]
    )


def same(actual, expected, atol=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol * np.nanmax(abs(expected)))


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("rows", ["plain", "weights", "offset"])
@given(
    seed=st.integers(0, 2**32 - 1),
    pairs=st.sampled_from(["with_ties", "without_ties", "gain_difference", None]),
    weighting=st.sampled_from(["pairs", "documents", "queries"]),
    sparse=st.booleans(),
)
@hypothesis_settings(max_examples=10)
def test_every_group_is_held_out_exactly(limits_of, road, rows, seed, pairs, weighting, sparse):
    X, y, qid, groups = rows_in_groups(seed)
    rng = np.random.default_rng(seed)
    given_rows = {}
    if rows == "weights":
        given_rows["sample_weight"] = rng.uniform(0.1, 2.0, len(y)) * (rng.random(len(y)) < 0.9)
    elif rows == "offset":
        given_rows["offset"] = rng.standard_normal(len(y))
    settings = {"pairs": pg.Pairs(pairs, weighting=weighting)}
    splits = list(LeaveOneGroupOut().split(X, y, groups))
    expected = refitted(forms.RankRLS(**settings), splits, X, y, qid, **given_rows)
    given_X = scipy.sparse.csr_array(X) if sparse else X
    with limits_of(group_rows=ROADS[road]):
        found = held_out(
            forms.RankRLSCV(**settings), given_X, y, qid=qid, groups=groups, **given_rows
        )
    same(found, expected)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    "settings",
    [
        {"feature_map": pg.Kernel("rbf", gamma=0.3)},
        {"form": "dual"},
        {"pairs": pg.Pairs(scope="global")},
        {"pairs": pg.Pairs("without_ties", scope="global")},
        {"feature_map": RandomNodes(12, random_state=0)},
        {"feature_map": RandomNodes(12, activation="linear", random_state=0)},
    ],
    ids=str,
)
def test_other_forms(road, settings, set_limits):
    set_limits(group_rows=ROADS[road])
    X, y, qid, groups = rows_in_groups(1)
    splits = list(LeaveOneGroupOut().split(X, y, groups))
    expected = refitted(forms.RankRLS(**settings), splits, X, y, qid)
    found = held_out(forms.RankRLSCV(**settings), X, y, qid=qid, groups=groups)
    if (
        pg.Pairs.of(settings.get("pairs", "with_ties")).scope != "global"
    ):  # scores may have another constant in every query
        for query in np.unique(qid):
            rows = qid == query
            found[:, rows] -= found[:, rows].mean(axis=1, keepdims=True)
            expected[:, rows] -= expected[:, rows].mean(axis=1, keepdims=True)
    same(found, expected, 1e-8)


def test_a_group_that_holds_nearly_everything(set_limits):
    """Conjugate gradients do not end there, Cholesky takes over, and refits keep the digits."""
    set_limits(group_rows=ROADS["refits"])
    X, y, qid, groups = rows_in_groups(2)
    X[groups == 1] *= 1e3
    splits = list(LeaveOneGroupOut().split(X, y, groups))
    expected = refitted(RankRLS(), splits, X, y, qid)
    found = held_out(RankRLSCV(), X, y, qid=qid, groups=groups)
    for group in range(6):
        rows = groups == group
        same(found[:, rows], expected[:, rows], 1e-9)


@pytest.mark.parametrize(
    "model", [RankRLSCV(ALPHAS), RankRLSCV(ALPHAS, feature_map=Kernel("rbf", gamma=0.3))]
)
def test_folds_are_folds_of_groups(model):
    X, y, qid, groups = rows_in_groups(3)

    def splits_of(parts):
        present = np.unique(groups)
        return [
            (
                np.flatnonzero(np.isin(groups, present[a])),
                np.flatnonzero(np.isin(groups, present[b])),
            )
            for a, b in parts
        ]

    cases = [
        (3, list(QueryKFold(3).split(X, qid=groups))),
        (QueryKFold(2, shuffle=True, random_state=1), None),
        (GroupKFold(3), list(GroupKFold(3).split(X, y, groups))),
        (KFold(3), splits_of(KFold(3).split(np.empty((6, 1))))),
        (TimeSeriesSplit(3), splits_of(TimeSeriesSplit(3).split(np.empty((6, 1))))),
        ("forward", splits_of([(range(k), [k]) for k in range(1, 6)])),
    ]
    for cv, splits in cases:
        splits = list(cv.split(X, qid=groups)) if splits is None else splits
        found = model.set_params(cv=cv).fit(X, y, qid=qid, groups=groups)
        scores, held = found.scores_, found.held_out_
        again = model.set_params(cv=splits).fit(X, y, qid=qid)
        np.testing.assert_allclose(scores, again.scores_, rtol=1e-12)
        np.testing.assert_allclose(held, again.held_out_, atol=1e-9)


def test_forward_takes_the_order_of_ids_and_not_that_of_rows():
    X, y, qid, groups = rows_in_groups(4)
    days = np.datetime64("2026-01-01") + groups
    found = RankRLSCV(ALPHAS, cv="forward").fit(X, y, qid=qid, groups=days)
    assert np.isnan(found.held_out_[groups == 0]).all()
    late = groups == 5
    first = RankRLS(found.alpha_).fit(X[~late], y[~late], qid=qid[~late])
    np.testing.assert_allclose(found.held_out_[late], first.predict(X[late]), atol=1e-10)


@pytest.mark.parametrize("cv", [None, 3, "forward"])
def test_other_searches_hold_groups_out(cv):
    X, y, qid, groups = rows_in_groups(5)
    search = RankSVMCV([0.1, 1.0], cv=cv).fit(X, y, qid=qid, groups=groups)
    splits = list(QueryKFold(cv or 5).split(X, qid=groups)) if cv != "forward" else None
    if splits is None:
        splits = [(np.flatnonzero(groups < k), np.flatnonzero(groups == k)) for k in range(1, 6)]
    again = RankSVMCV([0.1, 1.0], cv=splits).fit(X, y, qid=qid)
    np.testing.assert_array_equal(search.scores_, again.scores_)


def test_auto_ranker_and_fit_many():
    X, y, qid, groups = rows_in_groups(6)
    auto = pg.AutoRanker(time_budget=0.1).fit(X, y, qid=qid, groups=groups)
    plain = RankRLSCV().fit(X, y, qid=qid, groups=groups)
    assert auto.cv_results_["mean_test_score"][0] == pytest.approx(plain.best_score_, abs=1e-12)
    (model,) = pg.fit_many(RankRLSCV(), X, y, by=0 * qid, qid=qid, groups=groups).models
    assert (model.best_score_, model.alpha_) == (plain.best_score_, plain.alpha_)


def test_without_pairs_within_queries_groups_serve_as_ids():
    X, y, _, groups = rows_in_groups(7)
    for settings in ({"pairs": pg.Pairs(scope="global")}, {"pairs": None}):
        found = forms.RankRLSCV(**settings).fit(X, y, groups=groups)
        again = forms.RankRLSCV(**settings).fit(X, y, qid=groups)
        np.testing.assert_array_equal(found.scores_, again.scores_)
        assert not found.uses_qid_


@pytest.mark.parametrize("settings", [{"pairs": pg.Pairs(scope="global")}, {"pairs": None}])
def test_without_query_ids_groups_have_an_order(settings):
    X, y, _, groups = rows_in_groups(10)
    for cv, first in (("forward", 1), (TimeSeriesSplit(3), 3)):
        found = forms.RankRLSCV(ALPHAS, cv=cv, **settings).fit(X, y, groups=groups)
        ends = range(first, 6)
        splits = [(np.flatnonzero(groups < k), np.flatnonzero(groups == k)) for k in ends]
        again = forms.RankRLSCV(ALPHAS, cv=splits, **settings).fit(X, y, qid=groups)
        np.testing.assert_allclose(found.scores_, again.scores_, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:settings are chosen by")
def test_scikit_learn_routes_groups(routing):
    X, y, qid, groups = rows_in_groups(8)
    found = cross_validate(
        RankRLSCV(ALPHAS), X, y, cv=GroupKFold(2), params={"qid": qid, "groups": groups}
    )["test_score"]
    by_hand = [
        RankRLSCV(ALPHAS)
        .fit(X[train], y[train], qid=qid[train], groups=groups[train])
        .score(X[test], y[test], qid=qid[test])
        for train, test in GroupKFold(2).split(X, y, groups)
    ]
    np.testing.assert_allclose(found, by_hand)
    search = GridSearchCV(RankRLS(), {"alpha": ALPHAS}, cv=QueryKFold(3))
    search.fit(X, y, qid=qid, groups=groups)
    ours = RankRLSCV(ALPHAS, cv=QueryKFold(3)).fit(X, y, qid=qid, groups=groups)
    by_split = [ours.cv_results_[f"split{k}_test_score"] for k in range(3)]
    theirs = [search.cv_results_[f"split{k}_test_score"] for k in range(3)]
    np.testing.assert_allclose(theirs, by_split, rtol=1e-10)
