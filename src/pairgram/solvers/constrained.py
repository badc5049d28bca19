"""Weights that are not negative, and sparse weights, from the Gram matrix alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from pairgram._support.checks import Flags, Vector, did_you_mean
from pairgram._support.parameters import check
from pairgram.solvers.ridge_path import DEFAULT_POWERS, blas_guard, default_alphas

NO_MAP = (
    "positive, l1_ratio and n_nonzero_coefs are about the columns of X: leave them out with a "
    "feature map or a kernel"
)
NO_PRIOR = (
    "prior must be None with positive, l1_ratio or n_nonzero_coefs, which are about the weights "
    "and not their difference from a prior: give its scores to fit, as offset"
)

# A column is left out of a selection if the columns before it leave less than this share of it.
LEAST_LEFT = 1e-12
# Coordinate descent ends at this duality gap, as a share of the squared targets. It has to find
# only the signs: the weights then come from a linear system.
COARSE, FINE = 1e-8, 1e-14
MAX_ITER = 100_000
# Block pivoting takes so many steps that do not lower the number of wrong weights, and so many in
# all. It ends if a pivot of the Cholesky factor is smaller, and gradients have these rounding
# errors; both are of a matrix with a diagonal of 1.
BLOCK_STEPS, MOST_STEPS = 3, 300
LEAST_PIVOT, ROUNDING = 1e-7, 1e-13


@dataclass(frozen=True, eq=False)
class Constraints:
    """What the weights of a least-squares problem must be like, besides fitting.

    Attributes
    ----------
    positive : bool or list of int and str
        Whether all weights must be ≥ 0, or the columns whose weights must be.
    l1_ratio : float from 0 to 1
        The share of the penalty that is on ``2 ‖w‖₁`` instead of ``‖w‖²``.
    n_nonzero_coefs : int or None
        How many weights are not 0 at most, by forward selection.
    names : sequence of str or None
        The names of the columns, which number those in `positive`.
    """

    positive: Any = False
    l1_ratio: float = 0.0
    n_nonzero_coefs: int | None = None
    names: Sequence[str] | None = None

    @classmethod
    def make(
        cls, positive: Any, l1_ratio: Any, n_nonzero_coefs: Any, names: Sequence[str] | None
    ) -> Constraints | None:
        """Check the parameters of an estimator; return None if they constrain nothing.

        Raises
        ------
        ValueError
            If a parameter is not as described, or if two of them cannot be combined.
        """
        if isinstance(positive, np.ndarray) and positive.ndim == 1:
            positive = positive.tolist()
        if not isinstance(positive, (bool, np.bool_)):
            listed = isinstance(positive, Sequence) and not isinstance(positive, str)
            listed = listed and all(map(_is_column, positive))
            if not listed or len(set(positive)) < len(positive):
                raise ValueError(
                    "positive must be True, False, or a list of different names or numbers of "
                    f"columns, not a mask: got {positive!r}"
                )
        check("l1_ratio", l1_ratio)
        check("n_nonzero_coefs", n_nonzero_coefs)
        some = positive if isinstance(positive, (bool, np.bool_)) else len(positive) > 0
        if n_nonzero_coefs is not None and (some or l1_ratio):
            raise ValueError(
                "n_nonzero_coefs must be None with positive or l1_ratio: forward selection is by "
                "least squares. Choose features first, and fit to these"
            )
        if l1_ratio and some and not isinstance(positive, (bool, np.bool_)):
            raise ValueError("positive must be True or False with l1_ratio, got a list of columns")
        if not (some or l1_ratio or n_nonzero_coefs is not None):
            return None
        return cls(positive, float(l1_ratio), n_nonzero_coefs, names)

    def require_columns(self, n_columns: int, n_weights: int) -> None:
        """Raise a ValueError if columns are not there, or do not have one weight each."""
        self._mask(n_columns)
        named = not isinstance(self.positive, (bool, np.bool_))
        if n_columns != n_weights and (named or self.n_nonzero_coefs is not None):
            raise ValueError(
                "n_nonzero_coefs and positive as a list are about the columns of X, of which "
                "these inputs make two weights each: take inputs='quantile', or positive=True"
            )

    def path(self, G: Vector, g: Vector, alphas: Vector) -> Vector:
        """Return the weights that minimise ``wᵀGw − 2 gᵀw`` and the penalty, for every alpha.

        Parameters
        ----------
        G, g : ndarray of shape (n_features, n_features) and (n_features,), float64
        alphas : ndarray of shape (n_alphas,), each ≥ 0

        Returns
        -------
        ndarray of shape (n_alphas, n_features), float64

        Raises
        ------
        ValueError
            If `positive` has a column that is not there, or there are fewer columns than
            `n_nonzero_coefs`.
        """
        positive = self._mask(len(g))
        most = self.n_nonzero_coefs
        if most is not None and most > len(g):
            raise ValueError(f"n_nonzero_coefs must be at most {len(g)}, got {most}")
        with blas_guard(len(g)):
            if self.l1_ratio:
                solutions = np.zeros((len(alphas), len(g)))
                some = alphas > 0
                solutions[some] = _elastic_net(
                    G, g, alphas[some], self.l1_ratio, bool(positive.all())
                )
                if not some.all():  # no penalty, which coordinate descent cannot do
                    solutions[~some] = _bounded(G, g, 0.0, positive, g > 0)
                return solutions
            if most is not None:
                return np.stack([_select(G, g, alpha, most) for alpha in alphas])
            solutions = np.empty((len(alphas), len(g)))
            used = g > 0
            for solution, alpha in zip(solutions, alphas, strict=True):
                solution[:] = _bounded(G, g, alpha, positive, used)
                used = solution > 0  # most are those of the next alpha too
            return solutions

    def default_alphas(self, G: Vector, g: Vector, started: bool = False) -> Vector:
        """Return a descending grid. With `l1_ratio` the first is the least with all weights 0.

        `started` says that there are offsets; see `ridge_path.default_alphas`.
        """
        if self.l1_ratio:
            largest = np.abs(g).max(initial=0.0) / self.l1_ratio or 1.0
            return largest * 2.0 ** (-np.arange(len(DEFAULT_POWERS)) / 3)
        largest = scipy.linalg.eigvalsh(G, subset_by_index=[len(g) - 1, len(g) - 1])[0] or 1.0
        return default_alphas(largest, started)

    def _mask(self, n_columns: int) -> Flags:
        """Return which weights must be ≥ 0, (n_columns,)."""
        if isinstance(self.positive, (bool, np.bool_)):
            return np.full(n_columns, bool(self.positive))
        if n_columns == 2 and list(self.positive) in ([0, 1], [1, 0]):
            raise ValueError(
                f"positive={list(self.positive)} of two columns may be a mask or numbers: give "
                "True for both columns, or a list of the number or name of one"
            )
        columns = numbers_of(self.positive, self.names)
        wrong = next((j for j in columns if not 0 <= j < n_columns), None)
        if wrong is not None:
            raise ValueError(
                f"positive has the column {wrong}, but X has the columns 0 to {n_columns - 1}"
            )
        mask = np.zeros(n_columns, dtype=bool)
        mask[columns] = True
        return mask


def numbers_of(positive: Sequence[str | int], names: Sequence[str] | None) -> list[int]:
    """Return the numbers of columns that are given by numbers or names.

    Raises
    ------
    ValueError
        If a name is not among the names of the columns, or these have none.
    """
    known = [] if names is None else list(names)
    unknown = next((c for c in positive if isinstance(c, str) and c not in known), None)
    if unknown is not None:
        found = "X has no names of columns" if names is None else f"X has {known}"
        found += did_you_mean(unknown, known)
        raise ValueError(f"positive has the column {unknown!r}, but {found}")
    return [known.index(c) if isinstance(c, str) else int(c) for c in positive]


def _is_column(value: object) -> bool:
    return isinstance(value, (str, Integral)) and not isinstance(value, bool)


def _root(A: Vector) -> tuple[Vector, Vector]:
    """Return R and the matrix that maps g to b, with ``RᵀR = A`` and ``Rᵀb = g``."""
    eigenvalues, vectors = scipy.linalg.eigh(A)
    kept = eigenvalues > np.finfo(np.float64).eps * len(A) * eigenvalues.max(initial=0.0)
    roots = np.sqrt(np.where(kept, eigenvalues, 1.0))
    R = np.where(kept, roots, 0.0)[:, None] * vectors.T
    return R, np.where(kept, 1 / roots, 0.0)[:, None] * vectors.T


def _bounded(G: Vector, g: Vector, alpha: float, positive: Flags, used: Flags) -> Vector:
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
        R, to_b = _root(A)
        return scipy.optimize.nnls(R, to_b @ g)[0]
    inverse = scipy.linalg.pinvh(A[np.ix_(free, free)])
    across = inverse @ A[np.ix_(free, positive)]
    alone = inverse @ g[free]
    if positive.any():
        rest = A[np.ix_(positive, positive)] - A[np.ix_(positive, free)] @ across
        R, to_b = _root((rest + rest.T) / 2)
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

    References
    ----------
    Kim, Park. Fast nonnegative matrix factorization: an active-set-like method and comparisons.
    SIAM Journal on Scientific Computing 33, 2011, algorithm 2.
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


def _select(G: Vector, g: Vector, alpha: float, most: int) -> Vector:
    """Return the ridge solution on at most so many columns, added one by one, the best next first.

    The best next column lowers the objective most if all weights are fitted anew. This is Cholesky
    decomposition of ``G + alpha I`` with this choice of pivots, in n_columns · most² flops.
    """
    diagonal = G.diagonal() + alpha
    left, residual = diagonal.copy(), g.copy()
    factor, half = np.zeros((most, len(g))), np.zeros(most)
    chosen: list[int] = []
    for step in range(most):
        usable = left > LEAST_LEFT * diagonal
        usable[chosen] = False
        if not usable.any():
            break
        gains = np.where(usable, residual**2 / np.where(usable, left, 1.0), -1.0)
        j = int(np.argmax(gains))
        row = G[j] - factor[:step, j] @ factor[:step]
        row[j] += alpha
        row /= np.sqrt(left[j])
        half[step] = residual[j] / np.sqrt(left[j])
        residual -= row * half[step]
        left -= row**2
        factor[step] = row
        chosen.append(j)
    solution, n = np.zeros(len(g)), len(chosen)
    if n:  # the rows of the factor are a Cholesky factor of the chosen columns
        solution[chosen] = scipy.linalg.solve_triangular(factor[:n, chosen], half[:n])
    return solution


def _elastic_net(G: Vector, g: Vector, alphas: Vector, l1_ratio: float, positive: bool) -> Vector:
    """Return elastic nets, (n_alphas, n_features): signs by coordinate descent, then exact weights.

    scikit-learn divides the squared errors by the number of rows, which is that of the root here.
    """
    todo = np.argsort(-alphas, kind="stable")  # each starts from the solution before
    R, to_b = _root(G)
    b = to_b @ g
    solutions = np.zeros((len(alphas), len(g)))
    if not b.any() or not len(alphas):
        return solutions
    for tol in (COARSE, FINE):
        with warnings.catch_warnings(record=True) as unfinished:
            warnings.simplefilter("always", ConvergenceWarning)
            _, coefs, _ = enet_path(
                R,
                b,
                l1_ratio=l1_ratio,
                alphas=alphas[todo] / len(R),
                precompute=np.ascontiguousarray(G),
                Xy=g,
                positive=positive,
                tol=tol,
                max_iter=MAX_ITER,
            )
        rough = []
        for at, coef in zip(todo, coefs.T, strict=True):
            exact = _polished(G, g, alphas[at], l1_ratio, coef, positive)
            solutions[at] = coef if exact is None else exact
            if exact is None:
                rough.append(at)
        todo = np.array(rough, dtype=np.int64)
        if not len(todo):
            return solutions
    if unfinished:  # with the finer tolerance
        warnings.warn(
            f"coordinate descent did not converge in {MAX_ITER} steps for {len(todo)} of "
            f"{len(alphas)} alphas: give larger alphas",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solutions


def _polished(
    G: Vector, g: Vector, alpha: float, l1_ratio: float, coef: Vector, positive: bool
) -> Vector | None:
    """Return the exact solution that has the signs of an approximation, or None if there is none.

    A solution has a gradient of ``alpha l1_ratio`` times the sign where a weight is not 0, and at
    most of this size elsewhere.
    """
    used = np.flatnonzero(coef)
    signs, l1 = np.sign(coef), alpha * l1_ratio
    A = G[np.ix_(used, used)] + alpha * (1 - l1_ratio) * np.eye(len(used))
    solution = np.zeros(len(g))
    if len(used):
        try:
            factor = scipy.linalg.cho_factor(A)
        except np.linalg.LinAlgError:
            return None
        solution[used] = scipy.linalg.cho_solve(factor, g[used] - l1 * signs[used])
    gradient = g - G @ solution
    size = gradient if positive else np.abs(gradient)
    unused = np.ones(len(g), dtype=bool)
    unused[used] = False
    slack = 1e-9 * np.abs(g).max(initial=0.0)
    agrees = (np.sign(solution[used]) == signs[used]).all()
    return solution if agrees and (size[unused] <= l1 + slack).all() else None
