"""``pairgram recommend``: the best items for every user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pairgram._rooms import public, room_with
from pairgram._support.files import printable, shown
from pairgram.cli import options as opt
from pairgram.cli.report import count, print_json, print_table, warn, working
from pairgram.cli.scoring import write_table

TABLE = "Parquet, Arrow, CSV (.csv, commas) or TSV files (.tsv, tabs), a folder or a pattern."


def recommend(
    model: opt.ModelFile,
    users: Annotated[
        str, typer.Argument(metavar="USERS", help=f"Table with a row for every user: {TABLE}")
    ],
    items: Annotated[str, typer.Argument(metavar="ITEMS", help="Table with a row for every item.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write to; - stands for standard output. A name that ends with .parquet "
            "makes a Parquet file, one with .csv or .csv.gz has commas, and any other tabs. "
            "[default: -, or none with --held-out]",
            show_default=False,
        ),
    ] = None,
    *,
    k: Annotated[
        int, typer.Option("--k", "-k", metavar="N", min=1, help="How many items for every user.")
    ] = 10,
    user_id: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the ids of users.")
    ] = "user",
    item_id: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the ids of items.")
    ] = "item",
    exclude: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Table of pairs of a user and an item that are left out, such as seen ones, with "
            "both columns of ids.",
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Table of pairs that were held out, with both columns of ids. Prints how well the "
            "lists find them.",
        ),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Write the best items for every user, a row for each: user, rank, item, score.

    The model must have been trained on named columns, as of a table. Columns of users are read from
    USERS, and the others from ITEMS. Columns of lists, such as embeddings, must have the length of
    the fit. Pairs of --exclude whose user or item is unknown are ignored, and a note tells how
    many. With --held-out, metrics of the lists over all items are printed, for users who have a
    held-out pair.

    \b
    Examples:
      pairgram recommend model.safetensors users.parquet items.parquet --k 10 \\
        --exclude seen.parquet -o out.parquet
      pairgram recommend model.safetensors users.csv items.csv --user-id person --item-id sku
      pairgram recommend model.safetensors users.parquet items.parquet --k 10 \\
        --exclude train.parquet --held-out test.parquet
    """
    if held_out is None:
        output = output or Path("-")
        if as_json:
            raise ValueError("--json is for --held-out: lists are written as tables")
    elif str(output) == "-":
        raise ValueError("give --held-out or --output -, not both: metrics go to standard output")
    if output is not None:
        tables = (Path(one) for one in (users, items, exclude, held_out) if one is not None)
        opt.check_output(output, model, *tables)
        for option, column in (("--user-id", user_id), ("--item-id", item_id)):
            if column in ("rank", "score"):
                raise ValueError(f"{option} {column}: the lists have a column of this name")
    if user_id == item_id:
        raise ValueError(f"--user-id and --item-id must be two columns, got {user_id!r} for both")
    fitted = opt.load_model_file(model)
    names = [str(name) for name in getattr(fitted, "feature_names_in_", ())]
    if not names:
        raise ValueError(
            f"{shown(model)}: the model knows no names of columns, by which users and items are "
            "told apart: train it on a table or a frame"
        )
    with opt.warnings_as_notes(), working("recommending"):
        of_users, of_items = (
            _side(file, column, names, option)
            for file, column, option in (
                (users, user_id, "--user-id"),
                (items, item_id, "--item-id"),
            )
        )
        ids: Any = None
        if exclude is not None or held_out is not None:
            ids = _ids(users, user_id, "--user-id"), _ids(items, item_id, "--item-id")
        columns = user_id, item_id
        without = None if exclude is None else _known_pairs("--exclude", exclude, columns, ids)
        found = public("recommend")(
            *(fitted, of_users[0], of_items[0], k),
            user_ids=of_users[1],
            item_ids=of_items[1],
            exclude=without,
        )
        report: dict[str, Any] = {}
        if held_out is not None:
            pairs = _known_pairs("--held-out", held_out, columns, ids)
            report = found.evaluate(*pairs)
    if output is not None:
        import numpy as np

        user, rank = np.nonzero(found.places >= 0)
        write_table(
            output,
            {
                user_id: found.users[user],
                "rank": rank + 1,
                item_id: found.items[user, rank],
                "score": found.scores[user, rank],
            },
        )
    if held_out is not None and as_json:
        print_json(report)
    elif held_out is not None:
        title = f"{printable(held_out)}: lists of {k}, {count(len(found.users), 'user')}"
        print_table(("metric", "value"), report.items(), title=title)


def _side(file: str, column: str, names: list[str], option: str) -> tuple[Any, Any]:
    """Return the table of a file with the columns that a model knows, or its ids if it has none."""
    import numpy as np

    from pairgram._support.arrays import features_among

    schema = room_with("command line", "source_of")(file).schema
    own = features_among(names, () if schema is None else schema.names, column)
    if not own:
        ids = _ids(file, column, option)
        return np.empty((len(ids), 0)), ids
    with _naming(file, option):
        return public("scan")(file, qid=column, features=own), None


@contextmanager
def _naming(file: str, option: str) -> Iterator[None]:
    """Within this context, errors name the file, and the option of a column that is not there."""
    from pairgram._support.checks import ArgumentError

    try:
        yield
    except ArgumentError as error:
        if error.place is not None:
            error.place = printable(file)
        if error.parameter == "qid":
            error.parameter = option
        raise


def _ids(file: str, column: str, option: str) -> Any:
    """Return the ids in a column of a table."""
    with _naming(file, option):
        return room_with("command line", "read_ids")(file, column)


def _known_pairs(
    option: str, file: str, columns: tuple[str, str], known: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Return the pairs of a table, without those of unknown ids, which a note counts."""
    import numpy as np

    from pairgram.data.queries import plain_ids

    pairs = [
        _ids(file, column, option)
        for column, option in zip(columns, ("--user-id", "--item-id"), strict=True)
    ]
    there = np.ones(len(pairs[0]), bool)
    for own, ids in zip(pairs, known, strict=True):
        there &= room_with("command line", "places_of")(own, ids) >= 0
    if not there.all():
        user, item = (plain_ids(own[~there][:1])[0] for own in pairs)
        lost = f"{printable(file)} has {count(int((~there).sum()), 'pair')} of a user or an item"
        text = f"{lost} that is in neither file, such as {user!r} and {item!r}"
        if not there.any():
            raise ValueError(f"{option} {text}")
        warn(f"note: {text}")
    return pairs[0][there], pairs[1][there]
