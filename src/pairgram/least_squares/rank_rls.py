"""RankRLS: regularised least squares on pairs, and its choice of settings from one path."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pairgram._support.arrays import check_alphas
from pairgram._support.checks import check_alpha, check_flag
from pairgram._support.types import Vector
from pairgram._support.words import Form, Scope, Target, Weighting
from pairgram.kernels.settings import Kernel
from pairgram.least_squares.gram import Pairgram
from pairgram.least_squares.ridge_ranker import RidgeRanker, RidgeSearch
from pairgram.metrics import Metric
from pairgram.model_selection.results import as_list
from pairgram.preferences.pairs import Pairs, PairSettings

__all__ = ["RankRLS", "RankRLSCV"]


class RankRLS(RidgeRanker):
    """Ranker by regularised least squares on pairs (RankRLS), or on rows; linear, or of a kernel.

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
        Such as `RandomNodes`, `RandomFourier` and `Nystroem`, or any transformer of arrays. A clone
        is fitted to X and y, and the model is linear in its features. Maps of this package are
        applied on the way to the Gram matrix; others block by block, a few times in all (more for
        ``scope="global"`` and for every setting that is tried), where a query is never cut. More
        than a block is not stored.
    kernel : str, callable or None, default=None
        Instead of a feature map: "linear" (the inputs), "rbf", "polynomial", "laplacian",
        "tanimoto", "minmax" or ``kernel(X, Z)``, see `kernel_matrix`; with "precomputed", X is the
        matrix of the kernel between rows and training rows. The ridge is on the norm in the
        kernel's space.
    gamma, degree, coef0 : float or None, int, float, default=None, 3, 1.0
        Of the kernel.
    form : {"auto", "primal", "dual"}, default="auto"
        Solve a system of the size of the features, or of the rows. "auto" takes the smaller, the
        primal with ``scale=True``; both give the same scores. Kernels other than "linear" have the
        dual alone.
    n_threads : int or None, default=None
        None takes the CPUs that the process may use, at most ``OMP_NUM_THREADS``. The result has
        the same bits for any number, but for an eigendecomposition above order 256 (of a path, or a
        singular system), which takes one BLAS thread for 1 and else as many as BLAS has.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or of (n_support_rows,) with a kernel, float64
        Of the features that `feature_map_` makes, if there is one.
    feature_map_ : fitted transformer or None
        With a kernel, the `KernelMap` of the training rows whose dual coefficients, `coef_`, are
        not 0; its ``support_`` tells which. All rows where K is given, or all are 0.
    form_ : {"primal", "dual"}
        How the model was solved.
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

    Cost: n · n_features² + n_features³ flops, O(n_features²) memory besides X, never a pair. In the
    dual n² · n_features + n³ flops and 8 n² bytes, 16 n² to 24 n² with 0 or a tiny alpha. CSR rows
    of more than 4,096 rows and features, as of text, are solved by conjugate gradients to a
    residual of 1e-10, without a matrix: O(nnz + n_features) memory and time a step, more steps for
    a smaller alpha (``ConvergenceWarning`` after 10,000).

    Scores have a relative error of about ``1e-16 λ_max / alpha`` in any form, with λ_max that of
    XᵀLX: primal and dual agree to 1e-8 where alpha is not below 1e-8 of it, and a precomputed
    kernel, whose rounding errors no differences take back, loses one or two digits more. Kernels
    are made in float64 for float32 rows too; a precomputed one of float32 stays one, and scores
    err by about ``6e-8 λ_max / alpha``. Where a callable ω leaves out rows that outweigh others of
    their query by many decades, the dual loses digits: with weights that span 24 decades, scores
    err by up to 1e-7.

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
        kernel: Kernel | None = None,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        form: Form = "auto",
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.pairs = pairs
        self.scope = scope
        self.weighting = weighting
        self.target = target
        self.scale = scale
        self.feature_map = feature_map
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.form = form
        self.n_threads = n_threads

    def _ridge(self) -> tuple[PairSettings, float, bool]:
        check_alpha(self.alpha)
        check_flag("scale", self.scale)
        settings = PairSettings(self.pairs, self.scope, self.weighting, self.target)
        return settings, float(self.alpha), bool(self.scale)

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
        model.form_ = "primal"
        model.uses_qid_ = pairgram.n_queries > 1
        return model


class RankRLSCV(RidgeSearch):
    """RankRLS that chooses its ridge, and more on request, by held-out scores.

    Its own `score` is NDCG@10 whatever `scoring` is, as that of every ranker here.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), each ≥ 0, or None, default=None
        None: ``λ_max(G) / 1e4 · 2^k`` for k = −18 … 15, for each combination of the others. 0 is
        the solution of the smallest norm; where others are as good, its held-out score may be NaN.
    pairs, target, scale : a value as in `RankRLS`, or a list of values to choose from
        Where True is among the scales, all is solved in the primal.
    gamma : float > 0 or None, or a list of such to choose from, default=None
        Each a kernel matrix and a decomposition of its own. None: ``1 / n_features``.
    scope, weighting, feature_map, kernel, degree, coef0, form : as in `RankRLS`
    cv : None, int, splitter, iterable of splits or "leave-pair-out", default=None
        How rows are held out, where `fit` gets no validation set:

        - None: every query in turn, exactly, from one eigendecomposition; with a single query
          every row in turn. Where that would be refits of more than 1e11 flops, as for
          ``scope="global"`` with pairs other than kept ones, five folds instead;
        - an int k: ``QueryKFold(k)``; with a single query ``KFold(k, shuffle=True,
          random_state=0)`` over its rows;
        - a splitter such as ``QueryKFold(5)``, or (training rows, test rows) pairs;
        - "leave-pair-out", with a single query or ``scope="global"``: every two rows with different
          labels, for estimates from few rows.
    scoring : str, Metric, scorer or None, default=None
        A name that `get_metric` knows, or the result of `get_metric` or `make_scorer`. None:
        ``"ndcg@10"``, or ``"pairwise_accuracy"`` where labels are negative or not whole numbers,
        or where rows of a single query are held out one by one, or in pairs.
    n_threads : int or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or of (n_support_rows,) with a kernel, float64
        Of the model with the chosen settings, fitted to all rows.
    feature_map_ : fitted transformer or None
        As in `RankRLS`.
    alpha_, pairs_, target_, scale_, gamma_ :
        The chosen settings; gamma_ is None where there is no kernel that has one.
    best_score_ : float
        Mean held-out score of the chosen settings; of a loss, such as "msd", the loss itself.
    best_index_ : int
        The row of `cv_results_` that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The grid of the chosen combination: `alphas` in the caller's order, or the default
        grid, descending.
    scores_ : ndarray of shape (n_alphas,)
        Mean held-out scores along `alphas_`.
    coef_path_ : ndarray of shape (n_alphas, n_features), or (n_alphas, n_support_rows)
        Weights along `alphas_`.
    cv_results_ : dict
        A row for every combination of settings and alpha, in the columns of scikit-learn's
        searches: ``params`` (a list of dicts), ``param_alpha``, ``param_pairs``, ``param_target``,
        ``param_scale``, and ``param_gamma`` with a kernel that has one; ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, and ``split0_test_score``, … where `cv` makes
        splits. The mean is over all held-out queries. The standard deviation is that over splits,
        or over queries where there are no splits; NaN for "leave-pair-out".
    scoring_ : Metric
    form_, n_features_in_, feature_names_in_, uses_qid_ :
        As in `RankRLS`.

    Notes
    -----
    The mean is over all held-out queries of all splits, each with the mean of its rows' sample
    weights times its query weight; rows of weight 0 are not there.

    Leave-query-out scores are those of explicit refits without each query, to a relative error of
    about ``1e-16 λ_max(G) / alpha``. They cost about
    ``2 n d² + 20 n d n_alphas`` flops for d features, and n · n_alphas doubles; in the dual
    ``2 q n² + 20 n² n_alphas`` flops for q queries, a small share of the decomposition.
    With ``scale=True`` the scaling is that of all rows; splitters and validation sets scale by the
    training rows. A feature map is fitted once, to all rows and labels: one that looks at labels,
    as ``SelectKBest`` does, has seen those that are held out, unless they are a validation set. For
    such a map, search a Pipeline with ``GridSearchCV``. Ties go to the first combination and the
    largest alpha.
    For ``scope="global"`` the pairs of the other rows change too. With ``pairs="kept"`` every query
    is a fold of one regression (dual), or its rows are subtracted (primal). Otherwise every query
    is a refit.

    Rows of a held-out query tie where a refit without the query ties them. Rows with the same
    values share one score. So do rows that differ only in what no other query shows, such as a
    column of zeros elsewhere: their scores from the shortcut differ by rounding errors, which know
    the labels that were held out. The errors are at most
    ``64 ε (λ_max(G) / alpha · (s + r) + r + m)``, with s the range of the targets within a query,
    r the range and m the largest size of the scores of this query (ε / 16 of float32 for the
    primal form of float32 rows). Scores that are as close as that at the largest alpha, or at
    λ_max(G) where that is larger, and at an alpha, tie at this alpha, unless they are more than
    ``1e-4 (s + r)`` apart there.

    Rows of a single query that are held out one by one are scored from the mean of the others,
    ``wᵀ(x_i − mean(X))``, since the models without each have different origins; with ``pairs=None``
    by ``wᵀx_i``, as those have one origin.

    However rows are held out without a refit: where a tiny alpha would leave rounding error alone,
    the score is NaN.

    In the dual the folds of a splitter come from the one decomposition as well, where they are all
    rows once and either whole queries, or rows of one query with pairs kept, or pointwise. Other
    folds are refits.

    Leave-pair-out scores are the share of pairs in the right order, by the model without the two
    rows: weighted by ``v_i v_j`` (times the weights of their queries), equal scores count ½, and it
    takes no other `scoring`. Exact for ``pairs="kept"`` and None, from 2 × 2 systems of the hat
    matrix: about ``2 n² · rank`` flops for every alpha, 40 times that where row weights differ.
    Else refits, as for pointwise rows of several queries that count 1 each.

    References
    ----------
    Pahikkala et al. 2007, §2.4 (all λ from one eigendecomposition); Pahikkala, Boberg, Salakoski.
    Fast n-fold cross-validation for regularized least-squares. SCAI 2006. Airola, Pahikkala,
    Waegeman, De Baets, Salakoski. An experimental comparison of cross-validation techniques for
    estimating the area under the ROC curve. Computational Statistics & Data Analysis 55, 2011
    (leave-pair-out).

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
        kernel: Kernel | None = None,
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 1.0,
        form: Form = "auto",
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
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.form = form
        self.cv = cv
        self.scoring = scoring
        self.n_threads = n_threads

    def _grid(self) -> tuple[list[tuple[PairSettings, bool]], Vector | None]:
        scales = as_list(self.scale, "scale")
        for scale in scales:
            check_flag("scale", scale)
        combinations = [
            (PairSettings(pairs, self.scope, self.weighting, target), bool(scale))
            for pairs, target, scale in itertools.product(
                as_list(self.pairs, "pairs"), as_list(self.target, "target"), scales
            )
        ]
        return combinations, None if self.alphas is None else check_alphas(self.alphas, zero=True)

    def _parameters_to_save(self) -> dict[str, Any]:
        """A model file holds the chosen RankRLS."""
        return {
            "alpha": self.alpha_,
            "pairs": self.pairs_,
            "scope": self.scope,
            "weighting": self.weighting,
            "target": self.target_,
            "scale": self.scale_,
            **self._kernel_parameters(),
            "n_threads": self.n_threads,
        }
