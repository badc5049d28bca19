"""The mean of several models that are linear in the columns of X or in their quantiles."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.checks import Rows, Vector
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.features.inputs import QuantileInputs
from pairgram.model_selection.judge import Judge
from pairgram.rankers.preparation import Preparation
from pairgram.solvers.formulation import Coordinates

if TYPE_CHECKING:
    from pairgram.rankers.rank_rls import RankRLSCV


def mean_of_columns(
    members: Sequence[RankRLSCV],
    data: RankingData,
    preparation: Preparation,
    judge: Judge,
    held_rows: Rows | slice,
) -> RankRLSCV:
    """Return a search whose model is the mean of the models of several, with its held-out scores.

    Parameters
    ----------
    members : list of RankRLSCV
        Fitted to the same rows, with stored held-out scores. All that is told of settings and
        ridges is that of the first.
    data : RankingData
        The rows.
    preparation : Preparation
    judge : Judge
        How the rows were held out.
    held_rows : ndarray of int64 or slice
        The numbers of the held-out rows of the judge in `held_out_`.

    Notes
    -----
    Models are divided by the standard deviation of their held-out scores within queries, and then
    multiplied by that of the first. The scores of every held-out row are those of models without
    it, so that their mean is held out as well.
    """
    first = members[0]
    held_out = [one.held_out_ for one in members]
    spreads = np.array([_spread(scores[held_rows], judge.scored) for scores in held_out])
    shares = np.divide(spreads[0], spreads, out=np.zeros(len(spreads)), where=spreads > 0)
    shares /= len(members)
    parts = [_parts(one, one.coef_) for one in members]
    raw = _sum(shares, [part[0] for part in parts])
    quantile = _sum(shares, [part[1] for part in parts])
    kind = None if quantile is None else "quantile" if raw is None else "raw+quantile"
    mean: RankRLSCV = copy.copy(first)
    mean.inputs = kind
    width = data.X.shape[1]

    def joined(one: Vector | None, other: Vector | None) -> Vector:
        """Return weights of the columns of the mean."""
        shape = (one if one is not None else other).shape[:-1] + (width,)  # type: ignore[union-attr]
        wanted = [raw is not None, quantile is not None]
        pieces = [np.zeros(shape) if part is None else part for part in (one, other)]
        return np.concatenate([p for p, is_there in zip(pieces, wanted, strict=True) if is_there], -1)

    inputs = preparation.inputs(data, kind)
    with_inputs = preparation.with_map(data, inputs)
    settings = PairSettings(first.pairs_, target=first.target_)
    coordinates = Coordinates.of_features(with_inputs, [settings])
    coef = joined(raw, quantile)
    sums = coordinates.column_sums(coordinates.statistics(settings, preparation.n_threads), coef)
    scores = _sum(shares, [scores[held_rows] for scores in held_out])
    assert scores is not None
    judged = judge.judge(judge.shared(scores[None]))
    fitted: dict[str, Any] = {
        "coef_": coef,
        "coef_path_": joined(*_parts(first, first.coef_path_)),
        "inputs_": inputs,
        "form_": "primal",
        "best_score_": float(judged.means[0]),
        "_column_sums": sums,
        **judged.stored,
    }
    vars(mean).update(fitted)
    return mean


def _parts(model: RankRLSCV, coef: Vector) -> tuple[Vector | None, Vector | None]:
    """Return what weights of the inputs of a model are as weights of columns and of quantiles."""
    inputs = model.inputs_
    if isinstance(inputs, QuantileInputs):
        width = inputs.n_features_in_
        return (coef[..., :-width] if coef.shape[-1] > width else None), coef[..., -width:]
    return (coef if inputs is None else coef * inputs.factors), None


def _sum(shares: Vector, parts: Sequence[Vector | None]) -> Vector | None:
    given = [share * part for share, part in zip(shares, parts, strict=True) if part is not None]
    return np.sum(given, axis=0) if given else None


def _spread(scores: Vector, data: RankingData) -> float:
    """Return the standard deviation of scores within queries."""
    index, weights = data.queries.index(), data.v
    totals = np.bincount(index, weights)
    sums = np.bincount(index, weights * scores)
    means = np.divide(sums, totals, out=np.zeros(len(totals)), where=totals > 0)
    return float(np.sqrt(np.average((scores - means[index]) ** 2, weights=weights)))
