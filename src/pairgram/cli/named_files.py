"""What commands read and write: LETOR files, tables, scores, runs and models."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import pairgram
from pairgram._rooms import public, room_with
from pairgram._support import limits
from pairgram._support.arrays import require_columns
from pairgram._support.checks import NO_COLUMN, NO_NUMBERS, ArgumentError
from pairgram._support.files import WRITTEN, naming, printable, replacing, shown
from pairgram.cli.report import count, notes, print_lines, working
from pairgram.datasets import LetorData
from pairgram.datasets.letor import LetorError, compressing, looks_like_letor, read_letor

# Files with these names are tables, unless they are LETOR text.
ENDS = (*WRITTEN, ".csv.gz", ".tsv.gz")
_SCORE = re.compile(rb"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE)


def name_of(path: str) -> str:
    """Return the name of an input file for messages."""
    return "standard input" if path == "-" else shown(path)


@contextmanager
def reading(path: str) -> Iterator[tuple[Any, str]]:
    """Open a file, or standard input, say so on a terminal; yield it with its name."""
    name = name_of(path)
    source: Any = nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb")  # noqa: SIM115
    with working(f"reading {name}"), source as file, naming(name if path == "-" else path):
        yield file, name


def load_letor(path: str, model: Any = None, of: str = "", **options: Any) -> LetorData:
    """Read a LETOR file, which has the features of a model if there is one, of this file."""
    width = None if model is None else width_of(model)
    if width is not None and width > limits.now.widest_letor:
        options["sparse"] = True
    try:
        with notes(), reading(path) as (file, name):
            return LetorData(*read_letor(file, name, n_features=width, **options))
    except LetorError as error:
        error.text = error.text.replace("zero_based=True", "--zero-based")
        if width is not None:
            of_model = f"{shown(of)} has {count(width, 'feature')}"
            error.text = error.text.replace(f"n_features={width}", of_model)
        raise


def load_trec(kind: str, path: str) -> Any:
    """Read a file of TREC: judgements ("qrels") or a run ("run")."""
    with reading(path) as named_file:
        return room_with("command line", f"parse_{kind}")(*named_file)


def load_scores(path: str, n_rows: int) -> Any:
    """Read a file with one number per line, ``-`` for standard input, or a column of scores.

    Raises
    ------
    ValueError
        If a file of columns has none of scores, or lacks one in a row; if a line is neither a
        decimal number that fits into float64 nor ``inf`` (with or without a sign); or if there are
        not `n_rows` scores. The message names the file, and the line or row.
    """
    scores: Any = []
    if path.lower().endswith(ENDS):
        with naming_file(path, label=None):
            scores = room_with("command line", "read_labels")(path, "score")[0]
    else:
        with reading(path) as (file, name):
            text = file.read()
        for number, line in enumerate(text.rstrip().splitlines(), 1):
            word = line.strip()
            fits = _SCORE.fullmatch(word) and (math.isfinite(float(word)) or b"n" in word.lower())
            if not fits:
                raise ValueError(
                    f"{name}:{number}: found {word[:60].decode('ascii', 'backslashreplace')!r}, "
                    "want a score, one number per line that fits into float64"
                )
            scores.append(float(word))
    if len(scores) != n_rows:
        found = count(len(scores), "score")
        raise ValueError(f"{name_of(path)}: found {found}, want one for each of {n_rows} rows")
    return scores


# Models


def load_model(path: str) -> Any:
    """Return the model of a file."""
    try:
        return pairgram.load_model(path)
    except ValueError as error:
        if not looks_like_letor(path):
            raise
        raise ValueError(f"{error}, but looks like a LETOR file: MODEL comes first") from None


def width_of(model: Any) -> int:
    """Return the number of columns of a ranker, or of the first step of a pipeline that knows."""
    steps = getattr(model, "steps", [("", model)])
    return next(int(step.n_features_in_) for _, step in steps if hasattr(step, "n_features_in_"))


# Tables


def is_table(given: Any, *files: str | None) -> bool:
    """Tell whether one of the files is a table, by its name or because of options of tables.

    Addresses, folders and patterns are, and files of columns.
    """
    if getattr(given, "one_query", False) and given.qid is not None:
        raise ValueError("give --qid or --one-query, not both")
    found = bool(given.columns)
    for file in filter(None, files):
        there = os.path.exists(file)
        of_columns = file.lower().endswith(ENDS) and not (there and looks_like_letor(file))
        pattern = not there and any(sign in file for sign in "*?[")
        found |= of_columns or pattern or "://" in file or os.path.isdir(file)
    for flag in ("sparse", "zero_based"):
        if found and getattr(given, flag, False):
            text = "is for LETOR files that are held in memory, not for tables"
            raise ValueError(f"--{flag.replace('_', '-')} {text}")
    return found


@contextmanager
def naming_file(file: str, **named: str | None) -> Iterator[None]:
    """Within this context, errors name a file, and arguments as they are called here."""
    try:
        yield
    except ArgumentError as error:
        if error.place is not None:
            error.place = printable(file)
        error.parameter = named.get(str(error.parameter), error.parameter)
        raise


def scan(given: Any, file: str, width: int = 0, **own: Any) -> Any:
    """Return the table of a file, as options say, or arguments of `pairgram.scan` in their place.

    LETOR files have at least a number of features: they leave out zeros.
    """
    if file == "-":
        raise ValueError("FILE must not be -, standard input, if it is a table")
    told = {**given.columns, **own}
    told.pop("missing", None)  # which is for the model
    groups, called = told.pop("groups", None), "exclude" if told.get("exclude") else "groups"
    if groups and not told.get("features"):
        source = room_with("command line", "source_of")(file)
        if not source.is_letor:
            with naming_file(file):
                require_columns([groups], source.schema.names, "groups", "the table")
        told["exclude"] = [groups, *(told.get("exclude") or ())]
    with naming_file(file, exclude=called):
        table = public("scan")(file, **told)
    if getattr(given, "one_query", False):  # rows without ids are one list
        table = replace(table, is_one_list=True)
    return table.widened(width)


def scan_for(given: Any, file: str, model: Any) -> Any:
    """Return the table of a file that a model is to score, which finds columns by their names."""
    known, own = getattr(model, "feature_names_in_", None), {}
    if known is not None and not given.columns.get("features"):
        with suppress(AttributeError, TypeError, ValueError):  # of steps that have no formula
            # Columns that a pipeline that reads text was fitted to, and leaves out, need not be.
            scorer: Any = public("row_scorer")(model) if hasattr(model, "steps") else None
            known = scorer.names if getattr(scorer, "texts", None) else known
        if "exclude" in given.columns:
            raise ValueError("--exclude is not for this model, which finds its columns by name")
        own["features"] = [str(name) for name in known]
    return scan(given, file, width_of(model), **own)


def scan_assuming(given: Any, file: str) -> tuple[Any, list[str]]:
    """Return the table of a file to learn from, and words on what was assumed of its columns.

    If nothing says what features are, columns that hold no numbers are left out.
    """
    assumed = []
    try:
        table = scan(given, file)
    except ArgumentError as error:
        if given.features or error.found != NO_NUMBERS:
            raise
        kinds = [f"{printable(name)} ({kind})" for name, kind in error.kinds.items()]
        assumed = [f"left out {', '.join(kinds)}"]
        try:
            table = scan(given, file, exclude=[*(given.exclude or ()), *error.kinds])
        except ArgumentError as none_left:
            raise error if none_left.found == NO_COLUMN else none_left from None
    if given.features or table.is_letor:
        return table, []
    names = [printable(str(name)) for name in table.layout.features]
    return table, [f"took {count(len(names), 'column')} as features: {', '.join(names)}", *assumed]


def labels_of(given: Any, file: str) -> tuple[Any, Any]:
    """Return the labels and the query ids of a table, which alone are read."""
    y, ids = room_with("command line", "read_labels")(file, given.label, given.qid)
    ids_are_needed = not getattr(given, "one_query", False)
    refuse_lack(given, file, y is None, ids is None and ids_are_needed)
    return y, ids


def require(given: Any, file: str, table: Any, ids: bool = True) -> None:
    """Raise a ValueError if a table to judge by lacks labels, or ids that are needed."""
    refuse_lack(given, file, table.layout.label is None, ids and not table.has_queries)


def refuse_lack(given: Any, file: str, labels: bool, ids: bool) -> None:
    """Raise a ValueError if a table lacks labels or ids, which no option names."""
    one_list = ", or --one-query if all rows are one list" * hasattr(given, "one_query")
    wanted = ["--label, its column of labels"] * labels
    wanted += [f"--qid, its column of query ids{one_list}"] * ids
    if wanted:
        raise ValueError(f"{printable(file)}: found a table, want {'; and '.join(wanted)}")


# Outputs


def check_inputs(*paths: str | None) -> None:
    """Raise a ValueError if two inputs are standard input."""
    if paths.count("-") > 1:
        raise ValueError("only one file can be -, standard input")


def check_output(output: str, *others: str | None) -> None:
    """Raise an error, before any work, if an output is another file or its folder is missing."""
    if not os.path.isdir(os.path.dirname(output) or "."):
        raise FileNotFoundError(f"{shown(output)}: its folder does not exist")
    if os.path.isdir(output):
        raise IsADirectoryError(f"{shown(output)}: want a file to write, this is a folder")
    for other in filter(None, others):
        same = False
        with suppress(OSError, ValueError):  # it is not there, or standard input is no file
            found = sys.stdin.fileno() if other == "-" else other
            same = os.path.isfile(output) and os.path.samefile(output, found)
        if same:
            raise ValueError(f"--output {shown(output)} is one of the other files of this command")


def is_stream(path: str) -> bool:
    """Tell whether a path is a device, a pipe or an open descriptor rather than a file."""
    return path.startswith("/dev/") or (os.path.exists(path) and not os.path.isfile(path))


def write_lines(output: str, lines: Iterable[Any]) -> None:
    """Write a score, or another text, per line; a file is replaced when it is complete."""
    if output in ("-", "/dev/stdout"):
        print_lines(map(str, lines))
        return
    opened: Any = open(output, "ab") if is_stream(output) else replacing(output)  # noqa: SIM115
    with naming(output), opened as raw, compressing(raw, output) as target:
        target.writelines(f"{line!s}\n".encode() for line in lines)


def metric_of(name: str, convention: Any) -> Any:
    """Return the metric of --metric and --convention. Errors name this option."""
    try:
        return pairgram.get_metric(name, convention)
    except ValueError as error:
        raise ValueError(f"--metric: {error}") from None
