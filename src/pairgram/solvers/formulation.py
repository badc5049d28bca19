"""Choose primal, dual or conjugate gradients, map solutions back, and say what judges them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse

from pairgram._support import limits
from pairgram._support.checks import Vector, first_not_finite
from pairgram._support.parameters import Form
from pairgram._support.row_warnings import loses_narrow
from pairgram.data.dataset import RankingData, heaviest_of, less_shared
from pairgram.data.pairs import Pairs
from pairgram.data.queries import Queries
from pairgram.features.feature_map import is_known
from pairgram.features.inputs import parts_of
from pairgram.features.kernel_map import Kernel, is_made, kernel_between, linear_kernel_map
from pairgram.features.random_nodes import reduce_nodes
from pairgram.solvers.constraint import Constraint
from pairgram.solvers.costs import (
    ONE_RIDGE,
    Work,
    can_iterate,
    dual_seconds,
    most_products,
    primal_seconds,
)
from pairgram.solvers.dual_gram import DualGram, require_memory
from pairgram.solvers.pair_sums import PairSums
from pairgram.solvers.ridge_path import (
    LARGEST_GRADED,
    ColumnSums,
    RidgePath,
)
from pairgram.solvers.systems import Systems

if TYPE_CHECKING:
    from pairgram.model_selection.judge import Judged, Measure

# The statistics of the primal form, or of the dual one.
Statistics = PairSums | DualGram

# In the dual form the largest feature value must be at least this, so that its square is a number.
SMALLEST_FEATURE = 1e-145

# Up to this many features, those of which K loses narrow ones are solved in the primal form.
MOST_NARROW = 2000

# Sparse columns with fewer entries are not looked at.
FEWEST_ENTRIES = 10


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinates in which a problem is solved: the same scores with the fewest unknowns.

    Attributes
    ----------
    data : RankingData
        The rows in these coordinates: the features, fewer linear nodes, or the data of a
        `DualGram` in the dual form.
    form : {"primal", "dual"}
    coefs : callable
        Maps solutions in these coordinates, (n_models, n_dimensions), to the coefficients of the
        model, (n_models, n_coefficients).
    most_products : float
        How many products conjugate gradients may take, without a matrix, before `instead` solves.
    instead : callable or None
        Returns the coordinates of direct solutions.
    constraint : Constraint or None
        What the weights must be like. This needs the features in the primal form.
    work : Work
        What is to be solved.
    told : {"primal", "dual"} or None
        The form that is told, if it is not `form`: comparisons are solved in the primal form, whose
        features are those of a kernel matrix of the items where their model is dual.
    compares : bool
        Whether the rows are differences of the columns of X, or of the inputs.
    """

    data: RankingData
    form: str = "primal"
    coefs: Callable[[Vector], Vector] = np.asarray
    most_products: float = 0.0
    instead: Callable[[], Coordinates] | None = None
    constraint: Constraint | None = None
    work: Work = ONE_RIDGE
    told: str | None = None
    compares: bool = False
    known: dict[Pairs, Statistics] = field(default_factory=dict, init=False)  # once made

    @classmethod
    def choose(
        cls,
        data: RankingData,
        settings: Sequence[Pairs],
        *,
        kernel: bool = False,
        form: Form = "auto",
        scale: bool = False,
        work: Work = ONE_RIDGE,
        iterate: bool | None = None,
    ) -> Coordinates:
        """Choose the cheapest coordinates that serve all settings.

        Linear nodes are replaced by at most as many dimensions as there are inputs. The dual form
        solves a system with one unknown per row. It is used for every `kernel` (the one of the
        data's `Kernel`), and for features if there are fewer rows than features or on request.
        `scale` refers to the features of the model, so these are then not replaced. `work` is what
        is to be solved, by default one ridge of all rows. Sparse rows, and those of a map to
        products, are solved by conjugate gradients where `most_products` says so, or where they
        `iterate`, if that is given.

        Raises
        ------
        ValueError
            If there is a kernel, and `scale`.
        MemoryError
            If the dual form of the features does not fit in memory. Nothing is computed then.
        """
        if scale and kernel:
            raise ValueError(
                "scale=True scales the features of the primal form, not with kernel="
                f"{data.feature_map.kernel!r}: scale X before, as by MinMaxScaler in a Pipeline"
            )
        if data.preferences is not None:
            return data.preferences.coordinates(data, kernel, form, scale, work, iterate)
        if kernel:
            if not is_made(data.feature_map):
                data = replace(data, X=kernel_matrix_of(data), feature_map=None)
            return cls(data, "dual", work=work)
        primal = cls(data) if scale else cls.of_features(data, settings)
        primal = replace(primal, work=work)
        is_dual = not scale and (form if form != "auto" else primal.smaller_form()) == "dual"
        exact = form == "auto" and not work.path
        direct = partial(primal._dual, settings, exact) if is_dual else partial(replace, primal)
        if form == "dual" or iterate is False or not can_iterate(data):
            return direct()
        primal = primal.seen()
        form = "dual" if is_dual else "primal"
        seconds = (dual_seconds if is_dual else primal_seconds)(primal.data, work)
        most = most_products(primal.data, work, form, seconds)
        if most == 0.0 and not iterate:
            return direct()
        return replace(primal, most_products=most or inf, instead=direct)

    @classmethod
    def of_features(cls, data: RankingData, settings: Sequence[Pairs]) -> Coordinates:
        """Return the primal coordinates: the features, or fewer linear nodes."""
        if data.feature_map is None:
            return cls(data)
        pointwise = any(setting.kind is None for setting in settings)
        reduced = reduce_nodes(data.feature_map, constant=pointwise)
        if reduced is None:
            return cls(data)
        nodes = replace(data, feature_map=reduced.nodes)
        return cls(nodes, coefs=reduced.expand)

    @property
    def iterate(self) -> bool:
        """Whether to solve by conjugate gradients, without a matrix."""
        return self.most_products > 0

    @property
    def name(self) -> str:
        """The form that is solved: "primal" or "dual"."""
        return self.told or self.form

    def smaller_form(self) -> str:
        """Return the form with the smaller system: "dual" if there are fewer rows than features."""
        return "dual" if len(self.data.y) < self.data.n_features else "primal"

    def seen(self) -> Coordinates:
        """Return coordinates without the columns of sparse rows that have no entry, if most are."""
        X, n_features = self.data.stored, self.data.n_features
        if n_features <= limits.now.seen_columns or not scipy.sparse.issparse(X):
            return self
        seen = np.zeros(n_features, dtype=bool)
        seen[X.indices] = True
        if 2 * np.count_nonzero(seen) >= n_features:
            return self
        data = self.data.with_stored(X[:, np.flatnonzero(seen)])

        def coefs(solved: Vector) -> Vector:
            found = np.zeros((len(solved), n_features))
            found[:, seen] = solved
            return self.coefs(found)

        return replace(self, data=data, coefs=coefs)

    def _dual(self, settings: Sequence[Pairs], exact: bool) -> Coordinates:
        """Return the dual form of features H: K = H Hᵀ, and the coefficients Hᵀ a.

        The mean of every query is subtracted from its rows. This changes no difference within a
        pair and keeps offsets out of the products. Sparse rows of a query are centred in columns of
        which all have an entry, because others would be filled. H is kept for the coefficients;
        dense features take 8 n d bytes. Where K loses narrow columns of H, which G does not, the
        primal form of one ridge is `exact`.
        """
        dense = not scipy.sparse.issparse(self.data.X)
        require_memory(
            len(self.data.y),
            self.work.path,
            Kernel("linear"),
            feature_bytes=8.0 * len(self.data.y) * self.data.n_features * dense,
        )
        H = self.data.features()
        if first_not_finite(H) is not None:
            self.data.require_finite_features()
        if 0 < (size := abs(H).max()) < SMALLEST_FEATURE:
            raise ValueError(
                f"X too small: no feature is larger than {size:.1g}, want {SMALLEST_FEATURE:g}, "
                "whose square a number holds: multiply X, as StandardScaler does"
            )
        of_pairs = all(setting.kind is not None for setting in settings)
        if scipy.sparse.issparse(H):
            H = H.astype(np.float64)
            if of_pairs:
                of_lists = self.data.as_scope(settings[0])
                H = less_shared(H, of_lists.queries.index(), of_lists.v)
        else:
            ours = is_known(self.data.feature_map)  # other maps may return X itself
            H = np.array(H, dtype=np.float64, copy=None if ours else True)
            if of_pairs:
                _centre(H, self.data.as_scope(settings[0]))
        most = MOST_NARROW if exact else LARGEST_GRADED
        counted = H if self.data.row_weights is None else H[self.data.v > 0]
        if H.shape[1] <= most and loses_narrow(_squares(counted)):
            return self
        data = replace(self.data, X=H, feature_map=linear_kernel_map(H))

        def coefs(solved: Vector) -> Vector:
            return self.coefs(np.asarray(solved @ H))

        return Coordinates(data, "dual", coefs, work=self.work)

    def solve(
        self, settings: Pairs, alpha: float, *, scale: bool
    ) -> tuple[Vector, ColumnSums | None, str]:
        """Return the coefficients of the model for one ridge, its `column_sums`, and the form.

        Errors are those of `statistics`.
        """
        if self.iterate:
            self.data.require_pairs(settings)
            systems = Systems([self.data], settings, self.most_products)
            found = systems.solve(np.array([alpha]), scale=scale)
            if found is not None:
                return self.coefs(found[0])[0], None, self.name
            assert self.instead is not None
            direct = self.instead()
            return direct.solve(settings, alpha, scale=scale)
        total = self.statistics(settings)
        if self.constraint is None:
            solved = total.solve(alpha, scale=scale)
        else:
            solved = self.constrained(total, np.array([alpha]), scale)[1][0]
        coef = np.asarray(self.coefs(solved[None])[0])
        return coef, self.column_sums(total, solved), self.name

    def constrained(
        self, total: Statistics, alphas: Vector | None, scale: bool
    ) -> tuple[Vector, Vector]:
        """Return `PairSums.constrained_path`."""
        assert isinstance(total, PairSums) and self.constraint is not None
        started = self.data.offset is not None
        return total.constrained_path(self.constraint, alphas, scale=scale, started=started)

    def column_sums(self, total: Statistics, coef: Vector) -> ColumnSums | None:
        """Return how much the columns of X, or of the inputs, vary over pairs, or None."""
        if self.compares and isinstance(total, PairSums):
            sums = total.column_sums(coef)
            return sums._replace(weight=2 * sums.weight)  # both orders of every pair
        known = parts_of(self.data.feature_map)[1] is None and total.settings.kind is not None
        return total.column_sums(coef) if known and isinstance(total, PairSums) else None

    def statistics(self, settings: Pairs) -> Statistics:
        """Return the statistics of all rows. It is a ValueError if no pair counts."""
        if settings in self.known:
            return self.known[settings]
        self.data.require_pairs(settings)
        made: Statistics
        if self.form == "dual":
            made = DualGram(self.data, settings)
        else:
            made = PairSums.of(self.data, settings)
        self.known[settings] = made
        return made

    def known_sums(self, settings: Pairs, coef: Vector) -> ColumnSums | None:
        """Return `column_sums` if the statistics of all rows were made, else None."""
        total = self.known.get(settings)
        return None if total is None else self.column_sums(total, coef)


def without_offsets(X: Vector, queries: Queries) -> Vector:
    """Return the differences of rows from the first row of their query.

    Linear nodes map differences exactly. What all rows of a query have in common changes no
    difference within a pair and adds the same to all scores of the query. Mapping it would cost
    digits.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # compiled code finds infinities
        return np.asarray(X - X[queries.first_rows()])


def column_squares(data: RankingData, settings: Pairs) -> Vector:
    """Return the sums of squares of features within lists; items of comparisons are one list.

    Those of sparse features are as if all rows had entries, so that rare features are not narrow;
    those with fewer than `FEWEST_ENTRIES` are 0, since some of them are narrow by chance.
    """
    H = data.features()
    of_lists = data.as_scope(settings) if data.preferences is None else data.as_one_query()
    index, counted = of_lists.queries.index(), of_lists.v > 0
    index = (np.cumsum(np.bincount(index) > 0) - 1)[index]  # without queries that have no rows
    if not scipy.sparse.issparse(H):
        with np.errstate(over="ignore", invalid="ignore"):  # compiled code finds infinities
            return _squares((H - H[heaviest_of(index, of_lists.v)[index]])[counted])
    H = less_shared(H.astype(np.float64), index, of_lists.v)[counted]
    n_entries = np.bincount(H.indices[H.data != 0], minlength=H.shape[1])
    share = np.where(n_entries < FEWEST_ENTRIES, np.inf, n_entries / H.shape[0])
    return _squares(H) / share


def _squares(H: Any) -> Vector:
    """Return the sums of squares of columns, dense or sparse, (n_features,)."""
    if scipy.sparse.issparse(H):
        squares = np.square(H.data)
        return np.bincount(H.indices, squares, minlength=H.shape[1]).astype(np.float64)
    return np.einsum("ij,ij->j", H, H, dtype=np.float64)


def kernel_matrix_of(data: RankingData) -> Any:
    """Return the kernel matrix of rows with a fitted `Kernel`, or the one that was given."""
    rows = data.feature_map.support_rows_
    return data.X if rows is None else kernel_between(data.feature_map, rows)


def _centre(H: Vector, data: RankingData) -> None:
    """Subtract from the rows of each query the mean of its rows of weight > 0.

    The first of these is subtracted before, so that equal values leave exactly 0.
    """
    seen = data.v > 0
    order = np.arange(len(H)) if data.queries.order is None else data.queries.order
    for rows in np.split(order, data.queries.offsets[1:-1]):
        if (counted := rows[seen[rows]]).size:
            H[rows] -= H[counted[0]]
            H[rows] -= H[counted].mean(axis=0)


@dataclass(frozen=True, eq=False)
class RidgeModels:
    """The models of one decomposition of all rows, at several ridges.

    Attributes
    ----------
    settings : Pairs
    ridge : RidgePath
        The decomposition of the statistics of all rows.
    alphas : ndarray of shape (n_alphas,), descending
    statistics : callable
        Returns the statistics of all rows. Only refits need them.
    coefs : callable
        Maps solutions of `ridge` to coefficients for the features of the validation set.
    scale : bool
        Whether features are scaled, which refits do anew.
    """

    settings: Pairs
    ridge: RidgePath
    alphas: Vector
    statistics: Callable[[], Statistics]
    coefs: Callable[[Vector], Vector]
    scale: bool = False


@dataclass(frozen=True, eq=False)
class PathJudge(ABC):
    """Judges the models of all ridges; what a class does not say is that it needs nothing.

    Attributes
    ----------
    data : RankingData
        The rows in the coordinates in which their problem is solved.
    """

    data: RankingData

    @property
    @abstractmethod
    def metric(self) -> Measure:
        """What says which models are better."""

    @abstractmethod
    def of(self, data: RankingData) -> Self:
        """Return the same with another feature map of the rows."""

    def within(self, data: RankingData) -> Self:
        """Return the same for the same rows in other coordinates."""
        return replace(self, data=data)

    @abstractmethod
    def require(self, settings: Pairs, n_alphas: int) -> None:
        """Raise the ValueErrors of `judge_path`, from the labels and the sizes alone."""

    def needs_basis(self, settings: Pairs, is_dual: bool) -> bool:
        """Tell whether `judge_path` will need eigenvectors."""
        return False

    @abstractmethod
    def judge_path(self, models: RidgeModels) -> Judged:
        """Judge the models of all ridges, from the decomposition of all rows."""
