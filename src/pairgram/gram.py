"""Pairgram: the sufficient statistics of pairwise least squares."""

from __future__ import annotations

import copy
import os
from dataclasses import fields, replace
from math import isfinite
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pairgram._files import shown
from pairgram.data import RankingData, names_of
from pairgram.feature_maps import describe_map, restore_map, same_map
from pairgram.pairs import Pairs, PairSettings, Scope, Target, Weighting
from pairgram.persistence import read_file, write_file
from pairgram.ridge import RidgePath, check_alpha, check_alphas, scale_factors, solve_ridge
from pairgram.sums import clear_noise, mean_of, sums_of

__all__ = ["Pairgram"]


class Pairgram:
    """The statistics ``G = Xᵀ L X``, ``g = Xᵀ L y`` and ``yᵀ L y``, additive over queries.

    All that pairwise least squares needs of the data: models for every regularisation value come
    from it, and it can be streamed, merged, subtracted, saved and loaded.

    Parameters
    ----------
    pairs : {"kept", "dropped", "gain", "absdiff"}, callable or None, default="kept"
        Which pairs of rows count, and how much: see `RankRLS`.
    scope : {"query", "global"}, default="query"
        "global": all rows of all updates form one query; such statistics merge for pairs "kept"
        alone. Pointwise rows (None) have no scope.
    weighting : {"pairs", "documents", "queries"}, default="pairs"
    target : {"label", "gain"}, default="label"
    feature_map : transformer or None, default=None
        Such as `RandomNodes`: the statistics are those of the features that it makes, which are not
        stored. One that is not fitted yet is fitted to the first rows.
    n_threads : int or None, default=None
        None takes the CPUs that the process may use, at most ``OMP_NUM_THREADS``.

    Attributes
    ----------
    G : ndarray of shape (n_features, n_features), float64
    g : ndarray of shape (n_features,), float64
    yy : float
        ``yᵀ L y``.
    pair_weight : float
        ``Σ_ij W_ij`` over both orders and the diagonal.
    n_rows, n_queries : int
    feature_names_in_ : list of str, or None
        Column names, where the rows came as a frame.

    Notes
    -----
    L is the Laplacian of the pair weights ``W_ij = v_i v_j ω(y_i, y_j)``, so that
    ``(y − Xw)ᵀ L (y − Xw) = ½ Σ_ij W_ij ((y_i − y_j) − (x_i − x_j)ᵀ w)²``. Rows are centred per
    query before they are multiplied, so a large common offset of a feature does no
    harm; sparse rows, which that would fill, are not.

    ``from_rows`` and ``update`` cost n · n_features² flops and O(n_features²) memory besides X.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski. Learning to rank with pairwise regularized
    least-squares. SIGIR workshop on learning to rank, 2007. Eq. 11 and §2.3.

    Examples
    --------
    >>> from pairgram import Pairgram, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> total = Pairgram.from_rows(X, y, qid=qid)
    >>> one = Pairgram.from_rows(X[qid == 3], y[qid == 3])
    >>> (total - one).n_queries
    99
    """

    def __init__(
        self,
        *,
        pairs: Pairs = "kept",
        scope: Scope = "query",
        weighting: Weighting = "pairs",
        target: Target = "label",
        feature_map: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self._start(PairSettings(pairs, scope, weighting, target), n_threads, feature_map)

    def _start(
        self, settings: PairSettings, n_threads: int | None, feature_map: Any = None
    ) -> None:
        self.settings = settings
        self.n_threads = n_threads
        self.feature_map = feature_map
        self.n_rows = 0
        self.n_queries = 0
        self._sums: NDArray[np.float64] | None = None  # of [X, y]; see _scatter
        self._pair_weight = 0.0
        # scope="global", pairs kept: _sums is the scatter Σ v (h − mean)(h − mean)ᵀ of [X, y], and
        # mean = _origin + _mean, with _origin a row, so that a large offset does no harm.
        self._weight = 0.0
        self._mean: NDArray[np.float64] | None = None
        self._origin: NDArray[np.float64] | None = None
        self._last_id: Any = None
        self.feature_names_in_: list[str] | None = None

    @classmethod
    def from_rows(
        cls,
        X: Any,
        y: ArrayLike,
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
    ) -> Self:
        """Build the statistics of one data set; parameters as those of the class and `update`."""
        self = cls(
            pairs=pairs,
            scope=scope,
            weighting=weighting,
            target=target,
            feature_map=feature_map,
            n_threads=n_threads,
        )
        return self.update(
            X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
        )

    @classmethod
    def from_data(
        cls, data: RankingData, settings: PairSettings, n_threads: int | None = None
    ) -> Self:
        """Build the statistics of data that have been checked; see `from_rows`."""
        self = cls.__new__(cls)
        self._start(settings, n_threads)
        self._add(data)
        return self

    def update(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows of a stream; each call holds whole queries.

        Only a query that goes on from the previous call is noticed: to remember every id would take
        memory without bound.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
            C-contiguous arrays of either type are not copied; everything else becomes float64.
        y : array-like of shape (n_rows,)
            Relevance labels, any real numbers.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids, rows in any order. None, without `group`: all rows are one query.
        group : array-like of shape (n_queries,) of int, or None
            Sizes of queries whose rows stand together, instead of `qid`.
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
            Weight 2 is the same as the row twice; weights below 2.2e-308 are 0.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Constant within a query.

        Raises
        ------
        ValueError
            If the data are not as above; if the query that ended the previous call goes on in
            this one; if the number of features differs from that of earlier calls; with
            ``scope="global"``, on a second call unless pairs are kept. The statistics are then
            what they were before.
        """
        names = names_of(X)
        if self._sums is not None and names != self.feature_names_in_:
            raise ValueError(
                f"X must have the columns of the rows before, {self.feature_names_in_}, got {names}"
            )
        data = RankingData.make(
            X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
        )
        ids = data.queries.ids
        if ids is None or len(ids) == 0 or self.settings.scope == "global":
            ids = np.empty(0)
        if self._last_id is not None and self._last_id in ids.tolist():
            raise ValueError(
                f"qid {self._last_id!r} ended the previous update and goes on in this one: each "
                "call must hold whole queries"
            )
        self._add(data)
        self.feature_names_in_ = names
        self._last_id = ids[data.queries.index()[-1:]].tolist()[0] if len(ids) else None
        return self

    def _add(self, data: RankingData) -> None:
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
        added._sums, added._pair_weight = sums_of(data, settings, self.n_threads)
        merged = added if self._sums is None else self + added
        self.__dict__.update(merged.__dict__)

    def _like(self) -> Self:
        """Return empty statistics with the same settings."""
        other = type(self).__new__(type(self))
        other._start(self.settings, self.n_threads, self.feature_map)
        other.feature_names_in_ = self.feature_names_in_
        return other

    def _fitted_map(self, X: Any) -> Any:
        """Return the feature map, a clone fitted to X where it was not fitted before."""
        try:
            check_is_fitted(self.feature_map)
        except NotFittedError:
            return clone(self.feature_map).fit(X)
        return copy.deepcopy(self.feature_map)  # which its owner may fit again

    @property
    def _global(self) -> bool:
        return self.settings.scope == "global" and self.settings.pairs is not None

    @property
    def _scatter(self) -> bool:
        """Whether the sums are those of the scatter matrix, which alone merges across shards."""
        return self._global and self.settings.kind == "kept"

    @property
    def _factor(self) -> float:
        """What turns the stored sums into those of the objective."""
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
        """``Σ_ij W_ij``, both orders and the diagonal."""
        return self._factor * self._weight if self._scatter else self._pair_weight

    def __add__(self, other: Pairgram) -> Pairgram:
        """Return the statistics of both sets of queries; settings must agree."""
        return self._combine(other, 1)

    def __sub__(self, other: Pairgram) -> Pairgram:
        """Return the statistics without the queries of `other`, as if they had never been seen."""
        return self._combine(other, -1)

    def __radd__(self, other: Any) -> Pairgram:
        """Let ``sum`` merge shards: it begins with 0."""
        return self if other == 0 else NotImplemented

    def _combine(self, other: Pairgram, sign: int) -> Pairgram:
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
        result.feature_names_in_ = self.feature_names_in_
        result.n_rows = self.n_rows + sign * other.n_rows
        result.n_queries = self.n_queries + sign * other.n_queries
        if self._global:
            result.n_queries = int(result.n_rows > 0)
        result._pair_weight = self._pair_weight + sign * other._pair_weight
        result._sums = mine + sign * theirs
        result._last_id = self._last_id
        if sign > 0 and other._last_id is not None:
            result._last_id = other._last_id
        if self._scatter:
            _join_means(result, self, other, sign)
        if sign < 0:
            clear_noise(result._sums, np.diag(mine))
        return result

    def solve(self, alpha: float, *, scale: bool = False) -> NDArray[np.float64]:
        """Return the weights that minimise the objective for one ridge, shape (n_features,).

        Parameters
        ----------
        alpha : float ≥ 0
            Ridge on the summed objective ``(y − Xw)ᵀ L (y − Xw) + alpha ‖w‖²``.
        scale : bool, default=False
            Put the ridge on features scaled to ``G_jj = 1``; the weights are for X as it is.

        Raises
        ------
        ValueError
            If `alpha` is not finite and ≥ 0.
        """
        check_alpha(alpha)
        G = self.G
        factor = scale_factors(np.diag(G)) if scale else None
        return solve_ridge(G, self.g, float(alpha), factor, self.n_threads)

    def path(self, alphas: ArrayLike | None = None, *, scale: bool = False) -> NDArray[np.float64]:
        """Return the weights for many ridges from one eigendecomposition.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,), each > 0 (for 0, see `solve`), or None
            None: ``default_alphas(scale=scale)``.
        scale : bool, default=False

        Returns
        -------
        ndarray of shape (n_alphas, n_features)
            In the order of `alphas`.
        """
        ridge = self.decompose(scale=scale)
        if alphas is None:
            return ridge.coef(ridge.default_alphas())
        check_alphas(alphas)
        return ridge.coef(alphas)

    def default_alphas(self, *, scale: bool = False) -> NDArray[np.float64]:
        """Return the default grid ``λ_max(G) / 1e4 · 2^k``, k = 15 … −18: shape (34,)."""
        return self.decompose(scale=scale).default_alphas()

    def decompose(self, *, scale: bool = False) -> RidgePath:
        """Return the eigendecomposition from which solutions for every alpha come."""
        G = self.G
        factor = scale_factors(np.diag(G)) if scale else None
        return RidgePath.of(G, self.g, factor, self.n_threads)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to a safetensors file (no code in it), whole or not at all.

        Raises
        ------
        ValueError
            If `pairs` is a Python callable, which a file cannot hold.
        """
        arrays = {"sums": self._require()}
        map_arrays, map_settings = describe_map(self.feature_map)
        arrays |= map_arrays
        if self._mean is not None and self._origin is not None:
            arrays |= {"mean": self._mean, "origin": self._origin}
        names = ("n_rows", "n_queries", "_pair_weight", "_weight", "_last_id", "feature_names_in_")
        state = {name: getattr(self, name) for name in names}
        last = self._last_id
        if not (isinstance(last, (int, str)) or (isinstance(last, float) and isfinite(last))):
            state["_last_id"] = None
        settings = {
            field.name: getattr(self.settings, field.name) for field in fields(PairSettings)
        }
        write_file(
            path, "Pairgram", arrays, {**settings, "feature_map": map_settings, "state": state}
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            If the file is none of a Pairgram, or is damaged; if a setting or array in it is not
            what `save` writes, of whatever origin the file is. It names the file.
        OSError
            If the file cannot be read.
        """
        _, arrays, settings = read_file(path, ("Pairgram",))
        state = settings.pop("state")
        self = cls(**{**settings, "feature_map": restore_map(arrays, settings["feature_map"])})
        self.__dict__.update(state)
        self._sums, self._mean = arrays["sums"], arrays.get("mean")
        self._origin = arrays.get("origin")
        with np.errstate(over="ignore"):
            if not (np.isfinite(self.G).all() and np.isfinite([*self.g, self.yy]).all()):
                raise ValueError(f"{shown(path)}: the sums overflow with the weight of the rows")
        return self

    def __repr__(self) -> str:
        size = "no rows" if self._sums is None else f"{self.n_rows} rows, {self.n_queries} queries"
        return f"<Pairgram of {size}: {self.settings}>"


def _join_means(result: Pairgram, a: Pairgram, b: Pairgram, sign: int) -> None:
    """Chan's formula for the scatter of two shards, or for one taken away again."""
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
