"""The table of a search, `cv_results_`, with the columns of scikit-learn's searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram.model_selection.judge import Judged

__all__ = ["as_list", "column_of", "search_results"]


def search_results(
    columns: Mapping[str, NDArray[Any]], judged: Judged, ranks: NDArray[np.int64]
) -> dict[str, Any]:
    """Return the table of a search, a row for every combination of settings.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        The settings of every row, by the names of parameters.
    judged : Judged
    ranks : ndarray of shape (n_rows,), int
        From 1, the best.

    Returns
    -------
    dict
        ``params`` (a list of dicts), ``param_…``, ``split…_test_score`` where there are splits,
        ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    """
    names, lists = list(columns), [values.tolist() for values in columns.values()]
    table: dict[str, Any] = {
        "params": [dict(zip(names, row)) for row in zip(*lists)]  # noqa: B905, they are as long
    }
    table |= {f"param_{name}": values for name, values in columns.items()}
    for number, part in enumerate(() if judged.splits is None else judged.splits):
        table[f"split{number}_test_score"] = part
    table["mean_test_score"] = judged.means
    table["std_test_score"] = judged.deviations
    table["rank_test_score"] = ranks
    return table


def column_of(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return objects, which may be sequences themselves, as an array of shape (n_values,)."""
    column: NDArray[np.object_] = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def as_list(value: Any, name: str) -> list[Any]:
    """Return a setting, or the settings to choose from, as a list."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"{name}: a list of settings to choose from must not be empty")
        return list(value)
    return [value]
