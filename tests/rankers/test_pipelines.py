"""Pipelines of scikit-learn's transformers and a ranker come back from files without code."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
import skops.io
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

import pairgram as pg
from fuzz.forge import Tensor, pack, parse
from fuzz.mutated_files import _forge
from parts.cli import invoke

X, Y, QID = pg.make_ranking(12, 6, 4, random_state=0)
X[:, 2] = np.round(3 * X[:, 2])  # as a category, too
COLOURS = np.array(["red", "green", "blue"])


def frame(kind=pd.DataFrame, rows=X):
    columns = {"price": rows[:, 0], "age": rows[:, 1], "size": rows[:, 2].astype(int)}
    colour = np.resize(COLOURS, len(rows)).tolist()
    return kind({**columns, "colour": colour, "sold": rows[:, 3] > rows[:, 3].mean()})


def fitted(*steps, rows=X, ranker=None):
    return make_pipeline(*steps, ranker or pg.RankRLS(0.5)).fit(rows, Y)


def parameters_of(pipeline):
    """Everything that tells two transformers apart, but for columns that a fit has resolved."""
    return {
        key: repr(value)
        for key, value in pipeline.get_params().items()
        if not key.endswith("transformers") and "steps" not in key
    }


def attributes_of(pipeline):
    """The public fitted attributes of all transformers within, by their place."""
    found = {}

    def visit(name, part):
        if isinstance(part, str):
            return
        for key, value in vars(part).items():
            if key in ("steps", "transformers_"):
                for inner in value:
                    visit(f"{name}/{inner[0]}", inner[1])
            elif key.endswith("_") and not key.startswith("_"):
                dtype = value.dtype if getattr(value, "ndim", 0) else None
                found[f"{name}.{key}"] = (repr(value).replace("np.int64", ""), str(dtype))
                if key == "n_samples_seen_":
                    found[f"{name}.{key}"] = np.asarray(value, float).tolist()

    visit("", Pipeline(pipeline.steps[:-1] or [("none", "passthrough")]))
    return found


def comes_back(pipeline, rows, path):
    pg.save_model(pipeline, path)
    loaded = pg.load_model(path)
    expected, found = pipeline.predict(rows), loaded.predict(rows)
    assert expected.dtype == found.dtype and expected.tobytes() == found.tobytes()
    assert attributes_of(loaded) == attributes_of(pipeline)
    again = path.with_name("again")
    pg.save_model(loaded, again)
    first, second = parse(path.read_bytes()), parse(again.read_bytes())
    for contents in (first, second):  # whose objects skops numbers
        del contents.tensors["transformers"]
    assert (first.settings, first.tensors) == (second.settings, second.tensors)
    return loaded


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False, copy=False),
    MinMaxScaler(),
    MinMaxScaler((-1, 2.5), clip=True),
    MaxAbsScaler(),
    *[MaxAbsScaler(clip=True) for name in MaxAbsScaler().get_params() if name == "clip"],
    RobustScaler(),
    RobustScaler(with_centering=False, quantile_range=(10, 80.0), unit_variance=True),
    RobustScaler(with_scaling=False),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scalers_come_back(scaler, dtype, tmp_path):
    rows = X.astype(dtype)
    loaded = comes_back(fitted(scaler, rows=rows), rows[::-1], tmp_path / "file")
    assert parameters_of(loaded) == parameters_of(fitted(scaler))
    refitted = clone(loaded).fit(rows, Y).predict(rows)
    np.testing.assert_array_equal(refitted, loaded.predict(rows))


@pytest.mark.parametrize("scaler", [StandardScaler(with_mean=False), MaxAbsScaler()], ids=repr)
def test_scalers_of_sparse_rows_come_back(scaler, tmp_path):
    rows = sp.csr_array(np.where(X > 0.5, X, 0))
    comes_back(fitted(scaler, rows=rows), rows, tmp_path / "file")


def test_a_scaler_goes_on_where_it_was(tmp_path):
    scaler = StandardScaler().fit(np.where(X > 2, np.nan, X))  # counts differ by column
    pg.save_model(Pipeline([("s", scaler), ("r", pg.RankRLS().fit(X, Y))]), tmp_path / "file")
    loaded = pg.load_model(tmp_path / "file")[0]
    np.testing.assert_array_equal(loaded.partial_fit(X).var_, scaler.partial_fit(X).var_)
    np.testing.assert_array_equal(loaded.n_samples_seen_, scaler.n_samples_seen_)


ENCODERS = [
    OneHotEncoder(),
    OneHotEncoder(sparse_output=False, dtype=np.float32),
    OneHotEncoder(drop="first", dtype=int),
    OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    OneHotEncoder(drop=[1, "red", True]),
    OneHotEncoder(categories=[[0, 1, 2, 3], ["red", "green", "blue", "black"], [False, True]]),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_encoders_come_back(encoder, kind, tmp_path):
    rows = frame(kind)[["size", "colour", "sold"]]
    pipeline = fitted(encoder, rows=rows)
    loaded = comes_back(pipeline, rows, tmp_path / "file")
    np.testing.assert_array_equal(
        loaded[:-1].get_feature_names_out(), pipeline[:-1].get_feature_names_out()
    )
    np.testing.assert_array_equal(clone(loaded).fit(rows, Y).predict(rows), loaded.predict(rows))
    other = rows.with_columns(colour=pl.lit("new")) if kind is pl.DataFrame else None
    if other is not None and encoder.handle_unknown == "error":
        with pytest.raises(ValueError, match="Found unknown categories"):
            loaded.predict(other)


COLUMNS = {
    "integers": np.arange(72).reshape(-1, 1) % 5,
    "float32 and nan": np.where(X[:, [2]] > 1, np.nan, X[:, [2]]).astype(np.float32),
    "text of NumPy": np.resize(["a", "bcd", "é\n"], (72, 1)),
    "text and None": np.resize(np.array(["a", None, "b"], object), (72, 1)),
    "text and nan": np.resize(np.array(["a", np.nan, "b"], object), (72, 1)),
    "numbers as objects": np.resize(np.array([2.5, 1, True, None, np.nan], object), (72, 1)),
    "unsigned": np.resize(np.array([0, 2**64 - 1], np.uint64), (72, 1)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_categories_of_every_type_come_back(name, tmp_path):
    pipeline = fitted(OneHotEncoder(), rows=COLUMNS[name])
    loaded = comes_back(pipeline, COLUMNS[name], tmp_path / "file")
    assert loaded[0].categories_[0].dtype == pipeline[0].categories_[0].dtype


def column_transformers():
    scaler, encoder = StandardScaler(), OneHotEncoder(handle_unknown="ignore")
    inner = make_pipeline(MinMaxScaler(), "passthrough", RobustScaler())
    yield "names", ColumnTransformer([("n", scaler, ["age", "price"]), ("c", encoder, ["colour"])])
    yield "places", ColumnTransformer([("n", scaler, [-4, 0]), ("c", encoder, [3])])
    yield (
        "slices",
        ColumnTransformer(
            [("n", scaler, slice("price", "age")), ("m", MaxAbsScaler(), slice(2, 3))]
        ),
    )
    yield "masks", ColumnTransformer([("n", scaler, [True, False, True, False, False])])
    yield (
        "functions",
        ColumnTransformer([("n", scaler, ["age"]), ("c", encoder, make_column_selector("colour"))]),
    )
    yield (
        "words",
        ColumnTransformer(
            [("d", "drop", "colour"), ("p", "passthrough", ["size"]), ("e", scaler, [])],
            remainder="passthrough",
        ),
    )
    yield (
        "settings",
        ColumnTransformer(
            [("c", encoder, ["colour", "size"]), ("n", inner, ["age"])],
            remainder=MinMaxScaler(),
            sparse_threshold=1.0,
            transformer_weights={"c": 0.5, "n": 3},
            verbose_feature_names_out=False,
            n_jobs=1,
        ),
    )
    nested = ColumnTransformer([("x", scaler, ["age"])], remainder="passthrough")
    yield "nested", ColumnTransformer([("n", nested, ["size", "age"])], remainder="drop")
    yield (
        "no remainder",
        ColumnTransformer(
            [("n", scaler, ["price", "age", "size", "sold"]), ("c", encoder, ["colour"])],
            remainder=MinMaxScaler(),
        ),
    )


@pytest.mark.parametrize(
    ("name", "columns"), list(column_transformers()), ids=lambda x: str(x)[:12]
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_column_transformers_come_back(name, columns, kind, tmp_path):
    if name == "functions" and kind is pl.DataFrame:
        pytest.skip("scikit-learn selects columns of pandas alone")
    rows = frame(kind)
    pipeline = fitted(columns, rows=rows)
    loaded = comes_back(pipeline, rows, tmp_path / "file")
    names = loaded[:-1].get_feature_names_out()
    np.testing.assert_array_equal(names, pipeline[:-1].get_feature_names_out())
    np.testing.assert_array_equal(clone(loaded).fit(rows, Y).predict(rows), loaded.predict(rows))
    assert type(loaded.transform_input) is type(pipeline.transform_input)
    assert repr(loaded[0]._repr_html_()) is not None
    if name in ("names", "settings"):
        assert parameters_of(loaded) == parameters_of(pipeline)
        shuffled = rows[["colour", "sold", "age", "size", "price"]]
        np.testing.assert_array_equal(loaded.predict(shuffled), pipeline.predict(shuffled))
        with pytest.raises(ValueError, match=r"columns are missing: {'age'}"):
            loaded.predict(rows[["price", "size", "colour", "sold"]])


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_the_kind_of_output_comes_back(output, tmp_path):
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(sparse_output=False), ["colour"])],
        remainder="passthrough",
    )
    kind = pl.DataFrame if output == "polars" else pd.DataFrame
    pipeline = make_pipeline(columns, MaxAbsScaler(), pg.RankRLS()).set_output(transform=output)
    pipeline.fit(frame(kind), Y)
    loaded = comes_back(pipeline, frame(kind), tmp_path / "file")
    assert type(loaded[:-1].transform(frame(kind))) is type(pipeline[:-1].transform(frame(kind)))
    assert hasattr(loaded[-1], "feature_names_in_") == (output != "default")


def test_rankers_of_every_kind_end_a_pipeline(tmp_path):
    prior = FrozenEstimator(pg.RankRLS(feature_map=pg.RandomNodes(3, random_state=0)).fit(X, Y))
    for ranker in (
        pg.RankRLSCV(pairs=["with_ties", "without_ties"], cv=2),
        pg.RankSVM(feature_map=pg.RandomNodes(5, random_state=0)),
        pg.RankRLS(feature_map=make_pipeline(pg.MinMax(), pg.Kernel("rbf"))),
        pg.RankRLS(prior=prior),
        pg.AutoRanker(time_budget=0.01),
    ):
        comes_back(fitted(StandardScaler(), ranker=ranker), X, tmp_path / "file")
    comes_back(fitted(), X, tmp_path / "file")
    comes_back(fitted("passthrough"), X, tmp_path / "file")
    ranker = pg.RankRLS(2.0).fit(X, Y)
    pg.save_model(ranker, tmp_path / "file")
    ranker.save(tmp_path / "own")
    assert parse((tmp_path / "file").read_bytes()) == parse((tmp_path / "own").read_bytes())


def test_queries_weights_and_offsets_reach_a_loaded_pipeline(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        columns = ColumnTransformer([("scaled", scaler, [0, 1])])
        pipeline = make_pipeline(columns, pg.RankRLS())
        options = {"qid": QID, "sample_weight": np.linspace(1, 2, len(Y)), "offset": X[:, 0]}
        pipeline.fit(X, Y, **options)
        pg.save_model(pipeline, tmp_path / "file")
        loaded = pg.load_model(tmp_path / "file")
        expected = pipeline.predict(X)
        np.testing.assert_array_equal(loaded.predict(X), expected)
        again = clone(loaded).fit(X, Y, **options)
        np.testing.assert_array_equal(again.predict(X), expected)
        assert loaded.score(X, Y, qid=QID) == pipeline.score(X, Y, qid=QID)


# Refusals


@pytest.mark.filterwarnings("ignore::pairgram.MissingQueryWarning")
def test_searches_are_refused(tmp_path):
    search = GridSearchCV(Pipeline([("r", pg.RankRLS())]), {"r__alpha": [1.0]}, cv=2).fit(X, Y)
    with pytest.raises(TypeError, match=r"a ranker or a Pipeline .* give its best_estimator"):
        pg.save_model(search, tmp_path / "file")
    assert not (tmp_path / "file").exists()


# Forged contents


def scaled():
    return fitted(StandardScaler(), MinMaxScaler())


def by_columns():
    return fitted(
        ColumnTransformer(
            [("n", StandardScaler(), ["age", "price"]), ("c", OneHotEncoder(), ["colour"])],
            remainder="passthrough",
        ),
        rows=frame(),
    )


def bytes_are(array):
    return lambda c: c.tensors.update(transformers=Tensor.of(array))


def bytes_of(part):
    """Put what skops writes of a part in the place of the transformers."""
    return bytes_are(np.frombuffer(skops.io.dumps(part), np.uint8))


FORGED = [
    (lambda c: c.settings.update(name=3), "name must be text"),
    (lambda c: c.settings.update(model=None), "model"),
    (lambda c: c.settings["model"].update(kind="Pipeline"), "model.kind must be"),
    (lambda c: c.settings.update(feature_map={}), "feature_map must be None"),
    (lambda c: c.settings.pop("scikit-learn"), "scikit-learn is missing"),
    (lambda c: c.settings.update(transformers=3), "'transformers' is no setting"),
    (lambda c: c.tensors.pop("transformers"), "transformers is missing"),
    (lambda c: c.tensors.update(more=c.tensors["transformers"]), "'more' is no array"),
    (bytes_are(np.zeros(3)), "transformers must be of uint8"),
    (bytes_are(np.zeros(3, np.uint8)), "transformers cannot be made: BadZipFile"),
    (bytes_of(StandardScaler()), "cannot be made: TypeError: want a Pipeline, got StandardScaler"),
    (bytes_of(Pipeline(3)), "cannot be made: AttributeError"),
    (bytes_of(FunctionTransformer(os.system)), r"Untrusted types .*\['posix.system'\]"),
]


@pytest.mark.parametrize(("change", "message"), FORGED)
def test_forged_pipelines_are_refused(change, message, tmp_path):
    path = tmp_path / "file"
    pg.save_model(scaled(), path)
    contents = parse(path.read_bytes())
    path.write_bytes(pack(contents))
    pg.load_model(path)  # the forger's file is sound but for the change
    change(contents)
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message) as caught:
        pg.load_model(path)
    assert str(caught.value).startswith(f"{path}: ") and len(str(caught.value)) < 600


FRAMES = {scaled: X, by_columns: frame()}


@pytest.mark.parametrize("make", FRAMES)
def test_what_is_loaded_can_be_used_whatever_a_file_says(make, tmp_path):
    path, outcomes = tmp_path / "file", set()
    pg.save_model(make(), path)
    whole = path.read_bytes()
    for number in range(60):
        rng = np.random.default_rng(number)
        contents = parse(whole)
        _forge(rng, contents, parse(whole))
        path.write_bytes(pack(contents))
        try:
            loaded = pg.load_model(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: ")
            outcomes.add("refused")
            continue
        outcomes.add("loaded")
        try:
            loaded.predict(FRAMES[make])
        except ValueError:  # other columns, or values that are too large
            outcomes.add("refuses to predict")
    assert {"refused", "loaded"} <= outcomes


def test_other_versions_are_told(tmp_path, monkeypatch):
    path = tmp_path / "file"
    with monkeypatch.context() as patch:
        patch.setattr("sklearn.base.__version__", "1.0")
        pg.save_model(fitted(MaxAbsScaler()), path)
    with pytest.warns(InconsistentVersionWarning, match=r"from version 1\.0 when using version"):
        pg.load_model(path)


def test_skops_is_named_if_it_is_missing(tmp_path, monkeypatch):
    path = tmp_path / "file"
    pg.save_model(scaled(), path)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for call in (lambda: pg.save_model(scaled(), path), lambda: pg.load_model(path)):
        with pytest.raises(ImportError, match=r"pip install 'pairgram\[skops\]'"):
            call()


# The command line


def run(*arguments):
    return invoke(*arguments)


def test_the_command_line_predicts_and_inspects(tmp_path):
    path, rows = tmp_path / "file", tmp_path / "rows"
    columns = ColumnTransformer([("n", StandardScaler(), [0, 1])], remainder="passthrough")
    pipeline = Pipeline([("p", "passthrough"), ("c", columns), ("r", pg.RankRLS())]).fit(X, Y)
    pg.save_model(pipeline, path)
    pg.dump_letor(rows, X, Y, qid=QID)
    found = run("predict", path, rows)
    assert found.exit_code == 0, found.output
    np.testing.assert_array_equal(np.array(found.stdout.split(), float), pipeline.predict(X))
    shown = json.loads(run("inspect", path, "--json").stdout)
    inside = " ".join(str(columns).split())
    assert shown["kind"] == "Pipeline" and shown["n_features"] == 4
    assert shown["steps"] == f"p: passthrough, c: {inside}, r: RankRLS()"
    assert {row["name"] for row in shown["largest_weights"]} == {
        *("n__x0", "n__x1", "remainder__x2", "remainder__x3")
    }
    assert "r: RankRLS" in run("inspect", path).stdout.replace("\n", " ")
    pg.save_model(by_columns(), path)
    found = run("predict", path, rows)
    assert found.exit_code != 0 and "Traceback" not in found.output
    assert f"{path}" in found.output.replace("\n", "")


def test_reading_a_pipeline_needs_no_frames(tmp_path):
    pg.save_model(by_columns(), tmp_path / "file")
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('pandas', 'polars'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        f"import pairgram; print(pairgram.load_model({str(tmp_path / 'file')!r})[0].n_features_in_)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["5"]
