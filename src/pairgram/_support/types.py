"""The types of what callers give, and of rows that have been checked; for type checkers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import sparray, spmatrix
from sklearn.base import BaseEstimator as BaseEstimator


class FrameLike(Protocol):
    """Columns by name: a frame of pandas or polars, or a table or record batch of pyarrow."""

    @property
    def columns(self) -> Any: ...


class Transformer(Protocol):
    """A transformer of scikit-learn, or what acts as one."""

    @property
    def fit(self) -> Callable[..., Any]: ...

    @property
    def transform(self) -> Any: ...


class Estimator(Protocol):
    """An estimator of scikit-learn, or what acts as one."""

    @property
    def fit(self) -> Callable[..., Any]: ...

    @property
    def predict(self) -> Any: ...


class Splitter(Protocol):
    """A splitter of scikit-learn, or what acts as one."""

    @property
    def split(self) -> Callable[..., Any]: ...


Sparse = spmatrix | sparray
Matrix = NDArray[Any] | Sparse  # rows that have been checked
RowsLike = ArrayLike | Sparse | FrameLike  # rows as callers give them
RandomState = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None
Draws = np.random.RandomState | np.random.Generator
CV = int | str | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None
