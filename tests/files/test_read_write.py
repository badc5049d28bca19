"""Model files: whole or not at all, nothing run, damage found."""

import json
import os

import numpy as np
import pytest

from fuzz import forge
from pairgram import Pairgram, Pairs, RankRLS, RankRLSCV, dump_letor, load_model, make_ranking
from parts.files import read_file, write_file

# What a file may hold: a RankRLS of three features.
ARRAYS = {"coef_": np.arange(3.0)}
SETTINGS = {
    "alpha": 1.5,
    "pairs": Pairs().in_file(),
    "scale": False,
    "feature_map": None,
    "inputs": None,
    "missing": None,
    "fitted": {
        "form_": "primal",
        "n_features_in_": 3,
        "uses_qid_": True,
    },
}


@pytest.fixture(scope="module")
def data():
    return make_ranking(20, 10, 5, random_state=0)


def test_a_model_comes_back(tmp_path, data):
    X, y, qid = data
    model = RankRLS(2.0, pairs="gain_difference", scale=True).fit(X, y, qid=qid)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.score(X, y, qid=qid) == model.score(X, y, qid=qid)


def test_a_tuned_model_comes_back_as_what_it_chose(tmp_path, data):
    X, y, qid = data
    model = RankRLSCV(pairs=["with_ties", "without_ties"]).fit(X, y, qid=qid)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (loaded.alpha, loaded.pairs) == (model.alpha_, model.pairs_)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


def test_feature_names_come_back(tmp_path, data):
    pd = pytest.importorskip("pandas")
    X, y, qid = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    RankRLS().fit(frame, y, qid=qid).save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == list("abcde")


def test_what_could_not_be_read_is_not_written(tmp_path, data):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid).set_params(alpha=-1)
    with pytest.raises(ValueError, match="cannot be saved: alpha must be a finite number >= 0"):
        model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="cannot be saved: coef_ must be finite"):
        write_file(tmp_path / "model", "RankRLS", {"coef_": np.array([1.0, np.nan, 2.0])}, SETTINGS)
    assert list(tmp_path.iterdir()) == []


def test_every_damaged_byte_is_found(tmp_path):
    path = tmp_path / "model"
    write_file(path, "RankRLS", ARRAYS, SETTINGS)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            kind, arrays, settings = read_file(path, ("RankRLS",))
        except ValueError as error:
            assert str(path) in str(error)
        else:  # white space of the header
            assert (kind, settings) == ("RankRLS", SETTINGS)
            np.testing.assert_array_equal(arrays["coef_"], ARRAYS["coef_"])
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        message = "damaged or cut off" if length >= 10 else "not a file that pairgram wrote"
        with pytest.raises(ValueError, match=message):
            read_file(path)


def test_files_of_former_versions_are_told(tmp_path):
    X, y, qid = make_ranking(5, 4, 3, random_state=0)
    RankRLS().fit(X, y, qid=qid).save(tmp_path / "model")
    contents = forge.parse((tmp_path / "model").read_bytes())
    contents.metadata |= {"format": "pairgram-1", "version": "0.2.0"}
    contents = forge.pack(contents)
    (tmp_path / "model").write_bytes(contents)
    wanted = "written by pairgram '0.2.0', whose files later versions do not read: fit the model"
    with pytest.raises(ValueError, match=wanted):
        load_model(tmp_path / "model")
    with pytest.raises(ValueError, match=f"the bytes: {wanted}"):
        Pairgram.from_bytes(contents)


@pytest.mark.parametrize("kind", [FileNotFoundError, NotADirectoryError])
def test_a_missing_folder_is_named(tmp_path, kind):
    folder = tmp_path / "none"
    if kind is NotADirectoryError:
        folder.write_text("a file")
    for save in (
        RankRLS().fit(np.eye(3), [0, 1, 2]).save,
        Pairgram.from_rows(np.eye(3), [0, 1, 2]).save,
        lambda path: dump_letor(path, np.eye(3), [0, 1, 2]),
    ):
        with pytest.raises(kind) as caught:
            save(folder / "model")
        assert f"path must be in a folder that exists, and {folder} is none" in str(caught.value)
        assert caught.value.filename == str(folder / "model")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    write_file(path, "RankRLS", ARRAYS, SETTINGS)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_file(path, "RankRLS", {"coef_": np.ones(3)}, SETTINGS)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_settings_are_json(tmp_path):
    path = tmp_path / "model"
    itself = []
    itself.append(itself)
    for value, words in (
        (object(), "cannot be saved: a file"),
        ([np.datetime64("2020-01-01")], "cannot be saved: a file"),
        ({(1, 2): 3}, "cannot be saved: keys must be"),
        (itself, "cannot be saved: Circular"),
    ):
        with pytest.raises(ValueError, match=f"deep {words}"):
            write_file(path, "RankRLS", ARRAYS, {**SETTINGS, "deep": value})
    assert not path.exists()
    write_file(path, "RankRLS", ARRAYS, SETTINGS)
    assert read_file(path)[2] == json.loads(json.dumps(SETTINGS))


def test_numpy_scalars_are_settings(tmp_path, data):
    X, y, qid = data
    path = tmp_path / "model"
    parameters = {"alpha": np.int64(2), "scale": np.True_}
    model = RankRLS(**parameters).fit(X, y, qid=qid)
    model.save(path)
    loaded = load_model(path)
    for name, value in parameters.items():
        assert getattr(loaded, name) == value
        assert type(getattr(loaded, name)) is type(value.item())
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    fitted = {"form_": np.str_("dual"), "n_features_in_": np.uint8(3), "uses_qid_": np.False_}
    write_file(path, "RankRLS", ARRAYS, {**SETTINGS, "alpha": np.float32(0.1), "fitted": fitted})
    settings = read_file(path)[2]
    assert settings["alpha"] == float(np.float32(0.1))
    assert settings["fitted"] == {"form_": "dual", "n_features_in_": 3, "uses_qid_": False}


def test_equal_contents_have_equal_bytes(tmp_path):
    X, y, qid = make_ranking(9, 5, 3, random_state=0)
    total = Pairgram.from_rows(X, y, qid=qid)
    assert len({total.to_bytes() for _ in range(9)}) == 1
    model, files = RankRLS().fit(X, y, qid=qid), [tmp_path / "one", tmp_path / "two"]
    for path in files:
        model.save(path)
    assert files[0].read_bytes() == files[1].read_bytes()
