"""A truncated Newton solver for losses on preference pairs, preconditioned by the Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

import pairgram._core as _core
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Rows, Vector
from pairgram.svm.feature_rows import FeatureRows

__all__ = [
    "Convergence",
    "PairSolver",
    "Preconditioner",
    "cholesky_preconditioner",
    "diagonal_preconditioner",
    "norm_of",
]

Preconditioner = Callable[[Vector], Vector]

# Conjugate gradients end when the residual is this share of the gradient, in the norm of the
# preconditioner, or after MAX_CG_STEPS steps.
FORCING = 0.2
MAX_CG_STEPS = 500
# The line search ends when the slope is this share of the first slope, or after MAX_LINE_STEPS
# steps.
SLOPE_SHARE = 0.05
MAX_LINE_STEPS = 30
# The norm of the gradient at w = 0 must be at least this, so that its square is a number.
SMALLEST_GRADIENT = 1e-150
# A step that promises to lower the objective by less than this share is rounding error.
ROUNDING = 1e-15
# Factors of a larger order than this are kept in single precision.
WIDEST_DOUBLE = 512
# This is the largest ridge that is added to a matrix of unit diagonal so that it can be factorised.
# The ridge grows 64 times at every attempt.
MOST_RIDGE = 1e-3


@dataclass
class Convergence:
    """The history of the Newton steps.

    Attributes
    ----------
    objective, relative_gradient : list of float
        The values before the first step and after every step. The norm of the gradient is relative
        to its norm at w = 0.
    n_hessian_products, step : list of int, list of float
        The number of Hessian products in every step, and the length of the step.
    n_passes : list of int
        How often the rows of a table had been read after every step; 0 for rows in memory.
    converged : bool
    """

    objective: list[float] = field(default_factory=list)
    relative_gradient: list[float] = field(default_factory=list)
    n_hessian_products: list[int] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    n_passes: list[int] = field(default_factory=list)
    converged: bool = False


class PairSolver:
    """Minimises ``½ ‖w‖² + C · loss(H w + offset)`` for one C after another.

    The solver starts for each C from the last solution.

    Parameters
    ----------
    rows : FeatureRows
        The features H.
    pairs : PairOperator
        The loss of the same rows.
    start : ndarray of shape (n_features,)
        The weights to start from.
    offset : ndarray of shape (n_rows,)
        Scores that are added to H w in the loss.
    constant : ndarray of int64
        The features that are the same in both rows of every pair. Their weights stay exactly 0,
        where rounding errors in the sums of huge values would move them.
    n_threads : int

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The current weights.
    n_passes : int
        How often the rows of a table have been read; see `TableSolver`.

    Notes
    -----
    A Newton step solves ``(I + 2C HᵀAᵀDAH) s = −gradient`` by conjugate gradients. Each of their
    steps takes one product with the Hessian, which reads H once. The line search then finds the
    minimum along s from the scores, without reading H. The gradient there needs one more reading
    of H.

    References
    ----------
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. Algorithm 3 and eq. 23-25.
    """

    n_passes = 0

    def __init__(
        self,
        rows: FeatureRows,
        pairs: _core.PairOperator,
        start: Vector,
        offset: Vector,
        constant: Rows,
        n_threads: int,
    ) -> None:
        self._rows, self._pairs, self._n_threads = rows, pairs, n_threads
        self._constant = constant
        start = start.copy()
        start[constant] = 0.0
        self.w, self._scores = start, offset
        self._loss, self._scores_gradient = pairs.set_scores(offset, n_threads)
        self._pull = self._sum(self._scores_gradient)  # the gradient of the loss by w
        self._pull_at_zero = norm_of(self._pull)
        if start.any():
            self._scores = offset + rows.scores(start)
            self._loss, self._scores_gradient = pairs.set_scores(self._scores, n_threads)
            self._pull = self._sum(self._scores_gradient)

    def _sum(self, z: Vector) -> Vector:
        """Return Hᵀ z for gradients z of the scores."""
        total = self._rows.sum(z)
        total[self._constant] = 0.0
        return total

    @np.errstate(over="ignore", invalid="ignore")
    def solve(
        self, C: float, precondition: Preconditioner, tol: float, max_iter: int
    ) -> Convergence:
        """Find the minimum for C: stop when the gradient's norm is `tol` times that at w = 0.

        At least one step is taken, because the gradient at the solution for another C may be small
        relative to a large C. The solver also stops, as converged, at the limit of rounding error:
        when a step promises a decrease of the objective that float64 cannot show, and more than
        half of what the last step promised. (The norm of the gradient says less, because steps
        shrink it in the norm of the inverse Hessian.) If numbers overflow, the solver stops without
        convergence.

        Raises
        ------
        ValueError
            If the objective or its gradient overflows before the first step, or if the gradient is
            so small that its square vanishes.
        """
        history = Convergence()
        last = np.inf
        while True:
            gradient = self.w + C * self._pull
            norm = norm_of(gradient)
            reference = C * self._pull_at_zero
            objective = 0.5 * float(self.w @ self.w) + C * self._loss
            if not (history.step or np.isfinite(objective + norm + reference)):
                raise ValueError(f"C={C:g} too large for these rows and weights: it overflows")
            if not history.step and 0 < reference < SMALLEST_GRADIENT:
                raise ValueError(
                    f"C={C:g} too small for these rows and weights: the gradient at w = 0 is "
                    f"{reference:.1g}, want {SMALLEST_GRADIENT:g} or more, whose square is a number"
                )
            history.objective.append(objective)
            history.relative_gradient.append(norm / reference if reference > 0 else 0.0)
            if norm <= tol * reference and (history.step or norm == 0):
                history.converged = True
                return history
            if len(history.step) == max_iter:
                return history
            step, along, n_products = self._newton_step(C, gradient, precondition)
            promise = -float(gradient @ step)
            if not (0 < promise < np.inf and np.isfinite(along).all()):
                return history
            if promise <= ROUNDING * objective and promise > last / 2:
                history.converged = True
                return history
            last = promise
            history.step.append(self._move(C, step, along))
            history.n_hessian_products.append(n_products)
            history.n_passes.append(self.n_passes)

    def _newton_step(
        self, C: float, gradient: Vector, precondition: Preconditioner
    ) -> tuple[Vector, Vector, int]:
        """Solve the Newton system by conjugate gradients; return (s, H s, number of products)."""
        step, along = np.zeros_like(gradient), np.zeros_like(self._scores)
        residual = -gradient

        def preconditioned_residual() -> Vector:
            found = precondition(residual)
            found[self._constant] = 0.0  # they may vary in other queries, as those of a fold
            return found

        preconditioned = preconditioned_residual()
        direction = preconditioned
        size = first = float(residual @ preconditioned)
        n_products = 0
        while n_products < MAX_CG_STEPS and size > FORCING**2 * first:
            n_products += 1
            product, scores = self._product(direction)
            product[self._constant] = 0.0
            product *= C
            product += direction
            length = size / float(direction @ product)
            step += length * direction
            along += length * scores
            residual -= length * product
            preconditioned = preconditioned_residual()
            before, size = size, float(residual @ preconditioned)
            direction = preconditioned + size / before * direction
        return step, along, n_products

    def _product(self, direction: Vector) -> tuple[Vector, Vector]:
        """Return the product of the Hessian of the loss with a direction, and H times it."""
        return self._rows.hessian_product(self._pairs, direction)

    def _move(self, C: float, step: Vector, along: Vector) -> float:
        """Move to the minimum along the step, by bracketed Newton steps; return the step length."""
        linear, square = float(self.w @ step), float(step @ step)
        first = linear + C * float(self._scores_gradient @ along)
        low, high, t = 0.0, np.inf, 1.0
        for more in reversed(range(MAX_LINE_STEPS)):
            scores = self._scores + t * along
            loss, gradient = self._pairs.set_scores(scores, self._n_threads)
            slope = linear + t * square + C * float(gradient @ along)
            if abs(slope) <= SLOPE_SHARE * abs(first) or more == 0:
                break
            low, high = (t, high) if slope < 0 else (low, t)
            curve = self._pairs.product(along, self._n_threads)
            t -= slope / (square + C * float(along @ curve))
            if not low < t < high:
                t = (low + high) / 2 if np.isfinite(high) else 2 * low
        self.w = self.w + t * step
        self._scores, self._loss, self._scores_gradient = scores, loss, gradient
        self._pull = self._sum(gradient)
        return t


def norm_of(x: Vector) -> float:
    """Return the 2-norm; it overflows only if the norm itself is too large for float64."""
    largest = float(np.abs(x).max(initial=0.0))
    scaled = 0 < largest < np.inf
    return largest * float(np.linalg.norm(x / largest)) if scaled else largest


def cholesky_preconditioner(G: Vector, C: float) -> Preconditioner:
    """Return the inverse of ``I + 2C G``, the Hessian if all pairs are active, as a function.

    The matrix is scaled to a unit diagonal and factorised. A matrix of large order is factorised in
    single precision if that suffices, otherwise in double precision. A ridge is added if rounding
    has made the matrix indefinite. If no small ridge helps, the result is the inverse of the
    diagonal. It has the same bits for any number of BLAS threads.
    """
    order = len(G)
    root_of_C = 2**0.5 * C**0.5
    size = np.hypot(1.0, root_of_C * np.sqrt(np.maximum(np.diag(G), 0.0)))  # root of the diagonal
    ridge = 64 * order * float(np.finfo(np.float64).eps)
    tries: list[tuple[type[np.floating[Any]], float]] = [(np.float64, 0.0)]
    if order > WIDEST_DOUBLE:
        tries.insert(0, (np.float32, 0.0))
    while ridge <= MOST_RIDGE:
        tries.append((np.float64, ridge))
        ridge *= 64
    root = None
    with single_threaded_blas():
        for dtype, ridge in tries:
            try:
                root = _factor(G, root_of_C / size, ridge, dtype)
                break
            except np.linalg.LinAlgError:
                continue
    if root is None:
        return lambda residual: residual / size / size
    factor = root
    (solve_triangular,) = scipy.linalg.get_blas_funcs(("trsv",), (factor,))

    def solve(residual: Vector) -> Vector:
        scaled = residual / size
        largest = float(np.abs(scaled).max(initial=0.0)) or 1.0  # it may be outside float32
        half = (scaled / largest).astype(factor.dtype)
        half = solve_triangular(factor, half, trans=1, overwrite_x=True)
        half = solve_triangular(factor, half, overwrite_x=True)
        return np.asarray(largest * half.astype(np.float64) / size)

    return solve


def _factor(G: Vector, factors: Vector, ridge: float, dtype: type[np.floating[Any]]) -> Vector:
    """Return the Cholesky factor of ``factors_i G_ij factors_j`` with 1 + ridge on the diagonal."""
    scaled = np.empty(G.shape, dtype)
    for begin in range(0, len(G), 64):  # in double precision, since G may exceed float32
        rows = slice(begin, begin + 64)
        scaled[rows] = factors[rows, None] * G[rows] * factors
    scaled[np.diag_indices(len(G))] = 1 + ridge
    # The transpose is the same matrix, in the memory order of LAPACK.
    return np.asarray(scipy.linalg.cholesky(scaled.T, overwrite_a=True, check_finite=False))


def diagonal_preconditioner(diagonal: Vector, C: float) -> Preconditioner:
    """Return the inverse of the diagonal ``1 + 2C diagonal`` as a function."""
    size = np.hypot(1.0, 2**0.5 * C**0.5 * np.sqrt(diagonal))
    return lambda residual: residual / size / size
