"""Warnings of rows that a kernel or a map was hardly meant for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

from pairgram._support.checks import warn_caller

__all__ = ["warn_of_rows", "without_row_warnings"]

SAMPLE_ROWS, SAMPLE_VALUES = 1024, 1 << 22  # of the rows that are looked at
FEWEST_ROWS = 20  # of which spreads tell anything
SMALL_SPREAD = 0.01  # of the largest: squared differences of such a column are 1e-4 of its
MANY_SMALL = 1 / 3  # of the columns that vary
PACKED_FROM, PACKED_SHARE = 16, 0.25  # half of all bytes with one bit set are 16 or more
OF_DISTANCES = ("rbf", "laplacian", "polynomial", "cauchy")  # kernels that mix all columns
OF_BITS = ("tanimoto", "minmax")

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def without_row_warnings() -> Iterator[None]:
    """Leave out the warnings of `warn_of_rows`."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def warn_of_rows(feature_map: Any, X: Any, names: Sequence[Any] | None = None) -> None:
    """Warn where checked rows do not suit a map or kernel of this package.

    Nodes that are not linear and kernels of distances or powers mix all columns in one number, of
    which columns of a small spread are no part: a third or more of the columns that vary have a
    standard deviation below a hundredth of the largest. Kernels of bits and counts take a column
    for each, not `numpy.packbits`: whole numbers from 0 to 255, of which more than a quarter of
    those that are not 0 are 16 or more.

    Parameters
    ----------
    feature_map : RandomNodes, RandomFourier, Nystroem or KernelMap
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    names : sequence of str or None
        What the columns are called; None: by their numbers.

    Notes
    -----
    Up to 1,024 rows, evenly spaced, are looked at, and no fewer than 20 for spreads.
    """
    if _silent.get():
        return
    kernel = getattr(feature_map, "kernel", None)
    if isinstance(kernel, str):
        if kernel in OF_DISTANCES:
            _warn_of_spreads(X, names, f"the {kernel} kernel")
        elif kernel in OF_BITS:
            _warn_of_packed_bits(X, kernel)
    elif kernel is None and not _is_linear(feature_map.activation):
        _warn_of_spreads(X, names, "nodes that are not linear")


def _is_linear(activation: Any) -> bool:
    kinds = [activation] if isinstance(activation, str) or callable(activation) else activation
    return all(isinstance(kind, str) and kind == "linear" for kind in kinds)


def _sample(X: Any) -> Any:
    n_rows, n_features = X.shape
    size = min(SAMPLE_ROWS, max(16, SAMPLE_VALUES // n_features))
    return X if n_rows <= size else X[np.linspace(0, n_rows - 1, size).astype(np.int64)]


def _spreads(X: Any) -> NDArray[np.float64]:
    """Return the standard deviation of every column of a sample."""
    rows = _sample(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if scipy.sparse.issparse(rows):
            return np.asarray(np.sqrt(mean_variance_axis(rows.astype(np.float64), axis=0)[1]))
        return np.asarray(rows.std(axis=0, dtype=np.float64))


def _warn_of_spreads(X: Any, names: Sequence[Any] | None, what: str) -> None:
    if X.shape[0] < FEWEST_ROWS:
        return
    spreads = _spreads(X)
    varying = spreads > 0
    largest = spreads.max(initial=0.0)
    small = varying & (spreads < SMALL_SPREAD * largest)
    if np.count_nonzero(small) < max(1.0, MANY_SMALL * np.count_nonzero(varying)):
        return

    def described(columns: NDArray[np.int64]) -> str:
        return ", ".join(
            f"{column if names is None else repr(names[column])} ({spreads[column]:.2g})"
            for column in columns[:3]
        )

    order = np.argsort(-spreads, kind="stable")
    large = order[: int(np.count_nonzero(varying & ~small))]
    ignored = order[len(large) : int(np.count_nonzero(varying))][::-1]
    warn_caller(
        f"columns of X differ so much in spread that {what} will hardly see {len(ignored)} of "
        f"{np.count_nonzero(varying)}: the standard deviation is largest in {described(large)} and "
        f"smallest in {described(ignored)}{', counted from 0' * (names is None)}. Scale them "
        "alike, as with StandardScaler or MinMaxScaler in a Pipeline",
        UserWarning,
    )


def _warn_of_packed_bits(X: Any, kernel: str) -> None:
    rows = _sample(X)
    values = rows.data if scipy.sparse.issparse(rows) else rows[rows != 0]
    if not len(values) or values.max() > 255 or values.min() < 0 or (values % 1 != 0).any():
        return
    if np.count_nonzero(values >= PACKED_FROM) > PACKED_SHARE * np.count_nonzero(values):
        warn_caller(
            f"X looks like packed bits, with whole numbers up to {values.max():g}, but "
            f"kernel={kernel!r} takes a column for each bit or count: np.unpackbits(X, axis=1) "
            "makes them",
            UserWarning,
        )
