"""RankRLS, least squares on pairs, and RankRLSCV, which chooses settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from pairgram._support.arrays import check_alphas
from pairgram._support.checks import ArgumentError
from pairgram._support.parameters import (
    check,
    check_parameters,
)
from pairgram.data.pairs import Pairs, PairsLike
from pairgram.features.row_values import Chain
from pairgram.model_selection.judge import as_list
from pairgram.rankers.linear_ranker import LinearRanker, LinearSearch
from pairgram.rankers.of_statistics import of_days, of_statistics
from pairgram.rankers.ridge import RidgeSpec, ridge_spec, search_spec
from pairgram.solvers.constraint import Constraint

if TYPE_CHECKING:
    from pairgram._support.types import CV, Estimator, Transformer
    from pairgram.metrics.evaluation import Scoring
    from pairgram.solvers.pairgram import Pairgram


@dataclass(eq=False, repr=False)
class RankRLS(LinearRanker):
    """Rank by regularised least squares on pairs of rows (RankRLS), or on single rows.

    The model is linear in the columns or in a feature map, or it uses a kernel.

    Parameters
    ----------
    alpha : float ≥ 0, default=1.0
        Ridge, λ in the paper. The objective is a sum over pairs, not a mean, so the same amount of
        regularisation needs a larger alpha for more data.
    pairs : Pairs, str, callable or None, default="with_ties"
        What is compared: the pairs of a query "with_ties", which is the paper's, or
        "without_ties", "gain_difference", "label_difference", a callable ω(a, b) of two labels, or
        None for single rows. `Pairs` says more: pairs of all rows, what has weight 1 in the
        objective, and gains as targets.
    scale : bool, default=False
        If True, features are scaled so that ``(XᵀLX)_jj = 1`` before the ridge is applied. `coef_`
        still belongs to X as it was given. ``feature_map="standard"``, in contrast, changes X.
    feature_map : str, transformer, Kernel, Pipeline or None, default=None
        What a row is to the model, which is linear in it:

        - "standard", "minmax", "maxabs", "quantile" or "raw+quantile": a scale, or the distribution
          function, of each column; short for `Standard`, `MinMax`, `MaxAbs` and `Quantile`. CSR
          matrices take "maxabs" only;
        - ``Fill("median")``: values in the place of missing ones. Without it, a missing value is an
          error;
        - `RandomNodes`, `RandomFourier`, `Nystroem`, `Cross`, or any other transformer of arrays;
          or a `Kernel`, in whose space the ridge is then;
        - a Pipeline of such transformers, not of words, as a scale before nodes or a kernel:
          ``make_pipeline(Fill(), Standard(), Kernel("rbf"))``.

        A clone of it is fitted to X. Scales and fill values are found from the rows whose weight is
        not 0, each as often as its weight says, without labels, so that they stay fixed where rows
        are held out; a `prior` sees rows whose gaps are filled. The features of all rows are never
        stored at once. Maps of this package are applied while the Gram matrix is summed. Other maps
        get y too, and are called for one block of whole queries at a time, and a few times for
        every row (more often with ``scope="global"`` and for every setting that is tried).
    constraint : Positive, ElasticNet, MaxNonzero or None, default=None
        What the weights must be like: ``Positive(["price"])`` are ≥ 0, for these columns or all;
        ``ElasticNet(0.5)`` has a penalty that makes some exactly 0; with ``MaxNonzero(5)`` at most
        so many are not 0.
    prior : array-like of shape (n_features,), fitted model or None, default=None
        A model to start from, in place of the model 0: the ridge is on the difference from it. It
        is a single model, not a probability distribution. See the notes. It may be

        - weights of the columns, or of the features that `feature_map` makes;
        - a fitted model with `predict`, which stays fitted if the estimator is cloned. With a
          kernel, only this is possible. In a grid of scikit-learn's searches, whose values are
          cloned, give ``sklearn.frozen.FrozenEstimator(model)``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or of (n_support_rows,) with a kernel, float64
        Weights of the columns of X, or of the features that `feature_map_` makes of them; with a
        kernel, dual coefficients. Scores are ``feature_map_.transform(X) @ coef_``.
    feature_map_ : fitted transformer, Pipeline or None
        A word has become the transformer that it stands for. Several steps are a Pipeline, of which
        the first, `Fill`, has ``fill_``, and a scale ``inputs_``, what compiled code takes.
        With a kernel, this is a map to kernel values. It holds the training rows whose dual
        coefficients are not 0; its ``support_`` gives their row numbers. It holds all rows if all
        coefficients are 0, or if the kernel is "precomputed".
    form_ : {"primal", "dual"}
        The form that was solved: "primal" is a system with one unknown per feature, "dual" one with
        one unknown per row. Both give the same scores. The smaller system is solved, but the primal
        one with ``scale=True``, and the dual one for kernels other than "linear".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only present if X had column names.
    uses_qid_ : bool
        Whether the model was fitted with query ids.
    prior_ : fitted model or None
        The model of `prior` if `predict` adds its scores. Weights of the same features are part of
        `coef_` instead.

    See Also
    --------
    RankRLSCV : Chooses alpha, and other settings on request, by exact leave-query-out.
    posterior : How sure the scores are.

    Notes
    -----
    Minimises ``½ Σ_ij W_ij ((y_i − y_j) − (f_i − f_j))² + alpha ‖w‖²`` with ``f = Xw`` and
    ``W_ij = c v_i v_j ω(y_i, y_j)``, summed over the ordered pairs within a query. Here v are the
    sample weights, and c is the query's weight times the factor of `weighting`. With ``pairs=None``
    it minimises ``Σ_i c v_i (y_i − f_i)² + alpha ‖w‖²``.

    If y are comparisons, `Preferences`, it minimises ``Σ_p w_p (m_p − (f_i − f_j))² + alpha ‖w‖²``
    over the comparisons p, with their weights w_p and margins m_p. Differences of rows are not
    stored: with the incidence matrix A of comparisons and their weights D, G is ``XᵀAᵀDAX``, in
    O(n_pairs · n_features + n · n_features²) flops. A kernel, and the dual form, take the
    eigenvectors of the n × n kernel matrix of the items, so that there may be any number of
    comparisons.

    A `prior` with scores p, and the offsets o of `fit`, leave the pairs and their weights as they
    are, and replace the targets y by ``y − p − o``. For weights w₀ the solution is
    ``w₀ + (G + alpha I)⁻¹ (g − G w₀)`` with ``G = XᵀLX`` and ``g = XᵀLy``, and a large alpha gives
    w₀. With ``scale=True`` the ridge is on the scaled difference. A fitted linear model with the
    same columns and features counts as its weights. The scores of any other model are added by
    `predict`, and a file can hold it if it is a ranker of this package.

    The primal form costs n · n_features² + n_features³ flops and O(n_features²) memory besides X.
    Pairs are never listed. The dual form costs n² · n_features + n³ flops and 8 n² bytes, or 24 n²
    bytes if alpha is 0 or tiny.

    Wide CSR data, such as one-hot ids or text, are solved by conjugate gradients to a residual of
    1e-10, without a matrix. Each step takes O(nnz + n_features) time and memory. The shape of the
    rows decides, never a clock: the time of the direct solution is estimated from the numbers of
    rows, features, queries and entries, and that of 30 steps from the numbers of entries and
    features. Steps are taken if they are estimated to take less time and the direct solution more
    than 0.1 s, as with some 2,000 features or more; or if the direct solution does not fit in
    memory. A smaller alpha needs more steps. Once they have taken as long as the direct solution is
    estimated to take, that is begun in their place; if it does not fit in memory there are at most
    10,000 steps, and a ``ConvergenceWarning``.

    Scores have a relative error of about ``1e-16 λ_max / alpha`` in every form, where λ_max is the
    largest eigenvalue of XᵀLX. With conjugate gradients the residual bounds the error by
    ``1e-10 λ_max / alpha``, and mostly it is far smaller. Primal and dual scores agree to
    1e-8 if alpha is at least ``1e-8 λ_max``. A precomputed kernel loses one or two digits more,
    because its rounding errors do not cancel in differences. Kernels are computed in float64 for
    float32 rows too. A precomputed kernel in float32 keeps its precision, and scores then err by
    about ``6e-8 λ_max / alpha``. The dual form loses digits if a callable ω leaves out rows that
    outweigh others of their query by many powers of ten: with weights that span 24 powers of ten,
    scores err by up to 1e-7.

    A `constraint` is on the weights of columns: it goes with scales and fills, not with nodes or
    kernels.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski. Learning to rank with pairwise regularized
    least-squares. SIGIR workshop on learning to rank, 2007. Eq. 7 and 11.

    Examples
    --------
    >>> from pairgram import RankRLS, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLS(alpha=10.0, pairs="without_ties").fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    alpha: float = 1.0
    _: KW_ONLY
    pairs: PairsLike = "with_ties"
    scale: bool = False
    feature_map: Transformer | None = None
    constraint: Constraint | None = None
    prior: Estimator | ArrayLike | None = None

    def _spec(self) -> RidgeSpec:
        check_parameters(self, "alpha", "scale", "constraint")
        settings = Pairs.of(self.pairs)
        own = {"scales": (bool(self.scale),), "constraint": self.constraint}
        return ridge_spec(self, settings, self.alpha, Chain.of(self.feature_map), **own)

    @classmethod
    def from_pairgram(
        cls,
        pairgram: Pairgram,
        alpha: float = 1.0,
        *,
        scale: bool = False,
        constraint: Constraint | None = None,
        prior: ArrayLike | None = None,
    ) -> Self:
        """Make a fitted model from statistics, such as those of a stream.

        This takes O(n_features³) time.

        Parameters
        ----------
        pairgram : Pairgram
            The statistics. Their pairs become those of the model.
        alpha, scale, constraint :
            As for the class.
        prior : array-like of shape (n_features,) or None
            As in `Pairgram.solve`.

        Raises
        ------
        TypeError
            If `pairgram` is not a Pairgram.
        ValueError
            If `pairgram` holds no rows or no pair that counts, or a parameter is not as described.
            Statistics cannot tell a query with a single row of weight > 0 from one of equal rows.
            If all queries are such, the model is 0, whereas `fit` raises this error.

        Examples
        --------
        >>> from pairgram import Pairgram, RankRLS, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> model = RankRLS.from_pairgram(Pairgram.from_rows(X, y, qid=qid), alpha=10.0)
        >>> bool(abs(model.coef_ - RankRLS(10.0).fit(X, y, qid=qid).coef_).max() < 1e-12)
        True
        """
        told: dict[str, Any] = {"scale": scale, "prior": prior}
        return of_statistics(cls, pairgram, alpha, **told, constraint=constraint)


@dataclass(eq=False, repr=False)
class RankRLSCV(LinearSearch):
    """RankRLS that chooses alpha, and other settings on request, by scores of held-out rows.

    Its method `score` returns NDCG@10 whatever `scoring` is, as for every ranker of this package.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), each ≥ 0, or None, default=None
        The ridges to choose from. None stands for the 34 values ``λ_max(G) / 1e4 · 2^k`` with
        k = −18 … 15, computed for every combination of the other settings. Where columns differ so
        much in spread that these do not reach the narrowest, and there is one combination, further
        ones follow, each a quarter of the one before. (With conjugate
        gradients, λ_max(G) has a relative error of about 1e-8.) With a `prior` or offsets there are
        also λ_max(G) times 10, 100, 1e3 and 1e6. The last keeps the prior, so that few data do not
        lead away from it. An alpha of 0 gives the solution of the smallest norm; if other solutions
        fit as well, its held-out score may be NaN.
    pairs, scale : a value as in `RankRLS`, or a list of values to choose from
        The pairs of a list must have one scope.
        If `scale` contains True, every combination is solved in the primal form.
    feature_map : as in `RankRLS`, or a list of such to choose from
        The list may contain None. Each has a Gram matrix and a decomposition of its own.
    constraint : as in `RankRLS`
        Every split is then solved anew, and None as `cv` stands for five folds of queries.
    cv : None, int, splitter, iterable of splits or "leave-pair-out", default=None
        How rows are held out if `fit` gets no validation set:

        - None: every query in turn (leave-query-out, the leave-one-group-out of queries), or every
          row in turn if there is a single query. The scores are exact and come from one
          decomposition. If models had to be refitted at a cost of more than 1e11 flops, as for
          ``scope="global"`` with pairs other than "with_ties", five folds are used instead.
          This also holds for wide CSR rows that are solved by conjugate gradients; see the notes.
          With two or three queries the choice is poor, and a warning says so: use
          ``scoring="evidence"``, or folds of rows;
        - an int k: ``QueryKFold(k)``, or ``KFold(k, shuffle=True, random_state=0)`` over the rows
          of a single query;
        - a splitter such as ``QueryKFold(5)``, or an iterable of (training rows, test rows);
        - "leave-pair-out": every two rows with different labels. It needs a single query or
          ``scope="global"``, and ``pairs="with_ties"`` or None, and suits estimates from few rows.

        If `fit` gets ``groups``, such as days or sellers, whole groups are held out: None holds
        every group out in turn, an int makes folds of groups, and splitters that take groups get
        them. Other splitters, such as ``TimeSeriesSplit``, split the list of the groups, in the
        order of their ids (ids that are text are sorted as text, so write days as 2026-01-31).
        "forward" scores every group by the model of the groups before it, in this order; the first
        group is not scored.

        For comparisons, `Preferences`, there are other words:

        - "leave-item-out" holds out all comparisons of an item in turn, so that each comparison is
          scored once without its winner and once without its loser;
        - "leave-comparison-out" and "leave-group-out" hold out each comparison, or each group of
          `Preferences.groups`, in turn. All three are exact;
        - "item-folds" makes five folds of items;
        - an int, a splitter or "forward" splits the groups, as above, if there are any. Otherwise
          an int or a splitter splits the comparisons;
        - None stands for groups if there are any. Otherwise it stands for items if some are
          compared more than once, unless at least half of the items have a column that varies in
          their own comparisons alone, as ids do. Otherwise it stands for single comparisons. With
          constrained weights or conjugate gradients it makes five folds of these.

        `cv_` tells what was held out.

        For a table of `scan`, None holds every query out in turn, with exact scores, in a second
        pass over its features. Where that would need refits, as for constrained weights, and always
        with ``scope="global"``, it stands for five folds. An int or a `QueryKFold` makes the folds
        that the same rows have in memory, by the order of their queries. Other values are refused.
    scoring : str, Metric, scorer or None, default=None
        A name that `get_metric` knows, or the result of `get_metric` or `make_scorer`; or
        "evidence", the likelihood of the labels, for which nothing is held out; see the notes. None
        stands for ``"ndcg@10"``. It stands for ``"pairwise_accuracy"`` if a label is negative, not
        a whole number, or 64 or more, or if the rows of a single query are held out one by one or
        in pairs.
        For comparisons it is "accuracy" (the default) or "squared_error"; see `evaluate`.
    prior : as in `RankRLS`

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or of (n_support_rows,) with a kernel, float64
        Weights of the model with the chosen settings, fitted to all rows.
    feature_map_ :
        What was chosen, fitted, as in `RankRLS`.
    alpha_, pairs_, scale_ :
        The chosen settings.
    best_score_ : float
        Mean held-out score of the chosen settings. If `scoring` is a loss, such as
        "pairwise_squared_error", this is the loss itself.
    best_index_ : int
        The row of `cv_results_` that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas of the chosen combination: `alphas` in the caller's order, or the default grid
        in descending order.
    scores_ : ndarray of shape (n_alphas,)
        Mean held-out scores along `alphas_`.
    coef_path_ : ndarray of shape (n_alphas, n_features), or (n_alphas, n_support_rows), or None
        Weights along `alphas_`. None if they would take more than 256 MiB, as with the default
        alphas and a million features: fit `RankRLS` to the alphas whose weights you want.
    cv_results_ : dict
        A row for every combination of settings and alpha, in the columns of scikit-learn's
        searches: ``params`` (a list of dicts), ``param_alpha``, ``param_pairs``, ``param_target``,
        ``param_scale``, ``param_feature_map`` (if there is a list of them), ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, and ``split0_test_score``, … if `cv` makes splits.
        The mean is over all held-out queries. The standard deviation is over splits, or over
        queries if there are no splits. It is NaN for "leave-pair-out".
    held_out_ : ndarray of shape (n_rows,), float64, or None
        The score of every row by the model with the chosen settings that was fitted without it:
        without its query, row or fold, as `cv` says. It is the mean over repeated splits, and NaN
        for rows that no split held out. Models of different queries and splits differ, in the dual
        form also by a constant, so compare these scores within a query, and of a query that is
        split within a split only. With a validation set, these are the scores of its rows, of shape
        (n_validation_rows,). None for tables, for "leave-pair-out" and "evidence", and for
        comparisons whose scores by all models would take more than 256 MiB. For comparisons they
        are differences of scores, (n_pairs,), and with "leave-item-out" the mean of the two
        differences. `per_query_` then has a row for every comparison: its number, its weight, and
        the metric, which is NaN where it is undefined, such as the accuracy of a tie.
    cv_ : str
        What was held out of comparisons: "leave-item-out", "leave-comparison-out",
        "leave-group-out", or words for splits. Other fits have no `cv_`.
    per_query_ : dict of str to ndarray, or None
        A row for every query that was held out: ``qid`` (the id, or
        the number from 0 if there were no ids), ``split`` (its number, if `cv` makes splits),
        ``n`` (the rows of weight > 0), ``weight``, and the metric of `scoring_` under its name. The
        mean of the metric, with these weights, is `best_score_`. Model files hold neither this nor
        `held_out_`.
    scoring_ : Metric
        The metric that judged the held-out scores. With "evidence" it has this name.
    form_, n_features_in_, feature_names_in_, uses_qid_, prior_ :
        As in `RankRLS`.

    Notes
    -----
    The mean is over all held-out queries of all splits. The weight of a query in it is the mean of
    its rows' sample weights times its query weight. Rows of weight 0 are left out. If several
    settings have the same mean, the first combination and the largest alpha win.

    Leave-query-out scores equal those of explicit refits without each query, to a relative error of
    about ``1e-16 λ_max(G) / alpha``. They cost about ``2 n d² + 20 n d n_alphas`` flops for d
    features, and n · n_alphas doubles. In the dual form they cost ``2 q n² + 20 n² n_alphas`` flops
    for q queries, which is a small share of the decomposition. With ``scale=True`` the features are
    scaled by all rows, whereas splitters and validation sets scale by the training rows.

    Held-out scores include those of the prior and the offsets. A prior that has seen the labels of
    held-out rows makes these scores too good, and favours a large alpha: fit it to other queries.

    A feature map is fitted once, to all rows, and gets no labels. For a transformer that needs
    them, such as ``SelectKBest``, search a Pipeline with ``GridSearchCV``.

    With ``scope="global"``, leaving a query out changes the pairs of the other rows too. With
    ``pairs="with_ties"`` every query is a fold of one regression (dual form), or its rows are
    subtracted from the statistics (primal form). With other pairs the model is refitted for every
    query.

    Two rows of a held-out query get the same score if a refit without the query gives them the same
    score. This holds for rows with equal values, and for rows that differ only in features that
    vary in no other query. The identities of leave-query-out give such rows scores that differ by
    rounding errors, and these errors depend on the held-out labels. They are at most
    ``64 ε (λ_max(G) / alpha · (s + r) + r + m)``, where s is the range of the targets within a
    query, r is the range of the scores of this query, and m is the largest size of its scores. (For
    the primal form of float32 rows, ε / 16 of float32 takes the place of 64 ε.) Two scores are made
    equal at an alpha if they are this close both at that alpha and at the largest alpha (or at
    λ_max(G) if that is larger). They are never made equal if they are more than ``1e-4 (s + r)``
    apart. The same is done to the scores of a validation set.

    If rows of a single query are held out one by one, the models without each row have different
    origins. A row's score is therefore measured from the mean score of the other rows by the same
    model, which is weighted by the sample weights: it is ``wᵀ(x_i − mean(X))``. The scores of a
    prior and the offsets, which are added, are measured from their means over the other rows too.
    With ``pairs=None`` all models have the same origin, and the score is ``wᵀx_i`` plus these.

    A held-out score that is computed without a refit is NaN if alpha is so small that the score
    would be only rounding error. Where one query holds all but 1e-4 of a direction in which
    features vary, with an eigenvalue of more than 1e5 alpha, the primal form refits the model
    without it: the identities would lose up to 9 digits. At most 32 queries are refitted, and as
    many as 1e11 flops allow: those that hold the largest directions. Others, and those of tables,
    have errors up to about 1e-4 at ``λ_max / alpha = 2e8``. A splitter, such as `QueryKFold`, has
    the errors of a refit.

    Wide CSR data are solved by conjugate gradients. The systems of all rows and of the splits, at
    most eight at a time, take their steps together, so that X is read once a step. Every ridge
    starts from the solutions of the larger ones. Residuals fall below 1e-8 of the right-hand side.
    The 34 default ridges take about 130 to 500 steps of O(nnz) flops, with one more for each ridge,
    and memory for about 60 vectors of n_features in each split.

    As in `RankRLS`, the shape of the rows decides between conjugate gradients and the direct
    solution; so does `cv`, by the number of systems to solve. With ``cv=None`` the direct solution
    gives exact leave-query-out. It is used unless it does not fit in memory, or is estimated to
    take more than 0.1 s and 4 times as long as the steps of five folds. Up to some 1,500 rows or
    features, held-out scores are therefore exact. For larger CSR data, give `cv` or a validation
    set, so that you know how scores are held out. `cv_results_` has a column ``split0_test_score``
    if there were folds.

    In the dual form the folds of a splitter come from the same single decomposition if every row is
    a test row once and the folds are whole queries, or rows of one query with
    ``pairs="with_ties"``, or any rows with ``pairs=None``. Other folds are refitted.

    With ``scoring="evidence"`` the scores are logarithms of the restricted likelihood (REML) of
    labels ``y_i = f_i + b_q + e_i``. Here every list has a constant b_q with a flat prior, the
    noise has the variance ``σ² / v_i`` with the best σ², and weights have the prior variance
    ``σ² / alpha``. Nothing is held out, so it costs no more than the path of ridges. It compares
    ridges, gammas, feature maps and `scale`, but not pairs or targets. It needs
    ``pairs="with_ties"`` or None, or comparisons, and ``weighting="documents"`` if lists differ in
    size; other weights of pairs follow from no such noise, and are an error. It needs all rows in
    memory. It is NaN where the residuals of a model are only rounding errors.

    The leave-pair-out score is the share of pairs that the model without their two rows puts in the
    right order. A pair has weight ``v_i v_j`` times the weights of its queries, and equal scores
    count ½. No other `scoring` is possible. The scores are exact and come from 2 × 2 systems of the
    hat matrix. They cost about ``2 n² · rank`` flops per alpha, and about 40 times that if row
    weights take many different values.

    References
    ----------
    Pahikkala et al. 2007, §2.4 (all λ from one decomposition); Pahikkala, Boberg, Salakoski.
    Fast n-fold cross-validation for regularized least-squares. SCAI 2006. Airola, Pahikkala,
    Waegeman, De Baets, Salakoski. An experimental comparison of cross-validation techniques for
    estimating the area under the ROC curve. Computational Statistics & Data Analysis 55, 2011
    (leave-pair-out). Patterson, Thompson. Recovery of inter-block information when block sizes are
    unequal. Biometrika 58, 1971 (restricted likelihood).

    Examples
    --------
    >>> from pairgram import RankRLSCV, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankRLSCV(pairs=["with_ties", "without_ties"]).fit(X, y, qid=qid)
    >>> model.scores_.shape
    (34,)
    """

    alphas: ArrayLike | None = None
    _: KW_ONLY
    pairs: PairsLike | Sequence[PairsLike] = "with_ties"
    scale: bool | Sequence[bool] = False
    feature_map: Any | Sequence[Any] = None
    cv: CV = None
    scoring: Scoring = None
    constraint: Constraint | None = None
    prior: Estimator | ArrayLike | None = None

    def _spec(self) -> RidgeSpec:
        pairs = [Pairs.of(one) for one in as_list(self.pairs, "pairs")]
        if len({one.scope for one in pairs}) > 1:
            raise ArgumentError("pairs", f"must be a list of pairs with one scope, got {pairs}")
        scales = as_list(self.scale, "scale")
        for scale in scales:
            check("scale", scale)
        return search_spec(
            self,
            pairs,
            None if self.alphas is None else check_alphas(self.alphas, zero=True),
            [Chain.of(one) for one in as_list(self.feature_map, "feature_map")],
            ("pairs", "scale") + ("feature_map",) * isinstance(self.feature_map, (list, tuple)),
            scales=tuple(map(bool, scales)),
            constraint=check("constraint", self.constraint),
        )

    @classmethod
    def from_pairgrams(
        cls,
        days: Iterable[Pairgram],
        alphas: ArrayLike | None = None,
        *,
        scale: bool = False,
    ) -> Self:
        """Choose the ridge from the statistics of days, or of other parts, without any rows.

        Every day is held out in turn, exactly, by the models of all others.

        Parameters
        ----------
        days : iterable of Pairgram
            Two or more, with equal settings, columns and feature map. Statistics are those of
            columns as they came: maps such as quantiles cannot be fitted to them.
        alphas : array-like of shape (n_alphas,), ≥ 0, or None, default=None
            The ridges. None takes the default grid of the sum of all days.
        scale : bool, default=False
            As for the class.

        Returns
        -------
        RankRLSCV
            A fitted model with ``alpha_``, ``alphas_``, ``scores_``, ``coef_path_`` and
            ``cv_results_``, which has the loss of every day. ``pairgram_`` is the sum of all days,
            to which further days can be added. ``scores_`` are losses, so smaller is better: the
            mean over days of ``(yᵀLy − 2 gᵀw + wᵀGw) / Σ W``, half the weighted mean of
            ``((y_i − y_j) − (f_i − f_j))²`` over the pairs of a day, or with ``pairs=None`` the
            mean of ``(y_i − f_i)²``. This is not a ranking metric, because statistics do not hold
            the order of rows.

        Raises
        ------
        TypeError
            If an element is not a Pairgram.
        ValueError
            If there are fewer than two days; if a day has no pair that counts, has other settings
            or columns, or shares a query with another day; or if a parameter is not as described.

        Notes
        -----
        For T days and d features it takes O(T d³) time, and memory for 2 T statistics.

        Examples
        --------
        >>> from pairgram import Pairgram, RankRLSCV, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> days = [Pairgram.from_rows(X[d], y[d], qid=qid[d]) for d in (qid < 40, qid >= 40)]
        >>> RankRLSCV.from_pairgrams(days).scores_.shape
        (34,)
        """
        return of_days(cls, days, alphas, scale=scale)
