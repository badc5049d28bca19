"""Ids of every type: each function renames the numbers of queries to ids that differ as they do."""

import datetime
import decimal
import fractions
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow


def _each(name: Callable[[int], Any]) -> Callable[[np.ndarray], list[Any]]:
    return lambda query: [name(int(q)) for q in query]


def _array(name: Callable[[int], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda query: objects([name(int(q)) for q in query])


START = datetime.datetime(2024, 1, 31, 23, 59)
MIXED: tuple[Callable[[int], Any], ...] = (
    lambda q: q,
    lambda q: str(q - 1),
    lambda q: (q, "a"),
    lambda q: (q,),
    lambda q: f"{q}\0",
    lambda q: str(q).encode(),
    lambda q: decimal.Decimal(q) + decimal.Decimal("0.1"),
)

RENAMINGS: dict[str, Callable[[np.ndarray], Any]] = {
    "numbers in another order": lambda query: (query * 7919) % 100_003,
    "int8": lambda query: (50 - query).astype(np.int8),
    "uint64": lambda query: np.uint64(2**64 - 1) - query.astype(np.uint64),
    "numbers that float64 does not hold": _each(lambda q: 2**63 + q if q % 2 else -q - 1),
    "neighbours above 2**53": _each(lambda q: 2**60 + q),
    "numbers beyond 64 bits": _each(lambda q: 10**30 + q),
    "floats": lambda query: query / 3,
    "floats and numbers": _each(lambda q: q + 0.5 if q % 2 else -q - 1),
    "text": _each(lambda q: f"query {q}"),
    "array of text": lambda query: np.array([f"query {q}" for q in query]),
    "numerals": _each(lambda q: str(q)),
    "numbers and numerals": _each(lambda q: q // 2 if q % 2 else str(q // 2)),
    "text that ends with a null": _each(lambda q: "a" + "\0" * q),
    "text of other scripts": _each(lambda q: "é" * (q % 3) + "日" * (q // 3) + " "),
    "bytes": _each(lambda q: bytes([q, 0])),
    "pairs": _each(lambda q: (q // 2, q % 2)),
    "tuples of other lengths": _each(lambda q: (q // 2,) * (1 + q % 2)),
    "tuples of mixed types": lambda query: tuple(_each(lambda q: (q, "a") if q % 2 else q)(query)),
    "a tuple of numbers and numerals": lambda query: tuple(
        _each(lambda q: q // 2 if q % 2 else str(q // 2))(query)
    ),
    "decimals": _each(lambda q: decimal.Decimal(q) / 10),
    "fractions": _each(lambda q: fractions.Fraction(q, 7)),
    "uuids": _each(lambda q: uuid.UUID(int=q)),
    "dates": _each(lambda q: START.date() + datetime.timedelta(days=q)),
    "datetimes": _each(lambda q: START + datetime.timedelta(microseconds=q)),
    "times of numpy": lambda query: np.datetime64("2024-01-31T23:59:59", "ms") + query,
    "durations of numpy": lambda query: query.astype("m8[s]"),
    "frozen sets": _each(lambda q: frozenset([q, q + 1])),
    "types of all kinds": _each(lambda q: MIXED[q % len(MIXED)](q)),
    "bytes and text": _each(lambda q: f"{q // 2}" if q % 2 else f"{q // 2}".encode()),
    "booleans and text": _each(lambda q: (True, False, "True", "False")[q] if q < 4 else f"{q}"),
    "decimals and floats": _each(lambda q: decimal.Decimal(q) if q % 2 else q + 0.5),
    "nanoseconds": _each(lambda q: pandas.Timestamp(2020, 1, 1) + pandas.Timedelta(q, "ns")),
    "objects in an array": _array(lambda q: MIXED[q % len(MIXED)](q)),
    "a series": lambda query: pandas.Series(query, index=query[::-1]).map("q{}".format),
    "categories": lambda query: pandas.Categorical([f"q{q}" for q in query]),
    "nullable numbers": lambda query: pandas.array(query, dtype="Int64"),
    "timestamps": lambda query: pandas.to_datetime(query, unit="D"),
    "a series of polars": lambda query: polars.Series([f"q{q}" for q in query]),
    "an array of pyarrow": lambda query: pyarrow.array([f"q{q}" for q in query]),
}


def objects(ids: Any) -> np.ndarray:
    """Return ids of any types as an array of shape (n_rows,)."""
    found = np.empty(len(ids), dtype=object)
    found[:] = ids
    return found


# What a list of ids of any types may stand in.
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": objects,
    "series": lambda ids: pandas.Series(objects(ids), index=range(len(ids), 0, -1)),
}
# What no id may be.
MISSING: dict[str, Any] = {
    "None": None,
    "NaN": float("nan"),
    "NaT": pandas.NaT,
    "NA": pandas.NA,
    "NaT of numpy": np.datetime64("NaT"),
}
