"""About how long fits take, by the shape of their rows, and on which road least squares goes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import scipy.sparse

from pairgram._support import limits, machine as memory
from pairgram._support.rates import seconds_of
from pairgram.data.dataset import RankingData
from pairgram.features.feature_map import unmade
from pairgram.solvers.statistics import DENSE_GRAM, SPARSE_GRAM

# Few products that one ridge takes, with what comes before, and those of each further ridge.
FIRST_STEPS, FURTHER_STEPS = 30, 4


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


def can_iterate(data: RankingData) -> bool:
    """Tell whether `Systems` solve the rows: CSR rows without a map, or unmade features."""
    if data.feature_map is None:
        return scipy.sparse.issparse(data.X)
    return unmade(data.feature_map) is not None and data.is_one_block


def step_seconds(data: RankingData) -> float:
    """Return the time that a product with XᵀLX takes without it, for one of several systems."""
    own = unmade(data.feature_map)
    if own is None:
        work = {"step entry": float(data.n_entries), "step column": float(data.X.shape[1])}
    else:
        work = own.step_work(data)
    return seconds_of(work | {"step": 1.0})


def primal_seconds(data: RankingData, work: Work) -> float:
    """Return the time that direct solutions take in the primal form."""
    n_rows, d = len(data.y), float(data.n_features)
    work_of = dict.fromkeys(("gram", "sparse gram", "held out"), 0.0)
    if scipy.sparse.issparse(data.X) and data.feature_map is None:
        for count in (n_rows, max(1, data.queries.n_queries)):  # the rows, and sums over queries
            filled = min(d, data.X.nnz / count)
            few = filled <= limits.now.dense_share * d
            work_of["sparse gram" if few else "gram"] += count * (filled if few else d) ** 2
    elif (found := data.direct_work(n_rows, work.exact * work.n_alphas)) is not None:
        work_of |= found  # products of other kinds than features
        if work.exact:
            return seconds_of(work_of | {"basis": d**3})
    else:
        work_of["gram"] += n_rows * d * (d + 2.0 * int(data.X.shape[1]))
    if work.exact:
        work_of["gram"] += 2.0 * n_rows * d * d
        work_of["held out"] += float(n_rows) * d * work.n_alphas
        return seconds_of(work_of | {"basis": d**3})
    cube = "eigenvectors" if work.path else "solution"
    return seconds_of(work_of | {cube: work.n_systems * d**3, "square": work.n_systems * d**2})


def dual_seconds(data: RankingData, work: Work) -> float:
    """Return the time that direct solutions take in the dual form."""
    n, d = float(len(data.y)), float(data.X.shape[1])
    if scipy.sparse.issparse(data.X):
        matrix = {"sparse gram": float(data.X.nnz) ** 2 / max(1.0, d)}
    else:
        matrix = {"gram": 2 * n**2 * d}
    if not work.path:
        return seconds_of(matrix | {"solution": n**3, "square": n**2})
    n_times = 2 if work.n_systems > 1 and not work.exact else 1  # all folds from one decomposition
    return seconds_of(matrix | {"band": n_times * n**3, "square": n_times * n**2})


def most_products(
    data: RankingData, work: Work, form: str, seconds: float, n_rows: int | None = None
) -> float:
    """Return how many products of `Systems` to take before a direct solution.

    The dual form has `n_rows` unknowns if it is given: comparisons are more than their items.

    0 stands for the direct solution, which is estimated to take so many `seconds`. It is chosen if
    the fewest products would take longer, or if they would take more than a quarter of its time and
    it holds every query out exactly, which they cannot. How many products it must be depends on
    numbers that no shape tells. So once they have taken as long as the direct solution is estimated
    to take, it is begun. The result is infinity if its matrices do not fit in memory.
    """
    d = data.n_features
    n_rows = len(data.y) if n_rows is None else n_rows
    dense = data.feature_map is not None
    if form == "dual":
        bytes_ = 24.0 * n_rows**2 + 8.0 * n_rows * d * dense
    else:
        bytes_ = 8.0 * (DENSE_GRAM if dense else SPARSE_GRAM) * (d + 1) ** 2
    if not memory.fits(bytes_):
        return inf
    now, step = limits.now, step_seconds(data)
    fewest = work.n_systems * (FIRST_STEPS + FURTHER_STEPS * (work.n_alphas - 1))
    share = now.exact_patience if work.exact else 1.0
    if seconds <= now.direct_seconds or seconds * now.step_patience <= share * fewest * step:
        return 0.0
    return now.step_patience * max(seconds / step, float(fewest))
