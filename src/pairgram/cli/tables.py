"""Tables as the input of commands: their options, and how they are opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairgram._support.files import printable
from pairgram.cli.options import Given, sharing, warnings_as_notes
from pairgram.cli.report import count, passes, warn

if TYPE_CHECKING:
    from pairgram.tables.table import Table

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
    client: str | None = None
    group_queries: bool = False
    feature_log: str | None = None
    qrels: Path | None = None
    by_id: bool = False  # whether every query must have an id

    def make_table(self, *files: str | None) -> bool:
        """Tell whether one of the files is a table, by its name or because of these options."""
        if files and self.qrels is not None and self.feature_log is None:
            raise ValueError("--qrels is for --feature-log, and for TREC runs")
        if self.one_query and self.qid is not None:
            raise ValueError("give --qid or --one-query, not both")
        return replace(self, qrels=None, one_query=False, by_id=False) != Columns() or any(
            file is not None and _is_table(file) for file in files
        )

    @contextmanager
    def reading(self, n_threads: int | None) -> Iterator[tuple[Any, Callable[..., Any]]]:
        """Yield the client of --dask, or None, and what shows the passes over a table.

        Within, so many threads read, and warnings are notes.
        """
        from pairgram._support.machine import at_most_threads, resolve_n_threads

        threads = at_most_threads(resolve_n_threads(n_threads))
        with threads, warnings_as_notes(), self.cluster() as client, passes() as watch:
            yield client, watch

    @contextmanager
    def cluster(self) -> Iterator[Any]:
        """Yield the client of --dask, or None."""
        if self.client is None:
            yield None
            return
        try:
            from distributed import Client

            connect: Any = Client
        except ImportError as error:
            raise ImportError("--dask needs Dask: pip install 'pairgram[dask]'") from error
        try:
            client = connect(self.client, timeout=10)
        except (OSError, TypeError, ValueError) as error:
            raise ValueError(f"--dask {self.client}: found no cluster there: {error}") from None
        with client:
            yield client

    def scan(
        self, file: str, client: Any, features: list[str] | None = None, width: int = 0
    ) -> Table:
        """Return the table of a file.

        Parameters
        ----------
        file : str
        client : distributed.Client or None
        features : list of str or None
            The columns of features if --features does not name them.
        width : int
            LETOR files have at least so many features: they leave out zeros.
        """
        from pairgram._support.checks import ArgumentError
        from pairgram.tables.scan import scan

        if file == "-":
            raise ValueError("FILE must not be -, standard input, if it is a table")
        if features and not self.features:
            for name in {*features}.intersection(self.exclude or ()):
                raise ValueError(f"--exclude {name}: the features are known, and this is one")
        chosen = self.features or features or None
        source, own = self._source(file, chosen is None)
        if features and not self.features:
            own.pop("exclude", None)  # no other column is a feature
        try:
            table = scan(
                source,
                **own,
                features=chosen,
                weight=self.weight,
                groups=self.groups,
                propensity=self.propensity,
                missing=self.missing,  # type: ignore[arg-type]
                group_queries=self.group_queries,
                client=client,
            )
        except ArgumentError as error:
            if error.place is not None:
                error.place = printable(file)
            raise
        if self.one_query:  # rows without ids are one list
            table = replace(table, source_has_queries=True)
        return table.widened(width)

    def scan_assuming(
        self, file: str, client: Any, features: list[str] | None = None, width: int = 0
    ) -> tuple[Table, list[str]]:
        """Return the table of a file to learn from, and words on what was assumed of its columns.

        The arguments are those of `scan`. If nothing says what features are, columns that hold no
        numbers are left out.
        """
        from pairgram._support.checks import NO_COLUMN, NO_NUMBERS, ArgumentError

        left_out: dict[str, str] = {}
        try:
            table = self.scan(file, client, features, width)
        except ArgumentError as error:
            if self.features or features or error.found != NO_NUMBERS:
                raise
            left_out = error.kinds
            try:
                others = [*(self.exclude or ()), *left_out]
                table = replace(self, exclude=others).scan(file, client, None, width)
            except ArgumentError as none_left:
                raise error if none_left.found == NO_COLUMN else none_left from None
        if self.features or features or self.feature_log is not None or table.schema is None:
            return table, []
        names = [printable(str(name)) for name in table.layout.features]
        shown = ", ".join(names[:SHOWN_NAMES]) + ", ..." * (len(names) > SHOWN_NAMES)
        assumed = [f"took {count(len(names), 'column')} as features: {shown}"]
        if left_out:
            kinds = [f"{printable(name)} ({kind})" for name, kind in left_out.items()]
            assumed.append(f"left out {', '.join(kinds)}")
        return table, assumed

    def _source(self, file: str, takes_all: bool) -> tuple[Any, dict[str, Any]]:
        """Return what is scanned, and its columns that are no features."""
        if self.feature_log is None:
            return file, {"label": self.label, "qid": self.qid, "exclude": self.exclude}
        if self.label is not None or self.qid is not None:
            raise ValueError("--label and --qid are not for --feature-log: --qrels has the labels")
        import pyarrow

        from pairgram.datasets.feature_log import read_feature_log

        engine: Any = self.feature_log
        found = read_feature_log(file, engine, qrels=self.qrels)
        columns = {name: pyarrow.array(values.tolist()) for name, values in found.items()}
        exclude = [*(self.exclude or ()), "docno", "position"] if takes_all else None
        label = "label" if "label" in found else None
        return pyarrow.table(columns), {"label": label, "qid": "qid", "exclude": exclude}

    def labels(self, file: str) -> tuple[Any, Any]:
        """Return the labels and the query ids of a table, which alone are read."""
        from pairgram._support.checks import ArgumentError
        from pairgram.tables.scan import read_labels

        try:
            y, ids = read_labels(file, self.label, self.qid)
        except ArgumentError as error:
            if self.label is not None or error.parameter != "label":
                raise
            raise self._lacking(file, True, self.qid is None) from None
        if ids is None and not self.one_query:
            raise self._lacking(file, False, True)
        return y, ids

    def require(self, file: str, table: Table, needs_queries: bool) -> None:
        """Raise a ValueError if a table lacks labels, or query ids where they are needed."""
        if self.feature_log is not None and self.qrels is None:
            raise ValueError(f"{printable(file)}: want --qrels, the labels of its documents")
        lacks_labels = table.schema is not None and table.layout.label is None
        lacks_queries = needs_queries and not table.has_queries
        if lacks_labels or lacks_queries:
            raise self._lacking(file, lacks_labels, lacks_queries)

    def require_queries(self, file: str, table: Table) -> None:
        """Raise a ValueError if a table lacks query ids."""
        if not (table.has_queries or self.one_query):
            raise self._lacking(file, False, True)

    def _lacking(self, file: str, labels: bool, queries: bool) -> ValueError:
        """Return the error for a table some of whose columns no option names."""
        ids = QUERY_IDS + ONE_LIST * (not self.by_id)
        wanted = [LABEL] * labels + [ids] * (queries and not self.one_query)
        return ValueError(f"{printable(file)}: found a table, want {'; and '.join(wanted)}")


def note_assumed(assumed: list[str]) -> None:
    """Print what was assumed of a table, in one note."""
    if assumed:
        warn(f"note: {'; '.join(assumed)}: --features, --exclude and --missing say otherwise")


_OPTIONS = [field.name for field in fields(Columns) if field.name != "by_id"]
with_columns = sharing("columns", _OPTIONS, Columns)


def refuse_with_table(**options: Given) -> None:
    """Raise a ValueError if an option is given that only LETOR files in memory take."""
    for name, value in options.items():
        if value:
            option = "--" + name.replace("_", "-")
            raise ValueError(f"{option} is for LETOR files that are held in memory, not for tables")


def _is_table(file: str) -> bool:
    """Tell whether a file is a table: an address, a folder, a pattern, or a file of columns."""
    from pairgram.datasets.letor import looks_like_letor

    if "://" in file or os.path.isdir(file):
        return True
    if not os.path.exists(file):
        return any(sign in file for sign in "*?[") or file.lower().endswith(ENDS)
    return file.lower().endswith(ENDS) and not looks_like_letor(file)
