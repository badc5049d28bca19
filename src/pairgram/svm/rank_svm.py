"""RankSVM minimises the squared hinge loss on preference pairs by a truncated Newton method."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from pairgram._support.checks import check_flag, check_positive
from pairgram._support.threads import single_threaded_blas
from pairgram._support.words import InputsName, Loss, Weighting
from pairgram.feature_maps.input_map import after_inputs, parts_of, whole_map
from pairgram.feature_maps.known import same_map
from pairgram.problem.data import RowInfo
from pairgram.rankers.base import LinearRanker
from pairgram.rankers.table_rows import begin_fit, block_readers
from pairgram.svm.table_solver import TableTraining
from pairgram.svm.training import (
    SolverSettings,
    Training,
    fit_attributes,
    warn_if_not_converged,
)
from pairgram.tables.table import Table, refuse_arguments

__all__ = ["RankSVM"]


class RankSVM(LinearRanker):
    """Rank by the squared hinge loss on preference pairs (RankSVM).

    The model is linear in the inputs or in a feature map.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the loss relative to ``½ ‖w‖²``. The loss is a sum over pairs, not a mean, so the
        same C has a larger effect for more data.
    feature_map : transformer or None, default=None
        `RandomNodes`, or any other transformer of arrays. A clone of it is fitted to X and y,
        without the weights, and the model is linear in its features. With approximate features of a
        kernel, such as those of `Nystroem`, this is a kernel RankSVM. A RandomState or Generator in
        the map is cloned too, so every fit draws the same features.
    loss : {"squared_hinge", "squared"}, default="squared_hinge"
        "squared" takes ``(1 − (f_i − f_j))²`` for all preference pairs, including those that are
        already far apart in the right order.
    weighting : {"pairs", "documents", "queries"}, default="pairs"
        What has weight 1 in the objective:

        - "pairs": every pair;
        - "documents": every row (the pairs of a query are multiplied by ``1 / Σ v``);
        - "queries": every query (its pairs are multiplied by ``1 / Σ v_i v_j`` over its pairs).
    tol : float > 0, default=1e-3
        The solver stops when the norm of the gradient is this share of its norm at w = 0, or at
        the prior.
    max_iter : int ≥ 1, default=100
        Largest number of Newton steps.
    warm_start : bool, default=False
        If True, start from the `coef_` of the last fit, provided that its features are the same.
    memory_limit : float or None, default=None
        Bytes that the features of `feature_map`, or the kernel values, may take. If they need more,
        they are computed again, block by block, whenever they are used. This changes the result by
        rounding errors. None stands for half of the free memory.
    prior : array-like of shape (n_features,), fitted model or None, default=None
        What the fit starts from, in place of the model 0: the ridge is on the difference from it.
        Weights of the inputs, or of the features that `feature_map` makes; or
        a fitted model with `predict`, which stays fitted in clones. See the notes.
    inputs : str or None, default=None
        As in `RankRLS`; they act before the feature map.
    n_threads : int or None, default=None
        Number of threads. None takes the CPUs that the process may use, but at most
        ``OMP_NUM_THREADS``. The result has the same bits for any number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
        Weights of the columns after `inputs`, or of the features that `feature_map_` makes.
    inputs_ : object or None
        As in `RankRLS`.
    feature_map_ : fitted transformer or None
    missing_ : ndarray of shape (n_features,), float64, or None
        As in `RankRLS`.
    history_ : dict of str to ndarray
        ``objective`` and ``relative_gradient`` hold a value before the first Newton step and after
        every step. ``n_hessian_products`` and ``step`` (its length) hold a value for every step.
        For a table, so does ``n_passes``: how often the solver has read the rows until then.
        The objective is exact to about 1e-16 ``C Σ W_ij (1 + f_i² + f_j²)``. If mapped features are
        stored in single precision (see the notes), it is the objective of the rounded features,
        with a relative error of about 1e-9. Model files do not hold `history_`, `n_iter_` and
        `n_hessian_products_`.
    n_iter_ : int
        Number of Newton steps.
    n_hessian_products_ : int
        Number of steps of conjugate gradients in all Newton steps together.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only present if X had column names.
    uses_qid_ : bool
        Whether the model was fitted with query ids or sizes.
    prior_ : fitted model or None
        The model of `prior` if `predict` adds its scores. Weights of the same features are part of
        `coef_` instead.
    uses_offset_ : bool
        Whether the model was fitted with offsets, so that `predict` and `score` need them.

    See Also
    --------
    RankSVMCV : Chooses C, and a feature map on request, by held-out rows.
    RankRLS : Least squares on pairs, in closed form.

    Notes
    -----
    Minimises ``½ ‖w‖² + C Σ W_ij max(0, 1 − (f_i − f_j))²`` with ``f = Xw``. The sum is over the
    preference pairs, that is, the pairs with ``y_i > y_j`` within a query. ``W_ij = c v_i v_j``,
    where v are the sample weights, and c is the query's weight times the factor of `weighting`.
    There is a ``ConvergenceWarning`` if `max_iter` steps do not reach `tol`, or if numbers
    overflow. The solver stops without a warning if the next step promises to lower the objective by
    less than a share of 1e-15, which is rounding error.

    With the scores p of a `prior` and the offsets o of `fit`, ``f = Xw + p + o``, so that w is the
    difference from the prior. For weights w₀ of the same features, the ridge is ``½ ‖w − w₀‖²`` and
    `coef_` is w. See `RankRLS` for how `predict` and files treat other models.

    The solver is a truncated Newton method. Loss, gradient and products with the Hessian take
    O(n log n) time, and pairs are never listed. Each step of conjugate gradients reads the features
    once. The preconditioner is a Cholesky factor of ``I + 2C G``, the Hessian if all pairs are
    active, where G is the statistic of `RankRLS` for ``pairs="dropped"``. It takes
    n · n_features² + n_features³ / 3 flops before the first step, and then few steps are needed.
    With more than 4,096 features, or if memory is short, the preconditioner is only the diagonal.

    From 1,024 features on, G is estimated from a sample of queries with about 3 n_features rows,
    and at least 4,096. This takes 3 n_features³ flops, and a few more steps are needed. Queries are
    taken with a probability proportional to their share of the pairs, and weighted by its inverse.
    The minimum does not change. No sample is taken if it would be more than half of all rows, or if
    a query is longer than an eighth of the sample.

    Features of a map are stored in single precision and summed in double precision. For float64 X,
    they are stored in double precision if they take up to 1 MiB or if ``tol`` < 1e-5. CSR rows stay
    sparse. BLAS uses one thread. If G is estimated from a sample, the kernel values between rows
    and landmarks are stored in place of Nyström features. Their means over the landmarks are
    subtracted, which changes no difference of scores and keeps rounding errors small. The whitening
    is then applied to vectors, in n_landmarks² flops twice a step, instead of to n rows.

    References
    ----------
    Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
    Computational Intelligence and Neuroscience, 2017. Eq. 22-25 and Algorithm 3; their program's C
    is twice that of eq. 22 and of this class. Lee, Lin. Large-scale linear RankSVM. Neural
    Computation, 2014.

    Examples
    --------
    >>> from pairgram import RankSVM, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = RankSVM(C=0.1).fit(X, y, qid=qid)
    >>> model.predict(X).shape
    (2000,)
    """

    _file_kind = "RankSVM"

    def __init__(
        self,
        C: float = 1.0,
        *,
        feature_map: Any = None,
        loss: Loss = "squared_hinge",
        weighting: Weighting = "pairs",
        tol: float = 1e-3,
        max_iter: int = 100,
        warm_start: bool = False,
        memory_limit: float | None = None,
        prior: Any = None,
        inputs: InputsName | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.feature_map = feature_map
        self.loss = loss
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.prior = prior
        self.inputs = inputs
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            C-contiguous arrays of float64 or float32 are not copied. A table has labels, query ids
            and weights of rows itself, so all other arguments must be left out. Its features are
            read once for the preconditioner. Every Newton step reads them once for the loss and the
            gradient, once for every Hessian product, and once or more for the length of the step.
            What is fitted to the rows takes passes as in `RankRLS.fit`.
        y : array-like of shape (n_rows,)
            Relevance labels, any numbers that are finite as float64. Only their order within a
            query counts. Only a table does without.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids; the rows may come in any order. With neither `qid` nor `group`, all rows are
            one query. A `MissingQueryWarning` warns of this if there are more than 1,000 rows.
        group : array-like of shape (n_queries,) of int, or None
            Sizes of the queries, in place of `qid`, if the rows of each query stand together.
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
            A weight of 2 is the same as having the row twice, except for a feature map that is
            fitted to the rows: the map does not see the weights.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Weights of queries, given for every row and constant within a query.
        offset : array-like of shape (n_rows,), finite, or None
            Scores of the rows by something else, which are added to those of the model. `predict`
            and `score` then need the offsets of their rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described; the message names it.
        """
        check_positive("C", self.C)
        check_flag("warm_start", self.warm_start)
        settings = SolverSettings(
            self.loss, self.weighting, self.tol, self.max_iter, self.memory_limit, self.n_threads
        )
        info = RowInfo(qid, group, sample_weight, query_weight, offset)
        training: Training | TableTraining
        if isinstance(X, Table):
            refuse_arguments(y=y, **info._asdict())
            table = begin_fit(self, X)
            (reader,) = block_readers(self, table, self._unfitted_map())
            training, feature_map = TableTraining.make(table, reader, settings), reader.feature_map
            uses_qid = table.has_queries
        else:
            data = self._check(X, y, info)
            self._warn_of_missing_queries(data, info)
            training, feature_map = Training.make(data, settings, exact=False), whole_map(data)
            uses_qid = info.has_queries
        start, prior = None, self._prior_of(feature_map)
        origin = 0.0 if prior is None or prior.coef is None else prior.coef
        if self.warm_start and len(getattr(self, "coef_", ())) == len(training.curvature):
            last = after_inputs(self.inputs_, self.feature_map_)
            start = self.coef_ - origin if same_map(last, feature_map) else None
        precondition = training.preconditioner(float(self.C))
        with single_threaded_blas():
            solver = training.solver(start)
            history = solver.solve(float(self.C), precondition, self.tol, self.max_iter)
        # The attributes are set last, so that a fit that fails leaves the last solution in place.
        self.coef_ = origin + solver.w
        self.inputs_, self.feature_map_ = parts_of(feature_map)
        self.uses_qid_ = uses_qid
        self._column_sums = training.column_sums(self.coef_)
        self.__dict__.update(fit_attributes(history))
        warn_if_not_converged([history], settings)
        return self
