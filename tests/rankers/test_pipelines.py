"""Pipelines of scikit-learn's transformers and a ranker come back from files without code."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from typer.testing import CliRunner

import pairgram as pg
from fuzz.forge import Tensor, instead, pack, parse
from fuzz.mutated_files import _forge
from parts.cli import app
from parts.files import TRANSFORMERS

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
        ColumnTransformer([("n", scaler, ["age"]), ("c", encoder, lambda rows: ["colour"])]),
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
        pg.RankRLS(kernel="rbf", inputs="minmax"),
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
        pipeline = make_pipeline(scaler, pg.RankRLS())
        options = {"qid": QID, "sample_weight": np.linspace(1, 2, len(Y)), "offset": X[:, 0]}
        pipeline.fit(X, Y, **options)
        pg.save_model(pipeline, tmp_path / "file")
        loaded = pg.load_model(tmp_path / "file")
        expected = pipeline.predict(X, offset=Y)
        np.testing.assert_array_equal(loaded.predict(X, offset=Y), expected)
        again = clone(loaded).fit(X, Y, **options)
        np.testing.assert_array_equal(again.predict(X, offset=Y), expected)
        assert loaded.score(X, Y, qid=QID, offset=Y) == pipeline.score(X, Y, qid=QID, offset=Y)


def test_the_tables_know_every_parameter():
    only_default = {"memory", "feature_name_combiner"}
    only_default |= {"force_int_remainder_cols", "kw_args", "inv_kw_args"}
    for kind in TRANSFORMERS.values():
        known = {key.rstrip("?") for key in kind.settings}
        optional = {key.rstrip("?") for key in kind.settings if "?" in key}
        parameters = set(kind.made._get_param_names())
        assert parameters - only_default <= known <= parameters | optional


# Refusals


def with_note():
    pipeline = fitted(StandardScaler())
    pipeline[0].note_ = 1
    return pipeline


REFUSED = [
    (with_note, "step 'standardscaler' has the attribute note_, which a file cannot hold"),
    pytest.param(
        lambda: fitted(
            ColumnTransformer([("part", TargetEncoder(cv=KFold(3)), ["age"])]), rows=frame()
        ),
        r"within it 'part' cannot be saved with cv=KFold\(.*\): a file holds an integer >= 2",
        marks=pytest.mark.skipif(
            "cv_object" not in TargetEncoder._parameter_constraints["cv"],
            reason="this TargetEncoder takes numbers of folds alone",
        ),
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_a_file_cannot_hold_is_refused(make, message, tmp_path):
    pipeline = make()
    with pytest.raises(ValueError, match=message):
        pg.save_model(pipeline, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::pairgram.MissingQueryWarning")
def test_searches_are_refused(tmp_path):
    search = GridSearchCV(Pipeline([("r", pg.RankRLS())]), {"r__alpha": [1.0]}, cv=2).fit(X, Y)
    with pytest.raises(TypeError, match=r"a ranker or a Pipeline .* give its best_estimator"):
        pg.save_model(search, tmp_path / "file")
    assert not (tmp_path / "file").exists()


# Forged contents


def scaled():
    return fitted(StandardScaler(), MinMaxScaler())


def encoded():
    return fitted(OneHotEncoder(drop="first"), rows=frame()[["size", "colour", "sold"]])


def by_columns():
    return fitted(
        ColumnTransformer(
            [("n", StandardScaler(), ["age", "price"]), ("c", OneHotEncoder(), ["colour"])],
            remainder="passthrough",
        ),
        rows=frame(),
    )


def part(contents, *places):
    """Return the record of a transformer: of a step, or of a part of a step."""
    record = contents.settings["transformers"]
    for place in places:
        key = "steps" if record["kind"] == "Pipeline" else "transformers"
        record = record["settings"][key][place]["transformer"]
    return record


def update(key, *places, **values):
    return lambda c: part(c, *places)[key].update(values)


def put(*places, **values):
    return lambda c: part(c, *places).update(values)


def category(number, **values):
    return lambda c: part(c, 0)["fitted"]["categories_"][number].update(values)


def column(number, **values):
    return lambda c: part(c, 0)["settings"]["transformers"][number].update(values)


def deep(contents):
    for _ in range(40):
        old = contents.settings["transformers"]
        contents.settings["transformers"] = {
            "kind": "Pipeline",
            "settings": {**old["settings"], "steps": [{"name": "a", "transformer": old}]},
            "fitted": {},
        }


FORGED = [
    (scaled, lambda c: c.settings.update(transformers=3), "transformers must be a Pipeline"),
    (scaled, lambda c: c.settings.update(name=3), "name must be text"),
    (scaled, lambda c: c.settings.update(name="minmaxscaler"), "the name 'minmaxscaler' is there"),
    (scaled, lambda c: c.settings.update(model=None), "model"),
    (scaled, lambda c: c.settings["model"].update(kind="Pipeline"), "model.kind must be"),
    (scaled, lambda c: c.settings.update(feature_map={}), "feature_map must be None"),
    (scaled, lambda c: c.settings.pop("scikit-learn"), "scikit-learn is missing"),
    (scaled, deep, "nested more than 20 deep"),
    (
        scaled,
        put(0, kind="PowerTransformer"),
        "transformers.0.kind must be one of 'StandardScaler',",
    ),
    (scaled, put(0, more=1), "'transformers.0.more' is no setting"),
    (scaled, put(0, output="html"), "transformers.0.output must be one of 'default',"),
    (scaled, put(0, sample_weight="w"), "transformers.0.sample_weight must be None or True"),
    (scaled, put(0, fitted=None), "transformers.0.fitted must be there: True"),
    (scaled, put(fitted={"n_features_in_": 4}), "'transformers.fitted.n_features_in_' is no"),
    (scaled, update("settings", 0, with_mean=1), "transformers.0.with_mean must be True or False"),
    (scaled, update("settings", 1, feature_range=[1]), "transformers.1.feature_range must be two"),
    (scaled, update("settings", transform_input=[1]), "transformers.transform_input must be"),
    (scaled, update("fitted", 0, n_features_in_=2**62), "n_features_in_ is 4611"),
    (scaled, update("fitted", 0, feature_names_in_=["a"]), "transformers.0.fitted.feature_names_"),
    (scaled, instead("transformers.0.mean_", lambda a: a[:3]), "transformers.0: .*features is "),
    (
        scaled,
        instead("transformers.0.mean_", lambda a: a + np.nan),
        "transformers.0: mean_ must be f",
    ),
    (scaled, instead("transformers.0.mean_", lambda a: a.astype(int)), "mean_ must be of float16"),
    (
        scaled,
        instead("transformers.1.scale_", lambda a: 0 * a),
        "transformers.1.scale_ has values t",
    ),
    (scaled, instead("transformers.0.var_", lambda a: -a), "transformers.0.var_ has values too sm"),
    (
        scaled,
        instead("transformers.0.n_samples_seen_", lambda a: np.ones(3)),
        "transformers.0.fitted.n_features_in_ is 4, but there are arrays of length 3",
    ),
    (scaled, lambda c: c.tensors.pop("transformers.0.mean_"), "mean_ is missing, but with_mean is"),
    (scaled, lambda c: c.tensors.pop("transformers.1.min_"), "transformers.1: min_ is missing"),
    (
        scaled,
        lambda c: c.tensors.update({"transformers.7.min_": Tensor.of(np.ones(2))}),
        "'transformers.7.min_' is no array",
    ),
    (
        encoded,
        category(0, dtype="float"),
        "transformers.0.fitted.categories_.0.dtype must be one of 'obj",
    ),
    (encoded, category(0, values=[]), "categories_.0.values must be a list of text, numbers or N"),
    (encoded, category(0, values=[1, 0]), "categories_.0.values must ascend"),
    (encoded, category(0, values=[0, 2**70]), "categories_.0.values must be of int64"),
    (encoded, category(0, values=[0, "a"]), "categories_.0.values must be all text or all num"),
    (encoded, category(1, values=["a", "a"]), "categories_.1.values has one value twice"),
    (encoded, category(1, values=[np.nan, "a"]), "categories_.1.values must be finite, and NaN th"),
    (encoded, category(1, dtype="str", values=["a", None]), "categories_.1.values must be text"),
    (encoded, category(1, dtype="bool"), "categories_.1.values must be of bool"),
    (encoded, category(1, values=["a"]), "the model is of .* features, but the transformers make"),
    (encoded, update("settings", 0, drop=[0]), "transformers.0.drop must have 3 values"),
    (encoded, update("settings", 0, drop=[0, "no", True]), "0.drop must be categories, got 'no'"),
    (encoded, update("settings", 0, dtype="object"), "transformers.0.dtype must be one of 'bool',"),
    (encoded, update("fitted", 0, categories_=[]), "n_features_in_ is 3, but there are categories"),
    (by_columns, column(0, columns=["age", "x"]), "0.0.columns has 'x', which is no feature name"),
    (by_columns, column(0, columns=["age"]), "transformers.0.0 takes 2 columns, but gets 1|rem"),
    (by_columns, column(0, columns=[0, 9]), "transformers.0: there is no column 9"),
    (by_columns, column(0, columns=[True, False]), "0.0.columns must be a list of names or of"),
    (by_columns, column(0, name="c"), "transformers.0: the name 'c' is there twice"),
    (by_columns, column(1, transformer="keep"), "transformers.0.1 must be an object of JSON"),
    (by_columns, column(1, transformer="drop"), "the model is of 7 features, but the transformers"),
    (by_columns, column(1, columns=[]), "transformers.0.1.fitted must be there: False"),
    (by_columns, update("fitted", 0, remainder=[2]), "transformers.0.fitted.remainder must be the"),
    (by_columns, update("fitted", 0, sparse_output_=1), "0.fitted.sparse_output_ must be True or"),
    (by_columns, update("settings", 0, remainder="keep"), "transformers.0.remainder must be an ob"),
    (by_columns, update("settings", 0, n_jobs=10**6), "transformers.0.n_jobs must be None or an"),
    (by_columns, update("settings", 0, transformer_weights={"c": "a"}), "transformer_weights must"),
]


@pytest.mark.parametrize(("make", "change", "message"), FORGED)
def test_forged_pipelines_are_refused(make, change, message, tmp_path):
    path = tmp_path / "file"
    pg.save_model(make(), path)
    contents = parse(path.read_bytes())
    path.write_bytes(pack(contents))
    pg.load_model(path)  # the forger's file is sound but for the change
    change(contents)
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message) as caught:
        pg.load_model(path)
    assert str(caught.value).startswith(f"{path}: ") and len(str(caught.value)) < 600


FRAMES = {scaled: X, encoded: frame()[["size", "colour", "sold"]], by_columns: frame()}


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
        repr(loaded)
        outcomes.add("loaded")
        try:
            loaded.predict(FRAMES[make])
        except ValueError:  # other columns, or values that are too large
            outcomes.add("refuses to predict")
        pg.save_model(loaded, path)
        pg.load_model(path)
    assert {"refused", "loaded"} <= outcomes


def test_a_parameter_of_another_version_is_named(tmp_path, monkeypatch):
    path = tmp_path / "file"
    pg.save_model(fitted(MaxAbsScaler()), path)
    contents = parse(path.read_bytes())
    part(contents, 0)["settings"]["clip"] = True
    contents.settings["scikit-learn"] = "99.0"
    path.write_bytes(pack(contents))
    monkeypatch.setattr(MaxAbsScaler, "_get_param_names", classmethod(lambda cls: ["copy"]))
    with pytest.raises(ValueError) as caught:
        pg.load_model(path)
    message = "transformers.0: MaxAbsScaler has no parameter clip (the file was written with"
    assert str(caught.value).startswith(f"{path}: {message} scikit-learn '99.0', this is ")


def test_a_fitted_value_of_another_version_is_named(tmp_path, monkeypatch):
    path = tmp_path / "file"
    pg.save_model(fitted(MaxAbsScaler()), path)

    def fit(self, X):
        self.n_features_in_, self.n_samples_seen_, self.max_abs_, self.peak_ = 1, 2, [1], [2]
        return self

    monkeypatch.setattr(MaxAbsScaler, "fit", fit)
    with pytest.raises(ValueError, match=r"transformers\.0: MaxAbsScaler .* (peak_|scale_)"):
        pg.load_model(path)


# The command line


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


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
    inside = "ColumnTransformer (n: StandardScaler, remainder: passthrough)"
    assert shown["kind"] == "Pipeline" and shown["n_features"] == 4
    assert shown["steps"] == ["p: passthrough", f"c: {inside}", "r: RankRLS"]
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
