"""``pairgram fuse`` and ``recommend``: lists of runs made one, and the best items of users."""

from __future__ import annotations

import csv
import os
import sys
from typing import Any

import numpy as np

from pairgram._rooms import public, room_with
from pairgram._support.arrays import features_among
from pairgram._support.files import WRITTEN, naming, printable, replacing, shown
from pairgram.cli import named_files
from pairgram.cli.named_files import load_trec, naming_file
from pairgram.cli.report import count, notes, warn, working
from pairgram.data.queries import plain_ids


def fuse(given: Any) -> None:
    """Fuse TREC runs into one."""
    files, qrels, judged = given.run, given.qrels, None
    named_files.check_inputs(*files, qrels)
    if len(files) < 2:
        raise ValueError(f"fuse needs at least two runs, got {count(len(files), 'file')}")
    named_files.check_output(given.output, *files, qrels)
    runs = [load_trec("run", file) for file in files]
    if qrels is not None:
        judged = load_trec("qrels", qrels)
    fused = public("fuse")(runs, judged, given.method)
    if fused.n_judged is not None:
        queries = f"{count(fused.n_judged, 'judged query', 'judged queries')} of different labels"
        kept = "weights are learnt" if fused.is_learnt else "the weights are those of rrf"
        if fused.gain is None:
            warn(f"note: {queries}, which are too few to learn from: {kept}")
        else:
            gain = f"{fused.gain:+.4f} ± {fused.gain_error:.4f} above rrf"
            warn(f"note: {kept}: those learnt have an NDCG@10 {gain} in {queries}, held out")
    lines = room_with("command line", "run_lines")(**fused.run, tag="pairgram")
    named_files.write_lines(given.output, lines)


def recommend(given: Any) -> None:
    """Write the best items for every user, a row for each: user, rank, item, score."""
    output, exclude = given.output, given.exclude
    sides = (
        (given.users, given.user_id, "--user-id"),
        (given.items, given.item_id, "--item-id"),
    )
    named_files.check_output(output, given.model, given.users, given.items, exclude)
    if output != "-" and not output.lower().endswith(WRITTEN):
        raise ValueError(f"--output: want a name that ends with {', '.join(WRITTEN)}")
    names = [given.user_id, "rank", given.item_id, "score"]
    if len({*names}) < len(names):
        raise ValueError(
            "--user-id and --item-id must be two columns with other names than rank and score, got "
            f"{given.user_id!r} and {given.item_id!r}"
        )
    model = named_files.load_model(given.model)
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(
            f"{shown(given.model)}: the model knows no names of columns, by which users and items "
            "are told apart: train it on a table or a frame"
        )
    with notes(), working("recommending"):
        (users, of_users), (items, of_items) = (_side(model, *side) for side in sides)
        if exclude is not None:
            pairs = [_ids(exclude, *id_column) for _, *id_column in sides]
            exclude = _known(exclude, pairs, [users, items])
        found = public("recommend")(
            model, of_users, of_items, given.k, user_ids=users, item_ids=items, exclude=exclude
        )
    user, rank = np.nonzero(found.places >= 0)
    columns = [found.users[user], rank + 1, found.items[user, rank], found.scores[user, rank]]
    import pyarrow

    table = pyarrow.table(columns, names)
    with naming("standard output" if output == "-" else output):
        if output == "-":
            cells = zip(*(column.to_pylist() for column in table.columns), strict=True)
            lines = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
            lines.writerows([table.column_names, *cells])
            return
        with replacing(output) as file:
            ending = os.path.splitext(output)[1].lower()
            room_with("command line", "write_tables")(file, ending, iter([table]))


def _side(model: Any, file: str, column: str, option: str) -> tuple[Any, Any]:
    """Return the ids in a table, and its rows with the columns that a model knows, maybe none."""
    import pyarrow

    ids, schema = _ids(file, column, option), room_with("command line", "source_of")(file).schema
    own = features_among(list(map(str, model.feature_names_in_)), schema.names, column)
    if not own:
        return ids, np.empty((len(ids), 0))
    with naming_file(file):
        table = public("scan")(file, features=own).with_gaps()
        columns = zip(table.layout.feature_names(), table.rows().X.T, strict=True)
        return ids, pyarrow.table(dict(columns))


def _ids(file: str, column: str, option: str) -> Any:
    """Return the ids in a column of a table, which an option names."""
    with naming_file(file, qid=option):
        return room_with("command line", "read_labels")(file, None, column)[1]


def _known(file: str, pairs: list[Any], known: list[Any]) -> Any:
    """Return the pairs of a table, without those of unknown ids, which a note counts."""
    places_of = room_with("command line", "places_of")
    there = np.all([places_of(*one) >= 0 for one in zip(pairs, known, strict=True)], axis=0)
    if not there.all():
        user, item = (plain_ids(own[~there][:1])[0] for own in pairs)
        lost = f"{printable(file)} has {count(int((~there).sum()), 'pair')} of a user or an item"
        text = f"{lost} that is in neither file, such as {user!r} and {item!r}"
        if not there.any():
            raise ValueError(f"--exclude {text}")
        warn(f"note: {text}")
    return [own[there] for own in pairs]
