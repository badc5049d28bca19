"""`propose`: which rows to measure next, given how sure a model is of their scores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from pairgram._support import limits
from pairgram._support.arrays import blocks
from pairgram._support.checks import ArgumentError, Rows, Vector
from pairgram._support.machine import require, single_threaded_blas, thread_count
from pairgram._support.parameters import check_size, check_text
from pairgram.certainty.posterior import ROWS_AT_ONCE, Posterior
from pairgram.features.kernel_map import kernel_among

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike

Strategy = Literal["upper", "variance"]
# The upper bound of a score is so many standard deviations above it. Of ¼, ½, 1 and 2, one is best
# or close to it on the assays of the benchmarks.
DEVIATIONS = 1.0


def propose(
    posterior: Posterior,
    X: RowsLike,
    n: int,
    *,
    strategy: Strategy = "upper",
) -> Rows:
    """Choose the rows whose labels would be worth most, such as compounds to assay next week.

    Parameters
    ----------
    posterior : Posterior
        What `pairgram.posterior` returned for a model.
    X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
        The pool to choose from. Leave out the rows that were measured, because any row of X may be
        chosen. A table is read into memory.
    n : int ≥ 1
        How many rows.
    strategy : str, default="upper"
        - "upper": the score plus its standard deviation, to find the best;
        - "variance": the score that is least sure.

    Returns
    -------
    ndarray of shape (n,), int64
        Row numbers of X, the best first. No row is chosen twice.

    Raises
    ------
    ValueError
        If there are fewer rows than `n`, or if a parameter is not as described.

    Notes
    -----
    Every choice takes the earlier ones into account, as if these had been measured and had come out
    as expected, so that the choices are diverse. Scores are taken relative to the mean of the
    training rows, or of X for a model of statistics alone. Each choice is a rank-one update and
    takes ``O(n_rows n_support)`` time, without a refit: the covariances C of scores become
    ``C − u uᵀ`` with ``u = C_i / sqrt(C_ii + σ²)`` for the chosen row i, where σ² is the variance
    of a label.

    References
    ----------
    Auer. Using confidence bounds for exploitation-exploration trade-offs. JMLR 3, 2002.

    Examples
    --------
    >>> from pairgram import Kernel, RankRLS, make_ranking, posterior, propose
    >>> X, y, _ = make_ranking(2, 100, random_state=0)
    >>> model = RankRLS(feature_map=Kernel("rbf")).fit(X[:50], y[:50])
    >>> propose(posterior(model, X[:50], y[:50]), X[50:], 3).shape
    (3,)
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(
            f"posterior must be what posterior(model, X, y) returns, got {type(posterior).__name__}"
        )
    check_text("strategy", strategy, get_args(Strategy))
    check_size("n", n)
    model, X, _, rows = posterior._read(X)
    scores = np.asarray(model.predict(X), np.float64)
    if n > len(scores):
        raise ArgumentError("n", f"must be at most {len(scores)}, the number of rows of X, got {n}")
    joint = _Joint(posterior, rows)
    values = _worth(strategy, scores, joint.variances)
    # Variances shrink, so a few rows may do, if the others were never worth as much as the chosen.
    taken = np.zeros(len(scores), dtype=bool)
    taken[np.argsort(-values, kind="stable")[: max(limits.now.proposed_rows, 4 * int(n))]] = True
    while True:
        some = np.flatnonzero(taken)
        chosen, least = _one_by_one(strategy, joint.some(some), scores[some], int(n))
        more = ~taken & (values >= least)
        if not more.any():
            return some[chosen]
        taken |= more


def _worth(strategy: Strategy, scores: Vector, variances: Vector) -> Vector:
    """Return what each row is worth."""
    deviations = np.sqrt(variances)
    return deviations if strategy == "variance" else scores + DEVIATIONS * deviations


def _one_by_one(strategy: Strategy, joint: _Joint, scores: Vector, n: int) -> tuple[Rows, float]:
    """Choose rows, each knowing the earlier ones; return them and the least that one was worth."""
    chosen: list[int] = []
    least = np.inf
    while len(chosen) < n:
        values = _worth(strategy, scores, joint.variances)
        values[chosen] = -np.inf
        row = int(np.argmax(values))
        chosen.append(row)
        least = min(least, float(values[row]))
        joint.learn(row)
    return np.array(chosen, np.int64), least


class _Joint:
    """The covariances of the scores of a pool, of which columns are made when they are needed.

    Parameters
    ----------
    posterior : Posterior
    rows : matrix of shape (n_rows, n_columns)
        Those of the pool, as the map of the model takes them.

    Attributes
    ----------
    variances : ndarray of shape (n_rows,)
        Those of the scores relative to the mean of the training rows.
    """

    def __init__(self, posterior: Posterior, rows: Matrix) -> None:
        self.posterior, self.rows = posterior, rows
        n_rows, width = rows.shape[0], posterior.root.shape[1]
        what = f"the covariances of {n_rows} rows with {len(posterior.root)} dimensions"
        require(what, 8.0 * n_rows * (len(posterior.root) + width), "take fewer rows of X")
        with single_threaded_blas, ThreadPoolExecutor(thread_count()) as pool:
            parts = list(blocks(n_rows, ROWS_AT_ONCE))
            H = np.concatenate([*pool.map(lambda part: posterior._features(rows[part]), parts)])
            self.with_mean = np.zeros(n_rows) + posterior._with_mean(H)
            H -= H.mean(axis=0) if posterior.mean is None else posterior.mean
            self.Z = np.concatenate([*pool.map(lambda part: posterior._rooted(H[part]), parts)])
            squares = posterior._squares(H, rows, self.with_mean)
        self.H = H if posterior.unseen and posterior.shares is None else np.empty((n_rows, 0))
        explained = np.einsum("ij,ij->i", self.Z, self.Z)
        self.variances = np.maximum(posterior._of(squares, explained), 0.0)
        self._changes: list[Vector] = []

    def some(self, rows: Rows) -> _Joint:
        """Return the covariances of some rows, before anything is learnt."""
        some = copy(self)
        for name in ("rows", "Z", "H", "with_mean", "variances"):
            setattr(some, name, getattr(self, name)[rows])
        some._changes = []
        return some

    def learn(self, row: int) -> None:
        """Learn the label of a row, which changes the variances of all scores."""
        part = slice(row, row + 1)
        if self.posterior.shares is None:
            products = self.H[part] @ self.H.T
        else:
            products = kernel_among(self.posterior._map, self.rows[part], self.rows)
            products = products - self.with_mean - self.with_mean[row]
        covariances = self.posterior._of(products, self.Z[part] @ self.Z.T)[0]
        for change in self._changes:
            covariances -= change[row] * change
        total = self.variances[row] + self.posterior.label_noise
        change = covariances / np.sqrt(total) if total > 0 else np.zeros_like(covariances)
        self._changes.append(change)
        self.variances = np.maximum(self.variances - change**2, 0.0)
