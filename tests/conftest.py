"""What the tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def benchmark_data():
    """Return the folder of the benchmark data, or skip the test."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PAIRGRAM_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}: set PAIRGRAM_DATA")
    return folder
