"""``pairgram predict``, ``evaluate`` and ``compare``: scores, and how good they are."""

from __future__ import annotations

from typing import Any

import numpy as np

import pairgram
from pairgram._rooms import public
from pairgram._support.arrays import without_names
from pairgram._support.files import WRITTEN, shown
from pairgram.cli import named_files
from pairgram.cli.named_files import load_letor, load_model, name_of, write_lines
from pairgram.cli.report import count, notes, passes, print_json, print_table, warn
from pairgram.cli.table_of_commands import COMPARED, EVALUATED
from pairgram.data.queries import Queries, one_query_meant, plain_ids
from pairgram.datasets.letor import LetorError


def predict(given: Any) -> None:
    """Score the documents of a file, one number per line, or as a column of a table."""
    file, output, has_columns = given.file, given.output, given.output.lower().endswith(WRITTEN)
    named_files.check_output(output, file, given.model)
    if given.keep is not None and not has_columns:
        raise ValueError(f"--keep needs an --output whose name ends with {', '.join(WRITTEN)}")
    on_table, model = named_files.is_table(given, file, output), load_model(given.model)
    if not on_table:
        try:
            write_lines(output, letor_scores(given, model)[1])
        except LetorError as error:
            if ", want a label" in error.text:
                error.text += ": write 0 where there is none"
            raise
        return
    with passes() as watch:
        table = watch(named_files.scan_for(given, file, model))
        table.refuse_output(output, "--output")
        if has_columns:
            public("predict")(model, table, output=output, keep=given.keep)
        else:
            batches = public("predict")(model, table, keep=[])
            write_lines(output, (score for batch in batches for score in batch[0].to_numpy()))


def letor_scores(given: Any, model: Any) -> Any:
    """Return the data of a LETOR file and a model's scores of its rows.

    If the last features are 0 in every row, a note says so. This is not an error, because the
    format leaves zeros out.
    """
    data, name = load_letor(given.file, model, given.model, zero_based=given.zero_based), given.file
    n_used, width = int(np.max(data.X.nonzero()[1], initial=-1)) + 1, data.X.shape[1]
    if n_used < width:
        warn(f"note: {name_of(name)} has 0 in every row for features {n_used + 1} to {width}")
    if hasattr(model, "feature_names_in_"):
        ordered = "its features are taken in the order of the model's columns"
        warn(f"note: {name_of(name)} has no names of columns: {ordered}")
    try:
        return data, without_names(model).predict(data.X)
    except (TypeError, ValueError) as error:  # of text, if the model was fitted to it
        if not hasattr(model, "steps"):  # of a pipeline, which may choose columns by their names
            raise
        raise ValueError(f"{shown(given.model)}: cannot score rows of numbers: {error}") from None


def evaluate(given: Any) -> None:
    """Print ranking metrics of scores, or of a model."""
    file, scores, convention = given.file, given.scores, given.convention
    if (scores is None) == (given.model is None):
        raise ValueError("evaluate needs --scores or --model")
    named_files.check_inputs(file, scores)
    names = given.metric or (["ips_dcg@10"] if given.propensity else EVALUATED)
    metrics = [named_files.metric_of(name, convention) for name in names]
    with one_query_meant():
        if named_files.is_table(given, file) and scores is None:
            found, n_rows = _of_table(given, metrics)
        else:
            found, n_rows = _of_rows(given, metrics)
    means = {one.name: float(one.mean(found[one.name])) for one in metrics}
    ids = plain_ids(found["qid"]) if "qid" in found else ["all rows"]
    rows = list(zip(ids, *(found[name] for name in means), strict=True))
    if given.json:
        report: dict[str, Any] = {
            "file": file,
            "convention": convention,
            "n_rows": n_rows,
            "n_queries": len(ids),
            "metrics": means,
        }
        if given.per_query:
            report["queries"] = [dict(zip(("qid", *means), row, strict=True)) for row in rows]
        print_json(report)
        return
    size = f"{count(n_rows, 'row')}, {count(len(ids), 'query', 'queries')}"
    title = f"{name_of(file)}: {size}, convention {convention}"
    if given.per_query:
        texts = [(str(one), *values) for one, *values in rows]
        print_table(("query", *means), texts, title=title, footer=("mean", *means.values()))
    else:
        print_table(("metric", "mean"), means.items(), title=title)


def _of_table(given: Any, metrics: list[Any]) -> Any:
    """Return the metrics of a model on a table, which may be larger than memory."""
    model = load_model(given.model)
    with passes() as watch:
        table = named_files.scan_for(given, given.file, model)
        named_files.require(given, given.file, table)
        table = watch(table)
        return pairgram.evaluate(metrics, table, model, per_query=True), sum(table.n_rows())


def _of_rows(given: Any, metrics: list[Any]) -> Any:
    """Return the metrics of scores, or of a model on a LETOR file."""
    file, scores = given.file, given.scores
    if given.columns.keys() - {"label", "qid"}:
        raise ValueError(
            "--scores are final: of the options of tables, they go with --label, --qid and "
            "--one-query alone"
        )
    if scores is None:
        (_, y, qid), found = letor_scores(given, load_model(given.model))
    else:
        y, qid = _truth(given, file)
        found = named_files.load_scores(scores, len(y))
    if qid is None and not given.one_query:
        rows = "its row is" if len(y) == 1 else f"all {len(y)} rows are"
        warn(f"warning: {name_of(file)} has no qid: {rows} one query")
    with notes():
        values: dict[str, Any] = pairgram.evaluate(metrics, y, found, qid, per_query=True)
    if qid is not None:
        values["qid"] = Queries.make(len(y), qid=qid).ids
    return values, len(y)


def _truth(given: Any, file: str) -> Any:
    """Return the labels and the query ids of a LETOR file or a table."""
    if named_files.is_table(given, file):
        return named_files.labels_of(given, file)
    return load_letor(file, zero_based=given.zero_based)[1:]


def compare(given: Any) -> None:
    """Compare the scores of several systems, query by query."""
    file, *names = given.file
    if len(names) < 2:
        found = count(len(given.file), "file")
        raise ValueError(f"compare needs at least FILE and two files of scores, got {found}")
    if len(set(names)) < len(names):
        raise ValueError("compare needs different files, got one of them twice")
    named_files.check_inputs(file, *names)
    y, qid = _truth(given, file)
    if qid is None:
        raise ValueError(f"{name_of(file)}: found no qid, want qid:ID in every row")
    metrics = [named_files.metric_of(name, given.convention) for name in given.metric or COMPARED]
    scores = {name: named_files.load_scores(name, len(y)) for name in names}
    result = public("compare")(y, qid, scores, metrics, baseline=given.baseline)
    if given.json:
        print_json({"file": file, **result.to_dict()})
        return
    for number, (title, table) in enumerate(result._tables().values()):
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        print_table(list(table), rows, title="\n" * bool(number) + title)
