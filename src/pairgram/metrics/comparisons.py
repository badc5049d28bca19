"""What judges predictions of comparisons: accuracy, squared error and log loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Vector
from pairgram.data.preferences import Preferences
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

    def mean(self, y: Preferences, values: Vector) -> Any:
        """Return the weighted means of values, (..., n_pairs); NaN where none is defined."""
        known = ~np.isnan(values)
        weights = np.where(known, y.w, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return (weights * np.where(known, values, 0.0)).sum(axis=-1) / weights.sum(axis=-1)


# What a caller may give for one, or a metric of lists, which is refused.
ComparisonScoring = ComparisonMetric | Metric | str | object | None


def comparison_metric(
    scoring: ComparisonScoring, has_probabilities: bool, name: str = "scoring"
) -> ComparisonMetric:
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


def evaluate_comparisons(
    metrics: object, y: Preferences, score: object, per_comparison: bool
) -> dict[str, Any]:
    """Return metrics of comparisons by their names; see `evaluate`.

    Raises
    ------
    ValueError
        If a metric is none of comparisons, or if there is not one finite score for every row.
    """
    several = isinstance(metrics, (list, tuple))
    listed: list[Any] = list(metrics) if several else [metrics]  # type: ignore[call-overload]
    wanted = [comparison_metric(one, True, "metrics") for one in listed]
    scores = real_array(score, "score")
    if scores.ndim not in (1, 2):
        raise ArgumentError(
            "score", f"must be (n_rows,) or (n_scores, n_rows), got shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise ArgumentError("score", "must not hold NaN or infinity")
    y.require_rows(scores.shape[-1])
    found = {}
    for metric in wanted:
        values = metric.values(y.margin, y.differences(scores))
        found[metric.name] = values if per_comparison else metric.mean(y, values)
        if not per_comparison and scores.ndim == 1:
            found[metric.name] = float(found[metric.name])
    return found
