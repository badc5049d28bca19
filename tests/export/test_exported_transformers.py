"""Gaps, categories, bins and functions are exported as they were fitted, or refused by name."""

import contextlib
import json
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from axes import every
from pairgram import (
    Fill,
    Kernel,
    RandomNodes,
    RankRLS,
    export,
    load_model,
    make_ranking,
    save_model,
)
from shop import BRANDS, HARMLESS, LOG, TRANSFORMERS, columns, fitted, frame, others, targets
from table_sources import scanned

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

EXACT = {
    "python": export.to_python,
    "sqlite": lambda model: export.to_sql(model, dialect="sqlite"),
    "duckdb": export.to_sql,
}
ENGINES = {
    **EXACT,
    "solr": lambda model: export.to_solr(model, "m"),
    "plugin": lambda model: export.to_ltr_plugin(model, "m"),
    "vespa": lambda model: export.to_vespa(model, "m"),
    "onnx": export.to_onnx,
    "onnx, float64": lambda model: export.to_onnx(model, precision="float64"),
}
# The columns of the table of docs/deployment.md, and what is exported for it.
COLUMNS = {
    "Solr": "solr",
    "plugin": "plugin",
    "Vespa": "vespa",
    "ONNX": "onnx",
    "SQL, Python": "duckdb",
    "RankLib": "ranklib",
}
WRITERS = [export.to_onnx, export.to_python, export.to_sql]
WRITERS += [partial(w, name="m") for w in (export.to_vespa, export.to_solr, export.to_ltr_plugin)]
TRAINING, UNSEEN = frame(), others(60)
SAFE = (frame(brands=HARMLESS), others(60, brands=HARMLESS))  # for engines with parameters in text
QID = np.arange(60) // 10


@pytest.fixture(scope="module")
def models():
    """Pipelines by name and whether text is harmless."""
    return {
        (name, safe): fitted(name, SAFE[0] if safe else TRAINING)
        for name in TRANSFORMERS
        for safe in (False, True)
    }


@pytest.mark.parametrize("engine", ENGINES)
@every(name=TRANSFORMERS)
def test_scores_are_those_of_the_model(engine, name, models):
    safe = "solr" in engine or engine == "plugin"
    model = models[name, safe]
    if "PolynomialFeatures" in name and ("solr" in engine or engine == "plugin"):
        with pytest.raises(ValueError, match=r"multiply no features|has products of columns"):
            ENGINES[engine](model)
        return
    found = ENGINES[engine](model)
    rows = SAFE[1] if safe else UNSEEN  # some of which the training has
    if ("onnx" in engine or engine == "vespa") and "most frequent" in name:
        rows = rows.replace("", "new")  # an empty text is a missing one there
    parity = export.verify(found, model, rows, QID)
    assert parity.max_error <= (1e-12 if engine in EXACT else parity.bound)
    assert parity.bound < 1e-3 * parity.spread  # so that this shows something
    assert parity.n_reordered == 0


def test_the_table_of_the_documentation(models):
    text = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text()
    table = text.split("| transformer |")[1].split("\n\n")[0].splitlines()
    heads = [cell.strip() for cell in table[0].strip("|").split("|")]
    told = {}
    for line in table[2:]:
        kind, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        for column, cell in zip(heads, cells, strict=True):
            for one in re.findall(r"`([A-Z]\w+)`", kind):
                told[one, column] = cell != "no"
    for (name, safe), model in models.items():
        kind = name.split(",")[0]
        if not safe or kind == "shop":
            continue
        for column, engine in COLUMNS.items():
            with contextlib.nullcontext() if told[kind, column] else pytest.raises(ValueError):
                (ENGINES | {"ranklib": export.to_ranklib})[engine](model)
    assert {kind for kind, _ in told} == {name.split(",")[0] for name in TRANSFORMERS} - {"shop"}


def test_what_is_read_back_from_files(models, tmp_path):
    model = models["shop", True]
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for engine in ENGINES:
        one, other = ENGINES[engine](model), ENGINES[engine](loaded)
        assert str(one) == str(other) and getattr(one, "definitions", 0) == (
            getattr(other, "definitions", 0)
        )
    assert export.verify(ENGINES["onnx"](loaded), loaded, UNSEEN, QID).n_reordered == 0


def test_text_with_a_backslash():
    model = fitted("OneHotEncoder, text", TRAINING)
    # Snowflake reads a backslash in text as the beginning of an escape.
    assert """= 'é' || CHR(92) || 'ß' THEN""" in export.to_sql(model)


def test_text_with_nul_is_refused_in_sql():
    rows = TRAINING.assign(brand=TRAINING["brand"].replace("Sony", "S\0ny"))
    model = fitted("OneHotEncoder, text", rows)
    with pytest.raises(ValueError, match=r"'brand' has the category 'S\\x00ny', and text of SQL"):
        export.to_sql(model)
    assert export.verify(export.to_python(model), model, rows).max_error < 1e-12
    assert export.verify(export.to_vespa(model, "m"), model, rows).n_reordered == 0


def test_the_features_that_solr_and_the_plugin_compute():
    model = fitted("shop", frame(brands=["Sony", 'a "b"']))
    fields = {"price": "price_f", "rating": "rating_f", "brand": "brand_s"}
    body = export.to_solr(model, "m", store="s", fields=fields)
    assert json.loads(json.dumps(body.definitions)) == body.definitions
    found = {one["name"]: one for one in body.definitions}
    assert {one["name"] for one in body["features"]} == found.keys()
    made = "org.apache.solr.ltr.feature."
    assert found["rating"] == {
        "store": "s",
        "name": "rating",
        "class": f"{made}FieldValueFeature",
        "params": {"field": "rating_f"},
    }
    params = {name: one["params"] for name, one in found.items()}
    assert params["brand_is_Sony"] == {"fq": ["{!term f=brand_s}Sony"]}
    assert params["brand_is_a_b_"] == {"fq": ['{!term f=brand_s}a "b"']}
    assert params["price_is_missing"] == {"fq": ["*:* -price_f:[* TO *]"]}
    assert params["price_log1p"] == {"q": "{!func}if(exists(price_f),ln(sum(price_f,1)),0)"}
    assert params["colour_is_red"] == {"fq": ["{!term f=colour}red"]}
    body = export.to_ltr_plugin(model, "m", fields=fields)
    assert json.loads(body["model"]["model"]["definition"]).keys() == found.keys()
    template = {one["name"]: one["template"] for one in body.definitions}
    assert template["brand_is_Sony"] == {
        "constant_score": {"filter": {"term": {"brand_s": "Sony"}}}
    }
    assert template["price_log1p"]["function_score"]["field_value_factor"] == {
        "field": "price_f",
        "modifier": "ln1p",
        "missing": 0,
    }


def test_names_of_features_are_different():
    rows = frame(brands=["a b", "a_b", "a-b", "a?b"]).rename(columns={"stock": "brand_is_a_b"})
    step = columns(
        (OneHotEncoder(handle_unknown="ignore"), ["brand"]), (StandardScaler(), ["brand_is_a_b"])
    )
    model = make_pipeline(step, RankRLS(0.1)).fit(rows, targets(rows))
    for engine in ("solr", "plugin"):
        body = ENGINES[engine](model)
        assert export.verify(body, model, rows).n_reordered == 0


def test_bins_met_at_their_edges():
    """Values at an edge are in the bin above it, in float32 as well."""
    edges = [0.1, 0.3, 0.7, 1e6 + 0.1]
    rng = np.random.default_rng(0)
    X = rng.choice([*edges, 0.0, 0.2, 0.5, 1.0], (400, 1))
    y = rng.normal(size=400) + np.searchsorted(edges, X[:, 0], side="right")
    for encode in ("onehot-dense", "ordinal"):
        bins = KBinsDiscretizer(5, encode=encode, strategy="uniform").fit(X)
        bins.bin_edges_[0] = np.array([0.0, *edges, 2e6])
        model = make_pipeline(bins, RankRLS(0.1))
        model[-1].fit(bins.transform(X), y)
        for write in WRITERS:
            parity = export.verify(write(model, features=["a"]), model, X)
            assert parity.max_error <= min(parity.bound, 1e-5 * parity.spread)


def test_bins_beside_their_edges_in_sql():
    """Seconds since 1970 are next to an edge, and float32 tells no two of a minute apart."""
    rng = np.random.default_rng(0)
    X = rng.integers(1_760_000_000, 1_760_086_400, (1000, 1)).astype(float)
    y = X[:, 0] % 86_400 / 3600 + rng.normal(size=1000)
    for encode in ("onehot-dense", "ordinal"):
        model = make_pipeline(KBinsDiscretizer(24, encode=encode), RankRLS()).fit(X, y)
        text = export.to_sql(model, features=["seen_at"])
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE given (seen_at DOUBLE)")
            connection.executemany("INSERT INTO given VALUES (?)", X.tolist())
            found = connection.execute(f"SELECT {text} FROM given").fetchall()
        np.testing.assert_allclose(np.ravel(found), model.predict(X), atol=1e-12)


def test_hidden_nodes_of_categories():
    model = fitted("shop", SAFE[0], RankRLS(feature_map=RandomNodes(9, "tanh", random_state=0)))
    for engine in ("solr", "onnx"):
        parity = export.verify(ENGINES[engine](model), model, SAFE[1], QID)
        assert parity.max_error <= parity.bound and parity.n_reordered == 0
    with pytest.raises(ValueError, match="'brand' is text, which models of Vespa that need"):
        export.to_vespa(model, "m")
    kernel = fitted("shop", SAFE[0], RankRLS(feature_map=Kernel("rbf")))
    assert export.verify(export.to_onnx(kernel), kernel, SAFE[1], QID).n_reordered == 0


@pytest.mark.parametrize("inputs", ["standard", "quantile", "raw+quantile"])
@every(name=["OneHotEncoder, text", "OrdinalEncoder", "SimpleImputer, mean"])
def test_inputs_after_transformers(inputs, name):
    model = fitted(name, SAFE[0], RankRLS(feature_map=inputs))
    curved = "quantile" in inputs and name != "OrdinalEncoder"
    for engine in ENGINES:
        if curved and engine == "plugin":
            continue  # which has no function that is linear between knots
        parity = export.verify(ENGINES[engine](model), model, SAFE[1], QID)
        assert parity.max_error <= (1e-11 if engine in EXACT else parity.bound)


@pytest.mark.parametrize(
    ("scaler", "name"),
    [(StandardScaler(), "with_std"), (RobustScaler(), "with_scaling")],
)
def test_a_scaler_whose_parameters_change_after_its_fit(scaler, name):
    X, y, qid = make_ranking(20, 10, 3, random_state=0)
    model = make_pipeline(scaler, RankRLS()).fit(5 + 3 * X, y)
    model[0].set_params(**{name: False})  # which its transform heeds
    source = export.to_python(model, features=list("abc"))
    assert export.verify(source, model, 5 + 3 * X, qid).max_error < 1e-12


def test_a_ranker_that_fills_what_the_steps_leave():
    X, y, qid = make_ranking(20, 10, 3, random_state=0)

    gaps = X.copy()
    gaps[::7, 1] = np.nan
    scaler = StandardScaler().fit(5 + 3 * gaps)
    ranker = RankRLS(feature_map=Fill()).fit(scanned((scaler.transform(5 + 3 * gaps), y, qid)))
    model = Pipeline([("scaler", scaler), ("ranker", ranker)])
    for write in (export.to_python, export.to_sql, export.to_onnx):
        parity = export.verify(write(model, features=list("abc")), model, 5 + 3 * gaps, qid)
        assert parity.max_error <= min(parity.bound, 1e-5)


def refused():
    numbers = TRAINING[["stock"]]
    text, gaps = TRAINING[["brand"]], TRAINING[["price"]]
    log = FunctionTransformer(np.log1p)
    yield numbers, OrdinalEncoder(), "'stock' has no number for unknown categories, and an engine"
    yield numbers, FunctionTransformer(np.cbrt), "FunctionTransformer of <ufunc 'cbrt'>, which can"
    narrow = FunctionTransformer(np.log1p, kw_args={"dtype": np.float16, "casting": "same_kind"})
    yield numbers.astype(np.float32), narrow, "log1p, log, sqrt, without kw_args"
    yield numbers, PolynomialFeatures(3), r"PolynomialFeatures\(degree=3\) cannot be exported: eng"
    yield numbers, SimpleImputer(missing_values=2), r"SimpleImputer\(missing_values=2\) cannot be"
    yield (
        gaps,
        make_pipeline(log, SimpleImputer()),
        "after the function log cannot be exported, because log has no value for some numbers",
    )
    yield (
        numbers,
        make_pipeline(StandardScaler(), OneHotEncoder(handle_unknown="ignore")),
        "OneHotEncoder of a column that was computed before cannot be exported",
    )
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    yield (
        text,
        make_pipeline(codes, StandardScaler(), KBinsDiscretizer(3)),
        "KBinsDiscretizer of a column that was computed before cannot be exported",
    )
    yield numbers, KBinsDiscretizer(3, dtype=np.float32), r"Discretizer\(dtype=float32\) cannot"
    for parent, parts in ((ColumnTransformer, [("a", log, [0])]), (Pipeline, [("a", log)])):
        own = type(f"Own{parent.__name__}", (parent,), {"transform": lambda step, X: X * 2})(parts)
        yield numbers, own, f"is a Own{parent.__name__}, which cannot be exported"
    both = ColumnTransformer(
        [("text", OneHotEncoder(), ["brand"]), ("number", "passthrough", ["brand"])]
    )
    yield text, both, None
    mixed = TRAINING[["colour"]].copy()
    mixed.iloc[0, 0] = None
    yield mixed, OneHotEncoder(), "OneHotEncoder tells None from NaN, which engines do not"


@pytest.mark.parametrize(("rows", "step", "message"), [*refused()])
def test_what_is_refused_by_name(rows, step, message):
    if message is None:
        rows = rows.assign(brand=np.resize(np.array(["1", "2"], object), len(rows)))
        message = "'brand' is text for one transformer and a number for another"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(step, RankRLS())
        model[0].fit(rows)
        width = model[0].transform(rows).shape[1]
        model[-1].fit(np.random.default_rng(0).random((len(rows), width)), targets(TRAINING))
    for write in WRITERS:
        with pytest.raises(ValueError, match=message):
            write(model, features=list(rows.columns))


def test_empty_text_and_missing_text_where_they_are_one():
    rows = TRAINING.assign(colour=TRAINING["colour"].replace("green", ""))
    model = fitted("SimpleImputer, most frequent text", rows)
    for engine in ("onnx", "vespa"):
        with pytest.raises(ValueError, match="'colour' has the empty text as a category, and"):
            ENGINES[engine](model)
    for engine in EXACT:
        assert export.verify(ENGINES[engine](model), model, rows).max_error < 1e-12
    encoder = OneHotEncoder(handle_unknown="ignore")
    known = rows.fillna({"colour": ""})
    model = make_pipeline(columns((encoder, ["colour", "brand"])), RankRLS(0.1))
    model.fit(known, targets(rows))
    for engine in ("onnx", "vespa"):
        assert export.verify(ENGINES[engine](model), model, known).n_reordered == 0


@pytest.mark.parametrize(
    "encoder",
    [  # the first makes no column for the empty text, the second one alone
        OneHotEncoder(drop="first", handle_unknown="ignore"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.2),
    ],
)
def test_empty_text_and_filled_text_where_they_are_one(encoder):
    colour = np.resize(np.array(["", "", "", "", "", "red"], object), len(TRAINING))
    rows = TRAINING.assign(colour=colour)
    filled_in = make_pipeline(SimpleImputer(strategy="constant", fill_value="red"), encoder)
    model = make_pipeline(columns((filled_in, ["colour"])), RankRLS(0.1)).fit(rows, targets(rows))
    for engine in ("onnx", "vespa"):
        with pytest.raises(ValueError, match="'colour' has the empty text as a category, and"):
            ENGINES[engine](model)


def test_missing_text_without_a_number_has_no_score():
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    step = columns((ordinal, ["colour"]), (LOG, ["stock"]))
    rows = TRAINING[TRAINING["colour"].notna()]
    rows = rows.iloc[:100]
    model = make_pipeline(step, RankRLS(0.1)).fit(rows, targets(rows))
    model[0].named_transformers_["part0"].fit(TRAINING[["colour"]])  # NaN is a category now
    gaps = TRAINING[TRAINING["colour"].isna()]
    text = export.to_sql(model, dialect="sqlite")
    assert "NULL" in text and "float('nan')" in export.to_python(model)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(gaps)
    assert export.verify(text, model, rows).max_error < 1e-12


def test_thousands_of_categories():
    rows = TRAINING.iloc[np.arange(3000) % 300].reset_index(drop=True)
    rows = rows.assign(brand=[f"brand {k % 1500}" for k in range(3000)])
    encoder = OneHotEncoder(handle_unknown="ignore", dtype=np.float32)
    model = make_pipeline(columns((encoder, ["brand"])), RankRLS(0.1))
    model.fit(rows, targets(rows), rankrls__qid=np.arange(3000) // 10)
    for write in WRITERS:
        parity = export.verify(write(model), model, rows.iloc[::60])
        assert parity.max_error <= parity.bound


def test_brands_are_hostile():
    assert any("'" in one for one in BRANDS) and any("\\" in one for one in BRANDS)
