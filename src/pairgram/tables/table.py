"""`Table`: rows that are read when they are needed, again and again."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from pairgram._rooms import public
from pairgram._support import limits, machine
from pairgram._support.arrays import columns_of, kind_of, without_names
from pairgram._support.checks import ArgumentError, Vector, verbatim
from pairgram._support.files import shown
from pairgram.data.blocks import Task
from pairgram.features.gaps import known_means, known_medians, without_unknown
from pairgram.features.row_values import Chain
from pairgram.tables.columns import (
    GAPS,
    Columns,
    TableRows,
    changed,
    placed_error,
    require_width,
    shown_id,
    together,
    with_types,
)
from pairgram.tables.passes import (
    AnyTask,
    Progress,
    Results,
    Work,
    fold,
    in_tree,
    join_by_id,
    mapped,
)
from pairgram.tables.sources import Partition, letor_schema
from pairgram.tables.survey import Drawn, Survey, drawn_of, ids_with, join_drawn

# Rows are read into memory if this many copies fit: the parts, the whole, and one in a fit.
COPIES = 3


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that are read when they are needed. `scan` makes tables.

    Attributes
    ----------
    layout : Columns
        Which columns are labels, query ids, weights and features.
    partitions : tuple of Partition
        Consecutive rows, in the order of the source. It is empty for a frame of Spark.
    engine : LocalEngine, DaskEngine or SparkEngine
        Where the rows are worked on.
    files, folders, is_letor : as those of `Source`
    is_one_list : bool
        Whether rows without query ids are those of one query.
    progress : callable or None
        Is told how many rows have been worked on since its last call.
    """

    layout: Columns
    partitions: tuple[Partition, ...]
    engine: Any
    files: Sequence[str] = ()
    folders: Collection[str] = ()
    is_letor: bool = False
    is_one_list: bool = False
    progress: Progress | None = None
    _known: dict[str, Any] = field(default_factory=dict)

    def __array__(self, *args: Any, **named: Any) -> Any:
        """Raise a TypeError, because the rows may not fit in memory."""
        raise TypeError(
            "a table of pairgram.scan is not an array: give it to fit, predict and score of "
            "rankers, to pairgram.evaluate, or to pairgram.predict"
        )

    __iter__ = __array__

    def __repr__(self) -> str:
        words = ("label", "qid", "weight", "propensity")
        pairs = ((word, getattr(self.layout, word)) for word in words)
        named = [f"{word} {name!r}" for word, name in pairs if name is not None]
        parts = f"{len(self.partitions)} partitions" if self.partitions else "a frame of Spark"
        return f"<Table of {', '.join([f'{self.n_features} features', *named, parts])}>"

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features; None for one column of lists and no other, as in LETOR."""
        widths = self.layout.features.values()
        return self.layout.feature_names() if len(widths) > 1 or not any(widths) else None

    @property
    def has_queries(self) -> bool:
        """Whether rows have query ids."""
        return self.layout.qid is not None or self.is_one_list

    @property
    def is_of_clicks(self) -> bool:
        """Whether labels are clicks / propensities."""
        return self.layout.propensity is not None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.layout.n_features

    def reduce(self, task: AnyTask) -> Any:
        """Return the result of a task for all rows, which are read once.

        Raises
        ------
        ValueError
            If there are no rows, or other numbers of rows than in an earlier pass.
        """
        columns = self.layout if task.reads_features else self.layout.without_features()
        results = self._results(columns, partial(fold, task), ordered=False)
        with self._naming_infinity(), closing(results) as parts:
            if self.partitions:
                part = in_tree(parts, len(self.partitions), lambda a, b: a.join(b, task))
            else:
                part = join_by_id(list(parts), task)
            before = self._known.setdefault("n_rows", part.n_rows)
            for number, (old, new) in enumerate(zip_longest(before, part.n_rows, fillvalue=0)):
                if old != new:
                    name = f"partition {number}"
                    if number < len(self.partitions):
                        name = self.partitions[number].name
                    raise changed(f"{name} had {old} rows, and has {new}")
            result = part.close(task)
        if result is None:
            raise no_rows()
        return result

    def _results(
        self, columns: Columns, function: Callable[..., Results], ordered: bool = True
    ) -> Generator[Any]:
        """Yield the results of a pass that are not None."""
        for result, n_rows in self.engine.each(self.partitions, columns, function, ordered):
            if self.progress is not None and n_rows:
                self.progress(n_rows)
            if result is not None:
                yield result

    def n_rows(self) -> tuple[int, ...]:
        """Return the number of rows of every partition. The first pass counts them."""
        self.survey()
        return self._known["n_rows"]

    def of_rows(self, block: Work, join: Callable[[Any, Any], Any]) -> Any:
        """Return what is made of all rows, block by block, wherever queries end."""
        return self.reduce(Task(block, join, needs_queries=False))

    def each(self, function: Work) -> Iterator[Any]:
        """Yield what a function makes of every batch of rows, in the order of the rows."""
        with self._naming_infinity():
            yield from self._results(self.layout, partial(mapped, function))

    @contextmanager
    def _naming_infinity(self) -> Iterator[None]:
        """Within this context, an error because of infinity names the row and the column.

        Rows are read again for that, because looking at every value takes time in every pass.
        """
        try:
            yield
        except ValueError as error:
            if getattr(error, "found", None) == "infinity":
                rows = self.for_scores().watched(None).with_gaps()
                for _ in rows.each(partial(_refuse_infinity, rows.layout.feature_names())):
                    pass
            raise

    def survey(self) -> Survey:
        """Return what is known of labels, ids and weights. The first call reads them.

        Raises
        ------
        ValueError
            If the rows of a query do not stand together.
        """
        if "survey" not in self._known:
            found = self.reduce(Task(Survey.of, Survey.join, False, self.has_queries))
            if (number := found.scattered) is not None:
                ids = self.of_rows(partial(ids_with, number), lambda *both: max(both, key=len))
                column = verbatim(self.layout.qid or "query id")
                text = f"the rows of query {verbatim(shown_id(ids))} do not stand together: sort "
                raise ArgumentError(None, f"{text}{{place}} by {column}", place="the table")
            self._known["survey"] = found
        return self._known["survey"]

    def in_memory(self) -> TableRows | None:
        """Return all rows, which are read once, or None if they and their copies do not fit."""
        return self.whole() if machine.fits(self.bytes_in_memory) else None

    def whole(self) -> TableRows:
        """Return all rows in the order of the source.

        Raises
        ------
        ValueError
            If there is no row.
        """
        parts = [*self.each(lambda rows: rows)]
        if not parts:
            raise no_rows()
        return together(parts)

    def rows(self) -> TableRows:
        """Return all rows in the order of the source, with query ids and without labels."""
        return self.for_scores(qid=self.layout.qid).whole()

    @property
    def bytes_in_memory(self) -> float:
        """The bytes that all rows and their copies take."""
        itemsize = np.dtype(self.layout.dtype).itemsize
        return COPIES * float(itemsize) * self.n_features * sum(self.n_rows())

    def sample(self, size: int, with_gaps: bool = False) -> Drawn:
        """Return at most so many rows, drawn by the hashes of their numbers in the table.

        They must be finite, unless the table has gaps.
        """
        before = np.cumsum([0, *self.n_rows()]).tolist()
        return self.of_rows(partial(drawn_of, size, before, with_gaps), partial(join_drawn, size))

    def filled(self, value: Any) -> Self:
        """Return the same table with what takes the place of missing values, as `Fill` has it.

        Means and medians of columns are taken over the rows that have a value, with their weights,
        medians over `Limits.sample_rows` of the rows, if there are more. Both take a pass. A column
        without values gets 0, with a warning.
        """
        if not isinstance(value, str):
            return self.filling(np.array(np.broadcast_to(value, self.n_features)))
        known = self.with_gaps()
        if value == "mean":
            weights, means = known.of_rows(
                lambda rows: known_means(rows.X, rows.weights), _join_means
            )
            fill = np.where(weights > 0, means, np.nan)
        else:
            drawn = known.sample(limits.now.sample_rows, with_gaps=True).rows
            fill = known_medians(drawn.X, drawn.weights)
        return self.filling(without_unknown(fill, value, self.feature_names))

    def with_gaps(self) -> Self:
        """Return the same table, whose missing values are NaN."""
        return self.filling(np.full(self.n_features, np.nan))

    def filling(self, fill: Vector | None) -> Self:
        """Return the same table, with values that take the place of missing ones."""
        return replace(self, layout=replace(self.layout, fill=fill))

    def for_model(self, model: Any) -> tuple[Self, Any]:
        """Return the table as a fitted model needs it, and a model that takes its arrays.

        Missing values are replaced by the model's fill values, or left to the steps of a pipeline.
        LETOR files get the features that they leave out. If the table has columns with the names of
        the model's features, these are read, in the model's order. Of a pipeline that encodes text,
        those columns are read that its steps read.

        Raises
        ------
        ValueError
            If the table has other features than the model was fitted to.
        """
        if (scorer := self._scorer_of_text(model)) is not None:
            table = self._with_texts(scorer)
            return table, scorer.of_columns(table.layout.feature_names())
        n_features = getattr(model, "n_features_in_", self.n_features)
        table = self.with_features_of_fit(n_features, getattr(model, "feature_names_in_", None))
        best = getattr(model, "best_estimator_", model)
        fill = Chain.of(getattr(best, "feature_map_", None)).fill
        if table.layout.fill is not None:
            pass
        elif fill is not None:
            table = table.filling(fill.fill_)
        elif hasattr(best, "steps"):
            table = table.with_gaps()
        return table, without_names(model)

    def _scorer_of_text(self, model: Any) -> Any:
        """Return the scorer of a pipeline that was fitted to text; None for other models."""
        pipeline = getattr(model, "best_estimator_", model)
        last: Any = pipeline.steps[-1][1] if hasattr(pipeline, "steps") else None
        names = getattr(pipeline, "feature_names_in_", None)
        if self.is_letor or names is None or not hasattr(last, "row_scorer"):
            return None
        own = self.with_features(names).layout
        kinds = {kind_of(own.schema.field(name).type) for name in own.features}
        if kinds <= {"numbers", "lists"} and not _knows_text(pipeline):
            return None
        return public("row_scorer")(pipeline)

    def _with_texts(self, scorer: Any) -> Self:
        """Return the table with the columns that a `PipelineScorer` reads, some of which are text.

        Raises
        ------
        ValueError
            If a column is not there, or has lists of another length than in the fit.
        """
        layout, own, features = self.layout, self.layout.features, dict[str, int]()
        for name in scorer.names:
            column = name if name in own else name.rpartition("[")[0]
            if column not in own:
                text = f"{{place}} must have column {verbatim(repr(name))}, as in the fit"
                raise ArgumentError(None, text, place="the table")
            if own[column]:
                entries = [one.startswith(f"{column}[") for one in scorer.feature_names_in_]
                require_width(column, sum(entries), own[column])
            features[column] = own[column]
        in_files = [name for name in scorer.texts if layout.is_text and name not in self.folders]
        gaps = {name: GAPS - scorer.texts[name] for name in in_files}
        texts = dict.fromkeys(scorer.texts, frozenset[str]()) | gaps
        schema = with_types(layout.schema, dict.fromkeys(in_files, "string"))
        return replace(self, layout=replace(layout, features=features, texts=texts, schema=schema))

    def with_features(self, names: Sequence[Any] | None) -> Self:
        """Return the same table with the features of these names, if it has them all.

        Raises
        ------
        ValueError
            If lists of a column have another length than these names say.
        """
        layout, own = self.layout, self.layout.features
        if names is None or not all(isinstance(name, str) for name in names):
            return self
        columns, entries = columns_of(names, own)
        if not own.keys() >= set(columns):
            return self
        features = {name: entries.get(name, 0) for name in columns}
        for name, width in features.items():
            require_width(name, width, own[name])
        return replace(self, layout=replace(layout, features=features))

    def with_features_of_fit(
        self, n_features: int, names: Sequence[Any] | None, argument: str | None = None
    ) -> Self:
        """Return the same table with the features of a fit, in their order.

        Raises
        ------
        ValueError
            If it has others. The message names the `argument` that the table is, if it is one.
        """
        table, what = self.widened(n_features).with_features(names), "the table " * (not argument)
        if table.n_features != n_features:
            advice = "" if self.is_letor else ": give{= scan} their names, as {features=}"
            raise ArgumentError(
                argument,
                f"{what}must have the {n_features} features of fit, got {self.n_features}{advice}",
            )
        if names is not None and table.feature_names not in (None, list(names)):
            text = f"must have the features of fit, {list(names)}, got {self.feature_names}"
            raise ArgumentError(argument, f"{what}{verbatim(text)}")
        return table

    def widened(self, width: int) -> Self:
        """Return a table of LETOR files with at least so many features: the files leave zeros out.

        Other tables are returned as they are.
        """
        if not self.is_letor or self.n_features >= width:
            return self
        schema = letor_schema(width, self.layout.qid is not None)
        return replace(self, layout=replace(self.layout, features={"X": width}, schema=schema))

    def require_labels(self, what: str) -> None:
        """Raise a ValueError if there are no labels; `what` begins the message."""
        if self.layout.label is None:
            raise ArgumentError(what, "needs labels: give{= scan} the column, as {label=}")

    def require_queries(self, argument: str | None, what: str, otherwise: str = "") -> None:
        """Raise an `ArgumentError` if the rows have no query ids, which says `what` needs them."""
        if not self.has_queries:
            advice = "give{= scan} the column of their ids, as {qid=}"
            if self.is_letor:
                advice = "write the ids into the LETOR files, as qid:1 after the label of every row"
            raise ArgumentError(argument, f"{what}: {advice}{otherwise}")

    def refuse_output(self, output: str | os.PathLike[str], name: str = "output") -> None:
        """Raise a ValueError if a file to write is one that rows are read from.

        Parameters
        ----------
        output : path
        name : str
            What the message calls it.
        """
        target = os.path.realpath(output)
        if target in map(os.path.realpath, self.files):
            raise ValueError(f"{name} must not be a file that the table reads, got {shown(target)}")

    def watched(self, progress: Progress | None) -> Self:
        """Return the same table, which tells `progress` how many rows have been worked on."""
        return replace(self, progress=progress)

    def for_scores(self, keep: tuple[str, ...] = (), **own: Any) -> Self:
        """Return the same rows with their features alone; `keep` names further columns.

        What the layout has of its `own` is given by name.
        """
        others: Any = dict.fromkeys(("label", "qid", "weight", "propensity")) | own
        return replace(self, layout=replace(self.layout, keep=keep, **others))


def no_rows() -> ArgumentError:
    """Return the error for a table without rows."""
    return ArgumentError(None, "{place} has no rows", place="the table")


def _join_means(first: Any, second: Any) -> Any:
    total = first[0] + second[0]
    share = np.divide(second[0], total, out=np.zeros(len(total)), where=total > 0)
    return total, first[1] + share * (second[1] - first[1])


def _refuse_infinity(names: Sequence[str], rows: TableRows) -> None:
    for row, column in np.argwhere(np.isinf(rows.X))[:1].tolist():
        place = rows.place.row(row)
        raise placed_error(f"{place}: column {names[column]!r} must be finite, got infinity")


def _knows_text(step: object) -> bool:
    """Tell whether a fitted transformer, or a part of it, has categories that are text."""
    parts = [*getattr(step, "steps", ()), *getattr(step, "transformers_", ())]
    return any(_knows_text(part[1]) for part in parts) or any(
        isinstance(value, str) for known in getattr(step, "categories_", ()) for value in known
    )
