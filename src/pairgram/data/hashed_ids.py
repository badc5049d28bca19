"""Query ids as 64-bit hashes that are the same in every process, and those statistics remember."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.arrays import converted_times
from pairgram._support.checks import AnyArray, ArgumentError, Flags, Rows, Vector, warn_caller
from pairgram.data.queries import Queries, plain_ids

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

# The kinds of ids. Their numbers enter the hashes, so they are part of the file format.
WHOLE, REAL, TEXT, BYTES, TIME, LARGE, TUPLE, INSTANT, UUID, DURATION = range(1, 11)

DAY_OF_1970 = date(1970, 1, 1).toordinal()
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
NANOSECOND = ATTOSECONDS["ns"]


def hash_ids(ids: AnyArray) -> tuple[Hashes, Flags]:
    """Return (hashes, which ids have a hash) for distinct ids, both of shape (n_ids,).

    Parameters
    ----------
    ids : ndarray of shape (n_ids,)
        The ids of a `Queries`.

    Notes
    -----
    Let ``mix`` be the finaliser of SplitMix64. A hash begins with ``h = mix(kind)`` and continues
    with ``h = mix(h ^ unit)`` for every unit of 64 bits. The kind and the units depend on the id:

    - a whole number of 64 bits (any integer type, bool, or a float without a fraction): kind 1, and
      the number. Equal numbers are therefore equal ids, and different ones never share a hash;
    - a float with a fraction, or infinity: kind 2, and its bits as a float64;
    - text: kind 3, its code points, two to a unit, and their number;
    - bytes: kind 4, eight bytes to a unit, and their number;
    - a time without a time zone (of NumPy, pandas or Python): kind 5, and the nanoseconds since
      1970. A date is the time at which it begins, as in NumPy;
    - a larger whole number, or a decimal that no float is equal to: kind 6, and its decimal text as
      bytes;
    - a tuple: kind 7, the hashes of its members, and their number;
    - a time with a time zone: kind 8, and the nanoseconds since 1970 in UTC, so that equal instants
      are equal ids;
    - a `uuid.UUID`: kind 9, and its text as bytes;
    - a difference of times: kind 10, and the nanoseconds.

    If nanoseconds do not fit into 64 bits, or have a fraction, the decimal text of the attoseconds
    is hashed like bytes.

    Ids of other types have no hash, because it is unknown when they are equal in another process.
    Two further kinds of ids have no hash: NumPy's times in years or months that do not fit into
    days of 64 bits, and numbers wider than a float64 that are neither whole nor equal to a float64.
    """
    known = np.ones(len(ids), dtype=bool)
    kind = ids.dtype.kind
    if kind in "biu" and not (kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max):
        return _hashed(WHOLE, ids.astype(np.int64).view(np.uint64)[:, None]), known
    if kind == "f" and ids.dtype.itemsize <= 8:
        return _hash_floats(ids.astype(np.float64)), known
    if kind == "U":
        return _hash_texts(ids), known
    if kind in "mM":
        return _hash_times(ids)
    return _hash_objects(ids.astype(object))


def _hash_floats(values: Vector) -> Hashes:
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    numbers = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64)
    with_fraction = _hashed(REAL, np.ascontiguousarray(values).view(np.uint64)[:, None])
    hashes = np.where(whole, _hashed(WHOLE, numbers[:, None]), with_fraction)
    large = np.isfinite(values) & (np.abs(values) >= 2.0**53) & ~whole
    for k in np.flatnonzero(large):  # these are whole too, but too large for 64 bits
        hashes[k] = _hash_whole(int(values[k]))
    return hashes


def _hash_times(ids: AnyArray) -> tuple[Hashes, Flags]:
    """Return (hashes, which ids have a hash) for NumPy's times or differences of times."""
    kind = TIME if ids.dtype.kind == "M" else DURATION
    nanoseconds, exact = converted_times(ids, np.dtype(f"{ids.dtype.kind}8[ns]"))
    hashes = _hashed(kind, nanoseconds.view(np.uint64)[:, None])
    known = np.ones(len(ids), dtype=bool)
    for k in np.flatnonzero(~exact):
        one = _attoseconds(ids[k : k + 1])
        known[k] = one is not None
        hashes[k] = 0 if one is None else _hash_attoseconds(kind, one)
    return hashes, known


def _attoseconds(time: AnyArray) -> int | None:
    """Return one time of NumPy, of shape (1,), in attoseconds; None if 64-bit days overflow."""
    if np.datetime_data(time.dtype)[0] in "YM":
        time, exact = converted_times(time, np.dtype(f"{time.dtype.kind}8[D]"))
        if not exact.all():
            return None
    unit, count = np.datetime_data(time.dtype)
    return int(time.view(np.int64)[0]) * count * ATTOSECONDS[unit]


def _hash_attoseconds(kind: int, attoseconds: int) -> int:
    number, fraction = divmod(attoseconds, NANOSECOND)
    if fraction == 0 and -(2**63) <= number < 2**63:
        return _hash_number(kind, number)
    return _hash_bytes(kind, str(attoseconds).encode())


def _hash_number(kind: int, number: int) -> int:
    return int(_hashed(kind, np.array([[number]], np.int64).view(np.uint64))[0])


def _hash_whole(number: int) -> int:
    if -(2**63) <= number < 2**63:
        return _hash_number(WHOLE, number)
    return _hash_bytes(LARGE, str(number).encode())


def _hash_texts(texts: NDArray[np.str_], lengths: Rows | None = None) -> Hashes:
    width = texts.dtype.itemsize // 4
    native = np.ascontiguousarray(texts, dtype=texts.dtype.newbyteorder("="))
    points = np.zeros((width + width % 2, len(texts)), dtype=np.uint32)
    points[:width] = native.view(np.uint32).reshape(len(texts), width).T
    if lengths is None:  # NumPy's texts end at the last character that is not NUL
        lengths = np.zeros(len(texts), dtype=np.int64)
        for k in range(width):
            lengths[points[k] != 0] = k + 1
    longest = int(lengths.max(initial=0))
    points = points[: longest + longest % 2]
    units = points[::2].astype(np.uint64) | points[1::2].astype(np.uint64) << np.uint64(32)
    return _hashed(TEXT, units.T, lengths, per_unit=2)


def _hash_objects(ids: NDArray[np.object_]) -> tuple[Hashes, Flags]:
    values = ids.tolist()
    if values and all(type(value) is str for value in values):
        try:
            lengths = np.fromiter(map(len, values), np.int64, len(values))
            return _hash_texts(np.array(values, dtype=np.str_), lengths), np.ones(len(ids), bool)
        except UnicodeEncodeError:  # halves of surrogate pairs
            pass
    each = [_hash_one(value) for value in values]
    known = np.array([one is not None for one in each], dtype=bool)
    return np.array([one or 0 for one in each], dtype=np.uint64), known


def _hash_one(value: object) -> int | None:
    """Return the hash of one id, or None if its type has none."""
    if isinstance(value, (np.datetime64, np.timedelta64)):  # timedelta64 is also an np.integer
        hashes, known = _hash_times(np.array([value]))
        return int(hashes[0]) if known[0] else None
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return _hash_whole(int(value))
    if isinstance(value, (float, np.floating)):
        if np.isfinite(value) and int(value) == value:
            return _hash_whole(int(value))
        rounded = np.array([value], dtype=np.float64)
        return int(_hash_floats(rounded)[0]) if rounded[0] == value else None
    if isinstance(value, Decimal):
        if value.is_finite() and value == int(value):
            return _hash_whole(int(value))
        real = float(value)
        digits = format(value, "f").rstrip("0").encode()
        return _hash_one(real) if real == value else _hash_bytes(LARGE, digits)
    if isinstance(value, str):
        points = np.frombuffer(value.encode("utf-32-le", "surrogatepass"), np.uint32)
        text = np.zeros(max(1, len(points)), np.uint32)
        text[: len(points)] = points
        as_text = text.view(f"U{len(text)}")
        return int(_hash_texts(as_text, np.array([len(points)]))[0])
    if isinstance(value, (bytes, np.bytes_)):
        return _hash_bytes(BYTES, bytes(value))
    if isinstance(value, timedelta):
        return _hash_attoseconds(DURATION, _of_duration(value))
    if isinstance(value, date):  # a datetime is a date too
        attoseconds, offset = _of_date(value), getattr(value, "utcoffset", lambda: None)()
        if offset is None:
            return _hash_attoseconds(TIME, attoseconds)
        return _hash_attoseconds(INSTANT, attoseconds - _of_duration(offset))
    if isinstance(value, uuid.UUID):
        return _hash_bytes(UUID, str(value).encode())
    if type(value) is tuple:
        members = [_hash_one(member) for member in value]
        if None in members:
            return None
        units = np.array(members, dtype=np.uint64)[None]
        return int(_hashed(TUPLE, units, np.array([len(members)]))[0])
    return None


def _of_duration(value: timedelta) -> int:
    """Return a difference of times, of Python or pandas, in attoseconds."""
    whole = 86400 * value.days + value.seconds
    fine = 1000 * value.microseconds + getattr(value, "nanoseconds", 0)
    return whole * ATTOSECONDS["s"] + fine * NANOSECOND


def _of_date(value: date) -> int:
    """Return the attoseconds since 1970 of a date or time, ignoring its time zone."""
    seconds, fine = 86400 * (value.toordinal() - DAY_OF_1970), 0
    if isinstance(value, datetime):
        seconds += 3600 * value.hour + 60 * value.minute + value.second
        fine = 1000 * value.microsecond + getattr(value, "nanosecond", 0)
    return seconds * ATTOSECONDS["s"] + fine * NANOSECOND


def _hash_bytes(kind: int, value: bytes) -> int:
    padded = value + bytes(-len(value) % 8)
    units = np.frombuffer(padded, dtype="<u8").astype(np.uint64)[None]
    return int(_hashed(kind, units, np.array([len(value)]), per_unit=8)[0])


def _hashed(
    kind: int,
    units: Hashes,
    lengths: Rows | None = None,
    *,
    per_unit: int = 1,
) -> Hashes:
    """Return the hashes of rows of units, (n, width).

    With `lengths`, only the first values of a row count, and the length is hashed too. A length
    counts values, and a unit holds `per_unit` values.
    """
    h = mix(np.full(len(units), kind, dtype=np.uint64))
    for k in range(units.shape[1]):
        mixed = mix(h ^ units[:, k])
        h = mixed if lengths is None else np.where(lengths > k * per_unit, mixed, h)
    return h if lengths is None else mix(h ^ lengths.astype(np.uint64))


def mix(z: Hashes) -> Hashes:
    """Apply the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection of 64 bits."""
    z = z + np.uint64(0x9E3779B97F4A7C15)  # NumPy's arrays add modulo 2^64
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class IdSet:
    """A set of hashes that can grow by small steps.

    Attributes
    ----------
    runs : tuple of ndarray of uint64
        Sorted arrays without a common hash. Each is at least twice as long as the next.
    """

    runs: tuple[Hashes, ...] = ()

    @classmethod
    def of(cls, hashes: Hashes) -> IdSet:
        """Make a set from hashes in any order."""
        distinct = np.unique(hashes)
        return cls((distinct,) if len(distinct) else ())

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def contains(self, hashes: Hashes) -> Flags:
        """Tell which hashes are in the set, in O(log² n) time each."""
        found = np.zeros(len(hashes), dtype=bool)
        for run in self.runs:
            at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found |= run[at] == hashes
        return found

    def union(self, other: IdSet) -> IdSet:
        """Return the union with a set that shares no hash.

        Over many steps this takes O(log n) time for each hash.
        """
        runs = list(self.runs)
        for run in other.runs:
            runs.append(run)
            while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
                last = runs.pop()
                runs[-1] = np.sort(np.concatenate([runs[-1], last]), kind="stable")
        return IdSet(tuple(runs))

    def without(self, other: IdSet) -> IdSet:
        """Return the set without the hashes of another."""
        kept = (run[~other.contains(run)] for run in self.runs)
        return IdSet(tuple(run for run in kept if len(run)))

    def array(self) -> Hashes:
        """Return all hashes, sorted."""
        return np.sort(np.concatenate([np.empty(0, np.uint64), *self.runs]))


@dataclass(frozen=True, eq=False)
class QueryIds:
    """The query ids that statistics hold, so that none is added twice or taken away twice.

    Attributes
    ----------
    hashes : IdSet or None
        None if ids are not checked.
    """

    hashes: IdSet | None = None

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
        ids = queries.ids
        if self.hashes is None:
            return self
        ids = np.empty(0) if ids is None else ids
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
        again = self.hashes.contains(hashes)
        if again.any():
            (found,) = plain_ids(ids[[int(np.argmax(again))]])
            more = int(np.count_nonzero(again)) - 1
            raise ValueError(
                f"qid {found!r}{f' and {more} more' * (more > 0)} came in an earlier update: each "
                f"call must hold whole queries, once {OTHERWISE}"
            )
        return self._with(IdSet.of(hashes))

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
            If an id is in both; or if queries with ids meet queries without.
        """
        if self.hashes is None or other.hashes is None:
            return QueryIds()
        self._require_like(other, n_queries, n_others, "merge")
        few, many = sorted((self.hashes, other.hashes), key=len)
        n_shared = int(np.count_nonzero(many.contains(few.array())))
        if n_shared:
            raise ValueError(
                f"cannot merge: {_counted(n_shared)} in both, and a query that is cut in two loses "
                f"pairs; each side must hold whole queries, once {OTHERWISE}"
            )
        return self._with(other.hashes)

    def without(self, other: QueryIds, n_queries: int, n_others: int) -> QueryIds:
        """Return the ids without those of statistics that are subtracted; see `union`.

        Raises
        ------
        ValueError
            If an id is not there; or if queries with ids meet queries without.
        """
        if self.hashes is None or other.hashes is None:
            return self
        self._require_like(other, n_queries, n_others, "subtract")
        n_missing = int(np.count_nonzero(~self.hashes.contains(other.hashes.array())))
        if n_missing:
            raise ValueError(
                f"cannot subtract: {_counted(n_missing)} not in these statistics (never added, or "
                "subtracted before; ids=None leaves ids unchecked)"
            )
        return QueryIds(self.hashes.without(other.hashes))

    def _require_like(self, other: QueryIds, n_queries: int, n_others: int, verb: str) -> None:
        """Raise a ValueError if the queries of one side have ids, and those of the other have not.

        Nothing would then tell which queries are in both.
        """
        assert self.hashes is not None and other.hashes is not None
        if n_queries and n_others and (len(self.hashes) > 0) != (len(other.hashes) > 0):
            named, unnamed = ("left", "right") if len(self.hashes) else ("right", "left")
            raise ValueError(
                f"cannot {verb}: queries of the {named} side have ids, and those of the {unnamed} "
                f"side have none: {EITHER}"
            )

    def _with(self, hashes: IdSet) -> QueryIds:
        """Return the union with ids that share none. If they are too many, they are unchecked."""
        assert self.hashes is not None
        if len(self.hashes) + len(hashes) > limits.now.most_ids:
            return QueryIds()
        return QueryIds(self.hashes.union(hashes))


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


def _counted(number: int) -> str:
    """Return the subject and the verb of a sentence on ids."""
    return "1 query id is" if number == 1 else f"{number} query ids are"
