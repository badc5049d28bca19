"""Write arrays to LETOR (SVMlight) files: check, format, compress and replace."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

import pairgram._core as _core
from pairgram._support.arrays import checked_sparse, real_array
from pairgram._support.checks import not_finite
from pairgram._support.files import replacing
from pairgram.data.queries import as_ids
from pairgram.datasets.letor_load import MAX_FEATURES

_ROWS_PER_WRITE = 1024


def dump_letor(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    comments: Sequence[str] | None = None,
    zero_based: bool = False,
) -> None:
    """Write a LETOR (SVMlight) file, which `load_letor` reads back to the same bits.

    Parameters
    ----------
    path : str or os.PathLike
        The file is compressed if the name ends in .gz, .xz or .bz2. An existing file is replaced
        when the new one is complete.
    X : array-like of shape (n_rows, n_features) or sparse
        float32 is written as float32, everything else as float64. Dense rows are written with their
        zeros, so the file shows `n_features`. For sparse rows only stored entries are written (with
        duplicates summed), so `load_letor` may need the argument `n_features`.
    y : array-like of shape (n_rows,)
        Labels, any finite numbers.
    qid : array-like of shape (n_rows,) of integers or str, or None
        A str must be an id as `load_letor` describes it: 1 to 255 bytes, without ``#``, blanks and
        control characters, and without ``:`` after a digit. Two different ids must not have the
        same text, such as 1 and "1", because they would be one query in the file.
    comments : sequence of n_rows str, or None
        Comments without newlines, carriage returns and NUL. "" writes no comment. Spaces and
        tabs at the ends are lost on reading.
    zero_based : bool
        Whether to count features from 0.

    Raises
    ------
    ValueError, TypeError
        If a shape, a number, an id or a comment is wrong. The message names it and the row. In this
        case, and whenever writing fails, an existing file stays as it was.

    Notes
    -----
    Each number is written as the shortest decimal text that reads back to it. This takes O(values)
    time on one thread, and memory for the text of 1,024 rows.

    Examples
    --------
    >>> from pairgram.datasets import dump_letor
    >>> dump_letor("one.txt.gz", [[0.1, 3.0]], [1], qid=["q"], comments=["doc 1"])
    """
    values, indptr, indices = _matrix(X, bool(zero_based))
    n_rows = values.shape[0] if indptr is None else len(indptr) - 1
    labels = real_array(y, "y")
    if labels.shape != (n_rows,):
        raise ValueError(f"y must have shape ({n_rows},), one per row of X, got {labels.shape}")
    if (row := not_finite(labels)) is not None:
        raise ValueError(f"y must be finite, got {labels[row]} in row {row}")
    ids = None if qid is None else _id_texts(qid, n_rows)
    if comments is not None:
        comments = _check_comments(comments, n_rows)
    name = os.path.realpath(os.fspath(path))
    with replacing(path) as raw, _compressing(raw, name) as file:
        for first in range(0, n_rows, _ROWS_PER_WRITE):
            rows = slice(first, min(first + _ROWS_PER_WRITE, n_rows))
            _check_finite(values, indptr, rows)
            file.write(
                _core.format_letor(
                    values,
                    indptr,
                    indices,
                    labels,
                    first=first,
                    n_rows=rows.stop - first,
                    ids=None if ids is None else "\n".join(ids[rows]),
                    comments=None if comments is None else "\n".join(comments[rows]),
                    zero_based=bool(zero_based),
                )
            )


def _matrix(
    X: Any, zero_based: bool
) -> tuple[NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Return X as (values, None, None) or, if sparse, as canonical CSR (data, indptr, indices)."""
    is_sparse: bool = sp.issparse(X)  # a plain bool, because the type guard does not know shapes
    if not is_sparse:
        dense = real_array(X, "X", keep_float32=True)
        _check_shape(dense.shape)
        return dense, None, None
    _check_shape(X.shape)
    csr: Any = sp.csr_array(checked_sparse(X, "X"))
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    n_values = int(csr.indptr[-1])
    return (
        real_array(csr.data[:n_values], "X", keep_float32=True),
        np.ascontiguousarray(csr.indptr, dtype=np.int64),
        np.ascontiguousarray(csr.indices[:n_values], dtype=np.int64),
    )


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(f"X must have shape (n_rows, n_features), got {shape}")
    if shape[0] == 0:
        raise ValueError("X must have a row: a LETOR file has one or more")
    if shape[1] > MAX_FEATURES:
        raise ValueError(f"X must have at most 2^31 - 1 features, got {shape[1]}")


def _check_finite(values: NDArray[Any], indptr: NDArray[np.int64] | None, rows: slice) -> None:
    part = values[rows] if indptr is None else values[indptr[rows.start] : indptr[rows.stop]]
    finite = np.isfinite(part)
    if finite.all():
        return
    at = int(np.argmin(finite))
    if indptr is None:
        row = rows.start + at // part.shape[1]
    else:
        row = int(np.searchsorted(indptr, indptr[rows.start] + at, side="right")) - 1
    raise ValueError(f"X must be finite, got {part.ravel()[at]} in row {row}")


def _id_texts(qid: ArrayLike, n_rows: int) -> list[str]:
    ids = as_ids(qid, n_rows)
    if ids.dtype.kind == "i":
        return [str(value) for value in ids.tolist()]
    texts: list[str] = []
    of_text: dict[str, tuple[Any, int]] = {}  # for every text, its id and its first row
    for row, value in enumerate(ids.tolist()):
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise TypeError(f"qid must be integers or str, got {value!r} in row {row}")
        text = str(value)
        known, first = of_text.setdefault(text, (value, row))
        if first == row:
            _check_id(text, row)
        elif known != value:
            raise ValueError(
                f"qid must not hold ids of one text, which a file cannot tell apart, got {known!r} "
                f"in row {first} and {value!r} in row {row}"
            )
        texts.append(text)
    return texts


def _check_id(text: str, row: int) -> None:
    _utf8(text, "qid", row)
    if not _core.is_letor_id(text):
        raise ValueError(
            "qid must be of 1 to 255 bytes, without '#', blanks and control characters, and "
            f"without ':' behind a digit, as in a feature; got {text!r} in row {row}"
        )


def _check_comments(comments: Sequence[str], n_rows: int) -> list[str]:
    if isinstance(comments, str) or len(comments) != n_rows:
        raise ValueError(f"comments must be a sequence of {n_rows} str, one per row of X")
    for row, comment in enumerate(comments):
        if not isinstance(comment, str):
            raise TypeError(f"comments must be str, got {comment!r} in row {row}")
        if any(c in comment for c in "\n\r\0"):
            raise ValueError(
                f"comments must be free of newlines and NUL, got {comment!r} in row {row}"
            )
        _utf8(comment, "comments", row)
    return list(comments)


def _utf8(text: str, name: str, row: int) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be valid Unicode, got {text!r} in row {row}") from None


@contextmanager
def _compressing(raw: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if name.endswith(".gz"):  # no name and time are written, so that equal data make equal files
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
            yield packed  # type: ignore[misc]
    elif name.endswith(".xz"):
        with lzma.LZMAFile(raw, "wb") as packed_xz:
            yield packed_xz
    elif name.endswith(".bz2"):
        with bz2.BZ2File(raw, "wb") as packed_bz2:
            yield packed_bz2
    else:
        yield raw
