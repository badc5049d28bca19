"""The ways to solve a system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest


# Of this scope the fixture lasts for one function, with all examples that hypothesis draws for it.
@pytest.fixture(params=["eigenvectors", "band"], scope="class")
def decomposition(request: pytest.FixtureRequest, limits_of: Any) -> Iterator[str]:
    """Solve small systems in the basis of eigenvectors, as usual, or by a band form."""
    with limits_of(band_order=1, fold_share=1.0) if request.param == "band" else nullcontext():
        yield request.param
