"""What the tests of the benchmarks share."""

import importlib
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings

FOLDER = Path(__file__).parents[1]

# How long an example takes says more about the machine than about the code.
settings.register_profile("bench", deadline=None)
settings.load_profile("bench")


@pytest.fixture
def script(monkeypatch):
    """Yield what imports a script of `bench`, or of its papers, by name."""
    for folder in (FOLDER, FOLDER / "papers"):
        monkeypatch.syspath_prepend(folder)
    with patch.dict(os.environ):  # where scripts set the number of threads
        yield importlib.import_module


@pytest.fixture
def benchmark_data(script):
    """Return the folder of the benchmark data, or skip the test."""
    folder = script("letor").default_folder()
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}: set PAIRGRAM_DATA")
    return folder
