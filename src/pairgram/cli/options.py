"""Options that several commands share, and the files that they name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairgram.cli.models import MODELS, PAIRS, TARGETS, WEIGHTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairgram.datasets import LetorData
    from pairgram.metrics import Metric

__all__ = [
    "check_output",
    "choice_metric",
    "load_data",
    "load_scores",
    "n_queries",
    "predict_file",
]

CONVENTION_NAMES = ("default", "letor", "trec", "lightgbm", "sklearn")

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="LETOR (SVMlight) file, plain, .gz, .xz or .bz2.")
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file that `pairgram train` wrote.")
]
ModelName = Annotated[
    str,
    typer.Option(
        *("--model", "-m"),
        metavar="NAME",
        help="; ".join(f"{name}: {m.summary}" for name, m in MODELS.items()) + ".",
    ),
]
Alphas = Annotated[
    str,
    typer.Option(
        metavar="GRID",
        help="Ridges to try: 0.1,1,10 or 2^-15:2^24 (all whole powers) or auto (a grid that fits "
        "the data).",
    ),
]
PairNames = Annotated[
    list[str] | None,
    typer.Option(
        "--pairs",
        metavar="NAME",
        help=f"Weight of a pair: {', '.join(PAIRS)}. Repeat it to try several. "
        "[default: the model's: kept and dropped for rankrls]",
        show_default=False,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help=f"What to fit: {', '.join(TARGETS)} (2^label - 1). Repeat it to try both. "
        "[default: label]",
        show_default=False,
    ),
]
Scale = Annotated[bool, typer.Option("--scale/--no-scale", help="Scale features before the ridge.")]
Weighting = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"What counts 1 in the objective: {', '.join(WEIGHTINGS)}."),
]
ChoiceMetric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Metric to choose by. [default: ndcg@10, or pairwise_accuracy for labels that are "
        "no grades]",
        show_default=False,
    ),
]
Convention = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"Convention of the metrics: {', '.join(CONVENTION_NAMES)}."),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Threads; results do not depend on it. [default: the CPUs at hand]",
        show_default=False,
    ),
]
Float32 = Annotated[bool, typer.Option("--float32", help="Hold features in single precision.")]
Sparse = Annotated[
    bool, typer.Option("--sparse", help="Hold features sparsely, for files that name few of many.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def check_output(path: Path) -> None:
    """Refuse early, before the work, a file in a folder that is missing."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: its folder does not exist")


def choice_metric(name: str | None, convention: str) -> Metric | None:
    """Return the metric to choose by, None where the labels are to decide."""
    from pairgram.metrics import get_metric

    metric = get_metric(name or "ndcg@10", convention)  # checks the convention too
    return None if name is None and convention == "default" else metric


def load_data(
    path: Path,
    *,
    float32: bool = False,
    sparse: bool = False,
    n_features: int | None = None,
    n_threads: int | None = None,
) -> LetorData:
    """Read a LETOR file, saying so on a terminal."""
    from pairgram.cli.report import working
    from pairgram.datasets import LetorData, load_letor

    with working(f"reading {path}"):
        return LetorData(
            *load_letor(
                path,
                dtype="float32" if float32 else "float64",
                sparse=sparse,
                n_features=n_features,
                n_threads=n_threads,
            )
        )


def predict_file(model_path: Path, path: Path, **options: Any) -> tuple[LetorData, NDArray[Any]]:
    """Return the data of a file and a model's scores of its rows.

    Raises
    ------
    ValueError
        If the file names more features than the model has. Fewer are no error in a format that
        leaves zeros out.
    """
    from pairgram.least_squares import load_model

    model = load_model(model_path)
    width = int(model.n_features_in_)
    try:
        data = load_data(path, n_features=width, **options)
    except ValueError as error:
        raise ValueError(f"{error} ({model_path} has {width} features)") from None
    return data, model.predict(data.X)


def load_scores(path: Path, n_rows: int) -> NDArray[Any]:
    """Read a file with one number per line, ``-`` for standard input.

    Raises
    ------
    ValueError
        If a line is no number, or there are not `n_rows` of them; it names the file and the line.
    """
    import numpy as np

    contents = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    lines = contents.decode("ascii", "backslashreplace").splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    scores = np.empty(len(lines))
    for number, line in enumerate(lines):
        try:
            scores[number] = float(line)
        except ValueError:
            raise ValueError(
                f"{path}:{number + 1}: found {line[:60]!r}, want a score, one number per line"
            ) from None
        if scores[number] != scores[number]:
            raise ValueError(f"{path}:{number + 1}: found NaN, want a score, a number")
    if len(scores) != n_rows:
        raise ValueError(f"{path}: found {len(scores)} scores, want one for each of {n_rows} rows")
    return scores


def n_queries(data: LetorData) -> int:
    """Return the number of queries; a file without ids is one."""
    return 1 if data.qid is None else len(set(data.qid.tolist()))
