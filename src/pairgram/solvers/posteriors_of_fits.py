"""The posteriors of fits: the covariance of a model, and the noise of its labels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import scipy.linalg

from pairgram._support.arrays import blocks
from pairgram._support.checks import ArgumentError, Vector
from pairgram._support.machine import require, single_threaded_blas
from pairgram.data.dataset import RankingData, apply_half_laplacian
from pairgram.data.pairs import PairSettings
from pairgram.solvers.dual_gram import DualGram, inverse_root
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.hold_out import leave_query_out
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.posterior import Kind, Posterior, triangular
from pairgram.solvers.statistics import degrees_of_labels

# Features of training rows are averaged in blocks of so many rows.
ROWS_AT_ONCE = 4096


def posterior_of(
    given: RankingData | None,
    coordinates: Coordinates,
    settings: PairSettings,
    alpha: float,
    scale: bool,
    coef: Vector,
    *,
    kernel: bool,
) -> Posterior:
    """Return the posterior of a model that was fitted to rows.

    Parameters
    ----------
    given : RankingData or None
        The rows with the feature map of the model. None if there are statistics alone.
    coordinates : Coordinates
        Those in which the model was solved.
    settings : PairSettings
    alpha : float
    scale : bool
    coef : ndarray of shape (n_coefs,)
        The coefficients, without those of a prior.
    kernel : bool
        Whether the ridge is on the norm in the space of a kernel.

    Raises
    ------
    ValueError
        If the labels make the weights of pairs; or if the model has constraints or no ridge, or was
        found by conjugate gradients.
    MemoryError
        If the matrix does not fit into memory.
    """
    _refuse(coordinates, settings, alpha)
    if given is None:
        total = coordinates.statistics(settings)
        assert isinstance(total, PairSums)
        found = posterior_of_sums(total, alpha, scale=scale)
        return replace(found, root=triangular(coordinates.coefs(found.root)))
    rows, is_dual = coordinates.data, coordinates.name == "dual"
    order = len(rows.y) if coordinates.form == "dual" else rows.n_features
    require(f"the covariance of {order} unknowns", 32.0 * order**2, "take fewer features or rows")
    total = coordinates.statistics(settings)
    factor = total.scale_factors() if scale and isinstance(total, PairSums) else None
    fitted = given.scores(slice(None), coef[None])[0]
    if given.preferences is not None:
        fitted = given.preferences.differences(fitted)
    left = _without_own_list(coordinates, settings, alpha, scale)
    labelled = rows.as_scope(settings)
    targets, problem = labelled.target(settings), labelled.problem(settings)
    # Without a held-out list the noise is that of the restricted likelihood.
    rooted = [
        apply_half_laplacian(problem, targets - scores)
        for scores in (np.zeros(len(fitted)) if left is None else left, fitted)
    ]
    rank, weight, mean_weight = degrees_of_labels(labelled, settings)
    noise = max(float(rooted[0] @ rooted[1]) / max(rank, 1), 0.0)
    # A margin is the difference of two labels.
    weight = weight and (weight if given.preferences is None else 2 * weight)
    label_noise = None if weight is None else noise / weight
    if isinstance(total, DualGram):
        root = total.covariance_root(alpha)
    elif is_dual:
        root = _explained_root(total.G, alpha)
    else:
        root = _root_of_inverse(total, alpha, factor)
    mean, shares = _mean_of(given, settings, kernel)
    return Posterior(
        triangular(coordinates.coefs(root)),
        noise,
        1 / alpha if is_dual else 0.0,
        label_noise,
        mean,
        shares if kernel else None,
        kind="approximate" if weight is None else "exact",
        list_weight=mean_weight,
    )


def posterior_of_sums(
    total: PairSums,
    alpha: float,
    *,
    scale: bool,
    prior: Vector | None = None,
) -> Posterior:
    """Return the posterior of a model of statistics alone, as those of a table.

    The noise is that of the restricted likelihood, ``(yᵀLy − gᵀw) / (N − q)`` for N rows of q
    lists, where rows of statistics that were multiplied by a number count so many times. The mean
    of the rows is not known. With weights `prior` to start from, y is what these leave of it.
    """
    settings = total.settings
    _refuse_settings(settings, alpha)
    root = _root_of_inverse(total, alpha, total.scale_factors() if scale else None)
    given = total
    if prior is not None:
        basis = np.eye(len(prior) + 1)
        basis[:-1, -1] = -prior
        total = replace(total, sums=basis.T @ total.required() @ basis)
    sums, coef = total.factor * total.required(), total.solve(alpha, scale=scale)
    degrees, weight = total.noise_degrees, total.list_weight
    noise = max(float(sums[-1, -1] - sums[:-1, -1] @ coef), 0.0) / max(degrees, 1.0)
    given.warn_of_digits(noise * degrees)
    kind: Kind = "approximate" if weight is None else "exact"
    of_margins = total.n_queries == 0
    label_noise = None if weight is None else noise / (2 * weight if of_margins else weight)
    # Pairs weigh as much as their rows times the weight of the list, and of n rows 1 is its own.
    rows = (degrees + settings.joins_all_rows) * total.n_rows / max(total.n_rows - total.n_lists, 1)
    mean_weight = weight or total.pair_weight / max(rows, 1.0) or 1.0
    return Posterior(root, noise, 0.0, label_noise, kind=kind, list_weight=mean_weight)


def _refuse(coordinates: Coordinates, settings: PairSettings, alpha: float) -> None:
    """Raise a ValueError if there is no posterior."""
    _refuse_settings(settings, alpha)
    if coordinates.constraints is not None:
        raise constrained_posterior()
    if coordinates.iterate:
        raise ArgumentError(
            "keep_covariance",
            "must be False where conjugate gradients solve, without the matrix that it needs",
        )


def constrained_posterior() -> ValueError:
    """Return the error of a posterior under constraints."""
    return ArgumentError(
        "keep_covariance",
        "must be False with positive, l1_ratio or n_nonzero_coefs, under which weights are not "
        "Gaussian",
    )


def _refuse_settings(settings: PairSettings, alpha: float) -> None:
    if not alpha > 0:
        raise ArgumentError("keep_covariance", f"needs alpha > 0, got alpha={alpha:g}")
    if settings.kind not in ("kept", "none"):
        raise ArgumentError(
            "keep_covariance",
            f"must be False with pairs={settings.pairs!r}, where the labels make the "
            "weights, so that no model of their noise fits: or take pairs='with_ties'",
        )


def _without_own_list(
    coordinates: Coordinates, settings: PairSettings, alpha: float, scale: bool
) -> Vector | None:
    """Return the scores of rows by models without their list; None where there is one list."""
    rows = coordinates.data
    filled = rows.has_pairs(settings)
    if settings.joins_all_rows or np.count_nonzero(filled) < 2:
        return None
    if rows.group_of is not None and len(np.unique(rows.group_of[filled])) < 2:
        return None
    total = coordinates.statistics(settings)
    ridge = total.decompose(scale=scale, basis=coordinates.form == "primal")
    statistics = partial(coordinates.statistics, settings)
    scores = leave_query_out(rows, settings, ridge, np.array([alpha]), statistics)[0]
    return scores if np.isfinite(scores).all() else None


def _root_of_inverse(total: PairSums, alpha: float, factor: Vector | None) -> Vector:
    """Return a triangular A with ``AᵀA = (G + alpha I)⁻¹``, where features are scaled by factor."""
    G = total.G if factor is None else factor[:, None] * total.G * factor
    G = np.array(G)
    G[np.diag_indices_from(G)] += alpha
    root = np.ascontiguousarray(inverse_root(G))
    return root if factor is None else root * factor


def _explained_root(G: Vector, alpha: float) -> Vector:
    """Return A with ``AᵀA = (I − alpha (G + alpha I)⁻¹) / alpha``."""
    with single_threaded_blas:
        values, vectors = scipy.linalg.eigh(G, check_finite=False)
    values = np.maximum(values, 0.0)
    return np.sqrt(values / (values + alpha) / alpha)[:, None] * vectors.T


def _mean_of(data: RankingData, settings: PairSettings, kernel: bool) -> tuple[Vector, Vector]:
    """Return the weighted mean of the features of the rows that count, and the shares of rows."""
    if data.preferences is not None:
        weights = data.preferences.counts(len(data.y))
    else:
        counts = data.has_pairs(settings) | settings.joins_all_rows
        weights = np.where(counts[data.queries.index()], data.v, 0.0)
    shares, mean = weights / weights.sum(), np.zeros(data.n_features)
    if kernel:  # of which the matrix is symmetric
        return data.scores(slice(None), shares[None])[0], shares
    for part in blocks(len(shares), ROWS_AT_ONCE):
        mean += data.features(part).T @ shares[part]
    return mean, shares
