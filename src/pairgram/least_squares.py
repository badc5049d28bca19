"""RankRLS: regularised least squares on pairs, and its choice of settings from one path."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted, validate_data

from pairgram import held_out
from pairgram.gram import Pairgram, RankingData
from pairgram.metrics import Metric, get_metric
from pairgram.model_selection import QueryKFold
from pairgram.pairs import Pairs, PairSettings, Scope, Target, Weighting
from pairgram.persistence import read_file, write_file
from pairgram.ridge import Vector, check_alphas, scale_factors

__all__ = ["RankRLS", "RankRLSCV", "load_model"]


class _LinearRanker(BaseEstimator):  # type: ignore[misc]
    """What the linear rankers share: checks, prediction, score, files."""

    __metadata_request__fit = {"qid": True, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "sample_weight": True}  # noqa: RUF012

    coef_: Vector
    uses_qid_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _check(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_weight: ArrayLike | None,
    ) -> RankingData:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            y_numeric=True,
        )
        self.uses_qid_ = qid is not None or group is not None
        data = RankingData.make(
            X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
        )
        for name, weights in (
            ("sample_weight", data.row_weights),
            ("query_weight", data.query_weights),
        ):
            if weights is not None and not weights.any():
                raise ValueError(f"{name} must not be zero for every row: no pair would count")
        return data

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the scores ``X @ coef_`` by which rows are ranked, highest first.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), float32 for float32 X and else float64

        Raises
        ------
        ValueError
            If X has another number of features than in `fit`, or holds NaN or infinity.
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        scores = np.asarray(X @ self.coef_.astype(X.dtype, copy=False))
        if not np.isfinite(scores).all():  # then say what is wrong with X
            validate_data(self, X, reset=False, accept_sparse="csr", dtype=X.dtype)
        return scores

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean NDCG@10 over queries, gain ``2^y − 1``, discount ``1 / log2(1 + i)``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), ≥ 0
        qid : array-like of shape (n_rows,) or None
            None: the rows are one query.
        sample_weight : array-like of shape (n_rows,) or None
            A query counts with the mean weight of its rows.

        Raises
        ------
        ValueError
            If a label is negative: then score with another metric, as
            ``scoring=make_scorer("kendall")`` in scikit-learn's tools or
            ``evaluate("kendall", ...)``. If the model was fitted with query ids and none are given.
        """
        check_is_fitted(self)
        if qid is None and self.uses_qid_:
            raise ValueError(
                "this model was fitted with query ids, so score needs qid; scikit-learn's tools "
                "pass it on after sklearn.set_config(enable_metadata_routing=True)"
            )
        labels = np.asarray(y)
        if labels.size and labels.dtype.kind in "iuf" and (labels < 0).any():
            row = int(np.argmax(labels.ravel() < 0))
            raise ValueError(
                f"score is NDCG@10, which takes labels >= 0, but y is {labels.ravel()[row]} in row "
                f"{row}: use scoring=make_scorer('pairwise_accuracy') or another metric for real "
                "labels ('kendall', 'spearman', 'msd', 'm1d')"
            )
        metric = get_metric("ndcg@10")
        return float(metric(y, self.predict(X), qid, sample_weight=sample_weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a safetensors file (no code in it), whole or not at all.

        `load_model` reads it.

        Raises
        ------
        ValueError
            If a parameter is a Python callable, which a file cannot hold.
        """
        check_is_fitted(self)
        arrays = {"coef_": self.coef_}
        settings = {"uses_qid_": self.uses_qid_, "n_features_in_": self.n_features_in_}
        if hasattr(self, "feature_names_in_"):
            settings["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        parameters = self._parameters_to_save()
        write_file(path, "RankRLS", arrays, {**parameters, "fitted": settings})

    def _parameters_to_save(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))


class RankRLS(_LinearRanker):
    """Linear ranker by regularised least squares on pairs (RankRLS), or on rows.

    Parameters
    ----------
    alpha : float ≥ 0, default=1.0
        Ridge on the summed objective, as λ in the paper: it grows with the data.
    pairs : {"kept", "dropped", "gain", "absdiff"}, callable or None, default="kept"
        Weight ω of a pair with labels a and b:

        - "kept": 1, tied pairs included;
        - "dropped": 1 where a ≠ b;
        - "gain": ``|2^a − 2^b|``, the NDCG gain at stake;
        - "absdiff": ``|a − b|``;
        - a callable ω(a, b) that broadcasts, symmetric, finite and ≥ 0;
        - None: no pairs, but least squares on rows (pointwise RLS, without an intercept).
    scope : {"query", "global"}, default="query"
        Pairs within queries, or of all rows.
    weighting : {"pairs", "documents", "queries"}, default="pairs"
        What counts 1: a pair; a document, ``1 / Σ v`` per query; or a query,
        ``1 / (½ Σ_ij W_ij)``.
    target : {"label", "gain"}, default="label"
        Fit differences of y, or of ``2^y − 1``.
    scale : bool, default=False
        Scale features so that ``(XᵀLX)_jj = 1`` before the ridge; `coef_` is for X as it is.
    n_threads : int or None, default=None
        None takes the CPUs that the process may use, at most ``OMP_NUM_THREADS``. The result has
        the same bits for any number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,), where X had names
    uses_qid_ : bool
        Whether the model was fitted with query ids or sizes.

    See Also
    --------
    RankRLSCV : Chooses alpha, and more on request, by exact leave-query-out.

    Notes
    -----
    Minimises ``½ Σ_ij W_ij ((y_i − y_j) − (f_i − f_j))² + alpha ‖w‖²`` with ``f = Xw`` and
    ``W_ij = c v_i v_j ω(y_i, y_j)`` over the ordered pairs within a query; v are the sample weights
    and c is the query's weight times the `weighting`. With ``pairs=None``:
    ``Σ_i c v_i (y_i − f_i)² + alpha ‖w‖²``.

    Cost: n · n_features² + n_features³ flops, O(n_features²) memory besides X, never a pair.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski. Learning to rank with pairwise regularized
    least-squares. SIGIR workshop on learning to rank, 2007. Eq. 7 and 11.

    Examples
    --------
    >>> from pairgram import RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLS(alpha=10.0, pairs="dropped").fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        pairs: Pairs = "kept",
        scope: Scope = "query",
        weighting: Weighting = "pairs",
        target: Target = "label",
        scale: bool = False,
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.pairs = pairs
        self.scope = scope
        self.weighting = weighting
        self.target = target
        self.scale = scale
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
            C-contiguous arrays of either type are not copied.
        y : array-like of shape (n_rows,)
            Relevance labels, any real numbers.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids, rows in any order. None, without `group`: all rows are one query.
        group : array-like of shape (n_queries,) of int, or None
            Sizes of queries whose rows stand together, instead of `qid`.
        sample_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Weight 2 is the same as the row twice.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Constant within a query.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described; the message names it.
        """
        settings = PairSettings(self.pairs, self.scope, self.weighting, self.target)
        data = self._check(X, y, qid, group, sample_weight, query_weight)
        statistics = Pairgram._of(data, settings, self.n_threads)
        self.coef_ = statistics.solve(self.alpha, scale=self.scale)
        return self


class RankRLSCV(_LinearRanker):
    """RankRLS that chooses its ridge, and more on request, by held-out scores.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), each > 0, or None, default=None
        None: ``λ_max(G) / 1e4 · 2^k`` for k = −18 … 15, for each combination of the others.
    pairs, target, scale : a value as in `RankRLS`, or a list of values to choose from
    scope, weighting : as in `RankRLS`
    cv : None, splitter, iterable of splits, or (X, y) or (X, y, qid), default=None
        How rows are held out:

        - None: every query in turn, exactly, from one eigendecomposition; with a single query
          every row in turn;
        - a splitter such as ``QueryKFold(5)``, (training rows, test rows) pairs, or an int k for
          ``QueryKFold(k)``, with a single query for ``KFold(k)`` over its rows;
        - a validation set, as a tuple.
    scoring : str, Metric or None, default=None
        A name that `get_metric` knows, or its result. None: ``"ndcg@10"``, or
        ``"pairwise_accuracy"`` where labels are negative or not whole numbers, or where rows of a
        single query are held out one by one.
    n_threads : int or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Of the model with the chosen settings, fitted to all rows.
    alpha_, pairs_, target_, scale_ :
        The chosen settings.
    best_score_ : float
        Mean held-out score of the chosen settings.
    alphas_ : ndarray of shape (n_alphas,), descending
        The grid of the chosen combination.
    scores_ : ndarray of shape (n_alphas,)
        Mean held-out scores along `alphas_`.
    coef_path_ : ndarray of shape (n_alphas, n_features)
        Weights along `alphas_`.
    cv_results_ : dict of str to ndarray
        A row for every combination of settings and alpha: ``param_alpha``, ``param_pairs``,
        ``param_target``, ``param_scale``, ``mean_test_score``, ``rank_test_score``.
    scoring_ : Metric
    n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankRLS`.

    Notes
    -----
    Leave-query-out scores are those of explicit refits without each query. They cost about
    ``2 n d² + 20 n d n_alphas`` flops (d features) and n · n_alphas doubles. With ``scale=True``
    the scaling is that of all rows. Ties go to the first combination and the largest alpha.
    For ``scope="global"`` other rows' pairs change too: the queries' rows are subtracted
    (``pairs="kept"``) or the model is refitted, and refused above 1e11 flops.

    References
    ----------
    Pahikkala et al. 2007, §2.4 (all λ from one eigendecomposition); Pahikkala, Boberg, Salakoski.
    Fast n-fold cross-validation for regularized least-squares. SCAI 2006.

    Examples
    --------
    >>> from pairgram import RankRLSCV, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLSCV(pairs=["kept", "dropped"]).fit(X, y, qid=qid)
    >>> model.scores_.shape
    (34,)
    """

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        pairs: Pairs | Sequence[Pairs] = "kept",
        scope: Scope = "query",
        weighting: Weighting = "pairs",
        target: Target | Sequence[Target] = "label",
        scale: bool | Sequence[bool] = False,
        cv: Any = None,
        scoring: str | Metric | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.pairs = pairs
        self.scope = scope
        self.weighting = weighting
        self.target = target
        self.scale = scale
        self.cv = cv
        self.scoring = scoring
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Score every combination of settings on held-out rows, and fit the best to all.

        Parameters and errors are those of `RankRLS.fit`. In the mean held-out score a query
        counts with the mean of its rows' sample weights.
        """
        combinations = list(
            itertools.product(_as_list(self.pairs), _as_list(self.target), _as_list(self.scale))
        )
        settings = [
            PairSettings(pairs, self.scope, self.weighting, target)
            for pairs, target, _ in combinations
        ]
        given = None if self.alphas is None else check_alphas(self.alphas)
        data = self._check(X, y, qid, group, sample_weight, query_weight)
        plan = self._plan(data)
        results = []
        statistics: dict[PairSettings, Pairgram] = {}
        for setting, (_, _, scale) in zip(settings, combinations, strict=True):
            if setting not in statistics:
                statistics[setting] = Pairgram._of(data, setting, self.n_threads)
            total = statistics[setting]
            alphas = total.default_alphas(scale=scale) if given is None else given
            results.append((alphas, plan.scores(total, scale, alphas)))
        self._choose(combinations, settings, statistics, results)
        return self

    def _plan(self, data: RankingData) -> _Plan:
        if len(data.y) < 2:
            raise ValueError("RankRLSCV holds rows out, so X must have two or more, got 1 sample")
        validation = None
        splits = None
        if isinstance(self.cv, tuple) and len(self.cv) in (2, 3) and _is_matrix(self.cv[0]):
            validation = self._validation(*self.cv)
        elif self.cv is not None:
            splits = _splits(self.cv, data)
        labels = data.y if validation is None else np.append(data.y, validation.y)
        one_by_one = self.cv is None and data.queries.n_queries == 1
        self.scoring_ = _metric(self.scoring, labels, one_by_one)
        return _Plan(data, self.scoring_, splits, validation, self.n_threads)

    def _validation(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> RankingData:
        if qid is None and self.uses_qid_:
            raise ValueError("cv is a validation set (X, y), but fit has qid: give (X, y, qid)")
        X, y = validate_data(
            self,
            X,
            y,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            y_numeric=True,
        )
        return RankingData.make(X, y, qid=qid)

    def _choose(
        self,
        combinations: list[tuple[Any, Any, Any]],
        settings: list[PairSettings],
        statistics: dict[PairSettings, Pairgram],
        results: list[tuple[Vector, Vector]],
    ) -> None:
        sign = 1 if self.scoring_.greater_is_better else -1
        scores = np.concatenate([result[1] for result in results])
        ordered = np.where(np.isnan(scores), -np.inf, sign * scores)
        if np.isneginf(ordered).all():
            raise ValueError(
                f"scoring={self.scoring_.name!r} is undefined for every held-out query: no query "
                "has what the metric needs, such as two rows with different labels"
            )
        best = int(np.argmax(ordered))
        sizes = [len(alphas) for alphas, _ in results]
        of_combination = np.repeat(np.arange(len(results)), sizes)
        chosen = int(of_combination[best])
        self.alphas_, self.scores_ = results[chosen]
        self.alpha_ = float(np.concatenate([result[0] for result in results])[best])
        self.pairs_, self.target_, self.scale_ = combinations[chosen]
        self.best_score_ = float(scores[best])
        total = statistics[settings[chosen]]
        self.coef_path_ = total.path(self.alphas_, scale=self.scale_)
        self.coef_ = self.coef_path_[int(np.argmax(self.alphas_ == self.alpha_))].copy()
        columns: dict[str, list[Any]] = {"pairs": [], "target": [], "scale": []}
        for combination, size in zip(combinations, sizes, strict=True):
            for column, value in zip(columns.values(), combination, strict=True):
                column.extend([value] * size)
        self.cv_results_ = {
            "param_alpha": np.concatenate([result[0] for result in results]),
            **{f"param_{name}": np.array(column, dtype=object) for name, column in columns.items()},
            "mean_test_score": scores,
            "rank_test_score": np.searchsorted(np.sort(-ordered), -ordered) + 1,
        }

    def _parameters_to_save(self) -> dict[str, Any]:
        """A model file holds the chosen RankRLS."""
        return {
            "alpha": self.alpha_,
            "pairs": self.pairs_,
            "scope": self.scope,
            "weighting": self.weighting,
            "target": self.target_,
            "scale": self.scale_,
            "n_threads": self.n_threads,
        }


class _Plan:
    """How one fit holds rows out and scores them."""

    def __init__(
        self,
        data: RankingData,
        metric: Metric,
        splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]] | None,
        validation: RankingData | None,
        n_threads: int | None,
    ) -> None:
        self.data, self.metric, self.splits = data, metric, splits
        self.validation, self.n_threads = validation, n_threads

    def scores(self, total: Pairgram, scale: bool, alphas: Vector) -> Vector:
        """Return the mean held-out score for every alpha, (n_alphas,)."""
        data = self.data
        if self.validation is not None:
            coefs = total.path(alphas, scale=scale)
            return self._mean(self.validation, held_out.predict_path(self.validation.X, coefs))
        if self.splits is not None:
            scores = held_out.split_scores(data, total, self.splits, scale, alphas, self.n_threads)
            means = [
                self._mean(data.take(np.asarray(test)), split)
                for (_, test), split in zip(self.splits, scores, strict=True)
            ]
            return _nan_mean(np.array(means))
        factor = scale_factors(total.G) if scale else None
        leave = held_out.leave_row_out if data.queries.n_queries == 1 else held_out.leave_query_out
        return self._mean(data, leave(data, total, factor, alphas, self.n_threads))

    def _mean(self, data: RankingData, scores: Vector) -> Vector:
        if data.row_weights is not None and (data.row_weights == 0).any():
            seen = np.flatnonzero(data.row_weights > 0)  # weight 0: as if the row were not there
            data, scores = data.take(seen), np.ascontiguousarray(scores[:, seen])
        queries = data.queries
        per_query = self.metric.per_query_scores(data.y, scores, queries, self.n_threads)
        if data.row_weights is None:
            return np.atleast_1d(self.metric.mean(per_query))
        totals = np.bincount(queries.index(), data.row_weights, minlength=queries.n_queries)
        return np.atleast_1d(self.metric.mean(per_query, totals / np.maximum(queries.sizes, 1)))


def load_model(path: str | os.PathLike[str]) -> RankRLS:
    """Read a model that `save` wrote; loading runs no code.

    Returns
    -------
    RankRLS
        Fitted; a `RankRLSCV` comes back as the model that it chose.

    Raises
    ------
    ValueError
        If the file is not a pairgram model, or is damaged.
    """
    _, arrays, settings = read_file(path, ("RankRLS",))
    fitted = settings.pop("fitted")
    model = RankRLS(**settings)
    model.coef_ = arrays["coef_"]
    names = fitted.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError("a list of settings to choose from must not be empty")
        return list(value)
    return [value]


def _is_matrix(value: Any) -> bool:
    return scipy.sparse.issparse(value) or np.ndim(value) == 2 or hasattr(value, "columns")


def _metric(scoring: str | Metric | None, y: Vector, one_by_one: bool) -> Metric:
    if isinstance(scoring, Metric):
        return scoring
    if scoring is None:
        graded = (y >= 0).all() and (y == np.rint(y)).all() and y.max(initial=0) < 64
        scoring = "ndcg@10" if graded and not one_by_one else "pairwise_accuracy"
    return get_metric(scoring)


def _splits(cv: Any, data: RankingData) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    if isinstance(cv, Integral) and data.queries.n_queries > 1:
        splitter = QueryKFold(cv)
    else:
        splitter = check_cv(cv)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        return list(splitter.split(np.empty((len(data.y), 1)), data.y, data.queries.index()))


def _nan_mean(values: Vector) -> Vector:
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0))
