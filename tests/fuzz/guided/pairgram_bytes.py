"""Bytes of statistics: refused, or statistics that work and come back from their own bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from pairgram import Pairgram

from .. import fitted
from ..forge import parse
from ..mutated_files import solved
from .descriptions import AS_IT_IS, described, file_of


def seeds() -> Iterator[bytes]:
    """Yield a description of statistics of every kind, and the first as bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [make().to_bytes() for _, make in fitted.statistics()]
    yield AS_IT_IS + made[0]
    yield from map(described, made)


def check(data: bytes) -> None:
    """Raise unless bytes are refused by name, or statistics come back from them."""
    try:
        statistics = Pairgram.from_bytes(file_of(data))
    except ValueError as error:
        assert str(error).startswith("the bytes: "), error
        return
    solved(statistics)
    whole = statistics.to_bytes()
    assert parse(Pairgram.from_bytes(whole).to_bytes()) == parse(whole)
