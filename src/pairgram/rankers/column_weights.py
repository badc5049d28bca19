"""What the weights of a linear model mean: their importance, and contributions to scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pairgram._support.checks import Vector, require_finite
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.features.base import linear_nodes
from pairgram.rankers.row_scores import checked_rows
from pairgram.solvers.interface import ColumnSums


def input_weights(model: Any) -> Vector | None:
    """Return the weights of the columns of X, or of those of `inputs_`; None if there are none.

    Linear nodes have such weights, other feature maps and kernels do not.
    """
    if model.feature_map_ is None:
        return np.asarray(model.coef_)
    nodes = linear_nodes(model.feature_map_)
    return None if nodes is None else nodes.fold(model.coef_)[0]


def _required_weights(model: Any, what: str) -> Vector:
    if model.prior_ is not None:
        raise ValueError(
            f"{what} needs a model that is linear in the columns of X, but the scores of a "
            f"{type(model.prior_).__name__}, its prior, are added to this one's"
        )
    weights = input_weights(model)
    if weights is None:
        raise ValueError(
            f"{what} needs a model that is linear in the columns of X, got one with "
            f"{type(model.feature_map_).__name__}: its scores are not sums over columns"
        )
    return weights


def weights_of(model: Any, X: Any, qid: ArrayLike | None) -> dict[str, NDArray[Any]]:
    """Return the table of `LinearRanker.weights`."""
    weights = _required_weights(model, "weights")
    if X is None and qid is not None:
        raise ValueError("weights takes qid only together with X, the rows that have these ids")
    if X is not None:
        if qid is None and model.uses_qid_:
            raise ValueError(
                f"weights needs qid with X: this {type(model).__name__} was fitted with query ids"
            )
        found = _measured_on(model, X, qid, weights)
    elif model._column_sums is not None:
        found = model._column_sums
    else:
        raise ValueError(
            f"weights needs rows here, weights(X, qid=qid): the fit of this {type(model).__name__} "
            f"did not measure how much columns vary within queries, because {_why_not(model)}"
        )
    table = {
        "column": np.arange(len(weights)),
        "name": names_of(model),
        "weight": weights,
        "spread": found.spread,
        "importance": np.abs(weights) * found.spread,
        "share": found.share(weights),
    }
    order = np.argsort(-table["importance"], kind="stable")
    return {name: values[order] for name, values in table.items()}


def _why_not(model: Any) -> str:
    """Return why a fit did not measure its columns, as far as the model tells."""
    reasons = {
        "it starts from a prior": getattr(model, "prior", None) is not None,
        "it has nodes": model.feature_map_ is not None,
        "there are no pairs": getattr(model, "pairs_", getattr(model, "pairs", "")) is None,
        "it was solved in the dual form": getattr(model, "form_", "") == "dual",
    }
    other = (
        "it needed no Gram matrix of all pairs (small problems of fit_many, wide CSR rows), or "
        "started from a prior"
    )
    return next((reason for reason, holds in reasons.items() if holds), other)


def names_of(model: Any) -> NDArray[Any]:
    """Return `LinearRanker.column_names_`."""
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names
    return np.array(names if model.inputs_ is None else model.inputs_.names(names), object)


def _columns(model: Any, X: Any) -> Any:
    """Return the columns of rows that weights belong to; they are checked."""
    rows = checked_rows(model, X)
    require_finite(rows, "X")
    return rows if model.inputs_ is None else model.inputs_.values(rows, model.n_threads)


def _measured_on(model: Any, X: Any, qid: ArrayLike | None, weights: Vector) -> ColumnSums:
    """Measure the columns on given rows, where every pair of rows of a query counts once."""
    rows = _columns(model, X)
    data = RankingData.delimit(rows, np.zeros(rows.shape[0]), qid)
    squares, products = np.zeros((2, len(weights)))
    for block in data.blocks(PairSettings()):
        inner = np.unique(data.queries.index()[block.rows], return_inverse=True)[1]
        sizes = np.bincount(inner)
        members = scipy.sparse.csr_array((np.ones(len(inner)), (inner, np.arange(len(inner)))))
        centred = block.X - (members @ block.X / sizes[:, None])[inner]
        weighted = sizes[inner][:, None] * centred
        squares += np.einsum("ij,ij->j", weighted, centred)
        products += weighted.T @ (centred @ weights)
    pair_weight = float((data.queries.sizes.astype(np.float64) ** 2).sum())
    return ColumnSums(squares, products, pair_weight)


def contributions_of(model: Any, X: Any) -> Any:
    """Return the matrix of `LinearRanker.contributions`."""
    weights = _required_weights(model, "contributions")
    rows = _columns(model, X)
    if scipy.sparse.issparse(rows):
        return scipy.sparse.csr_array(rows, dtype=np.float64) @ scipy.sparse.diags_array(weights)
    return rows * weights
