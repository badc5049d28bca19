"""Query ids that statistics remember, as 64-bit hashes that are the same in every process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram.queries_and_pairs.id_hashes import IdSet, hash_ids
from pairgram.queries_and_pairs.queries import Queries

__all__ = ["QueryIds"]

Hashes = NDArray[np.uint64]

# At most this many ids are remembered.
MOST_IDS = 1_000_000


@dataclass(frozen=True, eq=False)
class QueryIds:
    """The query ids that statistics have seen, and the check that no id comes a second time.

    Attributes
    ----------
    hashes : IdSet or None
        None if ids are not checked.
    first, last : object
        The ids of the first and the last row with an id, for messages. None if there is none.
    """

    hashes: IdSet | None = None
    first: Any = None
    last: Any = None

    def of_rows(self, queries: Queries) -> QueryIds:
        """Return the ids together with those of the rows of an update.

        Raises
        ------
        ValueError
            If an id has been seen before.
        """
        ids = queries.ids
        if self.hashes is None or ids is None or len(ids) == 0:
            return self
        hashes, known = hash_ids(ids)
        again = known & self.hashes.contains(hashes)
        if again.any():
            (found,) = _plain_ids(ids, [int(np.argmax(again))])
            more = int(np.count_nonzero(again)) - 1
            raise ValueError(
                f"qid {found!r}{f' and {more} more' * (more > 0)} came in an earlier update: each "
                "call must hold whole queries (ids=None takes equal ids for different queries)"
            )
        first, last = _plain_ids(ids, [0, int(queries.index()[-1])])
        return self._with(QueryIds(IdSet.of(hashes[known]), first, last))

    def union(self, other: QueryIds) -> QueryIds:
        """Return the ids of two shards. If one of them is unchecked, so is the result.

        Raises
        ------
        ValueError
            If both shards have seen the same id.
        """
        if self.hashes is None or other.hashes is None:
            return QueryIds()
        few, many = sorted((self.hashes, other.hashes), key=len)
        hashes = few.array()
        shared = hashes[many.contains(hashes)]
        if not len(shared):
            return self._with(other)
        what = f"{len(shared)} query ids are in both"
        named = _those_among([self.first, self.last, other.first, other.last], shared)
        if named:
            more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
            what = f"query {named[0]!r}{more} is in both"
        raise ValueError(
            f"cannot merge: {what}, and a query that is cut in two loses pairs; each side must "
            "hold whole queries (ids=None takes equal ids for different queries)"
        )

    def without(self, other: QueryIds, n_queries: int) -> QueryIds:
        """Return the ids without those of statistics that are subtracted.

        Parameters
        ----------
        other : QueryIds
        n_queries : int
            Number of queries of the statistics with these ids. A query without an id may be any
            query of the others.

        Raises
        ------
        ValueError
            If all queries have ids here, but the others have an id that is not among them.
        """
        if self.hashes is None or other.hashes is None:
            return self
        if len(self.hashes) >= n_queries:
            theirs = other.hashes.array()
            self._refuse_missing(other, theirs[~self.hashes.contains(theirs)])
        return QueryIds(self.hashes.without(other.hashes), self.first, self.last)

    def _refuse_missing(self, other: QueryIds, missing: Hashes) -> None:
        if not len(missing):
            return
        what = f"{len(missing)} query ids of what is subtracted are"
        named = _those_among([other.first, other.last], missing)
        if named:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            what = f"query {named[0]!r}{more} is"
        raise ValueError(
            f"cannot subtract: {what} not in these statistics (never added, or subtracted before; "
            "ids=None leaves ids unchecked)"
        )

    def _with(self, other: QueryIds) -> QueryIds:
        """Return the union with ids that share none. If they are too many, they are unchecked."""
        assert self.hashes is not None and other.hashes is not None
        if len(self.hashes) + len(other.hashes) > MOST_IDS:
            return QueryIds()
        first = other.first if self.first is None else self.first
        last = self.last if other.last is None else other.last
        return QueryIds(self.hashes.union(other.hashes), first, last)


def _plain_ids(ids: NDArray[Any], positions: list[int]) -> list[Any]:
    """Return some ids as Python objects. Times stay NumPy's, else they would become integers."""
    some = ids[positions]
    return list(some) if ids.dtype.kind in "mM" else some.tolist()


def _those_among(ids: Sequence[Any], hashes: Hashes) -> list[Any]:
    """Return those of the ids whose hash is among `hashes`. An entry of None is ignored."""
    objects = np.empty(len(ids), dtype=object)
    objects[:] = list(ids)
    own, known = hash_ids(objects)
    found = known & IdSet.of(hashes).contains(own)
    return [one for one, among in zip(ids, found, strict=True) if among]
