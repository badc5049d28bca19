"""Damage to packed files of one stream and of several: whole or refused, never fewer rows."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from pathlib import Path

import numpy as np

from pairgram import load_letor

from .runner import Case, Outcome

PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}


def _texts():
    """Yield (name, parts): some that fit one block of a reader, and some that do not."""
    small = [b"".join(b"%d qid:%d 1:0.5\n" % (i % 3, part) for i in range(60)) for part in range(3)]
    numbers = np.random.default_rng(0).random((3, 1500, 2))
    large = [
        b"".join(b"%d qid:%d 1:%r 2:%r\n" % (i % 3, part, *row) for i, row in enumerate(block))
        for part, block in enumerate(numbers.tolist())
    ]
    yield "small", small
    yield "large", large


def prepare(folder: Path, short: bool) -> None:
    """Write the packed files that are then damaged, and where each may end."""
    ends: dict[str, list[int]] = {}
    for size, parts in list(_texts())[: 1 if short else 2]:
        for kind, pack in PACKERS.items():
            packed = [pack(part) for part in parts]
            files = {"one": [pack(b"".join(parts))], "three": packed}
            if kind == "xz":
                files["three, padded"] = [stream + bytes(8) for stream in packed]
            for what, streams in files.items():
                name = f"{size} {kind} of {what}"
                (folder / name).write_bytes(b"".join(streams))
                lengths = np.cumsum([len(stream) for stream in streams])
                padding = range(9) if "padded" in what else (0,)
                ends[name] = [int(length) - zeros for length in lengths for zeros in padding]
    (folder / "ends.json").write_text(json.dumps(ends))


class _Sources:
    """The sound files, what they hold, and the place of a case's damaged one."""

    def __init__(self, folder: Path) -> None:
        self.sources = []
        for name, ends in json.loads((folder / "ends.json").read_text()).items():
            path = folder / name
            self.sources.append((name, path.read_bytes(), ends, load_letor(path)))
        self.work = folder / f"work {os.getpid()}"

    def judge(self, source: int, damaged: bytes, what: str) -> Outcome:
        name, whole, ends, (X, y, qid) = self.sources[source]
        if len(damaged) in ends and damaged == whole[: len(damaged)]:
            return "legal file", ""  # of fewer streams
        self.work.write_bytes(damaged)
        try:
            found = load_letor(self.work)
        except ValueError as error:
            if str(error).startswith(f"{self.work}:"):
                return "refused", ""
            return "undocumented error", f"{name}, {what}: {error!r}"
        except Exception as error:
            return "undocumented error", f"{name}, {what}: {error!r}"
        if all(np.array_equal(a, b) for a, b in zip(found, (X, y, qid), strict=True)):
            return "same contents", ""
        return "silent loss", f"{name}, {what}: {len(found[1])} rows of {len(y)}"


def bit_flips(folder: Path, seed: int) -> Case:
    """Flip one bit."""
    files = _Sources(folder)

    def case(number: int) -> Outcome:
        rng = np.random.default_rng([seed, number])
        source = number % len(files.sources)
        damaged = bytearray(files.sources[source][1])
        bit = int(rng.integers(8 * len(damaged)))
        damaged[bit // 8] ^= 1 << bit % 8
        return files.judge(source, bytes(damaged), f"bit {bit}")

    return case


def other_damage(folder: Path, seed: int) -> Case:
    """Cut off, add, remove, repeat and overwrite bytes."""
    files = _Sources(folder)

    def case(number: int) -> Outcome:
        rng = np.random.default_rng([seed, number])
        source = number % len(files.sources)
        whole = files.sources[source][1]
        kind = int(rng.integers(5))
        at, size = int(rng.integers(len(whole))), int(rng.integers(1, 40))
        noise = bytes([0] * size) if rng.random() < 0.2 else rng.bytes(size)
        damaged = [
            whole[:at],
            whole + noise,
            whole[:at] + whole[at + size :],
            whole[:at] + noise + whole[at:],
            whole[:at] + noise + whole[at + size :],
        ][kind]
        if not damaged:
            damaged = whole[:1]
        what = ("cut at", "more after", "removed at", "inserted at", "overwritten at")[kind]
        return files.judge(source, damaged, f"{what} {at}, {size} bytes")

    return case
