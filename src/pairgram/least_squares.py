"""RankRLS: regularised least squares on pairs, and its choice of settings from one path."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairgram.cross_validation import HeldOutScoring, is_validation_set
from pairgram.data import RankingData
from pairgram.feature_maps import restore_map
from pairgram.gram import Pairgram
from pairgram.linear import LinearRanker, check_flag
from pairgram.metrics import Metric
from pairgram.pairs import Pairs, PairSettings, Scope, Target, Weighting
from pairgram.persistence import read_file, written_by
from pairgram.ridge import RidgePath, Vector, check_alpha, check_alphas

if TYPE_CHECKING:
    from pairgram.elm_rank import ELMRank

__all__ = ["RankRLS", "RankRLSCV", "load_model"]


class RankRLS(LinearRanker):
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
    feature_map : transformer or None, default=None
        Such as `RandomNodes`, or any transformer of arrays. A clone is fitted to X and y, and the
        model is linear in its features. Maps of this package are applied on the way to the Gram
        matrix; others block by block, a few times in all (more for ``scope="global"`` and for every
        setting that is tried), where a query is never cut. More than a block is not stored.
    n_threads : int or None, default=None
        None takes the CPUs that the process may use, at most ``OMP_NUM_THREADS``. The result has
        the same bits for any number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Of the features that `feature_map_` makes, if there is one.
    feature_map_ : fitted transformer or None
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
        feature_map: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.pairs = pairs
        self.scope = scope
        self.weighting = weighting
        self.target = target
        self.scale = scale
        self.feature_map = feature_map
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
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
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
        check_alpha(self.alpha)
        check_flag("scale", self.scale)
        data = self._check(X, y, qid, group, sample_weight, query_weight)
        coef = self._statistics(data, settings).solve(self.alpha, scale=self.scale)
        # all at once, so that a fit that fails leaves the model as it was
        self.coef_, self.feature_map_ = coef, data.feature_map
        self.uses_qid_ = qid is not None or group is not None
        return self

    @classmethod
    def from_pairgram(cls, pairgram: Pairgram, alpha: float = 1.0, *, scale: bool = False) -> Self:
        """Make a fitted model from statistics, such as those of a stream: O(n_features³).

        Parameters
        ----------
        pairgram : Pairgram
            Its pairs, scope, weighting and target become the model's.
        alpha, scale :
            As those of the class.

        Raises
        ------
        ValueError
            If `pairgram` holds no rows, or `alpha` is not finite and ≥ 0.

        Examples
        --------
        >>> from pairgram import Pairgram, RankRLS, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> model = RankRLS.from_pairgram(Pairgram.from_rows(X, y, qid=qid), alpha=10.0)
        >>> bool((model.coef_ == RankRLS(10.0).fit(X, y, qid=qid).coef_).all())
        True
        """
        model = cls(
            alpha,
            pairs=pairgram.settings.pairs,
            scope=pairgram.settings.scope,
            weighting=pairgram.settings.weighting,
            target=pairgram.settings.target,
            scale=scale,
            n_threads=pairgram.n_threads,
        )
        model.coef_ = pairgram.solve(alpha, scale=scale)
        model.feature_map = model.feature_map_ = pairgram.feature_map
        fitted = pairgram.feature_map
        model.n_features_in_ = getattr(fitted, "n_features_in_", pairgram.n_features)
        if pairgram.feature_names_in_ is not None:
            model.feature_names_in_ = np.array(pairgram.feature_names_in_, dtype=object)
        model.uses_qid_ = pairgram.n_queries > 1
        return model


class RankRLSCV(LinearRanker):
    """RankRLS that chooses its ridge, and more on request, by held-out scores.

    Its own `score` is NDCG@10 whatever `scoring` is, as that of every ranker here.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), each > 0, or None, default=None
        None: ``λ_max(G) / 1e4 · 2^k`` for k = −18 … 15, for each combination of the others.
    pairs, target, scale : a value as in `RankRLS`, or a list of values to choose from
    scope, weighting, feature_map : as in `RankRLS`
    cv : None, splitter, iterable of splits, (X, y) or (X, y, qid), default=None
        How rows are held out:

        - None: every query in turn, exactly, from one eigendecomposition; with a single query
          every row in turn;
        - a splitter such as ``QueryKFold(5)``, (training rows, test rows) pairs, or an int k for
          ``QueryKFold(k)``, with a single query for ``KFold(k)`` over its rows;
        - a validation set, as a tuple or the `LetorData` of `load_letor_folds`.
    scoring : str, Metric, scorer or None, default=None
        A name that `get_metric` knows, or the result of `get_metric` or `make_scorer`. None:
        ``"ndcg@10"``, or ``"pairwise_accuracy"`` where labels are negative or not whole numbers,
        or where rows of a single query are held out one by one.
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
    The mean is over all held-out queries of all splits, each with the mean of its rows' sample
    weights times its query weight; rows of weight 0 are not there.

    Leave-query-out scores are those of explicit refits without each query, to a relative error of
    about ``1e-16 λ_max(G) / alpha``; where a tiny alpha would leave rounding error alone, the score
    is NaN. They cost about ``2 n d² + 20 n d n_alphas`` flops for d features, and n · n_alphas
    doubles.
    With ``scale=True`` the scaling is that of all rows; splitters and validation sets scale by the
    training rows. Ties go to the first combination and the largest alpha.
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
        feature_map: Any = None,
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
        self.feature_map = feature_map
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

        Parameters and errors are those of `RankRLS.fit`. Besides, a ValueError where `scoring`
        cannot take the labels, `cv` makes no splits, or no query is left to fit to.
        """
        combinations = list(
            itertools.product(_as_list(self.pairs), _as_list(self.target), _as_list(self.scale))
        )
        settings = [
            PairSettings(pairs, self.scope, self.weighting, target)
            for pairs, target, _ in combinations
        ]
        for _, _, scale in combinations:
            check_flag("scale", scale)
        given = None if self.alphas is None else check_alphas(self.alphas)
        data = self._check(X, y, qid, group, sample_weight, query_weight)
        if len(data.y) < 2:
            raise ValueError("RankRLSCV holds rows out, so X must have two or more, got 1 sample")
        uses_qid = qid is not None or group is not None
        scoring = self._scoring(data, uses_qid)
        candidates: list[Candidate] = []
        totals: list[Pairgram] = []
        for setting, (_, _, scale) in zip(settings, combinations, strict=True):
            same = [total for total in totals if total.settings == setting]
            total = same[0] if same else self._statistics(data, setting)
            ridge = total.decompose(scale=scale)
            alphas = ridge.default_alphas() if given is None else given
            scores = scoring.scores(total, ridge, scale, alphas)
            candidates.append(Candidate(setting, ridge, scale, alphas, scores))
            totals.append(total)
        self._choose(candidates, scoring.metric)
        self.feature_map_, self.uses_qid_ = data.feature_map, uses_qid
        return self

    def _scoring(self, data: RankingData, uses_qid: bool) -> HeldOutScoring:
        validation = None
        if is_validation_set(self.cv):
            validation = self._validation(data.feature_map, uses_qid, *self.cv)
        return HeldOutScoring.make(data, self.cv, validation, self.scoring, self.n_threads)

    def _choose(self, candidates: list[Candidate], metric: Metric) -> None:
        """Set what is fitted, but for the feature map, to the best of the candidates."""
        sign = 1 if metric.greater_is_better else -1
        scores = np.concatenate([c.scores for c in candidates])
        ordered = np.where(np.isnan(scores), -np.inf, sign * scores)
        if np.isneginf(ordered).all():
            raise ValueError(
                f"scoring={metric.name!r} is undefined for every held-out query: no query "
                "has what the metric needs, such as two rows with different labels, or every alpha "
                "is so small that held-out scores are rounding error"
            )
        best = int(np.argmax(ordered))
        of_candidate = np.repeat(np.arange(len(candidates)), [len(c.alphas) for c in candidates])
        chosen = candidates[int(of_candidate[best])]
        at = best - int(np.searchsorted(of_candidate, of_candidate[best]))
        self.scoring_ = metric
        self.alphas_, self.scores_ = chosen.alphas, chosen.scores
        self.alpha_ = float(chosen.alphas[at])
        self.pairs_, self.target_ = chosen.settings.pairs, chosen.settings.target
        self.scale_ = chosen.scale
        self.best_score_ = float(scores[best])
        self.coef_path_ = chosen.ridge.coef(chosen.alphas)
        self.coef_ = self.coef_path_[at].copy()

        def column(values: list[Any]) -> NDArray[np.object_]:
            full = np.empty(len(values), dtype=object)
            full[:] = values
            return full[of_candidate]

        self.cv_results_ = {
            "param_alpha": np.concatenate([c.alphas for c in candidates]),
            "param_pairs": column([c.settings.pairs for c in candidates]),
            "param_target": column([c.settings.target for c in candidates]),
            "param_scale": column([c.scale for c in candidates]),
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


class Candidate(NamedTuple):
    """A combination of settings, with its held-out scores along the ridge path."""

    settings: PairSettings
    ridge: RidgePath
    scale: bool
    alphas: Vector
    scores: Vector


def load_model(path: str | os.PathLike[str]) -> RankRLS | ELMRank:
    """Read a model that `save` wrote; loading runs no code.

    Returns
    -------
    RankRLS or ELMRank
        Fitted; a `RankRLSCV` or `ELMRankCV` comes back as the model that it chose.

    Raises
    ------
    ValueError
        If the file is not a pairgram model, or is damaged.
    """
    from pairgram.elm_rank import ELMRank

    kind, arrays, settings = read_file(path, ("RankRLS", "ELMRank"))
    fitted = settings.pop("fitted")
    model: RankRLS | ELMRank
    try:
        feature_map = restore_map(arrays, settings.pop("feature_map"))
        if kind == "ELMRank":
            model = ELMRank(**settings)
        else:
            model = RankRLS(**settings, feature_map=feature_map)
        model.coef_, model.feature_map_ = arrays["coef_"], feature_map
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: written by pairgram {written_by(path)}, with settings that this version does "
            f"not know: {error}"
        ) from None
    width = fitted["n_features_in_"] if feature_map is None else feature_map.n_nodes
    if model.coef_.shape != (width,):
        raise ValueError(f"{path}: coef_ must have shape ({width},), got {model.coef_.shape}")
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
