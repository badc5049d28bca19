"""``pairgram propose``: which rows of a pool to measure next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairgram
from pairgram._support.parameters import Strategy, check_text, words
from pairgram.cli import options as opt
from pairgram.cli.options import parse_names
from pairgram.cli.report import working
from pairgram.cli.scoring import write_table
from pairgram.cli.tables import Columns

if TYPE_CHECKING:
    from pairgram.tables.columns import TableRows


def propose(
    file: Annotated[
        str, typer.Argument(metavar="POOL", help=f"The rows to choose from. {opt.ROWS}")
    ],
    model: Annotated[
        Path,
        typer.Option(
            *("--model", "-m"),
            metavar="MODEL",
            help="Model file that `pairgram train --keep-covariance` wrote.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            *("--output", "-o"),
            metavar="FILE",
            help="File to write to; - stands for standard output. A name that ends with .parquet "
            "makes a Parquet file, one with .csv or .csv.gz has commas, and any other tabs.",
        ),
    ] = Path("-"),
    *,
    n: Annotated[
        int, typer.Option("-n", metavar="N", min=1, help="How many rows, or pairs of rows.")
    ] = 10,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"How to choose: {', '.join(words(Strategy))}. upper: the highest score plus its "
            "standard deviation; improvement: the largest expected improvement on the best of "
            "--measured; thompson: the best of scores drawn from the posterior; variance: the "
            "least certain scores; order: the pairs of rows whose order is least certain.",
        ),
    ] = "upper",
    measured: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows that were measured, for improvement. [default: those that the model has "
            "seen, if it has a kernel]",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Columns of POOL to write too, such as those of ids."),
    ] = None,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch/--no-batch",
            help="Whether every choice takes the earlier ones into account, so that the rows "
            "differ, or each row is judged alone.",
        ),
    ] = True,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of thompson.")] = 0,
    threads: opt.Threads = None,
) -> None:
    """Write the rows whose labels would be worth most, the best first.

    The columns are the rank, the row of POOL, counted from 0, those of --keep, the score, and the
    standard deviation of its difference from the mean score of the training rows. With --strategy
    order, a line has two rows, and the probability that the first is above the second. POOL is read
    into memory, and needs no labels. When the chosen rows are measured, train and propose again.

    \b
    Examples:
      pairgram propose pool.parquet --model m.safetensors -n 8 --keep compound
      pairgram propose pool.csv --model m.safetensors --strategy improvement --measured train.csv
      pairgram propose pool.parquet --model m.safetensors --strategy order -o to-compare.csv
    """
    check_text("--strategy", strategy, words(Strategy))
    paths = {"pool": file, "measured": measured}
    given = {name: Path(path) for name, path in paths.items() if path is not None}
    opt.check_output(output, model=model, **given)
    fitted = opt.load_model_file(model)
    kept = [] if keep is None else parse_names(keep, "--keep")
    for name in {"rank", "row", "score", "deviation"}.intersection(kept):
        raise ValueError(f"--keep {name}: what is written has a column of this name")
    with Columns().reading(threads) as (client, _), working("choosing"):
        import numpy as np

        from pairgram.rankers.certainty import posterior_of
        from pairgram.rankers.scores import in_memory

        posterior_of(fitted)  # a pipeline has none

        names = getattr(fitted, "feature_names_in_", None)
        names = None if names is None else list(names)
        tables: list[Any] = [
            None if path is None else Columns().scan(path, client, names, opt.width_of(fitted))
            for path in (file, measured)
        ]
        columns = _kept(fitted, tables[0], kept)
        ranker, rows, _ = in_memory(fitted, tables[0])
        seen = None if tables[1] is None else in_memory(fitted, tables[1])[1]
        settings: Any = {"strategy": strategy, "batch": batch, "random_state": seed}
        chosen = pairgram.propose(ranker, rows, n, measured=seen, **settings)
        found = {"rank": np.arange(1, n + 1), **_told(ranker, rows, chosen, columns)}
    write_table(output, found)


def _kept(model: Any, table: Any, names: list[str]) -> dict[str, Any]:
    """Return columns of a table that are written too."""
    import numpy as np

    from pairgram._support.arrays import require_columns

    if not names:
        return {}
    require_columns(names, table.names_of_columns, "keep", "the pool")
    table, _ = table.in_order().for_model(model)
    parts = list(table.for_scores(tuple(names)).each(_kept_of))
    return {
        name: np.concatenate([np.array(part[name].to_pylist(), object) for part in parts])
        for name in names
    }


def _kept_of(rows: TableRows) -> Any:
    return rows.kept


def _told(model: Any, X: Any, chosen: Any, kept: dict[str, Any]) -> dict[str, Any]:
    """Return the columns about chosen rows, or pairs of rows."""
    if chosen.ndim == 2:
        first, second = chosen.T
        pairs = {"first": first, "second": second}
        named = {
            f"{which} {name}": column[rows]
            for which, rows in pairs.items()
            for name, column in kept.items()
        }
        above = model.probability_above(X[first], X[second])
        return {**pairs, **named, "probability": above}
    reference = "list" if model.posterior_.mean is None else "training"
    scores, deviations = model.predict(X, return_std=True, reference=reference)
    named = {name: column[chosen] for name, column in kept.items()}
    return {"row": chosen, **named, "score": scores[chosen], "deviation": deviations[chosen]}
