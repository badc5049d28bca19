"""Truncated Newton for losses on preference pairs, preconditioned by the pairgram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from pairgram import _core
from pairgram._support.threads import single_threaded_blas
from pairgram._support.types import Vector
from pairgram.svm.feature_rows import FeatureRows

__all__ = ["Convergence", "PairSolver", "cholesky_preconditioner", "diagonal_preconditioner"]

Preconditioner = Callable[[Vector], Vector]

FORCING = 0.2  # CG ends at this share of the gradient, both in the preconditioner's norm
MAX_CG_STEPS = 500
SLOPE_SHARE = 0.05  # the line search ends at this share of the first slope
MAX_LINE_STEPS = 30
SMALLEST_GRADIENT = 1e-150  # of a norm, whose square is taken
ROUNDING = 1e-15  # a step that promises less than this share of the objective is rounding error
WIDEST_DOUBLE = 512  # factors of a larger order are kept in single precision
MOST_RIDGE = 1e-3  # on a factored matrix of unit diagonal; 64 times more at every try


@dataclass
class Convergence:
    """What happened, Newton step by Newton step.

    Attributes
    ----------
    objective, relative_gradient : list of float
        Before the first step and after every one; the norm is relative to the gradient's at 0.
    n_hessian_products, step : list of int, list of float
        Of every step, and its length.
    converged : bool
    """

    objective: list[float] = field(default_factory=list)
    relative_gradient: list[float] = field(default_factory=list)
    n_hessian_products: list[int] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    converged: bool = False


class PairSolver:
    """Minimises ``½ ‖w‖² + C · loss(H w)`` for one C after another, each from the last solution.

    Parameters
    ----------
    rows : FeatureRows
        H.
    pairs : PairOperator
        The loss of the same rows.
    start : ndarray of shape (n_features,)
    n_threads : int

    Attributes
    ----------
    w : ndarray of shape (n_features,)

    Notes
    -----
    Newton steps ``(I + 2C HᵀAᵀDAH) s = −gradient`` by conjugate gradients: one product with the
    Hessian, and so one reading of H, for each of theirs. Then the minimum along the step, found on
    the scores alone, and a reading of H for the gradient there.

    References
    ----------
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. Algorithm 3 and eq. 23-25.
    """

    def __init__(
        self, rows: FeatureRows, pairs: _core.PairOperator, start: Vector, n_threads: int
    ) -> None:
        self._rows, self._pairs, self._n_threads = rows, pairs, n_threads
        zeros = np.zeros(pairs.n_rows)
        self.w, self._scores = start, zeros
        self._loss, self._scores_gradient = pairs.set_scores(zeros, n_threads)
        self._pull = rows.sum(self._scores_gradient)  # the loss's gradient in w
        self._pull_at_zero = _norm(self._pull)
        if start.any():
            self._scores = rows.scores(start)
            self._loss, self._scores_gradient = pairs.set_scores(self._scores, n_threads)
            self._pull = rows.sum(self._scores_gradient)

    @np.errstate(over="ignore", invalid="ignore")
    def solve(
        self, C: float, precondition: Preconditioner, tol: float, max_iter: int
    ) -> Convergence:
        """Go to the minimum for C, until the gradient is `tol` times that at 0.

        One step is taken at least: beside a large C the gradient of another C's solution is small.
        Rounding error ends it too: where a step promises no decrease of the objective that float64
        can show, and more than half of what the last one promised. (The gradient's norm tells less:
        steps shrink it in the norm of the inverse Hessian.) Where numbers overflow it has not
        converged.

        Raises
        ------
        ValueError
            If the objective or its gradient overflows before the first step, or the gradient is so
            small that its square vanishes.
        """
        history = Convergence()
        last = np.inf
        while True:
            gradient = self.w + C * self._pull
            norm = _norm(gradient)
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

    def _newton_step(
        self, C: float, gradient: Vector, precondition: Preconditioner
    ) -> tuple[Vector, Vector, int]:
        """Return (s, H s, number of products) with the Newton system solved by CG."""
        step, along = np.zeros_like(gradient), np.zeros_like(self._scores)
        residual = -gradient
        direction = preconditioned = precondition(residual)
        size = first = float(residual @ preconditioned)
        n_products = 0
        while n_products < MAX_CG_STEPS and size > FORCING**2 * first:
            n_products += 1
            product, scores = self._rows.hessian_product(self._pairs, direction)
            product *= C
            product += direction
            length = size / float(direction @ product)
            step += length * direction
            along += length * scores
            residual -= length * product
            preconditioned = precondition(residual)
            before, size = size, float(residual @ preconditioned)
            direction = preconditioned + size / before * direction
        return step, along, n_products

    def _move(self, C: float, step: Vector, along: Vector) -> float:
        """Go to the minimum along the step, by Newton's method within a bracket; return where."""
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
        self._pull = self._rows.sum(gradient)
        return t


def _norm(x: Vector) -> float:
    """Return the 2-norm, which overflows only where it is not a number of float64."""
    largest = float(np.abs(x).max(initial=0.0))
    scaled = 0 < largest < np.inf
    return largest * float(np.linalg.norm(x / largest)) if scaled else largest


def cholesky_preconditioner(G: Vector, C: float) -> Preconditioner:
    """Return the inverse of ``I + 2C G``, the Hessian where all pairs are active, as a function.

    What is factored is the matrix scaled to a unit diagonal: in single precision where the order is
    large and that suffices, else in double, with a ridge where rounding has left it indefinite. If
    no small one helps, the inverse is that of the diagonal alone. The same bits for any number of
    BLAS threads.
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
        largest = float(np.abs(scaled).max(initial=0.0)) or 1.0  # may not be one of float32
        half = (scaled / largest).astype(factor.dtype)
        half = solve_triangular(factor, half, trans=1, overwrite_x=True)
        half = solve_triangular(factor, half, overwrite_x=True)
        return np.asarray(largest * half.astype(np.float64) / size)

    return solve


def _factor(G: Vector, factors: Vector, ridge: float, dtype: type[np.floating[Any]]) -> Vector:
    """Return the Cholesky factor of ``factors_i G_ij factors_j`` with 1 + ridge on the diagonal."""
    scaled = np.empty(G.shape, dtype)
    for begin in range(0, len(G), 64):  # in double, which the values of G may need
        rows = slice(begin, begin + 64)
        scaled[rows] = factors[rows, None] * G[rows] * factors
    scaled[np.diag_indices(len(G))] = 1 + ridge
    # the transpose is the same matrix, in the order of LAPACK
    return np.asarray(scipy.linalg.cholesky(scaled.T, overwrite_a=True, check_finite=False))


def diagonal_preconditioner(diagonal: Vector, C: float) -> Preconditioner:
    """Return the inverse of the diagonal ``1 + 2C diagonal`` as a function."""
    size = np.hypot(1.0, 2**0.5 * C**0.5 * np.sqrt(diagonal))
    return lambda residual: residual / size / size
