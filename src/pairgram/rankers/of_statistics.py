"""Models that are made of statistics alone, or of those of several days."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import reduce
from numbers import Real
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from pairgram._support.arrays import check_alphas
from pairgram._support.checks import Vector
from pairgram._support.parameters import check, check_size
from pairgram.data.pairs import no_pairs
from pairgram.features.row_values import Chain
from pairgram.model_selection.judge import Judged, as_list, search_results
from pairgram.solvers.constraint import Constraint
from pairgram.solvers.days import JudgedDays
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
    kind: type[_Ranker],
    days: Iterable[Pairgram],
    alphas: ArrayLike | None,
    *,
    decays: float | Sequence[float] | None,
    skip: int,
    scale: bool,
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
    check_size("skip", skip)
    given = None if alphas is None else check_alphas(alphas, zero=True)
    listed = _listed(decays)
    if len(sums) < (2 if decays is None else skip + 1):
        wanted = "two" if decays is None else f"{skip + 1} with skip={skip}"
        raise ValueError(f"days must hold at least {wanted}, got {len(sums)}")
    whole = sum(statistics)  # days that cannot be added, or share a query, are an error
    grid = None if given is None else np.sort(given)[::-1].copy()
    judged = [
        JudgedDays.in_turn(sums, grid, scale)
        if decay is None
        else JudgedDays.forward(sums, grid, scale, decay, skip)
        for decay in listed
    ]
    settings = judged[0].total.settings
    model = kind(alphas, pairs=settings.short, scale=scale)
    model.pairs_, model.scale_ = settings.short, scale
    chosen = _choose(model, judged, listed, given)
    _tell_of_sums(model, chosen.total)
    chosen.total.warn_of_narrow_columns(scale)
    if model.decay_ is not None:
        whole = reduce(lambda before, day: model.decay_ * before + day, statistics)
    model.pairgram_ = whole
    return model


def _listed(decays: float | Sequence[float] | None) -> list[float | None]:
    """Check the decays to choose from; None stands for days without an order."""
    if decays is None:
        return [None]
    listed = as_list(decays, "decays")
    for decay in listed:
        if not (isinstance(decay, Real) and 0 < float(decay) <= 1):
            raise ValueError(f"decays must be > 0 and <= 1, got {decay!r}")
    return [*map(float, listed)]


def _choose(
    model: BaseEstimator,
    judged: Sequence[JudgedDays],
    decays: Sequence[float | None],
    given: Vector | None,
) -> JudgedDays:
    """Tell a model the best ridge and decay, and what was found for the others; return the best."""
    means = np.concatenate([one.losses.mean(axis=0) for one in judged])
    best = int(np.nanargmin(means))
    chosen, at = judged[best // len(judged[0].alphas)], best % len(judged[0].alphas)
    order = np.arange(len(chosen.alphas))
    if given is not None:
        order = np.argsort(np.argsort(-given, kind="stable"), kind="stable")
    path = chosen.path.coef(chosen.alphas)
    model.coef_, model.coef_path_ = path[at].copy(), path[order]
    model.alphas_, model.alpha_ = chosen.alphas[order], float(chosen.alphas[at])
    model.scores_ = chosen.losses.mean(axis=0)[order]
    model.decay_ = decays[best // len(order)]
    model.best_score_ = float(means[best])
    rows = (len(order) * np.arange(len(judged))[:, None] + order).ravel()
    model.best_index_ = int(np.argmax(rows == best))
    columns = {"alpha": np.concatenate([one.alphas for one in judged])[rows]}
    if model.decay_ is not None:
        columns["decay"] = np.repeat(np.array(decays, np.float64), len(order))
    losses = np.hstack([one.losses for one in judged])
    table = Judged(means, losses.std(axis=0), losses).take(rows)
    model.cv_results_ = search_results(columns, table, table.means)
    return chosen


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
