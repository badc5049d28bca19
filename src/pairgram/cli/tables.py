"""Tables as the input of commands: their options, and how they are opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pairgram._rooms import public, room_with
from pairgram._support.files import printable
from pairgram.cli.options import sharing, warnings_as_notes
from pairgram.cli.report import count, passes, warn

# Files with these names are tables, unless they are LETOR text.
ENDS = (".parquet", ".pq", ".arrow", ".ipc", ".feather", ".csv", ".csv.gz", ".tsv", ".tsv.gz")
LABEL = "--label, its column of labels"
QUERY_IDS = "--qid, its column of query ids"
ONE_LIST = ", or --one-query if all rows are one list"
SHOWN_NAMES = 20  # of the columns that are taken as features


@dataclass(frozen=True)
class Columns:
    """The values of the options of tables."""

    label: str | None = None
    qid: str | None = None
    one_query: bool = False
    features: list[str] | None = None
    exclude: list[str] | None = None
    weight: str | None = None
    groups: str | None = None
    propensity: str | None = None
    missing: str | None = None

    def make_table(self, *files: str | None) -> bool:
        """Tell whether one of the files is a table, by its name or because of these options."""
        if self.one_query and self.qid is not None:
            raise ValueError("give --qid or --one-query, not both")
        return replace(self, one_query=False) != Columns() or any(
            file is not None and _is_table(file) for file in files
        )

    @contextmanager
    def reading(self) -> Iterator[Callable[..., Any]]:
        """Yield what shows the passes over a table. Within, warnings are notes."""
        with warnings_as_notes(), passes() as watch:
            yield watch

    def scan(self, file: str, features: list[str] | None = None, width: int = 0) -> Any:
        """Return the table of a file.

        Parameters
        ----------
        file : str
        features : list of str or None
            The columns of features if --features does not name them.
        width : int
            LETOR files have at least so many features: they leave out zeros.
        """
        from pairgram._support.checks import ArgumentError

        if file == "-":
            raise ValueError("FILE must not be -, standard input, if it is a table")
        exclude = self.exclude
        if features and not self.features:
            for name in {*features}.intersection(exclude or ()):
                raise ValueError(f"--exclude {name}: the features are known, and this is one")
            exclude = None  # no other column is a feature
        try:
            table = public("scan")(
                file,
                label=self.label,
                qid=self.qid,
                features=self.features or features or None,
                exclude=exclude,
                weight=self.weight,
                groups=self.groups,
                propensity=self.propensity,
                missing=self.missing,
            )
        except ArgumentError as error:
            if error.place is not None:
                error.place = printable(file)
            raise
        if self.one_query:  # rows without ids are one list
            table = replace(table, source_has_queries=True)
        return table.widened(width)

    def scan_assuming(self, file: str) -> tuple[Any, list[str]]:
        """Return the table of a file to learn from, and words on what was assumed of its columns.

        If nothing says what features are, columns that hold no numbers are left out.
        """
        from pairgram._support.checks import NO_COLUMN, NO_NUMBERS, ArgumentError

        left_out: dict[str, str] = {}
        try:
            table = self.scan(file)
        except ArgumentError as error:
            if self.features or error.found != NO_NUMBERS:
                raise
            left_out = error.kinds
            try:
                others = [*(self.exclude or ()), *left_out]
                table = replace(self, exclude=others).scan(file)
            except ArgumentError as none_left:
                raise error if none_left.found == NO_COLUMN else none_left from None
        if self.features or table.schema is None:
            return table, []
        names = [printable(str(name)) for name in table.layout.features]
        shown = ", ".join(names[:SHOWN_NAMES]) + ", ..." * (len(names) > SHOWN_NAMES)
        assumed = [f"took {count(len(names), 'column')} as features: {shown}"]
        if left_out:
            kinds = [f"{printable(name)} ({kind})" for name, kind in left_out.items()]
            assumed.append(f"left out {', '.join(kinds)}")
        return table, assumed

    def labels(self, file: str, hint: str = ONE_LIST) -> tuple[Any, Any]:
        """Return the labels and the query ids of a table, which alone are read."""
        from pairgram._support.checks import ArgumentError

        try:
            y, ids = room_with("command line", "read_labels")(file, self.label, self.qid)
        except ArgumentError as error:
            if self.label is not None or error.parameter != "label":
                raise
            raise self._lacking(file, True, self.qid is None, hint) from None
        if ids is None and not self.one_query:
            raise self._lacking(file, False, True, hint)
        return y, ids

    def require(
        self, file: str, table: Any, needs_queries: bool, needs_labels: bool = True
    ) -> None:
        """Raise a ValueError if a table lacks labels, or query ids where they are needed."""
        lacks_labels = needs_labels and table.schema is not None and table.layout.label is None
        lacks_queries = needs_queries and not table.has_queries
        if lacks_labels or lacks_queries:
            raise self._lacking(file, lacks_labels, lacks_queries)

    def _lacking(self, file: str, labels: bool, queries: bool, hint: str = ONE_LIST) -> ValueError:
        """Return the error for a table some of whose columns no option names."""
        wanted = [LABEL] * labels + [QUERY_IDS + hint] * (queries and not self.one_query)
        return ValueError(f"{printable(file)}: found a table, want {'; and '.join(wanted)}")


def note_assumed(assumed: list[str]) -> None:
    """Print what was assumed of a table, in one note."""
    if assumed:
        warn(f"note: {'; '.join(assumed)}: --features, --exclude and --missing say otherwise")


def with_columns(*names: str) -> Callable[..., Any]:
    """Return a decorator that gives a command options of columns in place of ``columns``."""
    return sharing("columns", names, Columns)


def refuse_with_table(**options: bool) -> None:
    """Raise a ValueError if an option is given that only LETOR files in memory take."""
    for name, given in options.items():
        if given:
            raise ValueError(f"--{name} is for LETOR files that are held in memory, not for tables")


def _is_table(file: str) -> bool:
    """Tell whether a file is a table: an address, a folder, a pattern, or a file of columns."""
    from pairgram.datasets.letor import looks_like_letor

    if "://" in file or os.path.isdir(file):
        return True
    if not os.path.exists(file):
        return any(sign in file for sign in "*?[") or file.lower().endswith(ENDS)
    return file.lower().endswith(ENDS) and not looks_like_letor(file)
