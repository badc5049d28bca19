"""The kernel of counts, minmax, in compiled code and in every place that takes a kernel."""

import numpy as np
import pytest
import scipy.sparse as sp

import pairgram as pg
from pairgram import _core
from pairgram.kernels import matrix
from pairgram.kernels.nodes import kernel_nodes


def counts(n_rows=60, n_features=40, seed=0):
    """Rows of small counts, mostly 0, the first all zero, with labels and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n_rows, n_features)).astype(float)
    X[0] = 0
    return X, X @ rng.normal(size=n_features) + rng.normal(size=n_rows), np.arange(n_rows) % 7


def minmax(X, Z):
    """Sum of minima over sum of maxima, by loops."""
    K = np.ones((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            most = sum(max(a, b) for a, b in zip(x, z, strict=True))
            if most:
                K[i, j] = sum(min(a, b) for a, b in zip(x, z, strict=True)) / most
    return K


def test_by_hand_and_on_bits():
    assert pg.kernel_matrix([[3, 0, 1]], [[1, 2, 1]], "minmax")[0, 0] == 2 / 6
    assert pg.kernel_matrix([[0, 0], [0, 2]], kernel="minmax").tolist() == [[1, 0], [0, 1]]
    bits = (counts()[0] > 0).astype(float)
    expected = pg.kernel_matrix(bits, kernel="tanimoto")
    np.testing.assert_array_equal(pg.kernel_matrix(bits, kernel="minmax"), expected)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_counts_in_any_container(make, dtype, monkeypatch):
    X, Z = counts()[0].astype(dtype), counts(31, seed=1)[0].astype(dtype)
    for widest in (matrix.WIDEST_DENSE, 0):  # wide sparse rows are not made dense
        monkeypatch.setattr(matrix, "WIDEST_DENSE", widest)
        K = pg.kernel_matrix(make(X), make(Z), "minmax")
        np.testing.assert_array_equal(K, minmax(X.astype(float), Z.astype(float)))
        K = pg.kernel_matrix(make(X), kernel="minmax")
        np.testing.assert_array_equal(K, minmax(X.astype(float), X.astype(float)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bits_of_a_row_do_not_depend_on_its_company(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.random((150, 37)) * (rng.random((150, 37)) < 0.5)).astype(dtype)
    K = pg.kernel_matrix(X, kernel="minmax", n_threads=1)
    np.testing.assert_allclose(K, minmax(X.astype(float), X.astype(float)), rtol=1e-14)
    assert (K == K.T).all() and (np.diag(K) == 1).all()
    monkeypatch.setattr(matrix, "TILE", 16)
    np.testing.assert_array_equal(pg.kernel_matrix(X, kernel="minmax", n_threads=2), K)
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
    X, y, qid = counts()
    new = counts(20, seed=2)[0]
    K, cross = minmax(X, X), minmax(new, X)
    expected = pg.RankRLS(0.3, kernel="precomputed").fit(K, y, qid=qid).predict(cross)
    exact = pg.Nystroem("minmax", n_components=None, tol=0)
    for model in (
        pg.RankRLS(0.3, kernel="minmax"),
        pg.RankRLS(0.3, feature_map=exact),
        pg.PairwiseELM(1 / 0.3, kernel="minmax"),
    ):
        for make in (np.asarray, sp.csr_array):
            model.fit(make(X), y, qid=qid).save(tmp_path / "model")
            np.testing.assert_allclose(model.predict(make(new)), expected, rtol=1e-8, atol=1e-9)
            loaded = pg.load_model(tmp_path / "model")
            np.testing.assert_array_equal(loaded.predict(make(new)), model.predict(make(new)))
    given = pg.RankRLSCV([0.1, 1.0], kernel="precomputed").fit(K, y, qid=qid)
    search = pg.RankRLSCV([0.1, 1.0], kernel="minmax").fit(X, y, qid=qid)
    np.testing.assert_allclose(search.scores_, given.scores_, rtol=1e-9)
    assert search.gamma_ is None
    svm = pg.RankSVM(feature_map=pg.Nystroem(kernel="minmax", n_components=None)).fit(X, y, qid=qid)
    assert svm.predict(new).shape == (20,)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_entries_below_zero_are_refused(make):
    X, y, qid = counts()
    below = X.copy()
    below[7, 3] = -1
    message = "X must hold entries >= 0 for kernel='minmax', got -1.0 in row 7, column 3"
    fitted = pg.RankRLS(kernel="minmax").fit(X, y, qid=qid)
    nystroem = pg.Nystroem("minmax", n_components=9, random_state=0)
    total = pg.Pairgram.from_rows(X, y, feature_map=nystroem)
    for call in (
        lambda: pg.kernel_matrix(make(below), kernel="minmax"),
        lambda: pg.RankRLS(kernel="minmax").fit(make(below), y, qid=qid),
        lambda: fitted.predict(make(below)),
        lambda: pg.RankSVM(feature_map=nystroem).fit(make(below), y, qid=qid),
        lambda: total.update(make(below), y),
        lambda: total.feature_map.transform(make(below)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="Z must hold entries >= 0"):
        pg.kernel_matrix(X, make(below), "minmax")


def test_nodes_of_minima_are_no_others():
    one = np.ones((2, 2)), np.ones(2)
    for other in ({"manhattan": True}, {"tanimoto": True}, {"origin": np.ones(2)}):
        with pytest.raises(ValueError, match=r"minmax nodes are no others|need square"):
            _core.NodeMap64(*one, None, [(0, 2, "linear")], minmax=True, **other)
