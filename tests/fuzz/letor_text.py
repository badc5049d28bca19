"""Mutated LETOR text, in chunks and pieces of any size, against the slow reader of the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.random import Generator

from pairgram import _core
from pairgram.datasets import letor as letor_load

from .runner import Case, Outcome

BYTES = [bytes([byte]) for byte in b" \t\n\r#:.0123456789qid-+eE\0\xff\x7fx,;"]
TOKENS = [
    *("\u00a0".encode(), "\u2003".encode(), "\ufeff".encode(), "é".encode(), b"qid:", b"1:0.5"),
    *(b" 00000000000000000000003:1", b"\n\n", b" # ", b"nan", b"inf", b"1e400", b"2147483648:1"),
]
IDS = ("1", "2", "-7", "q1", "q:é", "http://site/?q=1", "01", "9223372036854775808")
NUMBERS = ("0", ".5", "5.", "1e-3", "-3", "+1", "1e22", "123456789012345678901", "4.9e-324")
MAX_FEATURES = 10**5  # a matrix of more is not compared


def prepare(folder: Path, short: bool) -> None:
    """Do nothing: texts need no files."""


def mutated(folder: Path, seed: int) -> Case:
    """Read a text that has been changed in a few places, and compare."""

    def case(number: int) -> Outcome:
        rng = np.random.default_rng([seed, number])
        data = _mutated(rng, _text(rng))
        chunk, piece = (int(rng.choice([1, 2, 7, 30, 200, 10**6])) for _ in range(2))
        return judged(data, chunk, piece, int(rng.integers(1, 4)))

    return case


def judged(data: bytes, chunk: int, piece: int, n_threads: int) -> Outcome:
    """Return whether a text that is fed in chunks is read as the slow reader reads it."""
    from letor_reference import WrongLine, dense, read

    wrong, expected = None, None
    try:
        expected = read(data)
    except WrongLine as error:
        wrong = error.args[0]
    try:
        parser = _parsed(data, chunk, piece, n_threads)
    except ValueError as error:
        start = f"f:{wrong}: found" if wrong else "f: found no row"
        if wrong is not None and str(error).startswith(start):
            return "refused", ""
        return "undocumented error", f"{data!r}: {error} for line {wrong}"
    if expected is None:
        return "silent loss", f"{data!r}: read, but line {wrong} is wrong"
    rows, labels, ids, comments = expected
    found = letor_load._ids(parser)
    same = (
        parser.labels().tolist() == labels
        and parser.comments() == comments
        and (found is None if ids is None else found is not None and found.tolist() == ids)
        and parser.n_values == sum(map(len, rows))
    )
    if same and max((max(row) for row in rows if row), default=0) < MAX_FEATURES:
        same = parser.take_dense().tobytes() == dense(rows).tobytes()
    return ("same contents", "") if same else ("silent loss", f"{data!r}: read otherwise")


def _parsed(data: bytes, chunk: int, piece: int, n_threads: int) -> _core.LetorParser64:
    parser = _core.LetorParser64(
        name="f",
        n_features=-1,
        zero_based=False,
        keep_comments=True,
        piece_size=piece,
        n_threads=n_threads,
    )
    for begin in range(0, len(data), chunk):
        parser.feed(data[begin : begin + chunk])
    parser.finish()
    return parser


def _text(rng: Generator) -> bytes:
    with_ids = rng.random() < 0.7
    lines = []
    for _ in range(int(rng.integers(1, 9))):
        tokens = [str(rng.choice(["0", "1", "-2.5", "1e1"]))]
        tokens += [f"qid:{rng.choice(IDS)}"] * with_ids
        features = np.flatnonzero(rng.random(6) < 0.6) + 1
        tokens += [f"{i}:{rng.choice(NUMBERS)}" for i in features]
        lines.append(str(rng.choice([" ", "  ", "\t"])).join(tokens))
        lines[-1] += str(rng.choice(["", "", "", "#", " # é #2"]))
    newline = str(rng.choice(["\n", "\r\n"]))
    return (newline.join(lines) + str(rng.choice(["", newline]))).encode()


def _mutated(rng: Generator, data: bytes) -> bytes:
    for _ in range(int(rng.choice([0, 1, 1, 1, 2, 4]))):
        at, size = int(rng.integers(len(data) + 1)), int(rng.integers(0, 4))
        kind = rng.random()
        if kind < 0.5:
            new = BYTES[int(rng.integers(len(BYTES)))]
        elif kind < 0.7:
            new = TOKENS[int(rng.integers(len(TOKENS)))]
        elif kind < 0.8:
            new = b""
        elif kind < 0.9:  # what stands elsewhere
            begin = int(rng.integers(len(data) + 1))
            new = data[begin : begin + int(rng.integers(1, 20))]
        else:
            new = bytes([int(rng.integers(256))])
        data = data[:at] + new + data[at + size :]
    return data
