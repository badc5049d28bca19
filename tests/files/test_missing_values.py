"""What takes the place of missing values is part of a model and of its file."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from pairgram import (
    Fill,
    Quantile,
    RankRLS,
    RankRLSCV,
    RankSVM,
    load_model,
    make_ranking,
    save_model,
)
from parts.files import read_file, write_file
from row_value import fill_of
from table_sources import scanned


@pytest.fixture(scope="module")
def data():
    """Rows with missing values, the rows with the means in their places, labels and ids."""
    X, y, qid = make_ranking(20, 10, 5, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X, np.where(np.isnan(X), np.nanmean(X, axis=0), X), y, qid


def table_of(X, y, qid):
    return scanned((X, y, qid))


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(feature_map=Fill()),
        RankRLSCV([1.0, 10.0], feature_map=Fill()),
        RankSVM(feature_map=Fill()),
        RankRLS(feature_map=make_pipeline(Fill(), Quantile(raw=True))),
    ],
)
def test_files_hold_the_means(data, tmp_path, model):
    X, filled, y, qid = data
    model.fit(table_of(X, y, qid))
    np.testing.assert_allclose(fill_of(model), np.nanmean(X, axis=0), rtol=1e-13)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(fill_of(loaded), fill_of(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(loaded.predict(X), model.predict(filled), rtol=1e-12)
    np.testing.assert_array_equal(loaded.predict(table_of(X, y, qid)), model.predict(X))
    assert np.isfinite(loaded.predict(X.astype(np.float32))).all()


def test_rows_of_csr_are_as_they_are(data, tmp_path):
    X, filled, y, qid = data
    model = RankRLS(feature_map=Fill()).fit(table_of(X, y, qid))
    np.testing.assert_allclose(model.predict(sp.csr_array(filled)), model.predict(filled))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(sp.csr_array(X))


def test_a_fit_to_arrays_forgets_the_means(data):
    X, filled, y, qid = data
    model = RankRLS(feature_map=Fill()).fit(table_of(X, y, qid))
    model.set_params(feature_map=None).fit(filled, y, qid=qid)
    assert fill_of(model) is None
    with pytest.raises(ValueError, match="NaN"):
        model.predict(X)


def test_the_file_of_a_pipeline_holds_the_means(data, tmp_path):
    X, _, y, qid = data
    scaler = MaxAbsScaler().fit(X)
    model = RankRLS(feature_map=Fill()).fit(table_of(scaler.transform(X), y, qid))
    pipeline = Pipeline([("scale", scaler), ("rank", model)])
    save_model(pipeline, tmp_path / "pipeline")
    loaded = load_model(tmp_path / "pipeline")
    np.testing.assert_array_equal(fill_of(loaded[-1]), fill_of(model))
    np.testing.assert_array_equal(loaded.predict(X), pipeline.predict(X))


def test_a_prior_gets_rows_without_missing_values(data, tmp_path):
    X, filled, y, qid = data
    prior = FrozenEstimator(RankSVM(feature_map="standard").fit(filled, y, qid=qid))
    model = RankRLS(prior=prior, feature_map=Fill()).fit(table_of(X, y, qid))
    assert model.prior_ is not None
    model.save(tmp_path / "model")
    for one in (model, load_model(tmp_path / "model")):
        np.testing.assert_allclose(one.predict(X), one.predict(filled), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fill_values": np.zeros(4)}, "fill_values is of 4 features, but there are 5"),
        (
            {"fill_values": np.zeros((5, 1))},
            r"fill_values must have shape \(filled\), got \(5, 1\)",
        ),
        ({"fill_values": np.zeros(5, np.float32)}, "fill_values must be of float64, got float32"),
        ({"fill_values": np.full(5, np.nan)}, "fill_values must be finite"),
    ],
)
def test_other_values_are_refused(data, tmp_path, change, message):
    X, _, y, qid = data
    RankRLS(feature_map=Fill()).fit(table_of(X, y, qid)).save(tmp_path / "model")
    kind, arrays, settings = read_file(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        write_file(tmp_path / "other", kind, {**arrays, **change}, settings)
