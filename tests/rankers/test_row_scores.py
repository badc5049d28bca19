"""Scores of rows: the same bits in any company, right, and NaN and infinity still refused."""

import copy
import gc
import pickle
import threading
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.metrics.pairwise import pairwise_kernels

import pairgram as pg
from axes import every
from pairgram import _core
from parts.rankers import scores as row_scores
from parts.support import machine, on_threads

N_TRAIN, N_ROWS, N_FEATURES = 90, 1_301, 13
ACTIVATIONS = ("linear", "sigmoid", "gaussian", "tanh", "relu", "hardlim", "sine")
KERNELS = ("rbf", "laplacian", "polynomial", "linear", "tanimoto")

MODELS = {
    "inputs": pg.RankRLS(),
    "search": pg.RankRLSCV([0.1, 1.0]),
    **{
        f"{activation} nodes": pg.RankRLS(
            feature_map=pg.RandomNodes(37, activation, random_state=0)
        )
        for activation in ACTIVATIONS
    },
    **{
        f"{kernel} Fourier": pg.RankRLS(
            feature_map=pg.RandomFourier(50, kernel=kernel, random_state=0)
        )
        for kernel in ("rbf", "laplacian", "cauchy")
    },
    **{
        f"{kernel} Nystroem": pg.RankRLS(
            feature_map=pg.Nystroem(kernel, n_components=29, random_state=0, tol=1e-3)
        )
        for kernel in KERNELS
    },
    **{
        f"{kernel} kernel": pg.RankRLS(feature_map=pg.Kernel(kernel))
        for kernel in KERNELS
        if kernel != "linear"
    },
    "RankSVM": pg.RankSVM(),
    "RankNystroem": pg.RankSVM(0.01, feature_map=pg.Nystroem(n_components=20, random_state=0)),
    "RankRandomFourier": pg.RankSVM(
        0.01, feature_map=pg.RandomFourier(n_components=20, random_state=0)
    ),
    "ELMRank": pg.ELMRank(n_nodes=20, n_estimators=2, random_state=0),
    "ELMRankCV": pg.ELMRankCV(n_nodes=20, cv=3, random_state=0),
    "PointwiseELM": pg.PointwiseELM(n_nodes=20, random_state=0),
    "PairwiseELM": pg.PairwiseELM(feature_map=pg.Kernel("rbf")),
}
MAPPED = [name for name in MODELS if name not in ("inputs", "search", "RankSVM")]
KINDS = {"dense": np.asarray, "CSR": sp.csr_array}


def make_rows(n, seed):
    """Return rows with zeros in them, none of them empty."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, N_FEATURES)) * (rng.random((n, N_FEATURES)) < 0.6)
    X[:, 0] += 0.1
    return X


@pytest.fixture(scope="module")
def fitted():
    """Return a function that fits a model by its name, once."""
    X = make_rows(N_TRAIN, 0)
    y = np.random.default_rng(1).integers(0, 3, N_TRAIN).astype(float)
    done = {}

    def fit(name, kind="dense", dtype=np.float64):
        key = name, kind, dtype
        if key not in done:
            rows = KINDS[kind](X.astype(dtype))
            done[key] = copy.deepcopy(MODELS[name]).fit(rows, y, qid=np.arange(N_TRAIN) // 6)
        return copy.deepcopy(done[key])

    return fit


# The same bits -----------------------------------------------------------------------------------


def assert_same_bits_in_any_company(model, X, n_alone=40):
    """Hold the scores of batches of many sizes, places and threads against those of all rows."""
    n = X.shape[0]
    scores = model.predict(X)
    assert scores.dtype == X.dtype
    assert len(np.unique(scores)) > n // 20  # the bits say something
    for again in on_threads((1, 2, 5), lambda: model.predict(X)):
        np.testing.assert_array_equal(again, scores)
    rng = np.random.default_rng(0)
    for row in rng.choice(n, n_alone, replace=False):
        assert model.predict(X[[row]])[0] == scores[row]
    for size in (2, 3, 4, 5, 7, 8, 11, 13, 16, 31, 64, 97, 127, 128, 211, 256, 257, 300):
        for begin in (int(rng.integers(n - size)), n - size):
            part = X[begin : begin + size]
            np.testing.assert_array_equal(model.predict(part), scores[begin : begin + size])
    order = rng.permutation(n)
    np.testing.assert_array_equal(model.predict(X[order]), scores[order])
    row = int(rng.integers(n))
    assert set(model.predict(X[np.full(300, row)]).tolist()) == {scores[row].item()}


@pytest.mark.parametrize("name", MODELS)
@every(dtype=[np.float64, np.float32], kind=KINDS)
def test_a_score_has_the_same_bits_in_any_company(fitted, name, kind, dtype):
    X = KINDS[kind](make_rows(N_ROWS, 2).astype(dtype))
    assert_same_bits_in_any_company(fitted(name), X, n_alone=8 if kind == "dense" else 3)


@every(name=[name for name in MODELS if name.endswith(" kernel")], kind=KINDS)
def test_and_so_with_support_rows_in_csr(fitted, name, kind):
    X = KINDS[kind](make_rows(N_ROWS, 2))
    assert_same_bits_in_any_company(fitted(name, "CSR"), X, n_alone=8)


@every(n_features=[1, 2, 7, 136, 701], dtype=[np.float64, np.float32])
def test_and_so_for_rows_of_any_width(n_features, dtype):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(700, n_features)).astype(dtype)
    y = rng.integers(0, 3, 60).astype(float)
    maps = [
        None,
        pg.RandomNodes(203, "tanh", weight_range=(-0.1, 0.1), random_state=0),
        pg.RandomNodes(203, "gaussian", random_state=0),
        pg.Nystroem(n_components=40, random_state=0),
        pg.Nystroem("laplacian", n_components=40, random_state=0),
    ]
    for feature_map in maps:
        model = pg.RankRLS(feature_map=feature_map).fit(X[:60], y, qid=np.arange(60) // 5)
        scores = model.predict(X)
        for again in on_threads((1, 2, 5), partial(model.predict, X)):
            np.testing.assert_array_equal(again, scores)
        for begin, end in ((0, 1), (1, 4), (17, 24), (250, 261), (3, 700), (699, 700)):
            np.testing.assert_array_equal(model.predict(X[begin:end]), scores[begin:end])


def test_equal_rows_of_a_batch_have_one_score():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((1, 46)), 403, axis=0)
    X[:200] = rng.standard_normal((200, 46))
    y = rng.integers(0, 3, 403) * 1.0
    for rows in (X, X.astype(np.float32)):
        model = pg.RankRLS().fit(rows, y, qid=np.arange(403) // 20)
        assert len(set(model.predict(rows)[200:].tolist())) == 1


@pytest.mark.parametrize("name", MAPPED)
@every(dtype=[np.float64, np.float32])
def test_features_too_have_the_same_bits_in_any_company(fitted, name, dtype):
    feature_map = fitted(name).feature_map_
    X = make_rows(600, 3).astype(dtype)
    features = feature_map.transform(X)
    for begin, end in ((0, 1), (1, 4), (17, 24), (250, 261), (3, 600), (599, 600)):
        np.testing.assert_array_equal(feature_map.transform(X[begin:end]), features[begin:end])


@every(kernel=KERNELS, kinds=[("dense", "dense"), ("CSR", "CSR"), ("CSR", "dense")])
def test_kernels_of_given_columns_have_the_same_bits_in_any_company(kernel, kinds):
    X, Z = (KINDS[kind](make_rows(n, n)) for kind, n in zip(kinds, (700, 45), strict=True))
    K = pg.kernel_matrix(X, Z, kernel)
    for begin, end in ((0, 1), (1, 4), (17, 24), (500, 523), (3, 700), (699, 700)):
        np.testing.assert_array_equal(pg.kernel_matrix(X[begin:end], Z, kernel), K[begin:end])
    expected = np.ascontiguousarray(pg.kernel_matrix(Z, X, kernel).T)
    np.testing.assert_allclose(K, expected, rtol=1e-13)


# Right -------------------------------------------------------------------------------------------


def reference_features(feature_map, X):
    """Return the features by their formulas."""
    if type(feature_map) is pg.RandomFourier:
        z = X @ feature_map.weights_ + feature_map.bias_
        return np.sqrt(2 / len(feature_map.bias_)) * np.cos(z)
    if type(feature_map) is pg.RandomNodes:
        return reference_nodes(feature_map, X)
    named = feature_map.kernel
    rows = (
        feature_map.components_ if type(feature_map) is pg.Nystroem else feature_map.support_rows_
    )
    rows = rows.toarray() if sp.issparse(rows) else rows
    if named == "tanimoto":
        products = X @ rows.T
        K = products / ((X**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - products)
    else:
        settings = {"gamma": feature_map.gamma_} if named != "linear" else {}
        settings |= {"degree": 3, "coef0": 1.0} if named == "polynomial" else {}
        K = pairwise_kernels(X, rows, metric=named, **settings)
    return K @ feature_map.whitening_ if type(feature_map) is pg.Nystroem else K


def reference_nodes(nodes, X):
    z = X @ nodes.weights_ + nodes.bias_
    squares = ((X[:, :, None] - nodes.weights_) ** 2).sum(axis=1)
    values = {
        "linear": z,
        "sigmoid": expit(z),
        "gaussian": np.exp(-nodes.bias_ * squares),
        "tanh": np.tanh(z),
        "relu": np.maximum(z, 0),
        "hardlim": (z >= 0).astype(float),
        "sine": np.sin(z),
    }
    kinds = [nodes.activation] if isinstance(nodes.activation, str) else list(nodes.activation)
    of_node = [kinds[i] for i, part in enumerate(np.array_split(z[0], len(kinds))) for _ in part]
    return np.column_stack([values[kind][:, k] for k, kind in enumerate(of_node)])


@pytest.mark.parametrize("name", MODELS)
@every(support=KINDS)
def test_scores_are_those_of_the_formulas(fitted, name, support):
    model, X = fitted(name, support), make_rows(300, 5)
    H = X if model.feature_map_ is None else reference_features(model.feature_map_, X)
    expected = H @ model.coef_ + getattr(model, "intercept_", 0.0)
    size = (np.abs(H) @ np.abs(model.coef_)).max()
    dense, sparse = model.predict(X), model.predict(sp.csr_array(X))
    np.testing.assert_allclose(dense, expected, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(sparse, dense, rtol=0, atol=1e-12 * size)
    single = model.predict(X.astype(np.float32))
    exact = model.predict(X.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(single, exact, rtol=0, atol=2e-6 * size)


# NaN and infinity --------------------------------------------------------------------------------


FILL = ": fill such values before, or fit a ranker with feature_map=Fill('mean')"


@pytest.mark.parametrize("name", MODELS)
@every(dtype=[np.float64, np.float32])
def test_nan_and_infinity_are_refused_wherever_they_stand(fitted, name, dtype):
    model, X = fitted(name), make_rows(6, 4).astype(dtype)
    for value, found in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        for row in range(6):
            for column in range(N_FEATURES):
                bad = X.copy()
                bad[row, column] = value
                bad[5, N_FEATURES - 1] = value
                message = f"Input X contains {found}: row {row}, column {column}, counted from 0"
                message += FILL if found == "NaN" else ""
                with pytest.raises(ValueError) as caught:
                    model.predict(bad)
                assert str(caught.value) == message


@pytest.mark.parametrize("name", MODELS)
@every(support=KINDS)
def test_they_are_refused_in_large_batches_and_any_container(fitted, name, support):
    model, X = fitted(name, support), make_rows(700, 4)
    for value, found in ((np.nan, "NaN"), (np.inf, "infinity")):
        for row in (0, 255, 256, 699):
            bad = X.copy()
            bad[row, 3] = value
            message = f"^Input X contains {found}: row {row}, column 3, counted from 0(: fill .*)?$"
            for rows in (bad, np.asfortranarray(bad), sp.csr_array(bad), pd.DataFrame(bad)):
                with pytest.raises(ValueError, match=message):
                    model.predict(rows)


# Containers --------------------------------------------------------------------------------------


def unaligned(X):
    """Return a copy whose addresses are odd."""
    buffer = np.empty(X.nbytes + 1, np.uint8)
    copied = buffer[1:].view(X.dtype).reshape(X.shape)
    copied[...] = X
    return copied


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "unaligned": unaligned,
    "subclass": lambda X: X.view(type("Rows", (np.ndarray,), {})),
    "list": lambda X: X.tolist(),
    "frame": pd.DataFrame,
    "frame of columns": lambda X: pd.DataFrame({k: X[:, k].copy() for k in range(X.shape[1])}),
    "polars": lambda X: pytest.importorskip("polars").DataFrame(X),
}


@pytest.mark.parametrize("name", ["inputs", "sigmoid nodes", "rbf Nystroem", "tanimoto kernel"])
@every(layout=[*LAYOUTS, "read-only", "big-endian"])
def test_every_layout_has_the_scores_of_the_contiguous(fitted, name, layout):
    model, X = fitted(name), make_rows(300, 6)
    scores = model.predict(X)
    if layout == "read-only":
        rows = X.copy()
        rows.flags.writeable = False
    elif layout == "big-endian":
        rows = X.astype(">f8")
    else:
        rows = LAYOUTS[layout](X)
    named = layout == "polars"
    with pytest.warns(UserWarning, match="has feature names") if named else nullcontext():
        np.testing.assert_array_equal(model.predict(rows), scores)


def test_names_of_features_are_checked_as_scikit_learn_does(fitted):
    X, y = make_rows(N_TRAIN, 0), np.arange(N_TRAIN) % 3 * 1.0
    names = [f"feature {k}" for k in range(N_FEATURES)]
    frame = pd.DataFrame(X, columns=names)
    model = pg.RankRLS(feature_map=pg.RandomNodes(9, random_state=0)).fit(frame, y)
    scores = model.predict(frame)
    pl = pytest.importorskip("polars")
    for rows in (frame.astype(object), pl.DataFrame(X, schema=names)):
        np.testing.assert_array_equal(model.predict(rows), scores)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but RankRLS"):
        np.testing.assert_array_equal(model.predict(X), scores)
    for wrong in (frame[names[::-1]], frame[names[1:]], frame.rename(columns={names[3]: "x"})):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong)
    with pytest.warns(UserWarning, match="X has feature names, but RankRLS was fitted without"):
        fitted("inputs").predict(frame)
    plain = pg.RankRLS().fit(pd.DataFrame(X), y)  # whose names are no text
    np.testing.assert_array_equal(plain.predict(pd.DataFrame(X)), plain.predict(X))


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.astype("Float64"),
        lambda frame: frame.astype(pd.SparseDtype(float, 0.0)),
        lambda frame: frame.assign(a=frame["a"].astype("float32")),
        lambda frame: frame.assign(a=frame["a"].round().astype(int)),
        lambda frame: frame.assign(a=frame["a"] > 0.5),
        lambda frame: frame.astype("float32"),
    ],
    ids=["nullable", "sparse", "mixed floats", "integers", "booleans", "float32"],
)
def test_frames_of_other_types_are_what_scikit_learn_makes_of_them(change):
    frame = change(pd.DataFrame(make_rows(N_TRAIN, 0), columns=list("abcdefghijklm")))
    y = np.arange(N_TRAIN) % 3 * 1.0
    model = pg.RankRLS().fit(frame, y)
    scores = model.predict(frame)
    same = all(dtype == np.float32 for dtype in frame.dtypes)
    assert scores.dtype == (np.float32 if same else np.float64)
    rows = frame.astype(np.float32 if same else np.float64).to_numpy()
    expected = rows.astype(np.float64) @ model.coef_
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6 if same else 1e-12)


# What is kept ------------------------------------------------------------------------------------


@every(name=MODELS)
def test_a_change_of_the_coefficients_is_seen(fitted, name):
    model, X = fitted(name), make_rows(50, 7)
    offset = getattr(model, "intercept_", 0.0)
    before = model.predict(X) - offset
    model.coef_ = 2 * model.coef_
    np.testing.assert_allclose(model.predict(X) - offset, 2 * before, rtol=1e-12)
    model.coef_ *= -0.5  # in place
    np.testing.assert_allclose(model.predict(X) - offset, -before, rtol=1e-12)
    model.coef_[:] = 0.0
    np.testing.assert_array_equal(model.predict(X), np.full(50, offset))


@every(name=MAPPED)
def test_a_change_of_the_map_is_seen(fitted, name):
    model, X = fitted(name), make_rows(50, 7)
    before = model.predict(X)
    arrays = {"weights_", "bias_", "components_", "whitening_", "support_rows_"}
    for attribute in sorted(arrays & vars(model.feature_map_).keys()):
        for as_another in (False, True):
            if as_another:
                model.feature_map_ = copy.deepcopy(model.feature_map_)
            values = getattr(model.feature_map_, attribute)
            setattr(model.feature_map_, attribute, 0.7 * values)
            after = model.predict(X)
            assert (after != before).any(), attribute
            np.testing.assert_array_equal(copy.deepcopy(model).predict(X), after)
            before = after


def test_a_new_fit_is_seen(fitted):
    X, y = make_rows(N_TRAIN, 0), np.arange(N_TRAIN) % 4 * 1.0
    for name in MAPPED:
        model = fitted(name)
        model.predict(X)
        again = model.fit(X[::-1] + 0.01, y, qid=np.arange(N_TRAIN) // 6).predict(X)
        np.testing.assert_array_equal(copy.deepcopy(model).predict(X), again)


@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_it_is_pickled_or_seen(fitted, name, tmp_path):
    model, X = fitted(name), make_rows(50, 7)
    objects = [model] if model.feature_map_ is None else [model, model.feature_map_]
    before, size = [dict(vars(each)) for each in objects], len(pickle.dumps(model))
    scores = model.predict(X)
    for each, attributes in zip(objects, before, strict=True):
        assert vars(each).keys() == attributes.keys()
        assert all(value is attributes[name] for name, value in vars(each).items())
    assert len(pickle.dumps(model)) == size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), scores)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(pg.load_model(tmp_path / "model").predict(X), scores)


def test_it_goes_with_the_model(fitted):
    gc.collect()
    before = len(row_scores._kept)
    models = [fitted("sigmoid nodes") for _ in range(3)]
    for model in models:
        model.predict(make_rows(5, 7))
    assert len(row_scores._kept) == before + 3
    del models, model
    gc.collect()
    assert len(row_scores._kept) == before


@pytest.mark.parametrize("name", ["rbf kernel", "rbf Nystroem", "sigmoid nodes", "linear nodes"])
def test_models_too_large_to_be_kept_have_the_same_bits(fitted, name, set_limits):
    model, X = fitted(name), make_rows(600, 7)
    scores = model.predict(X)
    other = fitted(name)
    set_limits(kept_bytes=0)
    np.testing.assert_array_equal(other.predict(X), scores)
    assert row_scores._kept.get(other) == {}


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel != "linear"])
def test_support_rows_are_taken_in_parts(kernel, set_limits):
    X = make_rows(N_TRAIN, 0)
    model = pg.RankRLS(feature_map=pg.Kernel(kernel)).fit(X, np.arange(N_TRAIN) % 3 * 1.0)
    rows = make_rows(600, 7)
    whole = model.predict(rows)
    set_limits(part_bytes=8 * N_FEATURES * 7)
    parts = copy.deepcopy(model)
    size = np.abs(pg.kernel_matrix(rows, X, kernel)) @ np.abs(model.coef_)
    np.testing.assert_allclose(parts.predict(rows), whole, rtol=0, atol=1e-12 * size.max())
    assert_same_bits_in_any_company(parts, rows, n_alone=5)


def test_threads_that_predict_at_once_get_the_same_bits(fitted):
    X = make_rows(300, 7)
    for name in ("sigmoid nodes", "rbf Nystroem", "laplacian kernel", "linear nodes"):
        model = fitted(name)
        expected = {dtype: fitted(name).predict(X.astype(dtype)) for dtype in ("d", "f")}
        wrong = []

        def work(model=model, expected=expected, wrong=wrong):
            for _ in range(20):
                for dtype in ("d", "f"):
                    wrong.append((model.predict(X.astype(dtype)) != expected[dtype]).any())

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wrong) == 240
        assert not any(wrong)


def test_a_subclass_without_a_hash_predicts(fitted):
    class Equal(pg.RankRLS):
        def __eq__(self, other):
            return True

        __hash__ = None

    X = make_rows(N_TRAIN, 0)
    nodes = pg.RandomNodes(9, random_state=0)
    model = Equal(feature_map=nodes).fit(X, np.arange(N_TRAIN) % 3 * 1.0)
    expected = pg.RankRLS(feature_map=nodes).fit(X, np.arange(N_TRAIN) % 3 * 1.0).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_our_own_maps_ask_nothing_of_blas(fitted, monkeypatch):
    models = {name: fitted(name) for name in MODELS}

    def refuse(*_):
        raise AssertionError("BLAS is held to one thread")

    monkeypatch.setattr(machine._BlasGuard, "__enter__", refuse)
    for model in models.values():
        for dtype in (np.float64, np.float32):
            model.predict(make_rows(20, 7).astype(dtype))


# Maps in compiled code ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_node_map_scores_what_it_makes(dtype):
    rng = np.random.default_rng(0)
    make = _core.NodeMap64 if dtype == np.float64 else _core.NodeMap32
    W, b = rng.normal(size=(13, 37)).astype(dtype), rng.normal(size=37).astype(dtype)
    tail = rng.normal(size=(37, 11)).astype(dtype)
    X = rng.normal(size=(300, 13)).astype(dtype)
    for options, width in (({}, 37), ({"tail": tail}, 11)):
        node_map = make(W, b, None, [(0, 20, "tanh"), (20, 37, "linear")], **options)
        coefs = rng.normal(size=(5, width))
        features = node_map.map(X, 1)
        expected = _core.score_rows(features, coefs)
        for n_threads in (1, 2):
            found = node_map.score(X, coefs, n_threads)
            assert found.shape == (5, 300)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(node_map.score(X, coefs[2], n_threads), expected[2])
        with pytest.raises(TypeError):
            node_map.score(np.asfortranarray(X), coefs, 1)
