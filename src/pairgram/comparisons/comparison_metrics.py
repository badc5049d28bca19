"""Metrics of predicted comparisons: accuracy, squared error and log loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairgram._support.arrays import real_array
from pairgram._support.checks import ArgumentError, Flags, Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.metrics.metric import Metric, MetricSums


def _accuracy(margin: Vector, difference: Vector) -> Vector:
    values = np.sign(difference)
    values *= 0.5
    values += 0.5
    return np.asarray(values)


def _squared_error(margin: Vector, difference: Vector) -> Vector:
    return (margin - difference) ** 2


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
    """A metric of the differences of scores that a model predicts for comparisons.

    Attributes
    ----------
    name : {"accuracy", "squared_error", "log_loss"}
        - "accuracy": the share of comparisons in which the winner has the higher score. Equal
          scores count ½. Ties, whose margin is 0, do not count;
        - "squared_error": the square of the margin minus the difference of the scores;
        - "log_loss": ``log(1 + exp(−d))``, where d is the difference of the scores in log-odds. A
          tie counts as half a win of each side.
    """

    name: str

    @property
    def greater_is_better(self) -> bool:
        """Whether greater is better."""
        return self.name == "accuracy"

    def defined(self, margin: Vector) -> Flags:
        """Tell which comparisons count, (n_pairs,)."""
        return margin > 0 if self.name == "accuracy" else np.ones(len(margin), dtype=bool)

    def values(self, margin: Vector, difference: Vector) -> Vector:
        """Return the value of every comparison, (..., n_pairs), also of those that do not count.

        Parameters
        ----------
        margin : ndarray of shape (n_pairs,), float64
        difference : ndarray of shape (..., n_pairs), float64
        """
        return _VALUES[self.name](margin, difference)

    def sums(self, margin: Vector, values: Vector, weights: Vector) -> MetricSums:
        """Return the weighted sums of values, (n_models, n_pairs), of the comparisons that count.

        A model with NaN among its values has NaN.
        """
        weights = np.where(self.defined(margin), weights, 0.0)
        total = weights.sum()
        with single_threaded_blas:
            means = values @ weights / (total or 1.0)
            squares = np.square(values) @ weights - total * means**2
        return MetricSums(np.full(len(means), total), means, np.maximum(squares, 0.0))


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
        If it is a metric of lists or unknown, or if "log_loss" has no probabilities.
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
            f"{name}='log_loss' needs probabilities, which only RankSVM(loss='logistic') and its "
            "search have"
        )
    return ComparisonMetric(scoring)


def evaluate_comparisons(
    metrics: Sequence[str | Metric], y: Any, score: object, per_comparison: bool
) -> dict[str, Any]:
    """Return metrics of comparisons by their names; see `evaluate`.

    Raises
    ------
    ValueError
        If a metric is not one of comparisons, or if a row has no finite score.
    """
    wanted = [comparison_metric(one, True, "metrics") for one in metrics]
    scores = real_array(score, "score")
    if scores.ndim not in (1, 2):
        raise ArgumentError(
            "score", f"must be (n_rows,) or (n_scores, n_rows), got shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise ArgumentError("score", "must not hold NaN or infinity")
    y.require_rows(scores.shape[-1])
    found: dict[str, Any] = {}
    for metric in wanted:
        values = metric.values(y.margin, y.differences(scores))
        if per_comparison:
            found[metric.name] = np.where(metric.defined(y.margin), values, np.nan)
        else:
            means = metric.sums(y.margin, np.atleast_2d(values), y.w).defined
            found[metric.name] = means if scores.ndim == 2 else float(means[0])
    return found
