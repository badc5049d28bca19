"""The engine of a Spark cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pairgram._support.machine import threads
from pairgram.tables.columns import Columns, rows_of_batches
from pairgram.tables.passes import Results

# What a worker returns: the number of a partition, and an object as bytes.
SCHEMA = "number int, result binary"
# The setting of the size of all results that the driver takes.
LIMIT = "spark.driver.maxResultSize"
# Types that Spark cannot hash, and words in the names of types that hold them.
WITHOUT_HASH = ("map<", "variant")


class SparkEngine:
    """Works on every partition of a Spark DataFrame by ``mapInArrow``, without a shuffle.

    The partitions of Spark have no order that a reader could rely on. The rows of a query that is
    cut therefore find each other by the id, in the driver.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def each(
        self,
        partitions: object,
        columns: Columns,
        function: Callable[..., Results],
        ordered: bool,
    ) -> Results:
        """Yield what a function yields for every partition; see `LocalEngine`.

        For an order, Spark must not leave columns out before it shuffles, which would send rows
        elsewhere. Otherwise results come by the numbers of the partitions, all of which have some.
        """
        names = columns.names()

        def of_partition(batches: Iterable[Any]) -> Iterator[Any]:
            number, own = _number(), _named(batches, names)
            with threads(1):
                rows = rows_of_batches(own, number, f"partition {number}", columns)
                yield from _packed(function(rows))

        frame = _numbered(self._frame, names, ordered).mapInArrow(of_partition, SCHEMA)
        with _naming_the_limit():
            if ordered:
                for row in frame.toLocalIterator():
                    yield _unpacked(row["result"])
                return
            with _fixed_partitions(self._frame):
                rows = frame.collect()
        found: dict[int, list[bytes]] = {}
        for row in rows:
            found.setdefault(row["number"], []).append(row["result"])
        for number in range(max(found, default=-1) + 1):
            yield from map(_unpacked, found.get(number, ()))
            if number not in found:
                yield from function(())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _numbered(frame: Any, names: list[str], whole: bool) -> Any:
    """Return the columns of some names, which are called by their numbers: 0, 1, ….

    Workers would misunderstand names with dots or backticks. With `whole`, one more column depends
    on all others, so that Spark reads and shuffles them too. It holds their hash, which is small.
    Spark has no hash of maps, which are therefore columns themselves.
    """
    from pyspark.sql import functions

    columns = [functions.col(_quoted(name)) for name in names]
    if whole:
        hashed: list[Any] = []
        for one in frame.schema.fields:
            has_hash = not any(kind in one.dataType.simpleString() for kind in WITHOUT_HASH)
            (hashed if has_hash else columns).append(functions.col(_quoted(one.name)))
        if hashed:
            columns.append(functions.xxhash64(*hashed))
    return frame.select([column.alias(str(place)) for place, column in enumerate(columns)])


def _named(batches: Iterable[Any], names: list[str]) -> Iterator[Any]:
    """Yield batches of the columns of some names, whose names are numbers."""
    for batch in batches:
        own = batch.select([str(place) for place in range(len(names))])
        yield own.rename_columns(names)


def _number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


@contextmanager
def _fixed_partitions(frame: Any) -> Iterator[None]:
    """Keep Spark from merging shuffled partitions by their sizes.

    These depend on the columns that are read, but the partitions of all passes must be the same.
    """
    settings, name = frame.sparkSession.conf, "spark.sql.adaptive.enabled"
    before = settings.get(name)
    settings.set(name, "false")
    try:
        yield
    finally:
        settings.set(name, before)


@contextmanager
def _naming_the_limit() -> Iterator[None]:
    """Say what to do if results are larger than Spark allows."""
    try:
        yield
    except Exception as error:
        if LIMIT not in str(error):
            raise
        raise RuntimeError(
            f"the results of all partitions are larger than {LIMIT} of Spark allows: start "
            "Spark with a larger one, or scan a frame of fewer partitions, frame.coalesce(n)"
        ) from error


def _packed(results: Iterable[Any]) -> Iterator[Any]:
    """Yield results as rows of `SCHEMA`. An error that the data have caused is the last result.

    Spark would try again what raises, and wrap the error.
    """
    import pyarrow
    from pyspark import cloudpickle

    number = pyarrow.array([_number()], pyarrow.int32())
    dumps: Any = cloudpickle.dumps

    def packed(result: object) -> Any:
        data = pyarrow.array([dumps(result, protocol=4)], pyarrow.binary())
        return pyarrow.RecordBatch.from_arrays([number, data], ["number", "result"])

    try:
        for result in results:
            yield packed(result)
    except (ValueError, TypeError) as error:
        yield packed(error)


def _unpacked(result: bytes) -> Any:
    """Return a result, or raise it if it is an error."""
    found = pickle.loads(result)
    if isinstance(found, Exception):
        raise found
    return found
