"""`DataSets`: the many data sets that `fit_many` is given, as rows with keys or as a list."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram._support.arrays import (
    column_names,
    index_columns,
    is_ready,
    read_rows,
    real_array,
    select_columns,
    take_rows,
)
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries, as_ids, check_weights
from pairgram.solvers.group_fits import RowSets, one_array


class FittedSets(NamedTuple):
    """The models of many sets of rows.

    Attributes
    ----------
    coefs : ndarray of shape (n_models, n_coefficients)
        NaN where a set has no model.
    own : dict of str to ndarray of shape (n_models,)
        Attributes of single models.
    shared : dict
        The attributes of all.
    states : ndarray of shape (n_models,), int8
        `SOLVED`, a state of `reasons`, or another where a fit alone is needed.
    reasons : dict of int to callable
        Why sets of such a state have no model, by their number of rows.
    """

    coefs: Vector
    own: dict[str, Any]
    shared: dict[str, Any]
    states: Any
    reasons: Mapping[int, Callable[[int], Exception]]


@dataclass(frozen=True, eq=False)
class DataSets:
    """Checked data sets, of which each has a key or, with several targets, one for each.

    Attributes
    ----------
    keys : ndarray of shape (n_models,)
    names : ndarray of shape (n_features,) of str, or None
    given : array-like, frame or CSR matrix
        The rows of all sets as the caller gave them, but for columns that are no features.
    X : array or CSR matrix of all rows, or list of an array for each set
    y : ndarray of shape (n_rows,), or list of ndarrays of shape (n_rows,) or (n_rows, n_targets)
    told : dict of str to ndarray or list of such
        The arguments of `fit` besides, of all rows or of each set.
    queries : Queries
        The queries of all sets, one set after the other.
    bounds : ndarray of shape (n_sets + 1,), int64
        The first query of every set.
    by_key : Queries or None
        The rows of every set, if X is no list.
    n_targets : ndarray of shape (n_sets,), int64, or None
        None stands for one each.
    places : ndarray of shape (n_models,), int64, or None
        Which key every target belongs to, if they do not stand in the order of the keys.
    """

    keys: NDArray[Any]
    names: NDArray[Any] | None
    X: Any
    y: Any
    told: dict[str, Any]
    queries: Queries
    bounds: NDArray[np.int64]
    by_key: Queries | None = None
    given: Any = None
    n_targets: NDArray[np.int64] | None = None
    places: Rows | None = None

    @classmethod
    def of(cls, X: Any, y: Any, by: Any, told: dict[str, Any]) -> Self:
        """Read what a caller gives."""
        if isinstance(X, (list, tuple)) and y is None:
            given = next((name for name, value in told.items() if value is not None), None)
            if given is not None:
                raise ArgumentError(given, "must be None beside a list of (X, y) or (X, y, qid)")
            return cls._of_list(X, by)
        columns = {"y": y, "by": by, **told}
        if X is None or isinstance(X, str):
            raise TypeError(f"X must be rows of numbers, or a list of (X, y), got {X!r}")
        named = {name: value for name, value in columns.items() if isinstance(value, str)}
        frame_names = column_names(X) if named else None
        if named:
            if frame_names is None:
                name = next(iter(named))
                raise ArgumentError(
                    name,
                    "is the name of a column, so X must be a frame of pandas or polars, or a "
                    "pyarrow table",
                )
            columns |= {name: select_columns(X, value, name) for name, value in named.items()}
            hidden = {*named.values(), *index_columns(X)}
            X = select_columns(X, [name for name in frame_names if name not in hidden], "X")
        if columns["y"] is None:
            kind = type(X).__name__
            raise ArgumentError(
                "y", f"must hold labels, or X be a list of (X, y) or (X, y, qid), got {kind} as X"
            )
        names = None if type(X) is np.ndarray else column_names(X)
        rows = X if is_ready(X, 2) and X.flags.c_contiguous else read_rows(X, "X")
        labels = real_array(columns.pop("y"), "y")
        if labels.shape[:1] != rows.shape[:1]:
            raise ArgumentError(
                "y",
                f"must have a label for each of the {rows.shape[0]} rows of X, got {len(labels)}",
            )
        known = None if names is None else np.array(names, dtype=object)
        keys = columns.pop("by")
        if labels.ndim == 2:
            if keys is not None:
                raise ArgumentError("by", "must be None for several targets, which are the keys")
            return cls._of_targets(rows, labels, known, columns)
        if keys is None:
            raise ArgumentError(
                "by", "must have the key of every row, such as a user, or X be a list"
            )
        found = cls._of_keys(rows, labels, known, keys, columns)
        return replace(found, given=X)

    @classmethod
    def _of_keys(cls, X: Any, y: Vector, names: Any, keys: Any, told: dict[str, Any]) -> Self:
        n_rows = X.shape[0]
        for name in ("sample_weight", "query_weight"):
            if told[name] is not None:
                told[name] = check_weights(told[name], n_rows, name)
        by_key = Queries.make(n_rows, qid=keys, name="by")
        queries, bounds = by_key, np.arange(by_key.n_queries + 1)
        cls._read_ids(told, n_rows)
        if told["qid"] is not None:
            ids = Queries.make(n_rows, qid=told["qid"]).index()
            both = by_key.index() * n_rows + ids
            inner = Queries.make(n_rows, qid=by_key.grouped(both))
            order = by_key.order
            if inner.order is not None:
                order = inner.order if order is None else order[inner.order]
            queries = Queries(inner.offsets, order)
            bounds = np.searchsorted(inner.offsets, by_key.offsets)
        assert by_key.ids is not None
        return cls(by_key.ids, names, X, y, told, queries, bounds, by_key)

    @staticmethod
    def _read_ids(told: dict[str, Any], n_rows: int) -> None:
        """Let arrays take the place of ids of queries and groups."""
        for name in ("qid", "groups"):
            if told[name] is not None:
                told[name] = as_ids(told[name], n_rows, name)

    @classmethod
    def _of_list(cls, problems: Sequence[Any], keys: Any) -> Self:
        rows, labels, ids, names = _read_list(problems)
        n_rows, sizes = [X.shape[0] for X in rows], list(map(len, labels))
        if n_rows != sizes:
            number = next(i for i, size in enumerate(sizes) if size != n_rows[i])
            raise ArgumentError(
                "X",
                f": data set {number} must have a label for each of its {n_rows[number]} rows, "
                f"got {sizes[number]}",
            )
        if keys is None:
            found: NDArray[Any] = np.arange(len(rows))
        else:
            by = Queries.make(len(rows), qid=keys, name="by")
            if by.n_queries < len(rows):
                raise ArgumentError("by", "must have a different key for each data set of the list")
            assert by.ids is not None
            found = by.ids
        sets = cls._of_blocks(rows, labels, ids, found)
        if names is None:
            return sets
        given = [problem[0] for problem in problems]
        return replace(sets, names=np.array(names, dtype=object), given=given)

    @classmethod
    def _of_blocks(
        cls, rows: Any, labels: Any, ids: Any, keys: NDArray[Any], **others: Any
    ) -> Self:
        """Return a set for each of some arrays of rows, with its labels and ids."""
        sizes = np.fromiter(map(len, labels), np.int64, len(labels))
        if all(one is None for one in ids):
            queries, bounds = Queries.of_sizes(sizes), np.arange(len(sizes) + 1)
            return cls(keys, None, list(rows), list(labels), {}, queries, bounds, None, **others)
        own = [Queries.make(n, qid=one) for n, one in zip(sizes.tolist(), ids, strict=True)]
        offsets = np.concatenate(([0], np.cumsum(np.concatenate([one.sizes for one in own]))))
        starts, order = np.cumsum(sizes) - sizes, None
        if any(one.order is not None for one in own):
            orders = [np.arange(one.n_rows) if one.order is None else one.order for one in own]
            order = np.concatenate(orders) + np.repeat(starts, sizes)
        bounds = np.concatenate(([0], np.cumsum([one.n_queries for one in own])))
        told = {"qid": list(ids)}
        queries = Queries(offsets, order)
        return cls(keys, None, list(rows), list(labels), told, queries, bounds, None, **others)

    @classmethod
    def _of_targets(cls, X: Any, Y: Vector, names: Any, told: dict[str, Any]) -> Self:
        """Return one set of all rows and targets, some of which may not have been measured."""
        given = next((n for n, value in told.items() if value is not None and n != "qid"), None)
        if given is not None:
            raise ArgumentError(given, "must be None for several targets")
        if not Y.shape[1]:
            raise ArgumentError("y", "must have a column or more, got none")
        cls._read_ids(told, len(Y))
        keys, counts = np.arange(Y.shape[1]), np.array([Y.shape[1]])
        return replace(cls._of_blocks([X], [Y], [told["qid"]], keys, n_targets=counts), names=names)

    def measured(self) -> Self:
        """Return a set for the targets that were measured for the same rows, without the others."""
        if self.n_targets is None or self.places is not None:
            return self
        (X,), (Y,), (qid,) = self.X, self.y, self.told.get("qid", [None])
        gaps = np.isnan(Y)
        if not gaps.any():
            return self
        known: dict[bytes, list[int]] = {}
        for target, pattern in enumerate(np.packbits(gaps.T, axis=1)):
            known.setdefault(pattern.tobytes(), []).append(target)
        blocks, labels, ids = [], [], []
        for targets in known.values():
            some = np.flatnonzero(~gaps[:, targets[0]])
            blocks.append(X[some])
            labels.append(Y[some[:, None], targets])
            ids.append(None if qid is None else qid[some])
        counts, places = np.array([*map(len, known.values())]), np.concatenate([*known.values()])
        found = self._of_blocks(blocks, labels, ids, self.keys, n_targets=counts, places=places)
        return replace(found, names=self.names)

    @property
    def n_sets(self) -> int:
        """The number of sets; a set may have several targets."""
        return len(self.bounds) - 1

    @property
    def n_rows_of_models(self) -> Rows:
        """The number of rows that each model is fitted to, shape (n_models,)."""
        counts = 1 if self.n_targets is None else self.n_targets
        return np.repeat(np.diff(self.queries.offsets[self.bounds]), counts)

    def each_target(self) -> Self:
        """Return the sets with one target each, in the order of the keys."""
        if self.n_targets is None:
            return self
        sets = self.measured()
        assert sets.n_targets is not None
        numbers, qids = np.repeat(np.arange(sets.n_sets), sets.n_targets), sets.told.get("qid")
        labels = [np.ascontiguousarray(y) for Y in sets.y for y in Y.T]
        order = range(len(labels)) if sets.places is None else np.argsort(sets.places)
        blocks = [sets.X[numbers[i]] for i in order]
        ids = [None if qids is None else qids[numbers[i]] for i in order]
        found = self._of_blocks(blocks, [labels[i] for i in order], ids, self.keys)
        return replace(found, names=self.names)

    def row_sets(self, one_list: bool) -> RowSets | None:
        """Return what compiled code takes, each set as one query if it is `one_list`."""
        queries, bounds, listed = self.queries, self.bounds, isinstance(self.X, list)
        if one_list:
            queries = self.by_key or Queries.of_sizes(np.diff(queries.offsets[bounds]))
            bounds = np.arange(self.n_sets + 1)
        if listed:
            if not self.X:
                return None
            counts = self.n_targets
            if counts is None:
                y = flat = np.concatenate(self.y)
            else:
                y = np.zeros(queries.n_rows)  # on which no pair depends
                flat = np.concatenate([*map(np.ravel, self.y)]) if self.n_sets > 1 else self.y[0]
            data = RankingData(np.empty((len(y), 0)), y, queries)
        else:
            y, counts, weights = self.y, None, self.told
            of_queries = weights["query_weight"]
            data = RankingData(
                self.X,
                np.where(np.isfinite(y), y, 0.0),
                queries,
                weights["sample_weight"],
                None if of_queries is None else queries.per_query(of_queries, "query_weight"),
                group_of=self._groups(),
            )
            flat = y
        counts = np.ones(self.n_sets, dtype=np.int64) if counts is None else counts
        blocks = self.X if listed else [self.X]
        if scipy.sparse.issparse(blocks[0]):
            blocks = [one_array(blocks)]
        return RowSets(data, bounds, blocks, flat.ravel(), counts)

    def _groups(self) -> Rows | None:
        """Return the group of every query, numbered within its set by first rows; or None.

        The queries of a set that has one in two groups have −1.
        """
        by_key, queries, groups = self.by_key, self.queries, self.told["groups"]
        if groups is None:
            return None
        assert by_key is not None
        n_rows, key_of = queries.n_rows, by_key.index()
        ids = Queries.make(n_rows, qid=groups).index()
        groups = Queries.make(n_rows, qid=by_key.grouped(key_of * n_rows + ids)).index()
        of_rows = np.empty(n_rows, dtype=np.int64)
        order = np.arange(n_rows) if by_key.order is None else by_key.order
        of_rows[order] = groups - np.repeat(groups[by_key.offsets[:-1]], by_key.sizes)
        of_rows = queries.grouped(of_rows)
        found = of_rows[queries.offsets[:-1]]
        cut = queries.grouped(key_of)[of_rows != np.repeat(found, queries.sizes)]
        found[np.isin(np.repeat(np.arange(self.n_sets), np.diff(self.bounds)), cut)] = -1
        return found

    def arguments(self, number: int) -> dict[str, Any]:
        """Return the arguments of `fit` of one set."""
        if isinstance(self.X, list):
            own = {name: values[number] for name, values in self.told.items()}
            X = self.X if self.given is None else self.given
            return {"X": X[number], "y": self.y[number], **own}
        assert self.by_key is not None
        rows = self.by_key.rows(number)
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        own = {name: v[numbers] for name, v in self.told.items() if v is not None}
        return {"X": take_rows(self.given, numbers), "y": self.y[numbers], **own}

    @property
    def told_of_fits(self) -> dict[str, Any]:
        """The attributes that all models have of their rows."""
        X = self.X[0] if isinstance(self.X, list) else self.X
        told = {
            "n_features_in_": X.shape[1],
            "uses_qid_": self.told.get("qid") is not None,
        }
        return told if self.names is None else told | {"feature_names_in_": self.names}


_KIND_OF_ROWS = operator.attrgetter("dtype.char", "ndim", "flags.c_contiguous")
_KIND_OF_LABELS = operator.attrgetter("dtype.char", "ndim")


def _read_list(problems: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any], Any]:
    """Return X, y and qid, or None, of every set of a list, all of one kind; names of columns."""
    if set(map(type, problems)) <= {tuple, list} and set(map(len, problems)) in ({2}, {3}):
        rows, labels, *ids = zip(*problems, strict=True)
        if {*map(type, rows), *map(type, labels)} == {np.ndarray}:
            kinds, of_labels = set(map(_KIND_OF_ROWS, rows)), set(map(_KIND_OF_LABELS, labels))
            known = kinds in ({("d", 2, True)}, {("f", 2, True)}) and of_labels == {("d", 1)}
            if known and len({X.shape[1] for X in rows}) == 1:
                return rows, labels, ids[0] if ids else [None] * len(rows), None
    read = [_as_problem(number, problem) for number, problem in enumerate(problems)]
    X, y, qid = ([problem[part] for problem in read] for part in range(3))
    named = [column_names(problem[0]) for problem in problems]
    wrong = next((number for number, names in enumerate(named) if names != named[0]), None)
    if wrong is not None:
        raise ArgumentError("X", f": data set {wrong} must have the columns of the first, in order")
    return _like_rows(X), y, qid, named[0] if named else None


def _as_problem(number: int, problem: Any) -> tuple[Any, Any, Any]:
    """Return (X, y, qid) of a data set of a list."""
    if not isinstance(problem, (tuple, list)) or len(problem) not in (2, 3):
        raise TypeError(
            "X must be a list of (X, y) or (X, y, qid), or an array with the argument by, got "
            f"{type(problem).__name__} as data set {number}"
        )
    X, y, *ids = problem
    labels = np.ravel(real_array(y, f"y of data set {number}"))
    return read_rows(X, f"X of data set {number}"), labels, ids[0] if ids else None


def _like_rows(rows: Sequence[Any]) -> list[Any]:
    """Return rows of one type that all have as many columns, C-contiguous where dense."""
    widths = [X.shape[1] for X in rows]
    if len(set(widths)) > 1:
        number = next(i for i, width in enumerate(widths) if width != widths[0])
        raise ArgumentError(
            "X",
            f": data set {number} must have {widths[0]} columns, as the first has, got "
            f"{widths[number]}",
        )
    if any(map(scipy.sparse.issparse, rows)):
        return [scipy.sparse.csr_array(X) for X in rows]
    dtype = np.result_type(np.float32, *{X.dtype for X in rows})
    return [np.require(X, dtype, ["C", "A"]) for X in rows]
