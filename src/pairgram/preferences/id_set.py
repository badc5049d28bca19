"""The query ids that statistics remember, as 64-bit hashes that are the same in every process."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram.preferences.queries import Queries

__all__ = ["IdSet", "QueryIds", "hash_ids"]

Hashes = NDArray[np.uint64]

MOST_IDS = 1_000_000  # that are remembered

# What an id is, as the hash sees it; the numbers are part of the format of files.
WHOLE, REAL, TEXT, BYTES, TIME, LARGE, TUPLE, DATE, UUID = range(1, 10)


def hash_ids(ids: NDArray[Any]) -> tuple[Hashes, NDArray[np.bool_]]:
    """Return (hashes, which ids have one) of distinct ids: (n_ids,) both.

    Parameters
    ----------
    ids : ndarray of shape (n_ids,)
        As `Queries` has them.

    Notes
    -----
    With ``mix`` the finaliser of SplitMix64, ``h = mix(kind)`` and then ``h = mix(h ^ unit)`` for
    every unit of 64 bits. Kind and units of an id are

    - of a whole number of 64 bits (any integer type, bool, or a float without a fraction): 1, and
      the number; so equal numbers are equal ids, and different ones never share a hash;
    - of any other float: 2, and its bits as a float64;
    - of text: 3, its code points, two to a unit, and their number;
    - of bytes: 4, eight to a unit, and their number;
    - of times of NumPy: 5, and the nanoseconds since 1970, or of a difference;
    - of larger integers: 6, and as their decimal text;
    - of tuples: 7, the hashes of their members, and their number;
    - of dates and times of Python: 8, and as their text in ISO format;
    - of a `uuid.UUID`: 9, and as its text.

    Ids of other types have none: nothing tells what is the same in another process.
    """
    known = np.ones(len(ids), dtype=bool)
    kind = ids.dtype.kind
    if kind == "T":
        return _hash_objects(ids.astype(object))
    if kind in "biu" and not (kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max):
        return _hashed(WHOLE, ids.astype(np.int64).view(np.uint64)[:, None]), known
    if kind == "f" and ids.dtype.itemsize <= 8:
        return _hash_floats(ids.astype(np.float64)), known
    if kind == "U":
        return _hash_texts(ids), known
    if kind == "S":
        return _hash_objects(ids.astype(object))
    if kind in "mM":
        unit = np.dtype(f"{kind}8[ns]")
        return _hashed(TIME, ids.astype(unit).view(np.uint64)[:, None]), known
    return _hash_objects(ids.astype(object))


def _hash_floats(values: NDArray[np.float64]) -> Hashes:
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    numbers = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64)
    with_fraction = _hashed(REAL, np.ascontiguousarray(values).view(np.uint64)[:, None])
    return np.where(whole, _hashed(WHOLE, numbers[:, None]), with_fraction)


def _hash_texts(texts: NDArray[np.str_], lengths: NDArray[np.int64] | None = None) -> Hashes:
    width = texts.dtype.itemsize // 4
    native = np.ascontiguousarray(texts, dtype=texts.dtype.newbyteorder("="))
    points = np.zeros((width + width % 2, len(texts)), dtype=np.uint32)
    points[:width] = native.view(np.uint32).reshape(len(texts), width).T
    if lengths is None:  # NumPy's text ends with its last character that is not NUL
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


def _hash_one(value: Any) -> int | None:
    """Return the hash of one id; None where its type has none."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        number = int(value)
        if -(2**63) <= number < 2**63:
            return int(_hashed(WHOLE, np.array([[number]], np.int64).view(np.uint64))[0])
        return _hash_bytes(LARGE, str(number).encode())
    if isinstance(value, (float, np.floating)):
        return int(_hash_floats(np.array([value], dtype=np.float64))[0])
    if isinstance(value, str):
        points = np.frombuffer(value.encode("utf-32-le", "surrogatepass"), np.uint32)
        text = np.zeros(max(1, len(points)), np.uint32)
        text[: len(points)] = points
        as_text = text.view(f"U{len(text)}")
        return int(_hash_texts(as_text, np.array([len(points)]))[0])
    if isinstance(value, (bytes, np.bytes_)):
        return _hash_bytes(BYTES, bytes(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return int(hash_ids(np.array([value]))[0][0])
    if isinstance(value, date):  # which a datetime is
        return _hash_bytes(DATE, value.isoformat().encode())
    if isinstance(value, uuid.UUID):
        return _hash_bytes(UUID, str(value).encode())
    if type(value) is tuple:
        members = [_hash_one(member) for member in value]
        if None in members:
            return None
        units = np.array(members, dtype=np.uint64)[None]
        return int(_hashed(TUPLE, units, np.array([len(members)]))[0])
    return None


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
    """Return the hashes of rows of units, (n, width), of which `lengths` are heeded, then hashed.

    A length counts values, of which a unit holds `per_unit`.
    """
    h = _mix(np.full(len(units), kind, dtype=np.uint64))
    for k in range(units.shape[1]):
        mixed = _mix(h ^ units[:, k])
        h = mixed if lengths is None else np.where(lengths > k * per_unit, mixed, h)
    return h if lengths is None else _mix(h ^ lengths.astype(np.uint64))


def _mix(z: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection of 64-bit numbers."""
    z = z + np.uint64(0x9E3779B97F4A7C15)  # modulo 2^64, as arrays of NumPy add
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class IdSet:
    """A set of hashes that grows by small steps: sorted runs, each at least twice the next.

    Attributes
    ----------
    runs : tuple of ndarray of uint64, sorted and without a hash in common
    """

    runs: tuple[Hashes, ...] = ()

    @classmethod
    def of(cls, hashes: Hashes) -> IdSet:
        """Return the set of hashes in any order."""
        distinct = np.unique(hashes)
        return cls((distinct,) if len(distinct) else ())

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def contains(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Tell which hashes are in the set: O(log² n) each."""
        found = np.zeros(len(hashes), dtype=bool)
        for run in self.runs:
            at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found |= run[at] == hashes
        return found

    def union(self, other: IdSet) -> IdSet:
        """Return the union with a set that shares none: O(log n) for each hash over many steps."""
        runs: list[Hashes] = list(self.runs)
        for run in other.runs:
            runs.append(run)
            while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
                last = runs.pop()
                runs[-1] = np.sort(np.concatenate([runs[-1], last]), kind="stable")
        return IdSet(tuple(runs))

    def without(self, other: IdSet) -> IdSet:
        """Return the set without the hashes of another."""
        runs = (run[~other.contains(run)] for run in self.runs)
        return IdSet(tuple(run for run in runs if len(run)))

    def array(self) -> Hashes:
        """Return all hashes, sorted."""
        return np.sort(np.concatenate([np.empty(0, np.uint64), *self.runs]))


@dataclass(frozen=True, eq=False)
class QueryIds:
    """The query ids that statistics have seen, and the check that none comes a second time.

    Attributes
    ----------
    hashes : IdSet or None
        None: ids are not checked.
    first, last : object
        The ids of the first and the last row that had one, which messages can name; else None.
    """

    hashes: IdSet | None = None
    first: Any = None
    last: Any = None

    def of_rows(self, queries: Queries) -> QueryIds:
        """Return the ids with those of more rows, which are an update; some have ids.

        Raises
        ------
        ValueError
            If one has been seen.
        """
        ids = queries.ids
        if self.hashes is None or ids is None or len(ids) == 0:
            return self
        hashes, known = hash_ids(ids)
        again = known & self.hashes.contains(hashes)
        if again.any():
            found = ids[[int(np.argmax(again))]].tolist()[0]
            more = int(np.count_nonzero(again)) - 1
            raise ValueError(
                f"qid {found!r}{f' and {more} more' * (more > 0)} came in an earlier update: each "
                "call must hold whole queries (ids=None takes equal ids for different queries)"
            )
        first, last = ids[[0, queries.index()[-1]]].tolist()
        return self._with(QueryIds(IdSet.of(hashes[known]), first, last))

    def union(self, other: QueryIds) -> QueryIds:
        """Return the ids of two shards; unchecked where one of them is.

        Raises
        ------
        ValueError
            If both have seen one.
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

    def without(self, other: QueryIds) -> QueryIds:
        """Return the ids without those of statistics that are subtracted."""
        if self.hashes is None or other.hashes is None:
            return self
        return QueryIds(self.hashes.without(other.hashes), self.first, self.last)

    def _with(self, other: QueryIds) -> QueryIds:
        """Return the union with ids that share none; unchecked where they are too many."""
        assert self.hashes is not None and other.hashes is not None
        if len(self.hashes) + len(other.hashes) > MOST_IDS:
            return QueryIds()
        first = other.first if self.first is None else self.first
        last = self.last if other.last is None else other.last
        return QueryIds(self.hashes.union(other.hashes), first, last)


def _those_among(ids: Sequence[Any], hashes: Hashes) -> list[Any]:
    """Return those of some ids, or None in place of one, whose hash is among `hashes`."""
    objects = np.empty(len(ids), dtype=object)
    objects[:] = list(ids)
    own, known = hash_ids(objects)
    found = known & IdSet.of(hashes).contains(own)
    return [one for one, among in zip(ids, found, strict=True) if among]
