"""``pairgram export`` writes what the functions of `pairgram.export` return, and checks it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import pairgram
import shop
from pairgram import Fill, Nystroem, RankRLS, dump_letor, export, make_ranking
from parts.cli import invoke

NAMES = ["title", "body", "price"]


@pytest.fixture
def files(tmp_path):
    """A model of named columns, a model of columns without names, and rows in two forms."""
    X, y, qid = make_ranking(30, 10, 3, random_state=0)
    frame = pd.DataFrame(X, columns=NAMES)
    named, plain = RankRLS().fit(frame, y, qid=qid), RankRLS().fit(X, y, qid=qid)
    named.save(tmp_path / "named.safetensors")
    plain.save(tmp_path / "plain.safetensors")
    dump_letor(tmp_path / "rows.txt", X, y, qid=qid)
    frame.assign(grade=y, query=qid)[["query", *NAMES[::-1], "grade"]].to_parquet(
        tmp_path / "rows.parquet"
    )
    return tmp_path


def run(*arguments, command="export", code=0):
    found = invoke(command, *arguments)
    assert found.exit_code == code, found.output
    return found


ENGINES = {
    "solr": lambda m, **own: export.to_solr(m, "m1", **own),
    "ltr-plugin": lambda m, **own: export.to_ltr_plugin(m, "m1", **own),
    "elasticsearch": lambda m, **own: export.to_ltr_plugin(m, "m1", **own),
    "opensearch": lambda m, **own: export.to_ltr_plugin(m, "m1", **own),
    "vespa": lambda m, **own: export.to_vespa(m, "m1", **own),
    "ranklib": export.to_ranklib,
    "sql": export.to_sql,
    "python": lambda m, **own: export.to_python(m, name="m1", **own),
    "onnx": export.to_onnx,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", ["named", "plain"])
def test_every_engine(files, engine, model):
    path = files / f"{model}.safetensors"
    output = files / "out"
    checked = run(
        path, "--to", engine, "--name", "m1", "--verify", files / "rows.txt", "-o", output
    )
    assert "order changed in 0 of 30 queries" in checked.output
    own = {} if model == "named" else {"features": ["f1", "f2", "f3"]}
    wanted = ENGINES[engine](pairgram.load_model(path), **own)
    if isinstance(wanted, bytes):
        assert output.read_bytes() == wanted
    elif isinstance(wanted, dict):
        assert json.loads(output.read_text()) == wanted
    else:
        assert output.read_text() == wanted.rstrip("\n") + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_names_of_a_file(files, encoding):
    (files / "names.txt").write_text("a\nb\n\nc d\n", encoding=encoding)
    found = run(files / "plain.safetensors", "--to", "solr", "--features", files / "names.txt")
    assert [one["name"] for one in json.loads(found.output)["features"]] == ["a", "b", "c d"]


@pytest.mark.parametrize("engine", ENGINES)
def test_negative_scores_are_warned_of_where_engines_refuse_them(files, engine):
    frame = pd.read_parquet(files / "rows.parquet")
    model = RankRLS(feature_map="standard").fit(
        frame[NAMES] + 5, frame["grade"], qid=frame["query"]
    )
    model.save(files / "scaled.safetensors")
    arguments = (files / "scaled.safetensors", "--to", engine, "--verify", files / "rows.txt")
    found = run(*arguments, "--output", files / "out")
    if engine not in ("ltr-plugin", "elasticsearch", "opensearch"):
        assert "refuse scores below 0" not in found.output
        return
    body = json.loads((files / "out").read_text())["model"]["model"]
    weights = json.loads(body["definition"])
    lowest = sum(weights[name] * frame[name] for name in NAMES).min()
    assert lowest < 0
    assert f"the lowest score of {files / 'rows.txt'} is {lowest:.4g}, and" in found.output
    assert "refuse scores below 0: shift= and lowest=" in found.output


def test_a_profile_and_its_onnx_file_stand_side_by_side(files):
    X, y, qid = make_ranking(30, 10, 3, random_state=0)
    model = RankRLS(feature_map=Nystroem(n_components=8, random_state=0)).fit(X, y, qid=qid)
    model.save(files / "curved.safetensors")
    arguments = (files / "curved.safetensors", "--to", "vespa", "--name", "m1")
    found = run(*arguments, "-o", files / "m1.profile", "--verify", files / "rows.txt")
    assert "files/m1.onnx" in (files / "m1.profile").read_text()
    assert (files / "m1.onnx").stat().st_size > 100
    found = run(*arguments, code=2)
    assert "--to vespa needs --output FILE" in found.output.replace("\n", " ")
    assert "rank-profile" not in found.output  # nothing is printed before it is refused


def test_a_pipeline_that_chooses_columns_by_name(files):
    frame = pd.read_parquet(files / "rows.parquet")
    chosen = ColumnTransformer([("scaled", StandardScaler(), ["price", "title"])])
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(chosen, RankRLS())
        model.fit(frame[NAMES], frame["grade"], qid=frame["query"])
    pairgram.save_model(model, files / "steps.safetensors")
    found = run(
        *(files / "steps.safetensors", "--to", "solr", "--output", files / "out"),
        *("--verify", files / "rows.txt"),
    )
    assert "order changed in 0 of 30 queries" in found.output
    scored = run(files / "steps.safetensors", files / "rows.txt", command="predict")
    scores = np.array(scored.stdout.split(), float)
    np.testing.assert_allclose(scores, model.predict(frame[NAMES]), rtol=1e-12)


@pytest.mark.parametrize("to", ["solr", "opensearch"])
def test_features_of_fields_are_written_beside_the_model(to, tmp_path):
    rows = shop.frame(brands=shop.HARMLESS)
    pairgram.save_model(shop.fitted("shop", rows), tmp_path / "model")
    found = run(tmp_path / "model", "--to", to, "--name", "m1", "--output", tmp_path / "m1.json")
    model = json.loads((tmp_path / "m1.json").read_text())
    features = json.loads((tmp_path / "m1.features.json").read_text())
    if to == "solr":
        named = {one["name"] for one in model["features"]}
    else:
        features = features["featureset"]["features"]
        named = json.loads(model["model"]["model"]["definition"]).keys()
    assert named - {one["name"] for one in features} == {"rating"}
    found = run(tmp_path / "model", "--to", to, code=2)
    assert "model.features.json stands beside it" in found.output


def test_an_order_that_changes_is_an_exit_code(tmp_path):
    """Solr reads float32, in which a large offset makes scores equal."""
    rows = 1e9 + shop.frame(brands=shop.HARMLESS)[["price", "rating"]]
    model = RankRLS(feature_map=Fill("mean")).fit(
        rows, shop.targets(shop.frame(brands=shop.HARMLESS))
    )
    model.save(tmp_path / "m.safetensors")
    rows.assign(query=np.arange(len(rows)) // 10).to_parquet(tmp_path / "rows.parquet")
    table = ("--verify", tmp_path / "rows.parquet", "--qid", "query")
    arguments = (tmp_path / "m.safetensors", *table)
    found = run(*arguments, "--to", "solr", "--name", "m", "-o", tmp_path / "m.json", code=1)
    assert (tmp_path / "m.json").exists()
    assert "subtract the offset of columns before fit" in found.stderr
    run(*arguments, "--to", "sql", "-o", tmp_path / "m.sql")


def test_inspect_steps_that_name_no_columns(tmp_path):
    rows, steps = shop.frame()[["stock"]], make_pipeline(FunctionTransformer(np.log1p))
    columns = ColumnTransformer([("log", steps, ["stock"])])
    model = make_pipeline(columns, RankRLS()).fit(rows, rows["stock"])
    with pytest.raises(AttributeError):
        columns.get_feature_names_out()
    pairgram.save_model(model, tmp_path / "m.safetensors")
    found = run(tmp_path / "m.safetensors", command="inspect")
    assert f"{model[-1].coef_[0]:.5f}" in found.stdout
