"""Result lists and judgements in any of their forms: files, frames and dicts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram._rooms import public
from pairgram._support.arrays import real_array
from pairgram.data.queries import id_texts

# For every query, by its text, the numbers of its documents.
Lists = dict[str, dict[str, float]]

_COLUMNS = {
    "qid": ("qid", "query_id", "q_id"),
    "docno": ("docno", "doc_id", "docid"),
    "label": ("label", "relevance", "rel", "score"),
    "score": ("score",),
}


def qrels_of(source: object) -> Lists:
    """Return judgements in any of the forms of `evaluate_run`."""
    lists = _lists(source, "qrels", "label", "read_qrels")
    for query, own in lists.items():
        for name, label in own.items():
            if not np.isfinite(label):
                raise ValueError(
                    f"qrels must have finite labels, got {label} of document {name!r} of query "
                    f"{query!r}"
                )
    return lists


def run_of(source: object, argument: str = "run") -> Lists:
    """Return a run in any of the forms of `evaluate_run`, which messages call by a name."""
    return _lists(source, argument, "score", "read_run")


def _lists(source: object, argument: str, number: str, reader: str) -> Lists:
    if isinstance(source, (str, os.PathLike)):
        source = public(reader)(source)
    names = getattr(source, "column_names", getattr(source, "columns", None))
    if names is None and hasattr(source, "to_dict"):  # ranx
        source = source.to_dict()
    if isinstance(source, Mapping):
        if all(isinstance(own, Mapping) for own in source.values()):
            queries = id_texts(list(source), len(source), f"query ids of {argument}")
            lists: Lists = {}
            for query, own in zip(queries, source.values(), strict=True):
                names = id_texts(list(own), len(own), f"documents of query {query!r} of {argument}")
                lists[query] = dict(zip(names, _numbers(own.values(), argument), strict=True))
            return lists
        names = list(source)
    if names is None:
        raise TypeError(
            f"{argument} must be a path, a data frame, or a dict of columns or of dicts, got "
            f"{type(source).__name__}"
        )
    ids, documents, values = (
        _column(source, list(names), which, argument) for which in ("qid", "docno", number)
    )
    return _by_query(ids, documents, values, argument)


def _column(source: Any, names: list[Any], which: str, argument: str) -> Any:
    known = _COLUMNS[which]
    found = next((name for name in known if name in names), None)
    if found is None:
        raise ValueError(
            f"{argument} must have a column {' or '.join(known)}, got {', '.join(map(str, names))}"
        )
    return source[found]


def _numbers(values: Iterable[Any], argument: str) -> list[float]:
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument} must have numbers as labels and scores: {error}") from None


def _by_query(
    ids: NDArray[Any], documents: NDArray[Any], values: NDArray[Any], argument: str
) -> Lists:
    lists: Lists = {}
    numbers = real_array(values, f"{argument}: the column of numbers").tolist()
    if len({len(ids), len(documents), len(numbers)}) > 1:
        raise ValueError(
            f"{argument} must have columns of one length, got {len(ids)} query ids, "
            f"{len(documents)} documents and {len(numbers)} numbers"
        )
    queries = id_texts(ids, len(ids), f"query ids of {argument}")
    names = id_texts(documents, len(documents), f"documents of {argument}")
    for row, (query, name, value) in enumerate(zip(queries, names, numbers, strict=True)):
        own = lists.setdefault(query, {})
        if name in own:
            raise ValueError(
                f"{argument}: found document {name!r} of query {query!r} again in row {row}"
            )
        own[name] = value
    return lists


def by_trec_order(names: list[str], scores: NDArray[Any]) -> NDArray[np.int64]:
    """Return documents in the order of trec_eval: float32 scores, then names, both descending."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite, as there
        keys = -scores.astype(np.float32)
    order = np.argsort(keys, kind="stable")
    if (keys[order[1:]] != keys[order[:-1]]).all():
        return order
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__, reverse=True), np.int64)
    return by_name[np.argsort(keys[by_name], kind="stable")]
