"""Read and write TREC's files: runs, which are result lists, and relevance judgements."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.arrays import object_array, real_array
from pairgram._support.checks import AnyArray
from pairgram._support.files import naming, replacing, shown
from pairgram.data.queries import id_texts
from pairgram.datasets.letor import compressing, lines_of
from pairgram.datasets.result_lists import by_trec_order

Columns = dict[str, AnyArray]

CONTROL = re.compile("[\x00-\x1f\x7f]")
# How no id of a query may begin: a comment, a byte order mark, and a file of bzip2.
NO_QUERY = ("#", "\ufeff", "BZh")


def read_run(path: str | os.PathLike[str]) -> Columns:
    """Read a TREC run, a file of lines ``qid Q0 docno rank score tag``.

    Parameters
    ----------
    path : str or os.PathLike
        A plain, gzip, xz or bzip2 file. Fields are separated by blanks. Blank lines and comments
        are skipped. A comment begins with ``#`` and a blank, or with ``#`` and does not have the
        fields of a row: ``#shoes Q0 d7 1 2.5 mine`` is a row of the query ``#shoes``.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        ``qid`` and ``docno``, which are str (dtype object), and ``score``, float64, in the order of
        the file. ``pandas.DataFrame`` takes this dict. Ranks and tags are left out, because
        trec_eval ignores them too: it ranks by the scores.

    Raises
    ------
    ValueError
        If a line has other fields, if a score is not a finite number, if a query has a document
        twice, or if there is no line. The message names the file and the line.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairgram import read_run, write_run
    >>> write_run("run.txt", ["q1", "q1", "q2"], ["a", "b", "a"], [0.5, 1.5, 2.0])
    >>> print(Path("run.txt").read_text(), end="")
    q1 Q0 b 1 1.5 pairgram
    q1 Q0 a 2 0.5 pairgram
    q2 Q0 a 1 2.0 pairgram
    >>> read_run("run.txt")["docno"].tolist()
    ['b', 'a', 'a']
    """
    return _read(path, _RUN)


def read_qrels(path: str | os.PathLike[str]) -> Columns:
    r"""Read TREC's relevance judgements (qrels), a file of lines ``qid iteration docno label``.

    Parameters
    ----------
    path : str or os.PathLike
        As in `read_run`.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        ``qid`` and ``docno``, which are str (dtype object), and ``label``, int64, in the order of
        the file.

    Raises
    ------
    ValueError, OSError
        As in `read_run`, and if a label is not an integer.

    Examples
    --------
    >>> from pairgram import read_qrels
    >>> with open("qrels.txt", "w") as file:
    ...     _ = file.write("q1 0 a 1\nq1 0 b 0\n")
    >>> read_qrels("qrels.txt")["label"].tolist()
    [1, 0]
    """
    return _read(path, _QRELS)


def _read(path: str | os.PathLike[str], form: _Form) -> Columns:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be str or os.PathLike, got {type(path).__name__}")
    with open(path, "rb") as raw, naming(path):
        return _parse(raw, shown(path), form)


def _score(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError
    return value


def _label(text: str) -> int:
    if "_" in text or not -(2**31) <= (value := int(text)) < 2**31:
        raise ValueError
    return value


class _Form(NamedTuple):
    """The form of lines: their fields, the place of the number among them, and what it is."""

    fields: str
    place: int
    column: str
    wanted: str
    number: Callable[[str], float]
    dtype: type


_RUN = _Form("qid Q0 docno rank score tag", 4, "score", "a finite number", _score, np.float64)
_QRELS = _Form("qid iteration docno label", 3, "label", "an integer", _label, np.int64)


def _parse(raw: io.BufferedReader, name: str, form: _Form) -> Columns:
    """Return ids, documents and the numbers of every line; an error names the line at fault."""
    n_fields = len(form.fields.split())
    ids: list[str] = []
    documents: list[str] = []
    values: list[Any] = []
    lists: dict[str, dict[str, int]] = {}  # the line of every document of a query
    for at, line in lines_of(raw, name):
        # Bytes are split at blanks of ASCII alone, as by trec_eval; ids may have others. The last
        # field may have blanks.
        parts = line.split(maxsplit=n_fields - 1)
        try:
            fields = [field.decode() for field in parts]
            is_last = form.place == n_fields - 1
            if len(fields) != n_fields or (is_last and len(parts[form.place].split()) > 1):
                found = len(line.split())
                other = " (lines of runs have 6, those of judgements 4)" * (found in (4, 6))
                raise ValueError(f"found {found} fields, want {n_fields}: {form.fields}{other}")
            if form is _RUN and len(parts[-1].split()) > 1 and not parts[3].isdigit():
                rank = fields[3]
                raise ValueError(f"found the rank {rank!r}, want {form.fields}, no blank in an id")
            text = fields[form.place].strip()
            try:
                value = form.number(text)
            except ValueError:
                raise ValueError(
                    f"found the {form.column} {text!r}, want {form.wanted}: {form.fields}"
                ) from None
        except ValueError as error:
            if line.startswith(b"#"):  # a comment
                continue
            if isinstance(error, UnicodeDecodeError):
                error = ValueError("found bytes that are not UTF-8")
            raise ValueError(f"{name}:{at}: {error}") from None
        query, document = fields[0], fields[2]
        seen = lists.setdefault(query, {})
        if seen.setdefault(document, at) != at:
            raise ValueError(
                f"{name}:{at}: found document {document!r} of query {query!r} again, which line "
                f"{seen[document]} has"
            )
        ids.append(query)
        documents.append(document)
        values.append(value)
    if not ids:
        raise ValueError(f"{name}: found no line, want lines {form.fields}")
    numbers: AnyArray = np.array(values, form.dtype)
    return {"qid": object_array(ids), "docno": object_array(documents), form.column: numbers}


# They do the work of `read_run` and `read_qrels` for an open file, which messages call `name`.
parse_run, parse_qrels = (partial(_parse, form=form) for form in (_RUN, _QRELS))


def write_run(
    path: str | os.PathLike[str],
    qid: ArrayLike,
    docno: ArrayLike,
    score: ArrayLike,
    *,
    tag: str = "pairgram",
) -> None:
    """Write result lists as a TREC run, a file of lines ``qid Q0 docno rank score tag``.

    Parameters
    ----------
    path : str or os.PathLike
        An existing file is replaced when the new one is complete. A name that ends with .gz, .xz
        or .bz2 makes a compressed file.
    qid : array-like of shape (n_rows,)
        Ids of queries. Their texts must have no blanks and control characters, and must not begin
        with ``#``, which begins a comment, with a byte order mark, or with ``BZh``, which begins a
        bzip2 file. Two different ids must not have the same text, such as 1 and "1". Queries are
        written in the order of their first rows.
    docno : array-like of shape (n_rows,)
        Ids of documents, also without blanks and control characters. A query must not have an id
        twice.
    score : array-like of shape (n_rows,)
        A higher score is better. NaN leaves out the row: it was not retrieved.
    tag : str without blanks and control characters
        The name of the run.

    Raises
    ------
    ValueError
        If a shape, an id or a score is wrong. The message names the row. An existing file stays as
        it was.

    Notes
    -----
    Ranks are those of trec_eval, which ignores the ranks in a file: it reads scores as float32, and
    orders documents with equal scores by descending id. Lines are written in this order. A score is
    written as the shortest text that reads back to it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairgram import write_run
    >>> write_run("run.txt", [7, 7, 7], ["a", "b", "c"], [1.0, 1.0 + 1e-12, 2.0], tag="mine")
    >>> print(Path("run.txt").read_text(), end="")
    7 Q0 c 1 2.0 mine
    7 Q0 b 2 1.000000000001 mine
    7 Q0 a 3 1.0 mine
    """
    lines = run_lines(qid, docno, score, tag)
    with replacing(path) as raw, compressing(raw, os.path.realpath(os.fspath(path))) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def run_lines(qid: ArrayLike, docno: ArrayLike, score: ArrayLike, tag: str) -> list[str]:
    """Return the lines that `write_run` writes."""
    scores = real_array(score, "score")
    if scores.ndim != 1:
        raise ValueError(f"score must have shape (n_rows,), got {scores.shape}")
    queries, documents = _words(qid, "qid", len(scores)), _words(docno, "docno", len(scores))
    wanted = _wanted(tag) if isinstance(tag, str) else "be a text"
    if wanted:
        raise ValueError(f"tag must {wanted}, got {tag!r}")
    if np.isinf(scores).any():
        row = int(np.argmax(np.isinf(scores)))
        raise ValueError(f"score must be finite or NaN, got {scores[row]} in row {row}")
    lists: dict[str, dict[str, int]] = {}
    for row, (query, document) in enumerate(zip(queries, documents, strict=True)):
        own = lists.setdefault(query, {})
        if own.setdefault(document, row) != row:
            raise ValueError(
                f"docno must be different within a query, got {document!r} of query {query!r} in "
                f"rows {own[document]} and {row}"
            )
    return [line for query in lists.items() for line in _lines_of(*query, scores, tag)]


def _lines_of(query: str, rows: dict[str, int], scores: AnyArray, tag: str) -> Iterator[str]:
    """Yield the lines of a query, given the row of every document."""
    own = scores[list(rows.values())]
    names = [name for name, value in zip(rows, own, strict=True) if value == value]
    own = own[~np.isnan(own)]
    for rank, at in enumerate(by_trec_order(names, own), 1):
        yield f"{query} Q0 {names[at]} {rank} {own[at]!s} {tag}"


def _words(ids: ArrayLike, argument: str, n_rows: int) -> list[str]:
    """Return ids as texts without blanks."""
    texts = id_texts(ids, n_rows, argument)
    for row, text in enumerate(texts):
        wanted = _wanted(text)
        if argument == "qid" and text.startswith(NO_QUERY):
            wanted = f"not begin with {' or '.join(map(repr, NO_QUERY))}"
        if wanted:
            raise ValueError(f"{argument} must {wanted}, got {text!r} in row {row}")
    return texts


def _wanted(text: str) -> str | None:
    """Return what a text must do to be one field of a line, or None if it is."""
    if len(text.split()) != 1 or text != text.strip():
        return "have no blanks"
    if CONTROL.search(text):
        return "have no control characters"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "be valid Unicode"
    return None
