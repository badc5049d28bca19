"""`skl2onnx.to_onnx` takes rankers, feature maps and pipelines, once converters are registered."""

import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from tests.engines.cases import cases, rows, training

import pairgram
from pairgram import Cross, Nystroem, RandomFourier, RandomNodes, RankRLS, export

pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

MAPS = [
    RandomNodes(12, random_state=0),
    RandomNodes(12, activation="linear", random_state=0),
    RandomNodes(
        12, activation=["tanh", "gaussian", "hardlim", "sine", "linear", "relu"], random_state=0
    ),
    RandomFourier(20, random_state=0),
    Nystroem(n_components=9, random_state=0),
    Nystroem(n_components=5, kernel="linear", random_state=0),
    Nystroem(n_components=9, kernel="rbf", random_state=0),
    Cross([0, 1], [2, 3]),
    Cross([0, 1], [2, 3], keep=[4, 0]),
    Cross([0, 1], [2, 3], keep=[4]),
]


@pytest.fixture(autouse=True)
def registered():
    export.register_skl2onnx()


def answers(model, X, **options):
    """Return what onnxruntime computes of a converted model."""
    import onnxruntime

    file = skl2onnx.to_onnx(model, X[:1], **options).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        if X.dtype == np.float64 and "implementation for Cos" in str(error):
            pytest.skip("this onnxruntime has no cosines of float64")
        raise
    (found,) = session.run(None, {"X": X})
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", [case for case in cases() if case.group != "shop"], ids=str)
def test_scores_of_every_kind_of_model(case, dtype):
    X, _ = rows()
    if not case.fills:
        X = X[~np.isnan(X).any(axis=1)]
    X = X.astype(dtype)
    if case.lists:
        with pytest.raises(ValueError, match="compare every row with the others of its list"):
            skl2onnx.to_onnx(case.model, X[:1, :2])
        return
    found = answers(case.model, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = case.model.predict(X.astype(np.float64))
        exported = export.to_onnx(case.model)
        bound = export.verify(exported, case.model, X).bound
    assert found.dtype == dtype and found.shape == (len(X), 1)
    if dtype == np.float64:
        bound *= 2.0**-26
    assert np.abs(found[:, 0] - own).max() <= bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("feature_map", MAPS, ids=str)
def test_features_of_every_map(feature_map, dtype):
    X = training()[0].astype(dtype)
    feature_map.fit(training()[0])
    expected = feature_map.transform(X.astype(np.float64))
    found = answers(feature_map, X)
    assert found.dtype == dtype
    tolerance = {np.float32: 1e-4, np.float64: 1e-12}[dtype] * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pipeline_whose_steps_skl2onnx_converts(dtype):
    X, y, qid = training()
    X, before = X.astype(dtype), []
    if dtype == np.float32:  # onnxruntime has no imputer of float64
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        before = [SimpleImputer()]
    for model in (
        make_pipeline(
            *before,
            VarianceThreshold(1e-3),
            PolynomialFeatures(2, include_bias=False),
            StandardScaler(),
            RankRLS(inputs="maxabs"),
        ),
        make_pipeline(*before, StandardScaler(), MAPS[2], RankRLS(kernel="rbf", inputs="standard")),
    ):
        model.fit(X, y, rankrls__qid=qid)
        own = model.predict(X.astype(np.float64))
        found = answers(model, X)
        tolerance = {np.float32: 1e-4, np.float64: 1e-10}[dtype] * np.ptp(own)
        np.testing.assert_allclose(found[:, 0], own, rtol=0, atol=tolerance)


def test_columns_of_text_and_of_numbers_in_a_frame():
    import onnxruntime
    import pandas as pd

    X, y, qid = training()
    X = X.astype(np.float32)
    frame = pd.DataFrame(
        {"price": X[:, 1], "age": X[:, 2], "shop": np.where(X[:, 4] > 0, "a", "b")}
    )
    before = ColumnTransformer(
        [("one", OneHotEncoder(), ["shop"]), ("rest", StandardScaler(), ["price", "age"])]
    )
    model = make_pipeline(before, RankRLS()).fit(frame, y, rankrls__qid=qid)
    file = skl2onnx.to_onnx(model, frame[:1]).SerializeToString()
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    given = {name: frame[[name]].to_numpy() for name in frame}
    own = model.predict(frame)
    (found,) = session.run(None, given)
    np.testing.assert_allclose(found[:, 0], own, rtol=0, atol=1e-4 * np.ptp(own))


def test_several_inputs_and_inputs_of_integers():
    import onnxruntime
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType

    X, y, qid = training()
    X = np.round(X)
    model = RankRLS().fit(X, y, qid=qid)
    types = [("a", FloatTensorType([None, 2])), ("b", Int64TensorType([None, 4]))]
    file = skl2onnx.to_onnx(model, initial_types=types).SerializeToString()
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    given = {"a": X[:, :2].astype(np.float32), "b": X[:, 2:].astype(np.int64)}
    own = model.predict(X)
    (found,) = session.run(None, given)
    np.testing.assert_allclose(found[:, 0], own, rtol=0, atol=1e-5 * np.ptp(own))


def test_what_is_refused():
    from skl2onnx.common.data_types import StringTensorType

    X, y, qid = training()
    model = RankRLS().fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="RankRLS was fitted to 6 columns, and the inputs have 5"):
        skl2onnx.to_onnx(model, X[:1, :5])
    with pytest.raises(ValueError, match="target_opset must be at least 13, got 12"):
        skl2onnx.to_onnx(model, X[:1], target_opset=12)
    with pytest.raises(ValueError, match="RankRLS takes columns of numbers, and got text"):
        skl2onnx.to_onnx(model, initial_types=[("a", StringTensorType([None, 6]))])
    with pytest.raises(ValueError, match="Python callable"):
        skl2onnx.to_onnx(Nystroem(lambda X, Z: X @ Z.T).fit(X), X[:1])
    large = RankRLS(feature_map=pairgram.RandomNodes(3, random_state=0)).fit(X, y, qid=qid)
    large.coef_ = large.coef_ * 1e300
    with pytest.raises(ValueError, match="which float32 does not hold"):
        skl2onnx.to_onnx(large, X[:1].astype(np.float32))


def test_all_rankers_and_maps_are_registered():
    from skl2onnx._supported_operators import sklearn_operator_name_map

    found = {one.__name__ for one in sklearn_operator_name_map if "pairgram" in one.__module__}
    assert found >= {
        "RankRLS",
        "RankRLSCV",
        "RankSVM",
        "AutoRanker",
        "ELMRank",
        "Cross",
        "Nystroem",
    }
    rankers = {name for name in pairgram.__all__ if hasattr(getattr(pairgram, name), "row_scorer")}
    assert found >= rankers
