"""`RankingData`: checked rows, labels, queries and weights, ready for compiled code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

import pairgram._core as _core
from pairgram._support import limits, machine as memory
from pairgram._support.arrays import (
    blocks,
    blocks_of_parts,
    column_names,
    is_plain,
    is_ready,
    read_rows,
    real_array,
    refuse_index,
    refuse_lossy,
    refuse_text,
)
from pairgram._support.checks import (
    AnyArray,
    ArgumentError,
    Flags,
    Rows,
    Vector,
    first_not_finite,
    not_finite,
    require_finite,
    verbatim,
)
from pairgram._support.machine import cached_property, thread_count
from pairgram.data.clicks import click_targets
from pairgram.data.judgements import Judgements, as_judgements
from pairgram.data.pairs import (
    LARGEST_PAIR_WEIGHT,
    SMALLEST_PAIR_WEIGHT,
    Pairs,
    no_pairs,
    no_training_pairs,
)
from pairgram.data.queries import Queries, check_weights
from pairgram.features.feature_map import (
    checked,
    is_kernel,
    mapped,
    n_outputs,
    node_map_of,
    scores_of_rows,
    unmade,
)

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, Matrix, RowsLike, Sparse, Transformer


class Block(NamedTuple):
    """Dense rows of whole queries, for compiled code.

    Attributes
    ----------
    rows : slice or ndarray of shape (n_rows,), int64
        The numbers of these rows in the data.
    problem : _core.RankingProblem
    X : C-contiguous ndarray of shape (n_rows, n_inputs), float64 or float32
    targets : C-contiguous ndarray of shape (n_rows, n_targets), float64
    node_map : compiled map of X to the features, or None if X holds the features
    """

    rows: Rows | slice
    problem: _core.RankingProblem
    X: Any
    targets: Vector
    node_map: Any


class RowInfo(NamedTuple):
    """What a caller tells of rows besides X and y: the arguments of `RankRLS.fit`."""

    qid: ArrayLike | None = None
    sample_weight: ArrayLike | None = None
    query_weight: ArrayLike | None = None
    offset: ArrayLike | None = None
    groups: ArrayLike | None = None


def as_slice(rows: Rows | slice) -> Rows | slice:
    """Return rows that stand together as a slice, whose arrays are not copied."""
    if isinstance(rows, slice) or not len(rows) or rows[-1] - rows[0] != len(rows) - 1:
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows


@dataclass(frozen=True, eq=False)
class RankingData:
    """Rows, labels, queries and weights that have been checked.

    Attributes
    ----------
    X : C-contiguous ndarray or csr_array, shape (n_rows, n_features), float64 or float32
        It may hold NaN or infinity, which are found in the Gram matrix.
    y : ndarray of shape (n_rows,), float64
    queries : Queries
    row_weights : ndarray of shape (n_rows,), float64, or None
    query_weights : ndarray of shape (n_queries,), float64, or None
    feature_map : fitted transformer of X, or None
    offset : ndarray of shape (n_rows,), float64, or None
        Scores that are there before the fit: the offsets of the caller and the scores of a prior.
        A model is fitted to the targets less the offset. The labels alone decide which pairs count.
    applied : FittedInputs or None
        Inputs that X has been through already, if it is not the rows as they were given.
    names : ndarray of shape (n_inputs,) of str, or None
        The names of the columns of X, as it was given.
    group_of : ndarray of shape (n_queries,), int64, or None
        For every query the number of its group, in the order of the groups' ids. All queries of a
        group are held out together. None if each is a group of its own.
    judgements : Judgements or None
        What took the place of labels, if y was more than that: comparisons or clicks.
    """

    X: Any
    y: Vector
    queries: Queries
    row_weights: Vector | None = None
    query_weights: Vector | None = None
    feature_map: Any = None
    offset: Vector | None = None
    applied: Any = None
    names: AnyArray | None = None
    group_of: Rows | None = None
    judgements: Judgements | None = None

    @property
    def preferences(self) -> Any:
        """Comparisons of the rows, if they took the place of labels.

        The row weights are then those of the comparisons of each row, and the labels are 0.
        """
        return None if self.judgements is None else self.judgements.comparisons

    @classmethod
    def delimit(
        cls,
        X: Matrix,
        y: Any,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> RankingData:
        """Group rows into queries, after `read_labelled` has read them; check ids and weights."""
        n_rows, judgements = X.shape[0], as_judgements(y)
        if judgements is not None:
            told = RowInfo(qid, sample_weight, query_weight, groups=groups)
            judgements.require_alone(told._asdict())
            y, sample_weight = judgements.of_rows(n_rows, sample_weight)
        if not scipy.sparse.issparse(X):
            X = np.require(X, requirements=["C", "A"])
        data = cls(X, y, Queries.make(n_rows, qid=qid), judgements=judgements)
        others = sample_weight, query_weight, offset, groups
        return data if all(one is None for one in others) else data._told(*others)

    def _told(self, sample_weight: Any, query_weight: Any, offset: Any, groups: Any) -> RankingData:
        """Return the data with weights, offsets and groups, which are checked."""
        n_rows, known = len(self.y), dict[str, Any]()
        if sample_weight is not None:
            known["row_weights"] = check_weights(sample_weight, n_rows, "sample_weight")
        if query_weight is not None:
            known["query_weights"] = self.queries.per_query(query_weight, "query_weight")
        if offset is not None:
            known["offset"] = check_offset(offset, n_rows)
        if groups is not None:
            known["group_of"] = self.queries.groups(groups)[0]
        return replace(self, **known)

    @property
    def n_features(self) -> int:
        """The number of features that the feature map makes, or of X if there is no map."""
        if self.feature_map is None:
            return int(self.X.shape[1])
        return n_outputs(self.feature_map, self.X)

    @property
    def v(self) -> Vector:
        """The row weights, (n_rows,); ones if none were given."""
        return np.ones(len(self.y)) if self.row_weights is None else self.row_weights

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the features: that of X, or float64 for a kernel, which float32 ruins."""
        return np.dtype(np.float64) if is_kernel(self.feature_map) else self.X.dtype

    @property
    def query_weight_of_rows(self) -> Vector:
        """For every row, the weight of its query, (n_rows,); ones if none were given."""
        if self.query_weights is None:
            return np.ones(len(self.y))
        return self.query_weights[self.queries.index()]

    def target(self, settings: Pairs) -> Vector:
        """Return what is fitted, the targets less the offset, (n_rows,). It may be y itself."""
        targets = self.label_targets(settings)
        return targets if self.offset is None else targets - self.offset

    def label_targets(self, settings: Pairs) -> Vector:
        """Return the targets of the labels, (n_rows,)."""
        if not settings.is_of_clicks:
            return settings.targets(self.y)
        return click_targets(self.y, self.v, self.queries.index(), self.queries.n_queries)

    @property
    def target_name(self) -> str:
        """What messages call the targets."""
        return "y" if self.offset is None else "y, the offset or the scores of the prior"

    def with_weights_in_range(self) -> RankingData:
        """Return the data with huge or tiny weights rescaled, for what depends on their ratios."""
        if not self.may_vanish:
            return self
        rows, queries = _in_range(self.row_weights), _in_range(self.query_weights)
        return replace(self, row_weights=rows, query_weights=queries)

    def plus_offset(self, scores: Vector) -> RankingData:
        """Return the data with scores, (n_rows,), that are added to their offset."""
        return replace(self, offset=scores if self.offset is None else self.offset + scores)

    @property
    def stored(self) -> Any:
        """The matrix that the rows are made of: X."""
        return self.X

    def with_stored(self, stored: Any) -> Self:
        """Return the data whose rows are made of another matrix."""
        return replace(self, X=stored)

    @property
    def n_entries(self) -> int:
        """About how many numbers a product with sparse rows reads."""
        return int(self.X.nnz)

    def pairs_of_stored(self, settings: Pairs) -> Any:
        """Return the compiled pairs L of the rows that are stored."""
        return self.problem(settings)

    def pull(self, settings: Pairs) -> Vector:
        """Return L times the targets, for every row that is stored."""
        z = self.target(settings).copy()
        for adjoint in (False, True):
            apply_half_laplacian(self.problem(settings), z, adjoint=adjoint)
        return z

    def direct_work(self, n_rows: int, n_held_alphas: int) -> dict[str, float] | None:
        """Return the work of solving so many rows, and of held-out ones; None if features are made.

        It is that up to a matrix, where products have another cost than those of features.
        """
        own = unmade(self.feature_map)
        return None if own is None else own.direct_work(self, n_rows, n_held_alphas)

    def varying(self, settings: Pairs, counted: Flags, diagonal: Vector, size: Vector) -> Flags:
        """Tell which features of CSR rows vary in the queries that are counted, (n_features,).

        `diagonal` and `size` are those of the compiled pairs.
        """
        numbers = np.zeros(len(diagonal) + 1, dtype=np.int64)
        count_varying(self, settings.kind is None, counted, numbers)
        return numbers[:-1] > 0

    def targets(self, settings: Pairs, *, constant: bool = False) -> Vector:
        """Return the targets, (n_rows, 1), with a column of ones before them if `constant`."""
        targets = self.target(settings)
        return np.column_stack([np.ones(len(targets)), targets] if constant else [targets])

    def features(self, rows: Any = slice(None)) -> Any:
        """Return the features of the given rows: X itself, or the output of the feature map."""
        X = self.X[rows]
        return X if self.feature_map is None else mapped(self.feature_map, X)

    def scores(self, rows: Any, coefs: Vector) -> Vector:
        """Return the scores of the given rows by linear models of their features.

        Parameters
        ----------
        rows : ndarray of int64, or slice
        coefs : ndarray of shape (n_models, n_features), float64

        Returns
        -------
        ndarray of shape (n_models, n_rows), float64
        """
        X = checked(self.feature_map, self.X[rows])
        return scores_of_rows(self.feature_map, X, coefs)

    def rows_held_together(self) -> list[Rows]:
        """Return a list of the row numbers of every group, or every query, that has rows."""
        rows, held = np.arange(len(self.y)), self.held_together
        return [rows[held.rows(number)] for number in np.flatnonzero(held.sizes).tolist()]

    @property
    def is_single_query(self) -> bool:
        """Whether rows, rather than queries or groups, are held out: there is one query alone."""
        return self.group_of is None and self.queries.n_filled == 1

    @cached_property
    def held_together(self) -> Queries:
        """The rows by what is held out together: by the numbers of groups, or else by queries."""
        return self.queries if self.group_of is None else self._groups_of_rows(self.group_of)

    def _groups_of_rows(self, group_of: Rows) -> Queries:
        numbers = group_of[self.queries.index()]
        bounds = np.concatenate(([0], np.cumsum(np.bincount(numbers))))
        order = None if (numbers[1:] >= numbers[:-1]).all() else np.argsort(numbers, kind="stable")
        return Queries(bounds.astype(np.int64), order)

    def require_finite_features(self) -> None:
        """Raise a ValueError if X or a feature is not finite; it names the row and the column."""
        require_finite(self.X, "X")
        if self.feature_map is not None:
            require_finite_features(self.feature_map, self.X)

    def take(self, rows: Rows | slice) -> RankingData:
        """Return the given rows as new data. Queries keep their weights and groups."""
        rows = as_slice(rows)
        kept, numbers = np.unique(self.queries.index()[rows], return_inverse=True)
        queries = Queries.make(len(numbers), qid=numbers)
        old = kept if queries.ids is None else kept[queries.ids]
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            queries=queries,
            row_weights=None if self.row_weights is None else self.row_weights[rows],
            query_weights=None if self.query_weights is None else self.query_weights[old],
            offset=None if self.offset is None else self.offset[rows],
            group_of=None if self.group_of is None else self.group_of[old],
            judgements=self.judgements and self.judgements.taken(rows),
        )

    def counting(self, counts: Vector) -> RankingData:
        """Return the data whose row weights are multiplied by counts, (n_rows,).

        Those of comparisons are multiplied instead, (n_pairs,), if there are such.
        """
        if self.preferences is not None:
            return replace(self, judgements=self.preferences.counting(counts))
        return replace(self, row_weights=self.v * counts)

    def as_scope(self, settings: Pairs) -> RankingData:
        """Return the data as one query if all rows form pairs with each other, else unchanged."""
        return self.as_one_query() if settings.joins_all_rows else self

    def as_one_query(self) -> RankingData:
        """Return the same rows as a single query (scope="global")."""
        if self.query_weights is not None:
            raise ArgumentError(
                "query_weight",
                "must be None: all rows form pairs with each other, whatever their queries",
            )
        return replace(self, queries=Queries.make(len(self.y)), group_of=None)

    def has_pairs(self, settings: Pairs) -> Flags:
        """Tell which queries have pairs that can count, or rows (pointwise): (n_queries,)."""
        if settings.is_of_clicks:
            n_rows = np.where(
                self._per_query((self.v > 0) & (self.y > 0)) > 0, self._n_counted - 1, 0
            )
        elif settings.compiled not in ("none", "kept"):
            n_rows = self._n_differing
        else:
            n_rows = self.queries.sizes if self.row_weights is None else self._n_counted
        has = n_rows >= (2 if settings.compiled == "kept" else 1)
        return has if self.query_weights is None else has & (self.query_weights > 0)

    @cached_property
    def _n_counted(self) -> Rows:
        """For every query how many of its rows have a weight > 0, (n_queries,)."""
        return self._per_query(self.v > 0)

    @cached_property
    def _n_differing(self) -> Rows:
        """For every query how many of these have another label than the first, (n_queries,)."""
        queries, counts = self.queries, self.v > 0
        grouped, labels = queries.grouped(counts), queries.grouped(self.y)
        first = np.zeros(queries.n_queries)
        index = np.repeat(np.arange(queries.n_queries), queries.sizes)
        descending = np.flatnonzero(grouped)[::-1]
        first[index[descending]] = labels[descending]
        return self._per_query(counts & (self.y != first[queries.index()]))

    def _per_query(self, counted: Flags) -> Rows:
        """Return the number of rows that are counted, (n_queries,)."""
        ends = np.cumsum(self.queries.grouped(counted))
        return np.diff(np.concatenate(([0], ends))[self.queries.offsets])

    def labels_differ(self, settings: Pairs) -> bool:
        """Tell whether two rows of weight > 0 that form a pair have different labels."""
        return bool(self.as_scope(settings).has_pairs(replace(settings, kind="without_ties")).any())

    def require_pairs(self, settings: Pairs) -> None:
        """Raise a ValueError if no pair counts, or no row (pointwise)."""
        if not self.as_scope(settings).has_pairs(settings).any():
            raise no_pairs(settings, len(self.y))

    def require_training_pairs(self, settings: Pairs, number: int, train: Rows) -> None:
        """Raise a ValueError if the training rows of a split have no pairs that count."""
        if not without_features(self).take(train).as_scope(settings).has_pairs(settings).any():
            raise no_training_pairs(number)

    def require_pair_weight(self, settings: Pairs, pair_weight: float) -> None:
        """Raise a ValueError if the sum of all pair weights, Σ W, is too small or too large.

        The weight of a pair is the product of two row weights. It may underflow or overflow.
        """
        if not pair_weight <= LARGEST_PAIR_WEIGHT:
            raise ValueError(
                "sample_weight or query_weight too large: the weights of all pairs, products of "
                f"two, add up to {pair_weight:.1g}, want at most {LARGEST_PAIR_WEIGHT:g}"
            )
        least, has_pairs = SMALLEST_PAIR_WEIGHT, self.has_pairs(settings)
        if settings.weighting == "queries" and self.row_weights is not None:
            every = self.query_weights if self.query_weights is not None else 1.0
            expected = float((has_pairs * every).sum()) * (1 if settings.kind is None else 2)
            least = 0.999999 * expected
        if pair_weight < least and has_pairs.any():
            raise ValueError(
                "sample_weight or query_weight too small"
                f"{', or labels too close' * (settings.compiled == 'omega')}: the weights of all "
                f"pairs, products of two, add up to {pair_weight:.1g}, want at least "
                f"{SMALLEST_PAIR_WEIGHT:g}, or vanish in a query"
            )

    def pair_weight(self, settings: Pairs) -> float:
        """Return ``Σ_ij W_ij`` over both orders of every pair and the diagonal."""
        return _core.pair_weight(self.problem(settings))

    @property
    def may_vanish(self) -> bool:
        """Whether pair weights may underflow or overflow, because row or query weights exist."""
        return self.row_weights is not None or self.query_weights is not None

    def problem(
        self,
        settings: Pairs,
        levels: tuple[Vector, Vector] | None = None,
    ) -> _core.RankingProblem:
        """Return the compiled problem of the rows, which holds all but their features.

        Parameters
        ----------
        settings : Pairs
            Their scope is ignored here; see `as_scope`.
        levels : (labels, ω of their pairs) or None
            The result of ``settings.levels`` for more rows than these. None computes it for these
            rows, whose last problem is kept: statistics and held-out scores share it.
        """
        kept = self.__dict__.get("_problem")
        if levels is None and kept is not None and kept[0] is settings:
            return cast("_core.RankingProblem", kept[1])
        values, omega = levels or settings.levels(self.y) or (None, None)
        problem = _core.RankingProblem(
            self.y,
            self.queries.offsets,
            order=self.queries.order,
            row_weights=self.row_weights,
            query_weights=self.query_weights,
            pairs=settings.compiled,
            weighting=settings.weighting,
            level_values=values,
            omega=omega,
        )
        if levels is None:
            self.__dict__["_problem"] = settings, problem
        return problem

    def node_map(self) -> Any:
        """Return the compiled map of X to the features, or None if there is none."""
        return None if self.feature_map is None else node_map_of(self.feature_map, self.X.dtype)

    @property
    def is_one_block(self) -> bool:
        """Whether compiled code reads all rows at once, rather than in the blocks of `blocks`."""
        dense = not scipy.sparse.issparse(self.X)
        return dense and (self.feature_map is None or self.node_map() is not None)

    def blocks(self, settings: Pairs, *, constant: bool = False) -> Iterator[Block]:
        """Yield the rows in dense blocks of whole queries.

        With `constant`, a column of ones stands before the target.

        Dense X is a single block if there is no feature map or if compiled code applies it. CSR
        rows, and rows that Python maps, come in blocks of about 64 MiB.
        """
        targets = self.targets(settings, constant=constant)
        node_map = self.node_map()
        if self.is_one_block:
            problem = self.problem(settings)
            yield Block(slice(None), problem, self.X, np.ascontiguousarray(targets), node_map)
            return
        levels = settings.levels(self.y)
        for rows, block in self._dense_blocks(node_map is not None):
            problem = block.problem(settings, levels)
            yield Block(rows, problem, block.X, np.ascontiguousarray(targets[rows]), node_map)

    def known_sums(self, varying: Rows | None) -> tuple[Vector, float] | None:
        """Return (the sums over [X, y], Σ W) if they are made otherwise than of blocks.

        If `varying` is given, (n_features + 1,), it is set as `sums_of` says.
        """
        return None

    def _dense_blocks(self, mapped_by_core: bool) -> Iterator[tuple[Rows | slice, RankingData]]:
        transform = self.feature_map is not None and not mapped_by_core
        queries = self.queries
        order = np.arange(queries.n_rows) if queries.order is None else queries.order
        width = max(1, self.X.shape[1], self.n_features if transform else 1)
        most = max(1, limits.now.dense_block_bytes // (width * self.dtype.itemsize))
        for first, last in blocks_of_parts(queries.offsets, most):
            rows = order[queries.offsets[first] : queries.offsets[last]]
            if len(rows):
                block = self.take(rows)
                needed = 2 * len(rows) * width * self.dtype.itemsize
                if needed > limits.now.dense_block_bytes * 4:
                    what = f"a query of {len(rows)} rows and {width} features, dense, with a copy,"
                    memory.require(what, needed, "take shorter queries or fewer features")
                X = block.features() if transform else block.X
                X = X.toarray() if scipy.sparse.issparse(X) else X
                yield rows, replace(block, X=np.require(X, self.dtype, ["C", "A"]))


def read_labelled(
    X: RowsLike,
    y: ArrayLike | Judgements | None,
    of: str = "",
    *,
    estimator: BaseEstimator | None = None,
    reset: bool = False,
) -> tuple[Matrix, Any]:
    """Return checked rows and their labels; comparisons and clicks stay as they are.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), or Judgements
    of : str, default=""
        What follows the names "X" and "y" in messages.
    estimator : estimator or None
        As in `read_rows`.
    reset : bool, default=False
        Whether this is a fit.
    """
    if not (is_plain(X) and is_plain(y) and X.shape[:1] == y.shape[:1]):
        refuse_index(X)
    if as_judgements(y) is not None:
        return read_rows(X, f"X{of}", estimator=estimator, reset=reset), y
    if y is None or isinstance(y, str):
        text = f"should be a 1d array, a label for each row, got {verbatim(repr(y))}"
        raise ArgumentError(f"y{of}", text)
    refuse_lossy(y, f"y{of}")
    refuse_text(y, f"y{of}")
    rows = read_rows(X, f"X{of}", estimator=estimator, reset=reset)
    column = y if is_ready(y, 1) else column_or_1d(y, warn=True)
    labels = real_array(column, f"y{of}")
    if len(labels) != rows.shape[0]:
        text = f"must have a label for each of the {rows.shape[0]} rows of X{of}, got {len(labels)}"
        raise ArgumentError(f"y{of}", text)
    if (row := not_finite(labels)) is not None:
        text = f"must not hold NaN or infinity, got {labels[row]} in {{place}}"
        raise ArgumentError(f"y{of}", text, row=row)
    return rows, labels


def _in_range(weights: Vector | None) -> Vector | None:
    """Scale huge or tiny weights by a power of 4, so that the largest is near 1.

    Other weights are returned as they are. A power of 4 does not change how square roots of weights
    are rounded.
    """
    if weights is None or not weights.any() or 1e-30 <= weights.max() <= 1e30:
        return weights
    exponent = int(np.frexp(weights.max())[1])
    return np.ldexp(weights, -(exponent + exponent % 2))


def check_offset(offset: ArrayLike, n_rows: int) -> Vector:
    """Return the offsets of rows as float64; a ValueError says what is wrong with them."""
    values = real_array(offset, "offset")
    if values.shape != (n_rows,):
        raise ArgumentError(
            "offset", f"must have one number for each of {n_rows} rows, got shape {values.shape}"
        )
    if (row := not_finite(values)) is not None:
        raise ArgumentError(
            "offset", f"must not hold NaN or infinity, got {values[row]} in {{place}}", row=row
        )
    return values


def require_finite_features(feature_map: Transformer, X: Matrix) -> None:
    """Raise a ValueError if a fitted transformer makes NaN or infinity; it names the place."""
    for rows in blocks(X.shape[0], 1024):
        found = first_not_finite(mapped(feature_map, X[rows]))
        if found is not None:
            what, row, column = found
            text = f"makes {what} of {{place}}, in its column {column}, counted from 0"
            raise ArgumentError("feature_map", text, row=rows.start + row, of=" of X")


def names_of(X: RowsLike) -> list[str] | None:
    """Return the column names of a data frame, or None if there are none or not all are text."""
    names = column_names(X)
    return names if names and all(isinstance(name, str) for name in names) else None


def without_features(data: RankingData) -> RankingData:
    """Return the data without X: only labels, weights and queries."""
    return replace(data, X=np.empty((len(data.y), 0)), feature_map=None)


def count_varying(data: RankingData, pointwise: bool, counted: Flags, varying: Rows) -> None:
    """Add the numbers of queries in which features of CSR rows vary to `varying`.

    It has shape (n_features + 1,); the last entry is for any feature. Queries that are not
    `counted` do not count.
    """
    X = data.X
    if not X.has_canonical_format:  # duplicate entries are added up
        X = X.copy()
        X.sum_duplicates()
    _core.count_varying(
        np.ascontiguousarray(X.indptr, np.int64),
        np.ascontiguousarray(X.indices, np.int32),
        np.ascontiguousarray(X.data, np.float64),
        varying,
        data.queries.offsets,
        order=data.queries.order,
        row_weights=data.row_weights,
        counted=counted,
        pointwise=pointwise,
    )


# Rows are light if the heaviest row of their group has more than so many times their weight. The
# others outweigh them if they have more than so many times the weight of all light rows.
HEAVY = 2.0**10


def heaviest_of(group: Rows, weight: AnyArray) -> Rows:
    """Return the row of the largest weight of every group that has rows, by ascending groups."""
    order = np.lexsort((weight, group))
    return order[np.diff(group[order], append=-1) != 0]


def less_shared(rows: Sparse, group: Rows, weight: Vector, *, heavy: bool = False) -> Any:
    """Return CSR rows that have the same differences within groups, but smaller values.

    A large value that all rows of a group share would cost the differences their digits. Where all
    rows of a group have an entry in a column, as they have of labels and of times, the entry of the
    heaviest row is subtracted from them. Rows of weight 0 count as absent.

    Parameters
    ----------
    rows : sparse matrix of shape (n_rows, n_columns)
    group : ndarray of shape (n_rows,), int64
        The group of every row, ≥ 0.
    weight : ndarray of shape (n_rows,), float64, ≥ 0
    heavy : bool
        Whether to subtract all entries of the heaviest row where heavy rows outweigh the others of
        their group. Each row of the group then gets entries where the heaviest row has them.

    Returns
    -------
    csr_array of shape (n_rows, n_columns), float64
        In canonical format.
    """
    rows = scipy.sparse.csr_array(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    heaviest, (_, number) = heaviest_of(group, weight), np.unique(group, return_inverse=True)
    places = (np.ones(len(group)), (number, np.arange(len(group))))
    members = scipy.sparse.csr_array(places, (len(heaviest), len(group)))
    pattern = scipy.sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), rows.shape)
    counted = scipy.sparse.diags_array((weight > 0) * 1.0)
    taken = scipy.sparse.csr_array(members @ (counted @ pattern))  # rows that have an entry
    n_taken = np.diff(taken.indptr)
    is_taken = taken.data == np.repeat(members @ (weight > 0), n_taken)
    if heavy:
        light = members @ np.where(weight * HEAVY < weight[heaviest][number], weight, 0.0)
        outweighs = (light > 0) & (members @ weight > HEAVY * light)
        is_taken |= np.repeat(outweighs, n_taken)
    taken.data = is_taken * 1.0
    taken.eliminate_zeros()
    return rows - members.T @ taken.multiply(rows[heaviest])


def apply_half_laplacian(
    problem: _core.RankingProblem, vectors: Vector, *, axis: int = 0, adjoint: bool = False
) -> Vector:
    """Apply R of ``L = RᵀR``, or Rᵀ, in place in O(n_rows) time per vector; return `vectors`.

    Parameters
    ----------
    problem : _core.RankingProblem
        The problem of the rows. With ``scope="global"``, it must have one query.
    vectors : ndarray of shape (n_rows,), or (n_rows, k) for axis 0, or (k, n_rows) for axis 1
    axis : {0, 1}
        With 0, R is applied to the columns of a matrix; with 1, to its rows.
    adjoint : bool
        Whether to apply Rᵀ in place of R.
    """
    _core.apply_half_laplacian(
        problem,
        vectors if vectors.ndim == 2 else vectors[:, None],
        axis=axis,
        adjoint=adjoint,
        n_threads=thread_count(),
    )
    return vectors
