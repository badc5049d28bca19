"""The folds of the queries of a table."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from pairgram._support.checks import ONE_QUERY, ArgumentError, Rows, Vector, verbatim
from pairgram.data.dataset import RankingData
from pairgram.data.queries import Queries
from pairgram.model_selection.splits import FORWARD, QueryKFold
from pairgram.tables.columns import TableRows, changed
from pairgram.tables.table import Table


@dataclass(frozen=True, eq=False)
class Folds:
    """The folds of the queries of a table, which every partition of it knows.

    Attributes
    ----------
    n : int
        The number of folds. Every fold is held out, or only the later ones if `is_forward`.
    places : ndarray of shape (n_parts,), int64, ascending
        The places of first rows of queries, from which on the fold is another one.
    folds : ndarray of shape (n_parts,), int64
    is_forward : bool
        Whether a fold is held out by the model of the folds before it, not by that of all others.
    """

    n: int
    places: Rows
    folds: Rows
    is_forward: bool = False

    @classmethod
    def of(cls, table: Table, cv: object) -> Folds:
        """Return the folds of an int or a `QueryKFold`, which are those of the rows in memory.

        With None, every group is a fold, and so it is with "forward". The survey of the table knows
        where queries begin, and their groups.

        Raises
        ------
        ValueError
            If `cv` is something else, or if there are fewer queries than folds.
        """
        if not table.has_queries:
            raise ArgumentError("cv", f"needs query ids to make folds of: {table.advice_on_ids}")
        begins, groups = table.survey().begins, table.survey().group_of
        forward = isinstance(cv, str) and cv == FORWARD
        if not (forward or cv is None or isinstance(cv, (QueryKFold, Integral))):
            raise ValueError(
                f"cv must be None, a number of folds >= 2, a QueryKFold or {FORWARD!r} for a "
                f"table, whose rows have no numbers, got {cv!r}"
            )
        if forward and groups is None:
            raise ArgumentError(
                None,
                f"{{cv={cv!r}}} holds every group out by the model of the groups before it: give "
                "scan the column, as {groups=}",
            )
        if (forward or cv is None) and groups is not None:
            folds, n = groups, int(groups.max()) + 1
            if n < 2:
                raise ArgumentError(
                    "groups", "must be two or more, one to fit to and one to hold out"
                )
        else:
            held = np.arange(len(begins))
            if groups is not None:  # in the order of their first queries
                held = Queries.make(len(groups), qid=groups).index()
            what = () if groups is None else ("groups",)
            try:
                splitter = cv if isinstance(cv, QueryKFold) else QueryKFold(cv)
                folds = splitter.fold_of_query(int(held.max()) + 1, *what)[held]
            except ValueError as error:
                found = ONE_QUERY if len(begins) == 1 else None
                raise ArgumentError(None, verbatim(f"cv={cv!r}: {error}"), found=found) from error
            n = splitter.n_splits
        first = np.flatnonzero(np.diff(folds, prepend=-1))
        return cls(n, begins[first], folds[first], forward)

    @property
    def first(self) -> int:
        """The first fold that is held out."""
        return int(self.is_forward)

    def trains(self, fold: int, folds: Any) -> Any:
        """Tell whether the model that judges a fold is fitted to other folds."""
        return folds < fold if self.is_forward else folds != fold

    def of_runs(self, rows: TableRows) -> Rows:
        """Return the fold of every query, (n_runs,).

        Raises
        ------
        ValueError
            If a fold does not begin with a query, because the rows have another order than before.
        """
        begins = rows.begins
        known = np.searchsorted(self.places, begins, side="right")
        within = np.searchsorted(self.places, begins + rows.sizes, side="left")
        if (within > known).any():
            raise changed("its rows came in another order than before")
        return self.folds[known - 1]


def parts_of(
    data: RankingData, rows: TableRows, folds: Folds | None
) -> list[tuple[int, RankingData]]:
    """Return (fold, its data) for the data of some rows of a table; fold 0 without folds."""
    if folds is None:
        return [(0, data)]
    fold_of_row = np.repeat(folds.of_runs(rows), rows.sizes)
    present = np.unique(fold_of_row).tolist()
    if len(present) == 1:
        return [(present[0], data)]
    return [(fold, data.take(np.flatnonzero(fold_of_row == fold))) for fold in present]


@dataclass(frozen=True, eq=False)
class OutsideFold:
    """How often rows of a table count where one fold is held out."""

    folds: Folds
    fold: int

    def __call__(self, rows: TableRows) -> Vector:
        known = self.folds.trains(self.fold, self.folds.of_runs(rows))
        return np.repeat(known, rows.sizes).astype(np.float64)
