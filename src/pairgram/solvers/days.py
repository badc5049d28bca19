"""Choose a ridge from statistics of days alone, each judged by models that have not seen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from pairgram._support.checks import Vector
from pairgram._support.machine import single_threaded_blas
from pairgram.solvers.hold_out import LARGEST_HELD, models_without
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import RidgePath


@dataclass(frozen=True, eq=False)
class JudgedDays:
    """The models of one sum of days along their ridges, and how they do on days they do not know.

    Attributes
    ----------
    total : PairSums
        The sum of all days, as the last day sees it.
    path : RidgePath
    alphas : ndarray of shape (n_alphas,), descending
    losses : ndarray of shape (n_judged_days, n_alphas)
        The pair loss of every day that is judged, by the model without it.
    """

    total: PairSums
    path: RidgePath
    alphas: Vector
    losses: Vector

    @classmethod
    def in_turn(cls, days: Sequence[PairSums], alphas: Vector | None, scale: bool) -> JudgedDays:
        """Judge every day by the model of all others."""
        total = reduce(add, days)
        path = total.decompose(scale=scale, basis=True)
        alphas = path.default_alphas() if alphas is None else alphas
        coefs = np.empty((len(days), len(alphas), total.n_features))
        lost = np.full(coefs.shape[:2], True)
        if not total.is_scatter:  # whose pairs join rows of different days, so that they do not add
            coefs, held = models_without(path.eigen, alphas, days)
            # Where a day holds nearly all of a large direction, what is left has lost its digits.
            lost = (alphas * LARGEST_HELD < held[:, None]) | np.isnan(coefs).any(axis=2)
        for number in np.flatnonzero(lost.any(axis=1)).tolist():
            rest = reduce(add, [*days[:number], *days[number + 1 :]])
            coefs[number, lost[number]] = rest.path_at(path.factor).coef(alphas[lost[number]])
        losses = [pair_losses(day, coef) for day, coef in zip(days, coefs, strict=True)]
        return cls(total, path, alphas, np.array(losses))

    @classmethod
    def forward(
        cls, days: Sequence[PairSums], alphas: Vector | None, scale: bool, decay: float, skip: int
    ) -> JudgedDays:
        """Judge every day but the first ones by the model of the days before it.

        Of two days before it, the earlier one counts `decay` times as much as the later one, for
        each day between them. Ridges grow with the weight of the pairs that are known: `alphas` are
        those of the last sum.
        """
        sums = [days[0]]
        for day in days[1:]:
            sums.append(decay * sums[-1] + day)
        total = sums[-1]
        path = total.decompose(scale=scale)
        alphas = path.default_alphas() if alphas is None else alphas
        losses = []
        for before, day in zip(sums[skip - 1 : -1], days[skip:], strict=True):
            share = before.pair_weight / total.pair_weight
            losses.append(pair_losses(day, before.decompose(scale=scale).coef(share * alphas)))
        return cls(total, path, alphas, np.array(losses))


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
