"""What all rankers share: bad rows and labels are named, failed fits undo themselves, files."""

import numpy as np
import pytest

import pairgram as pg
from parts.support import require_finite

RANKERS = [
    pg.RankRLS(),
    pg.RankRLS(feature_map=pg.Kernel("rbf")),
    pg.RankRLS(feature_map=pg.RandomNodes(8, random_state=0)),
    pg.RankRLS(feature_map=pg.RandomNodes(8, "tanh", random_state=0)),
    pg.RankRLSCV(),
    pg.RankRLSCV(feature_map=pg.Kernel("laplacian"), cv=3),
    pg.PointwiseELM(n_nodes=8, random_state=0),
    pg.PairwiseELM(n_nodes=8, activation="relu", random_state=0),
    pg.PairwiseELMCV([1.0, 2.0], n_nodes=8, random_state=0),
    pg.ELMRank(n_nodes=8, random_state=0),
    pg.ELMRankCV(n_nodes=8, cv=3, random_state=0),
    pg.RankSVM(),
    pg.RankSVMCV([0.1, 1.0], feature_map=[None, pg.Nystroem(n_components=5, random_state=0)], cv=3),
    pg.RankSVM(feature_map=pg.Nystroem(n_components=5, random_state=0)),
    pg.RankSVM(feature_map=pg.RandomFourier(n_components=5, random_state=0)),
]
each = pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
X, y, qid = pg.make_ranking(12, 8, 5, random_state=0)


def test_large_rows_are_not_infinite():
    require_finite(np.full((3, 2), 1e308), "X")  # whose sum overflows
    require_finite(np.full((3, 2), 3e38, np.float32), "X")


def test_labels_are_not_missing():
    labels = y.astype(object)
    np.testing.assert_array_equal(
        pg.RankRLS().fit(X, labels, qid=qid).coef_, pg.RankRLS().fit(X, y, qid=qid).coef_
    )
    labels[4] = None
    with pytest.raises(ValueError, match="y "):
        pg.RankRLS().fit(X, labels, qid=qid)


@each
def test_a_fit_that_fails_leaves_the_model_as_it_was(ranker):
    ranker.fit(X, y, qid=qid)
    before, scores = dict(vars(ranker)), ranker.predict(X)
    bad = np.hstack([X, X])
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ranker.fit(bad, y, qid=qid)
    assert vars(ranker).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(ranker).items())
    np.testing.assert_array_equal(ranker.predict(X), scores)


def test_the_first_fit_that_fails_leaves_no_attributes():
    for estimator in (pg.RankRLS(), pg.ELMRankCV(), pg.RandomNodes(3, bias_range=(1, 0))):
        before = dict(vars(estimator))
        with pytest.raises(ValueError, match=r"infinity|bias_range"):
            estimator.fit(np.where(X[0, 0] == X, np.inf, X), y)
        with pytest.raises(ValueError, match=r"n_samples|bias_range|two or more|no pair"):
            estimator.fit(X[:1], y[:1])
        assert vars(estimator) == before


def test_names_of_columns_survive_a_fit_that_fails():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = pg.RankRLS().fit(frame, y, qid=qid)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(frame.rename(columns={"a": "z"}).replace(X[0, 0], np.nan), y, qid=qid)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert model.predict(frame).shape == (len(y),)


CHANGED = {
    "alpha": 77.0,
    "alphas": [77.0],
    "C": 77.0,
    "Cs": [77.0],
    "activation": "tanh",
    "n_nodes": 3,
    "n_estimators": 2,
    "feature_map": pg.RandomNodes(3),
    "random_state": 77,
    "pairs": pg.Pairs("without_ties", scope="query"),
}


@each
def test_files_predict_as_the_fit_did_whatever_is_set_since(ranker, tmp_path):
    original = ranker.get_params(deep=False)
    scores = ranker.fit(X, y, qid=qid).predict(X)
    changed = {name: value for name, value in CHANGED.items() if name in original}
    ranker.set_params(**changed)
    try:
        np.testing.assert_array_equal(ranker.predict(X), scores)
        ranker.save(tmp_path / "model")
    finally:
        ranker.set_params(**original)
    np.testing.assert_array_equal(pg.load_model(tmp_path / "model").predict(X), scores)
