"""Exported models, evaluated as their engines do, give the scores of the models they came from."""

import json
import re
import time
import warnings

import jsonschema
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from axes import every
from export import schemas
from pairgram import (
    Cross,
    ELMRank,
    Fill,
    Kernel,
    MaxAbs,
    MaxNonzero,
    MinMax,
    Nystroem,
    Quantile,
    RandomFourier,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    RankSVM,
    Standard,
    export,
    make_ranking,
    scan,
)
from row_value import fill_of, row_value
from table_sources import scanned

NAMES = ["title bm25", 'the "price"', "größe", "a", "b", "c", "d`e", "f"]
SOME = slice(200)  # rows: engines that Python follows take long
VESPA = [f"attribute(f{j})" for j in range(8)]


@pytest.fixture(scope="module")
def data():
    X, y, qid = make_ranking(100, 10, 8, random_state=0)
    scales, offsets = np.array([1, 10, 0.1, 1, 1, 5, 1, 1]), np.array([0, 5, 0, 3, 0, 0, -1, 0])
    return X * scales + offsets, y, qid


ENGINES = {
    "solr": lambda m: export.to_solr(m, "m", store="s", features=NAMES),
    "plugin": lambda m: export.to_ltr_plugin(m, "m", features=NAMES),
    "ranklib": lambda m: export.to_ranklib(m, features=NAMES),
    "vespa": lambda m: export.to_vespa(m, "m", features=VESPA),
    "onnx": lambda m: export.to_onnx(m, features=NAMES),
    "sql": lambda m: export.to_sql(m, features=NAMES, dialect="sqlite"),
    "python": lambda m: export.to_python(m, features=NAMES),
}
LINEAR = {*ENGINES}
PIECEWISE = {"solr", "vespa", "onnx", "sql", "python"}
NODES = {"solr", "vespa", "onnx"}
ONNX = {"vespa", "onnx"}
PRODUCTS = {"vespa", "onnx", "sql", "python"}


def nodes(activation):
    return RandomNodes(30, activation=activation, random_state=0)


MODELS = {
    "linear": (lambda: RankRLS(), LINEAR),
    "standard": (lambda: RankRLS(feature_map="standard"), LINEAR),
    "minmax": (lambda: RankSVM(feature_map="minmax"), LINEAR),
    "linear kernel": (
        lambda: RankRLS(feature_map=make_pipeline(MaxAbs(), Kernel("linear"))),
        LINEAR,
    ),
    "linear nodes": (lambda: RankRLS(feature_map=nodes("linear")), LINEAR),
    "quantile": (lambda: RankRLS(feature_map="quantile"), PIECEWISE),
    "raw+quantile": (lambda: RankRLS(feature_map="raw+quantile"), PIECEWISE),
    "products": (
        lambda: RankRLS(
            feature_map=make_pipeline(Standard(), Cross([1, 4], [0, 3, 6], keep=[7, 2]))
        ),
        PRODUCTS,
    ),
    "products of quantiles": (
        lambda: RankRLS(feature_map=make_pipeline(Quantile(), Cross([1, 4], [0, 3, 6]))),
        PRODUCTS,
    ),
    "sigmoid": (lambda: RankRLS(feature_map=make_pipeline(Standard(), nodes("sigmoid"))), NODES),
    "tanh": (lambda: RankRLS(feature_map=make_pipeline(Quantile(), nodes("tanh"))), NODES),
    "relu": (lambda: RankRLS(feature_map=make_pipeline(Quantile(raw=True), nodes("relu"))), NODES),
    "elm": (lambda: ELMRank(n_nodes=20, feature_map="standard", random_state=0), NODES),
    "gaussian": (lambda: RankRLS(feature_map=make_pipeline(Standard(), nodes("gaussian"))), ONNX),
    "hardlim": (lambda: RankRLS(feature_map=make_pipeline(Standard(), nodes("hardlim"))), ONNX),
    "sine": (lambda: RankRLS(feature_map=make_pipeline(Standard(), nodes("sine"))), ONNX),
    "fourier": (
        lambda: RankRLS(feature_map=make_pipeline(Standard(), RandomFourier(50, random_state=0))),
        ONNX,
    ),
    "nystroem": (
        lambda: RankRLS(
            feature_map=make_pipeline(Standard(), Nystroem(n_components=40, random_state=0))
        ),
        ONNX,
    ),
} | {
    f"{kernel} kernel": (
        lambda k=kernel: RankRLS(feature_map=make_pipeline(MinMax(), Kernel(k))),
        ONNX,
    )
    for kernel in ("rbf", "laplacian", "polynomial", "minmax", "tanimoto")
}


@pytest.fixture(scope="module")
def models(data):
    X, y, qid = data
    return {name: make().fit(X, y, qid=qid) for name, (make, _) in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
@every(engine=ENGINES)
def test_every_model_in_every_engine(data, models, name, engine):
    X, _, qid = data
    model, engines = models[name], MODELS[name][1]
    if engine not in engines:
        with pytest.raises(ValueError, match=r"take|fit"):
            ENGINES[engine](model)
        return
    parity = export.verify(ENGINES[engine](model), model, X[SOME], qid[SOME])
    linear = engines is LINEAR
    assert parity.max_error <= (1e-5 if linear else 1e-3) * parity.spread
    assert parity.max_error <= parity.bound
    assert parity.n_queries == 20
    assert parity.n_reordered == 0
    if engine in ("sql", "python"):
        assert parity.max_error <= 1e-10 * parity.spread


def test_linear_models_of_columns_in_the_unit_interval_are_exact_to_a_millionth(data):
    X, y, qid = data
    X = MinMaxScaler().fit_transform(X)
    model = RankRLSCV().fit(X, y, qid=qid)
    for engine in ENGINES:
        parity = export.verify(ENGINES[engine](model), model, X, qid)
        assert parity.max_error <= 1e-6 * parity.spread


def test_products_multiply_missing_values_that_are_filled(data):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, qid = data
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    frame = pandas.DataFrame(X, columns=list("abcdefgh")).assign(y=y, q=qid)
    model = RankRLS(feature_map=make_pipeline(Fill(), Cross(["b", "e"], ["a", "d"], keep=["c"])))
    model.fit(scan(frame, label="y", qid="q"))
    filled = np.where(np.isnan(X), fill_of(model), X)
    for exported in (export.to_onnx(model), export.to_sql(model), export.to_python(model)):
        assert export.verify(exported, model, filled, qid).n_reordered == 0
        assert export.verify(exported, model, X, qid).n_reordered == 0


PIPELINES = {
    "standard": lambda: make_pipeline(StandardScaler(), RankRLS()),
    "no mean": lambda: make_pipeline(StandardScaler(with_mean=False), RankRLS()),
    "minmax": lambda: make_pipeline(MinMaxScaler((-1, 2)), RankRLS()),
    "clip": lambda: make_pipeline(MinMaxScaler(clip=True), RankRLS()),
    "maxabs": lambda: make_pipeline(MaxAbsScaler(), RankRLS()),
    "maxabs clip": lambda: make_pipeline(
        MaxAbsScaler(**dict.fromkeys(MaxAbsScaler().get_params(), True)), RankRLS()
    ),
    "robust": lambda: make_pipeline(RobustScaler(), RankRLS()),
    "columns": lambda: make_pipeline(
        ColumnTransformer(
            [
                ("a", StandardScaler(), [3, 1]),
                ("b", make_pipeline(MinMaxScaler(), StandardScaler()), slice(4, 6)),
                ("c", "passthrough", [7]),
                ("d", "drop", [2]),
            ]
        ),
        RankRLS(feature_map="standard"),
    ),
    "quantiles of scaled columns": lambda: make_pipeline(
        RobustScaler(), RankRLS(feature_map="quantile")
    ),
}


@every(name=PIPELINES)
def test_pipelines(data, name):
    X, y, qid = data
    model = PIPELINES[name]().fit(X, y, rankrls__qid=qid)
    engines = (
        PIECEWISE if name in ("clip", "maxabs clip", "quantiles of scaled columns") else LINEAR
    )
    outside = np.vstack([X[SOME], 3 * X[SOME]])
    for engine in sorted(engines):
        parity = export.verify(ENGINES[engine](model), model, outside, np.tile(qid[SOME], 2))
        assert parity.max_error <= 1e-4 * parity.spread
        assert parity.n_reordered == 0


def test_solr_has_the_keys_and_numbers_that_it_wants(data):
    X, y, qid = data
    linear = RankRLS(feature_map="standard").fit(X, y, qid=qid)
    body = json.loads(json.dumps(export.to_solr(linear, "m1", store="s1", features=NAMES)))
    assert [*body] == ["store", "class", "name", "features", "params"]
    assert body["class"] == "org.apache.solr.ltr.model.LinearModel"
    assert [one["name"] for one in body["features"]] == NAMES
    assert body["params"]["weights"].keys() == {*NAMES}
    hidden = RankRLS(feature_map=nodes("sigmoid")).fit(X, y, qid=qid)
    body = json.dumps(export.to_solr(hidden, "m1", features=NAMES))
    layers = json.loads(body)["params"]["layers"]
    assert [layer["activation"] for layer in layers] == ["sigmoid", "identity"]
    assert np.shape(layers[0]["matrix"]) == (30, 8)
    assert np.shape(layers[0]["bias"]) == (30,)
    assert np.shape(layers[1]["matrix"]) == (1, 30)
    assert not re.search(r"[\[,] ?-?\d+[,\]]", body)  # numbers have a decimal point


def test_a_large_model_warns_of_zookeeper(data):
    X, y, qid = data
    wide = np.tile(X, 17)
    model = RankRLS(feature_map=RandomNodes(1000, random_state=0)).fit(wide, y, qid=qid)
    with pytest.warns(UserWarning, match=r"MiB of JSON, and ZooKeeper refuses more than 1 MiB"):
        export.to_solr(model, "m", features=[f"f{j}" for j in range(136)])


def test_the_plugins_definition_is_text_and_scores_can_be_shifted(data):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    lowest = model.predict(X).min()
    body = export.to_ltr_plugin(model, "m", features=NAMES, shift="one", lowest=lowest)
    inner = body["model"]["model"]
    assert inner["type"] == "model/linear"
    weights = json.loads(inner["definition"])
    assert [*weights] == [*NAMES, "one"]
    scores = X @ [weights[name] for name in NAMES] + weights["one"]
    assert 0 <= scores.min() <= 2.1e-6 * abs(lowest)
    assert export.verify(body, model, X, qid).n_reordered == 0


@pytest.mark.parametrize("name", MODELS)
@every(engine=["solr", "plugin"])
def test_bodies_are_as_the_engines_describe_them(models, name, engine):
    engines = MODELS[name][1]
    if engine not in engines:
        return
    body = json.loads(json.dumps(ENGINES[engine](models[name]), allow_nan=False))
    if engine == "plugin":
        jsonschema.validate(body, schemas.PLUGIN)
        definition = json.loads(body["model"]["model"]["definition"])
        jsonschema.validate(definition, schemas.PLUGIN_DEFINITION)
        assert definition.keys() == {*NAMES}
    elif engines is LINEAR:
        jsonschema.validate(body, schemas.SOLR_LINEAR)
        assert body["params"]["weights"].keys() == {one["name"] for one in body["features"]}
    else:
        jsonschema.validate(body, schemas.SOLR_NETWORK)
        width = len(body["features"])
        for layer in body["params"]["layers"]:
            assert {len(row) for row in layer["matrix"]} == {width}
            width = len(layer["matrix"])
            assert len(layer["bias"]) == width
        assert width == 1
        assert not re.search(r"[\[,] ?-?\d+[,\]]", json.dumps(body["params"]))  # Solr wants doubles


def test_schemas_refuse_what_engines_refuse(data):
    X, y, qid = data
    body = ENGINES["plugin"](RankRLS().fit(X, y, qid=qid))
    inner = body["model"]["model"]
    inner["definition"] = json.loads(inner["definition"])
    with pytest.raises(jsonschema.ValidationError, match="is not of type 'string'"):
        jsonschema.validate(body, schemas.PLUGIN)


def test_vespa_reads_an_onnx_file(data):
    X, y, qid = data
    model = RankRLS(feature_map=nodes("sigmoid")).fit(X, y, qid=qid)
    profile = export.to_vespa(model, "ltr", features=VESPA)
    assert "file: files/ltr.onnx" in profile
    assert 'input "features": ltr_in' in profile
    assert "tensor<float>(d0[1],d1[8]):[[attribute(f0), attribute(f1)" in profile
    assert "expression: onnx(ltr).score{d0:0,d1:0}" in profile
    assert profile.count("{") == profile.count("}")
    assert "inherits one, two {" in export.to_vespa(model, "m", features=VESPA, inherits="one, two")


RANK_FEATURES = """\
attribute(price)|bm25(title)|fieldMatch(title).completeness|query(x)|$x|firstPhase|now|random.match
rankingExpression(f)|rankingExpression("a * (b + 1)")|constant(c)|term(0).weight|3d_match|f()|if
fieldMatch(title, body).score|nativeRank(title,body)|log(attribute(price))|min(a,-1.5e3)
attribute(t){d:x}|attribute(t){ d : x, e : y }|attribute(t){x}|onnx(m).score{d0:0,d1:0}|query(q)[3]
attribute(a.b)|foreach(terms,N,attributeMatch(foo).weight,">4",sum)|tensor(t){d:"a b"}|f(g(a).b)"""
NO_RANK_FEATURES = """\
0.05*x-y|a+b|a-b|-a|c;d|a b|a}|a)|f(a|f(a))|f(a)b|f(a)f(b)|f(a,)|f(,a)|a.|.a|a..b|a |f (a)|f(a b)
7|1.5|1e3|0x1F|3f||größe|f(größe)|f("a)b|"a"|a"b"|#a|a#b|{}|a{}|a[x]|a[-1]|$|a:b|f(a*b)|‹|f(“)|(a)"""


def test_columns_of_vespa_are_rank_features(data):
    X, y, qid = data
    models = [
        RankRLS(**named).fit(X[:, :2], y, qid=qid)
        for named in ({}, {"feature_map": nodes("sigmoid")})
    ]
    for name in re.split(r"\||\n", RANK_FEATURES):
        for model in models:
            assert name in export.to_vespa(model, "m", features=["attribute(a)", name])
    for name in re.split(r"\||\n", NO_RANK_FEATURES):
        for model in models:
            message = re.escape(f"the column {name!r} is no rank feature of Vespa")
            with pytest.raises(ValueError, match=f"^{message}, such as .* by features="):
                export.to_vespa(model, "m", features=["attribute(a)", name])


def test_calls_without_an_end_are_refused_at_once(data):
    X, y, qid = data
    model = RankRLS().fit(X[:, :1], y, qid=qid)
    for name in ("f(" + "1," * 200, "f(" + "1 , " * 200 + "x"):
        begin = time.process_time()
        with pytest.raises(ValueError, match="is no rank feature of Vespa"):
            export.to_vespa(model, "m", features=[name])
        assert time.process_time() - begin < 5
    whole = "f(" + "1," * 200 + "1)"
    assert whole in export.to_vespa(model, "m", features=[whole])


def test_onnx_files_say_what_they_are(data):
    import onnx

    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    loaded = onnx.load_from_string(export.to_onnx(model, features=NAMES))
    assert loaded.opset_import[0].version == 17
    assert loaded.ir_version == 8
    assert {p.key: p.value for p in loaded.metadata_props}["feature_names"] == "\n".join(NAMES)


def test_onnx_needs_no_names_of_columns(data):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    exported = export.to_onnx(model)
    assert exported.feature_names == tuple(f"x{j}" for j in range(8))
    assert export.verify(exported, model, X, qid).n_reordered == 0
    pandas = pytest.importorskip("pandas")
    named = RankRLS().fit(pandas.DataFrame(X, columns=list("hgfedcba")), y, qid=qid)
    assert export.to_onnx(named).feature_names == tuple("hgfedcba")


@every(missing=["zero", "mean", "median"], inputs=[None, "standard", "quantile"])
def test_missing_values_are_filled_in(data, missing, inputs):

    X, y, qid = data
    X = X + np.arange(8.0)
    X[::7, 2], X[3::5, 6] = np.nan, np.nan
    model = RankRLS(feature_map=row_value(inputs, fill=missing))
    by_table = clone(model).fit(scanned((X, y, qid)))
    model.fit(X, y, qid=qid)
    np.testing.assert_allclose(fill_of(by_table), fill_of(model), rtol=1e-13)
    for exported, share in (
        (export.to_onnx(model, features=NAMES), 1e-4),
        (export.to_sql(model, features=NAMES, dialect="sqlite"), 1e-12),
        (export.to_python(model, features=NAMES), 1e-12),
    ):
        found = export.verify(exported, model, X[SOME], qid[SOME])
        assert found.n_reordered == 0 and found.max_error <= share * found.spread
    # Vespa asks isNan; Solr agrees where fields have the default values that the export tells.
    filled = np.where(np.isnan(X), fill_of(model), X)
    for engine, itself in ((export.to_solr, missing == "zero"), (export.to_vespa, True)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            exported = engine(model, "m", features=[f"f{j}" for j in range(8)])
        assert any("default values" in str(one.message) for one in told) == (not itself)
        for rows in (filled, X):  # whose missing values have these values
            assert export.verify(exported, model, rows[SOME], qid[SOME]).n_reordered == 0


def test_a_feature_of_weight_0_is_listed(data):
    X, y, qid = data
    model = RankRLS(constraint=MaxNonzero(3)).fit(X, y, qid=qid)
    assert len(export.to_solr(model, "m", features=NAMES)["params"]["weights"]) == 8
    assert export.verify(export.to_sql(model, features=NAMES, dialect="sqlite"), model, X, qid)


def test_check_finds_a_wrong_model(data):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    other = RankRLS(pairs="without_ties").fit(X[:500], y[:500], qid=qid[:500])
    for engine in ENGINES:
        parity = export.verify(ENGINES[engine](other), model, X, qid)
        assert parity.n_reordered > 0
        assert parity.max_error > parity.bound
    assert re.match("largest error .* order changed in", str(parity))


def test_no_warnings_of_the_runtime(data, capfd):
    X, y, qid = data
    for kernel in ("tanimoto", "minmax", "rbf"):
        model = RankRLS(feature_map=make_pipeline(MinMax(), Kernel(kernel))).fit(X, y, qid=qid)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            export.verify(ENGINES["onnx"](model), model, X, qid)
    assert capfd.readouterr().err == ""
