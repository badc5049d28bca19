"""Small data sets that are drawn without the package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit, the rows of a query together, and rows that are held back."""

    X: np.ndarray
    y: np.ndarray
    query: np.ndarray
    weight: np.ndarray
    new: np.ndarray

    @property
    def names(self) -> list[str]:
        return [f"f{j}" for j in range(self.X.shape[1])]

    @property
    def cuts(self) -> list[int]:
        """Where pieces of tables begin and end, also within queries."""
        n = len(self.y)
        return [0, n // 3, n // 2, n]

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(np.append(np.flatnonzero(np.diff(self.query, prepend=-1)), len(self.y)))

    def taken(self, rows: Any) -> Rows:
        return replace(
            self, X=self.X[rows], y=self.y[rows], query=self.query[rows], weight=self.weight[rows]
        )

    def columns(self, *, weighted: bool) -> dict[str, np.ndarray]:
        """Return the columns of a table."""
        features = dict(zip(self.names, np.ascontiguousarray(self.X.T), strict=True))
        weight = {"weight": self.weight} if weighted else {}
        return features | {"label": self.y, "query": self.query} | weight


def _made(seed: int, sizes: Any, d: int, *, labels: str = "levels", kind: str = "normal") -> Rows:
    rng = np.random.default_rng(seed)
    sizes = rng.permutation(np.asarray(sizes))
    n = int(sizes.sum())
    X = rng.normal(size=(n + 12, d))
    if kind == "bits":
        X = (rng.random((n + 12, d)) < 0.2).astype(float)
    elif kind == "counts":
        X = rng.poisson(0.5, (n + 12, d)).astype(float)
    hidden = X @ rng.normal(size=d) + rng.normal(size=n + 12)
    if kind == "awkward":
        X[:, 0] = 7.5
        X[:, 1] = np.round(2 * X[:, 1])
        X[:, 2] += 1e4
        X[:, 3] *= 1e-3
        X[5:10] = X[:5]
    hidden = hidden[:n]
    levels = np.digitize(hidden, np.quantile(hidden, [0.5, 0.75, 0.9])).astype(float)
    y = {
        "levels": levels,
        "real": np.round(hidden, 3),
        "signed": levels - 1.0,
        "binary": np.minimum(levels, 1.0),
    }[labels]
    return Rows(
        np.ascontiguousarray(X[:n]),
        y,
        np.repeat(rng.permutation(len(sizes)), sizes),
        rng.choice([0.0, 0.5, 1.0, 2.0], n),
        np.ascontiguousarray(X[n:]),
    )


_KINDS: dict[str, dict[str, Any]] = {
    "tall": {"sizes": [1, 2, 3, 4, 5, 6, 7, 8] * 3, "d": 6},
    "awkward": {"sizes": [2, 3, 4, 5, 9] * 4, "d": 5, "kind": "awkward"},
    "wide": {"sizes": [3, 4, 5, 6, 7, 2], "d": 40},
    "single": {"sizes": [30], "d": 4, "labels": "real"},
    "real": {"sizes": [4, 5, 6] * 4, "d": 5, "labels": "real"},
    "signed": {"sizes": [4, 5, 6] * 4, "d": 5, "labels": "signed"},
    "bits": {"sizes": [5, 6, 7, 8] * 2, "d": 64, "kind": "bits"},
    "counts": {"sizes": [5, 6, 7, 8] * 2, "d": 32, "kind": "counts"},
    "binary": {"sizes": [5, 6, 7, 8] * 3, "d": 5, "labels": "binary"},
}


@cache
def rows_of(kind: str) -> Rows:
    """Return a data set by its name."""
    return _made(list(_KINDS).index(kind), **_KINDS[kind])


FRAMES = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.table}


def frame_of(package: str, X: np.ndarray, names: list[str]) -> Any:
    """Return a frame with named columns."""
    return FRAMES[package](dict(zip(names, np.ascontiguousarray(X.T), strict=True)))
