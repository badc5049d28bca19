"""`posterior`: solve the problem of a fitted model again, for its covariance and its noise."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import blocks
from pairgram._support.checks import ArgumentError, Vector
from pairgram._support.machine import require, single_threaded_blas
from pairgram.certainty.evidence import degrees_of_labels
from pairgram.certainty.posterior import Posterior
from pairgram.data.dataset import RankingData, RowInfo, apply_half_laplacian
from pairgram.data.pairs import Pairs
from pairgram.data.streams import as_stream
from pairgram.features.feature_map import is_kernel
from pairgram.features.inputs import prepared_as
from pairgram.features.kernel_map import with_support, with_support_of
from pairgram.features.kernels import is_precomputed
from pairgram.features.row_values import Chain
from pairgram.rankers.preparation import GivenArrays
from pairgram.rankers.rank_rls import RankRLS, RankRLSCV
from pairgram.rankers.ridge import RidgeSpec
from pairgram.rankers.scores import checked_rows
from pairgram.solvers.dual_gram import DualGram
from pairgram.solvers.formulation import Coordinates
from pairgram.solvers.hold_out import leave_query_out
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.pairgram import Pairgram

if TYPE_CHECKING:
    from pairgram._support.types import RowsLike

# Features of training rows are averaged in blocks of so many rows.
ROWS_AT_ONCE = 4096
# Scores by the model and by the solution of its rows may differ by this share of the largest.
ALIKE = 1e-6


def posterior(
    model: RankRLS | RankRLSCV,
    X: RowsLike | Pairgram,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Posterior:
    """Return how sure the scores of a fitted model are, given the labels that it was fitted to.

    It solves the problem of the model once more, which takes as long as a fit, and keeps
    n_features² numbers, or n_support² with a kernel.

    Parameters
    ----------
    model : fitted RankRLS or RankRLSCV
        Of a search, the chosen settings count; that labels have chosen them is ignored.
    X : array-like or CSR matrix of shape (n_rows, n_features), table of `scan`, or Pairgram
        The rows, the table or the statistics that the model was fitted to.
    y, qid, groups, sample_weight, query_weight, offset :
        As they were given to `fit`. Groups, which only searches take, say what is held out together
        to find the noise.

    Returns
    -------
    Posterior

    Raises
    ------
    TypeError
        If the model is another one.
    ValueError
        If these are not the rows that the model was fitted to; if the labels make the weights of
        pairs, as with ``pairs="without_ties"``; or if the model has a constraint, no ridge or a
        precomputed kernel, or was found by conjugate gradients.
    MemoryError
        If the matrix does not fit into memory.

    Notes
    -----
    The labels of a list are taken for its scores, plus a constant, plus noise. The variance of a
    difference of scores is then ``σ² (x_i − x_j)ᵀ (G + alpha I)⁻¹ (x_i − x_j)``. σ² comes from the
    residuals of held-out lists, or from the restricted likelihood if there is a single list, a
    table or statistics. A row or comparison of weight 2 is one of half the noise, and not the same
    twice.

    Examples
    --------
    >>> from pairgram import RankRLS, make_ranking, posterior
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLS(10.0).fit(X, y, qid=qid)
    >>> sure = posterior(model, X, y, qid=qid)
    >>> sure.std(X, qid=qid).shape, sure.std_of_differences(X[:3], X[3:6]).shape
    ((2000,), (3,))
    """
    if not isinstance(model, (RankRLS, RankRLSCV)):
        raise TypeError(f"model must be a RankRLS or a RankRLSCV, got {type(model).__name__}")
    check_is_fitted(model)
    model = copy(model)  # which may be fitted again
    told = model._parameters_to_save()  # with what a search has chosen
    chain = Chain.of(model.feature_map_)
    fixed = Chain(chain.fill, None, chain.then if is_kernel(chain.then) else None)
    told |= {"feature_map": fixed.value, "pairs": Pairs(**told["pairs"])}
    spec, alpha = RankRLS(**told)._spec(), float(told["alpha"])
    if spec.constraint is not None:
        raise ValueError(
            "a posterior needs a model without a constraint, under which weights are not Gaussian"
        )
    if is_precomputed(getattr(chain.then, "kernel", None)):
        raise ValueError(
            "a posterior needs a kernel by its name, got kernel='precomputed', which does not tell "
            "the kernel of two rows that are scored"
        )
    if groups is not None and not hasattr(model, "cv"):
        text = f"must be None: {type(model).__name__} holds no rows out, but RankRLSCV does"
        raise ArgumentError("groups", text)
    info = RowInfo(qid, sample_weight, query_weight, offset, groups)
    if not isinstance(X, Pairgram):
        table = as_stream(X, y=y, **info._asdict())
        if table is None:
            checked_rows(model, X)
            rows = GivenArrays(copy(model), X, y, info, spec.rows)
            if rows.data.judgements is not None:  # which say themselves what is compared
                spec = rows.spec_of(replace(spec, settings=(Pairs(),)))
            return _of_rows(model, rows, spec, alpha)
        named = {"feature_map": model.feature_map_, "pairs": told["pairs"]}
        X = Pairgram.from_rows(table, ids=None, **named)
    return _of_statistics(model, X, spec, alpha)


def _refuse(settings: Pairs, alpha: float) -> None:
    """Raise a ValueError if there is no posterior."""
    if not alpha > 0:
        raise ValueError(f"a posterior needs alpha > 0, got alpha={alpha:g}")
    if settings.compiled not in ("kept", "none"):
        raise ValueError(
            f"a posterior needs pairs='with_ties' or None, got pairs={settings.kind!r}, where the "
            "labels make the weights, so that no model of their noise fits"
        )


def _require_alike(found: Vector, known: Vector) -> None:
    """Raise a ValueError unless scores, or weights, are those of the model but for rounding."""
    if found.shape != known.shape or np.abs(found - known).max() > ALIKE * np.abs(known).max():
        raise ValueError(
            "X, y and qid are not the rows that the model was fitted to, or its scores are "
            "rounding errors"
        )


def _of_rows(
    model: RankRLS | RankRLSCV, rows: GivenArrays, spec: RidgeSpec, alpha: float
) -> Posterior:
    """Return the posterior of a model of rows in memory."""
    (settings,), (scale,), kernel = spec.settings, spec.scales, is_kernel(spec.rows.ways[0].then)
    _refuse(settings, alpha)
    chain = Chain.of(model.feature_map_)
    own = replace(rows.data, applied=chain.inputs, feature_map=chain.then)
    given = own = prepared_as(rows.data, own)
    if kernel:
        given = replace(given, feature_map=with_support_of(chain.then, given.X))
    if spec.rows.prior is not None:
        given = rows._started(given, spec.rows)
    coordinates = spec._coordinates(given)
    if coordinates.iterate:
        raise ValueError(
            "a posterior needs a direct solution, but conjugate gradients solve these rows, "
            "without the matrix that it needs"
        )
    coef, _, _ = coordinates.solve(settings, alpha, scale=scale)
    known, prior = model.coef_, rows.prior
    if prior is not None and prior.coef is not None and model.prior_ is None:
        known = known - prior.coef
    fitted = given.scores(slice(None), coef[None])[0]
    _require_alike(fitted, own.scores(slice(None), known[None])[0])
    solved, is_dual = coordinates.data, coordinates.name == "dual"
    order = len(solved.y) if coordinates.form == "dual" else solved.n_features
    require(f"the covariance of {order} unknowns", 32.0 * order**2, "take fewer features or rows")
    total = coordinates.statistics(settings)
    if given.preferences is not None:
        fitted = given.preferences.differences(fitted)
    left = _without_own_list(coordinates, settings, alpha, scale)
    labelled = solved.as_scope(settings)
    targets, problem = labelled.target(settings), labelled.problem(settings)
    # Without a held-out list the noise is that of the restricted likelihood.
    rooted = [
        apply_half_laplacian(problem, targets - scores)
        for scores in (np.zeros(len(fitted)) if left is None else left, fitted)
    ]
    rank, weight, mean_weight = degrees_of_labels(labelled, settings)
    noise = max(float(rooted[0] @ rooted[1]) / max(rank, 1), 0.0)
    n_labels = 1 if given.preferences is None else 2  # a margin is the difference of two labels
    if isinstance(total, DualGram):
        root = _dual_root(total, alpha)
    elif is_dual:
        root = _explained_root(total.G, alpha)
    else:
        root = _root_of_inverse(total, alpha, scale)
    mean, shares = _mean_of(given, settings)
    root = coordinates.coefs(root)
    if kernel:
        used = root.any(axis=0) | (shares != 0) | (coef != 0)
        used = np.flatnonzero(used) if used.any() else np.arange(len(used))
        root, mean, shares = root[:, used], mean[used], shares[used]
        model.coef_ = coef[used]
        model.feature_map_ = chain._replace(then=with_support(given.feature_map, used)).value
    return Posterior(
        model=model,
        root=triangular(root),
        noise=noise,
        label_noise=noise / (weight or mean_weight) / n_labels,
        kind="approximate" if weight is None else "exact",
        unseen=1 / alpha if is_dual else 0.0,
        mean=mean,
        shares=shares if kernel else None,
    )


def _of_statistics(
    model: RankRLS | RankRLSCV, statistics: Pairgram, spec: RidgeSpec, alpha: float
) -> Posterior:
    """Return the posterior of a model of statistics alone, as those of a table.

    The noise is that of the restricted likelihood, ``(yᵀLy − gᵀw) / (N − q)`` for N rows of q
    lists, where rows of statistics that were multiplied by a number count so many times. The mean
    of the rows is not known. With weights of a prior, y is what these leave of it.
    """
    (scale,), prior, total = spec.scales, spec.rows.prior, statistics._total
    settings = total.settings
    _refuse(settings, alpha)
    coef = statistics.solve(alpha, scale=scale, prior=prior)
    _require_alike(coef, model.coef_)
    start = np.zeros_like(coef) if prior is None else np.asarray(prior, np.float64)
    G, g = statistics.G, statistics.g
    left = max(float(statistics.yy - g @ start - (g - G @ start) @ coef), 0.0)
    total.warn_of_digits(left)
    root = _root_of_inverse(total, alpha, scale)
    n_lists, degrees, weight = _lists_of(total)
    noise = left / max(degrees, 1.0)
    # Pairs weigh as much as their rows times the weight of the list, and of n rows 1 is its own.
    rows = (degrees + settings.joins_all_rows) * total.n_rows / max(total.n_rows - n_lists, 1)
    mean_weight = weight or total.pair_weight / max(rows, 1.0) or 1.0
    return Posterior(
        model=model,
        root=root,
        noise=noise,
        label_noise=noise / mean_weight / (2 if weight and total.n_queries == 0 else 1),
        kind="approximate" if weight is None else "exact",
    )


def _lists_of(total: PairSums) -> tuple[int, float, float | None]:
    """Return how many lists lost their constants, the degrees of freedom, and the weight of a list.

    Degrees are how many rows count, less one for each list. The weight is that of all rows of a
    list, if it is known that all lists have the same, or None.
    """
    settings = total.settings
    n_lists = 0 if settings.kind is None or settings.joins_all_rows else total.n_queries
    of_rows = settings.kind is None and settings.weighting == "pairs"
    weight = None
    if settings.weighting == "documents" or of_rows or total.n_queries == 0:
        weight = total.query_weight  # comparisons are of no list
    elif settings.joins_all_rows and total.mean is not None:
        weight = total.factor
    return n_lists, total.degrees - settings.joins_all_rows, weight


def _without_own_list(
    coordinates: Coordinates, settings: Pairs, alpha: float, scale: bool
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


def _root_of_inverse(total: PairSums, alpha: float, scale: bool) -> Vector:
    """Return a triangular A with ``AᵀA = (G + alpha I)⁻¹``, where features may be scaled."""
    G, factor = total.G, total.scale_factors(scale)
    if factor is not None:
        G = factor[:, None] * G * factor
    G[np.diag_indices_from(G)] += alpha
    return inverse_root(G) if factor is None else inverse_root(G) * factor


def _dual_root(total: DualGram, alpha: float) -> Vector:
    """Return A, (n_rows, n_rows of K), with ``alpha AᵀA = Rᵀ (R K Rᵀ + alpha I)⁻¹ R``.

    The posterior covariance of scores of rows with the kernel values k is that of the prior,
    ``K / alpha``, less ``(A k)ᵀ (A k)``.
    """
    matrix, _, _ = total.system()
    matrix[np.diag_indices_from(matrix)] += alpha
    return total.coefs(inverse_root(matrix) / alpha**0.5)


def inverse_root(matrix: Vector) -> Vector:
    """Return an upper triangular A with ``AᵀA = matrix⁻¹``, in 2/3 n³ flops."""
    # The Cholesky factor of the reversed matrix makes it U Uᵀ with an upper triangular U. The
    # transpose is the same matrix, in the memory order of LAPACK.
    with single_threaded_blas:
        lower = scipy.linalg.cholesky(matrix.T[::-1, ::-1], lower=True, check_finite=False)
        (invert,) = scipy.linalg.get_lapack_funcs(("trtri",), (lower,))
        inverse, _ = invert(lower, lower=True, overwrite_c=True)
    return np.ascontiguousarray(inverse[::-1, ::-1])


def _explained_root(G: Vector, alpha: float) -> Vector:
    """Return A with ``AᵀA = (I − alpha (G + alpha I)⁻¹) / alpha``."""
    with single_threaded_blas:
        values, vectors = scipy.linalg.eigh(G, check_finite=False)
    values = np.maximum(values, 0.0)
    return np.sqrt(values / (values + alpha) / alpha)[:, None] * vectors.T


def _mean_of(data: RankingData, settings: Pairs) -> tuple[Vector, Vector]:
    """Return the weighted mean of the features of the rows that count, and the shares of rows."""
    if data.preferences is not None:
        weights = data.preferences.counts(len(data.y))
    else:
        counts = data.has_pairs(settings) | settings.joins_all_rows
        weights = np.where(counts[data.queries.index()], data.v, 0.0)
    shares, mean = weights / weights.sum(), np.zeros(data.n_features)
    for part in blocks(len(shares), ROWS_AT_ONCE):
        mean += data.features(part).T @ shares[part]
    return mean, shares


def triangular(root: Vector) -> Vector:
    """Return a root of the same matrix with as few rows as it can have."""
    if len(root) <= root.shape[1] and scipy.linalg.bandwidth(root)[0] == 0:
        return np.ascontiguousarray(root)
    with single_threaded_blas:
        (found,) = scipy.linalg.qr(root, mode="r", check_finite=False)
    return np.ascontiguousarray(found[: root.shape[1]])
