"""The kernel of counts, minmax, in compiled code and in every place that takes a kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import pairgram as pg
from parts.features import kernel_nodes


def counts(n_rows=60, n_features=40, seed=0, signs=(1,)):
    """Rows of small counts, mostly 0, the first all zero, with labels and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n_rows, n_features)).astype(float)
    X *= rng.choice(signs, X.shape)
    X[0] = 0
    return X, X @ rng.normal(size=n_features) + rng.normal(size=n_rows), np.arange(n_rows) % 7


def minmax(X, Z):
    """Sum of minima over sum of maxima, of positive and negative parts as columns."""
    X, Z = (np.hstack([np.maximum(rows, 0), np.maximum(-rows, 0)]) for rows in (X, Z))
    least, most = (of(X[:, None], Z).sum(axis=2) for of in (np.minimum, np.maximum))
    return np.divide(least, most, out=np.ones_like(most), where=most > 0)


def test_by_hand_and_on_bits():
    assert pg.kernel_matrix([[3, 0, 1]], [[1, 2, 1]], "minmax")[0, 0] == 2 / 6
    assert pg.kernel_matrix([[0, 0], [0, 2]], kernel="minmax").tolist() == [[1, 0], [0, 1]]
    assert pg.kernel_matrix([[3, -2, 1]], [[1, -4, -1]], "minmax")[0, 0] == 3 / 9
    bits = (counts()[0] > 0).astype(float)
    expected = pg.kernel_matrix(bits, kernel="tanimoto")
    np.testing.assert_array_equal(pg.kernel_matrix(bits, kernel="minmax"), expected)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("signs", [(1,), (-1, 1), (-1,)])
def test_counts_in_any_container(make, dtype, signs, set_limits):
    X, Z = (counts(*size, signs=signs)[0].astype(dtype) for size in ((60,), (31, 40, 1)))
    for widest in (8192, 0):  # wide sparse rows are not made dense
        set_limits(widest_dense=widest)
        K = pg.kernel_matrix(make(X), make(Z), "minmax")
        np.testing.assert_array_equal(K, minmax(X.astype(float), Z.astype(float)))
        K = pg.kernel_matrix(make(X), kernel="minmax")
        np.testing.assert_array_equal(K, minmax(X.astype(float), X.astype(float)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("least", [0, -1])
def test_the_bits_of_a_row_do_not_depend_on_its_company(dtype, least, set_limits):
    rng = np.random.default_rng(0)
    X = (rng.uniform(least, 1, (150, 37)) * (rng.random((150, 37)) < 0.5)).astype(dtype)
    K = pg.kernel_matrix(X, kernel="minmax")
    np.testing.assert_allclose(K, minmax(X.astype(float), X.astype(float)), rtol=1e-14)
    assert (K == K.T).all() and (np.diag(K) == 1).all()
    set_limits(tile=16)
    np.testing.assert_array_equal(pg.kernel_matrix(X, kernel="minmax"), K)
    nystroem = pg.Nystroem("minmax", n_components=50, random_state=0).fit(X)
    nodes = kernel_nodes(nystroem._kernel, nystroem.components_, np.float64)
    whole = nodes.map(np.ascontiguousarray(X, np.float64), 1)
    np.testing.assert_array_equal(whole, K[:, nystroem.component_indices_])
    for row in (0, 1, 128, 149):
        np.testing.assert_array_equal(nodes.map(X[[row]].astype(np.float64), 1)[0], whole[row])
        assert pg.kernel_matrix(X[[row]], X, "minmax").tolist() == [K[row].tolist()]
    sparse = pg.kernel_matrix(sp.csr_array(X), kernel="minmax")
    np.testing.assert_allclose(sparse, K, rtol=0, atol=1e-14)


def test_rankers_and_their_files(tmp_path):
    X, y, qid = counts(signs=(-1, 1))
    new = counts(20, seed=2, signs=(-1, 1))[0]
    K, cross = minmax(X, X), minmax(new, X)
    expected = (
        pg.RankRLS(0.3, feature_map=pg.Kernel("precomputed")).fit(K, y, qid=qid).predict(cross)
    )
    exact = pg.Nystroem("minmax", n_components=None, tol=0)
    for model in (
        pg.RankRLS(0.3, feature_map=pg.Kernel("minmax")),
        pg.RankRLS(0.3, feature_map=exact),
        pg.PairwiseELM(1 / 0.3, feature_map=pg.Kernel("minmax")),
    ):
        for make in (np.asarray, sp.csr_array):
            model.fit(make(X), y, qid=qid).save(tmp_path / "model")
            np.testing.assert_allclose(model.predict(make(new)), expected, rtol=1e-8, atol=1e-9)
            loaded = pg.load_model(tmp_path / "model")
            np.testing.assert_array_equal(loaded.predict(make(new)), model.predict(make(new)))
    given = pg.RankRLSCV([0.1, 1.0], feature_map=pg.Kernel("precomputed")).fit(K, y, qid=qid)
    search = pg.RankRLSCV([0.1, 1.0], feature_map=pg.Kernel("minmax")).fit(X, y, qid=qid)
    np.testing.assert_allclose(search.scores_, given.scores_, rtol=1e-9)
    svm = pg.RankSVM(feature_map=pg.Nystroem(kernel="minmax", n_components=None)).fit(X, y, qid=qid)
    assert svm.predict(new).shape == (20,)


def test_a_column_of_both_signs_is_two_columns():
    X, y, qid = counts(signs=(-1, 1))
    parts = np.hstack([np.maximum(X, 0), np.maximum(-X, 0)])
    for make in (
        lambda: pg.RankRLSCV(feature_map=pg.Kernel("minmax")),
        lambda: pg.RankSVM(feature_map=pg.Nystroem("minmax", n_components=9, random_state=0)),
    ):
        split = make().fit(parts, y, qid=qid).predict(parts)
        np.testing.assert_allclose(make().fit(X, y, qid=qid).predict(X), split, rtol=1e-9)
    scaled = pg.RankRLS(feature_map=make_pipeline(pg.Standard(), pg.Kernel("minmax"))).fit(
        X, y, qid=qid
    )
    expected = pg.RankRLS(feature_map=pg.Kernel("minmax")).fit(
        (X - X.mean(axis=0)) / X.std(axis=0), y, qid=qid
    )
    np.testing.assert_allclose(scaled.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
