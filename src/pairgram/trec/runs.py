"""Metrics of TREC runs: result lists and judgements that are joined by the ids of documents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pairgram._support.arrays import object_array
from pairgram._support.parameters import Convention, check_text
from pairgram.datasets.result_lists import Lists, by_trec_order, qrels_of, run_of
from pairgram.metrics.evaluation import evaluate, get_metric
from pairgram.metrics.metric import FAMILIES, Metric, listed_metrics

if TYPE_CHECKING:
    from pairgram._support.checks import Vector

Missing = Literal["zero", "skip"]
# The names of metrics in trec_eval and ir_measures.
_NAMES = {other: name for name, family in FAMILIES.items() for other in family.in_runs}
_NAMES["Bpref"] = "bpref"
_ORDER = "; the order is evaluate_run(qrels, run, metrics)"


def evaluate_run(
    qrels: object,
    run: object,
    metrics: str | Metric | Iterable[str | Metric] = ("map", "ndcg@10", "mrr", "p@10"),
    *,
    convention: Convention = "trec",
    missing: Missing = "zero",
    per_query: bool = False,
) -> dict[str, Any]:
    """Return metrics of a run against relevance judgements, as trec_eval defines them.

    Relevant documents that the run did not retrieve count. Ties are broken as in trec_eval: scores
    are compared as float32, and documents with equal scores stand in descending order of their ids.

    Parameters
    ----------
    qrels : path, data frame or mapping
        The judgements, in one of these forms:

        - a TREC file, see `read_qrels`;
        - a frame of pandas, polars or pyarrow, or a dict of columns. One column is named ``qid``,
          ``query_id`` or ``q_id``, one ``docno``, ``doc_id`` or ``docid``, and one ``label``,
          ``relevance``, ``rel`` or ``score``;
        - a dict of query ids to dicts of document ids to labels, as in pytrec_eval and ranx. Tuples
          of ir_measures become a frame by ``pandas.DataFrame(tuples)``.
    run : path, data frame or mapping
        The result lists, in the same forms: a file (see `read_run`), columns with ``score`` as the
        number, or a dict of dicts. A document without a judgement is not relevant. A document with
        the score NaN is left out.
    metrics : str, Metric, or iterable of them
        Metrics that rank, by the names of `get_metric`, trec_eval ("map", "P_10", "ndcg_cut_10",
        "recip_rank", "Rprec", "success_5") or ir_measures ("AP", "nDCG@10", "RR"). Also trec_eval's
        "bpref", for which documents with a label ≥ 1 are relevant.
    convention : str
        See `get_metric`. "trec" has the linear gain.
    missing : {"zero", "skip"}
        How queries of `qrels` count if the run lacks them. "zero": as queries without results, as
        in trec_eval with ``-c``, ir_measures and PyTerrier. "skip": not at all, as in trec_eval
        without ``-c``. Queries of the run without judgements never count.
    per_query : bool
        If True, return the values of every query in place of the mean.

    Returns
    -------
    dict
        For the name of every metric a float, the mean over queries. If `per_query`, an array of
        shape (n_queries,) each, and the ids of the queries as "qid", in the order of `qrels`.

    Raises
    ------
    ValueError
        If a line of a file, a column or a value is wrong, if an id is missing, if two different ids
        have the same text, such as 1 and "1", if a query has a document twice, if `qrels` and `run`
        have no query in common, or if a metric is unknown or needs scores of all documents.
    TypeError
        If `qrels` or `run` has none of these forms.

    Notes
    -----
    A label below 0 means that a document was not judged. For the measures of trec_eval that are
    named above, the values of queries have the same bits as trec_eval's, and means may differ in
    the last digit. Ids of queries and documents are compared as texts, so 7 is "7". A float without
    a fraction counts as the integer, because frames turn integers into floats: 7.0 is "7" too.

    Examples
    --------
    >>> from pairgram import evaluate_run
    >>> qrels = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1}}
    >>> run = {"q1": {"a": 0.5, "b": 0.7, "d": 0.6}}
    >>> evaluate_run(qrels, run, ["map", "recall@10"])
    {'map': 0.08333333333333333, 'recall@10': 0.25}
    >>> evaluate_run(qrels, run, "map", per_query=True)
    {'qid': array(['q1', 'q2'], dtype=object), 'map': array([0.16666667, 0.        ])}
    """
    check_text("missing", missing, get_args(Missing))
    hint = _ORDER if isinstance(qrels, str) and not os.path.exists(qrels) else ""
    names = {_name_of(metric): metric for metric in listed_metrics(metrics, _ORDER)}
    wanted = {
        name: metric if isinstance(metric, Metric) else _metric(name, convention, hint)
        for name, metric in names.items()
        if _known(name) != "bpref"
    }
    judged, results = qrels_of(qrels), run_of(run)
    common = [query for query in judged if query in results]
    if not common:
        raise ValueError(
            f"qrels and run must have queries in common: qrels has {_some(judged)}, and run has "
            f"{_some(results)}"
        )
    queries = common if missing == "skip" else list(judged)
    lists = [_ranked(judged[query], results.get(query, {})) for query in queries]
    distinct = list(dict.fromkeys(wanted.values()))  # two names may mean one metric: map and AP
    _require_ranks(distinct, dict(zip(queries, lists, strict=True)))
    found = _values(distinct, lists)
    values = {
        name: found[wanted[name].name]
        if name in wanted
        else np.array([_bpref(labels, judgements) for _, labels, _, judgements in lists])
        for name in names
    }
    if per_query:
        return {"qid": object_array(queries), **values}
    return {name: float(Metric.mean(each)) for name, each in values.items()}


def _metric(name: str, convention: Convention, hint: str) -> Metric:
    try:
        return get_metric(_known(name), convention)
    except ValueError as error:
        raise ValueError(f"{error}; evaluate_run knows bpref too{hint}") from None


def _known(name: str) -> str:
    """Return this package's name of a metric that has the name of trec_eval or ir_measures."""
    match = re.fullmatch(r"([A-Za-z_]+?)(?:[_@]([0-9]+))?", name)
    if match is None or match[1] not in _NAMES:
        return name
    cut = "" if match[2] is None else f"@{match[2]}"
    return _NAMES[match[1]] + cut


def _name_of(metric: str | Metric) -> str:
    return metric.name if isinstance(metric, Metric) else metric


def _some(lists: Lists) -> str:
    some = ", ".join(map(repr, list(lists)[:3]))
    return f"{some}, ..." if len(lists) > 3 else some or "none"


# --- lists -------------------------------------------------------------------------------------


def _ranked(
    judgements: dict[str, float], results: dict[str, float]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], dict[str, float]]:
    """Return the scores and labels of a query's results, ranked, and what was not retrieved.

    Returns
    -------
    scores : ndarray of shape (n_results,)
        As float32, descending.
    labels : ndarray of shape (n_results,)
        NaN for a document that is not judged.
    missed : ndarray
        The labels > 0 of judged documents that were not retrieved.
    judgements : dict
    """
    names = [name for name, score in results.items() if score == score]
    scores = np.array([results[name] for name in names], dtype=np.float64)
    order = by_trec_order(names, scores)
    labels = np.array([judgements.get(names[at], np.nan) for at in order], dtype=np.float64)
    labels[labels < 0] = np.nan
    retrieved = set(names)
    missed = [y for name, y in judgements.items() if y > 0 and name not in retrieved]
    with np.errstate(over="ignore"):
        return scores[order].astype(np.float32), labels, np.array(missed, np.float64), judgements


def _require_ranks(metrics: Iterable[Metric], lists: dict[str, Any]) -> None:
    """Raise a ValueError if a metric needs a score of a document that was not retrieved."""
    for metric in metrics:
        if metric.ties is not None:  # it looks at ranks, and what has none is at the end
            continue
        for query, (scores, _, missed, _) in lists.items():
            if len(missed) or not len(scores):
                raise ValueError(
                    f"{metric.name} needs a score of every relevant document, and the run lacks "
                    f"some of query {query!r}: take a metric that looks at ranks, such as map"
                )


def _values(metrics: list[Metric], lists: list[Any]) -> dict[str, Any]:
    """Return the values of metrics in every query."""
    if not metrics:
        return {}
    y, score, sizes = [], [], []
    for scores, labels, missed, _ in lists:
        # A query without results and relevant documents has a row too.
        rest = missed if len(labels) or len(missed) else np.zeros(1)
        y += [np.nan_to_num(labels, nan=0.0), rest]
        score += [scores.astype(np.float64), np.full(len(rest), np.nan)]
        sizes.append(len(labels) + len(rest))
    rows = np.concatenate(y), np.concatenate(score)
    return evaluate(metrics, *rows, np.repeat(np.arange(len(sizes)), sizes), per_query=True)


def _bpref(labels: Vector, judgements: dict[str, float]) -> float:
    """Return bpref as trec_eval defines it, of judged documents alone.

    Buckley, Voorhees (2004). Retrieval evaluation with incomplete information. SIGIR.
    """
    n_relevant = sum(label >= 1 for label in judgements.values())
    n_others = sum(0 <= label < 1 for label in judgements.values())
    known = labels[~np.isnan(labels)]
    above = np.cumsum(known < 1)[known >= 1]
    total = 0.0
    for n in above.tolist():  # sum() would not have trec_eval's bits from Python 3.12 on
        total += 1.0 - min(n, n_relevant) / min(n_others, n_relevant) if n else 1.0
    return total / n_relevant if n_relevant else 0.0
