"""Kernel models keep the training rows that have coefficients, and no others."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import pairgram as pg

MODELS = [
    pg.RankRLS(0.1, feature_map=pg.Kernel("rbf")),
    pg.RankRLS(0.1, feature_map=pg.Kernel("tanimoto"), pairs="without_ties"),
    pg.RankRLS(0.1, feature_map=pg.Kernel("minmax"), pairs="without_ties"),
    pg.RankRLS(0.1, feature_map=pg.Kernel("polynomial", gamma=1.0, degree=2)),
    pg.RankRLS(0.5, feature_map=pg.Kernel("rbf"), pairs=pg.Pairs(scope="global")),
    pg.RankRLSCV(
        [0.1, 1.0], feature_map=pg.Kernel("laplacian"), pairs=["with_ties", "without_ties"]
    ),
    pg.RankRLSCV([0.1, 1.0], feature_map=[pg.Kernel("rbf", gamma=g) for g in [0.1, 1.0]]),
    pg.PairwiseELM(10.0, feature_map=pg.Kernel("rbf")),
    pg.PointwiseELM(10.0, feature_map=pg.Kernel("rbf")),
    pg.PairwiseELMCV([1.0, 10.0], feature_map=pg.Kernel("rbf")),
]


def rows_with_weights():
    """Return (X, y, qid, weights), half of them 0; the last query has one row."""
    X, y, qid = pg.make_ranking(12, (3, 9), 4, random_state=0)
    qid = np.append(qid, 12)
    X, y = np.vstack([X, X[:1] + 1]), np.append(y, 2.0)
    v = np.random.default_rng(0).integers(0, 2, len(y)).astype(float)
    v[-1] = 1.0
    return X, y, qid, v


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{m.feature_map!s:.20}")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_without_weight_are_left_out(model, kind, tmp_path):
    X, y, qid, v = rows_with_weights()
    fitted = model.fit(kind(X), y, qid=qid, sample_weight=v)
    feature_map, scores = fitted.feature_map_, fitted.predict(kind(X))
    support = feature_map.support_
    counts = v > 0
    if not isinstance(model, pg.PointwiseELM) and "global" not in str(model.pairs):
        counts &= np.bincount(qid, v)[qid] > 1
    np.testing.assert_array_equal(support, np.flatnonzero(counts))
    assert fitted.coef_.shape == support.shape
    assert fitted.coef_.all()
    rows = feature_map.support_rows_
    np.testing.assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, X[support])
    if hasattr(fitted, "coef_path_"):
        assert fitted.coef_path_.shape == (2, len(support))
    named = {"qid": qid[v > 0], "sample_weight": v[v > 0]}
    fresh = clone(model).fit(kind(X[v > 0]), y[v > 0], **named)
    np.testing.assert_allclose(scores, fresh.predict(kind(X)), atol=1e-9 * np.abs(scores).max())
    if "squared" not in str(model.feature_map):
        fitted.save(tmp_path / "model")
        loaded = pg.load_model(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(kind(X)), scores)
        np.testing.assert_array_equal(loaded.feature_map_.support_, support)


def test_all_rows_are_kept_where_all_count():
    X, y, qid, _ = rows_with_weights()
    model = pg.RankRLS(0.1, feature_map=pg.Kernel("rbf")).fit(X[:-1], y[:-1], qid=qid[:-1])
    np.testing.assert_array_equal(model.feature_map_.support_, np.arange(len(y) - 1))


def test_a_precomputed_matrix_keeps_its_columns():
    X, y, qid, v = rows_with_weights()
    K = pg.kernel_matrix(X)
    given = pg.RankRLS(0.1, feature_map=pg.Kernel("precomputed")).fit(
        K, y, qid=qid, sample_weight=v
    )
    assert given.coef_.shape == y.shape
    made = pg.RankRLS(0.1, feature_map=pg.Kernel("rbf")).fit(X, y, qid=qid, sample_weight=v)
    np.testing.assert_array_equal(made.coef_, given.coef_[made.feature_map_.support_])
    np.testing.assert_allclose(made.predict(X), given.predict(K), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:no query has two rows with different labels")
def test_scores_of_equal_labels_are_zero():
    X, y, qid, v = rows_with_weights()
    model = pg.RankRLS(0.1, feature_map=pg.Kernel("rbf")).fit(
        X, np.ones(len(y)), qid=qid, sample_weight=v
    )
    assert model.coef_.shape == y.shape
    np.testing.assert_array_equal(model.predict(X), 0.0)
