"""Read the features that a search engine logged beside its results."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from pairgram._support.arrays import object_array
from pairgram._support.checks import AnyArray
from pairgram._support.files import naming, shown
from pairgram._support.parameters import LoggingEngine, PluginName, check_text
from pairgram.data.queries import id_texts
from pairgram.datasets.letor import lines_of
from pairgram.datasets.result_lists import qrels_of

Unjudged = Literal["drop", "zero"]

# The columns that are no features.
OWN = ("qid", "docno", "position", "label")
# Whole numbers of JSON beyond this are no float64.
MOST = int(sys.float_info.max)
# What Vespa adds to summary features, which is none.
CACHED = "vespa.summaryFeatures.cached"
# A feature of Solr's dense or sparse text; names may hold commas and signs of equality.
_NUMBER = r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|Infinity|NaN)"
_PAIR = re.compile(rf"(.+?)[=:]({_NUMBER})(?:[,;]|$)")


# The values of features; the plugin has some without one.
Features = dict[str, "float | None"]


def read_feature_log(
    source: str | os.PathLike[str] | Iterable[str | bytes | Mapping[str, Any]],
    engine: LoggingEngine,
    *,
    qrels: object = None,
    unjudged: Unjudged = "drop",
    query: str = "qid",
    document: str | None = None,
) -> dict[str, AnyArray]:
    r"""Read the features that a search engine logged, as columns with a row for every document.

    Parameters
    ----------
    source : path, or iterable of str, bytes or mappings
        A file with one JSON response of the engine on every line, plain or compressed by gzip, xz
        or bzip2; or the responses themselves. Add one member to each: the id of its query.
    engine : {"solr", "ltr_plugin", "elasticsearch", "opensearch", "vespa"}
        - "solr": documents are in ``response.docs``, each with a text ``[features]`` such as
          ``title=2.1,price=30.0``, dense or sparse;
        - "ltr_plugin", "elasticsearch" and "opensearch", three names of one plugin: documents are
          in ``hits.hits``, each with ``fields._ltrlog``;
        - "vespa": documents are in ``root.children``, each with ``fields.matchfeatures``, or else
          ``fields.summaryfeatures``.
    qrels : judgements in any form of `evaluate_run`, or None
        The labels of the documents. Clicks can be judgements: 1 for a document that was clicked, by
        the ids of the lists that were shown.
    unjudged : {"drop", "zero"}, default="drop"
        How to treat documents without a label, such as those without a click: leave them out, or
        give them the label 0. A label below 0 is none, as in `evaluate_run`.
    query : str, default="qid"
        The member of a response that is the id of its query. For Solr it may also be a parameter of
        the request, which ``echoParams=explicit`` copies into the response.
    document : str or None
        The member of a document that is its id, as Solr's unique key. None takes "id" for Solr,
        "_id" for the plugin, and "documentid" for Vespa, or else the id of the hit.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        ``qid`` and ``docno``, which are str (dtype object); ``position``, int64, from 1 (on later
        pages of Solr, from ``start`` + 1); ``label``, float64, if there are `qrels`; and a column
        for every feature, float64, in the order in which features first appear; NaN marks a
        missing value. Rows of a query stand together. ``pandas.DataFrame`` and ``pyarrow.table``
        take this dict.

    Raises
    ------
    ValueError
        If a line is no such response, or lacks the id of its query; if a document has no id, no
        features, a feature that is not a number, or a feature twice; if a query has a document
        twice; if a hit has several logs; or if no document is judged. The message names the file
        and the line.
    TypeError
        If `qrels` has none of its forms.
    OSError
        If the file cannot be read.

    Notes
    -----
    Engines leave out different features. Solr's sparse text omits features that have their default
    value. This is 0 unless the feature's definition sets another one, so these features become 0.
    The plugin may log a feature without a value, and Vespa may omit one: these become NaN.

    If a query was shown several times, each time with its own clicks, each time needs its own id.

    Examples
    --------
    >>> from pairgram import read_feature_log
    >>> line = '''{"qid": "shoes", "response": {"docs": [
    ...     {"id": "d1", "[features]": "bm25=2.5,price=30.0"},
    ...     {"id": "d2", "[features]": "bm25=1.0"}]}}'''
    >>> read_feature_log([line], "solr", qrels={"shoes": {"d1": 1, "d2": 0}})["price"].tolist()
    [30.0, 0.0]
    """
    check_text("engine", engine, get_args(LoggingEngine))
    check_text("unjudged", unjudged, get_args(Unjudged))
    judged = None if qrels is None else qrels_of(qrels)
    path, ids, pairs_of, absent = _ENGINES[engine]
    ids = ids if document is None else [(document,)]
    lists: dict[str, dict[str, tuple[int, Features]]] = {}
    for place, line in _lines(source):
        try:
            response = line if isinstance(line, Mapping) else _parsed(line)
            # Solr echoes parameters.
            found = _first(response, [(query,), ("responseHeader", "params", query)])
            if found is None:
                raise ValueError(f"want the id of the query as the member {query!r}")
            (qid,) = id_texts([found], 1, "query ids")
            own = lists.setdefault(qid, {})
            before = _member(response, "response", "start")  # results on earlier pages of Solr
            before = max(len(own), before if isinstance(before, int) else 0)
            for position, hit in enumerate(_list_of(response, path), before + 1):
                docno = _first(hit, ids)
                if docno is None:
                    raise ValueError(f"want the id of every document, as {'.'.join(ids[0])}")
                if isinstance(docno, list) and len(docno) == 1:  # of a multi-valued field of Solr
                    (docno,) = docno
                (name,) = id_texts([docno], 1, "documents")
                if name in own:
                    again = "give every time that a query was shown an id of its own"
                    raise ValueError(f"found document {name!r} of query {qid!r} again: {again}")
                own[name] = position, _features_of(pairs_of(hit, docno), docno)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    rows = [
        (qid, name, position, (judged or {}).get(qid, {}).get(name, -1.0), found)
        for qid, own in lists.items()
        for name, (position, found) in own.items()
    ]
    if judged is not None and unjudged == "drop":
        rows = [row for row in rows if row[3] >= 0]
    if not rows:
        what = "a document" if judged is None else "a document that is judged"
        raise ValueError(f"the log must have {what}, found none: are ids those of the qrels?")
    qids, docnos, positions, labels, values_of = zip(*rows, strict=True)
    columns = {
        "qid": object_array(qids),
        "docno": object_array(docnos),
        "position": np.array(positions, np.int64),
    }
    if judged is not None:
        columns["label"] = np.maximum(np.array(labels, np.float64), 0.0)
    for name in dict.fromkeys(name for found in values_of for name in found):
        values = (found.get(name) for found in values_of)
        columns[name] = np.array([absent if value is None else value for value in values], float)
    return columns


def _lines(source: Any) -> Iterator[tuple[str, Any]]:
    """Yield what messages call a response, and the response or its text."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as raw, naming(source):
            for number, line in lines_of(raw, shown(source)):
                yield f"{shown(source)}:{number}", line
        return
    for number, one in enumerate(source, 1):
        yield f"line {number}", one


def _parsed(line: str | bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"want a response in JSON on a line: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"want a response of the engine, got {type(found).__name__}")
    return found


def _member(value: Any, *names: str) -> Any:
    """Return a member of members, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _first(value: Any, paths: Paths) -> Any:
    """Return the first of some members that is there, or None."""
    return next((x for x in (_member(value, *path) for path in paths) if x is not None), None)


def _list_of(response: Mapping[str, Any], path: Sequence[str]) -> list[Any]:
    found, root = _member(response, *path), response.get("root")
    if found is None and isinstance(root, Mapping) and "errors" not in root:
        return []  # a query of Vespa without a result
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise ValueError(f"want the documents as the list {'.'.join(path)}")
    return found


def _features_of(pairs: Iterable[tuple[Any, Any]], docno: object) -> Features:
    """Return the features of a document."""
    found: Features = {}
    for name, value in pairs:
        if not isinstance(name, str) or name in OWN:
            words = f"{', '.join(OWN)} are other columns"
            raise ValueError(f"a feature of document {docno!r} is called {name!r}, and {words}")
        if name in found:
            raise ValueError(f"document {docno!r} has the feature {name!r} twice")
        number = isinstance(value, float) or (type(value) is int and abs(value) <= MOST)
        if value is not None and not number:
            text = f"must be a number, got {str(value)[:60]}"
            raise ValueError(f"the feature {name!r} of document {docno!r} {text}")
        found[name] = None if value is None else float(value)
    return found


def _of_solr(hit: Any, docno: object) -> Iterator[tuple[Any, Any]]:
    text, end = hit.get("[features]"), 0
    if not isinstance(text, str):
        raise ValueError(f"document {docno!r} has no [features]: ask for them with fl=")
    while end < len(text):
        pair = _PAIR.match(text, end)
        if pair is None:
            wanted = f"want name=number, got {text[end : end + 60]!r}"
            raise ValueError(f"[features] of document {docno!r}: {wanted}")
        yield pair[1], float(pair[2])
        end = pair.end()


def _of_plugin(hit: Any, docno: object) -> list[tuple[Any, Any]]:
    listed = _member(hit, "fields", "_ltrlog") or ()
    logs = [log for one in listed if isinstance(one, Mapping) for log in one.values()]
    if len(logs) != 1:
        raise ValueError(
            f"document {docno!r} has {len(logs)} logs in fields._ltrlog: ask for one by ltr_log"
        )
    (entries,) = logs
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) for one in entries):
        raise ValueError(f"document {docno!r} has a log that is no list of features")
    return [(one.get("name"), one.get("value")) for one in entries]


def _of_vespa(hit: Any, docno: object) -> list[tuple[Any, Any]]:
    found = _first(hit, [("fields", "matchfeatures"), ("fields", "summaryfeatures")])
    if not isinstance(found, Mapping):
        raise ValueError(f"document {docno!r} has neither matchfeatures nor summaryfeatures")
    return [pair for pair in found.items() if pair[0] != CACHED]


Paths = list[tuple[str, ...]]
Pairs = Callable[[Any, object], Iterable[tuple[Any, Any]]]
Engine = tuple[tuple[str, ...], Paths, Pairs, float]
# Of each engine the path of the list of documents, those of the id of a document, what returns the
# names and values of its features, and what a feature counts that was left out.
_PLUGIN: Engine = (("hits", "hits"), [("_id",)], _of_plugin, math.nan)
_VESPA_IDS = [("fields", "documentid"), ("id",)]
_ENGINES: Mapping[str, Engine] = {
    "solr": (("response", "docs"), [("id",)], _of_solr, 0.0),
    **dict.fromkeys(get_args(PluginName), _PLUGIN),
    "vespa": (("root", "children"), _VESPA_IDS, _of_vespa, math.nan),
}
