"""``predict --std``: what ``predict`` returns, in files."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pairgram import load_model
from parts.cli import app

pytest.importorskip("pyarrow")
COLUMNS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deviations")
    rng = np.random.default_rng(0)
    train = pd.DataFrame(rng.normal(size=(200, 3)), columns=COLUMNS)
    train["y"] = train["a"] - train["b"] + rng.normal(size=200)
    train["assay"] = np.arange(200) // 20
    pool = pd.DataFrame(rng.normal(size=(60, 3)), columns=COLUMNS)
    pool.insert(0, "id", [f"compound {i}" for i in range(60)])
    pool["assay"] = np.arange(60) // 15
    train.to_parquet(folder / "train.parquet")
    pool.to_parquet(folder / "pool.parquet")
    columns = ["--label", "y", "--qid", "assay", "--weighting", "documents"]
    run(folder, "train", "train.parquet", *columns, "--keep-covariance", "-o", "m.safetensors")
    return folder, load_model(folder / "m.safetensors"), train, pool


def run(folder, command, *arguments, code=0):
    names = (".parquet", ".csv", ".safetensors", ".tsv")
    paths = [str(folder / one) if str(one).endswith(names) else str(one) for one in arguments]
    result = CliRunner().invoke(app, [command, *paths])
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


def test_training_keeps_what_it_says(files):
    _, model, _, _ = files
    assert model.posterior_.kind == "exact" and model.pairs == "with_ties"


def test_deviations_beside_scores(files):
    folder, model, _, pool = files
    common = ["predict", "m.safetensors", "pool.parquet", "--qid", "assay", "--std", "list"]
    lines = run(folder, *common).splitlines()
    expected = model.predict(pool[COLUMNS], qid=pool["assay"], return_std=True)
    found = np.array([line.split("\t") for line in lines], float)
    np.testing.assert_allclose(found, np.column_stack(expected), rtol=1e-12)
    run(folder, *common, "--keep", "id", "-o", "scores.parquet")
    read = pd.read_parquet(folder / "scores.parquet")
    assert list(read.columns) == ["id", "score", "deviation"]
    assert read["id"].tolist() == pool["id"].tolist()
    np.testing.assert_allclose(read[["score", "deviation"]], np.column_stack(expected), rtol=1e-12)


def test_refusals(files):
    folder = files[0]
    told = run(folder, "predict", "m.safetensors", "pool.parquet", "--std", "mean", code=2)
    assert "--std must be one of 'list', 'training', got 'mean'" in told
    columns = ("train.parquet", "--label", "y", "--qid", "assay")
    run(folder, "train", *columns, "-o", "no.safetensors")
    told = run(folder, "predict", "no.safetensors", "pool.parquet", "--std", "training", code=2)
    assert "does not know how sure its scores are" in told
    options = ("--keep-covariance", "--pairs", "without_ties", "-o", "bad.safetensors")
    told = run(folder, "train", *columns, *options, code=2)
    assert "keep_covariance" in told or "--keep-covariance" in told


def test_gaps_are_filled_where_columns_are_kept(files, tmp_path):
    train, pool = (frame.copy() for frame in files[2:])
    pool.loc[[3, 40], "a"] = train.loc[[5, 60], "a"] = np.nan
    pool.to_parquet(tmp_path / "pool.parquet")
    train.to_parquet(tmp_path / "train.parquet")
    columns = ["--label", "y", "--qid", "assay", "--weighting", "documents", "--missing", "mean"]
    run(tmp_path, "train", "train.parquet", *columns, "--keep-covariance", "-o", "m.safetensors")
    model = load_model(tmp_path / "m.safetensors")
    scored = ["--std", "list", "--keep", "id", "-o", "s.parquet"]
    run(tmp_path, "predict", "m.safetensors", "pool.parquet", *scored)
    found = pd.read_parquet(tmp_path / "s.parquet")
    scores, deviations = model.predict(pool[COLUMNS], return_std=True)
    np.testing.assert_allclose(found["score"], scores, rtol=1e-12)
    np.testing.assert_allclose(found["deviation"], deviations, rtol=1e-12)
    assert found["id"].tolist() == pool["id"].tolist()
