"""What is found out about a table before fits, and the ids that passes have seen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from sklearn.utils.sparsefuncs import min_max_axis

import pairgram._core as _core
from pairgram._support import machine as memory
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Rows,
    Vector,
    first_not_finite,
    require_finite,
    verbatim,
)
from pairgram._support.files import shown
from pairgram._support.machine import cached_property, thread_count
from pairgram.data.hashed_ids import IdSet, hash_ids, mix
from pairgram.data.queries import Queries
from pairgram.tables.columns import (
    Columns,
    Place,
    TableRows,
    changed,
    placed_error,
    shown_id,
    together,
)

if TYPE_CHECKING:
    import pyarrow.dataset


@dataclass(frozen=True, eq=False)
class SeenFiles:
    """Files, and the sizes and times of change that their file systems tell.

    Attributes
    ----------
    files : tuple of (pyarrow.fs.FileSystem or None, tuple of str)
        File systems, None for this machine, and the paths there.
    marks : list of (int or None, int or None)
        The size of every file in bytes, None for one that is missing, and when it changed.
    """

    files: tuple[tuple[Any, tuple[str, ...]], ...]
    marks: list[tuple[Any, Any]]

    @classmethod
    def of(cls, paths: Sequence[str]) -> Self:
        """Return what is known now of files on this machine."""
        files = ((None, tuple(paths)),)
        return cls(files, _marks(files))

    @classmethod
    def of_dataset(cls, dataset: pyarrow.dataset.Dataset) -> Self:
        """Return what is known now of the files of a pyarrow dataset, and of those that it unites.

        A dataset of rows in memory has no files.
        """
        files = tuple(_files_of(dataset))
        return cls(files, _marks(files))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Within this context, the files are read, which must be the same at its end.

        Of a file that has changed, this is the error, whatever else went wrong in reading it.

        Raises
        ------
        ValueError
            If a file has changed. The message names it.
        """
        try:
            yield
        except Exception as error:
            found = None
            with suppress(OSError):
                found = self._changed()
            if found is not None:
                raise found from error
            raise
        found = self._changed()
        if found is not None:
            raise found

    def _changed(self) -> ValueError | None:
        paths = (path for _, some in self.files for path in some)
        for path, before, after in zip(paths, self.marks, _marks(self.files), strict=True):
            if before == after:
                continue
            if after[0] is None:
                return changed(f"{shown(path)} no longer exists")
            if before[0] != after[0]:
                return changed(f"{shown(path)} had {before[0]} bytes, and has {after[0]}")
            return changed(f"{shown(path)} was written again")
        return None


NO_FILES = SeenFiles((), [])


def _files_of(dataset: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield the file systems of a dataset, and the paths there."""
    yield getattr(dataset, "filesystem", None), tuple(getattr(dataset, "files", ()))
    for child in getattr(dataset, "children", ()):
        yield from _files_of(child)


def _marks(files: tuple[tuple[Any, tuple[str, ...]], ...]) -> list[tuple[Any, Any]]:
    """Return the sizes of files, and when they changed."""
    marks: list[tuple[Any, Any]] = []
    for filesystem, paths in files:
        if filesystem is None:
            for path in paths:
                try:
                    found = os.stat(path)
                except FileNotFoundError:
                    marks.append((None, None))
                else:
                    marks.append((found.st_size, found.st_mtime_ns))
            continue
        of_fsspec: Any = getattr(getattr(filesystem, "handler", None), "fs", None)
        if hasattr(of_fsspec, "invalidate_cache"):
            of_fsspec.invalidate_cache()
        infos = filesystem.get_file_info(list(paths))
        marks += ((info.size, info.mtime_ns) for info in infos)
    return marks


def require_finite_rows(columns: Columns, names: tuple[str, ...], rows: TableRows) -> int:
    """Raise a ValueError that names the row and the column of an infinite feature.

    `names` are what messages call the partitions.
    """
    found = first_not_finite(rows.X)
    if found is not None:
        what, row, column = found
        number = rows.partition
        name = names[number] if number < len(names) else f"partition {number}"
        place = Place(name, number, rows.first).row(row)
        raise placed_error(f"{place}: column {columns.name_of(column)} must be finite, got {what}")
    return 0


class Moments(NamedTuple):
    """Moments of columns from which inputs are scaled, (n_features,) each, and the rows' weight."""

    lowest: Vector
    highest: Vector
    pivot: Vector  # a row; without it, a large offset would cost the digits of the mean
    mean_less_pivot: Vector
    squares: Vector  # of differences from the mean
    weight: float

    @property
    def mean(self) -> Vector:
        """The weighted means, (n_features,)."""
        return self.pivot + self.mean_less_pivot

    @classmethod
    def of(cls, rows: TableRows) -> Moments:
        """Return the moments of some rows. Rows of weight 0 are as if absent.

        Of sparse rows, which keep their zeros, only the lowest and the highest values are known.
        """
        if scipy.sparse.issparse(rows.X):
            require_finite(rows.X, "X")
            counted = rows.X if rows.weights is None else rows.X[rows.weights > 0]
            none, weight = np.zeros(rows.X.shape[1]), float(counted.shape[0])
            lowest, highest = min_max_axis(counted, axis=0) if weight else (none, none)
            return cls(lowest, highest, none, none, none, weight)
        found = _core.column_moments(rows.X, rows.weights, thread_count())
        weight = float(rows.n_rows if rows.weights is None else rows.weights.sum())
        if not np.isfinite(found[-1]).all():
            require_finite(rows.X, "X")
        lowest, highest, pivot, mean, squares = found
        return cls(lowest, highest, pivot, mean, squares, weight)

    def join(self, other: Moments) -> Moments:
        """Return the moments of the rows of both, by Chan's formula."""
        if self.weight == 0 or other.weight == 0:
            return other if self.weight == 0 else self
        weight = self.weight + other.weight
        difference = other.pivot - self.pivot + (other.mean_less_pivot - self.mean_less_pivot)
        share = other.weight / weight
        return Moments(
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.pivot,
            self.mean_less_pivot + share * difference,
            self.squares + other.squares + self.weight * share * difference**2,
            weight,
        )


# Rows are read into memory if this many copies fit: the parts, the whole, and one in a fit.
COPIES = 3


class Loaded(NamedTuple):
    """Rows of a table in memory, as long as they fit there.

    Attributes
    ----------
    parts : list of TableRows or None
        None if they do not fit.
    n_bytes : float
        The bytes of the features.
    """

    parts: list[TableRows] | None
    n_bytes: float

    @classmethod
    def of(cls, rows: TableRows) -> Loaded:
        """Keep some rows, if they fit. Sparse ones must be finite."""
        if scipy.sparse.issparse(rows.X):
            require_finite(rows.X, "X")
        return cls([], 0.0).join(cls([rows.own()], rows.n_bytes))

    def join(self, other: Loaded) -> Loaded:
        """Keep the rows of both, if they fit."""
        n_bytes = self.n_bytes + other.n_bytes
        if self.parts is None or other.parts is None or not memory.fits(COPIES * n_bytes):
            return Loaded(None, n_bytes)
        return Loaded([*self.parts, *other.parts], n_bytes)


class Drawn(NamedTuple):
    """Rows that were drawn, in the order of their numbers.

    Attributes
    ----------
    numbers : ndarray of shape (n_rows,), int64
        The numbers of the rows in the table.
    rows : TableRows
        Their ids are not kept: all rows are one run.
    """

    numbers: Rows
    rows: TableRows


def drawn_of(
    size: int,
    before: tuple[int, ...],
    with_gaps: bool,
    rows: TableRows,
) -> Drawn:
    """Draw the `size` rows with the smallest hashes of their numbers.

    All rows must be finite, unless they may have gaps.

    The draw depends on the order of the rows alone, not on the partitions: `before` are the
    numbers of rows before each.
    """
    if not with_gaps:
        require_finite(rows.X, "X")
    numbers = before[rows.partition] + rows.first + np.arange(rows.n_rows)
    return _smallest(size, numbers, replace(rows, ids=None))


def join_drawn(size: int, first: Drawn, second: Drawn) -> Drawn:
    """Return those that are drawn of both."""
    numbers = np.concatenate([first.numbers, second.numbers])
    return _smallest(size, numbers, together([first.rows, second.rows]))


def _smallest(size: int, numbers: Rows, rows: TableRows) -> Drawn:
    if len(numbers) > size:
        hashes = mix(numbers.astype(np.uint64))
        kept = np.sort(np.argpartition(hashes, size - 1)[:size])
        numbers = numbers[kept]
        rows = rows.changed(lambda values: values[kept])
    return Drawn(numbers, replace(rows, sizes=np.array([len(numbers)])))


# Weights of labels are remembered for at most this many different labels.
MOST_LEVELS = 1024
# What messages call query ids, by the kind of NumPy's type, or by the type of an object.
KINDS = {"M": "times", "m": "durations"} | dict.fromkeys("biuf", "numbers")
KINDS |= dict.fromkeys("UT", "text")
KINDS_OF_OBJECTS = (
    (str, "text"),
    (date, "times"),
    (np.datetime64, "times"),
    (np.timedelta64, "durations"),
    ((Real, Decimal), "numbers"),
)


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of a table without its features.

    Attributes
    ----------
    n_rows : int
    n_queries : int
    lowest, highest : float
        The range of the labels.
    fraction : float or None
        A label that is no whole number; None if there is none.
    levels, level_weights : ndarray of shape (n_levels,), or None
        The different labels, ascending, and the sum of the weights of their rows. None if there
        are more than `MOST_LEVELS`.
    hashes : IdSet
        The hashes of all query ids.
    kinds : dict of str to int
        What the query ids are, and the number of a partition that has such ids.
    parts : tuple of ndarray of int64
        The places of the first rows of the queries, in any order; see `begins`.
    scattered : int or None
        The hash of a query whose rows do not stand together.
    groups : tuple of ndarray
        The ids of the groups of the queries, as `parts` has their places.
    """

    n_rows: int
    n_queries: int
    lowest: float
    highest: float
    fraction: float | None
    levels: Vector | None
    level_weights: Vector | None
    hashes: IdSet
    kinds: dict[str, int]
    parts: tuple[Rows, ...]
    scattered: int | None = None
    groups: tuple[AnyArray, ...] = ()

    @cached_property
    def group_of(self) -> Rows | None:
        """The number of the group of every query, in the order of `begins`; None without groups."""
        if not self.groups:
            return None
        order = np.argsort(np.concatenate(self.parts))
        each = Queries.of_sizes(np.ones(len(order), np.int64))
        return each.groups(np.concatenate(self.groups)[order])[0]

    @cached_property
    def begins(self) -> Rows:
        """The places of the first rows of all queries, ascending, (n_queries,).

        This is the order of the queries, which rows in memory know without being read.
        """
        return np.sort(np.concatenate(self.parts))

    @property
    def labels(self) -> Vector:
        """A few labels that a metric accepts only if it accepts all of the table."""
        ends = [self.lowest, self.highest]
        return np.array(ends if self.fraction is None else [*ends, self.fraction])

    @classmethod
    def of(cls, rows: TableRows) -> Survey:
        """Return the survey of some rows of whole queries."""
        n_rows = rows.n_rows
        y = np.zeros(n_rows) if rows.y is None else rows.y
        weights = np.ones(n_rows) if rows.weights is None else rows.weights
        levels, numbers = np.unique(y, return_inverse=True)
        few = len(levels) <= MOST_LEVELS
        hashes, scattered = IdSet(), None
        if rows.ids is not None:
            found = hash_of_runs(rows)
            distinct, counts = np.unique(found, return_counts=True)
            hashes = IdSet.of(distinct)
            if (counts > 1).any():
                scattered = int(distinct[np.argmax(counts > 1)])
        fractions = levels[levels != np.rint(levels)]
        return cls(
            n_rows,
            len(rows.sizes),
            float(y.min()),
            float(y.max()),
            float(fractions[0]) if len(fractions) else None,
            levels if few else None,
            _sums(numbers, weights, len(levels)) if few else None,
            hashes,
            dict.fromkeys(kinds_of_ids(rows.ids), rows.partition),
            (rows.begins,),
            scattered,
            () if rows.groups is None else (_groups_of_runs(rows),),
        )

    def join(self, other: Survey) -> Survey:
        """Return the survey of the rows of both."""
        shared = other.hashes.array()
        shared = shared[self.hashes.contains(shared)]
        scattered = self.scattered if self.scattered is not None else other.scattered
        rest = other.hashes
        if len(shared):
            scattered = int(shared[0]) if scattered is None else scattered
            rest = rest.without(IdSet.of(shared))
        return replace(
            _with_levels(self, other),
            n_rows=self.n_rows + other.n_rows,
            n_queries=self.n_queries + other.n_queries,
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
            fraction=other.fraction if self.fraction is None else self.fraction,
            hashes=self.hashes.union(rest),
            kinds=other.kinds | self.kinds,
            parts=self.parts + other.parts,
            groups=self.groups + other.groups,
            scattered=scattered,
        )


def _groups_of_runs(rows: TableRows) -> AnyArray:
    """Return the id of the group of every query; a query in two groups is an error."""
    assert rows.groups is not None
    first = rows.groups[np.cumsum(rows.sizes) - rows.sizes]
    differs = rows.groups != np.repeat(first, rows.sizes)
    if differs.any():
        row = int(np.argmax(differs))
        run = int(np.searchsorted(np.cumsum(rows.sizes), row, side="right"))
        query = "the only query" if rows.ids is None else f"query {shown_id(rows.ids[run:])}"
        found, before = shown_id(rows.groups[row:]), shown_id(first[run:])
        text = f"must be constant within a query: {query} has {found} after {before}"
        raise ArgumentError("groups", verbatim(text))
    return first


def _with_levels(first: Survey, second: Survey) -> Survey:
    if first.levels is None or second.levels is None:
        return replace(first, levels=None, level_weights=None)
    assert first.level_weights is not None and second.level_weights is not None
    together = np.concatenate([first.levels, second.levels])
    levels, numbers = np.unique(together, return_inverse=True)
    if len(levels) > MOST_LEVELS:
        return replace(first, levels=None, level_weights=None)
    both = np.concatenate([first.level_weights, second.level_weights])
    weights = _sums(numbers, both, len(levels))
    return replace(first, levels=levels, level_weights=weights)


def _sums(numbers: Rows, weights: Vector, n_levels: int) -> Vector:
    return np.bincount(numbers, weights, minlength=n_levels).astype(np.float64)


def kinds_of_ids(ids: AnyArray | None) -> set[str]:
    """Return what query ids are. Ids of different kinds are never equal."""
    if ids is None:
        return {"absent"}
    if ids.dtype.kind != "O":
        return {KINDS.get(ids.dtype.kind, ids.dtype.name)}
    return {
        next((name for types, name in KINDS_OF_OBJECTS if issubclass(one, types)), one.__name__)
        for one in set(map(type, ids))
    }


def hash_of_runs(rows: TableRows) -> Any:
    """Return the hash of the query id of every run, (n_runs,), uint64."""
    assert rows.ids is not None
    hashes, known = hash_ids(rows.ids)
    if not known.all():
        found = rows.ids[int(np.argmin(known))]
        raise ValueError(
            f"query ids of a table must be numbers, text or times, got {type(found).__name__}"
        )
    return hashes


def ids_with(number: int, rows: TableRows) -> Any:
    """Return the query id that has a hash, in an array; it is empty if no row has the id."""
    assert rows.ids is not None
    return rows.ids[hash_of_runs(rows) == np.uint64(number)][:1]


def first_found(first: AnyArray, second: AnyArray) -> Any:
    """Return the first of two results of `ids_with` that is not empty."""
    return first if len(first) else second
