"""Options of commands: what they make of parameters, and the files that they name."""

from __future__ import annotations

import functools
import inspect
import io
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from glob import glob
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

import pairgram
from pairgram._rooms import room_with
from pairgram._support.files import kind_of_binary, naming, shown
from pairgram._support.parameters import (
    FOURIER_KERNEL,
    KERNEL_PARAMETERS,
    PARAMETERS,
    check_setting,
    check_text,
    choice,
)
from pairgram.cli.report import count, warn, working

if TYPE_CHECKING:
    from pairgram._support.checks import AnyArray
    from pairgram._support.types import BaseEstimator, Matrix
    from pairgram.datasets import LetorData
    from pairgram.metrics import Metric

# The column of a Parquet file of scores.
SCORE = "score"
# A line of a file of scores has at most this many bytes.
MAX_LINE = 1000
_SCORE = re.compile(rb"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)", re.IGNORECASE)


def is_stdin(path: Path | None) -> bool:
    """Tell whether a path stands for standard input."""
    return str(path) == "-"


def name_of(path: Path) -> str:
    """Return the name of an input file for messages."""
    return "standard input" if is_stdin(path) else shown(path)


def same_file(path: Path, read: Path) -> bool:
    """Tell whether an output path is the same file as an input."""
    if not path.is_file():
        return False
    if is_stdin(read):
        try:
            return os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
        except (OSError, ValueError):  # standard input is closed, or is not a file of the system
            return False
    return read.exists() and path.samefile(read)


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file, or standard input, to read its bytes."""
    if not is_stdin(path):
        with open(path, "rb") as file, naming(path):
            yield file
        return
    source: Any = sys.stdin.buffer
    buffered = io.BufferedReader(source)
    try:
        with naming("standard input"):
            yield buffered
    finally:
        buffered.detach()  # so that standard input stays open


def load_scores(path: Path, n_rows: int) -> AnyArray:
    """Read a file with one number per line, ``-`` for standard input, or a Parquet file of scores.

    Raises
    ------
    ValueError
        If a Parquet file has no column of scores, or lacks one in a row; if a line is neither a
        decimal number that fits into float64 nor ``inf`` (with or without a sign); or if there are
        not `n_rows` scores. The message names the file, and the line or row.
    """
    import numpy as np

    if path.suffix.lower() in (".parquet", ".pq"):
        scores = _scores_of_parquet(path)
    else:
        with opened(path) as file:
            found = kind_of_binary(file.peek(1024)[:1024])
            if found is not None:
                raise ValueError(f"{name_of(path)}: found {found}, want a score on every line")
            # One more than the rows is enough to see that they are too many.
            lines = islice(_scores(file, name_of(path)), n_rows + 1)
            scores = np.fromiter(lines, np.float64)
    if len(scores) > n_rows:
        raise ValueError(f"{name_of(path)}: found more scores than the {n_rows} rows")
    if len(scores) < n_rows:
        raise ValueError(
            f"{name_of(path)}: found {len(scores)} scores, want one for each of {n_rows} rows"
        )
    return scores


def _scores_of_parquet(path: Path) -> AnyArray:
    """Read the column of scores that ``pairgram predict`` writes."""
    from pairgram._support.checks import ArgumentError

    try:
        return room_with("command line", "read_labels")(path, SCORE)[0]
    except ArgumentError as error:
        error.parameter, error.place = None, name_of(path)
        raise


def _scores(file: IO[bytes], name: str) -> Iterator[float]:
    """Yield the score of every line. Lines at the end may be blank."""
    blank = 0  # the number of the first blank line so far
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        found = line.strip(b" \t\r\n")
        if not found:
            blank = blank or number
            continue
        if blank:
            raise ValueError(f"{name}:{blank}: found '', want a score, one number per line")
        score = float(found) if _SCORE.fullmatch(found) else math.nan
        if math.isnan(score) or (math.isinf(score) and b"n" not in found.lower()):
            text = found[:60].decode("ascii", "backslashreplace")
            raise ValueError(
                f"{name}:{number}: found {text!r}, want a score, one number per line that fits "
                "into float64"
            )
        yield score


# The values of the options that are given, by the names of the library's parameters.
Settings = dict[str, Any]
# The kernels, and the parameters that each uses.
KERNELS = {**dict.fromkeys(FOURIER_KERNEL.names, ("gamma",)), **KERNEL_PARAMETERS}


def names_of(name: str) -> tuple[str, ...]:
    """Return the names that the option of a parameter takes.

    The word none stands for None, where an option may be repeated.
    """
    parameter = PARAMETERS[name]
    setting = parameter.setting or parameter.stored
    names = () if setting is None else setting.names
    return (*names, "none") if parameter.many and setting and setting.fits(None) else names


def heeds(kernel: str | None, parameter: str) -> bool:
    """Tell whether a kernel uses gamma, degree or coef0. An unknown kernel uses none of them."""
    return kernel is not None and parameter in KERNELS.get(kernel, ())


def parse_grid(text: str, option: str, *, zero: bool = False) -> list[float]:
    """Return the grid of a text such as ``2^-15:2^24`` or ``0.1,1,10``.

    ``b^i:b^j`` stands for b to all whole powers from i to j, and ``b^i:b^j:s`` for every s-th of
    them. Repeated values count once.

    Parameters
    ----------
    text, option : str
        The text, and the option that errors name.
    zero : bool, default=False
        Whether 0 may be a value.

    Raises
    ------
    ValueError
        If the text is none of these, or a value is not finite and > 0.
    """
    values: list[float] = []
    for item in text.split(","):
        parts = item.split(":")
        (base, low), (other, high) = (_power(end, option) for end in (parts[0], parts[:2][-1]))
        if len(parts) == 1:
            values.append(0.0 if zero and base == 0 < low else _positive(base, low, item, option))
            continue
        step = parts[2] if len(parts) == 3 else "1"
        good = len(parts) <= 3 and re.fullmatch("[1-9][0-9]{0,5}", step)
        if not good or "^" not in item or base != other or low > high:
            raise ValueError(f"{option}: a range is like 2^-15:2^24 or 2^-30:2^20:2, got {item!r}")
        powers = range(low, high + 1, int(step))
        values.extend(_positive(base, power, item, option) for power in powers)
    return list(dict.fromkeys(values))


def parse_names(text: str, option: str) -> list[str]:
    """Return the names in a text such as ``a,b``."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"{option} takes different names such as a,b,c; got {text!r}")
    return names


def _power(text: str, option: str) -> tuple[float, int]:
    """Return (base, exponent) of a text such as ``2^-15``. A plain number has exponent 1."""
    match = re.fullmatch(r"\s*([^\s^]+?)(?:\^([+-]?[0-9]{1,6}))?\s*", text)
    try:
        if match is not None:
            return float(match[1]), int(match[2] or 1)
    except ValueError:
        pass
    raise ValueError(
        f"{option} takes numbers and ranges such as 0.1,1,10 or 2^-15:2^24; got {text!r}"
    )


def _positive(base: float, exponent: int, item: str, option: str) -> float:
    try:
        value = base**exponent
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{option}: each must be finite and > 0, got {item.strip()!r}")
    return value


# What makes values of the texts of options, by parameters, or by what a text looks like.
_PARSERS: Mapping[str, Callable[[str, str], Any]] = {
    "alphas": partial(parse_grid, zero=True),
    "activation": lambda text, option: check_text(option, text, names_of("activation")),
    "GRID": parse_grid,
    "A,B,...": parse_names,
}
_TYPES = {"": bool, "N": int, "SECONDS": float, "MODEL": Path}


def option(name: str, note: str = "") -> Any:
    """Return the declaration of a parameter's option; in its help `note` replaces its default."""
    parameter = PARAMETERS[name]
    flags, _, metavar = parameter.option.partition(" ")
    setting = parameter.setting or parameter.stored
    return typer.Option(
        flags,
        metavar=metavar or None,
        help=parameter.help.replace("{names}", ", ".join(names_of(name))) + note,
        min=setting.low if setting is not None and name not in _PARSERS else None,
        show_default=parameter.default is not None and not note,
    )


def sharing(keyword: str, names: Iterable[str], make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that gives a command options in place of its `keyword`.

    Parameters
    ----------
    keyword : str
    names : iterable of str
        The parameters whose options they are.
    make : callable
        What returns the value of the keyword. It gets the parsed values of the options that are
        given, and that differ from the defaults.
    """
    shared = [_declared(name) for name in names]

    def with_options_of_names(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for name, parameter in own.parameters.items():
            parameters.extend(shared if name == keyword else [parameter])

        @functools.wraps(command)
        def with_options(**options: Any) -> None:
            values = {parameter.name: options.pop(parameter.name) for parameter in shared}
            given = {
                name: _parsed(name, value)
                for name, value in values.items()
                if value is not None and value != [] and value != PARAMETERS[name].default
            }
            command(**options, **{keyword: make(**given)})

        # Depending on its version, typer reads one or the other.
        with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_options

    return with_options_of_names


def _declared(name: str) -> inspect.Parameter:
    """Return the option of a parameter as an argument of a command."""
    parameter = PARAMETERS[name]
    metavar = parameter.option.partition(" ")[2]
    kind: Any = str if name in _PARSERS else _TYPES.get(metavar, str)
    if parameter.many:
        kind = list[str]
    if parameter.default is None:
        kind = kind | None
    annotation: Any = Annotated[kind, option(name)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default, annotation=annotation
    )


def _parsed(name: str, value: Any) -> Any:
    """Return the value of a parameter that its option has; the word none stands for None."""
    parameter = PARAMETERS[name]
    flags, _, metavar = parameter.option.partition(" ")
    parse = _PARSERS.get(name) or _PARSERS.get(metavar)
    if parse is not None:
        return parse(value, flags)
    names = names_of(name)
    if parameter.many:
        return [None if check_text(flags, one, names) == "none" else one for one in value]
    if parameter.setting is None:
        return value
    return check_setting(flags, value, choice(*names) if names else parameter.setting)


EVALUATED = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")
EVIDENCE = "evidence"  # chooses too, and is no metric
EVALUATED_RUN = ("map", "ndcg@10", "p@10", "recall@100", "mrr")

ROWS = (
    "LETOR (SVMlight) file, plain, .gz, .xz or .bz2; - stands for standard input. Or a table: "
    "Parquet, Arrow, CSV (.csv, commas) or TSV files (.tsv, tabs), a folder, a pattern in quotes "
    "such as 'data/*.parquet', or an address such as s3://bucket/folder."
)
Rows = Annotated[str, typer.Argument(metavar="FILE", help=ROWS)]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file that `pairgram train` wrote.")
]
ChoiceMetric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Metric to choose by; with rankrls, rls and the ELMs also evidence, the likelihood of "
        "the labels, which holds nothing out. [default: ndcg@10, or pairwise_accuracy for labels "
        "that are no grades; pairwise_squared_error for elmrank]",
        show_default=False,
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Metric such as ndcg@10, ndcg_linear@10, map, p@5, recall@10, rprec, mrr, "
        "hit_rate@10, rbp, err, auc, ef@1%, bedroc, kendall; with --qrels also trec_eval's names, "
        f"such as P_10, and bpref. Repeat it for several. [default: {', '.join(EVALUATED)}; with "
        f"--qrels {', '.join(EVALUATED_RUN)}]",
        show_default=False,
    ),
]
RunConvention = Annotated[
    str | None, option("convention", note=" [default: default; with --qrels trec]")
]
Qrels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File of TREC relevance judgements, for TREC runs."),
]
Float32 = Annotated[bool, typer.Option("--float32", help="Hold features in single precision.")]
Sparse = Annotated[
    bool, typer.Option("--sparse", help="Store features sparsely, for files with many zeros.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Within this context, print the library's warnings as notes of one line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                warn(f"warning: {message}")


def is_stream(path: Path) -> bool:
    """Tell whether a path is a device, a pipe or an open descriptor rather than a file."""
    named = re.fullmatch("/dev/(stdout|stderr|fd/[0-9]+)", str(path)) is not None
    return named or path.is_fifo() or path.is_char_device()


def check_output(path: Path, *others: Path | None, option: str = "--output") -> None:
    """Raise an error, before any work, if an output is another file or its folder is missing.

    Others are files, folders and patterns. The message names the option of the output.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{shown(path)}: its folder does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"{shown(path)}: want a file to write, this is a folder")
    for other in others:
        if other is None:
            continue
        is_one = is_stdin(other) or other.exists()
        found = [other] if is_one else map(Path, glob(str(other), recursive=True))
        is_same = str(path) != "-" and path.absolute() == other.absolute()
        above = path.is_file() and other.is_dir() and other.resolve() in path.resolve().parents
        if is_same or above or any(same_file(path, file) for file in found):
            raise ValueError(f"{option} {shown(path)} is one of the other files of this command")


def check_one_stdin(*inputs: Path | None) -> None:
    """Raise a ValueError if two inputs are standard input."""
    if sum(map(is_stdin, inputs)) > 1:
        raise ValueError("only one file can be -, standard input")


def metric_of(name: str, convention: str) -> Metric:
    """Return the metric of --metric and --convention. Errors name these options."""
    check_text("--convention", convention, names_of("convention"))
    try:
        return pairgram.get_metric(name, cast(Any, convention))
    except ValueError as error:
        raise ValueError(f"--metric: {error}") from None


def load_data(
    path: Path, *, float32: bool = False, sparse: bool = False, n_features: int | None = None
) -> LetorData:
    """Read a LETOR file, and say so on a terminal."""
    from pairgram.datasets import LetorData
    from pairgram.datasets.letor import read_letor

    dtype = "float32" if float32 else "float64"
    with warnings_as_notes(), reading(path) as (file, name):
        return LetorData(*read_letor(file, name, dtype, sparse, n_features=n_features))


@contextmanager
def reading(path: Path) -> Iterator[tuple[Any, str]]:
    """Open a file to read, say so on a terminal, and yield it with its name for messages."""
    with working(f"reading {name_of(path)}"), opened(path) as file:
        yield file, name_of(path)


def load_qrels(path: Path) -> dict[str, AnyArray]:
    """Read TREC's judgements, and say so on a terminal."""
    with reading(path) as named_file:
        return room_with("command line", "parse_qrels")(*named_file)


def load_run(path: Path) -> dict[str, AnyArray]:
    """Read a TREC run, and say so on a terminal."""
    with reading(path) as named_file:
        return room_with("command line", "parse_run")(*named_file)


def predict_file(model_path: Path, path: Path, *, sparse: bool) -> tuple[LetorData, AnyArray]:
    """Return the data of a LETOR file and a model's scores of its rows.

    If the file names fewer features than the model has, a note says so. This is not an error,
    because the format leaves zeros out.

    Raises
    ------
    ValueError
        If the file names more features than the model has, or if the model file is not a model.
    """
    from pairgram._support.arrays import without_names

    model = load_model_file(model_path)
    width = width_of(model)
    data = load_data_of(model_path, width, path, sparse=sparse)
    named = _largest_feature(path, data.X)
    if named < width:
        others = "the other counts" if width == named + 1 else "the others count"
        known = f"the model has {width}, {others} as 0"
        warn(f"note: {name_of(path)} names features up to {named}; {known}")
    if hasattr(model, "feature_names_in_"):
        ordered = "its features are taken in the order of the model's columns"
        warn(f"note: {name_of(path)} has no names of columns: {ordered}")
    try:
        return data, without_names(model).predict(data.X)
    except (TypeError, ValueError) as error:  # of text, if the model was fitted to it
        if not hasattr(model, "steps"):  # of a pipeline, which may choose columns by their names
            raise
        raise ValueError(f"{shown(model_path)}: cannot score rows of numbers: {error}") from None


def load_model_file(path: Path) -> Any:
    """Return the model of a file."""
    from pairgram.datasets.letor import looks_like_letor

    if is_stdin(path):
        raise ValueError("MODEL must be a file, got -: models are not read from standard input")
    try:
        return pairgram.load_model(path)
    except ValueError as error:
        if not looks_like_letor(path):
            raise
        raise ValueError(f"{error}, but looks like a LETOR file: MODEL comes first") from None


def load_data_of(model_path: Path, width: int, path: Path, **options: Any) -> LetorData:
    """Read a LETOR file with the number of features of a model; errors name the model's file."""
    from pairgram.datasets.letor import LetorError

    try:
        return load_data(path, n_features=width, **options)
    except LetorError as error:
        if error.width:
            error.width = f"{shown(model_path)} has {count(width, 'feature')}"
        raise


def width_of(model: BaseEstimator) -> int:
    """Return the number of columns of a ranker, or of the first step of a pipeline that knows."""
    steps = getattr(model, "steps", [("", model)])
    return next(int(step.n_features_in_) for _, step in steps if hasattr(step, "n_features_in_"))


def columns_of(model: BaseEstimator) -> list[str] | None:
    """Return the columns of a table that a model reads, by their names, or None if it has none.

    Those that a pipeline that reads text was fitted to, and leaves out, are not among them.
    """
    known = getattr(model, "feature_names_in_", None)
    if known is not None and hasattr(model, "steps"):
        with suppress(TypeError, ValueError):  # of steps that have no formula
            scorer: Any = pairgram.row_scorer(model)
            known = scorer.names if getattr(scorer, "texts", None) else known
    return None if known is None else [str(name) for name in known]


def _largest_feature(path: Path, X: Matrix) -> int:
    """Return the largest feature in a file, counted from 1. For a pipe, it is the width of `X`."""
    from pairgram.datasets.letor import count_features

    if hasattr(X, "indices"):
        return int(X.indices.max(initial=-1)) + 1
    if X[:, -1].any() or is_stdin(path) or not path.is_file():
        return int(X.shape[1])
    return count_features(path)  # a feature may be named and 0 in every row


def require_ids(path: Path, data: LetorData, search: BaseEstimator, one_query: bool) -> None:
    """Raise a ValueError if a model of pairs within queries gets a file without ids.

    `one_query` says that the user wants the file to be one query.
    """
    if data.qid is None and search._needs_queries and not one_query:
        raise ValueError(
            f"{path}: found no qid, want qid:ID after every label; --one-query takes all "
            f"{len(data.y)} rows as one query, all of whose rows are compared"
        )


def warn_of_no_ids(path: Path, data: LetorData) -> None:
    """Print a warning if a file has no ids."""
    if data.qid is None:
        rows = "its row is" if len(data.y) == 1 else f"all {len(data.y)} rows are"
        warn(f"warning: {name_of(path)} has no qid: {rows} one query")


def n_queries(data: LetorData) -> int:
    """Return the number of queries. A file without ids is one query."""
    from pairgram.data.queries import Queries

    return Queries.make(len(data.y), qid=data.qid).n_queries


def size_of(n_rows: int, n_queries: int) -> str:
    """Return the size of data as text, such as ``9 rows, 2 queries``."""
    return f"{count(n_rows, 'row')}, {count(n_queries, 'query', 'queries')}"
