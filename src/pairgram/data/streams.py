"""`Stream`: rows that are read whenever they are needed, in the place of arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pairgram._support.checks import ArgumentError

# What the columns of a stream are called that take the place of arguments of `fit`.
COLUMNS = {
    "y": "label",
    "qid": "qid",
    "sample_weight": "weight",
    "propensity": "propensity",
}


class Stream(ABC):
    """Rows with labels, query ids and weights, which are read whenever they are needed.

    The core asks a stream itself for what it would do with arrays.
    """

    is_of_clicks: Any
    has_queries: Any

    @abstractmethod
    def fitted(self, model: Any, spec: Any, validation: Any) -> dict[str, Any]:
        """Return the attributes of a ranker that is fitted to the rows, as its `spec` says."""

    @abstractmethod
    def scores(self, model: Any) -> Any:
        """Return the scores of the rows by a fitted model, in their order, (n_rows,)."""

    @abstractmethod
    def statistics(self, total: Any) -> Any:
        """Return `Pairgram` statistics with the rows added."""

    @abstractmethod
    def arrays(self, model: Any) -> tuple[Any, Any, Any]:
        """Return a fitted model of arrays, all rows that it scores, and their query ids or None."""

    @abstractmethod
    def evaluate(
        self, metrics: Sequence[Any], model: Any, *, per_query: bool, of_lists: bool
    ) -> dict[str, Any]:
        """Return what `pairgram.evaluate` does; `of_lists` says whether metrics judge lists."""


def as_stream(X: object, **arguments: Any) -> Any:
    """Return X if it is a `Stream`, else None: rows that a caller gives are told apart here alone.

    Raises
    ------
    ValueError
        If X is a stream, and one of the other arguments is not None: a stream has them itself.
    """
    if not isinstance(X, Stream):
        return None
    for name, value in arguments.items():
        if value is not None:
            column = COLUMNS.get(name)
            instead = f"give scan the column, as {{{column}=}}" if column else "a table has none"
            raise ArgumentError(name, f"must be None if X is a table: {instead}")
    return X
