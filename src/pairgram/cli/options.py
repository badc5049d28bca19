"""Options that several commands share, and the reading of the files that they name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import pairgram
from pairgram._support.files import shown
from pairgram._support.parameters import check_text
from pairgram.cli.inputs import is_stdin, load_scores, name_of, opened, same_file
from pairgram.cli.report import count, warn, working
from pairgram.cli.settings import names_of, option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairgram.datasets import LetorData
    from pairgram.metrics import Metric

EVALUATED = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")
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
        "--metric",
        metavar="NAME",
        help="Metric to choose by. [default: ndcg@10, or pairwise_accuracy if labels are not "
        "grades; msd for elmrank]",
        show_default=False,
    ),
]
Convention = Annotated[str, option("convention")]
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
Offset = Annotated[Path | None, option("offset")]
Threads = Annotated[int | None, option("n_threads")]
Float32 = Annotated[bool, typer.Option("--float32", help="Hold features in single precision.")]
Sparse = Annotated[
    bool, typer.Option("--sparse", help="Store features sparsely, for files with many zeros.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Given = Path | bool | None  # the value of an option that may be left out


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


def check_output(path: Path, **inputs: Path | None) -> None:
    """Raise an error, before any work, if the output is an input or its folder is missing.

    Parameters
    ----------
    path : Path
    **inputs : Path or None
        The input files, by their names in the message.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{shown(path)}: its folder does not exist")
    for name, read in inputs.items():
        if read is not None and same_file(path, read):
            raise ValueError(f"--output {shown(path)} is the {name} file")


def check_one_stdin(**inputs: Path | None) -> None:
    """Raise a ValueError if two inputs are standard input; the message has their names."""
    names = [name for name, path in inputs.items() if is_stdin(path)]
    if len(names) > 1:
        raise ValueError(f"{' and '.join(names)} cannot both be -, standard input")


def metric_of(name: str, convention: str) -> Metric:
    """Return the metric of --metric and --convention. Errors name these options."""
    check_text("--convention", convention, names_of("convention"))
    try:
        return pairgram.get_metric(name, cast(Any, convention))
    except ValueError as error:
        raise ValueError(f"--metric: {error}") from None


def checked_names(metrics: list[str] | None, convention: str | None) -> None:
    """Raise a ValueError for several names in one, and for an unknown convention."""
    for name in metrics or ():
        if "," in name:
            raise ValueError(f"--metric takes one name, got {name!r}: repeat --metric for several")
    metric_of("map", convention or "default")


def choice_metric(name: str | None, convention: str, default: str | None = None) -> Metric | None:
    """Return the metric to choose by, or None if it depends on the labels."""
    if name is not None and "," in name:
        raise ValueError(f"--metric takes one name to choose by, got {name!r}")
    name = name or default
    metric = metric_of(name or "ndcg@10", convention)  # checks the convention too
    return None if name is None and convention == "default" else metric


def load_data(
    path: Path,
    *,
    float32: bool = False,
    sparse: bool = False,
    n_features: int | None = None,
    n_threads: int | None = None,
) -> LetorData:
    """Read a LETOR file, and say so on a terminal."""
    from pairgram.datasets import LetorData
    from pairgram.datasets.letor_load import read_letor

    dtype = "float32" if float32 else "float64"
    with warnings_as_notes(), reading(path) as (file, name):
        return LetorData(
            *read_letor(file, name, dtype, sparse, n_features=n_features, n_threads=n_threads)
        )


@contextmanager
def reading(path: Path) -> Iterator[tuple[Any, str]]:
    """Open a file to read, say so on a terminal, and yield it with its name for messages."""
    with working(f"reading {name_of(path)}"), opened(path) as file:
        yield file, name_of(path)


def load_qrels(path: Path) -> dict[str, NDArray[Any]]:
    """Read TREC's judgements, and say so on a terminal."""
    from pairgram.datasets.trec import parse_qrels

    with reading(path) as named_file:
        return parse_qrels(*named_file)


def load_run(path: Path) -> dict[str, NDArray[Any]]:
    """Read a TREC run, and say so on a terminal."""
    from pairgram.datasets.trec import parse_run

    with reading(path) as named_file:
        return parse_run(*named_file)


def predict_file(
    model_path: Path,
    path: Path,
    *,
    hint: str = "",
    offset: Path | None = None,
    n_threads: int | None,
    **options: Any,
) -> tuple[LetorData, NDArray[Any]]:
    """Return the data of a file and a model's scores of its rows; `offset` is a file of scores.

    If the file names fewer features than the model has, a note says so. This is not an error,
    because the format leaves zeros out.

    Raises
    ------
    ValueError
        If the file names more features than the model has, or if the model file is not a model (if
        it is a LETOR file, the message ends with `hint`); or if the model needs an offset and there
        is none, or the other way round.
    """
    from pairgram._support.arrays import without_names

    model = load_model_file(model_path, hint)
    width = width_of(model)
    data = load_data_of(model_path, width, path, n_threads=n_threads, **options)
    named = _largest_feature(path, data.X, n_threads)
    if named < width:
        others = "the other counts" if width == named + 1 else "the others count"
        known = f"the model has {width}, {others} as 0"
        warn(f"note: {name_of(path)} names features up to {named}; {known}")
    given = {} if offset is None else {"offset": load_scores(offset, len(data.y))}
    if hasattr(model, "feature_names_in_"):
        ordered = "its features are taken in the order of the model's columns"
        warn(f"note: {name_of(path)} has no names of columns: {ordered}")
    try:
        return data, without_names(model).predict(data.X, **given)
    except (TypeError, ValueError) as error:  # of text, if the model was fitted to it
        if getattr(error, "parameter", None) == "offset":
            raise ValueError(f"--offset: {error}") from None
        if not hasattr(model, "steps"):  # of a pipeline, which may choose columns by their names
            raise
        raise ValueError(f"{shown(model_path)}: cannot score rows of numbers: {error}") from None


def load_model_file(path: Path, hint: str = "") -> Any:
    """Return the model of a file; the message for a LETOR file ends with `hint`."""
    from pairgram.datasets.letor_load import looks_like_letor

    if is_stdin(path):
        raise ValueError("MODEL must be a file, got -: a model does not come by standard input")
    try:
        return pairgram.load_model(path)
    except ValueError as error:
        if not looks_like_letor(path):
            raise
        raise ValueError(f"{error}, but looks like a LETOR file{hint}") from None


def load_data_of(model_path: Path, width: int, path: Path, **options: Any) -> LetorData:
    """Read a LETOR file with the number of features of a model; errors name the model's file."""
    from pairgram.datasets.letor_load import LetorError

    try:
        return load_data(path, n_features=width, **options)
    except LetorError as error:
        if error.width:
            error.width = f"{shown(model_path)} has {count(width, 'feature')}"
        raise


def width_of(model: Any) -> int:
    """Return the number of columns of a ranker, or of the first step of a pipeline that knows."""
    steps = getattr(model, "steps", [("", model)])
    return next(int(step.n_features_in_) for _, step in steps if hasattr(step, "n_features_in_"))


def _largest_feature(path: Path, X: Any, n_threads: int | None) -> int:
    """Return the largest feature in a file, counted from 1. For a pipe, it is the width of `X`."""
    from pairgram.datasets.letor_load import count_features

    if hasattr(X, "indices"):
        return int(X.indices.max(initial=-1)) + 1
    if X[:, -1].any() or is_stdin(path) or not path.is_file():
        return int(X.shape[1])
    return count_features(path, n_threads=n_threads)  # a feature may be named and 0 in every row


def require_ids(path: Path, data: LetorData, search: Any, one_query: bool) -> None:
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
