"""Boosted trees on made folds: they learn, end by the validation part and choose by its MAP."""

import numpy as np
import pytest

import pairgram
from pairgram.datasets import Fold, LetorData


def made_fold():
    """Return three parts of 30 queries of 20 rows with grades 0-2, which two columns decide."""
    rng = np.random.default_rng(0)
    X = rng.random((1800, 6))
    signal = X[:, 0] + (X[:, 1] > 0.5) + 0.2 * rng.normal(size=1800)
    y = np.searchsorted(np.quantile(signal, [0.6, 0.9]), signal).astype(float)
    qid = np.repeat(np.arange(90)[::-1], 20)  # ids fall from query to query
    rows = np.array_split(np.arange(1800), 3)
    return Fold("made", *(LetorData(X[part], y[part], qid[part]) for part in rows))


@pytest.mark.parametrize("peer", ["lightgbm", "xgboost", "catboost"])
def test_a_peer_learns(script, peer):
    pytest.importorskip(peer)
    fold = made_fold()
    predict = getattr(script("boosters"), f"train_{peer}")(fold, threads=1)
    quality = pairgram.get_metric("map")(fold.test.y, predict(fold.test.X), fold.test.qid)
    columns = [np.ascontiguousarray(column) for column in fold.test.X.T]
    alone = [pairgram.get_metric("map")(fold.test.y, x, fold.test.qid) for x in columns]
    assert quality > 0.05 + max(alone)


def test_the_setting_of_the_best_validation_map_is_taken(script):
    boosters, fold = script("boosters"), made_fold()
    valid = fold.valid
    poor = {"num_leaves": 2, "learning_rate": 1e-6, "min_data_in_leaf": 200}
    good = {"num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 10}
    alone = [boosters.train_lightgbm(fold, 1, [settings])(valid.X) for settings in (poor, good)]
    for order in ((poor, good), (good, poor)):
        chosen = boosters.train_lightgbm(fold, 1, order)(valid.X)
        np.testing.assert_array_equal(chosen, alone[1])
    assert not np.array_equal(*alone)


def test_drawn_settings(script):
    draw = script("boosters").random_lightgbm_settings
    settings = draw(40)
    assert settings == draw(40) and settings[:7] == draw(7)
    assert len({tuple(own.items()) for own in settings}) == 40
    assert {own["num_leaves"] for own in settings} == {4, 7, 15, 31}


def test_peers_are_ways_when_they_are_asked_for(script):
    letor = script("letor")
    more = letor.trainers(1, budgets=[0.4, 3.0], n_random=40, xgboost=True, catboost=True)
    assert set(more) - set(letor.trainers(1)) == {
        "AutoRanker, budget 0.4 s",
        "AutoRanker, budget 3 s",
        "LightGBM lambdarank, 40 random settings, early stopping",
        letor.XGBOOST,
        letor.CATBOOST,
    }


def test_every_way_of_pairgram_takes_its_settings(script):
    """The peers have tests of their own, and two more ways take seconds."""
    letor, fold = script("letor"), made_fold()
    slow = {letor.AUTOMATIC, letor.FOURIER, letor.LIGHTGBM}
    for way, train in letor.trainers(1, budgets=[0.05]).items():
        if way not in slow:
            assert np.ptp(train(fold)(fold.test.X)) > 0
