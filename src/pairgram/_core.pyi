from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__version__: str

# Compiled code of this thread raises a TimeoutError once the seconds are over; None lifts this.
def set_deadline(seconds: float | None) -> None: ...

_T = TypeVar("_T", np.float32, np.float64)
_Array = NDArray[np.float64]
# Weights, states (0 solved, 1 no pairs, 2 unsolved), and, if asked for, sums.
_OfGroups = tuple[_Array, NDArray[np.int8], tuple[_Array, _Array, _Array]]

class InputColumns:
    """Columns that are made of rows; csrc/inputs/input_columns.hpp says how."""

    @staticmethod
    def scaled(centres: NDArray[np.float64], factors: NDArray[np.float64]) -> InputColumns: ...
    @staticmethod
    def functions(
        knots: NDArray[np.float64],
        values: NDArray[np.float64],
        ends: NDArray[np.int64],  # (n_inputs,) of the knots of each input
        keeps_inputs: bool,
    ) -> InputColumns: ...

def column_moments(
    X: NDArray[_T], weights: NDArray[np.float64] | None, n_threads: int
) -> NDArray[np.float64]: ...  # lowest, highest, pivot, mean − pivot, squares: (5, n_columns)
def order_statistics(
    X: NDArray[_T], ranks: NDArray[np.int64], n_threads: int
) -> NDArray[np.float64]: ...  # (n_columns, n_ranks)
def list_columns(
    kind: str,
    keeps_inputs: bool,
    X: NDArray[_T],
    offsets: NDArray[np.int64],
    order: NDArray[np.int64] | None,
    n_threads: int,
) -> NDArray[_T]: ...  # what values are beside the others of their lists; csrc/features
def interleave_columns(
    columns: Sequence[NDArray[_T]], fill: NDArray[_T] | None, n_threads: int
) -> tuple[NDArray[_T], NDArray[np.bool_]]: ...  # rows, which columns have a NaN

class _NodeMap(Generic[_T]):
    def __init__(
        self,
        weights: NDArray[_T],
        bias: NDArray[_T],
        square: NDArray[_T] | None,
        segments: Sequence[tuple[int, int, str]],
        *,
        scale: float = 1.0,
        degree: int = 1,
        manhattan: bool = False,
        tanimoto: bool = False,
        minmax: bool = False,
        origin: NDArray[_T] | None = None,
        tail: NDArray[_T] | None = None,
    ) -> None: ...
    @staticmethod
    def after_columns(columns: InputColumns, then: _NodeMap[_T] | None = None) -> _NodeMap[_T]: ...
    def map(self, rows: NDArray[_T], n_threads: int) -> NDArray[_T]: ...
    def score(
        self,
        rows: NDArray[_T],
        coefs: NDArray[np.float64],  # (n_outputs,) or (n_models, n_outputs)
        n_threads: int,
    ) -> NDArray[np.float64]: ...  # NaN for rows with NaN or infinity
    @classmethod
    def cross(
        cls,
        n_inputs: int,
        kept: NDArray[np.int64],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
    ) -> Self: ...
    @property
    def n_outputs(self) -> int: ...
    def right_side(self, rows: NDArray[_T], n_threads: int) -> NDArray[np.float64]: ...
    def left_weights(
        self, rows: NDArray[_T], coef: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]: ...

class NodeMap64(_NodeMap[np.float64]): ...

class NodeMap32(_NodeMap[np.float32]):
    @staticmethod
    def in_double(
        map: NodeMap64,
        centre: NDArray[np.float64] | None = None,
        tail: NDArray[np.float32] | None = None,
        offset: NDArray[np.float32] | None = None,
    ) -> NodeMap32: ...

class RankingProblem:
    """Labels, queries, weights and the pairs that count, checked once.

    The arrays are kept, not copied: nobody may change them afterwards. Any number of threads may
    use one problem.
    """

    def __init__(
        self,
        labels: NDArray[np.float64],
        offsets: NDArray[np.int64],
        *,
        order: NDArray[np.int64] | None = None,
        row_weights: NDArray[np.float64] | None = None,
        query_weights: NDArray[np.float64] | None = None,
        pairs: str,  # none, kept, dropped or omega
        weighting: str,  # pairs, documents or queries
        level_values: NDArray[np.float64] | None = None,
        omega: NDArray[np.float64] | None = None,
    ) -> None: ...

def group_runs(
    ids: NDArray[np.int64], bounds: NDArray[np.int64]
) -> tuple[
    # the first run of every group, and offsets and order of rows
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
]: ...

class _SparsePairs:
    """CSR rows and the pairs of several problems; csrc/solvers/sparse_pairs.hpp says how."""

    def product(
        self,
        vectors: NDArray[np.float64],  # (n_vectors, n_columns)
        systems: NDArray[np.int64],  # (n_vectors,)
        n_threads: int = 1,
    ) -> NDArray[np.float64]: ...  # (n_vectors, n_columns)
    def counted(self, system: int) -> NDArray[np.bool_]: ...  # (n_queries,)
    def diagonal(
        self, system: int, n_threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...  # and what was subtracted from

class SparsePairs64(_SparsePairs): ...
class SparsePairs32(_SparsePairs): ...

def sparse_pairs(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[_T],
    n_columns: int,  # less than 2^31
    problems: list[RankingProblem] | list[Comparisons],
) -> _SparsePairs: ...

class _CrossPairs:
    """Products of columns and the pairs of several problems; csrc/solvers/cross_pairs.hpp."""

    is_constant: bool  # whether every query has one left side
    def product(
        self,
        vectors: NDArray[np.float64],  # (n_vectors, n_features)
        systems: NDArray[np.int64],  # (n_vectors,)
        n_threads: int = 1,
    ) -> NDArray[np.float64]: ...  # (n_vectors, n_features)
    def transposed(
        self, z: NDArray[np.float64], n_threads: int = 1
    ) -> NDArray[np.float64]: ...  # (n_features,)
    def counted(self, system: int) -> NDArray[np.bool_]: ...  # (n_queries,)
    def squares(
        self, system: int, of_left: bool = False, n_threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]: ...

class CrossPairs64(_CrossPairs): ...
class CrossPairs32(_CrossPairs): ...

def cross_pairs(
    rows: NDArray[_T],
    map: Any,
    problems: list[RankingProblem] | list[Comparisons],
    n_threads: int = 1,
) -> _CrossPairs: ...
def pair_weight(problem: RankingProblem) -> float: ...  # of both orders, and the diagonal
def apply_half_laplacian(
    problem: RankingProblem,
    vectors: NDArray[np.float64],  # changed in place; one per column (axis 0) or row (axis 1)
    *,
    axis: int = 0,
    adjoint: bool = False,
    n_threads: int = 1,
) -> None: ...
def laplacian_diagonal(problem: RankingProblem) -> NDArray[np.float64]: ...
def laplacian_pivots(
    problem: RankingProblem,
    *,
    largest: float = 0.0,  # L_ii of the whole problem: what is small beside it tells nothing
) -> NDArray[np.int64]: ...
def solve_laplacian(
    problem: RankingProblem,
    columns: NDArray[np.float64],  # changed in place
    known: NDArray[np.float64],
    *,
    largest: float = 0.0,
    n_threads: int = 1,
) -> None: ...
def gram(
    problem: RankingProblem,
    features: NDArray[_T],
    targets: NDArray[np.float64],
    *,
    map: _NodeMap[_T] | None = None,
    block_rows: int = 0,  # 0: what fits the cache
    varying: NDArray[np.int64] | None = None,
    n_threads: int = 1,
) -> tuple[NDArray[np.float64], float]: ...
def cross_hold_out(
    problem: RankingProblem,
    features: NDArray[_T],
    targets: NDArray[np.float64],
    *,
    basis: NDArray[np.float64],
    eigenvalues: NDArray[np.float64],
    projection: NDArray[np.float64],
    alphas: NDArray[np.float64],
    folds: NDArray[np.int64] | None = None,
    map: _NodeMap[_T] | None = None,
    n_threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...  # (n_alphas, n_rows), (n_rows,)
def hold_out(
    eigenvalues: NDArray[np.float64],
    projection: NDArray[np.float64],
    alphas: NDArray[np.float64],
    lost: NDArray[np.float64],  # (n_rows, rank + 1), unit after unit, the targets last
    scored: NDArray[np.float64],  # (n_rows, rank)
    offsets: NDArray[np.int64],  # of units
    scales: NDArray[np.float64] | None,
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...  # (n_alphas, n_rows), (n_units,)
def reduce_to_band(
    # symmetric; the upper triangle is read and overwritten by what makes Q
    matrix: NDArray[np.float64],
    width: int,
    n_threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...  # the band (n, width + 1), and factors
def apply_band_basis(
    matrix: NDArray[np.float64],
    factors: NDArray[np.float64],
    vectors: NDArray[np.float64],  # in rows; Q or its transpose times each, in place
    transposed: bool = False,
    n_threads: int = 1,
) -> None: ...
def form_band_basis(
    matrix: NDArray[np.float64],  # becomes the transpose of Q
    factors: NDArray[np.float64],
    n_threads: int = 1,
) -> None: ...
def solve_band(
    band: NDArray[np.float64],
    shifts: NDArray[np.float64],
    target: NDArray[np.float64],
    n_threads: int = 1,
) -> tuple[
    NDArray[np.float64],  # (n_shifts, n)
    NDArray[np.float64],  # log det(B + shift I), NaN where it is not positive definite
]: ...
def hold_out_band(
    band: NDArray[np.float64],
    basis: NDArray[np.float64],  # the transpose of Q
    target: NDArray[np.float64],  # Qᵀ t
    alphas: NDArray[np.float64],
    rows: NDArray[np.int64],  # fold after fold
    row_offsets: NDArray[np.int64],
    points: NDArray[np.float64],  # (n_points, n), fold after fold
    point_offsets: NDArray[np.int64],
    n_threads: int = 1,
) -> tuple[
    NDArray[np.float64],  # C_qq⁻¹ (C t)_q, (n_alphas, n_rows)
    NDArray[np.float64],  # scores in the points, (n_alphas, n_points)
    bool,  # whether all matrices are positive definite
]: ...
def largest_of_band(band: NDArray[np.float64]) -> float: ...
def cholesky(
    matrix: NDArray[np.float64],  # symmetric; the lower triangle becomes its factor, in place
    n_threads: int = 1,
) -> int: ...  # how many pivots are positive
def invert_transposed(
    factor: NDArray[np.float64],  # L; what is above its diagonal is not read
    n_threads: int,
) -> NDArray[np.float64]: ...  # L⁻ᵀ
def evaluate_metrics(
    labels: NDArray[np.float64],
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    order: NDArray[np.int64] | None,
    # of each metric: name, cut, gain, discount, ties, empty, relevant, max_grade, divisor,
    # shape
    specs: Sequence[tuple[str, int, str, str, str, float, float, float, str, float]],
    n_threads: int,
) -> NDArray[np.float64]: ...
def summarize(
    values: NDArray[np.float64],  # (n_models, n_queries)
    weights: NDArray[np.float64],
    group_of: NDArray[np.int64],
    n_groups: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...  # means, deviations (n_models, n_groups)
def join_ties(
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    order: NDArray[np.int64] | None,
    amplification: NDArray[np.float64],
    spread: float,
    rounding: float,
    n_threads: int,
) -> None: ...
def is_letor_id(id: str) -> bool: ...

class _LetorParser(Generic[_T]):
    """One thread at a time may use it: a second is a RuntimeError."""

    def __init__(
        self,
        *,
        name: str,
        n_features: int,
        zero_based: bool,
        keep_comments: bool,
        piece_size: int,
        n_threads: int,
    ) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview) -> None: ...
    def finish(self) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_lines(self) -> int: ...
    @property
    def n_values(self) -> int: ...
    @property
    def largest_index_line(self) -> int: ...
    def labels(self) -> NDArray[np.float64]: ...
    def ids(self) -> NDArray[np.int64] | None: ...
    def named_ids(self) -> list[tuple[int, int, str]]: ...
    def comments(self) -> list[str]: ...
    def take_dense(self) -> NDArray[_T]: ...
    def take_csr(self) -> tuple[NDArray[_T], NDArray[np.int32], NDArray[np.int64]]: ...

class LetorParser32(_LetorParser[np.float32]): ...
class LetorParser64(_LetorParser[np.float64]): ...

def format_letor(
    values: NDArray[np.float32] | NDArray[np.float64],
    indptr: NDArray[np.int64] | None,
    indices: NDArray[np.int64] | None,
    labels: NDArray[np.float64],
    *,
    first: int,
    n_rows: int,
    ids: str | None,
    comments: str | None,
    zero_based: bool,
) -> bytes: ...
def apply_activation(
    name: str,  # exp, gaussian, sigmoid, tanh, cos, sin, relu or hardlim
    values: NDArray[_T],
) -> None: ...

# Systems up to this order are solved without BLAS.
LARGEST_OWN: int

def fit_groups(
    problem: RankingProblem,
    queries: NDArray[np.int64],  # the first of every group, and the end of the last
    n_targets: NDArray[np.int64],  # of every group
    targets: NDArray[np.float64],  # (n_rows, n_targets) of group after group, by position
    blocks: Sequence[NDArray[_T]],  # rows: of all groups, or of each
    *,
    map: NodeMap64 | None = None,
    alpha: float,
    tells: bool = False,
    n_threads: int,
) -> _OfGroups: ...
def fit_group_svms(
    problem: RankingProblem,  # with pairs="dropped", or the omega of clicks
    queries: NDArray[np.int64],  # the first of every group, and the end of the last
    offsets: NDArray[np.float64],  # of every row
    blocks: Sequence[NDArray[_T]],  # rows: of all groups, or of each
    *,
    map: NodeMap64 | None = None,
    settings: tuple[str, float, float, int],  # loss, steepness, tol, max_iter
    Cs: NDArray[np.float64],  # of every group
    origin: NDArray[np.float64] | None = None,  # added to all weights
    tells: bool = False,
    n_threads: int,
) -> tuple[_OfGroups, list[Convergence]]: ...
def search_group_svms(
    problem: RankingProblem,  # with pairs="dropped", or the omega of clicks
    queries: NDArray[np.int64],  # the first of every group, and the end of the last
    offsets: NDArray[np.float64],  # of every row
    blocks: Sequence[NDArray[_T]],  # rows: of all groups, or of each
    *,
    range: tuple[int, int],  # the groups to search
    Cs: NDArray[np.float64],  # ascending
    relative: bool,  # divided by twice the trace of G times the steepness
    units: NDArray[np.int64],  # of every row, by position
    settings: tuple[str, float, float, int],  # loss, steepness, tol, max_iter
    map: NodeMap64 | None = None,
    n_threads: int,
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]: ...  # states, Cs, scores
def search_groups(
    problem: RankingProblem,
    queries: NDArray[np.int64],  # the first of every group, and the end of the last
    targets: NDArray[np.float64],  # of every row
    blocks: Sequence[NDArray[_T]],  # rows: of all groups, or of each
    *,
    range: tuple[int, int],  # the groups to search
    alphas: NDArray[np.float64] | None,
    multiples: NDArray[np.float64],
    powers: NDArray[np.float64],
    started: bool,
    limits: tuple[float, float, float],  # rounding, most_held, least_share
    units: NDArray[np.int64] | None = None,  # of every row, by position
    map: NodeMap64 | None = None,
    tells: bool = False,
    n_threads: int,
) -> tuple[
    # states, alphas, models, scores by position; with `tells` Gram matrices and weights of pairs
    NDArray[np.int8],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]: ...

class Comparisons:
    """Winners and losers among items, with the places of every item."""

    def __init__(
        self,
        n_items: int,
        winner: NDArray[np.int64],
        loser: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> None: ...
    def multiply(
        self, rows: NDArray[np.float64], targets: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]: ...  # [AᵀDA rows, AᵀD targets]

class ScoreLoss:
    """A loss of pairs as a function of the scores of rows, which stand query after query.

    One thread at a time may use it.
    """

    @property
    def pair_weights(self) -> NDArray[np.float64]: ...  # of every query

class ComparisonLoss(ScoreLoss):
    """The loss of comparisons, whose items are one query."""

    def __init__(
        self,
        comparisons: Comparisons,
        margins: NDArray[np.float64],
        *,
        loss: str,  # squared_hinge, squared or logistic
    ) -> None: ...

class PairOperator(ScoreLoss):
    """The loss of preference pairs."""

    def __init__(
        self,
        problem: RankingProblem,  # with pairs="dropped", or the omega of clicks
        *,
        loss: str = "squared_hinge",  # or squared, logistic
    ) -> None: ...

class RowFeatures:
    """The features H of rows, which stand query after query."""

    def sum(self, z: NDArray[np.float64], n_threads: int = 1) -> NDArray[np.float64]: ...  # Hᵀ z

def dense_features(
    features: NDArray[_T], order: NDArray[np.int64] | None = None
) -> RowFeatures: ...
def sparse_features(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64],
    n_columns: int,
) -> RowFeatures: ...
def made_features(
    n_rows: int,
    n_features: int,
    at_once: int,  # rows
    make: Callable[[int, int], NDArray[np.float64]],  # the rows at positions from a first to a last
) -> RowFeatures: ...
def whitened_features(features: RowFeatures, whitening: NDArray[np.float64]) -> RowFeatures: ...

class WeightsLoss:
    """The loss of rows as a function of the weights of their features.

    One thread at a time may use it: a second is a RuntimeError.
    """

    def at(  # the loss at w + t · step, its two derivatives by t, and its gradient by w
        self, w: NDArray[np.float64], step: NDArray[np.float64], t: float
    ) -> tuple[float, float, float, NDArray[np.float64]]: ...
    def product(  # the Hessian at w times the direction
        self, w: NDArray[np.float64], direction: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...

def loss_of_rows(
    features: RowFeatures,
    pairs: ScoreLoss,
    offset: NDArray[np.float64],
    n_threads: int = 1,
) -> WeightsLoss: ...
def loss_by_passes(
    n_features: int,
    at: Callable[[NDArray[np.float64], NDArray[np.float64], float], tuple[Any, ...]],
    product: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> WeightsLoss: ...

class Convergence:
    """The history of the Newton steps.

    The norm of the gradient is relative to its norm at w = 0. `n_passes` says how often the loss
    had been asked for after every step.
    """

    @property
    def objective(self) -> NDArray[np.float64]: ...
    @property
    def relative_gradient(self) -> NDArray[np.float64]: ...
    @property
    def n_hessian_products(self) -> NDArray[np.int64]: ...
    @property
    def n_passes(self) -> NDArray[np.int64]: ...
    @property
    def step(self) -> NDArray[np.float64]: ...  # lengths
    @property
    def converged(self) -> bool: ...

def solve_svm(
    losses: Sequence[tuple[WeightsLoss, NDArray[np.int64]]],  # with the features that are constant
    curvature: NDArray[np.float64],  # the Gram matrix of pairs, or its diagonal
    Cs: NDArray[np.float64],
    *,
    steepness: float,
    tol: float,
    max_iter: int,
    n_threads: int,
) -> tuple[NDArray[np.float64], list[Convergence]]: ...  # (n_losses, n_Cs, n_features)
def top_products(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    k: int,
    indptr: NDArray[np.int64] | None = None,
    left_out: NDArray[np.int64] | None = None,
    n_threads: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...  # (n_rows, k) both
def score_rows(
    features: NDArray[_T],
    coefs: NDArray[np.float64],  # (n_features,) or (n_models, n_features)
    n_threads: int = 1,
) -> NDArray[np.float64]: ...  # (n_rows,) or (n_models, n_rows), bits whatever stands beside
def score_each(
    features: NDArray[_T],
    coefs: NDArray[np.float64],  # (n_models, n_features)
    models: NDArray[np.int64],  # (n_rows,), below 0 for none
    n_threads: int = 1,
) -> NDArray[np.float64]: ...  # (n_rows,), NaN without a model, else the bits of score_rows
def count_varying(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    order: NDArray[np.int64] | None = None,
    row_weights: NDArray[np.float64] | None = None,
    counted: NDArray[np.bool_],
    pointwise: bool,
) -> None: ...
