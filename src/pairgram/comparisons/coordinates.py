"""The coordinates in which least squares of comparisons is solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from pairgram._support.checks import Vector, require_finite
from pairgram._support.machine import single_threaded_blas
from pairgram._support.parameters import Form
from pairgram.comparisons.compared_rows import compared
from pairgram.data.dataset import RankingData
from pairgram.features.feature_map import dense
from pairgram.features.inputs import parts_of
from pairgram.solvers.costs import Work, dual_seconds, most_products, primal_seconds
from pairgram.solvers.dual_gram import require_memory
from pairgram.solvers.formulation import Coordinates, kernel_matrix_of
from pairgram.solvers.ridge_path import smallest_eigenvalue


def coordinates_of(
    data: RankingData, kernel: bool, form: Form, scale: bool, work: Work, iterate: bool | None
) -> Coordinates:
    """Return the cheapest coordinates of the comparisons of rows; see `Coordinates.choose`."""
    direct = partial(_direct, data, kernel, form, scale, work)
    sparse = data.feature_map is None and scipy.sparse.issparse(data.X)
    if form == "dual" or iterate is False or not sparse:
        return direct()
    return _by_steps(data, direct, scale, work, bool(iterate))


def _by_steps(
    data: RankingData,
    direct: Callable[[], Coordinates],
    scale: bool,
    work: Work,
    iterate: bool,
) -> Coordinates:
    """Return sparse comparisons for conjugate gradients, or else direct solutions.

    Their direct solutions take the features, or as many dimensions as there are items.
    """
    rows, n_items = compared(data, data.X), data.X.shape[0]
    form = "dual" if n_items < data.n_features and not scale else "primal"
    if not scipy.sparse.issparse(rows.stored):
        return direct()
    seen = Coordinates(rows, work=work, compares=True).seen()
    seconds = dual_seconds(data, work) if form == "dual" else primal_seconds(rows, work)
    most = most_products(seen.data, work, form, seconds, n_items)
    if most == 0.0 and not iterate:
        return direct()
    told = None if form == "primal" else form
    return replace(seen, most_products=most or inf, instead=direct, told=told)


def _direct(data: RankingData, kernel: bool, form: Form, scale: bool, work: Work) -> Coordinates:
    """Return coordinates of the items, of which there may be far fewer than comparisons.

    The dual form takes the features F of ``K = F Fᵀ``, which are those of a kernel, or as many
    as there are items. A model w of them has the dual coefficients ``U S⁻¹ w`` for the
    eigenvectors U and the roots S of the eigenvalues of K. Eigenvalues that are rounding error
    are left out.
    """
    fewer = data.X.shape[0] < data.n_features
    if not kernel and (scale or form == "primal" or not (fewer or form == "dual")):
        rows, feature_map = (
            compared(data, data.features()),
            parts_of(data.feature_map)[1],
        )
        return Coordinates(rows, work=work, compares=feature_map is None)
    n_items = data.X.shape[0]
    require_memory(n_items, True, data.feature_map if kernel else None, basis=True)
    H: Any = None
    if kernel:
        K = kernel_matrix_of(data)
    else:
        H = dense(data.features()).astype(np.float64)
        H -= H.mean(axis=0)  # which changes no difference
        with single_threaded_blas:
            K = H @ H.T
    require_finite(K, "X")
    with single_threaded_blas:
        values, vectors = scipy.linalg.eigh(np.asarray(K, np.float64), check_finite=False)
    if -values.min() > np.sqrt(np.finfo(K.dtype).eps) * values.max():
        raise ValueError(
            "the kernel matrix must be positive semidefinite, but it has the eigenvalues "
            f"{values.min():.3g} and {values.max():.3g}; set negative ones to 0"
        )
    kept = values > smallest_eigenvalue(n_items, values.max(initial=0.0))
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    features = replace(data, feature_map=None)

    def coefs(solved: Vector) -> Vector:
        dual = (solved / roots) @ vectors.T
        return dual if H is None else dual @ H

    rows = compared(features, np.ascontiguousarray(vectors * roots))
    return Coordinates(rows, coefs=coefs, work=work, told="dual")
