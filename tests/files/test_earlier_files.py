"""Files that versions 0.1.0 and 0.2.0 wrote, with the scores of then, and files of older names."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from fuzz import forge
from pairgram import (
    BatchFit,
    ELMRank,
    Pairgram,
    PairwiseELM,
    RankRLS,
    fit_many,
    load_model,
    make_ranking,
    save_model,
    scan,
)

FOLDERS = [Path(__file__).parent / name for name in ("of_0_1", "of_0_2")]
FILES = [file for folder in FOLDERS for file in sorted(folder.glob("*.safetensors"))]
MODELS = [file for file in FILES if file.stem != "batch"]


@pytest.mark.parametrize(("folder", "n_files"), [*zip(FOLDERS, (9, 34), strict=True)])
def test_every_kind_has_a_file(folder, n_files):
    files = {file.stem for file in FILES if file.parent == folder}
    with np.load(folder / "scores.npz") as known:
        assert files == set(known) - {"X", "statistics_G"}
    assert len(files) == n_files


@pytest.mark.parametrize("file", MODELS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_file_predicts_what_it_did(file, tmp_path):
    model = load_model(file)
    with np.load(file.parent / "scores.npz") as known:
        X, scores = known["X"], known[file.stem]
    # Other processors and versions of BLAS add in another order.
    np.testing.assert_allclose(model.predict(X), scores, rtol=1e-10, atol=1e-12)
    save_model(model, tmp_path / "again.safetensors")
    again = load_model(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_statistics_and_batches_of_0_2():
    folder = FOLDERS[1]
    batch, statistics = (
        BatchFit.load(folder / "batch.safetensors"),
        Pairgram.load(folder / "statistics.pairgram"),
    )
    with np.load(folder / "scores.npz") as known:
        X, scores, G = known["X"], known["batch"], known["statistics_G"]
    np.testing.assert_allclose([model.predict(X) for model in batch.models], scores, rtol=1e-10)
    np.testing.assert_allclose(statistics.G, G, rtol=1e-12)
    np.testing.assert_allclose((2.0 * statistics).G, 2 * G, rtol=1e-12)


OLDER = {
    "with_ties": "kept",
    "without_ties": "dropped",
    "gain_difference": "gain",
    "label_difference": "absdiff",
}
X, Y, QID = make_ranking(12, 6, 3, random_state=0)


def with_older_names(path, pairs):
    """Give settings and arrays of a file the names of version 0.2, which it must then hold."""
    contents = forge.parse(path.read_bytes())
    text = json.dumps(contents.settings)
    older = text.replace(f'"pairs": "{pairs}"', f'"pairs": "{OLDER[pairs]}"')
    assert older != text
    contents.settings = json.loads(older)
    named = contents.tensors.items()
    contents.tensors = {name.replace("fill_values", "missing"): it for name, it in named}
    path.write_bytes(forge.pack(contents))
    return contents.tensors.keys()


@pytest.mark.parametrize("pairs", OLDER)
def test_older_names_of_pairs_and_fills_are_read(pairs, tmp_path):
    holes = np.where(np.quantile(X, 0.9, axis=0) < X, np.nan, X)
    table = scan(lambda: iter([(holes, Y, QID)]), missing="mean")
    model, path = RankRLS(pairs=pairs, target="gain").fit(table), tmp_path / "model"
    later = RankRLS(pairs=pairs, kernel="rbf", prior=FrozenEstimator(model)).fit(X, Y, qid=QID)
    pipeline = make_pipeline(MaxAbsScaler().fit(X), model)
    for one, arrays in (
        (model, {"coef_", "missing"}),
        (later, {"prior.coef_", "prior.missing"}),
        (pipeline, {"model.coef_", "model.missing"}),
        (PairwiseELM(pairs=pairs, n_nodes=4, random_state=0).fit(X, Y, qid=QID), {"coef_"}),
        (ELMRank(pairs=pairs, n_nodes=4, random_state=0).fit(X, Y), {"coef_"}),
    ):
        save_model(one, path)
        assert arrays <= with_older_names(path, pairs)
        loaded = load_model(path)
        np.testing.assert_array_equal(loaded.predict(X), one.predict(X))
        ranker = loaded[-1] if one is pipeline else loaded
        assert ranker.pairs == pairs
    save_model(pipeline, path)
    with_older_names(path, pairs)
    assert load_model(path)[-1].target == "gain"


@pytest.mark.parametrize("pairs", OLDER)
def test_older_names_of_statistics_and_batches_are_read(pairs, tmp_path):
    path = tmp_path / "file"
    statistics = Pairgram.from_rows(X, Y, qid=QID, pairs=pairs, ids=None)
    statistics.save(path)
    with_older_names(path, pairs)
    loaded = Pairgram.load(path)
    np.testing.assert_array_equal(loaded.G, statistics.G)
    np.testing.assert_array_equal((loaded + loaded).G, (statistics + statistics).G)
    assert loaded.settings == statistics.settings

    batch = fit_many(RankRLS(pairs=pairs), [(X, Y, QID), (X[:30], Y[:30], QID[:30])])
    batch.save(path)
    with_older_names(path, pairs)
    assert [model.pairs for model in BatchFit.load(path).models] == [pairs, pairs]
