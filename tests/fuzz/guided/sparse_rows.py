"""Sparse rows of any structure, at every door: refused, or as the same rows made dense."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import fitted, matrices

FOLDER = tempfile.TemporaryDirectory()
FORMATS = ("csr", "csc", "coo", "bsr")
N_HEAD = 6  # bytes: door (2), options, lengths of three arrays
SHAPE = (18, 4)
INT64, CANONICAL, FLOAT32, ANY_VALUE = 4, 8, 16, 32  # bits of the options


@cache
def _doors() -> list[tuple[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(matrices.doors(Path(FOLDER.name)))


def seeds() -> Iterator[bytes]:
    """Yield a valid matrix for every door, of the formats and options in turn."""
    X = fitted.rows()[0] > 0.4
    for door in range(len(_doors())):
        options = 5 * door % 32
        matrix = sp.csr_array(X).asformat(FORMATS[options % 4])
        arrays = matrix.coords if matrix.format == "coo" else (matrix.indptr, matrix.indices)
        dtype = np.int64 if options & INT64 else np.int32
        head = [*door.to_bytes(2, "little"), options, *map(len, arrays), matrix.nnz]
        values = np.arange(1, matrix.nnz + 1, dtype=np.int8)
        yield bytes(head) + b"".join(a.astype(dtype).tobytes() for a in arrays) + values.tobytes()


def _array(data: bytes, dtype: Any, length: int) -> tuple[Any, bytes]:
    """Return the array that bytes begin with, padded with zeros, and the bytes after it."""
    size = length * np.dtype(dtype).itemsize
    return np.frombuffer(data[:size].ljust(size, b"\0"), dtype).copy(), data[size:]


def _matrix(data: bytes) -> Any:
    options, *lengths, rest = *data[2:N_HEAD], data[N_HEAD:]
    index_type = np.int64 if options & INT64 else np.int32
    first, rest = _array(rest, index_type, lengths[0])
    second, rest = _array(rest, index_type, lengths[1])
    dtype = np.float32 if options & FLOAT32 else np.float64
    if options & ANY_VALUE:
        values = _array(rest, dtype, lengths[2])[0]
    else:
        values = _array(rest, np.int8, lengths[2])[0].astype(dtype) / 64
    matrix = sp.csr_array(np.eye(*SHAPE)).asformat(FORMATS[options % 4])
    if options & CANONICAL and matrix.format in ("csr", "csc"):
        assert matrix.has_canonical_format  # remembered, whatever takes the place of the indices
    if matrix.format == "coo":
        matrix.coords = (first, second)
    else:
        matrix.indptr, matrix.indices = first, second
    matrix.data = values.reshape(-1, 1, 1) if matrix.format == "bsr" else values
    return matrix


def check(data: bytes) -> None:
    """Raise unless an unsound matrix is refused, and a sound one is as if it were dense."""
    if len(data) < N_HEAD:
        return
    doors = _doors()
    name, door = doors[int.from_bytes(data[:2], "little") % len(doors)]
    matrix = _matrix(data)
    if not matrices._is_sound(matrix):
        assert _result(door, matrix) is None, f"{name}: accepted"
        return
    found, dense = _result(door, matrix), _result(lambda M: M.toarray(), matrix)
    # SciPy does not make every sound matrix dense, and kmeans takes dense rows alone.
    if dense is not None and not data[2] & ANY_VALUE and "kmeans" not in name:
        expected = _result(door, dense)
        assert (found is None) == (expected is None), f"{name}: {found} for {expected}"
        if isinstance(found, np.ndarray):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4, err_msg=name)


def _result(door: Any, matrix: Any) -> Any:
    """Return what a door gives, None for a ValueError."""
    try:
        with np.errstate(all="ignore"):
            result = door(matrix)
    except ValueError:
        return None
    return True if result is None else result
