"""Query ids as 64-bit hashes that are the same in every process, and those statistics remember."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.checks import AnyArray, ArgumentError, Flags, warn_caller
from pairgram.data.queries import Queries, plain, plain_ids

Hashes = NDArray[np.uint64]

# What to do about ids that do not suit the check.
EITHER = (
    "either all queries have ids, or none has (ids=None of Pairgram and from_rows leaves ids "
    "unchecked)"
)
OTHERWISE = (
    "(if ids start again each day, add the day to them; ids=None takes equal ids for different "
    "queries)"
)

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


def hash_ids(ids: AnyArray) -> tuple[Hashes, Flags]:
    """Return (hashes, which ids have a hash) for distinct ids, both of shape (n_ids,).

    Parameters
    ----------
    ids : ndarray of shape (n_ids,)
        The ids of a `Queries`.

    Notes
    -----
    The hash of a whole number of 64 bits, in any type of numbers, is `mix` of it: equal numbers
    are equal ids, and different ones never share a hash. Other ids have BLAKE2b of 64 bits, of a
    byte for their kind followed by

    - text: its UTF-8; bytes: as they are; a `uuid.UUID`: its bytes;
    - another number: its exact value as a fraction in lowest terms, or infinity;
    - a time of NumPy, pandas or Python: the attoseconds since 1970, in UTC for one with a time
      zone, which is of another kind. A date is the time at which it begins, as in NumPy;
    - a difference of times: the attoseconds;
    - a tuple: the hashes of its members.

    Ids of other types have no hash, because it is unknown when they are equal in another process;
    nor have NumPy's times in years or months that do not fit into days of 64 bits.
    """
    whole, known = ids, np.ones(len(ids), dtype=bool)
    if ids.dtype.kind == "f" and (np.abs(ids) < 2.0**63).all():
        whole = ids.astype(np.int64)
    if whole.dtype.kind in "biu" and (whole == ids).all() and (whole < 2.0**63).all():
        return mix(whole.astype(np.int64).view(np.uint64)), known
    found = list(map(_hash_of, plain_ids(ids)))
    known[:] = [one is not None for one in found]
    return np.array([one or 0 for one in found], dtype=np.uint64), known


def mix(z: Hashes) -> Hashes:
    """Apply the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection of 64 bits."""
    z = z + np.uint64(0x9E3779B97F4A7C15)  # NumPy's arrays add modulo 2^64
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _hash_of(value: Any) -> int | None:
    """Return the hash of one id, or None if its type has none."""
    if isinstance(value, str):
        told = b"t" + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        told = b"b" + value
    elif isinstance(value, uuid.UUID):
        told = b"u" + value.bytes
    elif type(value) is tuple:
        members = [_hash_of(plain(member)) for member in value]
        if None in members:
            return None
        told = b"m" + np.array(members, dtype=np.uint64).tobytes()
    elif isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)):
        attoseconds = _attoseconds(value)
        if attoseconds is None:
            return None
        is_difference = isinstance(value, (timedelta, np.timedelta64))
        kind = "d" if is_difference else "z" if _has_zone(value) else "s"
        told = f"{kind}{attoseconds}".encode()
    elif isinstance(value, (int, float, np.floating, Decimal)):
        if abs(value) == inf:
            told = b"i" if value > 0 else b"j"
        else:
            numerator, denominator = value.as_integer_ratio()
            if denominator == 1 and -(2**63) <= numerator < 2**63:
                return int(mix(np.array([numerator]).view(np.uint64))[0])
            told = f"n{numerator}/{denominator}".encode()
    else:
        return None
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "little")


def _has_zone(time: Any) -> bool:
    return isinstance(time, datetime) and time.utcoffset() is not None


def _attoseconds(time: Any) -> int | None:
    """Return a time since 1970, or a difference of times; None if 64 bits do not hold its days."""
    if hasattr(time, "to_numpy"):  # those of pandas, with nanoseconds and in UTC
        time = time.to_numpy()
    if isinstance(time, datetime):
        time -= datetime(1970, 1, 1, tzinfo=UTC if _has_zone(time) else None)
    elif isinstance(time, date):
        time -= date(1970, 1, 1)
    if isinstance(time, timedelta):
        return time // timedelta(microseconds=1) * ATTOSECONDS["us"]
    times = np.array([time])
    unit, count = np.datetime_data(times.dtype)
    if unit not in ATTOSECONDS:  # years and months
        given = times
        try:
            times = given.astype(f"{given.dtype.kind}8[D]")
            if times.astype(given.dtype)[0] != given[0]:
                return None
        except OverflowError:  # NumPy 2.5 tells of times out of range; before, they came out wrong
            return None
        unit, count = "D", 1
    return int(times.view(np.int64)[0]) * count * ATTOSECONDS[unit]


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
        if n_queries and (len(ids) > 0) != (len(self.hashes) > 0):
            told, others = ("left out", "have none") if len(ids) else ("given", "have ids")
            raise ArgumentError("qid", f"must be {told}, as earlier queries {others}: {EITHER}")
        hashes, known = hash_ids(ids)
        if not known.all():
            (found,) = plain_ids(ids[[int(np.argmin(known))]])
            raise ArgumentError(
                "qid",
                f"must be numbers, text, bytes, times, UUID or tuples of these, got {found!r} "
                "(ids=None leaves ids unchecked)",
            )
        again = _are_in(self.hashes, hashes)
        if again.any():
            (found,) = plain_ids(ids[[int(np.argmax(again))]])
            more = int(np.count_nonzero(again)) - 1
            raise ValueError(
                f"qid {found!r}{f' and {more} more' * (more > 0)} came in an earlier update: each "
                f"call must hold whole queries, once {OTHERWISE}"
            )
        hashes = np.sort(hashes)  # which takes a tenth of the time of NumPy's unique
        return self._with(self.hashes, hashes[np.diff(hashes, prepend=~hashes[:1]) != 0])

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
            named, unnamed = ("left", "right") if len(mine) else ("right", "left")
            raise ValueError(
                f"cannot {'merge' if sign > 0 else 'subtract'}: queries of the {named} side have "
                f"ids, and those of the {unnamed} side have none: {EITHER}"
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
        if sign > 0:
            return self._with(mine, theirs)
        return QueryIds(np.delete(mine, np.searchsorted(mine, theirs)))

    @staticmethod
    def _with(mine: Hashes, others: Hashes) -> QueryIds:
        """Return the union of ids that share none. If they are too many, they are unchecked."""
        if len(mine) + len(others) > limits.now.most_ids:
            return QueryIds()
        return QueryIds(np.insert(mine, np.searchsorted(mine, others), others))


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
