"""Hold folds out of a kernel problem by means of its one decomposition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.threads import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.solvers.held_out.dual_rows import fold_offsets, scores_without_folds
from pairgram.solvers.held_out.row_regression import RowRegression, blocks_of_rows
from pairgram.solvers.ridge_path import RidgePath

Splits = Sequence[tuple[Rows, Rows]]


def is_from_decomposition(
    data: RankingData, settings: PairSettings, is_dual: bool, splits: Splits
) -> bool:
    """Tell whether `fold_scores` can take these splits.

    It can if the problem is in dual form, every row is a test row exactly once, the training rows
    of a split are all other rows, and the folds are either whole queries, or any rows of a
    pointwise problem, or any rows of one query with kept pairs.
    """
    if not is_dual:
        return False
    n_rows = len(data.y)
    tests = np.concatenate([test for _, test in splits])
    if len(tests) != n_rows or (np.bincount(tests, minlength=n_rows) != 1).any():
        return False
    for train, test in splits:
        seen = np.zeros(n_rows, np.int64)
        seen[train] += 1
        if len(train) + len(test) != n_rows or (seen != 1).sum() != len(test) or seen[test].any():
            return False
    return is_one_regression(data, settings) or _is_by_blocks(data, settings, splits)


def fold_scores(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    splits: Splits,
    alphas: Vector,
    n_threads: int | None = None,
) -> list[Vector]:
    """Return the scores of every fold by the models of all other rows, for all alphas.

    The scores are those of refits. For folds of rows of one query they differ from those of refits
    by a constant for each fold, because these models have an intercept. Scores that would be
    rounding error are NaN, as in `leave_query_out`.

    Parameters
    ----------
    data : RankingData
    settings : PairSettings
    ridge : RidgePath
        The decomposition of the dual system of all rows.
    splits : list of (training rows, test rows)
        Splits for which `is_from_decomposition` is true.
    alphas : ndarray of shape (n_alphas,), descending, ≥ 0
    n_threads : int or None

    Returns
    -------
    list of ndarray of shape (n_alphas, n_test_rows), float64

    Raises
    ------
    ValueError
        If the training rows of a split have no pairs that count.

    Notes
    -----
    A fold B is a block of the hat matrix. ``(I − H_BB) x = residual_B`` is solved for all alphas by
    conjugate gradients, in 4 n² flops for each alpha and step. A refit of every fold would cost
    9 n³ flops each. Rows of one query need 8 n² bytes besides the decomposition.
    """
    for number, (train, _) in enumerate(splits):
        data.require_training_pairs(settings, number, train)
    tests = [test for _, test in splits]
    if is_one_regression(data, settings):
        return _folds_of_rows(data, settings, ridge, tests, alphas, n_threads)
    scores = scores_without_folds(data, settings, ridge, tests, alphas, n_threads)
    return [scores[:, test] for test in tests]


def leave_out_of_all_rows(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None = None,
) -> Vector:
    """Return the scores of every row by models without its query, for kept pairs of all rows.

    These are the `fold_scores` with one fold per query, in an array of shape (n_alphas, n_rows).
    """
    tests = data.rows_of_queries()
    scores = np.empty((len(alphas), len(data.y)))
    parts = _folds_of_rows(data, settings, ridge, tests, alphas, n_threads)
    for test, part in zip(tests, parts, strict=True):
        scores[:, test] = part
    return scores


def is_one_regression(data: RankingData, settings: PairSettings) -> bool:
    """Tell whether the rows form one regression, whose factor depends on the weight of the rows."""
    one = data.as_scope(settings).queries.n_filled == 1
    return one and (settings.pairs is None or settings.kind == "kept")


def _is_by_blocks(data: RankingData, settings: PairSettings, splits: Splits) -> bool:
    """Tell whether the half-Laplacian has a separate block for every fold."""
    queries = data.as_scope(settings).queries
    if settings.pairs is None and settings.weighting != "queries":
        return True
    of_row = queries.index()
    counts = (np.bincount(of_row[test], minlength=queries.n_queries) for _, test in splits)
    return all(((count == 0) | (count == queries.sizes)).all() for count in counts)


def _folds_of_rows(
    data: RankingData,
    settings: PairSettings,
    ridge: RidgePath,
    tests: list[Rows],
    alphas: Vector,
    n_threads: int | None,
) -> list[Vector]:
    """Hold folds out of a ridge regression on rows.

    The ridge is ``alpha / c`` with the factor c of the fold's training rows. The intercept is a
    direction without a ridge.
    """
    regression = RowRegression.of(data.as_scope(settings), settings, ridge)
    free, v = int(regression.intercept), data.v
    rank = len(ridge.eigenvalues)
    targets = data.target(settings) - regression.mean_y
    factors = regression.factors_without(np.array([v[test].sum() for test in tests]))
    parts = [np.zeros((len(alphas), len(test))) for test in tests]
    for factor in np.unique(factors[factors > 0]):
        chosen = np.flatnonzero(factors == factor).tolist()
        rows = np.concatenate([tests[fold] for fold in chosen])
        offsets = fold_offsets([tests[fold] for fold in chosen])
        problem = _core.RankingProblem(
            np.zeros(len(rows)), offsets, row_weights=v[rows], pairs="none", weighting="pairs"
        )
        z = np.ones((len(rows), rank + free))
        for part_of in blocks_of_rows(len(rows), rank):
            z[part_of, :rank] = regression.features(rows[part_of])
        with single_threaded_blas():
            scores = _core.leave_query_out(
                problem,
                z,
                targets[rows, None],
                basis=None,
                eigenvalues=np.append(regression.eigenvalues, [regression.weight] * free),
                projection=np.append(regression.projection, [0.0] * free),
                alphas=alphas / factor,
                n_free=free,
                n_threads=resolve_n_threads(n_threads),
            )
        for fold, part in zip(chosen, np.split(scores, offsets[1:-1], axis=1), strict=True):
            parts[fold] = part + regression.mean_y
    return parts
