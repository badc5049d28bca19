"""Pairgram holds the sufficient statistics of pairwise least squares."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import check_alphas, real_array
from pairgram._support.checks import Rows, Vector, check_alpha, check_text, naming_not_finite
from pairgram._support.files import replacing, shown
from pairgram._support.threads import single_threaded_blas
from pairgram._support.words import Scope, Target, Weighting
from pairgram.data.dataset import RankingData, names_of
from pairgram.data.pairs import Pairs, PairSettings
from pairgram.data.query_ids import IdSet, QueryIds, too_many, warn_of_end
from pairgram.features.known import describe_map, restore_map, same_map
from pairgram.files.read_write import pack, read_file, unpack
from pairgram.solvers.constrained import NO_MAP, NO_PRIOR, Constraints
from pairgram.solvers.interface import ColumnSums
from pairgram.solvers.ridge_path import RidgePath, scale_factors, solve_ridge
from pairgram.solvers.statistics import NOISE, SMALLEST_SQUARES, clear_noise, mean_of, sums_of
from pairgram.tables.blocks import SAMPLE_ROWS, data_of_block, one_row
from pairgram.tables.rows import TableRows
from pairgram.tables.table import Table, refuse_arguments

# A subtraction is refused if it leaves less than this share of a feature's sum of squares: what is
# left then has no correct digits.
LEAST_LEFT = 1e-10


class Pairgram:
    """The statistics ``G = Xᵀ L X``, ``g = Xᵀ L y`` and ``yᵀ L y``, which add up over queries.

    They are all that pairwise least squares needs of the data. Models for every alpha are computed
    from them. They can be streamed, merged, subtracted, saved and loaded.

    Parameters
    ----------
    pairs : {"kept", "dropped", "gain", "absdiff"}, callable or None, default="kept"
        Which pairs of rows count, and how much; see `RankRLS`.
    scope : {"query", "global"}, default="query"
        With "global", all rows of all updates form one query. Such statistics can be merged only if
        ``pairs="kept"``. With ``pairs=None`` the scope has no effect.
    weighting : {"pairs", "documents", "queries"}, default="pairs"
        What has weight 1 in the objective; see `RankRLS`.
    target : {"label", "gain"}, default="label"
        What is fitted: y, or ``2^y − 1``.
    feature_map : transformer or None, default=None
        A map such as `RandomNodes`. The statistics are those of the features that it makes; the
        features are not stored. A map that is not fitted yet is fitted to the first rows.
    n_threads : int or None, default=None
        Number of threads. None takes the CPUs that the process may use, but at most
        ``OMP_NUM_THREADS``.
    ids : "check" or None, default="check"
        With "check", a query id that appears again in another update or another shard is an error,
        because a query that is cut in two loses the pairs between its parts. It is also an error to
        subtract an id that is not there. Either all queries have ids, or none has: an update
        without `qid`, or statistics of rows without `qid`, cannot be added to or subtracted from
        queries with ids. Ids that are numbers do not mix with text that reads as numbers. Every id
        takes 12 bytes. After more than 1,000,000 ids the check ends with a warning, and `ids`
        becomes None. With None, ids are not remembered; use this if every shard numbers its queries
        from the start. Rows with ``scope="global"`` are never checked.

    Attributes
    ----------
    G : ndarray of shape (n_features, n_features), float64
    g : ndarray of shape (n_features,), float64
    yy : float
        ``yᵀ L y``.
    pair_weight : float
        ``Σ_ij W_ij`` over both orders of every pair and the diagonal.
    n_rows, n_queries : int
    n_varying : ndarray of shape (n_features,), int64, or None
        The number of queries in which each feature varies. A feature varies in a query if two rows
        that count have different values or, for pointwise rows, if a value is not 0. With
        ``scope="global"`` the number is 0 or 1. None means that it is not known, as in files of
        versions that did not count.
    ids : "check" or None
        Whether ids are still checked.
    feature_names_in_ : list of str, or None
        Column names, if the rows came as a data frame.

    Notes
    -----
    L is the Laplacian of the pair weights ``W_ij = v_i v_j ω(y_i, y_j)``, so that
    ``(y − Xw)ᵀ L (y − Xw) = ½ Σ_ij W_ij ((y_i − y_j) − (x_i − x_j)ᵀ w)²``. Dense rows are centred
    per query before they are multiplied, so a large common offset of a feature does no harm. Sparse
    rows are not centred, because that would fill them.

    ``from_rows`` and ``update`` cost n · n_features² flops and O(n_features²) memory besides X.

    A subtraction leaves rounding errors of the size of what was subtracted. If a feature varies in
    none of the queries that are left, its entries in G and g become exactly 0. If a feature still
    varies, but less than 1e-10 of its G_jj is left, no correct digits are left, and the subtraction
    is refused. With ``scope="global"``, or if `n_varying` is not known, a share below 1e-13 counts
    as 0.

    Ids are remembered as 64-bit hashes (`data.query_ids.hash_ids`). A hash depends
    only on the type and the value of an id: equal whole numbers have the same hash in every
    integer type and in every process. Ids of types other than numbers, text, bytes, times, UUID
    and tuples of these are not checked. The probability that two of a million different ids
    share a hash is 3e-8.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski. Learning to rank with pairwise regularized
    least-squares. SIGIR workshop on learning to rank, 2007. Eq. 11 and §2.3.

    Examples
    --------
    >>> from pairgram import Pairgram, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> total = Pairgram.from_rows(X, y, qid=qid)
    >>> one = Pairgram.from_rows(X[qid == 3], y[qid == 3], qid=qid[qid == 3])
    >>> (total - one).n_queries
    99
    """

    # Pickles of versions that did not have these attributes get the values below.
    _varying: NDArray[np.int64] | None = None
    _ids = QueryIds()

    def __init__(
        self,
        *,
        pairs: Pairs = "kept",
        scope: Scope = "query",
        weighting: Weighting = "pairs",
        target: Target = "label",
        feature_map: Any = None,
        n_threads: int | None = None,
        ids: Literal["check"] | None = "check",
    ) -> None:
        if ids is not None:
            check_text("ids", ids, ("check",))
        self._start(PairSettings(pairs, scope, weighting, target), n_threads, feature_map)
        self._ids = QueryIds(None if ids is None else IdSet())

    def _start(
        self, settings: PairSettings, n_threads: int | None, feature_map: Any = None
    ) -> None:
        self.settings = settings
        self.n_threads = n_threads
        self.feature_map = feature_map
        self.n_rows = 0
        self.n_queries = 0
        self._sums: NDArray[np.float64] | None = None  # the sums over [X, y]; see _scatter
        self._pair_weight = 0.0
        # With scope="global" and kept pairs, _sums is the scatter Σ v (h − mean)(h − mean)ᵀ of
        # [X, y]. The mean is _origin + _mean, where _origin is a row, so a large offset does no
        # harm.
        self._weight = 0.0
        self._mean: NDArray[np.float64] | None = None
        self._origin: NDArray[np.float64] | None = None
        self._varying = None  # (n_features,)
        self._ids = QueryIds()
        self.feature_names_in_: list[str] | None = None

    @classmethod
    def from_rows(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        pairs: Pairs = "kept",
        scope: Scope = "query",
        weighting: Weighting = "pairs",
        target: Target = "label",
        feature_map: Any = None,
        n_threads: int | None = None,
        ids: Literal["check"] | None = "check",
    ) -> Self:
        """Build the statistics of one data set: of arrays, or of a table of `scan`.

        The parameters are those of the class and of `update`.
        """
        self = cls(
            pairs=pairs,
            scope=scope,
            weighting=weighting,
            target=target,
            feature_map=feature_map,
            n_threads=n_threads,
            ids=ids,
        )
        return self.update(
            X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
        )

    @classmethod
    def from_data(
        cls,
        data: RankingData,
        settings: PairSettings,
        n_threads: int | None = None,
        *,
        counts: bool = False,
        may_vanish: bool = False,
    ) -> Self:
        """Build the statistics of data that have been checked; see `from_rows`.

        Ids are not remembered. `n_varying` is counted only if `counts` is True. For `may_vanish`
        see `sums_of`.
        """
        self = cls.__new__(cls)
        self._start(settings, n_threads)
        self._add(data, counts=counts, may_vanish=may_vanish)
        return self

    @classmethod
    def of_sums(
        cls,
        sums: NDArray[np.float64],
        pair_weight: float,
        n_rows: int,
        settings: PairSettings,
        *,
        counts: bool = False,
    ) -> Self:
        """Build the statistics of pairs of all rows, other than "kept", from what they sum to.

        Parameters
        ----------
        sums : ndarray of shape (n_features + 1, n_features + 1), float64
            The sums over [X, y].
        pair_weight : float
        n_rows : int
        settings : PairSettings
        counts : bool
            Whether `n_varying` is known.
        """
        self = cls.__new__(cls)
        self._start(settings, None)
        self._sums, self._pair_weight = sums, pair_weight
        self.n_rows, self.n_queries = n_rows, 1
        self._varying = np.zeros(len(sums) - 1, dtype=np.int64) if counts else None
        return self

    def update(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows of a stream. Every call must hold whole queries.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            C-contiguous arrays of float64 or float32 are not copied; everything else becomes
            float64. A table has labels, query ids and weights itself, so the other arguments must
            be left out. Its features are read once, or twice if a feature map must be fitted. Its
            ``missing`` may be "zero", but not "mean", because statistics do not hold the means.
        y : array-like of shape (n_rows,)
            Relevance labels, any real numbers. Only a table does without.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids; the rows may come in any order. With neither `qid` nor `group`, all rows are
            one query.
        group : array-like of shape (n_queries,) of int, or None
            Sizes of the queries, in place of `qid`, if the rows of each query stand together.
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
            A weight of 2 is the same as having the row twice. Weights below 2.2e-308 count as 0.
            The weight of a pair is the product of the weights of its rows. The weights of all pairs
            must add up to at least 1e-290 and at most 1e303.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Weights of queries, given for every row and constant within a query.

        Raises
        ------
        ValueError
            If the data are not as described; if a query id came in an earlier call, or ids are
            given in some calls alone (see `ids` of the class); if the number of features differs
            from that of earlier calls; or, with ``scope="global"`` and pairs other than "kept", on
            a second call. The statistics are then left as they were.

        Warns
        -----
        UserWarning
            When the check of ids ends, because there are more than 1,000,000.
        """
        if isinstance(X, Table):
            refuse_arguments(
                y=y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
            )
            return self._update_table(X)
        if y is None:
            raise ValueError("y must be the labels of the rows of X, got None")
        names = names_of(X)
        self._require_names(names)
        data = RankingData.make(
            X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
        )
        ids = self._ids_with(data)
        with naming_not_finite(names):
            self._add(data, counts=True)
        warn_of_end(ids, self._ids)
        self.feature_names_in_, self._ids = names, ids
        return self

    def _update_table(self, table: Table) -> Self:
        """Add the rows of a table, in one pass over its features."""
        if table.missing == "mean":
            raise ValueError(
                "missing must be 'zero' or None: statistics do not hold the means that would take "
                "the place of missing values"
            )
        if table.layout.features and table.layout.label is None:
            raise ValueError("Pairgram needs labels: give scan the column, as label=")
        if not (table.has_queries or self._global or self.settings.pairs is None):
            raise ValueError(
                f"Pairgram compares rows within queries: {table.advice_on_ids}, or give the "
                "statistics scope='global'"
            )
        self._require_names(table.feature_names)
        table.survey()
        table = table.filled()
        empty = self._like()
        empty.feature_names_in_ = table.feature_names
        empty._ids = QueryIds(None if self.ids is None else IdSet())
        if empty.feature_map is not None and self._sums is None:
            empty.feature_map = self._fitted_map(table.sample(SAMPLE_ROWS).rows.X)
        pattern = replace(one_row(table), feature_map=empty.feature_map)
        added = table.run(_TableTask(empty, pattern, needs_queries=not self._global))
        total = added if self._sums is None else self._combine(added, 1)
        warn_of_end(total._ids, self._ids)
        self.__dict__.update(total.__dict__)
        return self

    def _require_names(self, names: list[str] | None) -> None:
        if self._sums is not None and names != self.feature_names_in_:
            raise ValueError(
                f"X must have the columns of the rows before, {self.feature_names_in_}, got {names}"
            )

    def _ids_with(self, data: RankingData) -> QueryIds:
        """Return the ids together with those of further rows; an id that is there is an error."""
        if self.settings.scope == "global":
            return self._ids
        return self._ids.of_rows(data.queries, self.n_queries)

    def _add(self, data: RankingData, *, counts: bool = False, may_vanish: bool = False) -> None:
        """Add checked rows. With `counts`, count the queries in which each feature varies."""
        if data.feature_map is None and self.feature_map is not None:
            fitted = self._fitted_map(data.X) if self._sums is None else self.feature_map
            data = replace(data, feature_map=fitted)
        n_features = data.n_features
        if self._sums is not None and n_features != self.n_features:
            raise ValueError(f"X must have {self.n_features} features, got {n_features}")
        added = self._like()
        added.feature_map = data.feature_map
        added.n_rows, added.n_queries = len(data.y), data.queries.n_queries
        if self._global:
            data = data.as_one_query()
            added.n_queries = 1
        settings = self.settings
        if self._scatter:
            settings = PairSettings("kept", "global", "documents", settings.target)
            added._weight, added._origin, added._mean = mean_of(data, settings)
        varying = np.zeros(n_features + 1, dtype=np.int64) if counts else None
        added._sums, added._pair_weight = sums_of(
            data, settings, self.n_threads, varying=varying, may_vanish=may_vanish
        )
        added._varying = None if varying is None else varying[:-1]
        merged = added if self._sums is None else self._combine(added, 1, check_ids=False)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = merged._factor * np.diag(merged._require())
            if data.may_vanish or settings.kind == "omega" or not np.isfinite(diagonal).all():
                weight = merged.pair_weight if self._scatter else added._pair_weight
                data.require_pair_weight(settings, weight)
        if not np.isfinite(diagonal).all():
            raise ValueError("X or y too large: the weighted sum of squared differences overflows")
        self.__dict__.update(merged.__dict__)

    def _like(self) -> Self:
        """Return empty statistics with the same settings."""
        other = type(self).__new__(type(self))
        other._start(self.settings, self.n_threads, self.feature_map)
        other.feature_names_in_ = self.feature_names_in_
        other._ids = self._ids
        return other

    def _fitted_map(self, X: Any) -> Any:
        """Return a copy of the feature map, or a clone fitted to X if it was not fitted yet."""
        try:
            check_is_fitted(self.feature_map)
        except NotFittedError:
            return clone(self.feature_map).fit(X)
        return copy.deepcopy(self.feature_map)  # its owner may fit it again

    @property
    def _global(self) -> bool:
        return self.settings.joins_all_rows

    @property
    def _scatter(self) -> bool:
        """Whether the sums are a scatter matrix: only this merges with ``scope="global"``."""
        return self._global and self.settings.kind == "kept"

    @property
    def _factor(self) -> float:
        """The factor that turns the stored sums into those of the objective."""
        if not self._scatter or self._weight == 0:
            return 1.0
        v = self._weight
        return {"pairs": v, "documents": 1.0, "queries": 2 / v}[self.settings.weighting]

    def _require(self) -> NDArray[np.float64]:
        if self._sums is None:
            raise ValueError("this Pairgram holds no rows yet: call update(X, y, qid=...) first")
        return self._sums

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self._require()) - 1

    @property
    def G(self) -> NDArray[np.float64]:
        """``Xᵀ L X``, shape (n_features, n_features)."""
        return self._factor * self._require()[:-1, :-1]

    @property
    def g(self) -> NDArray[np.float64]:
        """``Xᵀ L y``, shape (n_features,)."""
        return self._factor * self._require()[:-1, -1]

    @property
    def yy(self) -> float:
        """``yᵀ L y``."""
        return float(self._factor * self._require()[-1, -1])

    @property
    def pair_weight(self) -> float:
        """``Σ_ij W_ij`` over both orders of every pair and the diagonal."""
        return self._factor * self._weight if self._scatter else self._pair_weight

    @property
    def ids(self) -> str | None:
        """Whether ids are still checked: "check", or None if they are not or were too many."""
        return None if self._ids.hashes is None else "check"

    @property
    def n_varying(self) -> NDArray[np.int64] | None:
        """The number of queries in which each feature varies, (n_features,); None if not known."""
        if self._varying is not None and self._global:
            return (np.diag(self._require())[:-1] > 0).astype(np.int64)
        return self._varying

    def __add__(self, other: Pairgram) -> Pairgram:
        """Return the statistics of both sets of queries. Their settings must agree.

        Raises
        ------
        ValueError
            If settings, feature maps or columns differ; if a query id is in both; or if one side
            remembers ids and the other does not (see `ids`).

        Warns
        -----
        UserWarning
            When the check of ids ends, because there are more than 1,000,000.
        """
        total = self._combine(other, 1)
        if total is not NotImplemented:
            warn_of_end(total._ids, self._ids, other._ids)
        return total

    def __sub__(self, other: Pairgram) -> Pairgram:
        """Return the statistics without the queries of `other`, as if they had never been seen.

        The query ids of `other` may be added again afterwards.

        Raises
        ------
        ValueError
            If settings, feature maps or columns differ; if what is left of a feature is only
            rounding error (see the notes of the class); if one side remembers ids and the other
            does not (see `ids`); if `other` has a query id that these statistics do not have,
            because it was never added or has been subtracted before; or if a query has fewer or
            more rows in `other`, because only whole queries can be subtracted.

        Notes
        -----
        If an id of these statistics is of a type that is not checked, an id of `other` may be
        missing here, since that query may be any query of `other`. Ids and numbers of rows are
        compared, but the rows themselves are not: as many different rows with the same id are not
        noticed. Files of earlier versions do not hold the numbers of rows.
        """
        return self._combine(other, -1)

    def __radd__(self, other: Any) -> Pairgram:
        """Let ``sum`` merge shards: it begins with 0."""
        return self if other == 0 else NotImplemented

    def _combine(self, other: Pairgram, sign: int, *, check_ids: bool = True) -> Pairgram:
        if not isinstance(other, Pairgram):
            return NotImplemented
        verb = "merge" if sign > 0 else "subtract"
        if self.settings != other.settings:
            raise ValueError(f"cannot {verb} {other.settings} and {self.settings}: settings differ")
        mine, theirs = self._require(), other._require()
        if not same_map(self.feature_map, other.feature_map):
            raise ValueError(f"cannot {verb} statistics of different feature maps")
        if len(mine) != len(theirs):
            raise ValueError(
                f"cannot {verb} statistics of {len(theirs) - 1} and {len(mine) - 1} features"
            )
        if self._global and not self._scatter:
            raise ValueError(
                f"cannot {verb} with scope='global' and pairs={self.settings.pairs!r}: the weight "
                "of every label is needed first; pass all rows at once, or use pairs='kept'"
            )
        if self.n_rows + sign * other.n_rows < 0:
            raise ValueError(f"cannot subtract {other.n_rows} rows from {self.n_rows}")
        if self.feature_names_in_ != other.feature_names_in_:
            raise ValueError(
                f"cannot {verb} statistics of columns {other.feature_names_in_} and "
                f"{self.feature_names_in_}"
            )
        result = self._like()
        if check_ids:
            if sign > 0:
                result._ids = self._ids.union(other._ids, self.n_queries, other.n_queries)
            else:
                result._ids = self._ids.without(other._ids, self.n_queries, other.n_queries)
        result.n_rows = self.n_rows + sign * other.n_rows
        result.n_queries = self.n_queries + sign * other.n_queries
        if self._global:
            result.n_queries = int(result.n_rows > 0)
        result._pair_weight = self._pair_weight + sign * other._pair_weight
        result._sums = mine + sign * theirs
        if self._varying is not None and other._varying is not None:
            result._varying = np.maximum(self._varying + sign * other._varying, 0)
        if self._scatter:
            _join_means(result, self, other, sign)
        if sign < 0:
            result._settle(np.diag(mine))
        return result

    def _settle(self, before: NDArray[np.float64]) -> None:
        """Clear features if a subtraction left nothing of them; refuse those without digits.

        Parameters
        ----------
        before : ndarray of shape (n_features + 1,), float64
            The diagonal of the sums before the subtraction. The last entry belongs to the labels.
        """
        sums = self._require()
        if self._varying is None:
            clear_noise(sums, before)
            return
        after = np.diag(sums)
        constant = self._varying == 0
        if self._global:
            constant = after[:-1] <= NOISE * before[:-1]
        lost = ~constant & (after[:-1] < LEAST_LEFT * before[:-1])
        if lost.any():
            j = int(np.argmax(lost))
            where = "" if self._global else f" varies in {self._varying[j]} of the queries left but"
            share = max(0.0, after[j] / before[j])
            raise ValueError(
                f"cannot subtract: feature {self._name(j)}{where} has {share:.0e} of its sum "
                "of squares left, which is rounding error below 1e-10: build the "
                "statistics of the queries left from their rows"
            )
        if not after[-1] > NOISE * before[-1]:
            constant = np.append(constant, True)
        cleared = np.flatnonzero(constant)
        sums[cleared] = 0.0
        sums[:, cleared] = 0.0

    def solve(
        self,
        alpha: float,
        *,
        scale: bool = False,
        positive: Any = False,
        l1_ratio: float = 0.0,
        n_nonzero_coefs: int | None = None,
        prior: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return the weights that minimise the objective for one ridge, shape (n_features,).

        Parameters
        ----------
        alpha : float ≥ 0
            The ridge in ``(y − Xw)ᵀ L (y − Xw) + alpha ‖w‖²``, where the first term is a sum, not
            a mean.
        scale : bool, default=False
            If True, the ridge applies to features that are scaled to ``G_jj = 1``. The weights
            still belong to X as it was given.
        prior : array-like of shape (n_features,) or None, default=None
            Weights w₀ to start from, in place of 0: the ridge is on ``w − w₀``, and the solution is
            ``w₀ + (G + alpha I)⁻¹ (g − G w₀)``.
        positive, l1_ratio, n_nonzero_coefs :
            Constraints of the weights, as in `RankRLS`.

        Raises
        ------
        ValueError
            If `alpha` is not finite and ≥ 0, if `prior` is not n_features finite numbers, or
            if a constraint is not as described.
        """
        check_alpha(alpha)
        constraints = Constraints.make(positive, l1_ratio, n_nonzero_coefs, self.feature_names_in_)
        if constraints is not None:
            if prior is not None:
                raise ValueError(NO_PRIOR)
            if self.feature_map is not None:
                raise ValueError(NO_MAP)
            one = np.array([float(alpha)])
            return np.asarray(self.constrained_path(constraints, one, scale=scale)[1][0])
        G, g, origin = self._from(prior)
        factor = self._scale_factors(G) if scale else None
        return origin + solve_ridge(G, g, float(alpha), factor, self.n_threads)

    def _from(
        self, prior: ArrayLike | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | float]:
        """Return (G, g − G w₀, w₀) for the weights w₀ to start from, or for 0."""
        if prior is None:
            return self.G, self.g, 0.0
        weights = real_array(prior, "prior")
        if weights.shape != (self.n_features,) or not np.isfinite(weights).all():
            raise ValueError(
                f"prior must be {self.n_features} finite numbers, one for each feature, got shape "
                f"{weights.shape}{' with NaN or infinity' * (not np.isfinite(weights).all())}"
            )
        G = self.G
        with single_threaded_blas():
            return G, self.g - G @ weights, weights

    def _scale_factors(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scale factors; a feature that varies by next to nothing is a ValueError."""
        squares, varying = np.diag(G), self.n_varying
        if varying is not None:
            lost = (varying > 0) & (squares < SMALLEST_SQUARES)
            if lost.any():
                j = int(np.argmax(lost))
                raise ValueError(
                    f"feature {self._name(j)} too small for scale=True: its weighted squared "
                    f"differences add up to {squares[j]:.1g}, want {SMALLEST_SQUARES:g} or more"
                )
        return scale_factors(squares)

    def constrained_path(
        self,
        constraints: Constraints,
        alphas: Vector | None,
        *,
        scale: bool,
        started: bool = False,
    ) -> tuple[Vector, Vector]:
        """Return (alphas, weights of shape (n_alphas, n_features)) of constrained problems.

        For None, the alphas are a grid that suits the constraints; `started` says that there are
        offsets.
        """
        G, g = self.G, self.g
        factor = self._scale_factors(G) if scale else np.ones(len(g))
        G, g = factor[:, None] * G * factor, factor * g
        alphas = constraints.default_alphas(G, g, started) if alphas is None else alphas
        return alphas, factor * constraints.path(G, g, alphas)

    def _name(self, j: int) -> Any:
        """Return the name or number by which a message calls a feature."""
        names = self.feature_names_in_ if self.feature_map is None else None
        return j if names is None else repr(names[j])

    def column_sums(self, coef: NDArray[np.float64]) -> ColumnSums:
        """Return how much every column, and the score of a model, vary over the pairs."""
        G = self._require()[:-1, :-1]  # without its factor, which the weight then has not either
        weight = self._weight if self._scatter else self._pair_weight
        return ColumnSums(G.diagonal().copy(), G @ coef, weight)

    def path(
        self,
        alphas: ArrayLike | None = None,
        *,
        scale: bool = False,
        prior: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return the weights for many ridges from one decomposition.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,), each > 0 (for 0, see `solve`), or None
            None stands for ``default_alphas(scale=scale)``. With a `prior`, ``λ_max(G)`` times 1e6,
            1e3, 100 and 10 come first, of which the first keeps the prior.
        scale : bool, default=False
            As in `solve`.
        prior : array-like of shape (n_features,) or None, default=None
            As in `solve`.

        Returns
        -------
        ndarray of shape (n_alphas, n_features)
            In the order of `alphas`.
        """
        if alphas is not None:
            check_alphas(alphas)
        G, g, origin = self._from(prior)
        factor = self._scale_factors(G) if scale else None
        ridge = RidgePath.of(G, g, factor, self.n_threads)
        if alphas is None:
            alphas = ridge.default_alphas(prior is not None)
        return origin + ridge.coef(alphas)

    def default_alphas(self, *, scale: bool = False) -> NDArray[np.float64]:
        """Return the default grid ``λ_max(G) / 1e4 · 2^k`` for k = 15 … −18, shape (34,)."""
        return self.decompose(scale=scale).default_alphas()

    def decompose(self, *, scale: bool = False, basis: bool = False) -> RidgePath:
        """Return the decomposition that gives the solutions for every alpha.

        `basis` says that its eigenvectors will be needed.
        """
        G = self.G
        factor = self._scale_factors(G) if scale else None
        return RidgePath.of(G, self.g, factor, self.n_threads, basis=basis)

    def _without(
        self, data: RankingData, train: Rows, test: Rows, n_threads: int | None
    ) -> Pairgram:
        """Return the statistics of the training rows of `data`; these are those of all its rows.

        The test rows are subtracted if they are all the other rows and no digits are lost.
        """
        n_rows, settings = len(data.y), self.settings
        complement = (
            len(train) + len(test) == n_rows
            and (np.bincount(np.concatenate((train, test)), minlength=n_rows) == 1).all()
        )
        if complement and len(test) < len(train) and _is_subtractable(data, settings, test):
            rest = self - Pairgram.from_data(data.take(test), settings, n_threads, may_vanish=True)
            if (np.diag(rest.G) >= 1e-6 * np.diag(self.G)).all():  # else digits are lost
                return rest
        return Pairgram.from_data(data.take(train), settings, n_threads, may_vanish=True)

    def _path_at(self, factor: Vector | None) -> RidgePath:
        """Return the path for a given scaling of the features."""
        return RidgePath.of(self.G, self.g, factor, self.n_threads)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to a safetensors file, which holds no code.

        The file is written completely or not at all.

        Raises
        ------
        ValueError
            If `pairs` is a Python callable, which a file cannot hold.
        OSError
            If the file cannot be written. An existing file is then unchanged.
        """
        contents = self.to_bytes()
        with replacing(path) as file:
            file.write(contents)

    def to_bytes(self) -> bytes:
        """Return the bytes of the file that `save` writes, to be sent or stored elsewhere.

        Raises
        ------
        ValueError
            If `pairs` is a Python callable, which a file cannot hold.

        Examples
        --------
        >>> from pairgram import Pairgram, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> sent = [
        ...     Pairgram.from_rows(X[part], y[part], qid=qid[part]).to_bytes()
        ...     for part in (qid < 50, qid >= 50)
        ... ]
        >>> sum(map(Pairgram.from_bytes, sent)).n_queries
        100
        """
        arrays: dict[str, NDArray[Any]] = {"sums": self._require()}
        map_arrays, map_settings = describe_map(self.feature_map)
        arrays |= map_arrays
        if self._varying is not None:
            arrays["varying"] = self._varying
        if self._ids.hashes is not None and len(self._ids.hashes):
            arrays["ids"] = self._ids.hashes.array()
            if self._ids.hashes.rows is not None:
                arrays["id_rows"] = self._ids.hashes.rows_of(arrays["ids"])
        if self._mean is not None and self._origin is not None:
            arrays |= {"mean": self._mean, "origin": self._origin}
        names = ("n_rows", "n_queries", "_pair_weight", "_weight", "feature_names_in_", "ids")
        state = {name: getattr(self, name) for name in names}
        for name, value in (("_first_id", self._ids.first), ("_last_id", self._ids.last)):
            plain = isinstance(value, (int, str)) or (isinstance(value, float) and isfinite(value))
            state[name] = value if plain else None
        if self._ids.are_given and "ids" not in arrays:
            state["_ids_without_hash"] = True
        settings = {
            field.name: getattr(self.settings, field.name) for field in fields(PairSettings)
        }
        return pack("Pairgram", arrays, {**settings, "feature_map": map_settings, "state": state})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            If the file does not hold a Pairgram, is damaged, or has a setting or an array that
            `save` would not write. The message names the file.
        OSError
            If the file cannot be read.
        """
        return cls._restored(*read_file(path, ("Pairgram",)), shown(path))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Read what `to_bytes` returned, or the bytes of a file that `save` wrote.

        Raises
        ------
        TypeError
            If `data` is not bytes, a bytearray or a memoryview.
        ValueError
            As in `load`. The message names "the bytes".
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data must be bytes, got {type(data).__name__}")
        return cls._restored(*unpack(bytes(data), ("Pairgram",)), "the bytes")

    @classmethod
    def _restored(
        cls, kind: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], name: str
    ) -> Self:
        """Make the statistics that a file holds, whose contents have been checked."""
        state = settings.pop("state")
        self = cls(**{**settings, "feature_map": restore_map(arrays, settings["feature_map"])})
        first, last = (state.pop(name, None) for name in ("_first_id", "_last_id"))
        checked = state.pop("ids", None) is not None  # files of older versions do not say
        hashes = arrays.get("ids", np.empty(0, np.uint64))
        found = IdSet.of(hashes, arrays.get("id_rows")) if checked else None
        without_hash = state.pop("_ids_without_hash", False)
        self.__dict__.update(state)
        # A file does not say why ids are not checked. So many were no choice.
        ended = not checked and too_many(self.n_queries)
        given = checked and (len(hashes) > 0 or first is not None or without_hash)
        self._ids = QueryIds(found, first, last, ended, given)
        self._varying = arrays.get("varying")
        self._sums, self._mean = arrays["sums"], arrays.get("mean")
        self._origin = arrays.get("origin")
        with np.errstate(over="ignore"):
            if not (np.isfinite(self.G).all() and np.isfinite([*self.g, self.yy]).all()):
                raise ValueError(f"{name}: the sums overflow with the weight of the rows")
        return self

    def __repr__(self) -> str:
        size = "no rows" if self._sums is None else f"{self.n_rows} rows, {self.n_queries} queries"
        return f"<Pairgram of {size}, ids={self.ids!r}: {self.settings}>"


@dataclass(frozen=True, eq=False)
class _TableTask:
    """Sums the statistics of a table, with the settings of statistics that have no rows."""

    empty: Pairgram
    pattern: RankingData
    needs_queries: bool
    reads_features: bool = True

    def of_rows(self, rows: TableRows) -> Pairgram:
        """Return the statistics of some rows of whole queries."""
        own = copy.copy(self.empty)
        data = data_of_block(self.pattern, rows, own.n_threads)
        ids = own._ids_with(data)
        own._add(data, counts=True)
        own._ids = ids
        return own

    def join(self, first: Pairgram, second: Pairgram) -> Pairgram:
        """Return the statistics of the rows of both."""
        return first._combine(second, 1)


def _join_means(result: Pairgram, a: Pairgram, b: Pairgram, sign: int) -> None:
    """Apply Chan's formula: merge the scatter of two shards, or take one away again."""
    assert result._sums is not None
    assert a._mean is not None and a._origin is not None
    assert b._mean is not None and b._origin is not None
    b_mean = (b._origin - a._origin) + b._mean  # both from a's origin
    result._origin = a._origin
    result._weight = max(0.0, a._weight + sign * b._weight)
    if result._weight == 0:
        result._mean = np.zeros_like(a._mean)
        return
    result._mean = a._mean + sign * b._weight / result._weight * (b_mean - a._mean)
    if sign > 0:
        difference = b_mean - a._mean
        factor = a._weight * b._weight / result._weight
    else:
        difference = b_mean - result._mean
        factor = -result._weight * b._weight / a._weight
    result._sums += factor * np.outer(difference, difference)


def _is_subtractable(data: RankingData, settings: PairSettings, test: Rows) -> bool:
    """Tell whether the statistics of the test rows and of all others add up to those of all."""
    if settings.pairs is None and settings.weighting != "queries":
        return True
    if settings.joins_all_rows:
        return settings.kind == "kept"
    counts = np.bincount(data.queries.index()[test], minlength=data.queries.n_queries)
    return bool(((counts == 0) | (counts == data.queries.sizes)).all())
