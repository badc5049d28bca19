"""Load LETOR (SVMlight) files into arrays: open, decompress and parse them."""

from __future__ import annotations

import io
import os
import re
from typing import Any, Literal, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

import pairgram._core as _core
from pairgram._support import memory
from pairgram._support.files import kind_of_binary, naming, shown
from pairgram._support.threads import resolve_n_threads
from pairgram.data.queries import Queries
from pairgram.datasets.compressed import DAMAGE, unpacked

_CHUNK_SIZE = 1 << 22
# A thread parses this many bytes at a time: they and their numbers fit into its cache.
_PIECE_SIZE = 1 << 18
# Binary files are recognised by this many first bytes.
_HEAD_SIZE = 1024
MAX_FEATURES = 2**31 - 1

# What the parser raises: the line, what it says of it, and the parameter that it names.
_OF_PARSER = re.compile(r":(\d+): (.*?)(?:\((n_features=\d+)\))?", re.DOTALL)


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
    width : str
        What says how many features there may be, such as ``n_features=3``, or "".
    rest : str
        What follows.
    lacks_label : bool
        Whether there is no number in place of a label.
    """

    def __init__(
        self, name: str, line: int | None, text: str, width: str = "", rest: str = ""
    ) -> None:
        super().__init__(name, line, text, width, rest)
        self.name, self.line, self.text, self.width, self.rest = name, line, text, width, rest
        self.lacks_label = ", want a label" in text

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        return f"{self.name}{line}: {self.text}{self.width}{self.rest}"

    @classmethod
    def of_parser(cls, error: ValueError, name: str) -> ValueError:
        """Return the error of the compiled parser with what its message says as attributes."""
        found = _OF_PARSER.fullmatch(str(error).removeprefix(name))
        if found is None:
            return error
        line, text, width = found.groups()
        if width is None:
            return cls(name, int(line), text)
        return cls(name, int(line), f"{text}(", width, ")")


Loaded = tuple[Any, NDArray[np.float64], NDArray[Any] | None]


@overload
def load_letor(
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike = ...,
    sparse: bool = ...,
    n_features: int | None = ...,
    zero_based: bool = ...,
    comments: Literal[False] = ...,
    n_threads: int | None = ...,
) -> Loaded: ...
@overload
def load_letor(
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike = ...,
    sparse: bool = ...,
    n_features: int | None = ...,
    zero_based: bool = ...,
    comments: Literal[True],
    n_threads: int | None = ...,
) -> tuple[Any, NDArray[np.float64], NDArray[Any] | None, list[str]]: ...
def load_letor(
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    zero_based: bool = False,
    comments: bool = False,
    n_threads: int | None = None,
) -> Any:
    r"""Read a LETOR (SVMlight) file.

    Its lines are ``label qid:ID index:value ... # comment``.

    Parameters
    ----------
    path : str or os.PathLike
        A plain, gzip, xz or bzip2 file. They are told apart by their first bytes, whatever the
        name. A compressed file may consist of several streams, one after the other.
    dtype : float64 or float32
        The dtype of `X`. Each number is the one nearest to its decimal text.
    sparse : bool
        If True, return `X` in CSR form. It stores the features that the file names, including
        zeros.
    n_features : int or None
        The number of columns. None takes the largest index.
    zero_based : bool
        Whether indices count from 0.
    comments : bool
        Whether to return the comments too.
    n_threads : int or None
        Number of threads. None takes the CPUs that the process may use. The result is the same for
        any number.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), C-contiguous, or scipy.sparse.csr_array
        Features that a row does not name are 0. CSR indices are int32, or int64 from 2^31 values
        on.
    y : ndarray of shape (n_rows,), float64
    qid : ndarray of shape (n_rows,), int64 or object, or None
        int64 if every id is the shortest decimal text of an int64. Otherwise every entry is a str,
        so that ids are equal exactly if their texts are. Neighbouring rows of one id share their
        str, so an entry takes 8 bytes, however long the id is. None if no row has an id.
    comments : list of n_rows str
        Only with ``comments=True``. The text after the first ``#`` of a line, without spaces and
        tabs at its ends, or "" if there is none.

    Raises
    ------
    ValueError
        If the file has no row, or if a dense `X` would not fit into memory.

        If a compressed file is damaged, is cut off, or has other data after its streams. (Zero
        bytes may follow the streams of gzip, and a multiple of 4 zero bytes those of xz.)

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

    The file is read once, in O(bytes) time, on `n_threads` threads; decompression takes one thread.
    The memory is that of `X`, 48 bytes per row and some chunks of 4 MiB. In the worst case it is up
    to half of `X` more: a sparse file that names every other feature and is read densely to
    float32.

    Examples
    --------
    >>> from pairgram.datasets import dump_letor, load_letor
    >>> dump_letor("two.txt", [[0.5, 0.0], [0.25, 1.0]], [2, 0], qid=[7, 7])
    >>> X, y, qid = load_letor("two.txt")
    >>> X.shape, y.tolist(), qid.tolist()
    ((2, 2), [2.0, 0.0], [7, 7])

    What it returns is what estimators fit to:

    >>> from pairgram import RankRLS
    >>> RankRLS().fit(X, y, qid=qid).predict(X).shape
    (2,)
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"path must be str or os.PathLike of str, got {type(path).__name__}")
    settings = (dtype, sparse, n_features, zero_based, comments, n_threads)
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
    n_threads: int | None = None,
) -> Any:
    """Do the work of `load_letor` for an open file, which messages call `name`."""
    parser_type = _parser_type(dtype)
    if n_features is not None:
        n_features = _check_n_features(n_features)
    parser = _parsed(parser_type, raw, name, n_features, zero_based, comments, n_threads)
    y, qid = parser.labels(), _ids(parser)
    notes = parser.comments() if comments else None
    X = _take_csr(parser) if sparse else _take_dense(parser, name, n_features)
    return (X, y, qid) if notes is None else (X, y, qid, notes)


def count_features(path: str | os.PathLike[str], *, n_threads: int | None = None) -> int:
    """Return the largest index in a file, which `load_letor` takes as the number of features."""
    with open(path, "rb") as raw, naming(path):
        parser = _parsed(
            _core.LetorParser32, raw, shown(path), None, False, False, n_threads=n_threads
        )
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
    n_threads: int | None,
) -> Any:
    """Return a parser that has read the file."""
    parser = parser_type(
        name=name,
        n_features=-1 if n_features is None else n_features,
        zero_based=bool(zero_based),
        keep_comments=bool(comments),
        piece_size=_PIECE_SIZE,
        n_threads=resolve_n_threads(n_threads),
    )
    _feed(parser, raw, name)
    return parser


def _parser_type(dtype: DTypeLike) -> Any:
    found = np.dtype(dtype)
    if found == np.float64:
        return _core.LetorParser64
    if found == np.float32:
        return _core.LetorParser32
    raise ValueError(f"dtype must be float64 or float32, got {found}")


def _check_n_features(n_features: Any) -> int:
    if isinstance(n_features, bool) or not isinstance(n_features, (int, np.integer)):
        raise TypeError(f"n_features must be None or an integer, got {n_features!r}")
    if not 1 <= n_features <= MAX_FEATURES:
        raise ValueError(f"n_features must be from 1 to 2^31 - 1, got {n_features}")
    return int(n_features)


def _feed(parser: Any, raw: io.BufferedReader, name: str) -> None:
    """Feed the parser the bytes of the file, unpacked."""
    buffer = memoryview(bytearray(_CHUNK_SIZE))
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


def _ids(parser: Any) -> NDArray[Any] | None:
    ids: NDArray[np.int64] | None = parser.ids()
    named = parser.named_ids()
    if ids is None or not named:
        return ids
    texts = as_text_ids(ids)
    shared: dict[str, str] = {}
    for first, count, name in named:
        texts[first : first + count] = shared.setdefault(name, name)
    return texts


def as_text_ids(ids: NDArray[Any]) -> NDArray[np.object_]:
    """Return integer ids as an object array of their texts; return texts as they are."""
    if ids.dtype == object:
        return ids
    queries = Queries.make(len(ids), qid=ids)
    assert queries.ids is not None
    texts = np.array([str(value) for value in queries.ids.tolist()], dtype=object)
    return np.asarray(texts[queries.index()])


def _take_dense(parser: Any, name: str, wanted: int | None) -> NDArray[Any]:
    n_rows, n_features, n_values = parser.n_rows, parser.n_features, parser.n_values
    itemsize = 4 if isinstance(parser, _core.LetorParser32) else 8
    more = (n_rows * n_features - n_values) * itemsize
    size = (
        f"; X of {n_rows} x {n_features} numbers takes "
        f"{n_rows * n_features * itemsize / 2**30:.1f} GiB, want them to fit into memory: "
        "pass sparse=True"
    )
    refused = LetorError(name, None, "", f"n_features={wanted}", size)
    if wanted is None:
        refused = LetorError(name, parser.largest_index_line, f"found the largest index{size}")
    if not memory.fits(more):
        raise refused
    try:
        return parser.take_dense()  # type: ignore[no-any-return]
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
