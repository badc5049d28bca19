"""A truncated Newton solver for losses on pairs, which the Gram matrix preconditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import blocks
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import cached_property, resolve_n_threads, single_threaded_blas
from pairgram.data.dataset import RankingData
from pairgram.features.base import FeatureMap, ValueMap, checked, node_map_of, unwhitened
from pairgram.features.formulas import native_nodes
from pairgram.tables.blocks import Dataset
from pairgram.tables.passes import Task

if TYPE_CHECKING:
    from pairgram._support.types import Matrix

# Kernel values with landmarks are stored in place of features if there are at most this many
# landmarks for each feature.
MOST_LANDMARKS = 3
# Features are made in blocks of rows with this many bytes of features, of which threads share one.
MAP_BLOCK_BYTES = 64 << 20


class PairLoss(Protocol):
    """The interface of the loss of pairs as a function of the scores of rows, ordered by query."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ...

    def set_scores(self, scores: Vector, n_threads: int = 1) -> tuple[float, Vector]:
        """Return the loss and its gradient, (n_rows,)."""
        ...

    def product(self, u: Vector, n_threads: int = 1) -> Vector:
        """Return the Hessian at the scores that were set, times u."""
        ...

    def product_of_queries(self, first: int, last: int, u: Vector) -> Vector:
        """Return the same for the rows of some queries."""
        ...

    def hessian_product(
        self, features: Any, s: Vector, order: Rows | None = None, n_threads: int = 1
    ) -> tuple[Vector, Vector]:
        """Return (Hᵀ times the Hessian times H s, H s) for features H."""
        ...


class FeatureRows(Protocol):
    """The interface of products with the features H of all rows, ordered by query."""

    def scores(self, w: Vector) -> Vector:
        """Return H w, (n_rows,)."""
        ...

    def sum(self, z: Vector) -> Vector:
        """Return Hᵀ z, (n_features,)."""
        ...

    def hessian_product(self, pairs: PairLoss, s: Vector) -> tuple[Vector, Vector]:
        """Return (Hᵀ (2 AᵀDA) H s, H s). In H s, queries without pairs may have 0 instead."""
        ...


@dataclass(frozen=True)
class DenseRows:
    """Dense rows in memory. A Hessian product reads them once."""

    H: NDArray[Any]
    order: NDArray[np.int64] | None
    n_threads: int

    def scores(self, w: Vector) -> Vector:
        return _core.score_rows(self.H, w, self.order, self.n_threads)

    def sum(self, z: Vector) -> Vector:
        return _core.sum_rows(self.H, z, self.order, self.n_threads)

    def hessian_product(self, pairs: PairLoss, s: Vector) -> tuple[Vector, Vector]:
        return pairs.hessian_product(self.H, s, self.order, self.n_threads)


@dataclass(frozen=True)
class SparseRows:
    """Rows of a float64 CSR matrix, multiplied by SciPy."""

    H: Any
    n_threads: int

    def scores(self, w: Vector) -> Vector:
        return np.asarray(self.H @ w)

    def sum(self, z: Vector) -> Vector:
        return np.asarray(self.H.T @ z)

    def hessian_product(self, pairs: PairLoss, s: Vector) -> tuple[Vector, Vector]:
        scores = self.scores(s)
        return self.sum(pairs.product(scores, self.n_threads)), scores


@dataclass(frozen=True)
class WhitenedRows:
    """Features K W of rows K. W is applied to vectors, in 2 · n_landmarks² flops per product."""

    rows: FeatureRows
    W: Vector

    def scores(self, w: Vector) -> Vector:
        return self.rows.scores(self.W @ w)

    def sum(self, z: Vector) -> Vector:
        return np.asarray(self.W.T @ self.rows.sum(z))

    def hessian_product(self, pairs: PairLoss, s: Vector) -> tuple[Vector, Vector]:
        total, scores = self.rows.hessian_product(pairs, self.W @ s)
        return self.W.T @ total, scores


@dataclass(frozen=True)
class MappedRows:
    """Rows whose features are computed again, block by block, whenever they are read.

    A block holds whole queries and is computed once for a Hessian product. A query that is longer
    than a block is cut, and computed twice.
    """

    data: RankingData
    n_features: int
    n_threads: int

    @cached_property
    def _blocks(self) -> list[tuple[int, int, list[slice]]]:
        """Return (first query, last query, positions of the parts) of every block."""
        offsets = self.data.queries.offsets
        row_bytes = self.n_features * self.data.X.dtype.itemsize
        most = max(1, limits.now.dense_block_bytes // max(1, row_bytes))
        blocks = []
        first, n_queries = 0, self.data.queries.n_queries
        while first < n_queries:
            begin = int(offsets[first])
            last = int(np.searchsorted(offsets, begin + most, side="right")) - 1
            last = max(last, first + 1)
            end = int(offsets[last])
            parts = [slice(at, min(at + most, end)) for at in range(begin, end, most)]
            blocks.append((first, last, parts))
            first = last
        return blocks

    def _features(self, positions: slice) -> NDArray[Any]:
        order = self.data.queries.order
        H = self.data.features(positions if order is None else order[positions])
        single = H.dtype == np.float32
        return np.ascontiguousarray(H, dtype=np.float32 if single else np.float64)

    def scores(self, w: Vector) -> Vector:
        scores = np.empty(len(self.data.y))
        for _, _, parts in self._blocks:
            for part in parts:
                scores[part] = _core.score_rows(self._features(part), w, None, self.n_threads)
        return scores

    def sum(self, z: Vector) -> Vector:
        total = np.zeros(self.n_features)
        for _, _, parts in self._blocks:
            for part in parts:
                total += _core.sum_rows(self._features(part), z[part], None, self.n_threads)
        return total

    def hessian_product(self, pairs: PairLoss, s: Vector) -> tuple[Vector, Vector]:
        scores, z = np.empty(len(self.data.y)), np.empty(len(self.data.y))
        total = np.zeros(self.n_features)
        H: Any = None
        for first, last, parts in self._blocks:
            for part in parts:
                H = self._features(part)
                scores[part] = _core.score_rows(H, s, None, self.n_threads)
            rows = slice(parts[0].start, parts[-1].stop) if parts else slice(0)
            z[rows] = pairs.product_of_queries(first, last, scores[rows])
            for part in parts:
                H = H if len(parts) == 1 else self._features(part)
                total += _core.sum_rows(H, z[part], None, self.n_threads)
        return total, scores


def make_rows(data: RankingData, n_threads: int, whitening: Vector | None = None) -> FeatureRows:
    """Return the features H of `data` for products: stored, or computed again at every use.

    With a `whitening` W, the features are ``H W``.
    """
    if whitening is not None:
        return WhitenedRows(make_rows(data, n_threads), whitening)
    if data.feature_map is not None:
        return MappedRows(data, data.n_features, n_threads)
    order = data.queries.order
    if scipy.sparse.issparse(data.X):
        H = data.X if order is None else data.X[order]
        return SparseRows(H.astype(np.float64), n_threads)
    return DenseRows(data.X, order, n_threads)


def with_stored_features(data: RankingData, dtype: type[np.floating[Any]]) -> RankingData:
    """Return `data` with stored features in place of X and the map, if half the memory holds them.

    Parameters
    ----------
    data : RankingData
    dtype : float32 or float64
        Type of the stored features. Sums over them are in double precision in any case.
    """
    if data.feature_map is None:
        return data
    n_rows, n_features = len(data.y), data.n_features
    n_bytes = n_rows * n_features * np.dtype(dtype).itemsize
    if not memory.fits(2 * n_bytes):
        return data
    H = np.empty((n_rows, n_features), dtype)
    store = _storing(data.feature_map, data.X)
    step = max(1, MAP_BLOCK_BYTES // max(1, 8 * n_features))
    for rows in blocks(n_rows, step):
        if store is None:
            H[rows] = data.features(rows)
        else:
            store(data.X[rows], H[rows])
    return replace(data, X=H, feature_map=None)


def _storing(
    feature_map: FeatureMap | ValueMap, X: Matrix
) -> Callable[[Any, NDArray[Any]], None] | None:
    """Return a function that writes the features of rows into an array, rounded to its type.

    It is None if only Python can map the rows.
    """
    if scipy.sparse.issparse(X):
        return None
    dtype, shift = X.dtype, None
    check: Callable[[Any], Any] = partial(checked, feature_map)
    if isinstance(feature_map, ValueMap):
        dtype, shift, check = np.dtype(np.float64), feature_map.shift, feature_map.checked
        nodes = feature_map.node_map(dtype)
    else:
        nodes = node_map_of(feature_map, dtype)
    if nodes is None:
        return None
    threads = resolve_n_threads(feature_map.n_threads)

    def store(rows: Matrix, out: NDArray[Any]) -> None:
        rows = np.require(check(rows), dtype, ["C", "A"])
        nodes.store(rows, out, shift, threads)

    return store


def without_whitening(data: RankingData) -> tuple[RankingData, Vector | None]:
    """Return `data` with centred kernel values in place of Nyström features, and their whitening.

    This saves n · n_landmarks · n_features flops once, and adds n_landmarks · n_features flops to
    every product. If the map is not a Nyström map, or if it has far fewer features than landmarks,
    `data` are returned unchanged, with None.
    """
    parts = unwhitened(data.feature_map)
    if parts is None:
        return data, None
    values, whitening = parts
    n_landmarks, n_features = whitening.shape
    if n_landmarks > MOST_LANDMARKS * n_features:
        return data, None
    return replace(data, feature_map=values), whitening


def in_single(data: RankingData, n_threads: int) -> RankingData:
    """Return `data` with stored float32 features, if they fit, for a Gram matrix of low precision.

    Nyström features are made of centred kernel values by a product in float32, which shifts all of
    them by the same vector. This takes half of the time of a product in float64.
    """
    values, whitening = without_whitening(data)
    stored = with_stored_features(values, np.float32)
    if whitening is None:
        return stored
    if stored.feature_map is not None:
        return data
    n_features = whitening.shape[1]
    linear = [(0, n_features, "linear")]
    nodes = native_nodes(np.float32, whitening, np.zeros(n_features), None, linear)
    return replace(stored, X=nodes.map(stored.X, n_threads))


def scatter_diagonal(data: RankingData, factor: Vector) -> Vector:
    """Return ``Σ_q factor_q Σ_{i in q} v_i (h_ij − mean_qj)²`` for every feature, (n_features,).

    Values that are negative by rounding are set to 0. CSR features stay sparse.
    """
    v, index, queries = data.v, data.queries.index(), data.queries
    total = np.bincount(index, v, minlength=queries.n_queries)
    inverse = np.divide(factor, total, out=np.zeros_like(factor), where=total > 0)
    if data.feature_map is None and scipy.sparse.issparse(data.X):
        H = data.X.astype(np.float64)
        select = scipy.sparse.csr_array(
            (v, (index, np.arange(len(v)))), shape=(queries.n_queries, len(v))
        )
        squares = (factor[index] * v) @ H.power(2) - inverse @ (select @ H).power(2)
        return np.asarray(np.maximum(squares, 0.0)).ravel()
    result = np.zeros(data.n_features)
    numbers = np.arange(len(v))
    for query in np.flatnonzero(factor * total):
        rows = numbers[queries.rows(int(query))]
        origin = np.asarray(data.features(rows[:1])[0], dtype=np.float64)
        moment, square = np.zeros_like(result), np.zeros_like(result)
        for block in blocks(len(rows), 1024):
            part = rows[block]
            H = data.features(part) - origin
            moment += v[part] @ H
            square += v[part] @ (H * H)
        result += factor[query] * square - inverse[query] * moment**2
    return np.asarray(np.maximum(result, 0.0))


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


class PairRows(NamedTuple):
    """Some rows, as a solver reads them.

    Attributes
    ----------
    features : FeatureRows
        The features H, ordered by query.
    pairs : PairLoss
        The loss of the same rows.
    offset : ndarray of shape (n_rows,)
        Scores that are added to H w in the loss.
    n_threads : int
    """

    features: FeatureRows
    pairs: PairLoss
    offset: Vector
    n_threads: int


# The scores of rows that do not stay in memory.
NOT_KEPT = np.empty(0)


class Line(NamedTuple):
    """The models ``w + t · step``.

    Attributes
    ----------
    w, step : ndarray of shape (n_features,)
    scores, along : ndarray of shape (n_rows,), or `NOT_KEPT`
        H w with the offset, and H times the step, of rows that stay in memory.
    """

    w: Vector
    step: Vector
    scores: Vector = NOT_KEPT
    along: Vector = NOT_KEPT


class RowLoss:
    """The loss of some rows by a model on a line. Derivatives are computed when they are asked for.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
    loss : float
    slope : float
        The derivative by t; 0 at t = 0, where nobody asks for it.
    """

    def __init__(self, line: Line, t: float, rows: PairRows) -> None:
        scores, along = line.scores, line.along
        if not len(scores):
            scores = rows.offset
            if line.w.any():
                scores = scores + rows.features.scores(line.w)
            if t:
                along = rows.features.scores(line.step)
        self.scores = scores + t * along if t else scores
        self._rows, self._along = rows, along
        self.loss, self._gradient = rows.pairs.set_scores(self.scores, rows.n_threads)
        self.slope = float(self._gradient @ along) if t else 0.0

    @property
    def pull(self) -> Vector:
        """The gradient by w, (n_features,)."""
        return self._rows.features.sum(self._gradient)

    @property
    def curve(self) -> float:
        """The second derivative by t."""
        product = self._rows.pairs.product(self._along, self._rows.n_threads)
        return float(self._along @ product)


class LossSums(NamedTuple):
    """What `RowLoss` computes, summed over rows that do not stay in memory."""

    loss: float
    pull: Vector
    slope: float
    curve: float
    scores: Vector = NOT_KEPT

    @classmethod
    def of(cls, line: Line, t: float, rows: PairRows) -> LossSums:
        """Return the loss of some queries at a point of a line: all of it at once."""
        found = RowLoss(line, t, rows)
        return cls(found.loss, found.pull, found.slope, found.curve if t else 0.0)

    def join(self, other: LossSums) -> LossSums:
        """Return the loss of the queries of both."""
        return LossSums(
            self.loss + other.loss,
            self.pull + other.pull,
            self.slope + other.slope,
            self.curve + other.curve,
        )


def _product(w: Vector, direction: Vector, keeps: bool, rows: PairRows) -> tuple[Vector, Vector]:
    """Multiply a direction with the Hessian of the loss of some queries at w.

    Returns the product, (n_features,), and H times the direction of rows that stay in memory, which
    stand at w.
    """
    if not keeps:
        RowLoss(Line(w, w), 0.0, rows)  # the Hessian is that of its scores
    product, along = rows.features.hessian_product(rows.pairs, direction)
    return product, along if keeps else NOT_KEPT


def _products(first: tuple[Vector, Vector], second: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """Return the product for the queries of both."""
    return first[0] + second[0], NOT_KEPT


class PairSolver:
    """Minimises ``½ ‖w‖² + C · loss(H w + offset)`` for one C after another.

    The solver starts for each C from the last solution.

    Parameters
    ----------
    data : Dataset of PairRows
    start : ndarray of shape (n_features,)
        The weights to start from.
    constant : ndarray of int64
        The features that are the same in both rows of every pair. Their weights stay exactly 0,
        where rounding errors in the sums of huge values would move them.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The current weights.

    Notes
    -----
    A Newton step solves ``(I + 2C HᵀAᵀDAH) s = −gradient`` by conjugate gradients. Each of their
    steps takes one product with the Hessian, which reads H once. The line search then finds the
    minimum along s. The scores of rows in memory are kept: the search does not read H, and the
    gradient at its end needs one more reading. The rows of a table are read once for every length
    of the step that is tried, which gives the gradient too.

    References
    ----------
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. Algorithm 3 and eq. 23-25.
    """

    def __init__(self, data: Dataset[PairRows], start: Vector, constant: Rows) -> None:
        self._data, self._constant = data, constant
        self._keeps, self._n_passes = not data.is_read, 1
        start = start.copy()
        start[constant] = 0.0
        zero = np.zeros_like(start)
        self._move_to(zero, self._loss_at(Line(zero, zero), 0.0))
        self._pull_at_zero = norm_of(self._pull)
        if start.any():
            self._n_passes += 1
            self._move_to(start, self._loss_at(Line(start, zero), 0.0))

    def _loss_at(self, line: Line, t: float) -> RowLoss | LossSums:
        made: Any = RowLoss if self._keeps else LossSums.of
        found: RowLoss | LossSums = self._data.reduce(Task(partial(made, line, t), LossSums.join))
        return found

    def _move_to(self, w: Vector, found: RowLoss | LossSums) -> None:
        self.w, self._loss, self._scores = w, found.loss, found.scores
        self._pull = found.pull  # the gradient of the loss by w
        self._pull[self._constant] = 0.0

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
            history.step.append(self._move(C, step, along, promise))
            history.n_hessian_products.append(n_products)
            history.n_passes.append(0 if self._keeps else self._n_passes)

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
            task = Task(partial(_product, self.w, direction, self._keeps), _products)
            product, scores = self._data.reduce(task)
            product[self._constant] = 0.0
            product *= C
            product += direction
            curvature = float(direction @ product)
            if not curvature > 0:  # it is positive, but for rounding errors
                break
            length = size / curvature
            step += length * direction
            along += length * scores
            residual -= length * product
            preconditioned = preconditioned_residual()
            before, size = size, float(residual @ preconditioned)
            direction = preconditioned + size / before * direction
        self._n_passes += n_products
        return step, along, n_products

    def _move(self, C: float, step: Vector, along: Vector, promise: float) -> float:
        """Move to the minimum along the step, by bracketed Newton steps; return the step length.

        At its beginning, the slope is the negative of what the step promises.
        """
        linear, square = float(self.w @ step), float(step @ step)
        line = Line(self.w, step, self._scores, along)
        low, high, t = 0.0, np.inf, 1.0
        for more in reversed(range(MAX_LINE_STEPS)):
            self._n_passes += 1
            found = self._loss_at(line, t)
            slope = linear + t * square + C * found.slope
            if abs(slope) <= SLOPE_SHARE * promise or more == 0:
                break
            low, high = (t, high) if slope < 0 else (low, t)
            t -= slope / (square + C * found.curve)
            if not low < t < high:
                t = (low + high) / 2 if np.isfinite(high) else 2 * low
        self._move_to(self.w + t * step, found)
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
    with single_threaded_blas:
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
