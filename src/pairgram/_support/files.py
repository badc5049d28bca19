"""Files: their names in messages, and writing them whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

__all__ = ["kind_of_binary", "naming", "printable", "replacing", "shown"]

_CONTROL = bytes({*range(9), *range(14, 32), 127})


def shown(path: str | bytes | os.PathLike[Any]) -> str:
    """Return a path as messages show it: on one line, whatever is not printable as an escape.

    A path may hold line breaks, and sequences that a terminal obeys.
    """
    return printable(os.fsdecode(os.fspath(path)))


def kind_of_binary(head: bytes) -> str | None:
    """Tell what a file is that cannot be text, by its first bytes; None where it may be text."""
    if head[8:10] == b'{"':
        return "a file that pairgram saved" if b"pairgram-" in head else "a safetensors file"
    n_control = len(head) - len(head.translate(None, _CONTROL))
    return "a binary file" if n_control > max(3, len(head) // 20) else None


def printable(text: str) -> str:
    """Return text with escapes for all that is not printable."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def naming(path: str | os.PathLike[str], temporary: str | None = None) -> Iterator[None]:
    """Let errors of the system name `path` where they name no file, or the temporary one.

    Those of reading and writing name none.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` that replaces it at the end, unless there is an error.

    A symbolic link stays, and the file it names is replaced.

    Raises
    ------
    ValueError
        If `path` names a folder or a device.
    OSError
        If the file cannot be written; it names `path`, and the folder where that is missing. What
        stood there is untouched.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(
            f"path must name a file, got {shown(target)}, which is a folder or a device"
        )
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(8)}.tmp")
    with naming(path, temporary):
        try:
            raw = open(temporary, "xb")  # noqa: SIM115  (closed below, before it is renamed)
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = f"path must be in a folder that exists, and {shown(folder)} is none"
            raise OSError(error.errno, missing, os.fspath(path)) from None
        try:
            with raw:
                yield raw
                raw.flush()
                os.fsync(raw.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
