"""What the tests share."""

import os
from pathlib import Path

import pytest
import sklearn
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("pairgram", deadline=None)
settings.load_profile("pairgram")


@pytest.fixture(scope="session")
def benchmark_data():
    """Return the folder of the benchmark data, or skip the test."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PAIRGRAM_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no benchmark data in {folder}: set PAIRGRAM_DATA")
    return folder


@pytest.fixture
def routing():
    """Switch scikit-learn's metadata routing on for one test."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield
