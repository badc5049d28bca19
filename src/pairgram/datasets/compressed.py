"""Read files compressed by gzip, xz or bzip2, with an error for any damage."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any

# The errors that reading a damaged file raises. An OSError for damage has no errno, whereas one of
# the system has.
DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)
# This many compressed bytes are read at a time.
_INPUT_SIZE = 1 << 16


def unpacked(raw: io.BufferedReader) -> tuple[str, IO[bytes]]:
    """Return (the kind of compression, a file object for the contents) of an open file.

    The kind is found from the first bytes. Reading raises one of `DAMAGE` if the file is damaged,
    is cut off, or has other data at its end. A stream may be followed by another stream of the same
    kind. A stream of gzip may also be followed by any number of zero bytes, and one of xz by a
    multiple of 4.
    """
    head = raw.peek(6)
    if head.startswith(b"\x1f\x8b"):
        return "gzip", gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz", io.BufferedReader(_Streams(raw, _xz_stream, padded=True))
    if head.startswith(b"BZh"):
        return "bzip2", io.BufferedReader(_Streams(raw, bz2.BZ2Decompressor, padded=False))
    return "plain", raw


def _xz_stream() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ)


class _Streams(io.RawIOBase):
    """The contents of streams that follow each other.

    This is needed because the file classes of `lzma` and `bz2` stop when no further stream begins,
    whatever follows. Damage at the start of a later stream would silently drop the rest.
    """

    def __init__(self, raw: IO[bytes], begin: Callable[[], Any], *, padded: bool) -> None:
        self._raw = raw
        self._begin = begin
        self._padded = padded  # whether multiples of 4 zero bytes may follow a stream
        self._stream = begin()
        self._input = b""  # bytes that have been read for the stream
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ended:
            if self._stream.eof:
                self._begin_next()
                continue
            packed = b""
            if self._stream.needs_input:
                packed, self._input = self._input or self._raw.read(_INPUT_SIZE), b""
                if not packed:
                    raise EOFError("the file ends within a stream")
            text = self._stream.decompress(packed, len(buffer))
            if text:
                buffer[: len(text)] = text
                return len(text)
        return 0

    def _begin_next(self) -> None:
        """Begin the stream after one that has ended, if there is one."""
        rest, n_zeros = self._stream.unused_data or self._raw.read(_INPUT_SIZE), 0
        while self._padded and rest.startswith(b"\0"):
            stripped = rest.lstrip(b"\0")
            n_zeros += len(rest) - len(stripped)
            rest = stripped or self._raw.read(_INPUT_SIZE)
        if n_zeros % 4:
            raise lzma.LZMAError(f"found {n_zeros} zero bytes after a stream, want a multiple of 4")
        self._ended = not rest
        self._stream, self._input = self._begin(), rest
