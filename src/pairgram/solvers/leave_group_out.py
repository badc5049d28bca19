"""Hold groups of queries out: their statistics are subtracted from those of all rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from operator import add

import numpy as np
import scipy.linalg

from pairgram._support.checks import Vector
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData, as_slice
from pairgram.data.pairs import no_training_pairs
from pairgram.model_selection.splits import GroupSplits
from pairgram.solvers.leave_out_dual import SMALLEST_PIVOT
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import EigenPath, RidgePath

# Conjugate gradients for one group end at this residual, relative to the right-hand side, or with
# this many steps, and are not tried where the ridge is this share of λ_max.
TOLERANCE = 1e-14
MOST_STEPS = 40
SMALLEST_RIDGE = 1e-10
# A group that leaves less than this share of an eigenvalue holds its direction.
ALL_BUT = 1e-4
# Models without groups are found for groups whose statistics take about this many bytes, and so
# stay in cache.
BYTES_AT_ONCE = 1 << 22


def scores_by_sums(
    data: RankingData,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None,
    held: Vector,
    parts: Iterable[PairSums],
) -> Vector:
    """Return the scores of every row by models without its group, (n_alphas, n_rows).

    `parts` are the statistics of the groups. For every row, `held` gets the largest eigenvalue of
    a direction of which its group has all but 1e-4, or 0. Scores that would be rounding error are
    NaN.

    Notes
    -----
    In the eigenbasis V of the statistics of all rows, ``G = V Λ Vᵀ``, the model without a group of
    the statistics S and s is ``u = (Λ + α − S)⁻¹ (p − s)``, and so ``u = p / (Λ + α) + c`` with
    ``(Λ + α − S) c = S p / (Λ + α) − s``. All ridges are solved together by conjugate gradients,
    preconditioned by ``Λ + α``. A group that holds a small share of G takes few steps. Others, and
    the smallest ridges, are solved by Cholesky.
    """
    scores = np.empty((len(alphas), len(data.y)))
    groups = map(as_slice, data.rows_held_together())  # a block takes as many as it has models
    sums = list(parts)
    at_once = max(1, BYTES_AT_ONCE // (8 * data.n_features**2))
    threads = resolve_n_threads(n_threads)
    some = (sums[first : first + at_once] for first in range(0, len(sums), at_once))
    with ThreadPoolExecutor(threads) as pool:
        for coefs, of_groups in pool.map(partial(models_without, ridge.eigen, alphas), some):
            for coef, eigenvalue, rows in zip(coefs, of_groups, groups, strict=False):
                held[rows] = eigenvalue
                scores[:, rows] = data.scores(rows, coef, n_threads)
    return scores


def rests_of_groups(
    data: RankingData, total: PairSums, splits: GroupSplits, n_threads: int | None
) -> Iterator[PairSums]:
    """Yield the statistics of the training groups of every split.

    The statistics of each group are made once. What is left is a difference where it keeps its
    digits, and a sum where it does not, or where the training groups grow from split to split.

    Raises
    ------
    ValueError
        If the training groups of a split have no pairs that count.
    """
    assert data.group_of is not None
    settings, present = total.settings, np.flatnonzero(data.held_together.sizes)
    with_pairs = np.unique(data.group_of[data.has_pairs(settings)])
    for number, train in enumerate(splits.trains):
        if not np.isin(train, with_pairs).any():
            raise no_training_pairs(number)
    made = total.parts or PairSums.of_groups(data, settings, n_threads).parts
    parts = dict(zip(present.tolist(), made, strict=True))
    rest, before = None, present[:0]
    for train, test in zip(splits.trains, splits.tests, strict=True):
        added = np.setdiff1d(train, before)
        if rest is not None and len(added) == len(train) - len(before):
            rest = reduce(add, map(parts.__getitem__, added.tolist()), rest)
        else:
            rest = None
            if len(train) + len(test) == len(present) and not np.isin(test, train).any():
                rest = total.less(reduce(add, map(parts.__getitem__, test.tolist())))
            if rest is None:
                rest = reduce(add, map(parts.__getitem__, train.tolist()))
        before = train
        yield rest


def models_without(
    path: EigenPath, alphas: Vector, sums: Sequence[PairSums]
) -> tuple[Vector, Vector]:
    """Return the models without each of some groups, and what they hold; see `scores_by_sums`.

    The models have shape (n_groups, n_alphas, n_features).
    """
    basis, eigenvalues = path.basis, path.eigenvalues
    shifted = eigenvalues[:, None] + alphas
    solvable = ((path.projection != 0) | (eigenvalues > 0))[:, None] & (shifted > 0)
    inverse = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=solvable)
    root = np.sqrt(inverse)
    first = path.projection[:, None] * inverse
    with single_threaded_blas:
        S = np.stack([basis.T @ one.G @ basis for one in sums])
        s = np.stack([basis.T @ one.g for one in sums])
        squares = np.diagonal(S, axis1=1, axis2=2)
        holds = (squares > (1 - ALL_BUT) * eigenvalues) & (eigenvalues > 0)
        held = np.where(holds, eigenvalues, 0.0).max(axis=1, initial=0.0)
        residual = root * (S @ first - s[:, :, None])
        change, direction = np.zeros_like(residual), residual.copy()
        size = _dots(residual, residual)
        enough = TOLERANCE**2 * size
        for _ in range(MOST_STEPS):
            going = size > enough
            if not going.any():
                break
            step = root * direction
            product = direction - root * (S @ step)
            curvature = _dots(direction, product)
            going &= curvature > 0
            length = np.divide(size, curvature, out=np.zeros_like(size), where=going)
            change += length[:, None] * step
            residual -= length[:, None] * product
            before, size = size, _dots(residual, residual)
            share = np.divide(size, before, out=np.zeros_like(size), where=going)
            direction = residual + share[:, None] * direction
        lost = (size > enough) | (alphas < SMALLEST_RIDGE * eigenvalues.max(initial=0.0))
        for group, j in np.argwhere(lost).tolist():
            scaled, target = root[:, j], S[group] @ first[:, j] - s[group]
            system = np.eye(len(scaled)) - scaled[:, None] * S[group] * scaled
            change[group, :, j] = scaled * _solved_if_definite(system, scaled * target)
        return np.swapaxes(first + change, 1, 2) @ basis.T, held


def _dots(a: Vector, b: Vector) -> Vector:
    """Return the products of vectors along the second of three axes."""
    return np.asarray(np.einsum("gkj,gkj->gj", a, b))


def _solved_if_definite(system: Vector, target: Vector) -> Vector:
    """Return the solution, or NaN where the pivots say that it would be rounding error."""
    try:
        factor = scipy.linalg.cholesky(system, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return np.full_like(target, np.nan)
    if (np.diag(factor) ** 2 < SMALLEST_PIVOT).any():
        return np.full_like(target, np.nan)
    return np.asarray(scipy.linalg.cho_solve((factor, True), target, check_finite=False))
