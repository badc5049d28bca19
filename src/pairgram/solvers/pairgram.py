"""Pairgram holds the sufficient statistics of pairwise least squares."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from pairgram._support.arrays import check_alphas, real_array, with_entries
from pairgram._support.checks import AnyArray, ArgumentError, Rows, Vector, naming_not_finite
from pairgram._support.files import replacing, shown
from pairgram._support.machine import single_threaded_blas
from pairgram._support.parameters import AT_LEAST_0, check, check_setting, check_text
from pairgram.data.dataset import RankingData, names_of, read_labelled
from pairgram.data.hashed_ids import QueryIds, warn_of_end
from pairgram.data.judgements import as_judgements
from pairgram.data.pairs import Pairs, PairsLike
from pairgram.data.streams import as_stream
from pairgram.features.feature_map import describe_map, restore_map
from pairgram.features.gaps import filled, refuse_sparse
from pairgram.features.kernel_map import refuse_kernel
from pairgram.features.row_values import Chain, Fill
from pairgram.files.read_write import pack, read_file, unpack
from pairgram.solvers.constraint import NO_MAP, NO_PRIOR, Constraint
from pairgram.solvers.pair_sums import Mean, PairSums
from pairgram.solvers.ridge_path import RidgePath, solve_ridge

if TYPE_CHECKING:
    from pairgram._support.types import RowsLike, Transformer


# What a file holds of the sums, as JSON and as arrays, beside them and their mean.
STATE = ("n_rows", "n_queries", "sums_weight", "degrees", "query_weight", "least_left", "names")
ARRAYS = ("varying", "fill", "before")


class Pairgram:
    """The statistics ``G = Xᵀ L X``, ``g = Xᵀ L y`` and ``yᵀ L y``, which add up over queries.

    They are all that pairwise least squares needs of the data. Models for every alpha are computed
    from them. They can be streamed, merged, subtracted, multiplied by a number ≥ 0, saved and
    loaded. The class has the name of the package, whose core it is.

    Parameters
    ----------
    pairs : Pairs, str, callable or None, default="with_ties"
        Which pairs of rows count, and how much; see `Pairs`. With ``scope="global"``, all rows of
        all updates form one query, and such statistics can be merged only if their kind is
        "with_ties".
    feature_map : transformer or None, default=None
        What a row is, such as `RandomNodes`, or ``model.feature_map_``. The statistics are those of
        the features that it makes; the features are not stored. A map that is not fitted yet is
        fitted to the first rows. Scales, and ``Fill("mean")``, would differ from shard to shard, so
        they must be fitted; ``Fill(0.0)``, and ``Fill(values)`` with a value for each column, say
        themselves what takes the place of missing values. Statistics with different fill values
        cannot be merged; those without, which have no missing values, can be merged with all.
    ids : "check" or None, default="check"
        With "check", a query id that appears again in another update or another shard is an error,
        because a query that is cut in two loses the pairs between its parts. It is also an error to
        subtract an id that is not there. Either all queries have ids, or none has: an update
        without `qid`, or statistics of rows without `qid`, cannot be added to or subtracted from
        queries with ids. Every id takes 8 bytes. After more than 10,000,000 ids the check ends with
        a warning, and `ids` becomes None. With None, ids are not remembered; use this if every
        shard numbers its queries from the start. Rows with ``scope="global"`` are never checked.

    Attributes
    ----------
    G : ndarray of shape (n_features, n_features), float64
    g : ndarray of shape (n_features,), float64
    yy : float
        ``yᵀ L y``.
    pair_weight : float
        ``Σ_ij W_ij`` over both orders of every pair and the diagonal.
    n_rows, n_queries : int
        What was read, whatever it was multiplied by since. Solutions do not depend on these
        numbers, but on the weights of rows and pairs, which are multiplied.
    n_varying : ndarray of shape (n_features,), int64, or None
        The number of queries, and of comparisons, in which each feature varies, whatever their
        factors: in which two rows that count have different values or, for pointwise rows, a value
        is not 0. With ``scope="global"`` it is 0 or 1. None before the first rows.
    ids : "check" or None
        Whether ids are still checked.
    settings : dataclass
        The `Pairs`.
    n_features : int
        The number of features, after the feature map.
    feature_names_in_ : list of str, or None
        Column names, if the rows came as a data frame.

    Notes
    -----
    L is the Laplacian of the pair weights ``W_ij = v_i v_j ω(y_i, y_j)``, so that
    ``(y − Xw)ᵀ L (y − Xw) = ½ Σ_ij W_ij ((y_i − y_j) − (x_i − x_j)ᵀ w)²``. Dense rows are centred
    per query before they are multiplied, so a large common offset of a feature does no harm. Sparse
    rows are centred in the columns in which all rows of a query have an entry, and in all columns
    where a few rows of a query outweigh its others 1,000 times.

    ``from_rows`` and ``update`` cost n · n_features² flops and O(n_features²) memory besides X.

    A subtraction leaves rounding errors of the size of what was subtracted. If a feature varies in
    none of the queries that are left, its entries in G and g become exactly 0. If it still varies,
    but less is left than 1e-10 of the largest G_jj that was there, or 1e-4 with rows of float32,
    no digits are left, and the subtraction is refused. With ``scope="global"`` a
    share below 1e-13 counts as 0. What is left must be positive semidefinite, as
    all sums of squares are: a subtraction that leaves a negative direction, by more than rounding,
    is refused, because what was subtracted was never added.

    ``f * total`` for a number f ≥ 0 is ``f Σ_q H_qᵀ L_q H_q``, where H_q are the rows of [X, y] of
    query q. Every query counts f times, whatever the `pairs` are, as if its
    `query_weight` had been multiplied by f. With ``scope="global"`` there is one query, whose pairs
    join rows of all updates. The weight v of each of its rows is multiplied by f, and so the weight
    ``v_i v_j ω`` of a pair by the factors of both its rows. In ``f * a + b``, a pair of a row of a
    and a row of b thus has the factor f. The statistics themselves are then multiplied by f² if
    the weighting is "pairs", by f if it is "documents", and by 1 if it is "queries", which divides
    by the weight of the query.

    Factors are not remembered. A query that was multiplied since it was added must be multiplied by
    the same factor before it is subtracted. ``0 * total`` has no query and no id, so its queries
    may be added again.

    Ids are remembered as 64-bit hashes (`data.hashed_ids.hash_ids`). A hash depends only on the
    type and the value of an id: equal whole numbers have the same hash in every integer type and in
    every process. Ids of types other than integers, floats, text, bytes, times, UUID and tuples of
    these are an error. The probability that two of a million different ids share a hash is 3e-8.

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

    Every day, what came before counts 5% less:

    >>> total = Pairgram()
    >>> for day in (qid < 50, qid >= 50):
    ...     total = (0.95 * total).update(X[day], y[day], qid=qid[day])
    >>> (total - 0.95 * one).n_queries
    99
    """

    def __init__(
        self,
        *,
        pairs: PairsLike = "with_ties",
        feature_map: Transformer | None = None,
        ids: Literal["check"] | None = "check",
    ) -> None:
        if ids is not None:
            check_text("ids", ids, ("check",))
        settings = Pairs.of(pairs)
        chain = copy.deepcopy(Chain.of(feature_map))  # its owner may fit it again
        refuse_kernel(chain.then, "Pairgram")
        self._total = PairSums(settings, _fixed_map(chain), fill=_fixed_fill(chain.fill))
        self._ids = QueryIds.of(ids)

    @classmethod
    def _of(cls, total: PairSums, ids: QueryIds | None = None) -> Self:
        """Return the statistics with these sums. Without `ids`, none are remembered."""
        self = cls.__new__(cls)
        self._total = total
        self._ids = QueryIds() if ids is None else ids
        return self

    @classmethod
    def from_rows(
        cls,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        pairs: PairsLike = "with_ties",
        feature_map: Transformer | None = None,
        ids: Literal["check"] | None = "check",
    ) -> Self:
        """Build the statistics of one data set: of arrays, or of a table of `scan`.

        The parameters are those of the class and of `update`.
        """
        self = cls(pairs=pairs, feature_map=feature_map, ids=ids)
        return self.update(X, y, qid=qid, sample_weight=sample_weight, query_weight=query_weight)

    def update(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows of a stream. Every call must hold whole queries.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            C-contiguous arrays of float64 or float32 are not copied; everything else becomes
            float64. A table has labels, query ids and weights itself, so the other arguments must
            be left out. Its features are read once, or twice if a feature map must be fitted.
            Missing values are an error unless the statistics have a `Fill` of values.
        y : array-like of shape (n_rows,), Clicks, or Preferences
            Relevance labels, any real numbers. Only a table does without. `Clicks` are for
            statistics with ``pairs="clicks"``. Comparisons of rows,
            `Preferences`, are pairs like those of labels, each with its margin: they add to the
            statistics of queries, with the default `pairs` alone.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids; the rows may come in any order. Without `qid`, all rows are one query.
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
            from that of earlier calls; or, with ``scope="global"`` and pairs other than
            "with_ties", on a second call. The statistics are then left as they were.
        RuntimeError
            If another thread changed the statistics meanwhile; its change stays.

        Warns
        -----
        UserWarning
            When the check of ids ends, because there are more than 10,000,000.
        """
        before, judgements = self._total, as_judgements(y)
        stream = as_stream(X, y=y, qid=qid, sample_weight=sample_weight, query_weight=query_weight)
        if stream is not None:
            added = stream.statistics(self)
            total, ids = added._total, added._ids
        else:
            if judgements is not None:
                judgements.require_settings(self.settings)
            if y is None:
                raise ValueError("y must be the labels of the rows of X, got None")
            X = with_entries(X)
            names = names_of(X)
            self._require_names(names)
            data = RankingData.delimit(*read_labelled(X, y), qid, sample_weight, query_weight)
            fill = self._fill_of(data.X.shape[1], is_sparse=scipy.sparse.issparse(data.X))
            data = replace(data, X=filled(data.X, fill))
            ids = self._ids_with(data)
            with naming_not_finite(names):
                total = replace(before, names=names, fill=fill).with_rows(data)
        warn_of_end(ids, self._ids)
        if self._total is not before:
            raise RuntimeError(
                "these statistics were changed by another thread meanwhile: let each thread make "
                "its own, and add them"
            )
        self._total, self._ids = total, ids
        return self

    def _fill_of(self, width: int, *, is_sparse: bool) -> Vector | None:
        """Return what takes the place of missing values of rows with so many columns."""
        fill = self._total.fill
        if fill is None:
            return None
        if is_sparse:
            refuse_sparse()
        if fill.ndim and len(fill) != width:
            text = f"must fill each of the {width} columns, got {len(fill)} values"
            raise ArgumentError("feature_map", text)
        return np.array(np.broadcast_to(fill, width))

    def _require_names(self, names: list[str] | None) -> None:
        if self._total.sums is not None and names != self.feature_names_in_:
            raise ValueError(
                f"X must have the columns of the rows before, {self.feature_names_in_}, got {names}"
            )

    def _ids_with(self, data: RankingData) -> QueryIds:
        """Return the ids together with those of further rows; an id that is there is an error."""
        if self.settings.scope == "global" or data.preferences is not None:
            return self._ids
        return self._ids.of_rows(data.queries, self.n_queries)

    @property
    def settings(self) -> Pairs:
        """Which pairs count, with what weight, and what is fitted to them."""
        return self._total.settings

    @property
    def feature_map(self) -> Any:
        """What a row is, fitted if there are rows, or None."""
        fill = self._total.fill
        return Chain.of_map(copy.copy(self._total.feature_map)).filled_by(fill).value

    @property
    def feature_names_in_(self) -> list[str] | None:
        """Column names, if the rows came as a data frame."""
        return self._total.names

    @property
    def n_rows(self) -> int:
        """Number of rows, and of comparisons."""
        return self._total.n_rows

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self._total.n_queries

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._total.n_features

    @property
    def G(self) -> Vector:
        """``Xᵀ L X``, shape (n_features, n_features)."""
        return self._total.G

    @property
    def g(self) -> Vector:
        """``Xᵀ L y``, shape (n_features,)."""
        return self._total.g

    @property
    def yy(self) -> float:
        """``yᵀ L y``."""
        return float(self._total.factor * self._total.required()[-1, -1])

    @property
    def pair_weight(self) -> float:
        """``Σ_ij W_ij`` over both orders of every pair and the diagonal."""
        return self._total.pair_weight

    @property
    def ids(self) -> str | None:
        """Whether ids are still checked: "check", or None if they are not or were too many."""
        return None if self._ids.hashes is None else "check"

    @property
    def n_varying(self) -> Rows | None:
        """The number of queries in which each feature varies; None before the first rows."""
        return self._total.n_varying

    def __add__(self, other: Pairgram) -> Pairgram:
        """Return the statistics of both sets of queries. Their settings must agree.

        Raises
        ------
        ValueError
            If settings, feature maps or columns differ; if a query id is in both; or if one side
            has ids and the other has none (see `ids`).

        Warns
        -----
        UserWarning
            When the check of ids ends, because there are more than 10,000,000.
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
            If settings, feature maps or columns differ; if what is left of a feature or the labels
            is only rounding error, or negative (see the notes of the class); if one side has ids
            and the other has none (see `ids`); or if `other` has a query id that these statistics
            do not have, because it was never added or has been subtracted before.

        Notes
        -----
        Rows, weights and labels are not remembered. Queries must have those with which they were
        added, and the factor by which they count now, or what is left is wrong.
        """
        return self._combine(other, -1)

    def __mul__(self, factor: float) -> Self:
        """Return the statistics in which every query counts `factor` times as much.

        Rows that are added later enter with the factor 1. See the notes of the class for
        ``scope="global"``.

        Parameters
        ----------
        factor : float, finite and ≥ 0
            Multiplied by 0, the statistics hold no query and no id, but still the settings, the
            feature map and the number of features.

        Raises
        ------
        ValueError
            If `factor` is no finite number ≥ 0, as a bool and an array are not, or sums overflow.
        """
        factor = float(check_setting("factor", factor, AT_LEAST_0))
        ids = self._ids if factor else QueryIds.of(self.ids)
        return self._of(factor * self._total, ids)

    __rmul__ = __mul__
    __array_ufunc__ = None  # NumPy's numbers and arrays leave the multiplication to `__rmul__`

    def __radd__(self, other: object) -> Pairgram:
        """Let ``sum`` merge shards: it begins with 0."""
        return 1.0 * self if isinstance(other, Real) and other == 0 else NotImplemented

    def _combine(self, other: Pairgram, sign: int) -> Pairgram:
        if not isinstance(other, Pairgram):
            return NotImplemented
        mine, theirs = self._total, other._total
        mine.require_like(theirs, "merge" if sign > 0 else "subtract")
        ids = self._ids.joined(other._ids, sign, self.n_queries, other.n_queries)
        total = mine + theirs if sign > 0 else mine - theirs
        return self._of(total, ids)

    def solve(
        self,
        alpha: float,
        *,
        scale: bool = False,
        constraint: Constraint | None = None,
        prior: ArrayLike | None = None,
    ) -> Vector:
        """Return the weights that minimise the objective for one ridge, shape (n_features,).

        This takes O(n_features³) time.

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
        constraint : Positive, ElasticNet, MaxNonzero or None, default=None
            What the weights must be like, as in `RankRLS`.

        Raises
        ------
        ValueError
            If `alpha` is not finite and ≥ 0, if `prior` is not n_features finite numbers, or
            if `constraint` is not as described.
        """
        check("alpha", alpha)
        check("constraint", constraint)
        if constraint is not None:
            if prior is not None:
                raise ValueError(NO_PRIOR)
            if self._total.feature_map is not None:
                raise ValueError(NO_MAP)
            n, one = self.n_features, np.array([float(alpha)])
            own = constraint.of_columns(n, n, self.feature_names_in_)
            return self._total.constrained_path(own, one, scale=scale)[1][0]
        G, g, origin = self._from(prior)
        factor = self._total.scale_factors(scale)
        return origin + solve_ridge(G, g, float(alpha), factor)

    def _from(self, prior: ArrayLike | None) -> tuple[Vector, Vector, Vector | float]:
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
        with single_threaded_blas:
            return G, self.g - G @ weights, weights

    def path(
        self,
        alphas: ArrayLike | None = None,
        *,
        scale: bool = False,
        prior: ArrayLike | None = None,
    ) -> Vector:
        """Return the weights for many ridges from one decomposition, in O(n_features³) time.

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
        factor = self._total.scale_factors(scale)
        ridge = RidgePath.of(G, g, factor)
        reaches = alphas is not None and ridge.band is None and ridge.eigen.narrowest > 0
        if not reaches:
            self._total.warn_of_narrow_columns(scale)
        if alphas is None:
            alphas = ridge.default_alphas(prior is not None)
        return origin + ridge.coef(alphas)

    def default_alphas(self, *, scale: bool = False) -> Vector:
        """Return the default grid ``λ_max(G) / 1e4 · 2^k`` for k = 15 … −18, shape (34,)."""
        return self._total.decompose(scale=scale).default_alphas()

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
        total = self._total
        arrays: dict[str, AnyArray] = {"sums": total.required()}
        if (chain := Chain.of_map(total.feature_map)).scaling is not None:
            raise ArgumentError(
                None,
                f"statistics of columns by {chain.kind!r} cannot be written to a file: pickle "
                "holds them",
            )
        map_arrays, map_settings = describe_map(total.feature_map)
        arrays |= map_arrays
        for name in ARRAYS:
            if (values := getattr(total, name)) is not None:
                arrays[name] = values
        if self._ids.hashes is not None and len(self._ids.hashes):
            arrays["ids"] = self._ids.hashes
        if total.mean is not None:
            arrays |= {"mean": total.mean.offset, "origin": total.mean.origin}
        state = {name: getattr(total, name) for name in STATE} | {
            "weight": 0.0 if total.mean is None else total.mean.weight,
            "ids": self.ids,
        }
        settings = {"pairs": total.settings.in_file(), "feature_map": map_settings, "state": state}
        return pack("Pairgram", arrays, settings)

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
        return cls._restored(*unpack(bytes(memoryview(data)), ("Pairgram",)), "the bytes")

    @classmethod
    def _restored(
        cls, kind: str, arrays: dict[str, AnyArray], settings: dict[str, Any], name: str
    ) -> Self:
        """Make the statistics that a file holds, whose contents have been checked."""
        state = settings["state"]
        feature_map = restore_map(arrays, settings["feature_map"])
        mean = None
        if "mean" in arrays:
            mean = Mean(state["weight"], arrays["origin"], arrays["mean"])
        told = {name: state[name] for name in STATE} | {name: arrays.get(name) for name in ARRAYS}
        pairs = Pairs(**settings["pairs"])
        total = PairSums(pairs, feature_map, sums=arrays["sums"], mean=mean, **told)
        ids = QueryIds(arrays["ids"]) if "ids" in arrays else QueryIds.of(state["ids"])
        self = cls._of(total, ids)
        with np.errstate(over="ignore"):
            if not (np.isfinite(self.G).all() and np.isfinite([*self.g, self.yy]).all()):
                raise ValueError(f"{name}: the sums overflow with the weight of the rows")
        return self

    def __repr__(self) -> str:
        size = f"{self.n_rows} rows, {self.n_queries} queries"
        size = "no rows" if self._total.sums is None else size
        return f"<Pairgram of {size}, ids={self.ids!r}: {self.settings}>"


def _fixed_fill(fill: Fill | None) -> Vector | None:
    """Return the values of a Fill, of shape () for one number."""
    if fill is None or hasattr(fill, "fill_"):
        return None if fill is None else fill.fill_
    value = fill.checked_value()
    if isinstance(value, str):
        raise ArgumentError(
            "feature_map",
            f"must have a fitted Fill, or numbers, got Fill({value!r}): statistics that are merged "
            "must have one value in the place of what is missing, such as model.feature_map_",
        )
    return np.array(value)


def _fixed_map(chain: Chain) -> Any:
    """Return the map after what fills gaps, whose scale is fitted."""
    if chain.scaling is not None and not hasattr(chain.scaling, "inputs_"):
        raise ArgumentError(
            "feature_map",
            f"must have a fitted {type(chain.scaling).__name__}: statistics that are merged must "
            "have one scale, such as that of model.feature_map_",
        )
    return chain.after_fill
