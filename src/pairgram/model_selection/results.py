"""Make the table of a search, `cv_results_`, with the columns of scikit-learn's searches."""

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
    """Return the table of a search, with a row for every combination of settings.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        For every parameter, its value in every row.
    judged : Judged
    ranks : ndarray of shape (n_rows,), int
        The ranks; 1 is the best.

    Returns
    -------
    dict
        The columns ``params`` (a list of dicts), ``param_…``, ``split…_test_score`` (if there are
        splits), ``mean_test_score``, ``std_test_score`` and ``rank_test_score``.
    """
    names, lists = list(columns), [values.tolist() for values in columns.values()]
    table: dict[str, Any] = {
        "params": [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]
    }
    table |= {f"param_{name}": values for name, values in columns.items()}
    for number, part in enumerate(() if judged.splits is None else judged.splits):
        table[f"split{number}_test_score"] = part
    table["mean_test_score"] = judged.means
    table["std_test_score"] = judged.deviations
    table["rank_test_score"] = ranks
    return table


def column_of(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return objects as an array of shape (n_values,), even if they are sequences themselves."""
    column: NDArray[np.object_] = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def as_list(value: Any, name: str) -> list[Any]:
    """Return the settings to choose from as a list; a single setting becomes a list of one."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError(f"{name}: a list of settings to choose from must not be empty")
        return list(value)
    return [value]
