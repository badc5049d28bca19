"""Query ids as 64-bit hashes that are the same in every process, and those statistics remember."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.checks import AnyArray, ArgumentError, Flags, verbatim, warn_caller
from pairgram.data.queries import Queries, comparable, comparable_id, plain_ids

Hashes = NDArray[np.uint64]

# What to do about ids that do not suit the check.
EITHER = (
    "give qid with all rows, or with none (ids=None of Pairgram and from_rows leaves ids unchecked)"
)
OTHERWISE = (
    "(if ids start again each day, add the day to them; ids=None takes equal ids for different "
    "queries)"
)


def hash_ids(ids: AnyArray) -> Hashes:
    """Return the hashes of distinct ids, (n_ids,).

    Parameters
    ----------
    ids : ndarray of shape (n_ids,)
        The ids of a `Queries`.

    Raises
    ------
    ValueError
        If it is unknown when ids of a type are equal in another process.

    Notes
    -----
    The hash of a whole number of 64 bits, in any type of numbers, is `mix` of it: equal numbers
    are equal ids, and different ones never share a hash. Other ids have BLAKE2b of 64 bits, of a
    byte for their kind followed by

    - text: its UTF-8; bytes: as they are; a `uuid.UUID`: its bytes;
    - another number: its exact value as a fraction in lowest terms, or infinity;
    - a tuple: the hashes of its members. Times and their differences are the tuples of
      `queries.comparable`.
    """
    whole = ids
    if ids.dtype.kind == "f" and (np.abs(ids) < 2.0**63).all():
        whole = ids.astype(np.int64)
    if whole.dtype.kind in "biu" and (whole == ids).all() and (whole < 2.0**63).all():
        return mix(whole.astype(np.int64).view(np.uint64))
    return np.array([*map(_hash_of, comparable(ids))], dtype=np.uint64)


def mix(z: Hashes) -> Hashes:
    """Apply the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection of 64 bits."""
    z = z + np.uint64(0x9E3779B97F4A7C15)  # NumPy's arrays add modulo 2^64
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _hash_of(value: Any) -> int:
    """Return the hash of one id."""
    if isinstance(value, str):
        told = b"t" + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        told = b"b" + value
    elif isinstance(value, uuid.UUID):
        told = b"u" + value.bytes
    elif type(value) is tuple:
        members = [*map(_hash_of, map(comparable_id, value))]
        told = b"m" + np.array(members, dtype=np.uint64).tobytes()
    elif not isinstance(value, (int, float, np.floating, Decimal)):
        raise ArgumentError(
            "qid",
            "must be numbers, text, bytes, times, UUID or tuples of these, got "
            f"{verbatim(repr(value))}: give texts instead",
        )
    elif abs(value) == inf:
        told = b"i" if value > 0 else b"j"
    else:
        numerator, denominator = value.as_integer_ratio()
        if denominator == 1 and -(2**63) <= numerator < 2**63:
            return int(mix(np.array([numerator]).view(np.uint64))[0])
        told = f"n{numerator}/{denominator}".encode()
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False)
class QueryIds:
    """The query ids that statistics hold, so that none is added twice or taken away twice.

    Attributes
    ----------
    hashes : ndarray of uint64, sorted and distinct, or None
        None if ids are not checked.
    """

    hashes: Hashes | None = None

    @classmethod
    def of(cls, ids: str | None) -> QueryIds:
        """Return no ids, which are checked if `ids` is "check", and not if it is None."""
        return cls(None if ids is None else np.empty(0, np.uint64))

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
            If an id is there already or cannot be remembered; or if queries with ids meet queries
            without.
        """
        if self.hashes is None:
            return self
        ids = np.empty(0) if queries.ids is None else queries.ids
        hashes = hash_ids(ids)
        again = _are_in(self.hashes, hashes)
        if again.any():
            (found,) = plain_ids(ids[[int(np.argmax(again))]])
            more = int(np.count_nonzero(again)) - 1
            raise ValueError(
                f"qid {found!r}{f' and {more} more' * (more > 0)} came in an earlier update: each "
                f"call must hold whole queries, once {OTHERWISE}"
            )
        hashes = np.sort(hashes)  # which takes a tenth of the time of NumPy's unique
        added = QueryIds(hashes[np.diff(hashes, prepend=~hashes[:1]) != 0])
        return self.joined(added, 1, n_queries, queries.n_queries)

    def joined(self, other: QueryIds, sign: int, n_queries: int, n_others: int) -> QueryIds:
        """Return the ids of two shards, or those without the ids of a shard that is subtracted.

        Parameters
        ----------
        other : QueryIds
        sign : {1, -1}
            If one of the shards is unchecked, so is their sum, but not their difference.
        n_queries, n_others : int
            Number of queries of the statistics with these ids, and of those with the others.

        Raises
        ------
        ValueError
            If an id is in both shards of a sum, or is not there to be taken away; or if queries
            with ids meet queries without, of which nothing tells which are in both.
        """
        mine, theirs = self.hashes, other.hashes
        if mine is None or theirs is None:
            return self if sign < 0 else QueryIds()
        if n_queries and n_others and (len(mine) > 0) != (len(theirs) > 0):
            raise ValueError(
                f"cannot {'merge' if sign > 0 else 'subtract'}: some queries have ids and others "
                f"have none: {EITHER}"
            )
        n_shared = int(np.count_nonzero(_are_in(mine, theirs)))
        n_wrong = n_shared if sign > 0 else len(theirs) - n_shared
        counted = "1 query id is" if n_wrong == 1 else f"{n_wrong} query ids are"
        if n_wrong and sign > 0:
            raise ValueError(
                f"cannot merge: {counted} in both, and a query that is cut in two loses "
                f"pairs; each side must hold whole queries, once {OTHERWISE}"
            )
        if n_wrong:
            raise ValueError(
                f"cannot subtract: {counted} not in these statistics (never added, or "
                "subtracted before; ids=None leaves ids unchecked)"
            )
        places = np.searchsorted(mine, theirs)
        if sign < 0:
            return QueryIds(np.delete(mine, places))
        if len(mine) + len(theirs) > limits.now.most_ids:
            return QueryIds()
        return QueryIds(np.insert(mine, places, theirs))


def _are_in(mine: Hashes, others: Hashes) -> Flags:
    """Tell which of the others are among mine, which are sorted."""
    return np.searchsorted(mine, others, side="right") > np.searchsorted(mine, others)


def warn_of_end(ids: QueryIds, *before: QueryIds) -> None:
    """Warn if the check of ids ends here, because there are too many."""
    if ids.hashes is None and not any(one.hashes is None for one in before):
        warn_caller(
            f"these statistics have more than {limits.now.most_ids:,} queries, and query ids are "
            "no longer checked: a query that is added twice, cut in two, or subtracted without "
            "being there is no longer noticed. To keep the check, keep statistics of fewer queries "
            "each. To check no ids, and silence this warning, make statistics with ids=None",
            UserWarning,
        )
