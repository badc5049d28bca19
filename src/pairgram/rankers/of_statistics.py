"""Models that are made of statistics alone, or of those of several days."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from pairgram._support.arrays import check_alphas
from pairgram._support.parameters import check
from pairgram.data.pairs import no_pairs
from pairgram.features.row_values import Chain
from pairgram.model_selection.judge import Judged, in_order_of, search_results
from pairgram.solvers.constraint import Constraint
from pairgram.solvers.days import held_out_losses
from pairgram.solvers.pair_sums import PairSums

if TYPE_CHECKING:
    from pairgram.solvers.pairgram import Pairgram

_Ranker = TypeVar("_Ranker", bound=BaseEstimator)


def of_statistics(
    kind: type[_Ranker],
    pairgram: Pairgram,
    alpha: float,
    *,
    scale: bool,
    prior: ArrayLike | None,
    constraint: Constraint | None = None,
) -> _Ranker:
    """Return a fitted model; see `RankRLS.from_pairgram`."""
    total = _sums_of(pairgram, ": the statistics come first, and alpha second")
    model = kind(
        alpha,
        pairs=pairgram.settings.short,
        scale=scale,
        prior=prior,
        constraint=constraint,
    )
    model.coef_ = pairgram.solve(alpha, scale=scale, prior=prior, constraint=constraint)
    _tell_of_sums(model, total)
    return model


def of_days(
    kind: type[_Ranker], days: Iterable[Pairgram], alphas: ArrayLike | None, *, scale: bool
) -> _Ranker:
    """Return a search whose ridge days have chosen; see `RankRLSCV.from_pairgrams`."""
    statistics, sums = list(days), []
    for number, one in enumerate(statistics):
        try:
            sums.append(_sums_of(one))
            _require_pairs(sums[-1])
        except (TypeError, ValueError) as error:
            of_kind = TypeError if isinstance(error, TypeError) else ValueError
            raise of_kind(f"days[{number}]: {error}") from None
    check("scale", scale)
    given = None if alphas is None else check_alphas(alphas, zero=True)
    if len(sums) < 2:
        raise ValueError(f"days must hold at least two, got {len(sums)}")
    whole = reduce(add, statistics)  # days that cannot be added, or share a query, are an error
    total = whole._total
    path = total.decompose(scale=scale)
    grid = path.default_alphas() if given is None else np.sort(given)[::-1].copy()
    losses = held_out_losses(sums, path.factor, grid)
    means = losses.mean(axis=0)
    best = int(np.nanargmin(means))
    order = in_order_of(None if given is None else -given, len(grid))
    coefs, settings = path.coef(grid), total.settings.short
    model = kind(alphas, pairs=settings, scale=scale)
    model.pairs_, model.scale_, model.pairgram_ = settings, scale, whole
    model.coef_, model.coef_path_ = coefs[best].copy(), coefs[order]
    model.alphas_, model.alpha_ = grid[order], float(grid[best])
    model.scores_, model.best_score_ = means[order], float(means[best])
    model.best_index_ = int(np.argmax(order == best))
    table = Judged(means, losses.std(axis=0), losses).take(order)
    model.cv_results_ = search_results({"alpha": grid[order]}, table, table.means)
    _tell_of_sums(model, total)
    total.warn_of_narrow_columns(scale)
    return model


def _sums_of(pairgram: object, hint: str = "") -> PairSums:
    """Return the sums of a Pairgram; anything else is a TypeError."""
    total = getattr(pairgram, "_total", None)
    if not isinstance(total, PairSums):
        raise TypeError(f"pairgram must be a Pairgram, got {type(pairgram).__name__}{hint}")
    return total


def _require_pairs(total: PairSums) -> None:
    """Raise the ValueError of `fit` if statistics hold no pair that counts."""
    total.required()
    # The weight of tied pairs includes that of a row with itself, which is all of single rows.
    lists = 1 if total.settings.joins_all_rows else total.n_queries
    single = total.settings.kind is not None and total.n_rows <= lists
    if single or not total.pair_weight > 0:
        raise no_pairs(total.settings, total.n_rows)


def _tell_of_sums(model: BaseEstimator, total: PairSums) -> None:
    """Give a model of statistics what a fit to rows would tell beside its weights."""
    _require_pairs(total)
    model.feature_map, model.feature_map_ = (
        Chain.of_map(copy.deepcopy(total.feature_map)).filled_by(total.fill).value for _ in range(2)
    )
    if total.feature_map is None and total.settings.kind is not None:
        model._column_sums = total.column_sums(model.coef_)
    model.n_features_in_ = getattr(total.feature_map, "n_features_in_", total.n_features)
    if total.names is not None:
        model.feature_names_in_ = np.array(total.names, dtype=object)
    model.form_ = "primal"
    model.uses_qid_ = total.n_queries > 1
