"""`Judgements`: a y that says itself what is compared, in place of labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pairgram._support.checks import Rows, Vector

if TYPE_CHECKING:
    from pairgram.data.pairs import Pairs


class Judgements(ABC):
    """What is compared, where y is more than labels.

    Attributes
    ----------
    metric : str
        The name of the metric that judges them where no other is asked for.
    labels : ndarray of shape (n_rows,), float64
        What metrics of lists take; a ValueError if there are none.
    comparisons : Preferences or None
        These judgements, if they are comparisons of rows of X; None if they are of single rows.
    """

    metric: ClassVar[str]
    labels: Any
    comparisons: Any = None

    def require_alone(self, told: Mapping[str, object]) -> None:  # noqa: B027
        """Raise a ValueError if the caller tells of rows what these judgements have no use for."""

    @abstractmethod
    def of_rows(self, n_rows: int, weights: Any) -> tuple[Vector, Any]:
        """Return the labels of so many rows, (n_rows,), and their weights, from those given.

        Raises
        ------
        ValueError
            If they are not judgements of so many rows.
        """

    @abstractmethod
    def taken(self, rows: Rows | slice) -> Self | None:
        """Return the judgements of these rows alone; None if they are not kept."""

    def judged(
        self, metrics: Sequence[Any], scores: Vector, queries: Any, weights: Vector | None
    ) -> tuple[Vector, dict[str, Any]]:
        """Return metrics, (n_metrics, n_scores, n_queries), and what else to tell, by name.

        `weights` are those of the queries. A y of comparisons has other metrics.
        """
        raise NotImplementedError

    @abstractmethod
    def require_settings(self, settings: Pairs) -> None:
        """Raise a ValueError if statistics with these settings of pairs cannot take them."""

    @abstractmethod
    def fitted_by(self, spec: Any) -> Any:
        """Return what a ranker fits to them, where `spec` is what it fits to labels.

        Raises
        ------
        ValueError
            If the ranker does not take them, or not with its parameters.
        """


def as_judgements(y: object) -> Judgements | None:
    """Return judgements that are given in the place of labels, or None for anything else."""
    return y if isinstance(y, Judgements) else None
