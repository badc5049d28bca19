"""kernel_matrix and Kernel: values, what is refused, files, predictions of a kernel model."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from axes import every
from pairgram import RankRLS, kernel_matrix, load_model, make_ranking
from parts.features import Kernel, same_map
from parts.support import on_threads

NAMES = ["linear", "rbf", "polynomial", "laplacian", "tanimoto", "minmax"]
PARAMETERS = {"gamma": 0.3, "degree": 2, "coef0": 0.5}


def value(name, x, z):
    """One entry, by its formula."""
    if name == "linear":
        return x @ z
    if name == "rbf":
        return np.exp(-0.3 * ((x - z) ** 2).sum())
    if name == "polynomial":
        return (0.3 * x @ z + 0.5) ** 2
    if name == "laplacian":
        return np.exp(-0.3 * abs(x - z).sum())
    both_zero = not x.any() and not z.any()
    if name == "minmax":
        pairs = list(zip(x, z, strict=True))
        return 1.0 if both_zero else sum(map(min, pairs)) / sum(map(max, pairs))
    return 1.0 if both_zero else x @ z / (x @ x + z @ z - x @ z)


def rows_of(rng, n, n_features, share=0.5):
    """Rows ≥ 0 with many zeros, the first all zero."""
    X = rng.uniform(0, 2, (n, n_features)) * (rng.uniform(size=(n, n_features)) < share)
    X[0] = 0
    return X


@pytest.fixture
def small_tiles(set_limits):
    set_limits(tile=4)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5)),
    sparse=st.tuples(st.booleans(), st.booleans()),
)
def test_values(name, seed, sizes, sparse):
    rng = np.random.default_rng(seed)
    X, Z = rows_of(rng, sizes[0], sizes[2]), rows_of(rng, sizes[1], sizes[2])
    expected = np.array([[value(name, x, z) for z in Z] for x in X])
    given_X, given_Z = (sp.csr_array(A) if s else A for A, s in zip((X, Z), sparse, strict=True))
    K = kernel_matrix(given_X, given_Z, name, **PARAMETERS)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-14)
    own = np.array([[value(name, x, z) for z in X] for x in X])
    K = kernel_matrix(given_X, kernel=name, **PARAMETERS)
    np.testing.assert_allclose(K, own, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_and_threads(name, dtype, small_tiles):
    rng = np.random.default_rng(0)
    X, Z = rows_of(rng, 11, 6).astype(dtype), rows_of(rng, 9, 6).astype(dtype)
    for other in (None, Z):
        K, again = on_threads((1, 3), lambda Z=other: kernel_matrix(X, Z, name, **PARAMETERS))
        assert K.dtype == np.float64
        columns = X if other is None else Z
        expected = [[value(name, x.astype(float), z.astype(float)) for z in columns] for x in X]
        np.testing.assert_allclose(K, expected, rtol=1e-12)
        np.testing.assert_array_equal(again, K)
        if other is None:
            np.testing.assert_array_equal(K, K.T)


def test_gamma_is_one_by_the_number_of_features():
    X = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_array_equal(kernel_matrix(X), kernel_matrix(X, gamma=0.25))
    assert Kernel().fit(X).gamma_ == 0.25


@pytest.mark.parametrize("sparse", [False, True])
def test_a_large_offset_does_not_cancel(sparse):
    X = np.random.default_rng(0).integers(-64, 64, (20, 3)) / 64
    X[:4, 2] = 0.0
    Z = X[:8]
    distances = kernel_matrix(X, Z, kernel="rbf")
    offset = 2.0**40 * np.array([1, 1, 0])
    X, Z = (sp.csr_array(rows + offset) if sparse else rows + offset for rows in (X, Z))
    np.testing.assert_allclose(kernel_matrix(X, Z, kernel="rbf"), distances, rtol=1e-12)
    dense = Z.toarray() if sparse else Z
    np.testing.assert_allclose(kernel_matrix(X, dense, kernel="rbf"), distances, rtol=1e-12)


def test_precomputed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))
    K = X @ X.T
    assert kernel_matrix(K, kernel="precomputed") is K
    for dtype, size in ((np.float64, 1e-11), (np.float32, 1e-6)):
        noisy = (K * (1 + size * np.triu(rng.normal(size=K.shape), 1))).astype(dtype)
        assert kernel_matrix(noisy, kernel="precomputed").dtype == dtype


def test_tanimoto_takes_entries_of_either_sign():
    X = np.random.default_rng(0).normal(size=(40, 3))
    K = kernel_matrix(X, kernel="tanimoto")
    np.testing.assert_allclose(K, [[value("tanimoto", x, z) for z in X] for x in X], rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-13


@every(share=[0.01, 0.5], index=[np.int32, np.int64])
def test_laplacian_of_sparse_rows(share, index):
    X = rows_of(np.random.default_rng(0), 9, 300, share)
    S = sp.csr_array(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    expected = np.exp(-0.3 * abs(X[:, None] - X).sum(axis=2))
    for Z in (None, S, X):
        K = kernel_matrix(S, Z, "laplacian", gamma=0.3)
        np.testing.assert_allclose(K, expected, rtol=1e-12)


def test_asymmetry_is_found_in_every_tile(small_tiles):
    K = np.eye(11)
    for i, j in ((0, 10), (9, 2), (5, 4)):
        wrong = K.copy()
        wrong[i, j] = 0.1
        first, second = sorted((i, j))
        with pytest.raises(ValueError, match=rf"entry \({first}, {second}\) is"):
            kernel_matrix(wrong, kernel="precomputed")


def test_a_matrix_larger_than_the_memory_is_refused(free_memory):
    free_memory(799.0)
    message = (
        r"kernel matrix of 10 x 10 takes .* GiB, but .* by Nystroem as the feature_map of .*SVM$"
    )
    for kernel in ("rbf", "tanimoto"):
        with pytest.raises(MemoryError, match=message):
            kernel_matrix(np.eye(10), kernel=kernel)
    free_memory(800.0)
    kernel_matrix(np.eye(10, dtype=np.float32))


@every(name=NAMES, kind=[np.asarray, sp.csr_array])
def test_kernel_map(name, kind):
    rng = np.random.default_rng(0)
    X, Z = rows_of(rng, 8, 5), rows_of(rng, 6, 5)
    given = kind(X)
    feature_map = Kernel(name, **PARAMETERS)
    K = feature_map.fit_transform(given)
    np.testing.assert_allclose(K, kernel_matrix(X, kernel=name, **PARAMETERS), rtol=1e-12)
    (given.data if sp.issparse(given) else given)[...] = 7.0  # the map has rows of its own
    expected = kernel_matrix(Z, rows_of(np.random.default_rng(0), 8, 5), name, **PARAMETERS)
    np.testing.assert_allclose(feature_map.transform(kind(Z)), expected, rtol=1e-12)
    feature_map.set_params(kernel="linear", gamma=5.0)  # of the next fit
    np.testing.assert_allclose(feature_map.transform(kind(Z)), expected, rtol=1e-12)


def test_precomputed_kernel_map():
    K = kernel_matrix(np.random.default_rng(0).normal(size=(8, 3)))
    feature_map = Kernel("precomputed").fit(K)
    assert feature_map.support_rows_ is None
    np.testing.assert_array_equal(Kernel("precomputed").fit_transform(K), K)
    np.testing.assert_array_equal(feature_map.transform(K[:3]), K[:3])
    with pytest.raises(ValueError, match="X has 7 features, but Kernel is expecting 8"):
        feature_map.transform(K[:, :7])
    with pytest.raises(ValueError, match="must be square"):
        Kernel("precomputed").fit(K[:3])


@pytest.mark.parametrize("name", [name for name in (*NAMES, "precomputed") if name != "linear"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_model_files_hold_it(name, kind, tmp_path):
    X, y, qid = make_ranking(6, (2, 6), 4, random_state=0)
    X = abs(X).astype(np.float32)
    if name == "precomputed":
        if kind is sp.csr_array:
            return
        X = kernel_matrix(X)
    model = RankRLS(feature_map=Kernel(name, degree=2)).fit(kind(X), y, qid=qid)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(kind(X)), model.predict(kind(X)))
    assert same_map(loaded.feature_map_, model.feature_map_)
    assert loaded.feature_map_.get_params() == model.feature_map_.get_params()
    assert loaded.feature_map_.get_feature_names_out().shape == (len(y),)
    refitted = pickle.loads(pickle.dumps(loaded)).fit(kind(X), y, qid=qid)
    np.testing.assert_array_equal(refitted.coef_, model.coef_)


def test_maps_that_differ():
    X = np.eye(4)
    maps = [
        Kernel().fit(X),
        Kernel().fit(X[:3]),
        Kernel().fit(X + 1),
        Kernel(gamma=2.0).fit(X),
        Kernel().fit(sp.csr_array(X)),
        Kernel().fit(sp.csr_array(X + 1)),
        Kernel("precomputed").fit(X),
    ]
    for i, a in enumerate(maps):
        assert [same_map(a, pickle.loads(pickle.dumps(b))) for b in maps] == [
            i == j for j in range(len(maps))
        ]
