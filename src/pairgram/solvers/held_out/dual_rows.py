"""Score the rows of a kernel problem, in its eigenbasis, by models without their folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData, apply_half_laplacian, without_features
from pairgram.data.pairs import PairSettings
from pairgram.data.queries import Queries
from pairgram.solvers.ridge_path import BandPath, RidgePath, has_band

# Blocks of folds take about this many bytes in the basis.
BLOCK_BYTES = 64 << 20
# Folds of at most this share of the rows are held out by the band form. It takes about half of the
# time that eigenvectors do, but a square of the fold for every thread.
LARGEST_SHARE = 1 / 4
# The band form gives held-out scores as differences from the targets. They lose digits where alpha
# is so many times λ_max, and the scores are as small beside the targets.
LARGEST_RIDGE = 1e3


def are_small(sizes: Iterable[int], n_rows: int) -> bool:
    """Tell whether folds of these sizes are held out by the band form of the system."""
    return has_band(n_rows) and max(sizes) <= LARGEST_SHARE * n_rows


def scores_without_folds(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    folds: Sequence[Rows],
    alphas: Vector,
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row by the model without its fold, (n_alphas, n_rows).

    They are computed in blocks of folds from the decomposition of the problem of all rows: from its
    band form if there is one and folds `are_small`, and otherwise in its eigenbasis.

    Parameters
    ----------
    data : RankingData
        Data in dual form: their features are the columns of K.
    settings : PairSettings
    ridge : RidgePath
        The decomposition of the dual system of all rows.
    folds : list of ndarray of int64
        Every row is in exactly one fold. Folds must be whole queries, unless the problem is
        pointwise with a weighting other than "queries".
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    n_threads : int or None

    Notes
    -----
    In the eigenbasis, the time is 4 n² flops per alpha and step of conjugate gradients, and
    ``2 n² k`` for the k rows that do not follow from the Laplacian. The memory is about 64 MiB, or
    three times a fold's rows in the basis. For the band form see `BandForm.hold_out`.
    """
    labelled = without_features(data).as_scope(settings)
    if settings.pairs is None and settings.weighting != "queries":  # queries only give weights
        labelled = replace(
            labelled,
            queries=Queries(fold_offsets(folds), np.concatenate(folds)),
            row_weights=data.v * data.query_weight_of_rows,
            query_weights=None,
        )
    diagonal = _core.laplacian_diagonal(labelled.problem(settings))
    largest = float(diagonal.max(initial=0.0))
    sizes = [len(fold) for fold in folds]
    if ridge.band is not None and are_small(sizes, len(data.y)):
        found = _by_band(data, labelled, settings, ridge.band, folds, alphas, largest, n_threads)
        if found is not None:
            return found
    scores = np.empty((len(alphas), len(data.y)))
    for part in _blocks(folds, 8 * len(ridge.eigenvalues)):
        rows = np.concatenate(part)
        block = labelled.take(rows)
        problem = block.problem(settings)
        z = _rows_in_basis(data, ridge, rows, problem, largest, n_threads)
        with single_threaded_blas():
            scores[:, rows] = _core.leave_query_out(
                problem,
                z,
                block.targets(settings),
                basis=None,
                eigenvalues=ridge.eigenvalues,
                projection=ridge.projection,
                alphas=alphas,
                folds=np.searchsorted(block.queries.offsets, fold_offsets(part)),
                n_threads=resolve_n_threads(n_threads),
            )
    return scores


def _by_band(
    data: RankingData,
    labelled: RankingData,
    settings: PairSettings,
    band: BandPath,
    folds: Sequence[Rows],
    alphas: Vector,
    largest: float,
    n_threads: int | None,
) -> Vector | None:
    """Return the scores from the band form, or None if eigenvectors are needed.

    The system is that of the differences ``R f`` of scores, which the model without a fold gives at
    once. The scores f follow from ``L f = Rᵀ R f`` and from products with K for the rows for which
    this tells nothing, one of each query and rows with little or no weight or pairs.
    """
    if not (alphas >= band.least).all() or alphas[0] > LARGEST_RIDGE * band.form.largest:
        return None
    problem = labelled.problem(settings)
    pivots, _, _ = _core.null_space(problem, largest=largest)
    is_pivot = pivots == np.arange(len(pivots))
    differences, levels = np.empty((len(pivots), len(alphas))), np.zeros((len(pivots), len(alphas)))
    for part in _blocks(folds, 8 * len(pivots), lambda fold: int(is_pivot[fold].sum())):
        known = [fold[is_pivot[fold]] for fold in part]
        beside = np.concatenate(known)
        points = np.zeros((len(beside), len(pivots)))
        if len(beside):
            points[:] = data.features(beside)
            apply_half_laplacian(problem, points, axis=1, n_threads=n_threads)
        found = band.form.hold_out(alphas, band.target, part, points, fold_offsets(known))
        if found is None:
            return None
        rows = np.concatenate(part)
        differences[rows] = band.target[rows, None] - found[0].T
        levels[beside] = found[1].T
    apply_half_laplacian(problem, differences, adjoint=True, n_threads=n_threads)
    _core.solve_laplacian(
        problem,
        differences,
        levels[is_pivot],
        largest=largest,
        n_threads=resolve_n_threads(n_threads),
    )
    return np.ascontiguousarray(differences.T)


def fold_offsets(folds: Sequence[Rows]) -> Rows:
    """Return the offsets of folds that stand one after the other, (n_folds + 1,)."""
    return np.cumsum([0, *map(len, folds)], dtype=np.int64)


def _rows_in_basis(
    data: RankingData,
    ridge: RidgePath,
    rows: Rows,
    problem: _core.RankingProblem,
    largest: float,
    n_threads: int | None,
) -> Vector:
    """Return z = K @ basis for the rows of whole queries, (n_rows, rank), from ``L z = basis Λ``.

    K is needed only for one row of each query, and for rows with little or no weight or pairs.
    """
    pivots, _, _ = _core.null_space(problem, largest=largest)
    pivot_rows = rows[pivots == np.arange(len(rows))]
    known = np.empty((0, len(ridge.eigenvalues)))
    if len(pivot_rows):
        known = np.asarray(data.features(pivot_rows) @ ridge.basis)
    z = ridge.rows_of_laplacian(rows)
    _core.solve_laplacian(
        problem, z, known, largest=largest, n_threads=resolve_n_threads(n_threads)
    )
    return z


def _blocks(
    folds: Sequence[Rows], row_bytes: int, size_of: Callable[[Rows], int] = len
) -> Iterator[list[Rows]]:
    """Cut a list of folds into blocks of about `BLOCK_BYTES`."""
    block: list[Rows] = []
    size = 0
    for fold in folds:
        if block and (size + size_of(fold)) * row_bytes > BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(fold)
        size += size_of(fold)
    if block:
        yield block
