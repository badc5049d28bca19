"""Split data by queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRequest

from pairgram._support import limits
from pairgram._support.checks import (
    Rows,
    called_by,
    warn_caller,
)
from pairgram._support.row_warnings import FEW_HELD, warn_of_few_held
from pairgram.data.dataset import RankingData
from pairgram.data.queries import CROSS_VALIDATION, MissingQueryWarning, Queries

if TYPE_CHECKING:
    from pairgram._support.types import RandomState, Splitter

# The word for `cv` that holds every group out by the model of the groups before it.
FORWARD = "forward"
# cv=None makes this many folds if leaving out every query would not be exact or not be cheap.
N_SPLITS = 5


class Splits(Sequence[tuple[Rows, Rows]]):
    """The (training rows, test rows) of every split."""

    def test_rows(self) -> tuple[Rows, Rows]:
        """Return the test rows, one split after the other, and the split of each."""
        tests = [test for _, test in self]
        return np.concatenate(tests), np.repeat(np.arange(len(tests)), [*map(len, tests)])

    def fold_of_rows(self, n_rows: int) -> Rows | None:
        """Return the split that holds out each row, (n_rows,).

        The result is None unless every split trains on all rows that others hold out.
        """
        folds = np.full(n_rows, -1)
        for number, split in enumerate(self):
            if (np.bincount(np.concatenate(split), minlength=n_rows) != 1).any():
                return None
            folds[split[1]] = number
        n_held = sum(len(test) for _, test in self)
        return folds if n_held == n_rows and (folds >= 0).all() else None


class ListedSplits(tuple[tuple[Rows, Rows], ...], Splits):
    """Splits that a list or a splitter gives."""


class QueryKFold:
    """K-fold cross-validation that keeps the rows of a query together: GroupKFold for queries.

    Parameters
    ----------
    n_splits : int ≥ 2, default=5
        Number of folds.
    shuffle : bool, default=False
        Whether to shuffle the queries. Otherwise they are taken in the order of their first rows.
    random_state : int, RandomState, Generator or None, default=None
        Seed or source of the shuffle.

    Notes
    -----
    The numbers of queries in two folds differ by at most one. Query ids are given as ``qid``, which
    scikit-learn's metadata routing passes on. If units larger than a query must be held out
    together, such as days, sellers or judges, give their ids as ``groups``: folds are then folds of
    groups. Without ``qid``, the groups count as the queries.

    The estimator needs the query ids too, and only a routed ``qid`` reaches it. With ``groups``
    alone, scikit-learn's cross-validation fits all rows as one query, and a `MissingQueryWarning`
    says so.

    Do not give an integer as ``cv`` to scikit-learn's functions: it splits rows and cuts queries
    apart. Give ``QueryKFold(5)`` in place of 5.

    Examples
    --------
    >>> from pairgram import QueryKFold
    >>> splits = QueryKFold(2).split([[1], [2], [3]], qid=["a", "b", "a"])
    >>> [(train.tolist(), test.tolist()) for train, test in splits]
    [([1], [0, 2]), ([0, 2], [1])]
    """

    def __init__(
        self, n_splits: Any = 5, *, shuffle: bool = False, random_state: RandomState = None
    ) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, Integral) or n_splits < 2:
            raise ValueError(f"n_splits must be an integer >= 2, got {n_splits!r}")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None, qid: object = None
    ) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: object = None,
        groups: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Iterator[tuple[Rows, Rows]]:
        """Yield (training rows, test rows) of every fold.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
        y : ignored
        groups : array-like of shape (n_rows,) or None
            The ids of the groups that are held out together. None stands for the queries.
        qid : array-like of shape (n_rows,) or None
            Query ids. All rows of a query must be in one group.

        Yields
        ------
        train, test : ndarray of int64
            Row numbers, ascending.

        Raises
        ------
        ValueError
            If there are no ids of either kind, fewer groups than folds, or a query in two groups.

        Warns
        -----
        MissingQueryWarning
            If scikit-learn's cross-validation passes ``groups``, which the estimator does not get.
        """
        if groups is None and qid is None:
            raise ValueError(
                "QueryKFold needs query ids as qid, or ids of what is held out together as groups; "
                "in cross-validation the estimator needs query ids too: call "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid, as "
                "params={'qid': qid} or to the search's fit, which hands it to both"
            )
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if qid is None and called_by(CROSS_VALIDATION):
            warn_caller(
                "QueryKFold.split got groups, which the estimator does not see: without qid, "
                "cross-validation fits all rows as one query. Call "
                "sklearn.set_config(enable_metadata_routing=True) and pass params={'qid': qid}, or "
                "qid=qid to the search's fit",
                MissingQueryWarning,
            )
        name, ids = ("qid", qid) if groups is None else ("groups", groups)
        what = "queries" if groups is None else "groups"
        if groups is not None and qid is not None:
            Queries.make(n_rows, qid=qid).groups(groups)  # no group may cut a query
        held = Queries.make(n_rows, qid=ids, name=name)
        fold_of_row = self.fold_of_query(held.n_queries, what)[held.index()]
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)

    def fold_of_query(self, n_queries: int, what: str = "queries") -> Rows:
        """Return the fold of every query, (n_queries,), in the order of their first rows.

        Folds depend on the number of queries alone, in memory and of a table. `what` is what
        messages call them.

        Raises
        ------
        ValueError
            If there are fewer queries than folds.
        """
        if n_queries < self.n_splits:
            raise ValueError(f"n_splits={self.n_splits} needs as many {what}, got {n_queries}")
        numbers = np.arange(n_queries)
        if self.shuffle:
            if isinstance(self.random_state, np.random.Generator):
                self.random_state.shuffle(numbers)
            else:
                check_random_state(self.random_state).shuffle(numbers)
        folds = np.empty(n_queries, dtype=np.int64)
        for fold, members in enumerate(np.array_split(numbers, self.n_splits)):
            folds[members] = fold
        return folds

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request: routing passes ``qid`` and ``groups`` to `split`."""
        request = MetadataRequest(owner=self)
        request.split.add_request(param="qid", alias=True)
        request.split.add_request(param="groups", alias=True)
        return request

    def __repr__(self) -> str:
        """Return the call that makes this splitter."""
        return (
            f"QueryKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, "
            f"random_state={self.random_state!r})"
        )


def default_cv(n_held: int, n_rows: int) -> int:
    """Return the number of folds for cv=None: `N_SPLITS`, or fewer if there is less to hold out.

    `n_held` is the number of queries, or of groups of them. The rows of a single query are split
    instead, with two rows or more in each fold if it has four rows or more.
    """
    return max(2, min(N_SPLITS, n_held if n_held > 1 else n_rows // 2))


def fold_numbers(cv: object, n_held: int, n_rows: int) -> Rows | None:
    """Return the fold of every query or group, (n_held,); or of every row of a single query.

    None stands for the default number of folds. `n_rows` is 0 where there are several queries. The
    result is None if there is too little to hold out, and for a `cv` that needs more than these
    numbers.
    """
    cv = default_cv(n_held, n_rows) if cv is None else cv
    try:
        if n_rows and isinstance(cv, Integral):
            return _kept_row_folds(int(cv), n_rows).of_rows
        splitter = cv if isinstance(cv, QueryKFold) else QueryKFold(cv)
        drawn = splitter.shuffle and not isinstance(splitter.random_state, Integral)
        return None if drawn else splitter.fold_of_query(n_held)
    except ValueError:
        return None


@dataclass(frozen=True, eq=False)
class Folds(Splits):
    """Splits of which each holds some rows out and trains on all others.

    Attributes
    ----------
    of_rows : ndarray of shape (n_rows,), int64
        The split that holds out each row.
    n_folds : int
    """

    of_rows: Rows
    n_folds: int

    def __len__(self) -> int:
        return self.n_folds

    def __getitem__(self, number: Any) -> Any:
        held = self.of_rows == range(self.n_folds)[number]
        return np.flatnonzero(~held), np.flatnonzero(held)

    def test_rows(self) -> tuple[Rows, Rows]:
        """Return the test rows, one split after the other, and the split of each."""
        rows = np.argsort(self.of_rows, kind="stable")
        return rows, self.of_rows[rows]

    def fold_of_rows(self, n_rows: int) -> Rows:
        """Return the split that holds out each row, (n_rows,)."""
        return self.of_rows


def held_by_default(n_held: int, n_rows: int, exact: bool = False) -> int | None:
    """Return what cv=None stands for: `default_cv`, or None if each query is held out exactly.

    There is a warning if so few queries or groups are held out that they choose badly.
    """
    if 1 < n_held <= FEW_HELD:
        warn_of_few_held(n_held, n_rows)
    return None if exact else default_cv(n_held, n_rows)


@dataclass(frozen=True, eq=False)
class GroupSplits(Splits):
    """Splits of whole groups, whose rows are found when they are asked for.

    Attributes
    ----------
    held : Queries
        The rows of every group.
    trains, tests : list of ndarray of int64
        The numbers of the groups of every split in `held`.
    """

    held: Queries
    trains: list[Rows]
    tests: list[Rows]

    @classmethod
    def of(cls, data: RankingData, cv: object) -> GroupSplits | list[Any]:
        """Return the splits of the groups of some rows, or those of a splitter that cuts groups."""
        held = data.held_together
        present = np.flatnonzero(held.sizes)
        numbers = held.index()
        if isinstance(cv, str) and cv == FORWARD:
            if len(present) < 2:
                raise ValueError("needs two groups, one to fit to and a later one to hold out")
            tests = [present[place : place + 1] for place in range(1, len(present))]
            return cls(held, [present[:place] for place in range(1, len(present))], tests)
        if isinstance(cv, (Integral, QueryKFold)):
            splitter = cv if isinstance(cv, QueryKFold) else QueryKFold(cv)
            by_row = Queries.make(len(numbers), qid=numbers)  # in the order of first rows
            assert by_row.ids is not None
            folds, groups = splitter.fold_of_query(by_row.n_queries, "groups"), by_row.ids
            parts = range(splitter.n_splits)
            return cls(
                held,
                [groups[folds != part] for part in parts],
                [groups[folds == part] for part in parts],
            )
        splitter = check_cv(cv)
        if not _takes_groups(splitter):  # it would cut groups, and so it splits their list
            raw = list(splitter.split(np.empty((len(present), 1))))
            splits = [_as_split(number, one, len(present)) for number, one in enumerate(raw)]
            return cls(held, *([present[part[at]] for part in splits] for at in (0, 1)))
        raw = list(splitter.split(np.empty((len(data.y), 1)), data.y, numbers))
        whole: tuple[list[Rows], list[Rows]] = ([], [])
        for number, split in enumerate(raw):
            for found, rows in zip(whole, _as_split(number, split, len(data.y)), strict=True):
                counts = np.bincount(numbers[rows], minlength=held.n_queries)
                found.append(np.flatnonzero(counts))
                if (counts[found[-1]] != held.sizes[found[-1]]).any():
                    return raw
        return cls(held, *whole)

    def rows(self, groups: Rows) -> Rows:
        """Return the numbers of the rows of some groups, ascending."""
        order = np.arange(self.held.n_rows)
        return np.sort(np.concatenate([order[self.held.rows(group)] for group in groups.tolist()]))

    def __len__(self) -> int:
        return len(self.tests)

    def __getitem__(self, number: Any) -> Any:
        return self.rows(self.trains[number]), self.rows(self.tests[number])


def make_splits(cv: object, data: RankingData) -> Splits:
    """Return the (training rows, test rows) of every split as arrays of row numbers.

    Raises
    ------
    ValueError
        If there are no splits, if a split has an empty part, or if its rows are not row numbers.
        The message names ``cv``.
    """
    is_plain = isinstance(cv, Integral) or type(cv) is QueryKFold  # whose `split` is known
    if not is_plain or data.group_of is not None:
        return _other_splits(cv, data)
    n_rows = len(data.y)
    try:
        if isinstance(cv, Integral) and data.is_single_query:
            folds = _kept_row_folds if n_rows <= limits.now.cached_rows else _row_folds
            return folds(int(cv), n_rows)
        return _folds_of_queries(cv, data.queries)
    except ValueError as error:  # a splitter does not know the name of the parameter
        raise ValueError(f"cv={cv!r}: {error}") from error


def _other_splits(cv: object, data: RankingData) -> Splits:
    """Return splits of groups, of a list, or of any splitter."""
    if isinstance(cv, str) and cv != FORWARD:
        raise ValueError(
            f"cv={cv!r}: a splitter, an integer, {FORWARD!r} or (training rows, test rows) pairs "
            "are wanted; 'leave-pair-out' is for RankRLSCV, PointwiseELMCV and PairwiseELMCV"
        )
    if isinstance(cv, str) and data.group_of is None:
        raise ValueError(
            f"cv={FORWARD!r} holds every group out by the model of the groups before it: give fit "
            "groups, such as days"
        )
    raw: Any = cv
    if not isinstance(cv, (list, tuple)):
        try:
            raw = _split(cv, data) if data.group_of is None else GroupSplits.of(data, cv)
        except ValueError as error:  # a splitter does not know the name of the parameter
            raise ValueError(f"cv={cv!r}: {error}") from error
    if len(raw) == 0:
        raise ValueError("cv has no splits: give a list, as an iterator is used up after one fit")
    if isinstance(raw, GroupSplits):
        return raw
    return ListedSplits(_as_split(number, one, len(data.y)) for number, one in enumerate(raw))


def _folds_of_queries(cv: Any, queries: Queries) -> Folds:
    splitter = cv if isinstance(cv, QueryKFold) else QueryKFold(cv)
    return Folds(splitter.fold_of_query(queries.n_queries)[queries.index()], splitter.n_splits)


def _split(splitter: Any, data: RankingData) -> list[Any]:
    if isinstance(splitter, QueryKFold):  # of a class of one's own
        return list(splitter.split(data.y, qid=data.queries.index()))
    splitter = check_cv(splitter)
    groups = data.queries.index() if _takes_groups(splitter) else None
    return list(splitter.split(np.empty((len(data.y), 1)), data.y, groups))


def _takes_groups(splitter: Splitter) -> bool:
    """Tell whether a splitter uses groups: those of scikit-learn that do not would warn."""
    routing = getattr(splitter, "get_metadata_routing", None)
    return routing is None or "groups" in routing().split.requests


def refuse_validation(cv: object, has_validation: bool) -> None:
    """Raise a ValueError if `cv` is given beside a validation set, or is one itself."""
    if isinstance(cv, tuple) and 2 <= len(cv) <= 4 and _is_matrix(cv[0]) and np.ndim(cv[1]) < 2:
        raise ValueError(
            "cv must not be a validation set: give it to fit, as validation=(X, y) or "
            "validation=(X, y, qid)"
        )
    if has_validation and cv is not None:
        raise ValueError(f"give cv or validation, not both: got cv={cv!r} and a validation set")


def _is_matrix(X: object) -> bool:
    """Tell whether a value is a matrix of rows rather than a split."""
    return scipy.sparse.issparse(X) or hasattr(X, "columns") or getattr(X, "ndim", 0) == 2


def _row_folds(n_splits: int, n_rows: int) -> Folds:
    """Return folds of shuffled rows: the order of the rows of a query often means something."""
    folds = np.empty(n_rows, dtype=np.int64)
    splits = KFold(n_splits, shuffle=True, random_state=0).split(np.empty((n_rows, 1)))
    for number, (_, test) in enumerate(splits):
        folds[test] = number
    folds.flags.writeable = False  # cached folds are shared
    return Folds(folds, n_splits)


_kept_row_folds = lru_cache(maxsize=16)(_row_folds)  # problems of a batch often have equal sizes


def _as_split(number: int, split: Any, n_rows: int) -> tuple[Rows, Rows]:
    try:
        train, test = split
    except (TypeError, ValueError):
        raise ValueError(
            "cv must be None, a splitter, an integer or (training rows, test rows) pairs, but its "
            f"element {number} is no such pair; a validation set goes to fit, as "
            "validation=(X, y, qid)"
        ) from None
    parts = []
    for name, rows in (("training", np.asarray(train)), ("test", np.asarray(test))):
        if rows.dtype == bool and rows.shape == (n_rows,):
            rows = np.flatnonzero(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
            raise ValueError(
                f"cv: the {name} rows of split {number} must be row numbers, at least one, got "
                f"an array of shape {rows.shape} and type {rows.dtype}"
            )
        if rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(f"cv: the {name} rows of split {number} leave 0..{n_rows - 1}")
        parts.append(rows.astype(np.int64))
    return parts[0], parts[1]
