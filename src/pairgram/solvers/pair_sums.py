"""PairSums: the sums over queries behind `Pairgram`, a frozen value with ``+``, ``-`` and ``*``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import pairgram._core as _core
from pairgram._support.checks import Rows, Vector
from pairgram._support.machine import thread_count
from pairgram._support.row_warnings import warn_of_lost_digits, warn_of_narrow_columns
from pairgram.data.dataset import RankingData
from pairgram.data.pairs import Pairs
from pairgram.features.feature_map import is_known, same_map
from pairgram.solvers.constraint import Constraint
from pairgram.solvers.ridge_path import (
    ColumnSums,
    RidgePath,
    blas_guard,
    scale_factors,
    solve_ridge,
)
from pairgram.solvers.statistics import (
    NOISE,
    SMALLEST_SQUARES,
    degrees_of,
    mean_of,
    sums_of,
)

if TYPE_CHECKING:
    from pairgram._support.types import Matrix

# A subtraction is refused if it leaves less than this share of a feature's sum of squares: what is
# left then has no correct digits. Sums of float32 rows have fewer digits.
LEAST_LEFT, LEAST_OF_FLOAT32 = 1e-10, 1e-4
# What a difference of sums must be of them to have two digits, with rows of float64 and float32.
TWO_DIGITS = 128 * float(np.finfo(np.float64).eps), 32 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True, eq=False)
class Mean:
    """The weighted mean of all rows of [X, y].

    Attributes
    ----------
    weight : float
        The sum of the weights of the rows.
    origin : ndarray of shape (n_features + 1,), float64
        One of the rows, so that a large offset does no harm.
    offset : ndarray of shape (n_features + 1,), float64
        The mean minus the origin.
    """

    weight: float
    origin: Vector
    offset: Vector


@dataclass(frozen=True, eq=False)
class PairSums:
    """The sums over queries that pairwise least squares needs.

    Attributes
    ----------
    settings : Pairs
    feature_map : transformer or None
        Fitted, if there are rows.
    names : list of str, or None
        The names of the columns.
    n_rows, n_queries : int
        What was read, whatever the sums were multiplied by.
    sums : ndarray of shape (n_features + 1, n_features + 1), float64, or None
        The sums over [X, y], but for `factor`; None before the first rows. With a `mean`, they are
        the scatter ``Σ v (h − mean)(h − mean)ᵀ`` of the rows h of [X, y].
    sums_weight : float
        The sum of the pair weights that belongs to `sums`.
    mean : Mean or None
        Only if all rows form pairs with ties: only these sums merge with ``scope="global"``.
    varying : ndarray of shape (n_features,), int64, or None
        The number of queries, and of comparisons, in which each feature varies. None
        before the first rows.
    degrees : float
        The sum over lists of how many rows count, less one, times what the sums were multiplied by:
        the labels' noise times this is what the best model leaves.
    query_weight : float or None
        The weight of every query that counts, as it was given with the rows; None if they differ.
    fill : ndarray of shape (n_columns,), or of shape () before the first rows, or None
        What takes the place of missing values of X. Rows without any suit every fill.
    before : ndarray of shape (n_features + 1,), float64, or None
        The largest diagonal of `sums` that was there, whose rounding is still in them. None stands
        for that of these sums.
    least_left : float
        The share of this that a subtraction must leave.
    """

    settings: Pairs
    feature_map: Any = None
    names: list[str] | None = None
    n_rows: int = 0
    n_queries: int = 0
    sums: Vector | None = None
    sums_weight: float = 0.0
    mean: Mean | None = None
    varying: Any = None
    degrees: float = 0.0
    query_weight: float | None = 1.0
    fill: Vector | None = None
    before: Vector | None = None
    least_left: float = LEAST_LEFT

    @classmethod
    def of(cls, data: RankingData, settings: Pairs, *, may_vanish: bool = False) -> PairSums:
        """Return the sums of checked rows; see `with_rows`."""
        return cls(settings).with_rows(data, may_vanish=may_vanish)

    @property
    def is_scatter(self) -> bool:
        """Whether the sums are, or will be, a scatter matrix."""
        return self.settings.joins_all_rows and self.settings.compiled == "kept"

    @property
    def factor(self) -> float:
        """The factor that turns the sums into those of the objective."""
        if self.mean is None or self.mean.weight == 0:
            return 1.0
        return float(self.settings.scatter_factor(np.asarray(self.mean.weight)))

    @property
    def weight(self) -> float:
        """The weight of `sums`: that of the pairs or, of a scatter, that of the rows."""
        return self.sums_weight if self.mean is None else self.mean.weight

    @property
    def pair_weight(self) -> float:
        """``Σ_ij W_ij`` over both orders of every pair and the diagonal."""
        return self.weight if self.mean is None else self.factor * self.weight

    @property
    def largest(self) -> Vector:
        """The largest diagonal of the sums that was there, (n_features + 1,)."""
        now = np.diag(self.required())
        return now if self.before is None else np.maximum(now, self.before)

    def required(self) -> Vector:
        """Return the sums; it is a ValueError if there are no rows yet."""
        if self.sums is None:
            raise ValueError("this Pairgram holds no rows yet: call update(X, y, qid=...) first")
        return self.sums

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.required()) - 1

    @property
    def G(self) -> Vector:
        """``Xᵀ L X``, shape (n_features, n_features)."""
        return self.factor * self.required()[:-1, :-1]

    @property
    def g(self) -> Vector:
        """``Xᵀ L y``, shape (n_features,)."""
        return self.factor * self.required()[:-1, -1]

    @property
    def n_varying(self) -> Any:
        """The number of queries in which each feature varies; None before the first rows."""
        if self.sums is not None and self.settings.joins_all_rows:
            return (np.diag(self.sums)[:-1] > 0).astype(np.int64)
        return copy(self.varying)

    def scale_factors(self, scale: bool) -> Vector | None:
        """Return the scale factors, or None if features are not to be scaled.

        A feature that varies by next to nothing is a ValueError.
        """
        if not scale:
            return None
        squares = self.factor * np.diag(self.required())[:-1]
        lost = (self.n_varying > 0) & (squares < SMALLEST_SQUARES)
        if lost.any():
            j = int(np.argmax(lost))
            raise ValueError(
                f"feature {self.name_of(j)} too small for scale=True: its weighted squared "
                f"differences add up to {squares[j]:.1g}, want {SMALLEST_SQUARES:g} or more"
            )
        return scale_factors(squares)

    def solve(self, alpha: float, *, scale: bool = False) -> Vector:
        """Return the coefficients of one ridge, (n_features,)."""
        return solve_ridge(self.G, self.g, float(alpha), self.scale_factors(scale))

    def decompose(self, *, scale: bool = False, basis: bool = False) -> RidgePath:
        """Return the solutions of all ridges; `basis` says that eigenvectors will be needed."""
        return self.path_at(self.scale_factors(scale), basis=basis)

    def path_at(self, factor: Vector | None, *, basis: bool = False) -> RidgePath:
        """Return the path for a given scaling of the features."""
        return RidgePath.of(self.G, self.g, factor, basis=basis)

    def warn_of_digits(self, left: float) -> None:
        """Warn if what a model leaves of yᵀLy has fewer than two digits."""
        is_float32 = self.least_left == LEAST_OF_FLOAT32
        if left < TWO_DIGITS[is_float32] * self.factor * self.required()[-1, -1]:
            warn_of_lost_digits()

    def warn_of_narrow_columns(self, scale: bool) -> None:
        """Warn if a path for this `scale` loses narrow columns."""
        if not scale and self.feature_map is None:
            warn_of_narrow_columns(np.diag(self.required())[:-1], self.names)

    def constrained_path(
        self,
        constraint: Constraint,
        alphas: Vector | None,
        *,
        scale: bool,
        started: bool = False,
    ) -> tuple[Vector, Vector]:
        """Return (alphas, weights of shape (n_alphas, n_features)) of constrained problems.

        For None, the alphas are a grid that suits the constraint; `started` says that there are
        offsets.
        """
        G, g, factor = self.G, self.g, self.scale_factors(scale)
        if factor is not None:
            G, g = factor[:, None] * G * factor, factor * g
        alphas = constraint.default_alphas(G, g, started) if alphas is None else alphas
        with blas_guard(len(g)):
            found = constraint.solve(G, g, alphas)
        return alphas, found if factor is None else factor * found

    def column_sums(self, coef: Vector) -> ColumnSums:
        """Return how much every column, and the score of a model, vary over the pairs."""
        assert self.sums is not None
        G = self.sums[:-1, :-1]  # without their factor, which their weight has not
        return ColumnSums(G.diagonal().copy(), G @ coef, self.weight, coef.copy())

    def without(self, data: RankingData, train: Rows, test: Rows) -> PairSums:
        """Return the sums of the training rows of `data`; these are those of all its rows.

        The test rows are subtracted if they are all the other rows and no digits are lost.
        """
        n_rows, settings = len(data.y), self.settings
        complement = (
            len(train) + len(test) == n_rows
            and (np.bincount(np.concatenate((train, test)), minlength=n_rows) == 1).all()
        )
        if complement and len(test) < len(train) and _is_subtractable(data, settings, test):
            rest = self.less(PairSums.of(data.take(test), settings, may_vanish=True))
            if rest is not None:
                return rest
        return PairSums.of(data.take(train), settings, may_vanish=True)

    def less(self, part: PairSums) -> PairSums | None:
        """Return the sums without those of a part of the rows, or None if digits would be lost."""
        rest = self._minus(part)
        least = max(1e-6, 100 * rest.least_left) * rest.largest
        return rest if (np.diag(rest.required()) >= least).all() else None

    def name_of(self, j: int) -> Any:
        """Return the name or number by which a message calls a feature."""
        names = self.names if self.feature_map is None else None
        return j if names is None else repr(names[j])

    def fitted_map(self, X: Matrix, names: Sequence[Hashable] | None) -> Any:
        """Return the feature map, or a clone fitted to X if it was not fitted yet."""
        try:
            check_is_fitted(self.feature_map)
        except NotFittedError:
            own = clone(self.feature_map)
            return own._fit_checked(X, names) if is_known(own) else own.fit(X)
        return self.feature_map

    def with_rows(self, data: RankingData, *, may_vanish: bool = False) -> PairSums:
        """Return the sums with those of checked rows.

        Their comparisons are pairs like those of labels. For `may_vanish` see `sums_of`.
        """
        if data.feature_map is None and self.feature_map is not None:
            fitted = self.fitted_map(data.X, self.names) if self.sums is None else self.feature_map
            data = replace(data, feature_map=fitted)
        if data.preferences is not None:
            return self._with_comparisons(data)
        n_features = data.n_features
        if self.sums is not None and n_features != len(self.sums) - 1:
            raise ValueError(f"X must have {len(self.sums) - 1} features, got {n_features}")
        n_queries = data.queries.n_queries
        if self.settings.joins_all_rows:
            data, n_queries = data.as_one_query(), 1
        settings, mean = self.settings, None
        if self.is_scatter:
            settings = Pairs(scope="global", weighting="documents", target=settings.target)
            mean = Mean(*mean_of(data, settings))
        query_weight: float | None = 1.0
        if data.query_weights is not None:
            known = np.unique(data.query_weights[data.query_weights > 0])
            query_weight = float(known[0]) if len(known) == 1 else None
        sums, sums_weight, varying = sums_of(data, settings, may_vanish=may_vanish)
        is_float32 = data.X.dtype == np.float32 and data.dtype == np.float32
        added = PairSums(
            self.settings,
            data.feature_map,
            self.names,
            len(data.y),
            n_queries,
            sums,
            sums_weight,
            mean,
            varying,
            degrees=degrees_of(data, settings),
            query_weight=query_weight,
            fill=self.fill,
            least_left=LEAST_OF_FLOAT32 if is_float32 else LEAST_LEFT,
        )
        merged = added if self.sums is None else self + added
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = merged.factor * np.diag(merged.required())
            if data.may_vanish or settings.compiled == "omega" or not np.isfinite(diagonal).all():
                weight = merged.pair_weight if self.is_scatter else sums_weight
                data.require_pair_weight(settings, weight)
        if not np.isfinite(diagonal).all():
            raise ValueError("X or y too large: the weighted sum of squared differences overflows")
        return merged

    def _with_comparisons(self, data: RankingData) -> PairSums:
        """Return the sums with those of comparisons, which are pairs too, but of no query."""
        differences = data.preferences.compared(data, data.features())
        sums = PairSums.of(differences, Pairs(None))
        added = replace(
            sums,
            n_rows=data.preferences.n_pairs,
            settings=self.settings,
            feature_map=data.feature_map,
            names=self.names,
            n_queries=0,
            sums_weight=2 * sums.sums_weight,
            fill=self.fill,
        )
        return added if self.sums is None else self + added

    def require_like(self, other: PairSums, verb: str) -> None:
        """Raise a ValueError unless sums can be added; `verb` is "merge" or "subtract"."""
        if self.settings != other.settings:
            raise ValueError(f"cannot {verb} {other.settings} and {self.settings}: settings differ")
        mine, theirs = self.required(), other.required()
        if not same_map(self.feature_map, other.feature_map):
            raise ValueError(f"cannot {verb} statistics of different feature maps")
        if len(mine) != len(theirs):
            raise ValueError(
                f"cannot {verb} statistics of {len(theirs) - 1} and {len(mine) - 1} features"
            )
        if self.settings.joins_all_rows and not self.is_scatter:
            raise ValueError(
                f"cannot {verb} with scope='global' and pairs={self.settings.kind!r}: the weight "
                "of every label is needed first; pass all rows at once, or use pairs='with_ties'"
            )
        if verb == "subtract" and self.n_rows < other.n_rows:
            raise ValueError(f"cannot subtract {other.n_rows} rows from {self.n_rows}")
        if self.names != other.names:
            raise ValueError(f"cannot {verb} statistics of columns {other.names} and {self.names}")
        if self.fill is not None and other.fill is not None and (self.fill != other.fill).any():
            j = int(np.argmax(self.fill != other.fill))
            raise ValueError(
                f"cannot {verb} statistics whose missing values of column "
                f"{j if self.names is None else repr(self.names[j])} are {other.fill[j]:g} and "
                f"{self.fill[j]:g}: give all of them one Fill of values"
            )

    def __add__(self, other: PairSums) -> PairSums:
        """Return the sums over the queries of both."""
        self.require_like(other, "merge")
        return self._joined(other, 1)

    def __sub__(self, other: PairSums) -> PairSums:
        """Return the sums without the queries of another, which are among them."""
        rest = self._minus(other)
        rest._settle()
        return rest

    def _minus(self, other: PairSums) -> PairSums:
        """Return the sums less others, whatever digits that leaves."""
        self.require_like(other, "subtract")
        if self.settings.kind is not None and self.n_queries < other.n_queries:
            raise ValueError(f"cannot subtract {other.n_queries} queries from {self.n_queries}")
        return self._joined(other, -1)

    def __mul__(self, number: float) -> PairSums:
        """Return the sums multiplied by a finite number f >= 0.

        Every query counts f times; see the notes of `Pairgram`. If all rows form pairs, the weight
        of every row is multiplied by f instead, so the weight of a pair by f². What that does to
        the sums depends on `weighting`. A scatter is linear in the weights of the rows.

        Multiplied by 0, the sums are those of no query.
        """
        if self.sums is None:
            return self
        times, mean = number, self.mean
        if self.settings.joins_all_rows and mean is None and number > 0:
            times = {"pairs": number * number, "documents": number, "queries": 1.0}[
                self.settings.weighting
            ]
        with np.errstate(over="ignore", invalid="ignore"):
            product = replace(
                self,
                sums=times * self.sums + 0.0,  # no zero is negative
                sums_weight=times * self.sums_weight,
                mean=None if mean is None else replace(mean, weight=number * mean.weight),
                degrees=number * self.degrees,
                before=None if self.before is None else times * self.before,
            )
            diagonal = product.factor * np.diag(product.required())
        if not (np.isfinite(diagonal).all() and np.isfinite(product.pair_weight)):
            raise ValueError(
                f"cannot multiply by {number:g}: the weights of pairs, or the weighted squared "
                "differences, overflow"
            )
        if number == 0:
            none = np.zeros(self.n_features, dtype=np.int64)
            product = replace(product, n_rows=0, n_queries=0, varying=none)
        return product

    __rmul__ = __mul__

    def _joined(self, other: PairSums, sign: int) -> PairSums:
        """Return the sums with others added, or subtracted, whatever digits that leaves."""
        sums, mean = self.required() + sign * other.required(), None
        if self.mean is not None and other.mean is not None:
            mean, change = _joined_means(self.mean, other.mean, sign)
            sums += change
        n_rows, n_queries = self.n_rows + sign * other.n_rows, self.n_queries
        of_other, query_weight = other.query_weight, self.query_weight
        if self.sums_weight == 0:  # no query counts yet
            query_weight = of_other
        elif other.sums_weight != 0 and query_weight != of_other:
            query_weight = None
        return replace(
            self,
            n_rows=n_rows,
            n_queries=int(n_rows > 0)
            if self.settings.joins_all_rows
            else max(n_queries + sign * other.n_queries, 0),
            sums=sums,
            sums_weight=self.sums_weight + sign * other.sums_weight,
            mean=mean,
            varying=np.maximum(self.varying + sign * other.varying, 0),
            degrees=max(self.degrees + sign * other.degrees, 0.0),
            query_weight=query_weight,
            fill=other.fill if self.fill is None else self.fill,
            before=np.maximum(self.largest, other.largest),
            least_left=max(self.least_left, other.least_left),
        )

    def _settle(self) -> None:
        """Clear features of which a subtraction left nothing; refuse those without digits.

        Sums with a negative direction are refused before: those of squares have none. Rows with a
        query id tell how many of the queries left vary. Where others were subtracted, the size of
        what is left has to tell it.
        """
        sums, noise, least = self.required(), NOISE * self.largest, self.least_left * self.largest
        share = np.where(self.largest > 0, self.largest, 1.0) ** -0.5
        scaled = share[:, None] * sums * share
        scaled[np.diag_indices_from(scaled)] += len(sums) * self.least_left
        if _core.cholesky(scaled, thread_count()) < len(scaled):
            raise ValueError(
                "cannot subtract: squares that are left add up to less than 0: what is subtracted "
                "must be rows that were added, with the weights and labels that they had, and the "
                "factor by which they count now"
            )
        after = np.diag(sums)
        by_size = self.settings.joins_all_rows or self.n_queries == 0
        is_empty = self.n_rows == 0 and (after <= least).all()
        constant = after <= (least if is_empty else noise)
        if not by_size:
            constant[:-1] = (self.varying == 0) & (after[:-1] <= least[:-1])
        lost = ~constant & (after < least)
        with np.errstate(over="ignore"):
            pull = np.sqrt(noise[:-1]) * np.sqrt(noise[-1])
        few_labels = after[-1] < least[-1] and not is_empty
        lost[-1] = few_labels and (np.abs(sums[:-1, -1]) > pull)[~constant[:-1]].any()
        if lost.any():
            j = int(np.argmax(lost))
            what, where = f"feature {self.name_of(j)}", ""
            if j == len(lost) - 1:
                what = "the label"
            elif not by_size:
                where = f" varies in {self.varying[j]} of the queries left but"
            raise ValueError(
                f"cannot subtract: {what}{where} has only {max(0.0, after[j]):.2g} of its sum of "
                "squares left, which is lost in the rounding of what was there: build the "
                "statistics of what is left from its rows"
            )
        constant[-1] |= few_labels
        cleared = np.flatnonzero(constant)
        sums[cleared] = 0.0
        sums[:, cleared] = 0.0


def _joined_means(a: Mean, b: Mean, sign: int) -> tuple[Mean, Vector]:
    """Return the mean of the rows of both, or without those of b, and what changes the scatter.

    This is Chan's formula, in which weights that are taken away are negative.
    """
    weight = max(0.0, a.weight + sign * b.weight)
    if weight == 0:
        return Mean(0.0, a.origin, np.zeros_like(a.offset)), np.zeros(1)
    share, difference = sign * b.weight / weight, (b.origin - a.origin) + b.offset - a.offset
    mean = Mean(weight, a.origin, a.offset + share * difference)
    return mean, a.weight * share * np.outer(difference, difference)


def _is_subtractable(data: RankingData, settings: Pairs, test: Rows) -> bool:
    """Tell whether the statistics of the test rows and of all others add up to those of all."""
    if settings.kind is None and settings.weighting != "queries":
        return True
    if settings.joins_all_rows:
        return settings.compiled == "kept"
    counts = np.bincount(data.queries.index()[test], minlength=data.queries.n_queries)
    return bool(((counts == 0) | (counts == data.queries.sizes)).all())
