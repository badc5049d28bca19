"""Read and write model files, or their bytes: safetensors with JSON metadata. No code is run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import load, save

from pairgram._core import __version__
from pairgram._support.checks import AnyArray
from pairgram._support.files import replacing, shown
from pairgram._support.schema import brief
from pairgram.files.kinds import KINDS, check_contents

FORMAT = "pairgram-2"
FORMER = "pairgram-1"  # of versions 0.1 to 0.3
HOLD = {"Pairgram": "statistics", "BatchFit": "many models"}  # other files than those of a model
Settings = dict[str, Any]
Contents = tuple[str, dict[str, AnyArray], Settings]  # kind, arrays, settings


def write_file(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, AnyArray],
    settings: Settings,
) -> None:
    """Write what `pack` returns to a file, completely or not at all.

    Raises
    ------
    ValueError
        As in `pack`.
    OSError
        If the file cannot be written. An existing file is then unchanged.
    """
    contents = pack(kind, arrays, settings)
    with replacing(path) as file:
        file.write(contents)


def pack(kind: str, arrays: Mapping[str, AnyArray], settings: Settings) -> bytes:
    """Return arrays and settings as the bytes of a safetensors file.

    Parameters
    ----------
    kind : str
        The kind of file: a class name in the tables of `pairgram.files.kinds`.
    arrays : mapping of str to ndarray
    settings : dict
        Values that JSON can hold. NumPy scalars come back as Python scalars, arrays as lists.

    Raises
    ------
    ValueError
        If a setting is a Python callable or of another type that JSON does not know; or if a
        setting or an array is not as the tables say, so that the file could not be read again.
    """
    for name, value in settings.items():
        check_setting(name, value)
    text = json.dumps(settings, sort_keys=True, default=_plain)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        check_contents(kind, arrays, json.loads(text))
    except ValueError as error:
        raise ValueError(f"cannot be saved: {error}") from None
    metadata = {
        "format": FORMAT,
        "version": __version__,
        "kind": kind,
        "settings": text,
        "sha256": _digest(kind, text, arrays),
    }
    return _in_order(save(dict(arrays), metadata))


def _header(contents: bytes) -> dict[str, Any]:
    """Return the header of a safetensors file: its length, and JSON."""
    return json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])


def _in_order(contents: bytes) -> bytes:
    """Return a safetensors file whose metadata stand in one order: equal models, equal bytes."""
    header = _header(contents)
    end = 8 + int.from_bytes(contents[:8], "little")
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, memoryview(contents)[end:]])


def read_file(path: str | os.PathLike[str], kinds: tuple[str, ...] | None = None) -> Contents:
    """Read a file that `write_file` wrote, and return (kind, arrays, settings).

    The contents are checked against the tables of `pairgram.files.kinds`.

    Raises
    ------
    ValueError
        If the file is not a file of this package, is not one of `kinds`, is damaged, or holds
        something that `write_file` would not write. The message names the file. The checksum
        detects damage, but not intent, because it has no key.
    OSError
        If the file cannot be read.
    """
    with open(path, "rb") as file:
        return unpack(file.read(), kinds, shown(path))


def unpack(
    contents: bytes, kinds: tuple[str, ...] | None = None, name: str = "the bytes"
) -> Contents:
    """Return what `pack` got; see `read_file`. Errors begin with `name`."""
    try:
        arrays = load(contents)
        metadata = _header(contents).get("__metadata__", {})
    except MemoryError:
        raise
    except Exception:  # safetensors may raise anything for bytes of another format
        if contents[8:10] == b'{"':
            raise ValueError(f"{name}: damaged or cut off") from None
        what = "model" if kinds is not None and "Pairgram" not in kinds else "file"
        raise ValueError(f"{name}: not a {what} that pairgram wrote (a safetensors file)") from None
    if metadata.get("format") == FORMER:
        version = brief(metadata.get("version"))
        raise ValueError(
            f"{name}: written by pairgram {version}, whose files later versions do not read: fit "
            f"the model, or add up the statistics, again; pairgram {version} can export the model"
        )
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{name}: a safetensors file, but its format is {brief(metadata.get('format'))} and "
            f"not {FORMAT!r}"
        )
    kind, text = metadata.get("kind", ""), metadata.get("settings", "")
    if metadata.get("sha256") != _digest(kind, text, arrays):
        raise ValueError(f"{name}: damaged, its checksum does not match its contents")
    if kinds is not None and kind not in kinds:
        raise ValueError(f"{name}: {_of_other_kind(kind, kinds)}")
    try:
        settings = json.loads(text)
        check_contents(kind, arrays, settings)
    except RecursionError:
        raise ValueError(f"{name}: its settings are nested too deeply") from None
    except ValueError as error:
        version = brief(metadata.get("version"))
        raise ValueError(
            f"{name}: {error} (written by pairgram {version}, this is {__version__})"
        ) from None
    return kind, arrays, settings


def _of_other_kind(kind: str, kinds: tuple[str, ...]) -> str:
    """Return a message that says which function reads a file that is not one of `kinds`."""
    wanted = kinds[0] if len(kinds) == 1 else "a model"
    if kind in HOLD:
        return f"holds {HOLD[kind]}, want {wanted}: {kind}.load reads it"
    if kind in KINDS:
        return f"holds a model, {kind!r}, want {wanted}: load_model reads it"
    return f"holds {brief(kind)}, want {wanted}"


def written_by(path: str | os.PathLike[str]) -> str | None:
    """Return the version of the package that wrote a file, or None if the file does not say."""
    with safetensors.safe_open(path, framework="numpy") as file:
        version = (file.metadata() or {}).get("version")
    return version


def check_setting(name: str, value: object) -> None:
    """Raise a ValueError unless JSON can hold a setting."""
    try:
        json.dumps(value, default=_plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be saved: {error}") from None


def _plain(value: object) -> Any:
    """Return a NumPy scalar as a Python scalar, and an array as a list."""
    plain = value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(plain, (bool, int, float, str, list)):
        return plain
    what = "a Python callable" if callable(value) else f"a {type(value).__name__}"
    raise TypeError(f"a file holds numbers, text, lists and dicts, which run no code, not {what}")


def _digest(kind: str, text: str, arrays: Mapping[str, AnyArray]) -> str:
    digest = hashlib.sha256(f"{kind}\n{text}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
