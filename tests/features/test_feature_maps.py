"""RandomNodes: values, draws, the fused path against explicit features, files, bad parameters."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_union
from sklearn.preprocessing import KBinsDiscretizer

from axes import drawn, every
from fuzz.forge import Tensor, pack, parse
from pairgram import (
    Nystroem,
    Pairgram,
    Pairs,
    QueryKFold,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    load_model,
    make_ranking,
)
from problems import problems

FUNCTIONS = {
    "linear": lambda z: z,
    "sigmoid": expit,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "hardlim": lambda z: (z >= 0).astype(float),
    "sine": np.sin,
}
ACTIVATIONS = [*FUNCTIONS, "gaussian"]


def nodes(activation="sigmoid", n_nodes=13, **parameters):
    return RandomNodes(n_nodes, activation, bias_range=(0.1, 1), random_state=3, **parameters)


@pytest.fixture(scope="module")
def data():
    return make_ranking(25, (1, 20), 5, random_state=0)


@given(problems(weights=False), st.sampled_from(sorted(FUNCTIONS)), st.sampled_from([1, 2, 30]))
def test_values_of_the_nodes(problem, name, n_nodes):
    feature_map = nodes(name, n_nodes).fit(problem.X)
    z = problem.X @ feature_map.weights_ + feature_map.bias_
    expected = FUNCTIONS[name](z)
    if name == "hardlim":
        expected = np.where(np.abs(z) < 1e-12, feature_map.transform(problem.X), expected)
    np.testing.assert_allclose(feature_map.transform(problem.X), expected, atol=1e-13)
    single = feature_map.transform(problem.X.astype(np.float32))
    assert single.dtype == np.float32
    if name != "hardlim":
        np.testing.assert_allclose(single, expected, atol=3e-6)
    np.testing.assert_array_equal(
        feature_map.transform(sp.csr_array(problem.X)), feature_map.transform(problem.X)
    )


def test_gaussian_nodes(data):
    X = data[0]
    feature_map = nodes("gaussian").fit(X)
    distances = ((X[:, :, None] - feature_map.weights_) ** 2).sum(axis=1)
    expected = np.exp(-feature_map.bias_ * distances)
    np.testing.assert_allclose(feature_map.transform(X), expected, rtol=1e-12)
    for seed in range(4):  # whatever is drawn
        map_ = RandomNodes(2, "gaussian", bias_range=(-1, 1), random_state=seed)
        with pytest.raises(ValueError, match="bias_range must have no numbers below 0"):
            map_.fit(X)


def test_several_activations_are_a_union_of_maps(data):
    X, y, qid = data
    maps = [nodes(kind, 4) for kind in ("sigmoid", "sine")]
    model = RankRLS(feature_map=make_union(*maps)).fit(X, y, qid=qid)
    H = np.hstack([one.fit_transform(X) for one in maps])
    expected = RankRLS().fit(H, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), expected.predict(H), atol=1e-12)


def test_draws_follow_the_seed_and_the_ranges():
    X = np.zeros((3, 40))
    uniform = RandomNodes(500, weight_range=(-3, 2), bias_range=(5, 6), random_state=1).fit(X)
    assert uniform.weights_.min() >= -3
    assert uniform.weights_.max() <= 2
    np.testing.assert_allclose(uniform.weights_.mean(), -0.5, atol=0.05)
    assert ((uniform.bias_ >= 5) & (uniform.bias_ <= 6)).all()
    again = RandomNodes(500, weight_range=(-3, 2), bias_range=(5, 6), random_state=1).fit(X)
    np.testing.assert_array_equal(again.weights_, uniform.weights_)
    for make in (np.random.RandomState, np.random.default_rng):
        drawn = RandomNodes(5, random_state=make(1)).fit(X).weights_
        np.testing.assert_array_equal(drawn, make(1).uniform(-1, 1, (40, 5)))
    assert (RandomNodes(5).fit(X).weights_ != RandomNodes(5).fit(X).weights_).any()


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
@drawn(
    4, pairs=["with_ties", "without_ties", "gain_difference", None], dtype=[np.float64, np.float32]
)
def test_fused_nodes_equal_explicit_ones(data, activation, pairs, dtype):
    X, y, qid = data
    X = X.astype(dtype)
    feature_map = nodes(activation)
    H = feature_map.fit(X).transform(X.astype(float))
    fused = RankRLS(2.0, pairs=pairs, feature_map=feature_map).fit(X, y, qid=qid)
    explicit = RankRLS(2.0, pairs=pairs).fit(H, y, qid=qid)
    expected = explicit.predict(H)
    tolerance = (1e-9 if dtype == np.float64 else 2e-3) * np.abs(expected).max()
    np.testing.assert_allclose(fused.predict(X), expected, atol=tolerance)
    for cv in (None, QueryKFold(3)):
        named = {"pairs": pairs, "scoring": "pairwise_squared_error", "cv": cv}
        fused = RankRLSCV([1.0, 10.0], **named, feature_map=feature_map).fit(X, y, qid=qid)
        explicit = RankRLSCV([1.0, 10.0], **named).fit(H, y, qid=qid)
        np.testing.assert_allclose(
            fused.scores_, explicit.scores_, rtol=1e-8 if dtype == np.float64 else 1e-2
        )


@pytest.mark.parametrize("scope", ["query", "global"])
def test_other_ways_of_holding_out(data, scope):
    X, y, qid = data
    feature_map = nodes(n_nodes=9)
    H = feature_map.fit_transform(X)
    for ids, validated, pairs in (
        (None, False, "with_ties"),
        (None, False, "without_ties"),
        (None, False, None),
        (qid, True, "with_ties"),
        (qid, False, "with_ties"),
    ):
        model = RankRLSCV(
            [1.0, 10.0], pairs=Pairs(pairs, scope=scope), scoring="pairwise_squared_error"
        )
        mapped = clone(model).set_params(feature_map=feature_map)
        found = [
            one.fit(rows, y, qid=ids, validation=(rows, y, ids) if validated else None).scores_
            for one, rows in ((mapped, X), (model, H))
        ]
        np.testing.assert_allclose(*found, rtol=1e-7)


def test_any_transformer_maps_rows(data, set_limits):

    X, y, qid = data
    set_limits(dense_block_bytes=8 * 30 * 40)  # several blocks
    sampler = RBFSampler(n_components=30, random_state=0)
    H = sampler.fit_transform(X)
    for rows in (X, sp.csr_array(X)):
        model = RankRLSCV([1.0, 5.0], feature_map=sampler, scoring="pairwise_squared_error").fit(
            rows, y, qid=qid
        )
        explicit = RankRLSCV([1.0, 5.0], scoring="pairwise_squared_error").fit(H, y, qid=qid)
        np.testing.assert_allclose(model.scores_, explicit.scores_, rtol=1e-9)
        np.testing.assert_allclose(model.predict(rows), explicit.predict(H), atol=1e-9)


def test_statistics_of_one_map_merge(data, tmp_path):
    X, y, qid = data
    feature_map = nodes().fit(X)
    half = qid < 12
    parts = [
        Pairgram.from_rows(X[rows], y[rows], qid=qid[rows], feature_map=feature_map)
        for rows in (half, ~half)
    ]
    whole = Pairgram.from_rows(feature_map.transform(X), y, qid=qid)
    np.testing.assert_allclose((parts[0] + parts[1]).G, whole.G, rtol=1e-9, atol=1e-9)
    parts[0].save(tmp_path / "part")
    loaded = Pairgram.load(tmp_path / "part")
    np.testing.assert_array_equal((loaded + parts[1]).G, (parts[0] + parts[1]).G)
    stream = Pairgram(feature_map=nodes()).update(X[half], y[half], qid=qid[half])
    stream.update(X[~half], y[~half], qid=qid[~half])
    np.testing.assert_allclose(stream.G, whole.G, rtol=1e-9, atol=1e-9)
    model = RankRLS.from_pairgram(stream, 2.0)
    expected = RankRLS(2.0, feature_map=nodes()).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


class Squared(RandomNodes):
    """A subclass with code of its own, which neither kernels nor files know."""

    def transform(self, X):
        return super().transform(X) ** 2


def test_subclasses_are_taken_as_what_they_do(data, tmp_path):
    X, y, qid = data
    feature_map = Squared(10, random_state=0)
    model = RankRLS(2.0, feature_map=feature_map).fit(X, y, qid=qid)
    H = feature_map.fit(X).transform(X)
    np.testing.assert_allclose(
        model.predict(X), RankRLS(2.0).fit(H, y, qid=qid).predict(H), atol=1e-9
    )


def test_statistics_keep_a_map_of_their_own(data, tmp_path):
    X, y, qid = data
    feature_map = RandomNodes(12).fit(X)
    total = Pairgram.from_rows(X, y, qid=qid, feature_map=feature_map)
    before = RankRLS.from_pairgram(total).predict(X)
    feature_map.fit(X)
    np.testing.assert_array_equal(RankRLS.from_pairgram(total).predict(X), before)
    model = RankRLS.from_pairgram(total)
    model.feature_map_.set_params(activation="tanh", n_nodes=3)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), before)


@every(bad=[np.nan, np.inf], activation=["sigmoid", "tanh", "hardlim", "gaussian"])
def test_no_activation_hides_infinity(data, activation, bad):
    X, y, qid = data
    stream = Pairgram(feature_map=nodes(activation)).update(X, y, qid=qid)
    X = X.copy()
    X[3, 0] = bad
    for rows in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match="X contains"):
            stream.update(rows, y, qid=qid + 1000)
    assert stream.n_rows == len(y)


def test_a_fit_that_fails_leaves_the_model_as_it_was(data):
    X, y, qid = data
    for model in (
        RankRLS(feature_map=RandomNodes(12)),
        RankRLSCV([1.0, 5.0], feature_map=RandomNodes(12)),
    ):
        before = model.fit(X, y, qid=qid).predict(X)
        for wrong in ({"sample_weight": np.zeros(len(y))}, {"qid": np.arange(len(y))}):
            with pytest.raises(ValueError, match=r"zero for every row|no pair"):
                model.fit(X, y, **wrong)
            np.testing.assert_array_equal(model.predict(X), before)
            assert model.uses_qid_


def test_far_gaussian_nodes_stay_in_their_range():
    X = 1000 + np.random.default_rng(0).random((50, 4)).astype(np.float32)
    H = RandomNodes(30, "gaussian", weight_range=(1000, 1001), bias_range=(0.5, 1)).fit_transform(X)
    assert ((H >= 0) & (H <= 1)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_equal_rows_is_not_scaled_up(dtype):
    rng = np.random.default_rng(0)
    sizes = [9, 11, 100, 50, 33]
    X = np.repeat(rng.random((5, 500)), sizes, axis=0).astype(dtype)
    y, qid = rng.normal(size=203), np.repeat(np.arange(5), sizes)
    total = Pairgram.from_rows(X, y, qid=qid, feature_map=RandomNodes(101, random_state=0))
    assert np.abs(total.solve(1.0, scale=True)).max() < 1e-6


def test_maps_with_outputs_of_any_container(data):
    X, y, _ = data
    pandas = RBFSampler(n_components=20, random_state=0).set_output(transform="pandas")
    sparse = KBinsDiscretizer(5, strategy="uniform")
    for feature_map in (pandas, sparse):
        H = feature_map.fit(X).transform(X)
        H = H.toarray() if sp.issparse(H) else np.asarray(H)
        model = RankRLSCV(
            [1.0, 5.0],
            feature_map=feature_map,
            pairs=Pairs(scope="global"),
            cv=3,
            scoring="pairwise_squared_error",
        )
        explicit = RankRLSCV(
            [1.0, 5.0], pairs=Pairs(scope="global"), cv=3, scoring="pairwise_squared_error"
        ).fit(H, y)
        np.testing.assert_allclose(model.fit(X, y).scores_, explicit.scores_, rtol=1e-8)
        np.testing.assert_allclose(model.predict(X), explicit.predict(H), atol=1e-8)


def test_a_map_may_take_missing_values(data):
    X, y, qid = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    held = (X, y, qid)
    model = RankRLSCV([1.0], feature_map=SimpleImputer()).fit(X, y, qid=qid, validation=held)
    assert np.isfinite(model.scores_).all()


def test_float32_overflow_behind_a_map_is_taken_in_float64(data):
    X, y, qid = data
    single = (X * 1e20).astype(np.float32)
    feature_map = RandomNodes(20, "relu", random_state=0)
    model = RankRLS(feature_map=feature_map).fit(single, y, qid=qid)
    expected = RankRLS(feature_map=feature_map).fit(single.astype(float), y, qid=qid)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    with pytest.raises(ValueError, match="feature 0 of the feature map too large"):
        RankRLS(feature_map=feature_map).fit(X * 1e200, y, qid=qid)


def test_files_of_other_versions_are_refused(data, tmp_path):
    X, y, qid = data
    path = tmp_path / "model"
    model = RankRLS(feature_map=nodes()).fit(X, y, qid=qid)
    model.save(path)
    saved = parse(path.read_bytes())
    of_map = saved.settings["feature_map"]
    for change, message in (
        ({"feature_map": {**of_map, "kind": "Fourier"}}, "kind 'Fourier' is not known"),
        ({"feature_map": {**of_map, "speed": 3}}, "'feature_map.speed' is no setting that this"),
        ({"future": 1}, "'future' is no setting that this version knows .written by pairgram"),
    ):
        path.write_bytes(pack(replace(saved, settings={**saved.settings, **change})))
        with pytest.raises(ValueError, match=message):
            load_model(path)
    saved.tensors["coef_"] = Tensor.of(np.ones(5))
    path.write_bytes(pack(saved))
    with pytest.raises(ValueError, match=r"map_weights must have shape .*, but outputs is 5"):
        load_model(path)


@pytest.mark.parametrize(
    "feature_map",
    [RandomNodes(5, random_state=0), Nystroem(n_components=5, random_state=0)],
    ids=["nodes", "landmarks"],
)
def test_transformers_that_make_frames_change_nothing(feature_map):
    pytest.importorskip("pandas")
    X, y, qid = make_ranking(9, 8, 3, random_state=0)
    expected = RankRLS(feature_map=feature_map).fit(X, y, qid=qid).coef_
    with sklearn.config_context(transform_output="pandas"):
        found = RankRLS(feature_map=feature_map).fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(found, expected)
