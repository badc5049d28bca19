"""What judges predictions of comparisons: accuracy, squared error and log loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairgram._support.checks import Vector
from pairgram.data.comparisons import Preferences
from pairgram.metrics.metric import Metric


def _accuracy(margin: Vector, difference: Vector) -> Vector:
    values = np.asarray((difference > 0).astype(np.float64))
    values[difference == 0] = 0.5
    values[..., margin == 0] = np.nan
    return values


def _squared_error(margin: Vector, difference: Vector) -> Vector:
    return np.asarray((margin - difference) ** 2)


def _log_loss(margin: Vector, difference: Vector) -> Vector:
    losses = np.logaddexp(0.0, -difference)
    tie = margin == 0
    losses[..., tie] += 0.5 * difference[..., tie]  # half a win of each
    return np.asarray(losses)


_VALUES: dict[str, Callable[[Vector, Vector], Vector]] = {
    "accuracy": _accuracy,
    "squared_error": _squared_error,
    "log_loss": _log_loss,
}


@dataclass(frozen=True)
class ComparisonMetric:
    """What judges the differences of scores of comparisons.

    Attributes
    ----------
    name : {"accuracy", "squared_error", "log_loss"}
        - "accuracy": the share of comparisons of which the winner has the higher score. Equal
          scores count ½. Ties, of margin 0, do not count;
        - "squared_error": the squared difference of the margin and the difference of scores;
        - "log_loss": ``log(1 + exp(−d))`` of the difference d of scores, which are log-odds. A tie
          is half a win of each.
    """

    name: str

    @property
    def greater_is_better(self) -> bool:
        """Whether greater is better."""
        return self.name == "accuracy"

    def values(self, margin: Vector, difference: Vector) -> Vector:
        """Return the value of every comparison, (..., n_pairs); NaN where it is undefined.

        Parameters
        ----------
        margin : ndarray of shape (n_pairs,), float64
        difference : ndarray of shape (..., n_pairs), float64
        """
        return _VALUES[self.name](margin, difference)

    def __call__(self, y: Preferences, scores: Vector) -> float:
        """Return the weighted mean over comparisons, given the scores of all rows."""
        values = self.values(y.margin, y.differences(scores))
        known = ~np.isnan(values)
        weight = y.w[known]
        return float(weight @ values[known] / weight.sum()) if weight.any() else float("nan")


def comparison_metric(scoring: Any, has_probabilities: bool, name: str = "scoring") -> Any:
    """Return the metric that `scoring` names; None stands for accuracy.

    Parameters
    ----------
    scoring : str, ComparisonMetric or None
    has_probabilities : bool
        Whether differences of scores are log-odds, as "log_loss" needs them.
    name : str
        The name of the argument.

    Raises
    ------
    ValueError
        If it is a metric of lists or unknown, or if there are no probabilities.
    """
    scoring = "accuracy" if scoring is None else scoring
    if isinstance(scoring, ComparisonMetric):
        scoring = scoring.name
    if not isinstance(scoring, str) or scoring not in _VALUES:
        given = scoring.name if isinstance(scoring, Metric) else scoring
        raise ValueError(
            f"{name} must be 'accuracy', 'squared_error' or 'log_loss' for y=Preferences(...), "
            f"which have no lists to judge, got {given!r}"
        )
    if scoring == "log_loss" and not has_probabilities:
        raise ValueError(
            f"{name}='log_loss' needs probabilities, which RankSVM(loss='logistic') and its search "
            "have, and least squares and hinge losses have not"
        )
    return ComparisonMetric(scoring)
