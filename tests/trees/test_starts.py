"""Folds of a linear model and of the trees after it, which have not seen what is held out."""

import numpy as np
import pandas as pd
import pytest

from pairgram import QueryKFold, RankRLSCV, make_ranking, trees


def test_starts_are_held_out_scores_of_a_search_within_the_training_rows():
    X, y, qid = make_ranking(30, 10, random_state=0)
    cv = QueryKFold(3)
    folds = list(trees.starts(RankRLSCV([1.0, 10.0]), X, y, qid, cv))
    for one, (train, held) in zip(folds, cv.split(X, qid=qid), strict=True):
        assert (one.train == train).all() and (one.held == held).all()
        alone = RankRLSCV([1.0, 10.0]).fit(X[train], y[train], qid=qid[train])
        assert (one.scores == alone.held_out_).all()
        assert (one.held_scores == alone.predict(X[held])).all()
        assert one.model.alpha_ == alone.alpha_


@pytest.mark.parametrize("fold", range(5))
def test_labels_of_a_fold_change_no_score_that_judges_it(fold):
    X, y, qid = make_ranking(30, 10, random_state=0)
    before = list(trees.starts(RankRLSCV(), X, y, qid))[fold]
    other = y.copy()
    other[before.held] = np.random.default_rng(0).permutation(9 - y[before.held])
    after = list(trees.starts(RankRLSCV(), X, other, qid))[fold]
    for name in ("train", "held", "scores", "held_scores"):
        assert (getattr(after, name) == getattr(before, name)).all(), name


def test_a_frame_is_taken():
    X, y, qid = make_ranking(20, 5, random_state=0)
    frame = pd.DataFrame(X).rename(columns=str)
    ways = zip(*(trees.starts(RankRLSCV(), rows, y, qid) for rows in (X, frame)), strict=True)
    for one, other in ways:
        np.testing.assert_allclose(other.scores, one.scores)
        assert other.model.feature_names_in_.tolist() == list(frame.columns)
