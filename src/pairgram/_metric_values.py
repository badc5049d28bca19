"""The labels, scores and weights that ranking metrics take."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairgram._metric_options import FAMILIES
from pairgram.queries import Queries, check_weights

if TYPE_CHECKING:
    from pairgram._metric import Metric

__all__ = ["check_labels", "check_scores", "query_weights"]

_LARGEST_GAIN = 2.0**1000  # sums of gains over any list stay finite


def _largest(family: str, n_rows: int) -> float:
    """Return how large labels and scores may be for the sums of a metric to stay finite."""
    most: float = float(np.finfo(np.float64).max) / max(1, n_rows)
    if family == "msd":
        return float(np.sqrt(most / 32))
    if family in ("m1d", "ranking_error"):
        return most / max(1, n_rows) / 8
    return most / 4 if family == "pearson" else np.inf


def check_labels(metrics: Sequence[Metric], y: NDArray[np.float64]) -> float:
    """Refuse labels that a metric cannot take; return the largest."""
    smallest, largest = (float(y.min()), float(y.max())) if y.size else (0.0, 0.0)
    if not (isfinite(smallest) and isfinite(largest)):
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(f"y must be finite, got {y[row]} in row {row}")
    for metric in metrics:
        kind = FAMILIES[metric.family].labels
        if kind == "any":
            limit = _largest(metric.family, len(y))
            if max(largest, -smallest) > limit:
                row = int(np.argmax(np.abs(y)))
                raise ValueError(
                    f"{metric.name} takes labels of at most {limit:.1e} in size (sums overflow), "
                    f"got y = {y[row]:g} in row {row}"
                )
            continue
        if smallest < 0:
            raise ValueError(_bad_label(metric, y, y < 0, "labels >= 0"))
        exponential = kind == "grade" or metric.gain == "exp2"
        limit = 1000.0 if exponential else _LARGEST_GAIN
        if largest > limit:
            reason = "2**y overflows" if exponential else "sums overflow"
            raise ValueError(_bad_label(metric, y, y > limit, f"labels <= {limit:g} ({reason})"))
        if kind == "grade":
            if (y != np.floor(y)).any():
                raise ValueError(_bad_label(metric, y, y != np.floor(y), "integer labels"))
            if metric.max_grade is not None and largest > metric.max_grade:
                wanted = f"labels <= max_grade = {metric.max_grade:g}"
                raise ValueError(_bad_label(metric, y, y > metric.max_grade, wanted))
    return largest


def _bad_label(metric: Metric, y: NDArray[np.float64], bad: NDArray[np.bool_], wanted: str) -> str:
    row = int(np.argmax(bad))
    free = ", ".join(
        name for name, f in FAMILIES.items() if f.labels == "any" and "relevant" not in f.options
    )
    return (
        f"{metric.name} takes {wanted}, got y = {y[row]:g} in row {row}; metrics for any real "
        f"labels: {free}"
    )


def check_scores(metrics: Sequence[Metric], scores: NDArray[np.float64]) -> None:
    """Refuse NaN, and infinities where a metric takes the values of scores."""
    if scores.size == 0:
        return
    wants_finite = [m.name for m in metrics if FAMILIES[m.family].scores == "finite"]
    smallest = float(scores.min())  # NaN if there is one
    if smallest == smallest and not wants_finite:
        return
    limits = ((_largest(m.family, scores.shape[1]), m.name) for m in metrics)
    limit, name = min((each for each in limits if each[1] in wants_finite), default=(np.inf, ""))
    largest = float(scores.max())
    if isfinite(smallest) and isfinite(largest):
        if max(largest, -smallest) > limit:
            which, row = divmod(int(np.argmax(np.abs(scores))), scores.shape[1])
            raise ValueError(
                f"{name} takes scores of at most {limit:.1e} in size (its sums overflow), got "
                f"{scores[which, row]:g} in row {row}"
            )
        return
    bad = ~np.isfinite(scores) if wants_finite else np.isnan(scores)
    if not bad.any():
        return
    which, row = divmod(int(np.argmax(bad)), scores.shape[1])
    where = f"row {row}" if scores.shape[0] == 1 else f"row {row} of score vector {which}"
    wanted = f"finite for {wants_finite[0]}" if wants_finite else "a number"
    raise ValueError(f"score must be {wanted}, got {scores[which, row]} in {where}")


def query_weights(sample_weight: ArrayLike, queries: Queries) -> NDArray[np.float64]:
    """Return the mean weight of the rows of every query."""
    weights = queries.grouped(check_weights(sample_weight, queries.n_rows, "sample_weight"))
    # A mean heeds their ratios alone: neither huge nor tiny ones shall leave the range of numbers.
    weights = np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1]))
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    sums = np.bincount(query, weights=weights, minlength=queries.n_queries)
    return sums / np.maximum(queries.sizes, 1)
