"""The losses of days by models that have not seen them, from the statistics of days alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from pairgram._support.checks import Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.solvers.hold_out import LARGEST_HELD, models_without
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import RidgePath


def held_out_losses(
    days: Sequence[PairSums], total: PairSums, path: RidgePath, alphas: Vector
) -> Vector:
    """Return the pair loss of every day by the models of all others, (n_days, n_alphas).

    `total` is the sum of all days, and `path` its decomposition.
    """
    coefs = np.empty((len(days), len(alphas), total.n_features))
    lost = np.full(coefs.shape[:2], True)
    if not total.is_scatter:  # whose pairs join rows of different days, so that they do not add
        coefs, held = models_without(path.eigen, alphas, days)
        # Where a day holds nearly all of a large direction, what is left has lost its digits.
        lost = (alphas * LARGEST_HELD < held[:, None]) | np.isnan(coefs).any(axis=2)
    for number in np.flatnonzero(lost.any(axis=1)).tolist():
        rest = reduce(add, [*days[:number], *days[number + 1 :]])
        coefs[number, lost[number]] = rest.path_at(path.factor).coef(alphas[lost[number]])
    return np.array([pair_losses(day, coef) for day, coef in zip(days, coefs, strict=True)])


def pair_losses(day: PairSums, coefs: Vector) -> Vector:
    """Return ``(yᵀLy − 2 gᵀw + wᵀGw) / Σ W`` for models (n_models, n_features), (n_models,).

    This is half the weighted mean of ``((y_i − y_j) − (f_i − f_j))²`` over the pairs of the day.
    """
    sums, factor = day.required(), day.factor
    padded = np.hstack([-coefs, np.ones((len(coefs), 1))])  # of the rows [X, y]: y − Xw
    with single_threaded_blas:
        losses = factor * np.einsum("ij,ij->i", padded @ sums, padded)
    day.warn_of_digits(float(losses.min()))
    return np.maximum(losses, 0.0) / day.pair_weight
