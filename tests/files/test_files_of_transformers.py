"""Transformers of gaps, categories, bins and functions come back from files without code."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    TargetEncoder,
)

from pairgram import RankRLS, load_model, save_model
from shop import TRANSFORMERS, columns, fitted, frame, others, targets

ROWS, OTHERS = frame(), others()


def outcome(pipeline, rows):
    """Return the bytes of the scores of rows, or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pipeline.predict(rows).tobytes()
        except ValueError as error:
            return str(error)


def comes_back(pipeline, path, *frames):
    save_model(pipeline, path)
    loaded = load_model(path)
    for rows in frames:
        assert outcome(loaded, rows) == outcome(pipeline, rows)
    return loaded


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_they_come_back(name, tmp_path):
    pipeline = fitted(name, ROWS)
    assert len(set(pipeline.predict(ROWS))) > 3
    loaded = comes_back(pipeline, tmp_path / "file", ROWS, OTHERS, OTHERS[::-1])
    if "FunctionTransformer, sqrt" not in name:  # which has no names
        names = pipeline[:-1].get_feature_names_out()
        assert list(loaded[:-1].get_feature_names_out()) == list(names)
    if "TargetEncoder" not in name:  # which draws folds
        again = clone(loaded).fit(ROWS, targets(ROWS))
        assert outcome(again, OTHERS) == outcome(pipeline, OTHERS)


@pytest.mark.parametrize("name", ["OneHotEncoder, text", "OrdinalEncoder, rare", "TargetEncoder"])
def test_frames_of_every_kind(name, tmp_path):
    known = ROWS.fillna({"colour": "red"})
    for kind in (lambda rows: rows.convert_dtypes(), pl.from_pandas, lambda rows: rows):
        rows = kind(known)
        model = make_pipeline(TRANSFORMERS[name](), RankRLS()).fit(rows, targets(known))
        comes_back(model, tmp_path / "file", rows, kind(OTHERS.fillna({"colour": "red"})))


def test_none_is_no_nan(tmp_path):
    found = [None if colour != colour else colour for colour in ROWS["colour"]]
    rows = ROWS.assign(colour=pd.Series(found, dtype=object))
    filled = SimpleImputer(missing_values=None, strategy="most_frequent", add_indicator=True)
    for step in (
        columns((OneHotEncoder(), ["colour"])),
        columns((OrdinalEncoder(), ["colour"])),
        columns((make_pipeline(filled, OneHotEncoder()), ["colour"])),
    ):
        comes_back(make_pipeline(step, RankRLS()).fit(rows, targets(ROWS)), tmp_path / "file", rows)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, object])
def test_rows_of_every_dtype(dtype, tmp_path):
    X = ROWS[["stock"]].to_numpy().astype(dtype)
    X = np.hstack([X, X + 1])
    y = targets(ROWS)
    for step in (
        SimpleImputer(missing_values=2, strategy="most_frequent", add_indicator=True),
        SimpleImputer(missing_values=1, strategy="constant", fill_value=7),
        OrdinalEncoder(max_categories=3),
        KBinsDiscretizer(3, encode="ordinal"),
        PolynomialFeatures((1, 3), order="F"),
    ):
        comes_back(make_pipeline(step, RankRLS()).fit(X, y), tmp_path / "file", X, X[::-1])


def test_columns_without_values_and_without_differences(tmp_path):
    X = np.column_stack([ROWS["stock"], np.full(300, np.nan), np.full(300, 5.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in (
            SimpleImputer(),
            SimpleImputer(keep_empty_features=True),
            make_pipeline(SimpleImputer(), KBinsDiscretizer(3)),
        ):
            model = make_pipeline(step, RankRLS()).fit(X, targets(ROWS))
            comes_back(model, tmp_path / "file", X)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_targets_of_classes(kind, tmp_path):
    y = targets(ROWS)
    y = (y > 1) * 1.0 + (y > 4) * (kind == "multiclass")
    step = columns((TargetEncoder(target_type=kind), ["brand", "colour"]))
    model = make_pipeline(step, RankRLS()).fit(ROWS, y)
    comes_back(model, tmp_path / "file", ROWS, OTHERS)


@pytest.mark.skipif(
    pd.__version__ < "3", reason='this pandas has "nan" in text for what is missing'
)
def test_pandas_missing_text_is_nan(tmp_path):
    rows = ROWS.assign(colour=pd.array(ROWS["colour"], dtype="str"))
    model = make_pipeline(TRANSFORMERS["shop"](), RankRLS()).fit(rows, targets(ROWS))
    loaded = comes_back(model, tmp_path / "file", rows, OTHERS)
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(rows))
