"""What every feature map tells of itself, and what the package asks of any transformer."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures

from pairgram import Nystroem, RandomFourier, RandomNodes, RankRLS
from parts.data import RankingData
from parts.features import Kernel, feature_map as base
from row_value import row_value

MAPS = {
    "sigmoid nodes": RandomNodes(7, random_state=0),
    "linear nodes": RandomNodes(7, "linear", random_state=0),
    "Fourier": RandomFourier(7, random_state=0),
    "Nyström": Nystroem(n_components=7, random_state=0),
    "linear Nyström": Nystroem("linear", n_components=7, random_state=0),
    "kernel": Kernel("rbf"),
    "kernel of counts": Kernel("minmax"),
}
EACH = pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS.keys())


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(size=(50, 4))


class Shifted(RandomNodes):
    """Nodes with code of their own, which the package must not go round."""

    def transform(self, X):
        return super().transform(X)[:, :3] + 1.0


class ShiftedKernel(Kernel):
    def transform(self, X):
        return super().transform(X) + 1.0


class Squares(base.FeatureMap):
    """A map of no more than what the base class demands, which Python alone can apply."""

    def fit(self, X, y=None):
        base.finite_rows(self, X, reset=True)
        return self

    @property
    def _n_features_out(self):
        return self.n_features_in_

    def _node_map(self, dtype):
        return None

    def _values(self, X):
        return X**2

    def _same(self, other):
        return self.n_features_in_ == other.n_features_in_


@pytest.mark.parametrize("inputs", [None, "standard"])
def test_a_map_without_kernel_and_activation_is_taken(inputs, X):
    y, qid = np.random.default_rng(1).integers(0, 3, len(X)), np.arange(len(X)) % 5
    made = X if inputs is None else (X - X.mean(axis=0)) / X.std(axis=0)
    model = RankRLS(feature_map=row_value(inputs, Squares())).fit(X, y, qid=qid)
    plain = RankRLS().fit(made**2, y, qid=qid)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    assert_allclose(model.predict(X), plain.predict(made**2), rtol=1e-10)


@EACH
def test_users_see_a_transformer(feature_map, X):
    fitted = clone(feature_map).fit(X)
    methods = {"fit", "fit_transform", "transform", "get_feature_names_out", "set_output"}
    methods |= {"get_params", "set_params", "get_metadata_routing"}
    seen = {name for name in dir(fitted) if name[0] != "_"} - methods - fitted.get_params().keys()
    assert {name for name in seen if name[-1] != "_"} == set()
    text = inspect.getdoc(type(fitted))
    assert all(f"{name} : " in text for name in seen)


@EACH
def test_a_map_tells_what_it_makes(feature_map, X, monkeypatch):
    fitted = feature_map.fit(X)
    H = {dtype: fitted.transform(X.astype(dtype)) for dtype in (np.float64, np.float32)}
    for name in ("transform", "_features", "_node_map"):  # none of which it needs
        monkeypatch.setattr(type(fitted), name, None)
    assert base.n_outputs(fitted, X) == H[np.float64].shape[1]
    for dtype, values in H.items():
        data = RankingData.delimit(X.astype(dtype), np.zeros(len(X)))
        assert replace(data, feature_map=fitted).dtype == values.dtype


@EACH
@pytest.mark.parametrize("rows_of", [np.asarray, np.asfortranarray, sp.csr_array])
def test_scores_are_those_of_the_features(feature_map, X, rows_of):
    fitted, rng = feature_map.fit(X), np.random.default_rng(1)
    H = fitted.transform(X)
    coefs = rng.normal(size=(3, H.shape[1]))
    found = base.scores_of_rows(fitted, rows_of(X), coefs)
    expected = coefs @ H.T
    assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    assert_array_equal(base.scores_of_rows(fitted, rows_of(X), coefs[1]), found[1])
    data = RankingData.delimit(rows_of(X), np.zeros(len(X)))
    for rows in (slice(None), np.array([4, 40, 4])):
        mapped = RankingData(data.X, data.y, data.queries, feature_map=fitted)
        assert_array_equal(mapped.scores(rows, coefs), found[:, rows])


@EACH
def test_a_linear_map_is_told_from_others(feature_map, X):
    fitted = feature_map.fit(X)
    nodes = base.linear_nodes(fitted)
    assert (nodes is not None) == (feature_map is MAPS["linear nodes"])
    if nodes is not None:
        assert_allclose(X @ nodes.weights + nodes.bias, fitted.transform(X), rtol=1e-12)


@EACH
def test_whitening_makes_the_features_of_centred_values(feature_map, X):
    fitted = feature_map.fit(X)
    parts = base.unwhitened(fitted)
    assert (parts is not None) == isinstance(feature_map, Nystroem)
    if parts is not None:
        values, whitening = parts
        shifts = values.transform(X) @ whitening - fitted.transform(X)
        assert_allclose(shifts, np.broadcast_to(shifts[0], shifts.shape), atol=1e-9)
        assert_allclose(values.transform(fitted.components_).mean(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("foreign", [Shifted(7, random_state=0), PolynomialFeatures(2)])
def test_other_transformers_map_a_row_to_tell(foreign, X):
    fitted = foreign.fit(X)
    assert not base.is_known(fitted)
    assert base.node_map_of(fitted, np.float64) is None
    assert base.linear_nodes(fitted) is None
    assert base.unwhitened(fitted) is None
    H = fitted.transform(X)
    assert base.n_outputs(fitted, X) == H.shape[1]
    coefs = np.random.default_rng(1).normal(size=(2, H.shape[1]))
    assert_allclose(base.scores_of_rows(fitted, X, coefs), coefs @ H.T, atol=1e-12)


@pytest.mark.parametrize("foreign", [Shifted(7, "linear", random_state=0), ShiftedKernel("rbf")])
def test_a_subclass_of_a_map_is_taken_by_its_own_code(foreign, X):
    y, qid = X[:, 0], np.arange(50) // 10
    model = RankRLS(feature_map=foreign).fit(X, y, qid=qid)
    H = foreign.fit(X).transform(X)
    assert_allclose(model.coef_, RankRLS().fit(H, y, qid=qid).coef_, rtol=1e-8)
    assert_allclose(model.predict(X), H @ model.coef_, rtol=1e-10)
