"""Writing files whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` that replaces it at the end, unless there is an error.

    A symbolic link stays, and the file it names is replaced.

    Raises
    ------
    ValueError
        If `path` names a folder or a device.
    OSError
        If the file cannot be written; it names `path`, and what stood there is untouched.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(f"path must name a file, got {target}, which is a folder or a device")
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        raw = open(temporary, "xb")  # noqa: SIM115  (closed below, before it is renamed)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
