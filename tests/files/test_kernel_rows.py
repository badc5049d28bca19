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
    "bits": (BITS, 200 * 126),
    "bits of float32": (BITS.astype(np.float32), 200 * 126),
    "counts": (np.floor(BITS * 9 * RNG.random(BITS.shape)), 200 * 1001),
    "float32": (RNG.random((200, 100)).astype(np.float32), 4 * 200 * 100),
    "float32 as float64": (RNG.random((200, 100)).astype(np.float32) * 1.0, 4 * 200 * 100),
    "float64": (RNG.random((200, 100)), 8 * 200 * 100),
    "negative": (-BITS, 4 * 200 * 1001),
    "CSR bits": (sp.csr_array(BITS), 4 * (BITS.size // 10)),
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
    assert rows.dtype == expected.dtype
    assert type(rows) is type(expected)
    assert abs(rows - expected).max() == 0
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert path.stat().st_size < 1.1 * size + 8_000
    result = invoke("inspect", path, "--json")
    assert json.loads(result.stdout)["training_rows"] == "200 are in the file"


def test_forged_rows_are_refused(tmp_path):
    from parts.files import read_file, write_file

    model = RankRLS(feature_map=Kernel("tanimoto")).fit(
        BITS, np.arange(200) % 7, qid=np.arange(200) // 20
    )
    path = tmp_path / "model.safetensors"
    model.save(path)
    kind, arrays, settings = read_file(path)
    narrow = {**arrays, "map_bits": np.ascontiguousarray(arrays["map_bits"][:, :-1])}
    with pytest.raises(ValueError, match="map_bits must have 126 bytes a row, got 125"):
        write_file(path, kind, narrow, settings)
    with pytest.raises(ValueError, match="the support rows must be"):
        write_file(path, kind, {**arrays, "map_rows": BITS}, settings)
    settings["feature_map"]["rows_dtype"] = "float32"
    far = {name: array for name, array in arrays.items() if name != "map_bits"}
    far["map_rows"] = np.where(BITS, 1e300, 0)  # more than float32 holds
    settings["feature_map"]["bits"] = False
    with pytest.raises(ValueError, match="map_rows must not be float64, as rows_dtype is float32"):
        write_file(path, kind, far, settings)
