"""Model files that version 0.1.0 wrote, with the scores that it predicted."""

from pathlib import Path

import numpy as np
import pytest

from pairgram import load_model

FOLDER = Path(__file__).parent / "of_0_1"
FILES = sorted(FOLDER.glob("*.safetensors"))


def test_every_kind_has_a_file():
    with np.load(FOLDER / "scores.npz") as known:
        assert {file.stem for file in FILES} == set(known) - {"X"}
    assert len(FILES) == 9


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_0_1_predicts_what_it_did(file, tmp_path):
    model = load_model(file)
    with np.load(FOLDER / "scores.npz") as known:
        X, scores = known["X"], known[file.stem]
    # Other processors and versions of BLAS add in another order.
    np.testing.assert_allclose(model.predict(X), scores, rtol=1e-10, atol=1e-12)
    model.save(tmp_path / "again.safetensors")
    again = load_model(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
