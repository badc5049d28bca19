"""Fixtures that several test modules share."""

import pytest
import sklearn


@pytest.fixture
def routing():
    """Switch scikit-learn's metadata routing on for one test."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield
