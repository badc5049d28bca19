"""LETOR text: any bytes, read as the slow reader reads them, and written and read again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pairgram import dump_letor, load_letor
from pairgram._support.limits import limits_of

from ..letor_text import _text, judged
from ..runner import FAILURES
from ..streams import PACKERS

SIZES = (1, 2, 7, 30, 200, 10**6)  # of chunks and pieces
N_FEATURES = (None, None, 3, 1000)
MOST_BYTES = 3000  # that the slow reader is given
MOST_NUMBERS = 10**5  # of a matrix that is made dense
FOLDER = tempfile.TemporaryDirectory()
PATH = Path(FOLDER.name) / "f"


def seeds() -> Iterator[bytes]:
    """Yield texts of all options, plain and packed, behind two bytes of options."""
    rng = np.random.default_rng(0)
    for options in range(16):
        yield bytes([options, int(rng.integers(256))]) + _text(rng)
    for pack in PACKERS.values():
        yield bytes(2) + pack(_text(rng))


def check(data: bytes) -> None:
    """Raise unless a text is refused with its place, or read the same in every way."""
    options, sizes, body = data[0:1], data[1:2], data[2:]
    if not body:
        return
    choice = options[0]
    if len(body) <= MOST_BYTES:
        chunk, piece = SIZES[sizes[0] % 6], SIZES[sizes[0] // 6 % 6]
        outcome, detail = judged(body, chunk, piece, 1 + sizes[0] // 36 % 2)
        assert outcome not in FAILURES, f"{outcome}: {detail}"
    PATH.write_bytes(body)
    with limits_of(chunk_bytes=1 << 12):  # allocated for every file
        _check_file(choice)


def _check_file(choice: int) -> None:
    how = {
        "dtype": np.float32 if choice & 1 else np.float64,
        "zero_based": bool(choice & 2),
        "comments": True,
    }
    n_features = N_FEATURES[choice >> 2 & 3]
    try:
        X, y, qid, comments = load_letor(PATH, sparse=True, n_features=n_features, **how)
    except ValueError as error:
        assert str(error).startswith(f"{PATH}:"), error
        return
    if X.shape[0] * X.shape[1] <= MOST_NUMBERS:
        dense = load_letor(PATH, n_features=n_features, **how)[0]
        same = np.zeros_like(dense, dtype=X.dtype)
        same[np.repeat(np.arange(len(y)), np.diff(X.indptr)), X.indices] = X.data
        assert dense.dtype == X.dtype and dense.tobytes() == same.tobytes()
    if any("\r" in comment for comment in comments):
        return  # which a file cannot hold again
    dump_letor(PATH, X, y, qid, comments=comments, zero_based=how["zero_based"])
    again = load_letor(PATH, sparse=True, n_features=X.shape[1] or None, **how)
    for part in ("data", "indices", "indptr"):
        assert getattr(again[0], part).tobytes() == getattr(X, part).tobytes(), part
    assert again[1].tobytes() == y.tobytes()
    assert (again[2] is None) if qid is None else (again[2].tolist() == qid.tolist())
    assert again[3] == comments
