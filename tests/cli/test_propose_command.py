"""``pairgram propose`` and ``predict --std``: what the functions return, in files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from pairgram import RankRLS, load_model, propose, save_model
from parts.cli import app

pytest.importorskip("pyarrow")
COLUMNS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("propose")
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


@pytest.mark.parametrize("strategy", ["upper", "improvement", "thompson", "variance"])
@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet"])
def test_chosen_rows(files, strategy, ending):
    folder, model, train, pool = files
    more = ["--measured", "train.parquet"] if strategy == "improvement" else []
    common = ["--model", "m.safetensors", "-n", 4, "--strategy", strategy, "--keep", "id"]
    run(folder, "propose", "pool.parquet", *common, *more, "-o", f"found.{ending}", "--seed", 3)
    seen = train[COLUMNS] if more else None
    expected = propose(model, pool[COLUMNS], 4, strategy=strategy, measured=seen, random_state=3)
    path = folder / f"found.{ending}"
    separator = "," if ending == "csv" else "\t"
    read = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path, sep=separator)
    assert list(read.columns) == ["rank", "row", "id", "score", "deviation"]
    assert read["rank"].tolist() == [1, 2, 3, 4]
    assert read["row"].tolist() == expected.tolist()
    assert read["id"].tolist() == pool["id"][expected].tolist()
    scores, deviations = model.predict(pool[COLUMNS], return_std=True)
    np.testing.assert_allclose(read["score"], scores[expected], rtol=1e-12)
    np.testing.assert_allclose(read["deviation"], deviations[expected], rtol=1e-12)


def test_chosen_pairs(files):
    folder, model, _, pool = files
    common = ["pool.parquet", "--model", "m.safetensors", "--strategy", "order", "--keep", "id"]
    run(folder, "propose", *common, "-n", 3, "-o", "pairs.csv")
    read = pd.read_csv(folder / "pairs.csv")
    expected = propose(model, pool[COLUMNS], 3, strategy="order")
    np.testing.assert_array_equal(read[["first", "second"]], expected)
    assert read["second id"].tolist() == pool["id"][expected[:, 1]].tolist()
    first, second = (pool[COLUMNS].iloc[rows] for rows in expected.T)
    above = model.probability_above(first, second)
    np.testing.assert_allclose(read["probability"], above, rtol=1e-12)


def test_rows_by_themselves_and_threads(files):
    folder, model, _, pool = files
    common = ["pool.parquet", "-m", "m.safetensors", "-n", 5, "--no-batch", "--threads", 1]
    lines = run(folder, "propose", *common).splitlines()
    expected = propose(model, pool[COLUMNS], 5, batch=False)
    assert [int(line.split("\t")[1]) for line in lines[1:]] == expected.tolist()


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
    pool = ["pool.parquet", "--model", "m.safetensors"]
    for arguments, wanted in (
        ([*pool, "--strategy", "best"], "--strategy must be one of 'upper'"),
        ([*pool, "--keep", "name"], "--keep: there is no column 'name' in the pool"),
        ([*pool, "-n", 61], "n must be at most 60, the number of rows of X, got 61"),
        ([*pool, "-o", "pool.parquet"], "is the pool file"),
        (["p*l.parquet", *pool[1:], "-o", "pool.parquet"], "is one of the pool files"),
        ([str(folder), *pool[1:], "-o", "pool.parquet"], "is one of the pool files"),
        ([*pool, "--keep", "id,score"], "--keep score: what is written has a column of this name"),
        ([*pool, "--strategy", "improvement"], "measured must have the rows that were measured"),
    ):
        assert wanted in run(folder, "propose", *arguments, code=2)
    told = run(folder, "predict", "m.safetensors", "pool.parquet", "--std", "mean", code=2)
    assert "--std must be one of 'list', 'training', got 'mean'" in told
    run(folder, "train", "train.parquet", "--label", "y", "--qid", "assay", "-o", "no.safetensors")
    told = run(folder, "propose", "pool.parquet", "--model", "no.safetensors", code=2)
    assert "does not know how sure its scores are" in told
    told = run(
        *(folder, "train", "train.parquet", "--label", "y", "--qid", "assay"),
        *("--keep-covariance", "--pairs", "without_ties", "-o", "bad.safetensors"),
        code=2,
    )
    assert "keep_covariance" in told or "--keep-covariance" in told


def test_a_pipeline_is_told_to_know_nothing(files):
    folder = files[0]
    pool = pd.read_parquet(folder / "pool.parquet").select_dtypes("number")
    steps = make_pipeline(StandardScaler(), RankRLS(keep_covariance=True))
    steps.fit(pool, np.arange(len(pool)) % 3)
    save_model(steps, folder / "steps.safetensors")
    told = run(folder, "propose", "pool.parquet", "--model", "steps.safetensors", code=2)
    assert "this Pipeline does not know how sure its scores are" in told


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
    common = ["pool.parquet", "--model", "m.safetensors", "-n", 3, "--keep", "id"]
    run(tmp_path, "propose", *common, "-o", "found.csv")
    chosen = pd.read_csv(tmp_path / "found.csv")["id"].tolist()
    assert chosen == pool["id"][propose(model, pool[COLUMNS], 3)].tolist()
