"""Pairgram: the sufficient statistics of pairwise least squares."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, column_or_1d

from pairgram import _core
from pairgram._threads import resolve_n_threads, single_threaded_blas
from pairgram.pairs import Pairs, PairSettings, Scope, Target, Weighting
from pairgram.persistence import read_file, write_file
from pairgram.queries import Queries, check_weights
from pairgram.ridge import RidgePath, check_alphas, scale_factors, solve_ridge
from pairgram.sparse import dense_blocks, sparse_gram, worth_densifying

__all__ = ["Pairgram", "RankingData"]


@dataclass(frozen=True, eq=False)
class RankingData:
    """Checked training data, as the kernels take it.

    Attributes
    ----------
    X : C-contiguous ndarray or csr_array, shape (n_rows, n_features), float64 or float32
    y : ndarray of shape (n_rows,), float64
    queries : Queries
    row_weights : ndarray of shape (n_rows,), float64, or None
    query_weights : ndarray of shape (n_queries,), float64, or None
    """

    X: Any
    y: NDArray[np.float64]
    queries: Queries
    row_weights: NDArray[np.float64] | None = None
    query_weights: NDArray[np.float64] | None = None

    @classmethod
    def make(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> RankingData:
        """Check and delimit the rows. `X` may hold NaN or Inf: the Gram matrix will show it."""
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            input_name="X",
        )
        n_rows = X.shape[0]
        y = np.ascontiguousarray(column_or_1d(y, warn=True), dtype=np.float64)
        if len(y) != n_rows:
            raise ValueError(
                f"y must have a label for each of the {n_rows} rows of X, got {len(y)}"
            )
        if not np.isfinite(y).all():
            row = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"y must not hold NaN or infinity, got {y[row]} in row {row}")
        queries = Queries.make(n_rows, qid=qid, group=group)
        return cls(
            X,
            y,
            queries,
            None
            if sample_weight is None
            else check_weights(sample_weight, n_rows, "sample_weight"),
            None if query_weight is None else queries.per_query(query_weight, "query_weight"),
        )

    def take(self, rows: NDArray[np.int64]) -> RankingData:
        """Return the given rows as data of their own; queries keep their order and ids."""
        index = self.queries.index()[rows]
        kept, ids = np.unique(index, return_inverse=True)
        queries = Queries.make(len(rows), qid=ids)
        # Queries stand in the order of their first row.
        by_first_row = kept[queries.ids] if queries.ids is not None else kept
        return RankingData(
            self.X[rows],
            self.y[rows],
            queries,
            None if self.row_weights is None else self.row_weights[rows],
            None if self.query_weights is None else self.query_weights[by_first_row],
        )

    def as_one_query(self) -> RankingData:
        """Return the same rows as a single query (scope="global")."""
        if self.query_weights is not None:
            raise ValueError("query_weight has no meaning with scope='global': all rows form one")
        return RankingData(self.X, self.y, Queries.make(len(self.y)), self.row_weights)

    def kernel_arguments(self, settings: PairSettings) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments that every least-squares kernel takes, for dense X."""
        levels = settings.levels(self.y)
        targets = settings.targets(self.y)[:, None]
        return (self.X, targets, self.y, self.queries.offsets), {
            "order": self.queries.order,
            "row_weights": self.row_weights,
            "query_weights": self.query_weights,
            "pairs": settings.kind,
            "weighting": settings.weighting,
            "level_values": levels[0] if levels else None,
            "omega": levels[1] if levels else None,
        }


class Pairgram:
    """The statistics ``G = Xᵀ L X``, ``g = Xᵀ L y`` and ``yᵀ L y``, additive over queries.

    All that pairwise least squares needs of the data: models for every regularisation value come
    from it, and it can be streamed, merged, subtracted, saved and loaded.

    Parameters
    ----------
    pairs : {"kept", "dropped", "gain", "absdiff"}, callable or None, default="kept"
        Which pairs of rows count, and how much: see `RankRLS`.
    scope : {"query", "global"}, default="query"
    weighting : {"pairs", "documents", "queries"}, default="pairs"
    target : {"label", "gain"}, default="label"
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

    Notes
    -----
    L is the Laplacian of the pair weights ``W_ij = v_i v_j ω(y_i, y_j)``, so that
    ``(y − Xw)ᵀ L (y − Xw) = ½ Σ_ij W_ij ((y_i − y_j) − (x_i − x_j)ᵀ w)²``. Rows are centred per
    query before they are multiplied, so a large common offset of a feature does no harm.

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
        n_threads: int | None = None,
    ) -> None:
        self.settings = PairSettings(pairs, scope, weighting, target)
        self.n_threads = n_threads
        self.n_rows = 0
        self.n_queries = 0
        self._sums: NDArray[np.float64] | None = None  # of [X, y]; see _scatter
        self._pair_weight = 0.0
        # scope="global", pairs kept: _sums is the scatter Σ v (h − mean)(h − mean)ᵀ of [X, y].
        self._weight = 0.0
        self._mean: NDArray[np.float64] | None = None
        self._last_id: Hashable = None

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
        n_threads: int | None = None,
    ) -> Self:
        """Build the statistics of one data set; parameters as those of the class and `update`."""
        self = cls(
            pairs=pairs, scope=scope, weighting=weighting, target=target, n_threads=n_threads
        )
        return self.update(
            X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
        )

    @classmethod
    def _of(cls, data: RankingData, settings: PairSettings, n_threads: int | None) -> Self:
        self = cls(n_threads=n_threads, **asdict(settings))
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
        sample_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Constant within a query.

        Raises
        ------
        ValueError
            If the data are not as above; if the first query continues the last one of the
            previous call; if the number of features differs from that of earlier calls; with
            ``scope="global"``, on a second call unless pairs are kept. The statistics are then
            what they were before.
        """
        data = RankingData.make(
            X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
        )
        ids = data.queries.ids
        known = [] if ids is None or self.settings.scope == "global" else ids.tolist()
        if self._last_id is not None and self._last_id in known:
            raise ValueError(
                f"qid {self._last_id!r} continues the last query of the previous update: each call "
                "must hold whole queries"
            )
        self._add(data)
        self._last_id = known[-1] if known else None
        return self

    def _add(self, data: RankingData) -> None:
        n_features = data.X.shape[1]
        if self._sums is not None and n_features != self.n_features:
            raise ValueError(f"X must have {self.n_features} features, got {n_features}")
        added = type(self)(n_threads=self.n_threads, **asdict(self.settings))
        added.n_rows, added.n_queries = len(data.y), data.queries.n_queries
        if self._global:
            data = data.as_one_query()
            added.n_queries = 1
        scatter = self._scatter
        kernel_settings = (
            PairSettings("kept", "global", "documents", self.settings.target)
            if scatter
            else self.settings
        )
        added._sums, added._pair_weight = _gram(data, kernel_settings, self.n_threads)
        if scatter:
            added._weight, added._mean = _mean(data, kernel_settings)
        if self._sums is None:
            self._take(added)
        else:
            self._take(self + added)

    def _take(self, other: Pairgram) -> None:
        last_id, n_threads = self._last_id, self.n_threads
        self.__dict__.update(other.__dict__)
        self._last_id, self.n_threads = last_id, n_threads

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

    def _combine(self, other: Pairgram, sign: int) -> Pairgram:
        if not isinstance(other, Pairgram):
            return NotImplemented
        verb = "merge" if sign > 0 else "subtract"
        if self.settings != other.settings:
            raise ValueError(f"cannot {verb} {other.settings} and {self.settings}: settings differ")
        mine, theirs = self._require(), other._require()
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
        result = type(self)(n_threads=self.n_threads, **asdict(self.settings))
        result.n_rows = self.n_rows + sign * other.n_rows
        result.n_queries = self.n_queries + sign * other.n_queries
        if self._global:
            result.n_queries = int(result.n_rows > 0)
        result._pair_weight = self._pair_weight + sign * other._pair_weight
        result._sums = mine + sign * theirs
        result._last_id = self._last_id
        if self._scatter:
            _join_means(result, self, other, sign)
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
        if not (np.isfinite(alpha) and alpha >= 0):
            raise ValueError(f"alpha must be finite and >= 0, got {alpha!r}")
        G = self.G
        return solve_ridge(G, self.g, float(alpha), scale_factors(G) if scale else None)

    def path(self, alphas: ArrayLike | None = None, *, scale: bool = False) -> NDArray[np.float64]:
        """Return the weights for many ridges from one eigendecomposition.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,), each > 0, or None
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
        return RidgePath.of(G, self.g, scale_factors(G) if scale else None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to a safetensors file (no code in it), whole or not at all.

        Raises
        ------
        ValueError
            If `pairs` is a Python callable, which a file cannot hold.
        """
        arrays = {"sums": self._require()}
        if self._mean is not None:
            arrays["mean"] = self._mean
        counts = {
            name: getattr(self, name) for name in ("n_rows", "n_queries", "_pair_weight", "_weight")
        }
        write_file(path, "Pairgram", arrays, {**asdict(self.settings), "counts": counts})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; a damaged or foreign file is a ValueError."""
        _, arrays, settings = read_file(path, ("Pairgram",))
        counts = settings.pop("counts")
        self = cls(**settings)
        self.__dict__.update(counts)
        self._sums, self._mean = arrays["sums"], arrays.get("mean")
        return self

    def __repr__(self) -> str:
        size = "no rows" if self._sums is None else f"{self.n_rows} rows, {self.n_queries} queries"
        return f"<Pairgram of {size}: {self.settings}>"


def _gram(
    data: RankingData, settings: PairSettings, n_threads: int | None
) -> tuple[NDArray[np.float64], float]:
    """Return (the sums over [X, y], Σ W); X with NaN or Inf is a ValueError."""
    threads = resolve_n_threads(n_threads)
    if scipy.sparse.issparse(data.X) and not worth_densifying(data):
        sums, pair_weight = sparse_gram(data, settings)
    else:
        width = data.X.shape[1] + 1
        sums, pair_weight = np.zeros((width, width)), 0.0
        with single_threaded_blas():
            for _, block in dense_blocks(data):
                arguments, named = block.kernel_arguments(settings)
                block_sums, weight = _core.gram(*arguments, **named, n_threads=threads)
                sums, pair_weight = sums + block_sums, pair_weight + weight
    if not np.isfinite(np.diag(sums)).all():
        check_array(data.X, accept_sparse="csr", input_name="X")  # says NaN or infinity
        column = int(np.argmin(np.isfinite(np.diag(sums))))
        what = "y" if column == data.X.shape[1] else f"feature {column} of X"
        raise ValueError(f"{what} is too large: its sum of squared differences overflows")
    return sums, float(pair_weight)


def _mean(data: RankingData, settings: PairSettings) -> tuple[float, NDArray[np.float64]]:
    """Return the weight and the weighted mean of the rows of [X, y]."""
    weights = data.row_weights if data.row_weights is not None else np.ones(len(data.y))
    total = float(weights.sum())
    share = weights / total if total > 0 else weights
    return total, np.append(share @ data.X, share @ settings.targets(data.y))


def _join_means(result: Pairgram, a: Pairgram, b: Pairgram, sign: int) -> None:
    """Chan's formula for the scatter of two shards, or for one taken away again."""
    assert result._sums is not None
    assert a._mean is not None
    assert b._mean is not None
    result._weight = max(0.0, a._weight + sign * b._weight)
    if result._weight == 0:
        result._mean = np.zeros_like(a._mean)
        return
    result._mean = a._mean + sign * b._weight / result._weight * (b._mean - a._mean)
    if sign > 0:
        difference = b._mean - a._mean
        factor = a._weight * b._weight / result._weight
    else:
        difference = b._mean - result._mean
        factor = -result._weight * b._weight / a._weight
    result._sums += factor * np.outer(difference, difference)
