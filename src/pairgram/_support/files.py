"""Names of files in messages, and writing files completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

_CONTROL = bytes({*range(9), *range(14, 32), 127})

# What the names of files of columns end with that can be written.
WRITTEN = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".csv", ".tsv")


def shown(path: str | bytes | os.PathLike[Any]) -> str:
    """Return a path for messages: on one line, with escapes for characters that are not printable.

    A path may contain line breaks, and control sequences that a terminal would execute.
    """
    return printable(os.fsdecode(os.fspath(path)))


def kind_of_binary(head: bytes) -> str | None:
    """Return what a file is, by its first bytes, if it cannot be text; otherwise None."""
    if head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 1 << 40:  # a length
        return "a file that pairgram saved" if b"pairgram-" in head else "a safetensors file"
    n_control = len(head) - len(head.translate(None, _CONTROL))
    return "a binary file" if n_control > max(3, len(head) // 20) else None


def printable(text: str) -> str:
    """Return text with escapes for all characters that are not printable."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def naming(path: str | os.PathLike[str], temporary: str | None = None) -> Iterator[None]:
    """Within this context, errors of the system name `path` instead of no file or `temporary`.

    Errors of reading and writing name no file.
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

    If `path` is a symbolic link, the link stays and its target is replaced. A file that is replaced
    keeps its permissions: it may hold what only its owner is to read.

    Raises
    ------
    ValueError
        If `path` names a folder or a device.
    OSError
        If the file cannot be written. The message names `path`, and the folder if it is missing. An
        existing file is unchanged.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(
            f"path must name a file, got {shown(target)}, which is a folder or a device"
        )
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:50]}.{secrets.token_hex(8)}.tmp")
    with naming(path, temporary):
        try:  # Ctrl-C may come as early as within open
            try:
                raw = open(temporary, "xb")  # noqa: SIM115  (closed below, before it is renamed)
            except (FileNotFoundError, NotADirectoryError) as error:
                missing = f"path must be in a folder that exists, and {shown(folder)} is none"
                raise OSError(error.errno, missing, os.fspath(path)) from None
            with raw:
                with suppress(FileNotFoundError):
                    mode = stat.S_IMODE(os.stat(target).st_mode)
                    if mode != stat.S_IMODE(os.fstat(raw.fileno()).st_mode):
                        os.chmod(temporary, mode)
                yield raw
                raw.flush()
                os.fsync(raw.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(temporary)
            raise
