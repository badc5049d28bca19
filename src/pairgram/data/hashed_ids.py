"""Query ids as 64-bit hashes that are the same in every process, and those statistics remember."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._support import limits
from pairgram._support.arrays import converted_times, object_array
from pairgram._support.checks import warn_caller
from pairgram.data.queries import Queries, plain_ids

Hashes = NDArray[np.uint64]
Weights = NDArray[np.float64]

# What statistics remember of a query: its number of rows, and a sum over them of weights and
# labels. Rows that are not known are 0, and a sum that is not known is −1.
SIZE = np.dtype([("rows", np.uint32), ("sum", np.float32)])
Sizes = NDArray[np.void]

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


def hash_ids(ids: NDArray[Any]) -> tuple[Hashes, NDArray[np.bool_]]:
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


def _hash_floats(values: NDArray[np.float64]) -> Hashes:
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    numbers = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64)
    with_fraction = _hashed(REAL, np.ascontiguousarray(values).view(np.uint64)[:, None])
    hashes = np.where(whole, _hashed(WHOLE, numbers[:, None]), with_fraction)
    large = np.isfinite(values) & (np.abs(values) >= 2.0**53) & ~whole
    for k in np.flatnonzero(large):  # these are whole too, but too large for 64 bits
        hashes[k] = _hash_whole(int(values[k]))
    return hashes


def _hash_times(ids: NDArray[Any]) -> tuple[Hashes, NDArray[np.bool_]]:
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


def _attoseconds(time: NDArray[Any]) -> int | None:
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


def _hash_texts(texts: NDArray[np.str_], lengths: NDArray[np.int64] | None = None) -> Hashes:
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


def _hash_objects(ids: NDArray[np.object_]) -> tuple[Hashes, NDArray[np.bool_]]:
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
    lengths: NDArray[np.int64] | None = None,
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
    return np.asarray(z ^ (z >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class IdSet:
    """A set of hashes that can grow by small steps. It may know the size of the query of each.

    Attributes
    ----------
    runs : tuple of ndarray of uint64
        Sorted arrays without a common hash. Each is at least twice as long as the next.
    sizes : tuple of ndarray of SIZE, or None
        The size of the query of every hash of every run. None if none is known.
    """

    runs: tuple[Hashes, ...] = ()
    sizes: tuple[Sizes, ...] | None = None

    @classmethod
    def of(cls, hashes: Hashes, sizes: Sizes | None = None) -> IdSet:
        """Make a set from hashes in any order, and the sizes of their queries."""
        if sizes is None:
            distinct = np.unique(hashes)
            return cls((distinct,) if len(distinct) else ())
        distinct, first = np.unique(hashes, return_index=True)
        return cls((distinct,), (sizes[first],)) if len(distinct) else cls()

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def contains(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Tell which hashes are in the set, in O(log² n) time each."""
        found = np.zeros(len(hashes), dtype=bool)
        for run in self.runs:
            at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found |= run[at] == hashes
        return found

    def sizes_of(self, hashes: Hashes) -> Sizes:
        """Return the sizes of hashes, 0 for those that are not there or not known."""
        found = np.zeros(len(hashes), SIZE)
        for run, sizes in zip(self.runs, self.sizes or (), strict=False):
            at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found = np.where(run[at] == hashes, sizes[at], found)
        return found

    def union(self, other: IdSet) -> IdSet:
        """Return the union with a set that shares no hash.

        Over many steps this takes O(log n) time for each hash.
        """
        sized = self.sizes is not None or other.sizes is not None
        runs: list[Hashes] = list(self.runs)
        sizes: list[Sizes] = list(self._known_sizes()) if sized else []
        for k, run in enumerate(other.runs):
            runs.append(run)
            if sized:
                sizes.append(other._known_sizes()[k])
            while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
                last = runs.pop()
                joined = np.concatenate([runs[-1], last])
                if not sized:
                    runs[-1] = np.sort(joined, kind="stable")
                    continue
                order = np.argsort(joined, kind="stable")
                runs[-1] = joined[order]
                last_sizes = sizes.pop()
                sizes[-1] = np.concatenate([sizes[-1], last_sizes])[order]
        return IdSet(tuple(runs), tuple(sizes) if sized else None)

    def _known_sizes(self) -> tuple[Sizes, ...]:
        """Return the sizes, 0 if none is known."""
        if self.sizes is not None:
            return self.sizes
        return tuple(np.zeros(len(run), SIZE) for run in self.runs)

    def without(self, other: IdSet) -> IdSet:
        """Return the set without the hashes of another."""
        kept = [~other.contains(run) for run in self.runs]
        some = [k for k, keep in enumerate(kept) if keep.any()]
        sizes = None if self.sizes is None else tuple(self.sizes[k][kept[k]] for k in some)
        return IdSet(tuple(self.runs[k][kept[k]] for k in some), sizes)

    def array(self) -> Hashes:
        """Return all hashes, sorted."""
        return np.sort(np.concatenate([np.empty(0, np.uint64), *self.runs]))


@dataclass(frozen=True, eq=False)
class WeightedIds:
    """A set of hashes, each with the factor by which its query counts.

    Few factors are shared by many hashes, so a hash takes no more memory than in an `IdSet`.

    Attributes
    ----------
    groups : tuple of (float, IdSet)
        The factors, all different, and the hashes that have them. No set is empty, and none has a
        hash of another.
    """

    groups: tuple[tuple[float, IdSet], ...] = ()

    @classmethod
    def of(cls, hashes: Hashes, sizes: Sizes | None = None) -> WeightedIds:
        """Make a set from hashes in any order, and the sizes of their queries; the factor is 1."""
        return cls._joined([(1.0, IdSet.of(hashes, sizes))])

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> WeightedIds:
        """Make a set from what `arrays` returned."""
        hashes, sizes = arrays.get("ids", np.empty(0, np.uint64)), None
        if "id_rows" in arrays:
            sizes = np.zeros(len(hashes), SIZE)
            sizes["rows"], sizes["sum"] = arrays["id_rows"], arrays.get("id_sums", -1)
        if "factors" not in arrays:
            return cls.of(hashes, sizes)
        bounds = np.cumsum(arrays["ids_of_factor"])[:-1]
        parts = np.split(hashes, bounds)
        each = [None] * len(parts) if sizes is None else np.split(sizes, bounds)
        factors = arrays["factors"].tolist()
        return cls._joined(
            (factor, IdSet.of(part, size))
            for factor, part, size in zip(factors, parts, each, strict=True)
        )

    @classmethod
    def _joined(cls, groups: Iterable[tuple[float, IdSet]]) -> WeightedIds:
        """Make a set of groups; those of one factor become one, and empty ones are left out."""
        found: dict[float, IdSet] = {}
        for factor, ids in groups:
            if len(ids):
                found[factor] = found[factor].union(ids) if factor in found else ids
        return cls(tuple(found.items()))

    def __len__(self) -> int:
        return sum(len(ids) for _, ids in self.groups)

    def contains(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Tell which hashes are in the set."""
        found = np.zeros(len(hashes), dtype=bool)
        for _, ids in self.groups:
            found |= ids.contains(hashes)
        return found

    def sizes_of(self, hashes: Hashes) -> Sizes:
        """Return the sizes of hashes, 0 for those that are not there or not known."""
        found = np.zeros(len(hashes), SIZE)
        for _, ids in self.groups:
            found = np.where(ids.contains(hashes), ids.sizes_of(hashes), found)
        return found

    def factors_of(self, hashes: Hashes) -> Weights:
        """Return the factors of hashes, NaN for those that are not there."""
        found = np.full(len(hashes), np.nan)
        for factor, ids in self.groups:
            found[ids.contains(hashes)] = factor
        return found

    def union(self, other: WeightedIds) -> WeightedIds:
        """Return the union with a set that shares no hash."""
        return self._joined([*self.groups, *other.groups])

    def without(self, hashes: Hashes) -> WeightedIds:
        """Return the set without some hashes."""
        gone = IdSet.of(hashes)
        return self._joined((factor, ids.without(gone)) for factor, ids in self.groups)

    def times(self, number: float) -> WeightedIds:
        """Return the set with all factors multiplied by a number > 0."""
        if not np.isfinite([number * factor for factor, _ in self.groups]).all():
            raise ValueError(f"cannot multiply by {number:g}: the factor of a query overflows")
        return self._joined((number * factor, ids) for factor, ids in self.groups)

    def array(self) -> Hashes:
        """Return all hashes, sorted."""
        return np.sort(
            np.concatenate([np.empty(0, np.uint64), *(e.array() for _, e in self.groups)])
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a file of statistics holds, by their names there.

        The hashes stand together by factor. Factors are left out if all are 1, and the sizes of
        queries if none is known.
        """
        if not self.groups:
            return {}
        parts = [ids.array() for _, ids in self.groups]
        arrays: dict[str, NDArray[Any]] = {"ids": np.concatenate(parts)}
        if any(ids.sizes is not None for _, ids in self.groups):
            sizes = self.sizes_of(arrays["ids"])
            arrays["id_rows"], arrays["id_sums"] = sizes["rows"].copy(), sizes["sum"].copy()
        if any(factor != 1 for factor, _ in self.groups):
            arrays["factors"] = np.array([factor for factor, _ in self.groups])
            arrays["ids_of_factor"] = np.array([len(part) for part in parts], dtype=np.int64)
        return arrays


# Factors of an id that differ by a larger share are different, and so are sums, of float32.
SAME_FACTOR = 1e-12
SAME_SUM = 1e-5
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
    hashes : WeightedIds or None
        With the factor by which each query counts. None if ids are not checked.
    first, last : object
        The ids of the first and the last row with an id, for messages. None if there is none.
    ended : bool
        Whether ids are not checked because they were too many.
    are_given : bool
        Whether queries have ids to check, although their type may not be remembered.
    """

    hashes: WeightedIds | None = None
    first: Any = None
    last: Any = None
    ended: bool = False
    are_given: bool = False

    def __len__(self) -> int:
        """Return the number of ids that are remembered."""
        return 0 if self.hashes is None else len(self.hashes)

    def of_rows(
        self,
        queries: Queries,
        n_queries: int,
        labels: Weights,
        row_weights: Weights | None,
        query_weights: Weights | None,
    ) -> QueryIds:
        """Return the ids together with those of the rows of an update.

        Parameters
        ----------
        queries : Queries
            Of the rows.
        n_queries : int
            Number of queries of the statistics with these ids.
        labels, row_weights : of shape (n_rows,)
        query_weights : of shape (n_queries,)
            What enters the sums of the queries. Weights of None are 1.

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
                "call must hold whole queries, once (if ids start again each day, add the day to "
                "them; ids=None takes equal ids for different queries)"
            )
        sizes = _sizes(queries, labels, row_weights, query_weights)
        found = WeightedIds.of(hashes[known], sizes[known])
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
            "hold whole queries, once (if ids start again each day, add the day to them; "
            "ids=None takes equal ids for different queries)"
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
            query has another number of rows, other weights or labels, or another factor there; or
            if one side has ids, and the other has none that are remembered.
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
        self._refuse_other_rows(other)
        self._refuse_other_factors(other)
        return replace(self, hashes=self.hashes.without(other.hashes.array()))

    def times(self, number: float) -> QueryIds:
        """Return the ids of statistics that were multiplied by a number >= 0; by 0, there are none.

        The check begins again after a multiplication by 0.
        """
        if number == 0:
            return QueryIds(WeightedIds() if self.ended or self.hashes is not None else None)
        return self if self.hashes is None else replace(self, hashes=self.hashes.times(number))

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

    def _refuse_other_rows(self, other: QueryIds) -> None:
        """Refuse to subtract queries with other rows than they have here, as far as is known."""
        assert self.hashes is not None and other.hashes is not None
        theirs = other.hashes.array()
        mine, others = self.hashes.sizes_of(theirs), other.hashes.sizes_of(theirs)
        known = (mine["rows"] > 0) & (others["rows"] > 0)
        for name, same in (("rows", 0.0), ("sum", SAME_SUM)):
            least, most = np.minimum(mine[name], others[name]), np.maximum(mine[name], others[name])
            wrong = np.flatnonzero(known & (least >= 0) & (least < (1 - same) * most))
            if not len(wrong):
                continue
            at, what, more = other._one_of_these(theirs, wrong)
            if name == "sum":
                raise ValueError(
                    f"cannot subtract: {what} has other weights or labels in these statistics "
                    f"than in what is subtracted{more}: give the labels, sample_weight, "
                    "query_weight and propensity with which it was added"
                )
            raise ValueError(
                f"cannot subtract: {what} has {mine[name][at]} rows in these statistics and "
                f"{others[name][at]} in what is subtracted{more}: only whole queries can be "
                "subtracted"
            )

    def _refuse_other_factors(self, other: QueryIds) -> None:
        """Refuse to subtract queries with another factor than that by which they count here."""
        assert self.hashes is not None and other.hashes is not None
        theirs = other.hashes.array()
        mine, others = self.hashes.factors_of(theirs), other.hashes.factors_of(theirs)
        largest = np.maximum(mine, others)
        wrong = np.flatnonzero(np.abs(mine - others) > SAME_FACTOR * largest)  # NaN is no number
        if not len(wrong):
            return
        at, what, more = other._one_of_these(theirs, wrong)
        with np.errstate(divide="ignore", over="ignore"):
            number = mine[at] / others[at]
        advice = f"multiply it by {float(number)!r} first"
        if not np.isfinite(number):
            advice = "make it from its rows, and multiply it by the first factor"
        raise ValueError(
            f"cannot subtract: {what} has the factor {float(mine[at])!r} in these statistics and "
            f"{float(others[at])!r} in what is subtracted{more}: {advice}"
        )

    def _one_of_these(self, hashes: Hashes, wrong: NDArray[np.int64]) -> tuple[int, str, str]:
        """Return the place of one wrong hash, what a message calls it, and how many more there are.

        Its id is named, if it is known.
        """
        named, at = _those_among([self.first, self.last], hashes[wrong]), int(wrong[0])
        what = "a query whose id is not known here"
        if named:
            what = f"query {named[0]!r}"
            at = int(np.flatnonzero(hashes == hash_ids(object_array(named[:1]))[0][0])[0])
        return at, what, f" (and {len(wrong) - 1} more like it)" * (len(wrong) > 1)

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


def _sizes(
    queries: Queries,
    labels: Weights,
    row_weights: Weights | None,
    query_weights: Weights | None,
) -> Sizes:
    """Return the sizes of queries, shape (n_queries,).

    The sum is ``u Σ_i v_i (1 + π v_i) (1 + s(y_i))`` for the weights v of rows and u of the query,
    with ``s(y) = arsinh(y)``, or ``−arsinh(y) / 2`` where y < 0, which tells labels of any size
    apart. Other weights or labels change the sum, and the order of the rows does not. It is not
    linear in v, so that a weight of the rows is not taken for one of the query.
    """
    terms = 1.0 + np.arcsinh(labels) * np.where(labels < 0, -0.5, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        weights = 1.0 if row_weights is None else row_weights
        terms *= weights * (1.0 + np.pi * weights)
        sums = np.asarray(np.bincount(queries.index(), terms, queries.n_queries), np.float64)
        if query_weights is not None:
            sums *= query_weights
    sizes = np.empty(queries.n_queries, SIZE)
    sizes["rows"] = np.minimum(queries.sizes, np.iinfo(np.uint32).max)
    # A weight whose square overflows, times 0, leaves the sum unknown.
    sizes["sum"] = np.nan_to_num(np.minimum(sums, np.finfo(np.float32).max), nan=-1)
    return sizes


def too_many(number: int) -> bool:
    """Tell whether so many ids are not remembered."""
    return number > limits.now.most_ids


def warn_of_end(ids: QueryIds, *before: QueryIds) -> None:
    """Warn if the check of ids ends here, because there are too many."""
    if ids.ended and not any(one.ended for one in before):
        warn_caller(
            f"these statistics have more than {limits.now.most_ids:,} queries, and query ids are "
            "no longer checked: a query that is added twice, cut in two, or subtracted without "
            "being there is no longer noticed. To keep the check, keep statistics of fewer queries "
            "each. To check no ids, and silence this warning, make statistics with ids=None",
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


def _one_of(name: object, number: int) -> str:
    """Return the subject and the verb of a sentence on ids of which one is named."""
    return f"query {name!r} is" if number == 1 else f"query {name!r} and {number - 1} more are"


def _those_among(ids: Sequence[Any], hashes: Hashes) -> list[Any]:
    """Return those of the ids whose hash is among `hashes`. An entry of None is ignored."""
    own, known = hash_ids(object_array(ids))
    found = known & IdSet.of(hashes).contains(own)
    return [one for one, among in zip(ids, found, strict=True) if among]
