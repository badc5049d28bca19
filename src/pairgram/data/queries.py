"""`Queries`: the rows of a data set grouped into queries, and which of their rows are equal."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

import pairgram._core as _core
from pairgram._support.arrays import is_plain, object_array, real_array, refuse_lossy
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Flags,
    Rows,
    Vector,
    called_by,
    verbatim,
    warn_caller,
)
from pairgram._support.machine import cached_property, thread_count

# Rows are compared in blocks of this many bytes.
COMPARED_BYTES = 16 << 20


def first_equal_rows(X: Any, rows: Rows, groups: Rows, others: list[Vector]) -> Rows | None:
    """Return, for every place, the first place in its group that holds an equal row.

    The result is None if no two rows of a group are equal. Rows are compared by their values, so −0
    equals 0.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
    rows : ndarray of shape (n_places,), int64
        Numbers of rows of X.
    groups : ndarray of shape (n_places,), int64
        Rows of different groups are not compared.
    others : list of ndarray of shape (n_places,)
        Further values in which rows must be equal.

    Notes
    -----
    X is read once, to multiply every row by a random vector. Only rows with equal products are
    compared.
    """
    marks = _marks(X)[rows]
    ascending = np.sort(marks)
    repeats = (ascending[1:] == ascending[:-1]).any()
    return _first_equal(X, rows, groups, [marks, *others]) if repeats else None


def _first_equal(X: Any, rows: Rows, groups: Rows, others: list[Vector]) -> Rows | None:
    """Return `first_equal_rows`, where rows that are equal have the same `others`."""
    first = np.arange(len(rows))
    order = np.lexsort((first, *others, groups))
    alike = np.ones(max(len(rows) - 1, 0), dtype=bool)
    for values in (*others, groups):
        alike &= values[order[1:]] == values[order[:-1]]
    runs = np.cumsum(np.concatenate(([0], ~alike)))  # a number for each run of rows to compare
    pending = np.flatnonzero(np.concatenate((alike, [False])) | np.concatenate(([False], alike)))
    while len(pending):
        starts = np.concatenate(([True], runs[pending[1:]] != runs[pending[:-1]]))
        leaders = pending[np.maximum.accumulate(np.where(starts, np.arange(len(pending)), 0))]
        same = _equal(X, rows[order[pending]], rows[order[leaders]])
        first[order[pending[same]]] = order[leaders[same]]
        pending = pending[~same]  # these rows have equal marks, but differ
    return None if (first == np.arange(len(rows))).all() else first


def _marks(X: Any) -> Vector:
    """Return the product of each row with a random vector: equal rows have equal products."""
    vector = _random_vector(X.shape[1])
    if not scipy.sparse.issparse(X):
        return _core.score_rows(X, vector, thread_count())
    ordered = X if X.has_sorted_indices else X.sorted_indices()  # all sums are in one order
    return ordered @ vector


@lru_cache(maxsize=16)
def _random_vector(n: int) -> Vector:
    vector = np.random.default_rng(0).uniform(0.5, 1.0, n)
    vector.flags.writeable = False
    return vector


def _equal(X: Any, a: Rows, b: Rows) -> Flags:
    """Tell for which i the rows a[i] and b[i] of X have the same values."""
    out = np.empty(len(a), dtype=bool)
    step = max(1, COMPARED_BYTES // (8 * max(1, X.shape[1])))
    for begin in range(0, len(a), step):
        part = slice(begin, begin + step)
        if scipy.sparse.issparse(X):
            differences = X[a[part]] != X[b[part]]
            out[part] = np.diff(differences.indptr) == 0
        else:
            out[part] = (X[a[part]] == X[b[part]]).all(axis=1)
    return out


CROSS_VALIDATION = "sklearn.model_selection"

# More rows than this are seldom meant to be one query, so there is a warning.
# In scikit-learn's cross-validation ids are easily lost: fewer rows are enough.
MANY_ROWS, MANY_IN_FOLDS = 1000, 20
_one_query_meant: ContextVar[bool] = ContextVar("one_query_meant", default=False)


class MissingQueryWarning(UserWarning):
    """Query ids have not reached an estimator that compares rows within queries.

    The warning is issued in three cases:

    - `fit` of a model of pairs within queries gets more than 1,000 rows without `qid`, or more than
      20 in scikit-learn's cross-validation. They are then a single query, and all of its rows are
      compared;
    - `evaluate` gets more than 1,000 rows without ids, with a metric of result lists, such as NDCG;
    - scikit-learn's cross-validation has ids but does not pass them on. Either `QueryKFold` gets
      ``groups``, which the estimator does not get, or `fit` gets ``qid`` and the scorer does not.
    """


@contextmanager
def one_query_meant() -> Iterator[None]:
    """Within this context, rows without ids are one query without a `MissingQueryWarning`."""
    token = _one_query_meant.set(True)
    try:
        yield
    finally:
        _one_query_meant.reset(token)


def warn_of_missing_queries(
    caller: str,
    n_rows: int,
    what: str = "all compared",
    *,
    of_table: bool = False,
) -> None:
    """Warn if rows without ids are too many to be meant as one query.

    Parameters
    ----------
    caller : str
        The name of the function that got the rows.
    n_rows : int
    what : str
        What the function does with the rows of a query, for the message.
    of_table : bool
        Whether the rows are those of a table.
    """
    in_folds = n_rows > MANY_IN_FOLDS and called_by(CROSS_VALIDATION)
    if (n_rows > MANY_ROWS or in_folds) and not _one_query_meant.get():
        instead = "Pass qid, equal ids if that is meant"
        if in_folds:
            instead = (
                "Give cross-validation params={'qid': qid}, after sklearn.set_config("
                "enable_metadata_routing=True), or the ranker pairs=Pairs(scope='global') if that "
                "is meant"
            )
        if of_table:
            instead = "Give scan qid=, or a column of equal ids if that is meant"
        warn_caller(
            f"{caller} got {n_rows} rows without qid: they are one query, whose rows are "
            f"{what}. {instead}",
            MissingQueryWarning,
        )


def refuse_score_without_ids(estimator: object) -> NoReturn:
    """Raise the ValueError for a ranker that was fitted with ids and is scored without.

    scikit-learn's cross-validation turns errors into NaN, so a `MissingQueryWarning` says the same
    there.
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
    """The rows of a data set, grouped into queries.

    Query q holds the rows ``order[offsets[q]:offsets[q + 1]]``, or ``offsets[q]:offsets[q + 1]`` if
    `order` is None. Rows of a query keep the caller's order. Queries stand in the order of their
    first rows.

    Attributes
    ----------
    offsets : ndarray of shape (n_queries + 1,), int64
    order : ndarray of shape (n_rows,), int64, or None
        None if the rows of every query already stand together.
    ids : ndarray of shape (n_queries,) or None
        The caller's ids. None if there were none.
    """

    offsets: Rows
    order: Rows | None = None
    ids: AnyArray | None = None

    @classmethod
    def make(
        cls,
        n_rows: int,
        *,
        qid: ArrayLike | None = None,
        name: str = "qid",
    ) -> Queries:
        """Group `n_rows` rows by ids. Without, they are one query.

        Parameters
        ----------
        n_rows : int
        qid : array-like of shape (n_rows,), any hashable dtype, or None
            Rows with equal ids form a query, wherever they stand.
        name : str
            What messages call the ids.

        Raises
        ------
        ValueError
            If an id is missing (None, NaN), or if the lengths disagree.
        TypeError
            If an id is not hashable.

        Notes
        -----
        The time is O(n) if the rows of every query stand together. Otherwise rows are sorted by a
        stable sort in O(n log n).
        """
        if qid is None:
            return cls(np.array([0, n_rows], dtype=np.int64))
        ids = as_ids(qid, n_rows, name)
        return cls._of_objects(ids, name) if ids.dtype.kind == "O" else cls._from_ids(ids)

    @classmethod
    def _of_objects(cls, ids: AnyArray, name: str) -> Queries:
        codes, names = codes_of_objects(ids, name)
        found = cls._from_ids(codes)
        return replace(found, ids=names[found.ids])

    @classmethod
    def of_sizes(cls, sizes: Rows, ids: AnyArray | None = None) -> Queries:
        """Group rows by sizes of which nothing is wrong, with the ids of the queries if any."""
        return cls(np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))), None, ids)

    @classmethod
    def _from_ids(cls, ids: AnyArray) -> Queries:
        n_rows = len(ids)
        if n_rows == 0:
            return cls(np.zeros(1, dtype=np.int64), ids=ids)
        begins = np.ones(n_rows + 1, dtype=bool)
        np.not_equal(ids[1:], ids[:-1], out=begins[1:-1])
        bounds = begins.nonzero()[0].astype(np.int64, copy=False)
        run_ids = ids[bounds[:-1]]
        if ids.dtype.kind in "iu" and (run_ids[1:] > run_ids[:-1]).all():  # no id has two runs
            return cls(bounds, ids=run_ids)
        return cls._of_runs(run_ids, bounds)

    @classmethod
    def _of_runs(cls, run_ids: AnyArray, bounds: Rows) -> Queries:
        """Join runs of rows with equal ids, which begin at `bounds`."""
        numbers = run_ids
        if numbers.dtype != np.int64:
            _, numbers = np.unique(run_ids, return_inverse=True)
        first, offsets, order = _core.group_runs(np.ascontiguousarray(numbers), bounds)
        return cls(offsets, None if len(first) == len(run_ids) else order, run_ids[first])

    @property
    def n_queries(self) -> int:
        """The number of queries, including those without rows."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])

    @cached_property
    def sizes(self) -> Rows:
        """The number of rows of every query, shape (n_queries,)."""
        return self.offsets[1:] - self.offsets[:-1]

    @cached_property
    def n_filled(self) -> int:
        """The number of queries that have rows."""
        return int(np.count_nonzero(self.sizes))

    def rows(self, query: int) -> Rows | slice:
        """Return the slice or the numbers of the caller's rows of one query."""
        begin, end = int(self.offsets[query]), int(self.offsets[query + 1])
        return slice(begin, end) if self.order is None else self.order[begin:end]

    def index(self) -> Rows:
        """Return, for every row in the caller's order, the number of its query: (n_rows,)."""
        return self._index

    @cached_property
    def _index(self) -> Rows:
        grouped = np.repeat(np.arange(self.n_queries), self.sizes)
        if self.order is None:
            return grouped
        index = np.empty_like(grouped)
        index[self.order] = grouped
        return index

    def first_rows(self) -> Rows:
        """Return, for every row, the number of the first row of its query."""
        first = self.offsets[self.index()]
        return first if self.order is None else self.order[first]

    def starts(self) -> Rows:
        """Return the number of the first row of every query, all of which have rows."""
        first = self.offsets[:-1]
        return first if self.order is None else self.order[first]

    def grouped(self, values: AnyArray) -> AnyArray:
        """Return values of rows (n_rows, …), reordered so that rows of a query stand together."""
        return values if self.order is None else values[self.order]

    def per_query(self, values: ArrayLike, name: str) -> Vector:
        """Return the value of every query, given values of rows that are constant within queries.

        Raises
        ------
        ValueError
            If two rows of a query differ, or if the length or a value is wrong. The message has
            `name`.
        """
        rows = check_weights(values, self.n_rows, name)
        return self._of_each(rows, 1.0, name, np.asarray)

    def groups(self, values: ArrayLike, name: str = "groups") -> tuple[Rows, list[Any]]:
        """Return the number of the group of every query, (n_queries,), and the ids of the groups.

        The values are ids for every row. Groups are numbered in the order of their ids, or in that
        of their first rows if the ids have no order.

        Raises
        ------
        ValueError
            If an id is missing, if the length is wrong, or if two rows of a query have different
            ids.
        """
        found = Queries.make(self.n_rows, qid=values, name=name)
        assert found.ids is not None
        ids = plain_ids(found.ids)
        try:
            order = sorted(range(len(ids)), key=ids.__getitem__)
        except TypeError:
            order = list(range(len(ids)))
        ids, rows = [ids[number] for number in order], np.argsort(order)[found.index()]
        return self._of_each(rows, 0, name, lambda number: repr(ids[int(number)])), ids

    def _of_each(
        self, rows: AnyArray, otherwise: float, name: str, shown: Callable[[Any], object]
    ) -> AnyArray:
        """Return the value of every query, of which all rows must have the same."""
        grouped = self.grouped(rows)
        out = np.full(self.n_queries, otherwise, rows.dtype)
        filled = self.sizes > 0
        out[filled] = grouped[self.offsets[:-1][filled]]
        differs = grouped != np.repeat(out, self.sizes)
        if differs.any():
            at = int(np.argmax(differs))
            row = at if self.order is None else int(self.order[at])
            query = int(np.searchsorted(self.offsets, at, side="right")) - 1
            text = f"{{place}} has {verbatim(shown(rows[row]))}, but its query "
            text += verbatim(f"{self.name(query)} began with {shown(out[query])}")
            raise ArgumentError(name, f"must be constant within a query: {text}", row=row)
        return out

    def name(self, query: int) -> str:
        """Return the name of a query for error messages: its id, or its number from 0."""
        return f"#{query}" if self.ids is None else repr(plain(self.ids[query]))


def check_weights(values: ArrayLike, n_rows: int, name: str) -> Vector:
    """Return `values` as float64 (n_rows,), after checking that all are finite and ≥ 0.

    A scalar stands for every row. Subnormal values become 0.

    Raises
    ------
    ValueError
        If the shape or a value is wrong. The message has `name` and the row.
    """
    weights = real_array(values, name)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ArgumentError(name, f"must have shape ({n_rows},), one per row, got {weights.shape}")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ArgumentError(
            name, f"must be finite and >= 0, got {weights[row]} in {{place}}", row=row
        )
    tiny = weights < np.finfo(np.float64).tiny  # 1 / v would overflow
    return np.where(tiny, 0.0, weights) if tiny.any() else weights


def plain(value: object) -> Any:
    """Return a number or text of NumPy as Python's; its times stay as they are."""
    is_time = isinstance(value, (np.datetime64, np.timedelta64))
    return value.item() if isinstance(value, np.generic) and not is_time else value


def as_ids(qid: ArrayLike, n_rows: int, name: str = "qid") -> AnyArray:
    """Return ids as `read_ids` does, after a check that none is missing: None, NaN, NaT or NA."""
    if type(qid) is np.ndarray and qid.dtype.kind in "iu" and qid.shape == (n_rows,):
        return qid  # as most ids are
    return _without_missing(read_ids(qid, n_rows, name), n_rows, name)


def _without_missing(ids: AnyArray, n_rows: int, name: str) -> AnyArray:
    """Return ids after a check that none is missing."""
    if ids.dtype.kind in "fc":
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
        raise ArgumentError(
            name,
            f"must not be missing, got {verbatim(repr(plain(ids[row])))} in {{place}}",
            row=row,
        )
    return ids


def read_ids(qid: ArrayLike, n_rows: int, name: str = "qid") -> AnyArray:
    """Return ids as an array of shape (n_rows,) in which different ones stay different.

    This is the only way in which the package reads ids, so that they are the same queries for all
    of its functions. Mixed types become an object array. `name` is what messages call the ids.
    """
    if not is_plain(qid):
        refuse_lossy(qid, name)
    if isinstance(qid, (list, tuple)):
        types = {type(value) for value in qid}
        ids = np.asarray(qid) if len(types) == 1 and types <= {int, float, bool} else np.empty(0)
        if len(ids) == 0 or (types == {int} and ids.dtype.kind not in "iu"):
            # NumPy would turn [1, "1"] and ["a", "a\0"] into equal strings, large integers into
            # equal floats, and tuples into a matrix.
            ids = object_array(qid)
    elif _has_nulls(qid):  # with which NumPy would turn large integers into equal floats
        ids = _python_objects(qid)
    else:
        ids = np.asarray(qid)
        if ids.dtype.kind == "U" and not isinstance(getattr(qid, "dtype", np.dtype("U")), np.dtype):
            # A column of polars: NumPy's text of one width would lose a null character at its end.
            ids = _python_objects(qid)
    if ids.shape != (n_rows,):
        text = ": give the column of ids itself, not its name" if ids.shape == () else ""
        text = f"must have shape ({n_rows},), one id per row, got {ids.shape}{text}"
        raise ArgumentError(name, text)
    if hasattr(ids.dtype, "na_object"):  # texts of NumPy that may be missing
        ids = ids.astype(object)
    return ids


def _has_nulls(column: Any) -> bool:
    """Tell whether a column of polars or pyarrow, or of a type of pandas, has missing values."""
    if hasattr(getattr(column, "dtype", None), "na_value"):  # pandas
        return bool(column.isna().any())
    count = getattr(column, "null_count", None)
    count = count() if callable(count) else count
    return isinstance(count, int) and count > 0  # frames have a count for every column


def _python_objects(column: Any) -> NDArray[np.object_]:
    """Return the values of a column as an array of objects, which may be missing."""
    return object_array(column.to_pylist() if hasattr(column, "to_pylist") else column)


def plain_ids(ids: AnyArray) -> list[Any]:
    """Return ids as Python objects. Times stay NumPy's, else they would become integers."""
    return list(ids) if ids.dtype.kind in "mM" else [plain(one) for one in ids.tolist()]


# From when times with a time zone are counted.
START = datetime(1970, 1, 1, tzinfo=UTC)
# The length of every time unit of fixed length, in attoseconds, which are NumPy's finest unit.
ATTOSECONDS = {
    "as": 1,
    "fs": 10**3,
    "ps": 10**6,
    "ns": 10**9,
    "us": 10**12,
    "ms": 10**15,
    "s": 10**18,
    "m": 60 * 10**18,
    "h": 3600 * 10**18,
    "D": 86400 * 10**18,
    "W": 7 * 86400 * 10**18,
}


def comparable_id(value: object) -> Any:
    """Return a number or text as Python's, and a time as `comparable` does."""
    if not isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)):
        return plain(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return "z", *comparable_id(value - START)
    # NumPy would drop the nanoseconds of pandas, which `to_numpy` keeps.
    given: Any = value.to_numpy() if hasattr(value, "to_numpy") else value
    if not isinstance(given, np.generic):
        given = np.asarray(given, f"{'m' if isinstance(given, timedelta) else 'M'}8[us]")
    return comparable(np.atleast_1d(given))[0]


def comparable(ids: AnyArray) -> list[Any]:
    """Return ids in a form in which equal times are equal, whatever their units and types are."""
    if ids.dtype.kind not in "mM":
        return [*map(comparable_id, ids)] if ids.dtype.kind == "O" else ids.tolist()
    kind, (unit, step) = ids.dtype.kind, np.datetime_data(ids.dtype)
    if kind == "M" and unit in "YM":
        return comparable(ids.astype("M8[D]"))
    size = ATTOSECONDS.get(unit)
    form = kind if size else kind + unit
    return [(form, n * step * (size or 1)) for n in ids.astype(np.int64).tolist()]


def id_texts(ids: ArrayLike, n_rows: int, name: str) -> list[str]:
    """Return ids as texts, by which files and runs know them. A whole float is an integer.

    Raises
    ------
    ValueError
        As `as_ids`, and if different ids have the same text.
    """
    checked = as_ids(ids, n_rows, name)
    if set(map(type, checked)) == {str}:
        return list(checked)
    queries = Queries.make(n_rows, qid=checked, name=name)
    assert queries.ids is not None
    known: dict[str, Any] = {}
    for one in plain_ids(queries.ids):
        text = str(int(one) if isinstance(one, float) and one.is_integer() else one)
        if text in known:
            raise ArgumentError(
                name,
                verbatim(
                    f"must have different texts, got {known[text]!r} and {one!r}, which are "
                    "different ids"
                ),
            )
        known[text] = one
    texts = list(known)
    return [texts[query] for query in queries.index().tolist()]


def _is_missing(value: object) -> bool:
    """Tell whether an id is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA == pandas.NA has no truth value
        return True


def codes_of_objects(ids: AnyArray, name: str) -> tuple[Rows, AnyArray]:
    """Number hashable ids in the order of their first rows; return (numbers, distinct ids)."""
    numbers: dict[Any, int] = defaultdict(itertools.count().__next__)
    try:
        codes = np.fromiter(map(numbers.__getitem__, ids), dtype=np.int64, count=len(ids))
    except TypeError:
        row, kind = next((r, type(v)) for r, v in enumerate(ids) if not _is_hashable(v))
        raise TypeError(f"{name} must be hashable, got {kind.__name__} in row {row}") from None
    return codes, object_array(numbers)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
