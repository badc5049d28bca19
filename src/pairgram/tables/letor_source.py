"""LETOR files as partitions of a table, which are read in pieces."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from pairgram._support.files import naming, shown
from pairgram.datasets.compressed import DAMAGE, unpacked
from pairgram.datasets.letor_load import as_text_ids, read_letor
from pairgram.tables.arrays import rows_of_arrays
from pairgram.tables.columns import Columns, Place
from pairgram.tables.rows import TableRows

__all__ = ["LetorPartition"]

# Files are parsed in pieces of about this many bytes.
PIECE_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class LetorPartition:
    """A LETOR file, plain or compressed.

    Its ids are text, because one piece of the file does not know what ids another has.
    """

    path: str
    leaves_zeros_out = True  # so that the last columns may be absent

    @property
    def name(self) -> str:
        """The path."""
        return shown(self.path)

    def batches(self, number: int, columns: Columns, features: bool) -> Iterator[TableRows]:
        """Yield the rows; see `Partition`."""
        n_lines, first = 0, 0
        with open(self.path, "rb") as raw, naming(self.path):
            for text in _pieces(raw, self.name):
                if text.strip():
                    with _numbered(self.name, n_lines):
                        X, y, qid = read_letor(
                            io.BufferedReader(io.BytesIO(text)),
                            self.name,
                            columns.dtype,
                            n_features=columns.n_features,
                        )
                    qid = None if qid is None else as_text_ids(qid)
                    place = Place(self.name, number, first)
                    yield rows_of_arrays(X, y, qid, None, columns, place, features)
                    first += len(y)
                n_lines += text.count(b"\n")


def _pieces(raw: io.BufferedReader, name: str) -> Iterator[bytes]:
    """Yield the text of a file in pieces of whole lines."""
    kind, file = unpacked(raw)
    rest = b""
    while piece := _read(file, kind, name):
        whole, end, after = (rest + piece).rpartition(b"\n")
        rest = after
        if end:
            yield whole + end
    yield rest


def _read(file: IO[bytes], kind: str, name: str) -> bytes:
    try:
        return file.read(PIECE_BYTES)
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the system, not of the contents
        raise ValueError(
            f"{name}: found a damaged or cut-off {kind} stream, want a whole one: {error}"
        ) from None


@contextmanager
def _numbered(name: str, n_lines: int) -> Iterator[None]:
    """Let errors name lines of the file instead of lines of the piece after `n_lines`."""
    try:
        yield
    except ValueError as error:
        found = re.match(re.escape(name) + r":(\d+):(.*)", str(error), re.DOTALL)
        if found is None:
            raise
        raise ValueError(f"{name}:{n_lines + int(found[1])}:{found[2]}") from error
