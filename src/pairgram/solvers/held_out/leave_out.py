"""Score rows by models that have not seen them, for all alphas of a ridge path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.features.base import linear_nodes, score_features
from pairgram.features.input_map import factors_of
from pairgram.solvers.held_out.dual_rows import scores_without_folds
from pairgram.solvers.held_out.row_regression import RowRegression
from pairgram.solvers.interface import Statistics
from pairgram.solvers.ridge_path import RidgePath

# Refits that would take more flops than this are refused.
MAX_REFIT_FLOPS = 1e11

TWO_QUERIES = "leave-query-out needs two queries with pairs, one to fit to and one to hold out"
INSTEAD = "; give cv a splitter, or fit a validation set"


def leave_query_out(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    statistics: Callable[[], Statistics],
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row by the model fitted without its query, (n_alphas, n_rows).

    The scores come from one decomposition of the statistics of all rows. With
    ``scope="global"`` each query's rows are subtracted (kept pairs), or the model is refitted.
    A score is NaN if it would be rounding error. This happens if alpha is below 1e-10 of the
    largest eigenvalue, in a direction that only the query has.

    Parameters
    ----------
    data : RankingData
    settings : PairSettings
    ridge : RidgePath
        The decomposition of the statistics of all rows. Its feature scaling is kept.
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    statistics : callable
        Returns the statistics of all rows. Only refits need them.
    n_threads : int or None

    Raises
    ------
    ValueError
        If no query, or only one, has pairs.
    """
    require_leave_query_out(data, settings)
    if settings.joins_all_rows:
        return _leave_global_query_out(data, statistics(), ridge, alphas, n_threads)
    if ridge.is_dual:
        folds = data.rows_of_queries()
        return scores_without_folds(data, settings, ridge, folds, alphas, n_threads)
    return scores_in_primal(data, settings, ridge, alphas, n_threads)


def scores_in_primal(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None = None,
) -> Vector:
    """Return `leave_query_out` of some of the queries that `ridge` is the path of.

    `ridge` is in primal form, and pairs are formed within queries.
    """
    basis = ridge.basis
    nodes = linear_nodes(data.feature_map)
    if nodes is not None and settings.pairs is not None:  # offsets cancel in differences
        data, basis = replace(data, feature_map=nodes.before), nodes.weights @ basis
    elif settings.pairs is not None and (factors := factors_of(data.feature_map)) is not None:
        data, basis = replace(data, feature_map=None), factors[:, None] * basis
    basis = np.ascontiguousarray(basis)
    scores = np.empty((len(alphas), len(data.y)))
    with single_threaded_blas():
        for block in data.blocks(settings):
            block_scores = _core.leave_query_out(
                block.problem,
                block.X,
                block.targets,
                basis=basis,
                eigenvalues=ridge.eigenvalues,
                projection=ridge.projection,
                alphas=alphas,
                map=block.node_map,
                n_threads=resolve_n_threads(n_threads),
            )
            if isinstance(block.rows, slice):
                return block_scores
            scores[:, block.rows] = block_scores
    return scores


def require_leave_query_out(data: RankingData, settings: PairSettings) -> None:
    """Raise the ValueError of `leave_query_out`; only the labels are looked at."""
    if settings.joins_all_rows:
        return
    if data.has_pairs(settings).sum() < 2:
        raise ValueError(TWO_QUERIES + INSTEAD)


def leave_row_out(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    statistics: Callable[[], Statistics],
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row of one query by the model fitted without the row.

    The result has shape (n_alphas, n_rows). The parameters are those of `leave_query_out`.

    Models without each row have different origins. The score of a row is therefore
    ``wᵀ(x_i − mean(X))``, with the mean over the other rows. (The mean label of the other rows is
    not added. It falls as the label of the row left out rises, and would reverse the order of the
    rows if the ridge is large.) The mean offset of the other rows is subtracted as well.

    With kept pairs, one query is ridge regression at ``alpha / (V − v_i)`` with an intercept that
    has no ridge, and the hat matrix gives its exact leave-one-out residuals. For pointwise rows the
    same holds without the intercept. For other pairs, the model is refitted for every row.
    """
    if settings.kind in ("none", "kept"):
        return RowRegression.of(data, settings, ridge).leave_one_out(alphas)
    total, n_rows = statistics(), len(data.y)
    scores = np.empty((len(alphas), n_rows))
    rows = np.arange(n_rows)
    v, features = data.v, data.features()
    for row in rows:
        test = rows[row : row + 1]
        rest = total.without(data, np.delete(rows, row), test, n_threads)
        coefs = rest.path_at(ridge.factor).coef(alphas)
        others = np.where(rows == row, 0.0, v)
        share = others / others.sum() if others.sum() > 0 else others
        origin = coefs @ (share @ features)
        if data.offset is not None:
            origin += share @ data.offset
        scores[:, row] = score_features(data.features(test), coefs, n_threads)[:, 0] - origin
    return scores


def split_scores(
    data: RankingData,
    total: Statistics,
    splits: Iterable[tuple[Rows, Rows]],
    coefs_of: Callable[[Any], Vector],
    n_threads: int | None = None,
) -> list[Vector]:
    """Return the scores of every split's test rows by models of its training rows.

    If the test rows of a split are whole queries and the training rows are all other rows, only the
    statistics of the test rows are computed, and subtracted from those of all rows.

    Parameters
    ----------
    data : RankingData
    total : Pairgram or DualGram
        The statistics of all rows.
    splits : iterable of (training rows, test rows)
    coefs_of : callable
        Takes the statistics of the training rows, and returns models of shape (n_models,
        n_features).
    n_threads : int or None

    Returns
    -------
    list of ndarray of shape (n_models, n_test_rows), float64

    Raises
    ------
    ValueError
        If the training rows of a split have no pairs that count.
    """
    results = []
    for number, (train, test) in enumerate(splits):
        data.require_training_pairs(total.settings, number, train)
        rest = total.without(data, train, test, n_threads)
        results.append(data.scores(test, coefs_of(rest), n_threads))
    return results


def _leave_global_query_out(
    data: RankingData,
    total: Statistics,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None,
) -> Vector:
    scores = np.empty((len(alphas), len(data.y)))
    rows = np.arange(len(data.y))
    for test in data.rows_of_queries():
        rest = total.without(data, np.setdiff1d(rows, test), test, n_threads)
        coefs = rest.path_at(ridge.factor).coef(alphas)
        scores[:, test] = data.scores(test, coefs, n_threads)
    return scores


def flops_of_refits(n_rows: int, n_features: int, settings: PairSettings, n_refits: int) -> float:
    """Return the approximate number of flops of fitting a model `n_refits` times."""
    # With kept pairs all rows are read only once, since held-out rows are subtracted.
    rows_read = n_rows if settings.kind == "kept" else n_refits * n_rows
    return float(n_features) ** 2 * (rows_read + n_refits * 10.0 * n_features) if n_refits else 0.0


def refuse_long_refits(data: RankingData, settings: PairSettings, n_refits: int, what: str) -> None:
    """Raise a ValueError if refits would take more than `MAX_REFIT_FLOPS`."""
    n_rows, n_features = len(data.y), data.n_features
    flops = flops_of_refits(n_rows, n_features, settings, n_refits)
    if flops > MAX_REFIT_FLOPS:
        raise ValueError(
            f"{what} needs {n_refits} refits of {n_rows} rows and {n_features} features "
            f"({flops:.0e} flops, at most {MAX_REFIT_FLOPS:.0e}): give cv a splitter such as "
            "QueryKFold, or fit a validation set"
        )
