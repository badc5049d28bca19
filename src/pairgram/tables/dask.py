"""The engine of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from dask.base import compute
from dask.delayed import delayed

from pairgram._support.machine import threads
from pairgram.tables.columns import Columns
from pairgram.tables.passes import Results

# The results of so many partitions are waited for at a time.
AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Works on every partition in a task of Dask, whose results are joined here, in a fixed tree.

    A task works in one thread. It holds no state: if a worker is lost, Dask repeats its tasks
    elsewhere, with the same bits.

    Parameters
    ----------
    client : distributed.Client or None
        None takes the client that is active, or else the threads of this process.
    frame : dask.dataframe.DataFrame or None
        The rows, if the partitions are not files.
    part_of : callable or None
        Returns the `Partition` of a number and a piece of the frame.
    names : sequence of str
        The columns of the frame that every pass reads. Dask fuses small partitions, differently
        for every choice of columns, but the partitions of all passes must be the same.
    """

    client: Any = None
    frame: Any = None
    part_of: Any = None
    names: Sequence[str] = ()

    def each(
        self,
        partitions: Sequence[Any],
        columns: Columns,
        function: Callable[..., Results],
        ordered: bool,
    ) -> Results:
        """Yield what a function yields for every partition; see `LocalEngine`."""
        if self.frame is None:
            sources = [delayed(partition, traverse=False) for partition in partitions]
        else:
            names = list(dict.fromkeys([*self.names, *columns.names()]))
            parts = enumerate(self.frame[names].to_delayed())
            sources = [delayed(self.part_of)(number, part) for number, part in parts]
        work = delayed(cloudpickle.dumps((columns, function), protocol=4))
        tasks = [
            delayed(_worked, pure=False)(work, source, number)
            for number, source in enumerate(sources)
        ]
        run: Any = compute
        for begin in range(0, len(tasks), AT_ONCE):
            for one in run(*tasks[begin : begin + AT_ONCE], scheduler=self.client):
                yield from cloudpickle.loads(one)


def _worked(work: bytes, source: Any, number: int) -> bytes:
    """Return the results of a partition as bytes.

    Dask would send arrays as pieces of a message, where they need not be aligned.
    """
    columns, function = cloudpickle.loads(work)
    with threads(1):
        found = list(function(source.batches(number, columns)))
    return bytes(cloudpickle.dumps(found, protocol=4))
