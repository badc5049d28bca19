"""LETOR (SVMlight) text: files are read into arrays, folds are loaded, arrays are written."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import checked_sparse, object_array, real_array
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Rows,
    Vector,
    not_finite,
    require_finite,
    verbatim,
)
from pairgram._support.files import kind_of_binary, naming, replacing, shown
from pairgram._support.machine import thread_count
from pairgram._support.parameters import check_size
from pairgram.data.queries import id_texts

if TYPE_CHECKING:
    from pairgram._support.types import RowsLike

# The errors that reading a damaged file raises. An OSError for damage has no errno, whereas one of
# the system has.
DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)


def unpacked(raw: io.BufferedReader) -> tuple[str, IO[bytes]]:
    """Return (the kind of compression, a file object for the contents) of an open file.

    The kind is found from the first bytes. Reading raises one of `DAMAGE` if the file is damaged,
    is cut off, or has other data at its end. A stream may be followed by zero bytes, and by another
    stream of the same kind.
    """
    head = raw.peek(6)
    if head.startswith(b"\x1f\x8b"):
        return "gzip", gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz", io.BufferedReader(_Streams(raw, lzma.LZMADecompressor))
    if head.startswith(b"BZh"):
        return "bzip2", io.BufferedReader(_Streams(raw, bz2.BZ2Decompressor))
    return "plain", raw


def lines_of(raw: io.BufferedReader, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of every line that is not blank, nor ``#`` with a blank."""
    found = kind_of_binary(raw.peek(1024)[:1024])
    kind, file = unpacked(raw)
    if kind == "plain" and found is not None:
        raise ValueError(f"{name}: found {found}, want lines of text")
    try:
        for at, line in enumerate(file, 1):
            text = line.removeprefix(codecs.BOM_UTF8) if at == 1 else line
            if text.strip() and not (text[:1] == b"#" and text[1:2].isspace()):
                yield at, text
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{name}: the {kind} data are damaged: {error}") from None


class _Streams(io.RawIOBase):
    """The contents of streams that follow each other.

    This is needed because the file classes of `lzma` and `bz2` stop when no further stream begins,
    whatever follows. Damage at the start of a later stream would silently drop the rest.
    """

    def __init__(self, raw: IO[bytes], begin: Callable[[], Any]) -> None:
        self._raw, self._begin, self._stream = raw, begin, begin()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        text = b""
        while not text:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")
                while not packed:
                    if not (more := self._raw.read(limits.now.packed_bytes)):
                        return 0
                    packed = more.lstrip(b"\0")
                self._stream = self._begin()
            elif self._stream.needs_input and not (
                packed := self._raw.read(limits.now.packed_bytes)
            ):
                raise EOFError("the file ends within a stream")
            text = self._stream.decompress(packed, len(buffer))
        buffer[: len(text)] = text
        return len(text)


# A thread parses this many bytes at a time: they and their numbers fit into its cache.
_PIECE_SIZE = 1 << 18
# Binary files are recognised by this many first bytes.
_HEAD_SIZE = 1024
MAX_FEATURES = 2**31 - 1

# What the parser raises: the line, and what it says of it.
_OF_PARSER = re.compile(r":(\d+): (.*)", re.DOTALL)


class LetorError(ValueError):
    """A LETOR file is refused. The message is made of the attributes, which callers may change.

    Attributes
    ----------
    name : str
        What messages call the file.
    line : int or None
        The number of the line, counted from 1.
    text : str
        What is wrong.
    """

    def __init__(self, name: str, line: int | None, text: str) -> None:
        super().__init__(name, line, text)
        self.name, self.line, self.text = name, line, text

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        return f"{self.name}{line}: {self.text}"

    @classmethod
    def of_parser(cls, error: ValueError, name: str) -> ValueError:
        """Return the error of the compiled parser with what its message says as attributes."""
        found = _OF_PARSER.fullmatch(str(error).removeprefix(name))
        return error if found is None else cls(name, int(found[1]), found[2])


def load_letor(
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    zero_based: bool = False,
    comments: bool = False,
) -> tuple[Any, ...]:
    r"""Read a LETOR (SVMlight) file.

    Its lines are ``label qid:ID index:value ... # comment``.

    Parameters
    ----------
    path : str or os.PathLike
        A plain, gzip, xz or bzip2 file. The kind is found from the first bytes, whatever the name.
        A compressed file may consist of several streams, one after the other.
    dtype : float64 or float32
        The dtype of `X`. Each number is the one nearest to its decimal text.
    sparse : bool
        If True, return `X` as a CSR array, which stores the features that the file names, including
        those with the value 0.
    n_features : int or None
        The number of columns. None takes the largest index.
    zero_based : bool
        Whether indices count from 0.
    comments : bool
        Whether to return the comments too.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), C-contiguous, or scipy.sparse.csr_array
        Features that a row does not name are 0. CSR indices are int32, or int64 from 2^31 values
        on.
    y : ndarray of shape (n_rows,), float64
    qid : ndarray of shape (n_rows,), int64 or object, or None
        int64 if every id is the shortest decimal text of an int64. Otherwise every entry is a str,
        so that two ids are equal only if their texts are. Neighbouring rows of one id share their
        str, so an entry takes 8 bytes, however long the id is. None if no row has an id.
    comments : list of n_rows str
        Only with ``comments=True``. The text after the first ``#`` of a line, without spaces and
        tabs at its ends, or "" if there is none.

    Raises
    ------
    ValueError
        If the file has no row, or if a dense `X` would not fit into memory.

        If a compressed file is damaged, is cut off, or has other data than zero bytes after its
        streams.

        If a line is wrong: a label or value is not a finite number of `dtype`; an index is not a
        decimal integer, is 0 (unless `zero_based`), exceeds `n_features` or 2^31 - 1, or does not
        increase; some rows have an id and others do not; an id is not allowed (see Notes); or the
        line has more than 2^28 bytes. The message names the file, the first wrong line and the
        token, or says that the file is a model or another binary file.
    OSError
        If the file cannot be opened or read, e.g. FileNotFoundError. The message names the file.

    Notes
    -----
    Blank lines and lines with only a comment are skipped. Fields are separated by spaces or tabs,
    and lines end with ``\n`` or ``\r\n``. Comments must not have NUL bytes, and must be UTF-8 if
    they are returned.

    An id has 1 to 255 bytes of UTF-8. It must not have ``#``, control characters or blanks
    (including those of Unicode and the zero-width ones U+200B and U+FEFF), nor a ``:`` after a
    digit. Numbers, words, UUIDs and ``topic:12`` or ``http://site/?q=2`` are therefore ids, but
    ``1:0.5``, ``12:30`` and ``127.0.0.1:80`` are not. A digit and ``:`` begin a feature, and an id
    would swallow it if the blank between them is missing or is not an ASCII blank.

    The file is read once, in O(bytes) time, on the threads of `pairgram.threads`; decompression
    takes one. The memory is that of `X`, 48 bytes per row and some chunks of 4 MiB. In the worst
    case it is up to half of `X` more: a sparse file that names every other feature and is read
    densely to float32.

    Examples
    --------
    >>> from pairgram.datasets import dump_letor, load_letor
    >>> dump_letor("two.txt", [[0.5, 0.0], [0.25, 1.0]], [2, 0], qid=[7, 7])
    >>> X, y, qid = load_letor("two.txt")
    >>> X.shape, y.tolist(), qid.tolist()
    ((2, 2), [2.0, 0.0], [7, 7])

    Estimators take what it returns:

    >>> from pairgram import RankRLS
    >>> RankRLS().fit(X, y, qid=qid).predict(X).shape
    (2,)
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"path must be str or os.PathLike of str, got {type(path).__name__}")
    settings = (dtype, sparse, n_features, zero_based, comments)
    with open(name, "rb") as raw, naming(name):
        return read_letor(raw, shown(name), *settings)


def read_letor(
    raw: io.BufferedReader,
    name: str,
    dtype: DTypeLike = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    zero_based: bool = False,
    comments: bool = False,
) -> tuple[Any, ...]:
    """Do the work of `load_letor` for an open file, which messages call `name`."""
    parsers = {np.dtype(np.float64): _core.LetorParser64, np.dtype(np.float32): _core.LetorParser32}
    if np.dtype(dtype) not in parsers:
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")
    if n_features is not None:
        n_features = check_size("n_features", n_features, 1, MAX_FEATURES)
    parser = _parsed(parsers[np.dtype(dtype)], raw, name, n_features, zero_based, comments)
    y, qid = parser.labels(), _ids(parser)
    notes = parser.comments() if comments else None
    X = _take_csr(parser) if sparse else _take_dense(parser, name, n_features)
    return (X, y, qid) if notes is None else (X, y, qid, notes)


def count_features(path: str | os.PathLike[str]) -> int:
    """Return the largest index in a file, which `load_letor` takes as the number of features."""
    with open(path, "rb") as raw, naming(path):
        parser = _parsed(_core.LetorParser32, raw, shown(path), None, False, False)
    return int(parser.n_features)


def looks_like_letor(path: str | os.PathLike[str]) -> bool:
    """Tell whether the first line that is not empty looks like one of a LETOR file."""
    first = _first_line(path)
    return re.match(rb"[-+.0-9eE]+[ \t]+(qid:[^ \t]+|[0-9]+:[-+.0-9])", first) is not None


def has_ids(path: str | os.PathLike[str]) -> bool:
    """Tell whether the first line that is not empty has a query id."""
    return b"qid:" in _first_line(path)


def _first_line(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as raw:
            head = unpacked(raw)[1].read(1 << 16)
    except DAMAGE:
        return b""
    lines = (line.partition(b"#")[0].strip() for line in head.splitlines())
    return next(filter(None, lines), b"")


def _parsed(
    parser_type: Any,
    raw: io.BufferedReader,
    name: str,
    n_features: int | None,
    zero_based: bool,
    comments: bool,
) -> Any:
    """Return a parser that has read the file."""
    parser = parser_type(
        name=name,
        n_features=-1 if n_features is None else n_features,
        zero_based=bool(zero_based),
        keep_comments=bool(comments),
        piece_size=_PIECE_SIZE,
        n_threads=thread_count(),
    )
    _feed(parser, raw, name)
    return parser


def _feed(parser: Any, raw: io.BufferedReader, name: str) -> None:
    """Feed the parser the bytes of the file, unpacked."""
    buffer = memoryview(bytearray(limits.now.chunk_bytes))
    kind, file = unpacked(raw)
    head = b""
    while True:
        try:
            size = file.readinto(buffer)  # type: ignore[attr-defined]
        except DAMAGE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # an error of the system, not of the contents
            text = f"found a damaged or cut-off {kind} stream, want a whole one: {error}"
            raise LetorError(name, parser.n_lines + 1, text) from None
        head = head or bytes(buffer[: min(size, _HEAD_SIZE)])
        try:
            if size:
                parser.feed(buffer[:size])
            else:
                parser.finish()
        except ValueError as error:
            if (found := kind_of_binary(head)) is not None:
                text = f"found {found}, want a LETOR file, text of a line for each document"
                raise LetorError(name, None, text) from None
            raise LetorError.of_parser(error, name) from None
        if not size:
            return


def _ids(parser: Any) -> AnyArray | None:
    ids = parser.ids()
    named = parser.named_ids()
    if ids is None or not named:
        return ids
    texts = as_text_ids(ids)
    shared: dict[str, str] = {}
    for first, count, name in named:
        texts[first : first + count] = shared.setdefault(name, name)
    return texts


def as_text_ids(ids: AnyArray) -> AnyArray:
    """Return integer ids as an object array of their texts; return texts as they are."""
    if ids.dtype == object:
        return ids
    return object_array(id_texts(ids, len(ids), "qid"))


def _take_dense(parser: Any, name: str, wanted: int | None) -> AnyArray:
    n_rows, n_features, n_values = parser.n_rows, parser.n_features, parser.n_values
    itemsize = 4 if isinstance(parser, _core.LetorParser32) else 8
    more = (n_rows * n_features - n_values) * itemsize
    size = (
        f"; X of {n_rows} x {n_features} numbers takes "
        f"{n_rows * n_features * itemsize / 2**30:.1f} GiB, want them to fit into memory: "
        "load_letor takes sparse=True, and the command line --sparse"
    )
    refused = LetorError(name, None, f"n_features={wanted}{size}")
    if wanted is None:
        refused = LetorError(name, parser.largest_index_line, f"found the largest index{size}")
    if not memory.fits(more):
        raise refused
    try:
        return parser.take_dense()
    except MemoryError:
        raise refused from None


def _take_csr(parser: Any) -> Any:
    shape = (parser.n_rows, parser.n_features)
    data, indices, indptr = parser.take_csr()
    index_type = np.int32 if len(data) < 2**31 else np.int64
    indices, indptr = (a.astype(index_type, copy=False) for a in (indices, indptr))
    X: Any = sp.csr_array((data, indices, indptr), shape=shape)
    X.has_canonical_format = True  # the parser has checked that the indices of a row increase
    return X


_ROWS_PER_WRITE = 1024


def dump_letor(
    path: str | os.PathLike[str],
    X: RowsLike,
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
    qid : array-like of shape (n_rows,), or None
        The text of an id must be one as `load_letor` describes it: 1 to 255 bytes, without ``#``,
        blanks and control characters, and without ``:`` after a digit. Two different ids must not
        have the same text, such as 1 and "1", because they would be one query in the file.
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
    values, indptr, indices = _matrix(X)
    n_rows = values.shape[0] if indptr is None else len(indptr) - 1
    labels = real_array(y, "y")
    if labels.shape != (n_rows,):
        raise ValueError(f"y must have shape ({n_rows},), one per row of X, got {labels.shape}")
    if (row := not_finite(labels)) is not None:
        raise ValueError(f"y must be finite, got {labels[row]} in row {row}")
    ids = None if qid is None else id_texts(qid, n_rows, "qid")
    what = "of 1 to 255 bytes, without '#', blanks, control characters and ':' behind a digit"
    _check_texts("qid", ids or (), what, _core.is_letor_id)
    if comments is not None:
        if isinstance(comments, str) or len(comments) != n_rows:
            raise ValueError(f"comments must be a sequence of {n_rows} str, one per row of X")
        _check_texts("comments", comments, "text without newlines and NUL", _is_one_line)
    name = os.path.realpath(os.fspath(path))
    with replacing(path) as raw, compressing(raw, name) as file:
        for first in range(0, n_rows, _ROWS_PER_WRITE):
            rows = slice(first, min(first + _ROWS_PER_WRITE, n_rows))
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


def _matrix(X: Any) -> tuple[AnyArray, Rows | None, Rows | None]:
    """Return X as (values, None, None) or, if sparse, as canonical CSR (data, indptr, indices)."""
    is_sparse = sp.issparse(X)  # a plain bool, because the type guard does not know shapes
    rows: Any = checked_sparse(X, "X") if is_sparse else real_array(X, "X", keep_float32=True)
    if len(rows.shape) != 2:
        raise ValueError(f"X must have shape (n_rows, n_features), got {rows.shape}")
    if rows.shape[0] == 0:
        raise ValueError("X must have a row: a LETOR file has one or more")
    if rows.shape[1] > MAX_FEATURES:
        raise ValueError(f"X must have at most 2^31 - 1 features, got {rows.shape[1]}")
    if not is_sparse:
        require_finite(rows, "X")
        return rows, None, None
    csr = sp.csr_array(rows)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    n_values = int(csr.indptr[-1])
    values = real_array(csr.data[:n_values], "X", keep_float32=True)
    indptr, indices = (np.ascontiguousarray(a, np.int64) for a in (csr.indptr, csr.indices))
    require_finite(sp.csr_array((values, indices[:n_values], indptr), csr.shape), "X")
    return values, indptr, indices[:n_values]


def _check_texts(
    name: str, texts: Sequence[object], what: str, is_right: Callable[[str], bool]
) -> None:
    """Raise a ValueError that names the first of some texts that is not right, or no Unicode."""
    for row, text in enumerate(texts):
        if not (isinstance(text, str) and _is_unicode(text) and is_right(text)):
            raise ArgumentError(
                name, f"must be {what}, got {verbatim(repr(text))} in {{place}}", row=row
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_one_line(text: str) -> bool:
    return not any(c in text for c in "\n\r\0")


def compressing(raw: IO[bytes], name: str) -> Any:
    """Return a context of a file that compresses into `raw` as the end of its name tells."""
    if name.endswith(".gz"):  # no name and time are written, so that equal data make equal files
        return gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
    if name.endswith(".xz"):
        return lzma.LZMAFile(raw, "wb")
    return bz2.BZ2File(raw, "wb") if name.endswith(".bz2") else nullcontext(raw)


_N_FOLDS = 5
_SUFFIXES = ("", ".xz", ".gz", ".bz2")
_PARTS = ("train", "vali", "test")


class LetorData(NamedTuple):
    """The rows of a part of a data set, with their labels and query ids.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,), float64
    qid : ndarray of shape (n_rows,), int64, or object with a str in every entry, or None
    """

    X: Any
    y: Vector
    qid: AnyArray | None

    def __repr__(self) -> str:
        """Return the shapes."""
        qid = None if self.qid is None else self.qid.shape
        return f"LetorData(X: {self.X.shape}, y: {self.y.shape}, qid: {qid})"


class Fold(NamedTuple):
    """One fold of a cross-validation.

    A part is a tuple ``(X, y, qid)``, so it can be the validation set of a search, as in
    ``RankRLSCV().fit(X, y, qid=qid, validation=fold.valid)``.

    Attributes
    ----------
    name : str
        "Fold1" to "Fold5".
    train, valid, test : LetorData
        The three parts. They have the same number of features.
    """

    name: str
    train: LetorData
    valid: LetorData
    test: LetorData

    def __repr__(self) -> str:
        """Return the name and the shapes."""
        return (
            f"Fold({self.name!r}, train={self.train!r}, valid={self.valid!r}, test={self.test!r})"
        )


def load_letor_folds(
    folder: str | os.PathLike[str],
    *,
    dtype: DTypeLike = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
) -> Iterator[Fold]:
    """Iterate over the five folds of a LETOR data set.

    Parameters
    ----------
    folder : str or os.PathLike
        A folder in one of two layouts. The first has the files ``S1.txt`` … ``S5.txt``: fold i
        trains on S_i, S_{i+1} and S_{i+2}, validates on S_{i+3} and tests on S_{i+4}, modulo 5. The
        second has the folders ``Fold1`` … ``Fold5``, each with ``train.txt``, ``vali.txt`` and
        ``test.txt``. Every file name may have a further ending .xz, .gz or .bz2. If the folder has
        both layouts, the S files are read.
    dtype, sparse
        As in `load_letor`.
    n_features : int or None
        The number of columns of every part. None takes the largest index in the S files, or in the
        files of ``Fold1``, which together hold all rows of a LETOR data set.

    Yields
    ------
    Fold
        The folds in the order of their names. A fold has ``.name``, ``.train``, ``.valid`` and
        ``.test``, and each part has ``.X``, ``.y`` and ``.qid``. Training rows stand in the order
        of the files.

    Raises
    ------
    FileNotFoundError
        If the folder is missing, or if neither layout is complete. The message names what is
        missing.
    ValueError
        The errors of `load_letor`; also if some S files have ids and others have none, or if a
        later fold has more features than ``Fold1`` and `n_features` is None.

    Notes
    -----
    The S files are read once, before the first fold. Each fold copies its training rows when it is
    asked for. Its validation and test parts share the memory of the S files. A loop over the folds
    that keeps no fold therefore takes 1 + 3/5 times the memory of the data set.

    Examples
    --------
    >>> from pairgram import RankRLSCV, load_letor_folds
    >>> for fold in load_letor_folds("MQ2008"):  # doctest: +SKIP
    ...     model = RankRLSCV(scoring="map")
    ...     model.fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
    ...     print(fold.name, model.alpha_, model.score(fold.test.X, fold.test.y, qid=fold.test.qid))
    """
    root = os.fspath(folder)
    if not os.path.isdir(root):
        raise FileNotFoundError(f"{shown(root)}: no such folder")
    options = {"dtype": dtype, "sparse": sparse}
    split_names = [f"S{i}.txt" for i in range(1, _N_FOLDS + 1)]
    fold_names = [f"Fold{i}/{part}.txt" for i in range(1, _N_FOLDS + 1) for part in _PARTS]
    splits, missing_splits = _find_files(root, split_names)
    if not missing_splits:
        return _folds_of_splits(splits, n_features, options)
    parts, missing_parts = _find_files(root, fold_names)
    if not missing_parts:
        return _folds_of_parts(parts, n_features, options)
    raise FileNotFoundError(_missing_message(root, splits, missing_splits, parts, missing_parts))


def _find_files(root: str, names: list[str]) -> tuple[list[str], list[str]]:
    """Return the paths of the files that exist, with any suffix, and the names of the others."""
    found, missing = [], []
    for name in names:
        paths = [os.path.join(root, *name.split("/")) + suffix for suffix in _SUFFIXES]
        path = next((path for path in paths if os.path.isfile(path)), None)
        if path is None:
            missing.append(name)
        else:
            found.append(path)
    return found, missing


def _missing_message(
    root: str,
    splits: list[str],
    missing_splits: list[str],
    parts: list[str],
    missing_parts: list[str],
) -> str:
    looked_for = (
        "S1.txt … S5.txt or Fold1 … Fold5 with train.txt, vali.txt and test.txt "
        "(each also as .xz, .gz or .bz2)"
    )
    if not splits and not parts:
        return f"{shown(root)}: found none of {looked_for}"
    missing = missing_parts if parts else missing_splits
    return f"{shown(root)}: {', '.join(missing)} missing, looked for {looked_for}"


def _folds_of_splits(
    paths: list[str], n_features: int | None, options: dict[str, Any]
) -> Iterator[Fold]:
    splits = _loaded(paths, n_features, options)
    if len({split.qid is None for split in splits}) > 1:
        without = next(path for path, split in zip(paths, splits, strict=True) if split.qid is None)
        raise ValueError(f"{shown(without)}: found no qid, want ids as in the other S files")
    for i in range(_N_FOLDS):
        turn = [splits[(i + k) % _N_FOLDS] for k in range(_N_FOLDS)]
        yield Fold(f"Fold{i + 1}", _stacked(turn[:3]), turn[3], turn[4])


def _folds_of_parts(
    paths: list[str], n_features: int | None, options: dict[str, Any]
) -> Iterator[Fold]:
    for i in range(_N_FOLDS):
        files = paths[len(_PARTS) * i : len(_PARTS) * (i + 1)]
        parts = _loaded(files, n_features, options)
        n_features = parts[0].X.shape[1] or None
        yield Fold(f"Fold{i + 1}", *parts)


def _loaded(paths: list[str], n_features: int | None, options: dict[str, Any]) -> list[LetorData]:
    return padded(
        [LetorData(*load_letor(path, n_features=n_features, **options)) for path in paths]
    )


def padded(parts: list[LetorData]) -> list[LetorData]:
    """Give all parts as many features as the widest part has. The added features are 0."""
    n_features = max(part.X.shape[1] for part in parts)
    for i, part in enumerate(parts):  # in place, so that at most one matrix is in memory twice
        parts[i] = part._replace(X=_widened(part.X, n_features))
    return parts


def _widened(X: Any, n_features: int) -> Any:
    n_rows, n_own = X.shape
    if n_own == n_features:
        return X
    if sp.issparse(X):
        return sp.csr_array((X.data, X.indices, X.indptr), shape=(n_rows, n_features))
    return np.pad(X, ((0, 0), (0, n_features - n_own)))


def _stacked(parts: list[LetorData]) -> LetorData:
    matrices = [part.X for part in parts]
    sparse = sp.issparse(matrices[0])
    X = sp.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)
    qids = [part.qid for part in parts if part.qid is not None]
    if any(qid.dtype == object for qid in qids):
        qids = [as_text_ids(qid) for qid in qids]
    return LetorData(
        X,
        np.concatenate([part.y for part in parts]),
        np.concatenate(qids) if qids else None,
    )
