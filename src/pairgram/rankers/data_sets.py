"""`DataSets`: the many data sets that `fit_many` is given, as rows with keys or as a list."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.arrays import (
    column_names,
    index_columns,
    is_ready,
    read_rows,
    real_array,
    select_columns,
    take_rows,
)
from pairgram._support.checks import ArgumentError, Vector
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries, as_ids, check_weights
from pairgram.solvers.group_fits import RowSets, one_array

if TYPE_CHECKING:
    from pairgram.rankers.rank_svm import SvmSpec
    from pairgram.rankers.ridge import RidgeSpec


@dataclass(frozen=True, eq=False)
class DataSets:
    """Checked data sets, of which each has a key or, with several targets, one for each.

    Attributes
    ----------
    keys : ndarray of shape (n_models,)
    names : ndarray of shape (n_features,) of str, or None
    blocks : list of arrays, or of one CSR matrix
        The rows of all sets, or those of each. There is none if compiled code takes no such rows.
    y : ndarray of shape (n_rows,)
    by : Queries
        The rows of every set.
    told : dict of str to ndarray of shape (n_rows,)
        The arguments of `fit` besides; for a list, the ids of its queries are their numbers.
    given : array-like, frame or CSR matrix; or list of such
        The rows of all sets as the caller gave them, without columns that are no features; or
        those of each set.
    of_targets : dict of str to ndarray, or None
        "labels" and "n_targets" of `RowSets` where sets have several targets, and `y` is 0.
    places : tuple of index arrays or ...
        Where the sets, and the models, of the keys stand.
    alone : callable or None
        Returns the same with one target for each set, if some have several.
    """

    keys: NDArray[Any]
    names: NDArray[Any] | None
    blocks: Sequence[Any]
    y: Vector
    by: Queries
    told: dict[str, Any]
    given: Any
    of_targets: dict[str, Any] | None = None
    places: tuple[Any, Any] = (..., ...)
    alone: Callable[[], DataSets] | None = None

    def row_sets(self, one_list: bool) -> RowSets:
        """Return what compiled code takes, each set as one query if it is `one_list`.

        Raises
        ------
        ValueError
            If there are weights of queries, which then mean nothing.
        """
        by, queries, told, y = self.by, self.by, self.told, self.y
        bounds = np.arange(by.n_queries + 1)
        if "qid" in told and not one_list:
            ids = Queries.make(len(y), qid=told["qid"]).index()
            inner = Queries.make(len(y), qid=by.grouped(by.index() * len(y) + ids))
            order = inner.order if by.order is None else inner.grouped(by.order)
            queries = Queries(inner.offsets, order)
            bounds = np.searchsorted(inner.offsets, by.offsets)
        X = self.blocks[0] if len(self.blocks) == 1 else np.empty((len(y), 0))
        known = np.isfinite(y)
        data = RankingData(X, y if known.all() else np.where(known, y, 0.0), queries)
        sets = RowSets(data, bounds, self.blocks, y, np.ones_like(bounds[1:]))
        if told.keys() - {"qid"}:
            sets = self._weighted(sets, one_list)
        return sets._replace(**self.of_targets or {})

    def _weighted(self, sets: RowSets, one_list: bool) -> RowSets:
        """Return sets with the weights of rows and queries, and the groups, that were given.

        Where the rows of a query differ, the labels are NaN, which leaves the set to other code.
        """
        queries, labels, told = sets.data.queries, sets.labels, self.told
        of_queries: dict[str, Any] = {"query_weight": told.get("query_weight"), "groups": None}
        if "groups" in told:
            of_queries["groups"] = self._groups()
        first = queries.first_rows()
        for name, values in of_queries.items():
            if values is not None:
                labels = np.where(values == values[first], labels, np.nan)
                of_queries[name] = queries.per_query(values[first], name)
        weights, groups = of_queries.values()
        group_of = None if groups is None else groups.astype(np.int64)
        known = {"query_weights": weights, "group_of": group_of}
        data = replace(sets.data, row_weights=told.get("sample_weight"), **known)
        if one_list:
            data.as_one_query()  # which refuses weights of queries
        return sets._replace(data=data, labels=labels)

    def _groups(self) -> Vector:
        """Return the group of every row, numbered within its set by first rows."""
        by, n_rows = self.by, len(self.y)
        ids = by.index() * n_rows + Queries.make(n_rows, qid=self.told["groups"]).index()
        numbers = Queries.make(n_rows, qid=by.grouped(ids)).index()
        of_rows = np.empty(n_rows)
        first = np.repeat(numbers[by.offsets[:-1]], by.sizes)
        of_rows[by.grouped(np.arange(n_rows))] = numbers - first
        return of_rows

    def labels_of(self, number: int) -> Vector:
        """Return the labels of one set."""
        return self.y[self.by.rows(number)]

    def arguments(self, number: int) -> dict[str, Any]:
        """Return the arguments of `fit` of one set."""
        rows = np.r_[self.by.rows(number)]
        own = {name: values[rows] for name, values in self.told.items()}
        listed = isinstance(self.given, Sequence)
        X = self.given[number] if listed else take_rows(self.given, rows)
        return {"X": X, "y": self.y[rows], **own}


def sets_of_rows(
    X: Any, y: Any, by: Any, told: dict[str, Any], spec: RidgeSpec | SvmSpec | None
) -> DataSets:
    """Read rows with keys or several targets, for what a spec fits by compiled code."""
    columns = {"y": y, "by": by, **told}
    if X is None or isinstance(X, str):
        raise TypeError(f"X must be rows of numbers, or a list of (X, y), got {X!r}")
    named = {name: value for name, value in columns.items() if isinstance(value, str)}
    if named:
        names = column_names(X)
        if names is None:
            raise ArgumentError(
                next(iter(named)),
                "is the name of a column, so X must be a frame of pandas or polars, or a "
                "pyarrow table",
            )
        columns |= {name: select_columns(X, value, name) for name, value in named.items()}
        hidden = {*named.values(), *index_columns(X)}
        X = select_columns(X, [name for name in names if name not in hidden], "X")
    y, by = columns.pop("y"), columns.pop("by")
    if y is None:
        kind = type(X).__name__
        raise ArgumentError(
            "y", f"must hold labels, or X be a list of (X, y) or (X, y, qid), got {kind} as X"
        )
    names = None if type(X) is np.ndarray else column_names(X)
    rows = X if is_ready(X, 2) and X.flags.c_contiguous else read_rows(X, "X")
    n_rows, y = rows.shape[0], real_array(y, "y")
    if y.shape[:1] != (n_rows,):
        text = f"must have a label for each of the {n_rows} rows of X, got {len(y)}"
        raise ArgumentError("y", text)
    if y.ndim == 2:
        if by is not None:
            raise ArgumentError("by", "must be None for several targets, which are the keys")
        if not y.shape[1]:
            raise ArgumentError("y", "must have a column or more, got none")
        for name in columns.keys() - {"qid"}:
            raise ArgumentError(name, "must be None for several targets")
    elif by is None:
        raise ArgumentError("by", "must have the key of every row, such as a user, or X be a list")
    for name, values in columns.items():
        read = check_weights if name.endswith("weight") else as_ids
        columns[name] = read(values, n_rows, name)
    known = None if names is None else np.array(names, dtype=object)
    if y.ndim == 2:
        shares = spec is not None and spec.shares_targets
        small = rows.shape[0] * rows.shape[1] <= limits.now.largest_set
        if spec is not None and small and scipy.sparse.issparse(rows):
            rows = rows.toarray()
        return _of_targets(rows, y, columns.get("qid"), known, shares)
    keys = Queries.make(n_rows, qid=by, name="by")
    assert keys.ids is not None
    holds_out = spec is not None and spec.n_searched and "qid" in columns
    blocks = [rows] if holds_out or "groups" not in columns else []
    return DataSets(keys.ids, known, blocks, y, keys, columns, rows if known is None else X)


class _Parts(Sequence[Any]):
    """Some rows of X for each set, which are copied when they are asked for."""

    def __init__(self, X: Any, rows: Sequence[Any]) -> None:
        self._X, self._rows = X, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        rows = self._rows[at]
        return _Parts(self._X, rows) if isinstance(at, slice) else self._X[rows]


def _of_targets(
    X: Any, Y: Vector, ids: NDArray[Any] | None, names: NDArray[Any] | None, shares: bool
) -> DataSets:
    """Return a set for the targets that were measured for the same rows, or for each target."""
    keys = np.arange(Y.shape[1])
    known: dict[bytes, list[int]] = {}
    if np.isnan(Y.max(initial=-np.inf)):
        gaps = np.isnan(Y)
        for target, pattern in enumerate(np.packbits(gaps.T, axis=1)):
            known.setdefault(pattern.tobytes(), []).append(target)
    found = []
    for targets in known.values() or [keys.tolist()]:
        rows: Any = np.flatnonzero(~gaps[:, targets[0]]) if known else slice(None)
        labels = Y[rows[:, None], targets] if known else Y
        own = None if ids is None else ids[rows]
        if shares:
            found.append((targets, rows, own, labels))
        else:
            found += [([t], rows, own, one) for t, one in zip(targets, labels.T, strict=True)]
    found.sort(key=operator.itemgetter(0))
    of_sets, of_rows, of_queries, labels_of = map(list, zip(*found, strict=True))
    blocks = _Parts(X, of_rows)
    flat = one_array([*map(np.ravel, labels_of)])
    sizes, counts = (np.array([*map(len, parts)]) for parts in (labels_of, of_sets))
    y, alone, of_targets, of_models = flat, None, None, np.concatenate(of_sets)
    if shares:
        y = np.zeros(sizes.sum())  # on which no pair depends
        alone = partial(_of_targets, X, Y, ids, names, False)
        of_targets = {"labels": flat, "n_targets": counts}
    order = np.argsort(of_models)
    return DataSets(
        keys,
        names,
        [] if scipy.sparse.issparse(X) else blocks,
        y,
        Queries.of_sizes(sizes),
        {} if ids is None else {"qid": np.concatenate(of_queries)},
        blocks,
        of_targets,
        (np.repeat(np.arange(len(counts)), counts)[order], order),
        alone,
    )


def sets_of_list(problems: Sequence[Any], by: Any, told: dict[str, Any]) -> DataSets:
    """Read a list of (X, y) or (X, y, qid)."""
    for name in told:
        raise ArgumentError(name, "must be None beside a list of (X, y) or (X, y, qid)")
    read = _read_at_once(problems) or _read_each(problems)
    blocks, labels, qids, names, given = read
    sizes, told = [*map(len, labels)], {}
    if any(qid is not None for qid in qids):
        ids = [
            np.zeros(n, np.int64) if qid is None else as_ids(qid, n)
            for n, qid in zip(sizes, qids, strict=True)
        ]
        if any(one.dtype != np.int64 for one in ids):  # which are not compared with others
            ids = [Queries.make(len(one), qid=one).index() for one in ids]
        told["qid"] = np.concatenate(ids)
    keys = np.arange(len(sizes)) if by is None else _keys_of_list(by, len(sizes))
    by_set = Queries(np.cumsum([0, *sizes], dtype=np.int64))
    y = np.concatenate([np.empty(0), *labels])
    return DataSets(keys, names, blocks, y, by_set, told, given)


def _keys_of_list(by: Any, n_sets: int) -> NDArray[Any]:
    found = Queries.make(n_sets, qid=by, name="by")
    if found.n_queries < n_sets:
        raise ArgumentError("by", "must have a different key for each data set of the list")
    assert found.ids is not None
    return found.ids


# The blocks, labels and ids of a list of data sets, the names of columns, and the rows as given.
_Read = tuple[list[Any], Sequence[Any], Sequence[Any], NDArray[Any] | None, list[Any]]
# What compiled code asks of labels, and of rows besides.
_OF_LABELS = "__class__", "dtype.char", "ndim"
_kind_of_labels = operator.attrgetter(*_OF_LABELS)
_kind_of_rows = operator.attrgetter(*_OF_LABELS, "dtype.isnative", "flags.c_contiguous")
_READY = [{(np.ndarray, char, 2, True, True)} for char in "df"]


def _read_at_once(problems: Sequence[Any]) -> _Read | None:
    """Return a list that was read, if compiled code takes all of it as it is."""
    with suppress(AttributeError, TypeError, ValueError):
        rows, labels, *ids = zip(*problems, strict=True)
        ready = {*map(_kind_of_rows, rows)} in _READY
        ready = ready and {*map(_kind_of_labels, labels)} == {(np.ndarray, "d", 1)}
        sizes, widths = zip(*[X.shape for X in rows], strict=True)
        if ready and sizes == (*map(len, labels),) and len({*widths}) == 1 and len(ids) < 2:
            return list(rows), labels, ids[0] if ids else (), None, list(rows)
    return None


def _read_each(problems: Sequence[Any]) -> _Read:
    """Return a list that was read; the rows are then all of one type."""
    read: list[Any] = []
    for number, problem in enumerate(problems):
        if not isinstance(problem, (tuple, list)) or len(problem) not in (2, 3):
            raise TypeError(
                "X must be a list of (X, y) or (X, y, qid), or an array with the argument by, got "
                f"{type(problem).__name__} as data set {number}"
            )
        X, y, *ids = problem
        labels = np.ravel(real_array(y, f"y of data set {number}"))
        is_empty = getattr(X, "shape", (1,))[0] == 0
        rows: Any = np.empty(X.shape) if is_empty else read_rows(X, f"X of data set {number}")
        read.append((rows, labels, ids[0] if ids else None, column_names(X)))
        n_columns, names, (n_rows, width) = read[0][0].shape[1], read[0][3], rows.shape
        wanted = None
        if read[-1][3] != names:
            wanted = "the columns of the first, in order"
        elif width != n_columns:
            wanted = f"{n_columns} columns, as the first has, got {width}"
        elif n_rows != len(labels):
            wanted = f"a label for each of its {n_rows} rows, got {len(labels)}"
        if wanted is not None:
            raise ArgumentError("X", f": data set {number} must have {wanted}")
    if not read:
        return [], [], [], None, []
    blocks, of_labels, qids, _ = map(list, zip(*read, strict=True))
    given = blocks if names is None else [X for X, *_ in problems]
    known = None if names is None else np.array(names, dtype=object)
    if any(map(scipy.sparse.issparse, blocks)):
        return [scipy.sparse.vstack(blocks, "csr")], of_labels, qids, known, given
    dtype = np.result_type(np.float32, *{X.dtype for X in blocks})
    return [np.require(X, dtype, ["C", "A"]) for X in blocks], of_labels, qids, known, given
