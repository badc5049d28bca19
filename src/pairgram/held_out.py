"""Scores of rows by models that have not seen them, for a whole ridge path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram import _core
from pairgram._threads import resolve_n_threads, single_threaded_blas
from pairgram.gram import Pairgram, RankingData
from pairgram.pairs import PairSettings
from pairgram.queries import Queries
from pairgram.ridge import RidgePath, Vector, scale_factors
from pairgram.sparse import dense_blocks

__all__ = ["leave_query_out", "leave_row_out", "predict_path", "split_scores"]

Rows = NDArray[np.int64]
MAX_REFIT_FLOPS = 1e11


def leave_query_out(
    data: RankingData,
    total: Pairgram,
    factor: Vector | None,
    alphas: Vector,
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row by the model fitted without its query, (n_alphas, n_rows).

    Exact, from one eigendecomposition of the whole data's statistics; for ``scope="global"`` by
    subtracting each query's rows (pairs kept) or by refitting.

    Parameters
    ----------
    data : RankingData
    total : Pairgram
        The statistics of all rows.
    factor : ndarray of shape (n_features,) or None
        Feature scaling, held fixed.
    alphas : ndarray of shape (n_alphas,), descending, > 0
    n_threads : int or None

    Raises
    ------
    ValueError
        If refitting would be needed and would take too long.
    """
    settings = total.settings
    if settings.scope == "global" and settings.pairs is not None:
        queries = data.queries
        _refuse_long_refits(data, queries.n_queries, "leave-query-out with scope='global'")
        scores = np.empty((len(alphas), len(data.y)))
        rows = np.arange(len(data.y))
        for query in range(queries.n_queries):
            test = rows[queries.rows(query)]
            ridge = _decompose_without(data, total, test, factor, n_threads)
            scores[:, test] = predict_path(data.X[test], ridge.coef(alphas))
        return scores
    ridge = RidgePath.of(total.G, total.g, factor)
    return _exact(data, settings, ridge, alphas, n_threads)


def leave_row_out(
    data: RankingData,
    total: Pairgram,
    factor: Vector | None,
    alphas: Vector,
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row of one query by the model fitted without the row.

    Models without each row have different origins, so pairwise scores are taken from the training
    mean: ``wᵀ(x_i − mean(X)) + mean(y)`` over the other rows. Shape (n_alphas, n_rows).

    With pairs kept, one pairwise query is ridge regression with an unpenalised intercept at
    ``alpha / (V − v_i)``, whose leave-one-out residual is exact by the hat matrix; pointwise rows
    likewise without the intercept. Otherwise every row is a refit.

    Raises
    ------
    ValueError
        If refitting would be needed and would take too long.
    """
    settings = total.settings
    if settings.pairs is None:
        return _leave_pointwise_row_out(data, total, factor, alphas, n_threads)
    if settings.kind == "kept":
        return _leave_kept_row_out(data, total, factor, alphas)
    n_rows = len(data.y)
    _refuse_long_refits(data, n_rows, f"leave-row-out with pairs={settings.pairs!r}")
    scores = np.empty((len(alphas), n_rows))
    rows = np.arange(n_rows)
    y, v = settings.targets(data.y), _row_weights(data)
    for row in rows:
        test = rows[row : row + 1]
        coefs = _decompose_without(data, total, test, factor, n_threads).coef(alphas)
        others = np.where(rows == row, 0.0, v)
        share = others / others.sum() if others.sum() > 0 else others
        origin = coefs @ (share @ data.X)
        scores[:, row] = predict_path(data.X[test], coefs)[:, 0] - origin + share @ y
    return scores


def split_scores(
    data: RankingData,
    total: Pairgram,
    splits: Iterable[tuple[Rows, Rows]],
    scale: bool,
    alphas: Vector,
    n_threads: int | None = None,
) -> list[Vector]:
    """Return the scores of every split's test rows by the path of its training rows.

    A split whose test rows are whole queries, and whose training rows are all the others, costs
    only the statistics of its test rows, which are subtracted from those of all.
    """
    results = []
    for train, test in splits:
        rest = _statistics_of(data, total, np.asarray(train), np.asarray(test), n_threads)
        G = rest.G
        ridge = RidgePath.of(G, rest.g, scale_factors(G) if scale else None)
        results.append(predict_path(data.X[np.asarray(test)], ridge.coef(alphas)))
    return results


def _exact(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None,
) -> Vector:
    threads = resolve_n_threads(n_threads)
    scores = np.empty((len(alphas), len(data.y)))
    with single_threaded_blas():
        for rows, block in dense_blocks(data):
            arguments, named = block.kernel_arguments(settings)
            block_scores = _core.leave_query_out(
                *arguments,
                **named,
                basis=ridge.basis,
                eigenvalues=ridge.eigenvalues,
                projection=ridge.projection,
                alphas=alphas,
                n_threads=threads,
            )
            if isinstance(rows, slice):
                return block_scores
            scores[:, rows] = block_scores
    return scores


def _leave_pointwise_row_out(
    data: RankingData,
    total: Pairgram,
    factor: Vector | None,
    alphas: Vector,
    n_threads: int | None,
) -> Vector:
    """Every row as a query of its own: pointwise statistics are additive over rows."""
    weights = _row_weights(data)
    if total.settings.weighting == "queries" and weights.sum() > 0:
        weights = weights / weights.sum()
    if data.query_weights is not None:
        weights = weights * data.query_weights[0]
    n_rows = len(data.y)
    rows = replace(
        data, queries=Queries(np.arange(n_rows + 1)), row_weights=weights, query_weights=None
    )
    ridge = RidgePath.of(total.G, total.g, factor)
    return _exact(rows, replace(total.settings, weighting="pairs"), ridge, alphas, n_threads)


def _leave_kept_row_out(
    data: RankingData, total: Pairgram, factor: Vector | None, alphas: Vector
) -> Vector:
    """Ridge with an intercept, centred: h_ii = v_i (1/V + z_iᵀ (Λ + λ_i)^-1 z_i), in blocks."""
    settings, v = total.settings, _row_weights(data)
    weight = v.sum()
    n_rows = len(data.y)
    if weight == 0:
        return np.zeros((len(alphas), n_rows))
    query_weight = 1.0 if data.query_weights is None else float(data.query_weights[0])

    def objective_factor(total_weight: Vector) -> Vector:
        inverse = np.divide(
            1.0, total_weight, out=np.zeros_like(total_weight), where=total_weight > 0
        )
        powers = {"pairs": total_weight, "documents": np.ones_like(inverse), "queries": 2 * inverse}
        return query_weight * powers[settings.weighting]

    full = float(objective_factor(np.array([weight]))[0])
    if full == 0:
        return np.zeros((len(alphas), n_rows))
    ridge = RidgePath.of(total.G / full, total.g / full, factor)
    y = settings.targets(data.y)
    mean_x, mean_y = v @ data.X / weight, float(v @ y / weight)
    without = np.where(weight - v > 1e-14 * weight, weight - v, 0.0)
    factors = objective_factor(without)
    scores = np.empty((len(alphas), n_rows))
    step = max(1, (32 << 20) // (8 * len(ridge.eigenvalues)))
    for begin in range(0, n_rows, step):
        rows = slice(begin, min(begin + step, n_rows))
        X = data.X[rows].toarray() if scipy.sparse.issparse(data.X) else data.X[rows]
        z = (X - mean_x) @ ridge.basis
        squares, products = z * z, z * ridge.projection
        for i, alpha in enumerate(alphas):
            ridges = np.divide(
                alpha, factors[rows], out=np.full(len(z), np.inf), where=factors[rows] > 0
            )
            inverse = 1 / (ridge.eigenvalues + ridges[:, None])
            fit = np.einsum("ij,ij->i", products, inverse) + mean_y
            leverage = v[rows] * (1 / weight + np.einsum("ij,ij->i", squares, inverse))
            left = np.maximum(1 - leverage, np.finfo(np.float64).tiny)
            held_out = (fit - leverage * y[rows]) / left
            scores[i, rows] = np.where(factors[rows] > 0, held_out, 0.0)
    return scores


def _decompose_without(
    data: RankingData,
    total: Pairgram,
    test: Rows,
    factor: Vector | None,
    n_threads: int | None,
) -> RidgePath:
    train = np.setdiff1d(np.arange(len(data.y)), test)
    if len(train) == 0:
        zeros = np.zeros(data.X.shape[1])
        return RidgePath.of(np.diag(zeros), zeros, factor)
    rest = _statistics_of(data, total, train, test, n_threads)
    return RidgePath.of(rest.G, rest.g, factor)


def _statistics_of(
    data: RankingData, total: Pairgram, train: Rows, test: Rows, n_threads: int | None
) -> Pairgram:
    """Return the statistics of the training rows, by subtraction where that is exact."""
    n_rows = len(data.y)
    complement = (
        len(train) + len(test) == n_rows
        and (np.bincount(np.concatenate((train, test)), minlength=n_rows) == 1).all()
    )
    if complement and len(test) < len(train) and _is_subtractable(data, total.settings, test):
        return total - Pairgram._of(data.take(test), total.settings, n_threads)
    return Pairgram._of(data.take(train), total.settings, n_threads)


def _is_subtractable(data: RankingData, settings: PairSettings, test: Rows) -> bool:
    if settings.pairs is None and settings.weighting != "queries":
        return True
    if settings.scope == "global" and settings.pairs is not None:
        return settings.kind == "kept"
    counts = np.bincount(data.queries.index()[test], minlength=data.queries.n_queries)
    return bool(((counts == 0) | (counts == data.queries.sizes)).all())


def predict_path(X: Any, coefs: Vector) -> Vector:
    """Return the scores of the rows of X by every model of a path, (n_alphas, n_rows)."""
    return np.ascontiguousarray((X @ coefs.T).T, dtype=np.float64)


def _row_weights(data: RankingData) -> Vector:
    return np.ones(len(data.y)) if data.row_weights is None else data.row_weights


def _refuse_long_refits(data: RankingData, n_refits: int, what: str) -> None:
    n_rows, n_features = data.X.shape
    flops = float(n_refits) * n_features**2 * (n_rows + 10 * n_features)
    if flops > MAX_REFIT_FLOPS:
        raise ValueError(
            f"{what} needs {n_refits} refits of {n_rows} rows and {n_features} features "
            f"({flops:.0e} flops, at most {MAX_REFIT_FLOPS:.0e}): give cv a splitter such as "
            "QueryKFold, or a validation set"
        )
