"""RankSVM that starts from a prior: minima of the explicit objective over pairs."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from pairgram import Pairs, QueryKFold, RandomNodes, RankRLS, RankSVM, RankSVMCV, load_model
from reference_svm import pair_loss, preference_pairs


def made(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4))
    y = rng.integers(0, 3, 60).astype(float)
    qid = rng.permutation(np.repeat(np.arange(6), 10))
    return X, y, qid, rng.normal(size=4), rng.normal(size=60)


@pytest.mark.parametrize("loss", ["squared_hinge", "squared"])
@pytest.mark.parametrize("weighting", ["pairs", "documents", "queries"])
def test_the_gradient_of_the_explicit_objective_vanishes(loss, weighting):
    X, y, qid, w0, o = made(0)
    v = np.random.default_rng(1).choice([0.0, 1.0, 2.0], 60)
    model = RankSVM(
        0.05, loss=loss, pairs=Pairs("without_ties", weighting=weighting), tol=1e-11, prior=w0
    )
    model.fit(X, y, qid=qid, sample_weight=v, offset=o)
    A, W = preference_pairs(y, qid, v, weighting=weighting)
    _, pull, _ = pair_loss(X @ model.coef_ + o, A, W, loss)
    difference = model.coef_ - w0
    np.testing.assert_allclose(difference + 0.05 * X.T @ pull, 0, atol=1e-8)
    assert abs(difference).max() > 1e-3
    np.testing.assert_allclose(model.predict(X) + o, X @ model.coef_ + o, atol=1e-12)


@pytest.mark.parametrize("feature_map", [None, RandomNodes(5, "sigmoid", random_state=0)], ids=str)
def test_searches_judge_the_sums(feature_map, tmp_path):
    X, y, qid, _, o = made(3)
    prior = FrozenEstimator(RankRLS(5.0).fit(X, y, qid=qid))
    search = RankSVMCV(
        [0.01, 0.3], feature_map=feature_map, cv=QueryKFold(3), scoring="pairwise_squared_error",
        tol=1e-10, prior=prior,
    )  # fmt: skip
    search.fit(X, y, qid=qid, offset=o)
    for number, (train, test) in enumerate(QueryKFold(3).split(X, y, qid)):
        for at, C in enumerate([0.01, 0.3]):
            model = RankSVM(C, feature_map=feature_map, tol=1e-10, prior=prior)
            model.fit(X[train], y[train], qid=qid[train], offset=o[train])
            scores = model.predict(X[test]) + o[test]
            expected = search.scoring_(y[test], scores, qid[test])
            found = search.cv_results_[f"split{number}_test_score"][at]
            assert found == pytest.approx(expected, rel=1e-6)
    search.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))
    assert (loaded.prior is None) == (feature_map is None)
