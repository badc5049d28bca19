"""Training rows in files of kernel models are packed without loss, and the file says so."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from pairgram import Kernel, RankRLS, load_model
from parts.cli import invoke

RNG = np.random.default_rng(0)
BITS = (RNG.random((200, 1001)) < 0.1) * 1.0
ROWS = {
    "bits": (BITS, 200 * 1001),
    "bits of float32": (BITS.astype(np.float32), 200 * 1001),
    "counts": (np.floor(BITS * 9 * RNG.random(BITS.shape)), 200 * 1001),
    "float32": (RNG.random((200, 100)).astype(np.float32), 4 * 200 * 100),
    "float32 as float64": (RNG.random((200, 100)).astype(np.float32) * 1.0, 4 * 200 * 100),
    "float64": (RNG.random((200, 100)), 8 * 200 * 100),
    "negative": (-BITS, 4 * 200 * 1001),
    "CSR bits": (sp.csr_array(BITS), 5 * (BITS.size // 10)),
    "CSR": (sp.csr_array(BITS * RNG.random(BITS.shape)), 13 * (BITS.size // 10)),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_come_back_bit_by_bit_from_a_small_file(name, tmp_path):
    X, size = ROWS[name]
    y, path = np.arange(200) % 7, tmp_path / "model.safetensors"
    model = RankRLS(feature_map=Kernel("minmax")).fit(X, y, qid=np.arange(200) // 20)
    model.save(path)
    loaded = load_model(path)
    rows, expected = loaded.feature_map_.support_rows_, model.feature_map_.support_rows_
    assert type(rows) is type(expected)
    assert abs(rows - expected).max() == 0
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert path.stat().st_size < 1.1 * size + 8_000
    result = invoke("inspect", path, "--json")
    assert json.loads(result.stdout)["training_rows"] == "200 are in the file"
