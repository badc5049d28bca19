"""Both ways to solve the systems of small problems."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pairgram.solvers import leave_out_dual as dual_rows, ridge_path


# Of this scope the fixture lasts for one function, with all examples that hypothesis draws for it.
@pytest.fixture(params=["eigenvectors", "band"], scope="class")
def decomposition(request: pytest.FixtureRequest) -> Iterator[str]:
    """Solve small systems in the basis of eigenvectors, as usual, or by a band form."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "band":
            patch.setattr(ridge_path, "BAND_ORDER", 1)
            patch.setattr(dual_rows, "LARGEST_SHARE", 1.0)
        yield request.param
