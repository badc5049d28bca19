"""About how long a fit by least squares takes, by the shape of its rows, and on which road."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import scipy.sparse

from pairgram._support import limits, machine as memory
from pairgram.data.comparisons import ComparedRows
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import PairSettings
from pairgram.solvers.statistics import SPARSE_GRAM

# Seconds on two cores. They are measured, and only ratios of sums decide anything.
# A product of two entries of sparse rows, which lands anywhere in a matrix.
SPARSE_PRODUCT = 5e-9
# A product in a dense Gram matrix or in a matrix product.
DENSE_PRODUCT = 1.5e-11
# The cube and the square of the order of a system that is solved for one ridge,
ONE_CUBE, ONE_SQUARE = 1e-11, 5e-8
# the cube if it is decomposed for many, in the primal form and in the dual one,
PATH_CUBE, DUAL_CUBE = 2e-10, 9e-11
# and if all eigenvectors are needed.
BASIS_CUBE = 2.7e-10
# A product of conjugate gradients: an entry of X, a feature, and what any product takes.
STEP_ENTRY, STEP_FEATURE, STEP = 1.4e-9, 4e-8, 1e-4
# Few products that one ridge takes, with what comes before, and those of each further ridge.
FIRST_STEPS, FURTHER_STEPS = 30, 4
# The weights of a constrained problem take about this, times the cube of the features.
CONSTRAINED_CUBE = 1e-10


@dataclass(frozen=True)
class Work:
    """What is solved with the same rows.

    Attributes
    ----------
    n_alphas : int
    n_systems : int
        All rows, and the training rows of every split.
    path : bool
        Whether the ridges come from a decomposition.
    exact : bool
        Whether direct solutions give held-out scores without splits, and so in one system.
    """

    n_alphas: int = 1
    n_systems: int = 1
    path: bool = False
    exact: bool = False


# One ridge of all rows.
ONE_RIDGE = Work()


def step_seconds(data: RankingData) -> float:
    """Return the time that a product with XᵀLX of sparse rows takes, for one of several systems."""
    return STEP_ENTRY * float(data.n_entries) + STEP_FEATURE * float(data.X.shape[1]) + STEP


def steps_of(work: Work) -> int:
    """Return a low estimate of the products that all systems take by conjugate gradients."""
    return work.n_systems * (FIRST_STEPS + FURTHER_STEPS * (work.n_alphas - 1))


def primal_seconds(
    data: RankingData, work: Work, *, constrained: bool = False, n_rows: int | None = None
) -> float:
    """Return the time that direct solutions take in the primal form, for so many rows of `data`."""
    d = float(data.n_features)
    n_rows = len(data.y) if n_rows is None else n_rows
    seconds = 0.0
    if scipy.sparse.issparse(data.X) and data.feature_map is None:
        for count in (n_rows, max(1, data.queries.n_queries)):  # the rows, and sums over queries
            filled = min(d, data.X.nnz / count)
            few = filled <= limits.now.dense_share * d
            seconds += count * (SPARSE_PRODUCT * filled**2 if few else DENSE_PRODUCT * d**2)
    elif isinstance(data, ComparedRows):  # sums of items, whose products are few
        seconds += DENSE_PRODUCT * d * (8.0 * n_rows + data.X.H.shape[0] * d)
        if work.exact:
            seconds += BASIS_CUBE * d**3 + 4 * DENSE_PRODUCT * n_rows * d * work.n_alphas
            return float(seconds)
    else:
        seconds += DENSE_PRODUCT * n_rows * d * (d + 2.0 * int(data.X.shape[1]))
    if constrained:
        return seconds + work.n_systems * work.n_alphas * CONSTRAINED_CUBE * d**3
    if work.exact:
        held_out = 2 * DENSE_PRODUCT * n_rows * d * (d + 20 * work.n_alphas)
        return seconds + BASIS_CUBE * d**3 + held_out
    cube = PATH_CUBE if work.path else ONE_CUBE
    return seconds + work.n_systems * (cube * d**3 + ONE_SQUARE * d**2)


def dual_seconds(data: RankingData, work: Work) -> float:
    """Return the time that direct solutions take in the dual form."""
    n, d = float(len(data.y)), float(data.X.shape[1])
    if scipy.sparse.issparse(data.X):
        seconds = SPARSE_PRODUCT * float(data.X.nnz) ** 2 / max(1.0, d)
    else:
        seconds = 2 * DENSE_PRODUCT * n**2 * d
    if not work.path:
        return seconds + ONE_CUBE * n**3 + ONE_SQUARE * n**2
    twice = work.n_systems > 1 and not work.exact  # folds come from the same decomposition
    return seconds + (1 + twice) * (DUAL_CUBE * n**3 + ONE_SQUARE * n**2)


def most_products(
    data: RankingData, work: Work, form: str, seconds: float, n_rows: int | None = None
) -> float:
    """Return how many products of sparse rows to take before a direct solution.

    The dual form has `n_rows` unknowns if it is given: comparisons are more than their items.

    0 stands for the direct solution, which is estimated to take so many `seconds`. It is chosen if
    the fewest products would take longer, or if they would take more than a quarter of its time and
    it holds every query out exactly, which they cannot. How many products it must be depends on
    numbers that no shape tells. So once they have taken as long as the direct solution is estimated
    to take, it is begun. The result is infinity if its matrices do not fit in memory.
    """
    d = data.n_features
    n_rows = len(data.y) if n_rows is None else n_rows
    bytes_ = 24.0 * n_rows**2 if form == "dual" else 8.0 * SPARSE_GRAM * (d + 1) ** 2
    if not memory.fits(bytes_):
        return inf
    now, step = limits.now, step_seconds(data)
    fewest, share = steps_of(work), now.exact_patience if work.exact else 1.0
    if seconds <= now.direct_seconds or seconds * now.step_patience <= share * fewest * step:
        return 0.0
    return now.step_patience * max(seconds / step, float(fewest))


def takes_steps(data: RankingData, work: Work) -> bool:
    """Tell whether rows without a feature map are solved by conjugate gradients."""
    if not scipy.sparse.issparse(data.X):
        return False
    if len(data.y) < data.n_features:
        return most_products(data, work, "dual", dual_seconds(data, work)) > 0
    return most_products(data, work, "primal", primal_seconds(data, work)) > 0


def have_sums(data: RankingData, settings: PairSettings) -> bool:
    """Tell whether statistics of groups add up, and fit in memory for all groups."""
    n_bytes = 8.0 * (data.n_features + 1) ** 2 * data.held_together.n_filled
    return not settings.joins_all_rows and n_bytes < limits.now.groups_bytes


def is_held_out_by_sums(data: RankingData, settings: PairSettings, n_alphas: int) -> bool:
    """Tell whether groups are held out by their statistics rather than by their rows.

    Statistics of d features of a group of n rows take ``n d²`` flops, and about 5 steps of ``2 d²``
    for every ridge. Rows take ``2 n d²`` in the basis, and about 3 steps of ``4 n d`` for every
    ridge. Compiled code does not take the rows of groups in blocks.
    """
    if data.group_of is None or settings.joins_all_rows:
        return False
    if not data.is_one_block:
        return True
    n, d = len(data.y) / max(1, data.held_together.n_filled), float(data.n_features)
    by_sums = n * d * d + 10 * n_alphas * d * d + limits.now.group_flops
    return have_sums(data, settings) and by_sums < 2 * n * d * d + 12 * n * d * n_alphas
