"""Hold groups of queries out: their statistics are subtracted from those of all rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from operator import add

import numpy as np

import pairgram._core as _core
from pairgram._support.checks import Vector
from pairgram._support.machine import resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData, as_slice
from pairgram.data.pairs import no_training_pairs
from pairgram.model_selection.splits import GroupSplits
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import EigenPath, RidgePath

# Models without groups are found for groups whose statistics take about this many bytes, and so
# stay in cache.
BYTES_AT_ONCE = 1 << 22


def scores_by_sums(
    data: RankingData,
    ridge: RidgePath,
    alphas: Vector,
    n_threads: int | None,
    parts: Iterable[PairSums],
) -> tuple[Vector, Vector]:
    """Return the scores of every row by models without its group, and what the group holds.

    `parts` are the statistics of the groups. The results are those of `scores_in_primal`.
    """
    scores, held = np.empty((len(alphas), len(data.y))), np.empty(len(data.y))
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
    return scores, held


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
    rank = len(path.eigenvalues)
    turned = np.empty((len(sums), rank + 1, rank + 1))
    with single_threaded_blas:
        for own, one in zip(turned, sums, strict=True):
            own[:rank, :rank] = path.basis.T @ one.G @ path.basis
            own[:rank, rank] = path.basis.T @ one.g
        models, held = _core.hold_out_sums(path.eigenvalues, path.projection, alphas, turned, 1)
        return models @ path.basis.T, held
