"""Ridges that are chosen from statistics of days alone, against the rows of the days."""

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

import pairgram as pg
from axes import every
from pairgram import Pairgram, RankRLS, RankRLSCV, load_model

ALPHAS = [100.0, 1.0, 1e-2]


def days_of(seed, n_days=4, **settings):
    """Return the rows (X, y, qid, day) and the statistics of every day."""
    rng = np.random.default_rng(seed)
    X, y, qid = pg.make_ranking(24, 7, 4, random_state=int(rng.integers(1000)))
    day = rng.permutation(np.arange(24) % n_days)[qid]
    parts = [
        Pairgram.from_rows(X[day == d], y[day == d], qid=qid[day == d], **settings)
        for d in range(n_days)
    ]
    return X, y, qid, day, parts


def loss(model, X, y, qid, settings):
    """Return half the weighted mean of squared errors of differences, pair by pair."""
    errors = y - model.predict(X)
    pairs = pg.Pairs.of(settings.get("pairs", "with_ties"))
    qid = np.zeros(len(y)) if pairs.scope == "global" else qid
    total = weight = 0.0
    for query in np.unique(qid):
        own = np.flatnonzero(qid == query)
        W = np.ones((len(own), len(own)))
        if pairs.kind == "without_ties":
            W = (y[own][:, None] != y[own]).astype(float)
        if pairs.weighting == "queries" and W.any():
            W = W / W.sum()
        difference = errors[own][:, None] - errors[own]
        total += (W * difference**2).sum() / 2
        weight += W.sum()
    return total / weight


SETTINGS = [{}, {"pairs": "without_ties"}, {"pairs": pg.Pairs("without_ties", weighting="queries")}]
GLOBAL = [
    {"pairs": pg.Pairs(scope="global")},
    {"pairs": pg.Pairs(scope="global", weighting="queries")},
]


@hypothesis_settings(max_examples=15)
@given(seed=st.integers(0, 2**31), settings=st.sampled_from(SETTINGS + GLOBAL), scale=st.booleans())
def test_days_in_turn(seed, settings, scale):
    X, y, qid, day, parts = days_of(seed, **settings)
    found = RankRLSCV.from_pairgrams(parts, ALPHAS, scale=scale)
    factor = 1 / np.sqrt(np.diag(sum(parts).G)) if scale else np.ones(4)
    for place, alpha in enumerate(ALPHAS):
        losses = []
        for d in range(4):
            rest, own = day != d, day == d
            model = RankRLS(alpha, **settings).fit(X[rest] * factor, y[rest], qid=qid[rest])
            losses.append(loss(model, X[own] * factor, y[own], qid[own], settings))
            column = found.cv_results_[f"split{d}_test_score"]
            assert column[place] == pytest.approx(losses[-1], rel=1e-9)
        assert found.scores_[place] == pytest.approx(np.mean(losses), rel=1e-9)
    assert found.best_score_ == min(found.scores_)
    whole = RankRLS(found.alpha_, scale=scale, **settings).fit(X, y, qid=qid)
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-9, atol=1e-12)


def test_a_model_of_days_is_saved_and_scores(tmp_path):
    X, y, qid, _, parts = days_of(1)
    model = RankRLSCV.from_pairgrams(parts)
    assert len(model.alphas_) == 34
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        load_model(tmp_path / "model.safetensors").predict(X), X @ model.coef_
    )
    assert model.score(X, y, qid=qid) > 0.5
    assert (model.column_weights()["importance"] > 0).all()


@every(alphas=[[100.0, 1.0, 1e-6], [1.0, 0.0], None], large=[1e3, 1e4], scale=[False, True])
def test_a_day_that_holds_a_direction(large, alphas, scale):
    """Models without it are those of the sum of the other days: no loss may be NaN or noise."""
    X, y, qid, day, _ = days_of(5)
    X = np.column_stack([X, np.where(day == 1, large * X[:, 0], 0.0)])
    X[day == 2, 1] *= large
    parts = [Pairgram.from_rows(X[day == d], y[day == d], qid=qid[day == d]) for d in range(4)]
    found = RankRLSCV.from_pairgrams(parts, alphas, scale=scale)
    factor = 1 / np.sqrt(np.diag(sum(parts).G)) if scale else np.ones(5)
    expected = []
    for alpha in found.alphas_:
        losses = []
        for d in range(4):
            rest, own = day != d, day == d
            rows, targets = [np.sqrt(alpha) * np.eye(5)], [np.zeros(5)]
            for query in np.unique(qid[rest]):
                listed = qid == query
                root = np.sqrt(listed.sum())
                H = X[listed] * factor
                rows.append(root * (H - H.mean(axis=0)))
                targets.append(root * (y[listed] - y[listed].mean()))
            system = np.vstack(rows)
            coef = np.linalg.lstsq(system, np.concatenate(targets), rcond=None)[0]
            model = RankRLS(1.0).fit(X, y, qid=qid)
            model.coef_ = factor * coef
            losses.append(loss(model, X[own], y[own], qid[own], {}))
        expected.append(np.mean(losses))
    np.testing.assert_allclose(found.scores_, expected, rtol=1e-4)
    assert found.best_score_ == min(found.scores_)
