"""Queries: from ids or group sizes to one internal form, row order and offsets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairgram._support.arrays import real_array, refuse_lossy
from pairgram._support.checks import called_by, warn_caller

__all__ = [
    "CROSS_VALIDATION",
    "MissingQueryWarning",
    "Queries",
    "as_ids",
    "one_query_meant",
    "refuse_score_without_ids",
    "warn_of_missing_queries",
]

CROSS_VALIDATION = "sklearn.model_selection"

MANY_ROWS = 1000  # more of them are seldom meant to be one query
_one_query_meant: ContextVar[bool] = ContextVar("one_query_meant", default=False)


class MissingQueryWarning(UserWarning):
    """Query ids have not reached an estimator that compares rows within queries.

    Issued by `fit` of a model of pairs within queries for more than 1,000 rows without `qid` and
    `group`, which are then a single query, all of whose rows are compared; by `evaluate` for as
    many, with a metric of result lists, such as NDCG and MAP; and where scikit-learn's
    cross-validation has ids that it does not hand on: `QueryKFold` gets ``groups``, which the
    estimator does not see, or `fit` gets ``qid`` and the scorer none.
    """


@contextmanager
def one_query_meant() -> Iterator[None]:
    """Let fits take rows without ids as one query without a `MissingQueryWarning`."""
    token = _one_query_meant.set(True)
    try:
        yield
    finally:
        _one_query_meant.reset(token)


def warn_of_missing_queries(caller: str, n_rows: int, what: str = "all compared") -> None:
    """Warn where rows without ids and sizes are too many to be meant as one query.

    Parameters
    ----------
    caller : str
        The function that got them.
    n_rows : int
    what : str
        What the function makes of the rows of a query.
    """
    if n_rows > MANY_ROWS and not _one_query_meant.get():
        warn_caller(
            f"{caller} got {n_rows} rows without qid and group: they are one query, whose rows are "
            f"{what}. Pass qid, or group=[{n_rows}] if that is meant",
            MissingQueryWarning,
        )


def refuse_score_without_ids(estimator: Any) -> NoReturn:
    """Raise the ValueError of a ranker that was fitted with ids and is scored without.

    scikit-learn's cross-validation makes NaN of it, so there a `MissingQueryWarning` says the same.
    """
    message = (
        f"{type(estimator).__name__} was fitted with query ids, so score needs qid too. "
        "scikit-learn's cross-validation hands qid to fit, score and QueryKFold after "
        "sklearn.set_config(enable_metadata_routing=True), and before to fit alone"
    )
    if called_by(CROSS_VALIDATION):
        warn_caller(message, MissingQueryWarning)
    raise ValueError(message)


@dataclass(frozen=True, eq=False)
class Queries:
    """The rows of a data set, delimited into queries.

    Query q holds the rows ``order[offsets[q]:offsets[q + 1]]``, or ``offsets[q]:offsets[q + 1]``
    where `order` is None, in the order in which the caller gave them. Queries stand in the order
    of their first row.

    Attributes
    ----------
    offsets : ndarray of shape (n_queries + 1,), int64
    order : ndarray of shape (n_rows,), int64, or None
        None where the rows of every query already stand together.
    ids : ndarray of shape (n_queries,) or None
        The caller's ids; None where there were none (one query, or group sizes).
    """

    offsets: NDArray[np.int64]
    order: NDArray[np.int64] | None = None
    ids: NDArray[Any] | None = None

    @classmethod
    def make(
        cls, n_rows: int, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> Queries:
        """Delimit `n_rows` rows by ids or by sizes; by neither, they are one query.

        Parameters
        ----------
        n_rows : int
        qid : array-like of shape (n_rows,), any hashable dtype, or None
            Rows with equal ids form a query, wherever they stand.
        group : array-like of shape (n_queries,) of int ≥ 0, or None
            Sizes of the queries, whose rows stand together.

        Raises
        ------
        ValueError
            If both are given; if an id is missing (None, NaN) or the lengths disagree; if a size
            is negative or the sizes do not add up to `n_rows`.
        TypeError
            If an id is not hashable or a size is not an integer.

        Notes
        -----
        O(n) where the rows of every query stand together; else a stable O(n log n) sort.
        """
        if qid is not None and group is not None:
            raise ValueError("qid and group say the same in two ways: give one of them")
        if group is not None:
            return cls(_offsets_from_sizes(group, n_rows))
        if qid is None:
            return cls(np.array([0, n_rows], dtype=np.int64))
        return cls._from_ids(as_ids(qid, n_rows))

    @classmethod
    def _from_ids(cls, ids: NDArray[Any]) -> Queries:
        n_rows = len(ids)
        if n_rows == 0:
            return cls(np.zeros(1, dtype=np.int64), ids=ids)
        names = None
        if ids.dtype.kind == "O":
            ids, names = _codes_of_objects(ids)
        starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
        bounds = np.append(starts, n_rows).astype(np.int64)
        run_ids = ids[starts]
        _, first, inverse = np.unique(run_ids, return_index=True, return_inverse=True)
        by_first_row = np.argsort(first)
        unique_ids = run_ids[first[by_first_row]]
        if names is not None:
            unique_ids = names[unique_ids]
        if len(first) == len(starts):  # every query is one run of rows
            return cls(bounds, ids=unique_ids)
        rank = np.argsort(by_first_row)
        query_of_row = np.repeat(rank[inverse], np.diff(bounds))
        sizes = np.bincount(query_of_row, minlength=len(first))
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        order = np.argsort(query_of_row, kind="stable").astype(np.int64, copy=False)
        return cls(offsets, order, unique_ids)

    @property
    def n_queries(self) -> int:
        """Number of queries, those without rows included."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.offsets[-1])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of every query, shape (n_queries,)."""
        return np.diff(self.offsets)

    @cached_property
    def n_filled(self) -> int:
        """Number of queries that have rows."""
        return int(np.count_nonzero(self.sizes))

    def rows(self, query: int) -> NDArray[np.int64] | slice:
        """Return what selects the caller's rows of one query."""
        begin, end = int(self.offsets[query]), int(self.offsets[query + 1])
        return slice(begin, end) if self.order is None else self.order[begin:end]

    def index(self) -> NDArray[np.int64]:
        """Return the number of the query of every row, in the caller's row order: (n_rows,)."""
        grouped = np.repeat(np.arange(self.n_queries), self.sizes)
        if self.order is None:
            return grouped
        index = np.empty_like(grouped)
        index[self.order] = grouped
        return index

    def grouped(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return row-aligned `values` (n_rows, …) with the rows of every query together."""
        return values if self.order is None else values[self.order]

    def per_query(self, values: ArrayLike, name: str) -> NDArray[np.float64]:
        """Return the value of every query from row-aligned ones that are constant within it.

        Raises
        ------
        ValueError
            If two rows of a query differ, or the length or a value is wrong; names `name`.
        """
        rows = check_weights(values, self.n_rows, name)
        grouped = self.grouped(rows)
        out = np.ones(self.n_queries)
        filled = self.sizes > 0
        out[filled] = grouped[self.offsets[:-1][filled]]
        differs = grouped != np.repeat(out, self.sizes)
        if differs.any():
            at = int(np.argmax(differs))
            row = at if self.order is None else int(self.order[at])
            query = int(np.searchsorted(self.offsets, at, side="right")) - 1
            raise ValueError(
                f"{name} must be constant within a query: row {row} has {rows[row]}, but its "
                f"query {self.name(query)} began with {out[query]}"
            )
        return out

    def name(self, query: int) -> str:
        """Return how an error message calls a query: its id, or its number from 0."""
        return f"#{query}" if self.ids is None else repr(_plain(self.ids[query]))


def check_weights(values: ArrayLike, n_rows: int, name: str) -> NDArray[np.float64]:
    """Return `values` as float64 (n_rows,), each finite and ≥ 0; a scalar stands for every row.

    Raises
    ------
    ValueError
        If the shape or a value is wrong; names `name` and the row.
    """
    weights: NDArray[np.float64] = real_array(values, name)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), one per row, got {weights.shape}")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name} must be finite and >= 0, got {weights[row]} in row {row}")
    tiny = weights < np.finfo(np.float64).tiny  # 1 / v would overflow
    return np.where(tiny, 0.0, weights) if tiny.any() else weights


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def as_ids(qid: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Return `qid` as a 1-d array without missing ids, of objects where types are mixed."""
    refuse_lossy(qid, "qid")
    if isinstance(qid, (list, tuple)):
        types = {type(value) for value in qid}
        if types & {list, np.ndarray}:
            _check_flat(qid, n_rows)
        ids = np.asarray(qid) if len(types) == 1 and types <= {int, float, bool} else np.empty(0)
        if len(ids) == 0 or (types == {int} and ids.dtype.kind not in "iu"):
            # NumPy would make equal strings of [1, "1"] and ["a", "a\0"], equal floats of large
            # integers, and a matrix of tuples.
            ids = np.empty(len(qid), dtype=object)
            ids[:] = qid
    else:
        ids = np.asarray(qid)
    if ids.shape != (n_rows,):
        raise _wrong_shape(ids.shape, n_rows)
    if ids.dtype.kind == "f":
        missing = np.isnan(ids)
    elif ids.dtype.kind in "mM":
        missing = np.isnat(ids)
    elif ids.dtype.kind == "O" and set(map(type, ids)) == {str}:  # as `load_letor` returns them
        return ids
    elif ids.dtype.kind == "O":
        missing = np.fromiter((_is_missing(value) for value in ids), dtype=bool, count=n_rows)
    else:
        return ids
    if missing.any():
        row = int(np.argmax(missing))
        # NumPy makes a float NaN of pandas.NA in a column of integers.
        found = getattr(getattr(qid, "dtype", None), "na_value", _plain(ids[row]))
        raise ValueError(f"qid must not be missing, got {found!r} in row {row}")
    return ids


def _check_flat(qid: list[Any] | tuple[Any, ...], n_rows: int) -> None:
    """Refuse a column or matrix of ids that came as lists, as one that came as an array."""
    try:
        shape = np.shape(qid)
    except ValueError:  # ragged: one of them is named as not hashable
        return
    if len(shape) > 1:
        raise _wrong_shape(shape, n_rows)


def _wrong_shape(shape: tuple[int, ...], n_rows: int) -> ValueError:
    return ValueError(f"qid must have shape ({n_rows},), one id per row, got {shape}")


def _is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas.NA from ids."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA == pandas.NA has no truth value
        return True


def _codes_of_objects(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number hashable ids in the order of their first row; return (codes, distinct ids)."""
    try:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(ids))}
    except TypeError:
        row, kind = next((r, type(v)) for r, v in enumerate(ids) if not _is_hashable(v))
        raise TypeError(f"qid must be hashable, got {kind.__name__} in row {row}") from None
    codes = np.fromiter(map(numbers.__getitem__, ids), dtype=np.int64, count=len(ids))
    names = np.empty(len(numbers), dtype=object)
    names[:] = list(numbers)
    return codes, names


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _offsets_from_sizes(group: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    refuse_lossy(group, "group")
    sizes = np.asarray(group)
    if sizes.ndim != 1:
        raise ValueError(f"group must be 1-d, one size per query, got shape {sizes.shape}")
    one_per_row = len(sizes) == n_rows > 1
    hint = "; one for each row looks like query ids: pass them as qid" if one_per_row else ""
    if sizes.dtype.kind not in "iu" and sizes.size:
        raise TypeError(f"group must hold integers, got {sizes.dtype}{hint}")
    wrong = (sizes < 0) | (sizes > n_rows)
    if wrong.any():
        query = int(np.argmax(wrong))
        raise ValueError(
            f"group must hold sizes >= 0 that add up to the {n_rows} rows, got {sizes[query]} for "
            f"query #{query}{hint}"
        )
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
    if offsets[-1] != n_rows:
        raise ValueError(
            f"group must add up to the {n_rows} rows, got {sizes.size} sizes that add up to "
            f"{offsets[-1]}{hint}"
        )
    return offsets
