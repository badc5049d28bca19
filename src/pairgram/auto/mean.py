"""The mean of several models that are linear in the columns of X or in their quantiles."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairgram._support.checks import Rows, Vector
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.features.row_values import WORDS, Chain
from pairgram.model_selection.judge import Judge
from pairgram.rankers.preparation import QUANTILES, Preparation
from pairgram.solvers.formulation import Coordinates

if TYPE_CHECKING:
    from pairgram.rankers.rank_rls import RankRLSCV


def mean_of_columns(
    members: Sequence[RankRLSCV],
    data: RankingData,
    preparation: Preparation,
    judge: Judge,
    held_rows: Rows | slice,
) -> tuple[RankRLSCV, float]:
    """Return a search whose model is the mean of the models of several.

    The deviation of its held-out scores, as in `Judged`, is returned beside it.

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
    held_out = np.array([np.asarray(one.held_out_)[held_rows] for one in members])
    spreads = np.array([_spread(scores, judge.scored) for scores in held_out])
    shares = np.divide(spreads[0], spreads, out=np.zeros(len(spreads)), where=spreads > 0)
    shares /= len(members)
    kinds = {Chain.of(one.feature_map_).kind for one in members}
    kind: Any = None
    if kinds & set(QUANTILES):
        kind = "quantile" if kinds == {"quantile"} else "raw+quantile"
    own = slice(
        data.X.shape[1] if kind == "quantile" else 0, data.X.shape[1] if kind is None else None
    )
    coef = np.sum([s * _weights(m, m.coef_)[own] for s, m in zip(shares, members, strict=True)], 0)
    judged = judge.judge(judge.shared(np.asarray(shares @ held_out)[None]))
    inputs = preparation.inputs(data, kind)
    settings = Pairs.of(first.pairs_)
    coordinates = Coordinates.of_features(preparation.with_map(data, None, inputs), [settings])
    sums = None
    if first._column_sums is not None:  # the columns have a Gram matrix
        total = coordinates.statistics(settings)
        sums = coordinates.column_sums(total, coef)
    mean = copy.copy(first)
    path = first.coef_path_
    chain = Chain.of(first.feature_map_)._replace(scaling=None)
    mean.feature_map = Chain(preparation.filler, WORDS.get(kind)).short
    fitted = {
        "coef_": coef,
        "coef_path_": path if path is None else _weights(first, path)[:, own],
        "feature_map_": (chain if inputs is None else chain.scaled(inputs)).value,
        "form_": "primal",
        "best_score_": float(judged.means[0]),
        "_column_sums": sums,
        "held_out_": judged.stored["_held"].of_rows(),
        "per_query_": judged.stored["_held"].per_query(),
    }
    mean.__dict__.update(fitted)
    return mean, float(judged.deviations[0])


def _weights(model: RankRLSCV, coef: Vector) -> Vector:
    """Return weights of the inputs of a model as weights of the columns, and of their quantiles."""
    inputs = Chain.of(model.feature_map_).inputs
    if inputs is not None and inputs.kind == "raw+quantile":
        return coef
    if inputs is not None and inputs.factors is not None:
        coef = coef * inputs.factors
    halves = (coef, np.zeros_like(coef))
    is_quantile = inputs is not None and inputs.kind == "quantile"
    return np.concatenate(halves[::-1] if is_quantile else halves, axis=-1)


def _spread(scores: Vector, data: RankingData) -> float:
    """Return the standard deviation of scores within queries."""
    index, weights = data.queries.index(), data.v
    totals = np.bincount(index, weights)
    sums = np.bincount(index, weights * scores)
    means = np.divide(sums, totals, out=np.zeros(len(totals)), where=totals > 0)
    return float(np.sqrt(np.average((scores - means[index]) ** 2, weights=weights)))
