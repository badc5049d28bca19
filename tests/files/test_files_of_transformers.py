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
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    TargetEncoder,
)

from fuzz.forge import Tensor, pack, parse
from fuzz.mutated_files import _forge
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
    again = path.with_name("again")
    save_model(loaded, again)
    first, second = parse(path.read_bytes()), parse(again.read_bytes())
    assert repr(first.settings) == repr(second.settings)
    assert first.tensors == second.tensors
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


def bins():
    step = make_pipeline(SimpleImputer(add_indicator=True), KBinsDiscretizer(3, strategy="uniform"))
    return make_pipeline(columns((step, ["price", "rating"])), RankRLS()).fit(ROWS, targets(ROWS))


def rare():
    return fitted("OneHotEncoder, rare", ROWS)


def means():
    return fitted("TargetEncoder", ROWS)


def powers():
    return fitted("PolynomialFeatures", ROWS)


def logs():
    step = columns((FunctionTransformer(np.log1p), ["stock"]))
    return make_pipeline(step, RankRLS()).fit(ROWS, targets(ROWS))


def record(contents, *places):
    found = contents.settings["transformers"]["settings"]["steps"][0]["transformer"]
    found = found["settings"]["transformers"][0]["transformer"]
    for place in places:
        found = found["settings"]["steps"][place]["transformer"]
    return found


def update(key, *places, **values):
    return lambda contents: record(contents, *places)[key].update(values)


def array(name, make):
    def change(contents):
        contents.tensors[name] = Tensor.of(make(contents.tensors[name].array))

    return change


FORGED = [
    (bins, update("fitted", 0, indicator_=[0, 9]), "indicator_ must be numbers of columns"),
    (
        bins,
        update("fitted", 0, indicator_=[1, 0]),
        "indicator_ must be None or a list of ascending",
    ),
    (bins, update("fitted", 0, indicator_=None), "indicator_ must be there if add_indicator is"),
    (bins, update("fitted", 0, rows="text"), "rows must be one of 'object',"),
    (
        bins,
        update("fitted", 0, statistics_={"dtype": "float64", "values": [1.0]}),
        "statistics_ must have a value for each",
    ),
    (
        bins,
        update("fitted", 0, statistics_={"dtype": "float64", "values": [1.0, "a"]}),
        "statistics_.values must be of float64",
    ),
    (
        bins,
        update("fitted", 0, statistics_={"dtype": "object", "values": [1.0, "a"]}),
        "rows must be 'object', because statistics_ has text",
    ),
    (bins, update("settings", 0, strategy="nearest"), "strategy must be one of 'mean',"),
    (bins, update("fitted", 1, n_edges=[4, 1, 4, 4]), "n_edges must be 0 or at least 2"),
    (bins, update("fitted", 1, n_edges=[4] * 3), "n_edges must have 4 entries"),
    (bins, update("fitted", 1, n_edges=[4, 9, 0, 0]), "bin_edges_ must have 13"),
    (bins, update("settings", 1, n_bins=1), "n_bins must be an integer >= 2, or a list"),
    (rare, update("fitted", infrequent=[[99], None]), "infrequent.0 must be None or numbers of"),
    (rare, update("fitted", infrequent=[[], None]), "infrequent.0 must be None or numbers of"),
    (rare, update("fitted", infrequent=[None]), "infrequent must have 2 entries"),
    (rare, update("settings", min_frequency=None), "infrequent must be there if min_frequency"),
    (rare, update("settings", min_frequency=1.5), "min_frequency must be None, an integer >= 1"),
    (rare, update("settings", drop=["once", "red"]), "drop must be no rare categories"),
    (rare, update("fitted", infrequent=[None, None]), "the model is of .* features, but the"),
    (means, update("fitted", target_type_="binary"), "classes_: binary"),
    (means, array("transformers.0.0.encodings_", lambda a: a[1:]), "must have 1 values for every"),
    (means, update("settings", cv=1), "cv must be an integer >= 2"),
    (powers, update("settings", 1, degree=21), "degree must be an integer from 0 to 20, or two"),
    (powers, update("settings", 1, degree=[2, 1]), r"degree must make a column, got \[2, 1\]"),
    (powers, update("settings", 1, degree=3), "the model is of 6 features, but the transformers"),
    (logs, update("settings", func="system"), "func must be one of 'log1p', 'log', 'sqrt', or"),
    (logs, update("fitted", feature_names_in_=["a", "b"]), "feature_names_in_ must have a name"),
]


@pytest.mark.parametrize(("make", "change", "message"), FORGED)
def test_forged_transformers_are_refused(make, change, message, tmp_path):
    path = tmp_path / "file"
    save_model(make(), path)
    contents = parse(path.read_bytes())
    change(contents)
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("make", [bins, rare, means, powers, logs])
def test_what_is_loaded_can_be_used_whatever_a_file_says(make, tmp_path):
    path, outcomes = tmp_path / "file", set()
    save_model(make(), path)
    whole = path.read_bytes()
    for number in range(60):
        contents = parse(whole)
        _forge(np.random.default_rng(number), contents, parse(whole))
        path.write_bytes(pack(contents))
        try:
            loaded = load_model(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: ")
            outcomes.add("refused")
            continue
        outcomes.add("loaded")
        outcome(loaded, ROWS)
        save_model(loaded, path)
        load_model(path)
    assert {"refused", "loaded"} <= outcomes


@pytest.mark.skipif(
    pd.__version__ < "3", reason='this pandas has "nan" in text for what is missing'
)
def test_pandas_missing_text_is_nan(tmp_path):
    rows = ROWS.assign(colour=pd.array(ROWS["colour"], dtype="str"))
    model = make_pipeline(TRANSFORMERS["shop"](), RankRLS()).fit(rows, targets(ROWS))
    loaded = comes_back(model, tmp_path / "file", rows, OTHERS)
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(rows))
