"""The losses of days by models that have not seen them, from the statistics of days alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import add

import numpy as np

from pairgram._support.checks import Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.solvers.pair_sums import PairSums


def held_out_losses(days: Sequence[PairSums], factor: Vector | None, alphas: Vector) -> Vector:
    """Return the pair loss of every day by the models of all others, (n_days, n_alphas).

    Their features are scaled by `factor`, (n_features,), or not at all.
    """
    before, after = list(accumulate(days[:-1])), list(accumulate(days[:0:-1]))[::-1]
    others = chain(after[:1], map(add, before[:-1], after[1:]), before[-1:])
    models = (one.path_at(factor).coef(alphas) for one in others)
    return np.array([*map(pair_losses, days, models)])


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
