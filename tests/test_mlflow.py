"""MLflow keeps models as files without code, and scores rows by them."""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import pairgram
from pairgram import ELMRank, Kernel, Nystroem, RankRLS, RankRLSCV, RankSVM, make_ranking

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:mlflow"),
    pytest.mark.filterwarnings("ignore:Hint. Inferred schema contains integer"),
]

X, y, qid = make_ranking(40, 10, 6, random_state=0)
FRAME = pd.DataFrame(X, columns=[f"f{j}" for j in range(6)])


@pytest.fixture(scope="module", autouse=True)
def imported():
    """MLflow takes long to import, which not every run of tests needs."""
    global infer_signature, mlflow, pairgram
    pytest.importorskip("mlflow")
    with warnings.catch_warnings():  # of MLflow's own code
        warnings.simplefilter("ignore")
        import mlflow.pyfunc
        import mlflow.sklearn
        from mlflow.models import infer_signature

        import pairgram.mlflow


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of runs and of models in a folder."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"file:{tmp_path}/runs")
    yield tmp_path
    mlflow.set_tracking_uri(before)


def scored(folder, rows, **named):
    return mlflow.pyfunc.load_model(str(folder), **named).predict(rows)


MODELS = [
    RankRLS(),
    RankRLSCV(),
    RankSVM(C=0.1),
    RankRLS(feature_map="raw+quantile"),
    RankRLS(feature_map=Kernel("rbf")),
    RankRLS(feature_map=Nystroem(n_components=9, random_state=0)),
    ELMRank(n_nodes=8, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_what_is_kept_gives_the_same_bits(model, tmp_path):
    lists = FRAME[["f0"]].assign(others=X[:, 1:].tolist())
    for rows, kind in ((X, "arrays"), (FRAME, "frames"), (lists, "lists")):
        folder = tmp_path / kind
        model.fit(rows, y, qid=qid)
        pairgram.mlflow.save_model(model, folder, input_example=rows[:5])
        expected = model.predict(rows)
        loaded = pairgram.mlflow.load_model(folder)
        np.testing.assert_array_equal(loaded.predict(rows), expected)
        np.testing.assert_array_equal(scored(folder, rows), expected)
        np.testing.assert_array_equal(
            pairgram.load_model(folder / "data/model.safetensors").coef_, loaded.coef_
        )
    written = {path.name for path in (tmp_path / "arrays").rglob("*")}
    assert not [name for name in written if re.search("pkl|pickle|joblib", name)]


def test_a_run_and_a_registry(store):
    model = RankRLS().fit(FRAME, y, qid=qid)
    with mlflow.start_run() as run:
        logged = pairgram.mlflow.log_model(
            model, "ranker", input_example=FRAME[:5], registered_model_name="shop"
        )
    assert run.info.run_id == logged.run_id
    assert logged.signature.inputs.input_names() == [*FRAME]
    for uri in (logged.model_uri, "models:/shop/1"):
        loaded = pairgram.mlflow.load_model(uri)
        np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))
        # Columns are taken by their names.
        turned = FRAME[[*FRAME][::-1]].assign(other="text")
        np.testing.assert_array_equal(scored(uri, turned), model.predict(FRAME))
    text = (store / next(store.rglob("requirements.txt"))).read_text().split()
    assert f"pairgram=={pairgram.__version__}" in text
    assert any(line.startswith("scikit-learn==") for line in text)


def test_a_pipeline_with_text_columns(tmp_path):
    frame = FRAME.assign(shop=np.where(X[:, 0] > 0, "a", "b"))
    before = ColumnTransformer(
        [("one", OneHotEncoder(), ["shop"]), ("rest", StandardScaler(), ["f1", "f2"])]
    )
    model = make_pipeline(before, RankRLS()).fit(frame, y, rankrls__qid=qid)
    pairgram.mlflow.save_model(model, tmp_path / "m", input_example=frame[:5])
    loaded, expected = pairgram.mlflow.load_model(tmp_path / "m"), model.predict(frame)
    np.testing.assert_array_equal(loaded.predict(frame), expected)
    np.testing.assert_array_equal(scored(tmp_path / "m", frame), expected)


def test_what_is_refused(tmp_path):
    model = RankRLS().fit(FRAME, y, qid=qid)
    pairgram.mlflow.save_model(model, tmp_path / "m")
    pyfunc = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    with pytest.raises(ValueError, match="rows: there is no column 'f5'"):
        pyfunc.predict(FRAME.drop(columns="f5"))
    scores = pyfunc.predict({name: FRAME[name].to_numpy() for name in FRAME})
    np.testing.assert_array_equal(scores, model.predict(FRAME))
    with pytest.raises(TypeError, match="model must be a ranker or a Pipeline"):
        pairgram.mlflow.save_model(StandardScaler(), tmp_path / "other")
    mlflow.pyfunc.save_model(
        str(tmp_path / "foreign"),
        loader_module="pairgram.mlflow",
        data_path=str(tmp_path / "m" / "data"),
        pip_requirements=[],
    )
    with pytest.raises(ValueError, match="has the flavors python_function, and not pairgram"):
        pairgram.mlflow.load_model(str(tmp_path / "foreign"))


def test_mlflows_own_flavor_keeps_models_by_skops(tmp_path):
    pytest.importorskip("skops")
    if "skops_trusted_types" not in inspect.signature(mlflow.sklearn.save_model).parameters:
        pytest.skip("this MLflow keeps no models by skops")
    model = make_pipeline(StandardScaler(), RankRLSCV()).fit(X, y, rankrlscv__qid=qid)
    mlflow.sklearn.save_model(
        model,
        tmp_path / "m",
        serialization_format="skops",
        skops_trusted_types=pairgram.export.skops_types(),
        pip_requirements=[],
    )
    loaded = mlflow.sklearn.load_model(str(tmp_path / "m"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_the_lines_of_the_page(store):
    page = (Path(__file__).parents[1] / "docs" / "serving.md").read_text()
    (code,) = re.findall(r"\n## MLflow\n.*?^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    model = RankRLS().fit(FRAME, y, qid=qid)
    names = {"model": model, "frame": FRAME}
    exec(code, names)
    np.testing.assert_array_equal(names["scores"], model.predict(FRAME))
    assert names["model"] is not model
