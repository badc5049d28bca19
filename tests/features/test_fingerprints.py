"""Rankers of fingerprints by Nyström maps of the Tanimoto kernel."""

import numpy as np
import pytest
import scipy.sparse as sp

from pairgram import (
    Kernel,
    Nystroem,
    RankRLS,
    RankRLSCV,
    RankSVM,
    evaluate,
    kernel_matrix,
    load_model,
)
from parts.features import describe_map

EXACT = Nystroem("tanimoto", n_components=None, tol=0)


def fingerprints(n_rows=120, n_bits=200, share=0.1, seed=0):
    """Rows of bits, the first all zero, with labels and query ids."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, n_bits)) < share).astype(float)
    X[0] = 0
    y = X @ rng.normal(size=n_bits) + rng.normal(size=n_rows)
    return X, y, np.arange(n_rows) % 11


def tanimoto(X, Z):
    """The share of the bits of either that are bits of both, by loops."""
    K = np.ones((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            either = np.logical_or(x, z).sum()
            K[i, j] = np.logical_and(x, z).sum() / either if either else 1.0
    return K


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans"])
def test_all_rows_as_landmarks_give_the_kernel(landmarks):
    X, _, _ = fingerprints()
    K = tanimoto(X, X)
    assert np.linalg.cond(K) < 1e3
    np.testing.assert_allclose(kernel_matrix(X, kernel="tanimoto"), K, rtol=1e-14)
    for n_components in (None, len(X)):
        named = {"n_components": n_components, "landmarks": landmarks, "tol": 0}
        ours = Nystroem("tanimoto", **named, random_state=0)
        H = ours.fit_transform(X)
        np.testing.assert_allclose(H @ H.T, K, atol=1e-10)
        new, _, _ = fingerprints(30, seed=1)
        np.testing.assert_allclose(ours.transform(new) @ H.T, tanimoto(new, X), atol=1e-10)


def test_entries_that_are_no_bits():
    X = np.random.default_rng(0).normal(size=(50, 6))
    H = EXACT.fit_transform(X)
    np.testing.assert_allclose(H @ H.T, kernel_matrix(X, kernel="tanimoto"), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_have_the_same_bits(dtype):
    X, y, qid = fingerprints()
    X, S = X.astype(dtype), sp.csr_array(X.astype(dtype))
    named = {"n_components": 40, "random_state": 0}
    feature_map = Nystroem("tanimoto", **named)
    H = feature_map.fit_transform(X)
    assert H.dtype == dtype
    np.testing.assert_array_equal(feature_map.transform(S), H)
    np.testing.assert_array_equal(feature_map.fit_transform(S), H)
    for ranker in (
        RankRLS(0.1, feature_map=feature_map),
        RankSVM(0.1, feature_map=feature_map),
        RankSVM(0.1, feature_map=Nystroem(kernel="tanimoto", **named)),
    ):
        dense = ranker.fit(X, y, qid=qid).predict(X)
        assert dense.dtype == dtype
        sparse = ranker.fit(S, y, qid=qid).predict(S)
        rtol = 1e-9 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(sparse, dense, atol=rtol * np.abs(dense).max())


def test_single_precision_stays_close():
    X, y, qid = fingerprints()
    for ranker in (RankRLS(0.1, feature_map=EXACT), RankSVM(0.1, feature_map=EXACT)):
        double = ranker.fit(X, y, qid=qid).predict(X)
        single = ranker.fit(X.astype(np.float32), y, qid=qid).predict(X.astype(np.float32))
        np.testing.assert_allclose(single, double, atol=1e-3 * np.abs(double).max())


def test_all_rows_as_landmarks_give_the_dual_model():
    X, y, qid = fingerprints()
    new, _, _ = fingerprints(30, seed=1)
    dual = RankRLS(0.3, feature_map=Kernel("tanimoto")).fit(X, y, qid=qid).predict(new)
    primal = RankRLS(0.3, feature_map=EXACT).fit(X, y, qid=qid).predict(new)
    np.testing.assert_allclose(primal, dual, atol=1e-9 * np.abs(dual).max())


def test_held_out_scores_are_those_of_refits():
    X, y, qid = fingerprints()
    S = sp.csr_array(X)
    feature_map = Nystroem("tanimoto", n_components=40, random_state=0)
    search = RankRLSCV([0.05, 0.5, 5.0], feature_map=feature_map, scoring="pairwise_squared_error")
    search.fit(S, y, qid=qid)
    H = feature_map.fit(X).transform(X)
    for alpha, score in zip(search.alphas_, search.scores_, strict=True):
        held_out = np.empty(len(y))
        for query in np.unique(qid):
            test = qid == query
            refit = RankRLS(alpha).fit(H[~test], y[~test], qid=qid[~test])
            held_out[test] = refit.predict(H[test])
        expected = evaluate("pairwise_squared_error", y, held_out, qid)["pairwise_squared_error"]
        np.testing.assert_allclose(score, expected, rtol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_files_hold_the_models(tmp_path, kind):
    X, y, qid = fingerprints()
    named = {"n_components": 40, "random_state": 0}
    for model in (
        RankRLS(feature_map=Nystroem("tanimoto", **named)),
        RankSVM(0.1, feature_map=Nystroem(kernel="tanimoto", **named)),
    ):
        model.fit(kind(X), y, qid=qid).save(tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        assert loaded.feature_map_.kernel == "tanimoto"
        np.testing.assert_array_equal(loaded.predict(kind(X)), model.predict(kind(X)))
        _, settings = describe_map(loaded.feature_map_)  # the names in files do not change
        fitted = {"name": "tanimoto", "gamma": 1 / X.shape[1], "degree": 3, "coef0": 1.0}
        assert settings["fitted"] == {"kernel_parameters_": fitted}
