"""Query ids that statistics remember, as 64-bit hashes that are the same in every process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support.checks import warn_caller
from pairgram.queries_and_pairs.id_hashes import Hashes, IdSet, hash_ids
from pairgram.queries_and_pairs.queries import Queries, plain_ids

__all__ = ["QueryIds", "too_many", "warn_of_end"]


# At most this many ids are remembered.
MOST_IDS = 1_000_000
NUMERAL = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*")
EITHER = (
    "either all queries have ids, or none has (ids=None of Pairgram and from_rows leaves ids "
    "unchecked)"
)


@dataclass(frozen=True, eq=False)
class QueryIds:
    """The query ids that statistics have seen, and the check that no id comes a second time.

    Attributes
    ----------
    hashes : IdSet or None
        None if ids are not checked.
    first, last : object
        The ids of the first and the last row with an id, for messages. None if there is none.
    ended : bool
        Whether ids are not checked because they were too many.
    are_given : bool
        Whether queries have ids to check, although their type may not be remembered.
    """

    hashes: IdSet | None = None
    first: Any = None
    last: Any = None
    ended: bool = False
    are_given: bool = False

    def __len__(self) -> int:
        """Return the number of ids that are remembered."""
        return 0 if self.hashes is None else len(self.hashes)

    def of_rows(self, queries: Queries, n_queries: int) -> QueryIds:
        """Return the ids together with those of the rows of an update.

        Parameters
        ----------
        queries : Queries
            Of the rows.
        n_queries : int
            Number of queries of the statistics with these ids.

        Raises
        ------
        ValueError
            If an id has been seen before; or if queries with ids meet queries without.
        """
        ids = queries.ids
        if self.hashes is None:
            return self
        if ids is None and self.are_given:
            raise ValueError(
                f"qid must be given, because the queries of earlier updates have ids: {EITHER}"
            )
        if ids is None or len(ids) == 0:
            return self
        hashes, known = hash_ids(ids)
        if n_queries and not self.are_given:
            raise ValueError(
                f"qid must be left out, because earlier updates came without: {EITHER}"
            )
        again = known & self.hashes.contains(hashes)
        if again.any():
            (found,) = plain_ids(ids[[int(np.argmax(again))]])
            more = int(np.count_nonzero(again)) - 1
            raise ValueError(
                f"qid {found!r}{f' and {more} more' * (more > 0)} came in an earlier update: each "
                "call must hold whole queries (ids=None takes equal ids for different queries)"
            )
        found = IdSet.of(hashes[known], queries.sizes[known])
        first, last = plain_ids(ids[[0, int(queries.index()[-1])]])
        added = QueryIds(found, first, last, are_given=True)
        self._refuse_other_kind(added, "add rows")
        return self._with(added)

    def union(self, other: QueryIds, n_queries: int, n_others: int) -> QueryIds:
        """Return the ids of two shards. If one of them is unchecked, so is the result.

        Parameters
        ----------
        other : QueryIds
        n_queries, n_others : int
            Number of queries of the statistics with these ids, and of those with the others.

        Raises
        ------
        ValueError
            If both shards have seen the same id; or if one has ids, and the other has none that are
            remembered.
        """
        if self.ended or other.ended:
            return QueryIds(ended=True)
        if n_queries and n_others and self.are_given != other.are_given:
            raise ValueError(_of_one_side("merge", self.are_given))
        if self.hashes is None or other.hashes is None:
            return QueryIds()
        self._refuse_other_kind(other, "merge")
        few, many = sorted((self.hashes, other.hashes), key=len)
        hashes = few.array()
        shared = hashes[many.contains(hashes)]
        if not len(shared):
            return self._with(other)
        what = f"{_counted(len(shared))} in both"
        named = _those_among([self.first, self.last, other.first, other.last], shared)
        if named:
            what = f"{_one_of(named[0], len(shared))} in both"
        raise ValueError(
            f"cannot merge: {what}, and a query that is cut in two loses pairs; each side must "
            "hold whole queries (ids=None takes equal ids for different queries)"
        )

    def without(self, other: QueryIds, n_queries: int, n_others: int) -> QueryIds:
        """Return the ids without those of statistics that are subtracted.

        Parameters
        ----------
        other : QueryIds
        n_queries, n_others : int
            Number of queries of the statistics with these ids, and of those with the others. A
            query whose id has no hash may be any query of the others.

        Raises
        ------
        ValueError
            If all queries have ids here, but the others have an id that is not among them; if a
            query has another number of rows there; or if one side has ids, and the other has none
            that are remembered.
        """
        if self.ended:
            return self
        if n_queries and n_others and self.are_given != other.are_given:
            raise ValueError(_of_one_side("subtract", self.are_given))
        if self.hashes is None or other.hashes is None:
            return self
        self._refuse_other_kind(other, "subtract")
        if len(self) >= n_queries:
            theirs = other.hashes.array()
            self._refuse_missing(other, theirs[~self.hashes.contains(theirs)], n_others)
        self._refuse_parts(other)
        return replace(self, hashes=self.hashes.without(other.hashes))

    def _refuse_missing(self, other: QueryIds, missing: Hashes, n_others: int) -> None:
        n_missing = len(missing) + max(0, n_others - len(other))  # ids without a hash are not here
        if not n_missing:
            return
        named = _those_among([other.first, other.last], missing)
        what = _one_of(named[0], n_missing) if named else _counted(n_missing)
        raise ValueError(
            f"cannot subtract: {what} not in these statistics (never added, or subtracted before; "
            "ids=None leaves ids unchecked)"
        )

    def _refuse_parts(self, other: QueryIds) -> None:
        """Refuse to subtract queries with another number of rows than they have here."""
        assert self.hashes is not None and other.hashes is not None
        theirs = other.hashes.array()
        mine, others = self.hashes.rows_of(theirs), other.hashes.rows_of(theirs)
        parts = np.flatnonzero((mine != others) & (mine > 0) & (others > 0))
        if not len(parts):
            return
        named = _those_among([other.first, other.last], theirs[parts])
        at = parts[0]
        what = "a query whose id is not known here"
        if named:
            what = f"query {named[0]!r}"
            at = np.flatnonzero(theirs == hash_ids(_objects(named[:1]))[0][0])[0]
        more = f" (and {len(parts) - 1} more like it)" * (len(parts) > 1)
        raise ValueError(
            f"cannot subtract: {what} has {mine[at]} rows in these statistics and {others[at]} in "
            f"what is subtracted{more}: only whole queries can be subtracted"
        )

    def _refuse_other_kind(self, other: QueryIds, verb: str) -> None:
        """Refuse to compare numbers with text that reads as numbers: they are never equal."""
        mine, theirs = (
            [e for e in (one.first, one.last) if e is not None] for one in (self, other)
        )
        for numbers, texts in ((mine, theirs), (theirs, mine)):
            if not (numbers and all(isinstance(one, (int, float)) for one in numbers)):
                continue
            if texts and all(isinstance(one, str) and NUMERAL.fullmatch(one) for one in texts):
                raise ValueError(
                    f"cannot {verb}: one side has query ids that are numbers, such as "
                    f"{numbers[0]!r}, and the other has text, such as {texts[0]!r}, and these are "
                    "never equal: make all ids numbers, or all text (ids=None leaves ids unchecked)"
                )

    def _with(self, other: QueryIds) -> QueryIds:
        """Return the union with ids that share none. If they are too many, they are unchecked."""
        assert self.hashes is not None and other.hashes is not None
        if too_many(len(self) + len(other)):
            return QueryIds(ended=True)
        first = other.first if self.first is None else self.first
        last = self.last if other.last is None else other.last
        are_given = self.are_given or other.are_given
        return QueryIds(self.hashes.union(other.hashes), first, last, are_given=are_given)


def too_many(number: int) -> bool:
    """Tell whether so many ids are not remembered."""
    return number > MOST_IDS


def warn_of_end(ids: QueryIds, *before: QueryIds) -> None:
    """Warn if the check of ids ends here, because there are too many."""
    if ids.ended and not any(one.ended for one in before):
        warn_caller(
            f"these statistics have more than {MOST_IDS:,} queries, and query ids are no longer "
            "checked: a query that is added twice, cut in two, or subtracted without being there "
            "is no longer noticed. To keep the check, keep statistics of fewer queries each. To "
            "check no ids, and silence this warning, make statistics with ids=None",
            UserWarning,
        )


def _of_one_side(verb: str, left: bool) -> str:
    """Return the message for statistics that have ids on one side alone."""
    named, unnamed = ("left", "right") if left else ("right", "left")
    return (
        f"cannot {verb}: the {named} side remembers query ids, and the {unnamed} side has none "
        "that it remembers, so that nothing tells which queries are in both: give qid to both, or "
        "make both with ids=None"
    )


def _counted(number: int) -> str:
    """Return the subject and the verb of a sentence on ids that cannot be named."""
    return "1 query id is" if number == 1 else f"{number} query ids are"


def _one_of(name: Any, number: int) -> str:
    """Return the subject and the verb of a sentence on ids of which one is named."""
    return f"query {name!r} is" if number == 1 else f"query {name!r} and {number - 1} more are"


def _objects(ids: Sequence[Any]) -> NDArray[np.object_]:
    """Return an array of ids. Tuples among them stay tuples."""
    objects = np.empty(len(ids), dtype=object)
    objects[:] = list(ids)
    return objects


def _those_among(ids: Sequence[Any], hashes: Hashes) -> list[Any]:
    """Return those of the ids whose hash is among `hashes`. An entry of None is ignored."""
    own, known = hash_ids(_objects(ids))
    found = known & IdSet.of(hashes).contains(own)
    return [one for one, among in zip(ids, found, strict=True) if among]
