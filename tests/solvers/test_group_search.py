"""The compiled search of many sets: paths, and scores by models that never saw the rows."""

import numpy as np
import pytest
from sklearn.base import clone

import pairgram as pg
from axes import every
from pairgram import _core
from problems import Problem, ranking_problem

STATES, ALPHAS, MODELS, SCORES = range(4)


def searched(sets, alphas, pairs="with_ties", weighting="pairs", units=None):
    """States, alphas, models and scores of sets of (X, y, qid, v)."""
    X, y, _, v = (np.concatenate(parts) for parts in zip(*sets, strict=True))
    sizes = [len(np.unique(one[2])) for one in sets]
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    qid = np.concatenate([first + one[2] for first, one in zip(bounds, sets, strict=False)])
    return _core.search_groups(
        ranking_problem(Problem(X, y, qid, v, None), pairs, weighting),
        bounds,
        y,
        [X],
        range=(0, len(sets)),
        alphas=alphas,
        multiples=np.empty(0),
        powers=np.empty(0),
        started=False,
        limits=(1.4e-14, 1e2, 1e-200),
        units=units,
        n_threads=1,
    )


def drawn(rng, n_rows, n_features, n_queries):
    qid = np.sort(rng.integers(0, n_queries, n_rows))
    qid[-n_queries:] = np.arange(n_queries)
    qid = np.sort(qid)
    X = rng.normal(size=(n_rows, n_features)) + 3
    y = rng.integers(0, 4, n_rows) * 1.0
    return X, y, qid, rng.choice([0.5, 1.0, 2.0], n_rows)


def centred(scores, qid):
    return np.concatenate([scores[qid == q] - scores[qid == q].mean() for q in np.unique(qid)])


@pytest.mark.parametrize("pairs", ["with_ties", "without_ties", "gain_difference", None])
@every(shape=[(40, 6, 7), (15, 40, 4), (300, 3, 60)], weighting=["pairs", "queries"])
def test_scores_of_queries_are_those_of_refits(pairs, shape, weighting):
    rng = np.random.default_rng(0)
    sets, alphas = [drawn(rng, *shape) for _ in range(2)], np.array([50.0, 0.1])
    found = searched(sets, alphas, pairs=pairs, weighting=weighting)
    assert (found[STATES] == 0).all() and (found[ALPHAS] == alphas).all()
    first = 0
    for number, (X, y, qid, v) in enumerate(sets):
        scores = found[SCORES][:, first : first + len(y)]
        first += len(y)
        for j, alpha in enumerate(alphas):
            model = pg.RankRLS(alpha, pairs=pg.Pairs(pairs, weighting=weighting))
            whole = model.fit(X, y, qid=qid, sample_weight=v)
            size = 1e-9 * np.abs(whole.coef_).max()
            np.testing.assert_allclose(found[MODELS][number, j], whole.coef_, atol=size)
            wanted = np.empty(len(y))
            for q in np.unique(qid):
                rest, own = qid != q, qid == q
                model.fit(X[rest], y[rest], qid=qid[rest], sample_weight=v[rest])
                wanted[own] = model.predict(X[own])
            ours, wanted = (centred(part, qid) for part in (scores[j], wanted))
            np.testing.assert_allclose(ours, wanted, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("pairs", ["with_ties", None])
@every(shape=[(30, 4), (12, 30)], weighting=["pairs", "documents", "queries"])
def test_scores_of_rows_are_those_of_refits(pairs, shape, weighting):
    rng = np.random.default_rng(1)
    sets = [drawn(rng, *shape, 1) for _ in range(3)]
    alphas = np.array([40.0, 2.0, 0.3])
    found = searched(sets, alphas, pairs=pairs, weighting=weighting)
    assert (found[STATES] == 0).all()
    for number, (X, y, qid, v) in enumerate(sets):
        scores = found[SCORES][:, number * len(y) : (number + 1) * len(y)]
        for j, alpha in enumerate(alphas):
            model = pg.RankRLS(alpha, pairs=pg.Pairs(pairs, weighting=weighting))
            wanted = np.empty(len(y))
            for row in range(len(y)):
                rest = np.arange(len(y)) != row
                model.fit(X[rest], y[rest], qid=qid[rest], sample_weight=v[rest])
                mean = np.average(X[rest], axis=0, weights=v[rest]) if pairs else 0.0
                wanted[row] = model.coef_ @ (X[row] - mean)
            np.testing.assert_allclose(scores[j], wanted, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("pairs", ["with_ties", None])
@every(shape=[(60, 4, 9), (12, 30, 5), (30, 4, 1), (12, 30, 1)], weighting=["pairs", "queries"])
def test_scores_of_folds_are_those_of_refits(pairs, shape, weighting):
    rng, alpha = np.random.default_rng(2), 2.0
    sets = [drawn(rng, *shape) for _ in range(2)]
    units = [(7 * (qid if shape[2] > 1 else np.arange(len(qid)))) % 3 for _, _, qid, _ in sets]
    found = searched(sets, np.array([alpha]), pairs, weighting, np.concatenate(units))
    assert (found[STATES] == 0).all()
    for number, (X, y, qid, v) in enumerate(sets):
        scores = found[SCORES][0, number * len(y) : (number + 1) * len(y)]
        model = pg.RankRLS(alpha, pairs=pg.Pairs(pairs, weighting=weighting))
        for unit in range(3):
            held, rest = units[number] == unit, units[number] != unit
            model.fit(X[rest], y[rest], qid=qid[rest], sample_weight=v[rest])
            wanted = model.predict(X[held])
            if pairs and shape[2] == 1:  # as of a regression with an intercept
                means = (np.average(part[rest], axis=0, weights=v[rest]) for part in (X, y))
                wanted += -model.predict(next(means)[None]) + next(means)
            np.testing.assert_allclose(scores[held], wanted, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@every(n_queries=[9, 1])
def test_scores_of_svms_in_folds_are_those_of_refits(loss, n_queries):
    rng, Cs = np.random.default_rng(3), np.array([0.01, 0.3])
    X, y, qid, v = drawn(rng, 60, 4, n_queries)
    units = (7 * (qid if n_queries > 1 else np.arange(60))) % 3
    states, found, scores = _core.search_group_svms(
        ranking_problem(Problem(X, y, qid, v, None), "without_ties"),
        np.array([0, n_queries]),
        np.zeros(60),
        [X],
        range=(0, 1),
        Cs=Cs,
        relative=False,
        units=units,
        settings=(loss, 0.125 if loss == "logistic" else 1.0, 1e-10, 100),
        n_threads=2,
    )
    assert states == [0] and (found == Cs).all()
    for unit in range(3):
        held, rest = units == unit, units != unit
        for C, ours in zip(Cs, scores[:, held], strict=True):
            model = pg.RankSVM(C, loss=loss, tol=1e-10)
            wanted = model.fit(X[rest], y[rest], qid=qid[rest], sample_weight=v[rest]).predict(
                X[held]
            )
            np.testing.assert_allclose(ours, wanted, atol=1e-7 * np.ptp(wanted))


def test_what_other_code_searches():
    rng = np.random.default_rng(2)
    X, y, qid, v = drawn(rng, 30, 4, 5)
    sets = [
        (X, y, qid, v),
        (X, 0 * y, qid, v),
        (X, np.where(qid == 0, y, 1.0), qid, v),
        (np.where(X[3, 2] == X, np.nan, X), y, qid, v),
    ]
    states = searched(sets, np.array([1.0]), pairs="without_ties")[STATES]
    assert states.tolist() == [0, 1, 2, 2]
    for n_features, state in ((48, 0), (49, 2)):
        X_held, *others = drawn(rng, 60, n_features, 5)
        X_held[others[1] == 0, 1] *= 3e3  # the largest direction is that of one query
        states = searched([(X_held, *others)], np.array([1.0]), pairs="without_ties")[STATES]
        assert states.tolist() == [state]
    units = np.concatenate([np.where(qid == number, 7, 0) for number in range(4)] + [qid - 1])
    sets = [(X, y, qid, v)] * 5
    states = searched(sets, np.array([1.0]), pairs="without_ties", units=units)[STATES]
    assert states.tolist() == [0, 0, 0, 0, 2]
    sets[1:3] = (X, np.where(qid == 1, y, 1.0), qid, v), (X, y, 0 * qid, v)
    states = searched(sets, np.array([1.0]), pairs="without_ties", units=units)[STATES]
    assert states.tolist() == [0, 2, 2, 0, 2]


@pytest.mark.parametrize("estimator", [pg.RankRLSCV(), pg.RankRLSCV(scoring="map")], ids=str)
def test_searches_do_not_pass_fit(estimator, monkeypatch):
    X, y, user = pg.make_ranking(20, 12, 3, random_state=0)
    whole = pg.fit_many(estimator, X, y, by=user, qid=np.arange(len(y)) % 3)
    alone = clone(estimator).fit(X[user == 4], y[user == 4], qid=np.arange(len(y))[user == 4] % 3)
    assert not whole.models.alone
    assert (whole[4].coef_ == alone.coef_).all() and whole[4].alpha_ == alone.alpha_


def test_features_that_vary_where_nothing_counts_have_no_weight():
    X, y, _, v = drawn(np.random.default_rng(4), 40, 3, 1)
    X[:, 1], v[7] = 1e7 / 3, 0.0
    X[7, 1] = 5.0
    assert pg.RankSVM(10.0).fit(X, y, sample_weight=v).coef_[1] == 0
