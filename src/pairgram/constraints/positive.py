"""`Positive`: weights that are not negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.optimize

from pairgram._support.checks import Flags, Vector, did_you_mean
from pairgram._support.parameters import TEXT, Setting, integer, is_integer, optional
from pairgram.solvers.constraint import Constraint

# Block pivoting takes so many steps that do not lower the number of wrong weights, and so many in
# all. It ends if a pivot of the Cholesky factor is smaller, and gradients have these rounding
# errors; both are of a matrix with a diagonal of 1.
BLOCK_STEPS, MOST_STEPS = 3, 300
LEAST_PIVOT, ROUNDING = 1e-7, 1e-13


def _are_columns(value: object) -> bool:
    """Tell whether a value is a list of names or numbers of columns."""
    return isinstance(value, list) and all(TEXT.fits(v) or integer(0).fits(v) for v in value)


@dataclass(eq=False, repr=False)
class Positive(Constraint):
    """Weights that must be ≥ 0, as a value of the parameter `constraint` of `RankRLS`.

    Parameters
    ----------
    columns : list of column names or numbers, or None, default=None
        The columns of X whose weights must be ≥ 0. None means all of them.

    Notes
    -----
    Non-negative least squares by block principal pivoting takes about d³ flops for every alpha
    besides the Gram matrix of d features.

    References
    ----------
    Kim, Park. Fast nonnegative matrix factorization: an active-set-like method and comparisons.
    SIAM Journal on Scientific Computing 33, 2011, algorithm 2.

    Examples
    --------
    >>> from pairgram import Positive, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLS(constraint=Positive([0, 2])).fit(X, y, qid=qid)
    >>> bool(model.coef_[0] >= 0 and model.coef_[2] >= 0)
    True
    """

    settings: ClassVar[Mapping[str, Setting]] = {
        "columns": optional(Setting("a list of names or numbers of columns", _are_columns))
    }

    columns: Any = None

    def of_columns(self, n_columns: int, n_weights: int, names: Any) -> Positive:
        """Return the constraint of these columns, which it knows by their numbers."""
        columns = self.columns
        if columns is None:
            return self
        if isinstance(columns, np.ndarray) and columns.ndim == 1:
            columns = columns.tolist()
        listed = isinstance(columns, (list, tuple))
        listed = listed and all(isinstance(one, str) or is_integer(one) for one in columns)
        if not listed or len(set(columns)) < len(columns):
            raise ValueError(
                "columns of Positive must be None, for all, or a list of different names or "
                f"numbers of columns, not a mask: got {self.columns!r}"
            )
        if n_columns != n_weights:
            raise ValueError(
                "columns of Positive are those of X, of which these inputs make two weights each: "
                "take feature_map='quantile', or Positive()"
            )
        if n_columns == 2 and list(columns) in ([0, 1], [1, 0]):
            raise ValueError(
                f"columns={list(columns)} of two columns may be a mask or numbers: give Positive() "
                "for both columns, or a list of the number or name of one"
            )
        known = [] if names is None else list(names)
        places: dict[Any, int] = {name: place for place, name in enumerate(known)}
        places |= {place: place for place in range(n_columns)}
        wrong = next((one for one in columns if one not in places), None)
        if wrong is not None:
            found = f"{known or f'the columns 0 to {n_columns - 1}'}{did_you_mean(wrong, known)}"
            raise ValueError(f"Positive has the column {wrong!r}, but X has {found}")
        return Positive([places[one] for one in columns])

    def solve(self, G: Vector, g: Vector, alphas: Vector) -> Vector:
        """Return the weights for every alpha, each of which starts from those before."""
        positive = np.zeros(len(g), dtype=bool)
        positive[slice(None) if self.columns is None else self.columns] = True
        solutions = np.empty((len(alphas), len(g)))
        used = g > 0
        for solution, alpha in zip(solutions, alphas, strict=True):
            solution[:] = bounded(G, g, alpha, positive, used)
            used = solution > 0  # most are those of the next alpha too
        return solutions


def root_of(A: Vector) -> tuple[Vector, Vector]:
    """Return R and the matrix that maps g to b, with ``RᵀR = A`` and ``Rᵀb = g``."""
    eigenvalues, vectors = scipy.linalg.eigh(A)
    kept = eigenvalues > np.finfo(np.float64).eps * len(A) * eigenvalues.max(initial=0.0)
    roots = np.sqrt(np.where(kept, eigenvalues, 1.0))
    R = np.where(kept, roots, 0.0)[:, None] * vectors.T
    return R, np.where(kept, 1 / roots, 0.0)[:, None] * vectors.T


def bounded(G: Vector, g: Vector, alpha: float, positive: Flags, used: Flags) -> Vector:
    """Return the ridge solution whose weights are ≥ 0 where `positive` says so.

    `used` is a guess of the weights that are not 0.
    """
    A = G + alpha * np.eye(len(g))
    # Columns of one size keep their digits in a root. A positive factor keeps the signs.
    sizes = np.sqrt(np.where(A.diagonal() > 0, A.diagonal(), 1.0))
    A, g = A / np.outer(sizes, sizes), g / sizes
    x = _pivoted(A, g, positive, used)
    if x is None:
        x = _eliminated(A, g, positive)
    x[positive & (x <= _rounding(g, x))] = 0.0  # by a rounding error, a weight would rank rows
    return x / sizes


def _rounding(g: Vector, x: Vector) -> float:
    """Return what counts as a rounding error of weights and gradients."""
    return float(ROUNDING * (np.abs(g).max(initial=0.0) + np.abs(x).sum()))


def _eliminated(A: Vector, g: Vector, positive: Flags) -> Vector:
    """Minimise what `_pivoted` does for a singular matrix, which takes longer.

    Weights that are free are eliminated, and what is left is non-negative least squares on a root.
    """
    free = ~positive
    solution = np.zeros(len(g))
    if not free.any():
        R, to_b = root_of(A)
        return scipy.optimize.nnls(R, to_b @ g)[0]
    inverse = scipy.linalg.pinvh(A[np.ix_(free, free)])
    across = inverse @ A[np.ix_(free, positive)]
    alone = inverse @ g[free]
    if positive.any():
        rest = A[np.ix_(positive, positive)] - A[np.ix_(positive, free)] @ across
        R, to_b = root_of((rest + rest.T) / 2)
        target = g[positive] - A[np.ix_(positive, free)] @ alone
        solution[positive] = scipy.optimize.nnls(R, to_b @ target)[0]
    solution[free] = alone - across @ solution[positive]
    return solution


def _pivoted(A: Vector, g: Vector, positive: Flags, used: Flags) -> Vector | None:
    """Minimise ``xᵀAx − 2 gᵀx`` with ``x ≥ 0`` where `positive`, by block principal pivoting.

    All weights of a wrong sign leave, and all whose gradient is negative enter. If that does not
    lower their number, only the last of them does, which ends for every positive definite A.

    Parameters
    ----------
    A : ndarray of shape (n_columns, n_columns), float64, with a diagonal of 1
    g : ndarray of shape (n_columns,), float64
    positive, used : ndarray of shape (n_columns,), bool
        Which weights must be ≥ 0, and a guess of those that are not 0.

    Returns
    -------
    ndarray of shape (n_columns,), or None
        None if a matrix is numerically singular, or if there are too many steps.
    """
    used = used | ~positive
    fewest, left = len(g) + 1, BLOCK_STEPS
    for _ in range(MOST_STEPS):
        x = np.zeros(len(g))
        try:
            factor, lower = scipy.linalg.cho_factor(A[np.ix_(used, used)], check_finite=False)
        except np.linalg.LinAlgError:
            return None
        pivots = factor.diagonal()
        if pivots.min(initial=1.0) < LEAST_PIVOT:
            return None
        x[used] = scipy.linalg.cho_solve((factor, lower), g[used], check_finite=False)
        wrong = np.where(used, positive & (x < 0), A @ x - g < -_rounding(g, x))
        n_wrong = int(np.count_nonzero(wrong))
        if n_wrong == 0:
            return x
        if n_wrong < fewest:
            fewest, left = n_wrong, BLOCK_STEPS
        elif left:
            left -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        used = used ^ wrong
    return None
