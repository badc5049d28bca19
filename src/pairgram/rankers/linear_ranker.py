"""`LinearRanker`, the base class of all rankers, which are fitted, predict and are kept."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import (
    is_ready,
    without_names,
)
from pairgram._support.checks import AnyArray, ArgumentError, Vector
from pairgram._support.machine import cached_property
from pairgram._support.whole_fit import WholeFit, by_keyword
from pairgram.data.dataset import RankingData, RowInfo, read_labelled
from pairgram.data.judgements import as_judgements
from pairgram.data.pairs import Pairs
from pairgram.data.queries import one_query_meant, refuse_score_without_ids
from pairgram.data.streams import as_stream
from pairgram.features.feature_map import describe_map
from pairgram.features.kernels import is_precomputed
from pairgram.features.row_values import Chain
from pairgram.files.read_write import write_file
from pairgram.metrics.evaluation import evaluate
from pairgram.rankers.known import ranker_called
from pairgram.rankers.preparation import (
    GivenArrays,
    Spec,
)
from pairgram.rankers.prior import frozen
from pairgram.rankers.scores import (
    Scorer,
    column_weights_of,
    contributions_of,
    names_of,
    rows_to_score,
    scores_of,
)
from pairgram.solvers.ridge_path import ColumnSums

if TYPE_CHECKING:
    from pairgram._support.parameters import Scope
    from pairgram._support.types import Matrix, RowsLike
    from pairgram.rankers.validation import Validation

# What searches choose, besides the feature map.
CHOSEN = ("alpha", "C", "pairs", "scale")
# Attributes of a fit that its check of the rows sets.
OF_COLUMNS = ("n_features_in_", "feature_names_in_")
# What tools of scikit-learn hand on to `fit` and `score`.
REQUESTED = ("qid", "sample_weight")


def delimited(X: Matrix, y: ArrayLike, info: RowInfo) -> RankingData:
    """Return rows whose X and y have been checked, by query, and check their weights."""
    data = RankingData.delimit(X, y, *info)
    if data.may_vanish:
        _require_weight(sample_weight=data.row_weights, query_weight=data.query_weights)
    return data


def _require_weight(**given: Vector | None) -> None:
    for name, weights in given.items():
        if weights is not None and not weights.any():
            raise ArgumentError(name, "must not be zero for every row: no pair would count")


def _listed(value: object) -> Sequence[Any]:
    """Return the values that a parameter may have: those to choose from, or the only one."""
    return value if isinstance(value, (list, tuple)) else (value,)


class LinearRanker(WholeFit, BaseEstimator):  # type: ignore[misc]
    """The base class of all rankers: it checks data, predicts, scores, and writes files."""

    __metadata_request__fit = dict.fromkeys((*REQUESTED, "offset"), True)
    __metadata_request__score = dict.fromkeys(REQUESTED, True)

    _file_kind = "RankRLS"  # the class that a model file names
    _scope: Scope = "query"  # of pairs that are only named

    coef_: Vector
    feature_map_: Any
    uses_qid_: bool
    prior_: Any = None
    feature_map: Any
    _column_sums: ColumnSums | None = None  # see `column_weights`

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        ways = [Chain.of(one) for one in _listed(self.feature_map)]
        precomputed = any(is_precomputed(getattr(way.then, "kernel", None)) for way in ways)
        scales = any(way.kind not in (None, "maxabs") for way in ways)
        fills = any(way.fill is not None for way in ways)
        tags.input_tags.allow_nan = fills
        tags.input_tags.sparse = not (precomputed or scales or fills)
        tags.input_tags.pairwise = precomputed
        tags.target_tags.required = True
        return tags

    def __sklearn_clone__(self) -> Any:
        """Return an estimator with the same settings that is not fitted; a fitted prior stays."""
        bare, prior = copy.copy(self), getattr(self, "prior", None)
        if prior is not None:
            bare.__dict__["prior"] = frozen(prior)
        return BaseEstimator.__sklearn_clone__(bare)

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            C-contiguous arrays of float64 or float32 are not copied. A table has labels, query ids
            and weights of rows itself, so all other arguments must be left out. A first pass reads
            these columns alone. Its features are read once, and once more for each of: scales, what
            is drawn from rows (quantiles, landmarks, the width of a kernel), and ``Fill("mean")``;
            ``Fill("median")`` reads them twice. Kernels other than "linear"
            and the dual form take no table. The notes of `RankSVM` say how often its solver reads
            the features.
        y : array-like of shape (n_rows,), Clicks, or Preferences
            Relevance labels, any real numbers. Only a table does without. `Clicks` are clicks on
            rows of lists that were shown, with the propensities of these rows; a query is one list
            that was shown once. `RankRLS`, `RankSVM` and their searches also take comparisons of
            rows, `Preferences`, beside which `qid`, `sample_weight` and `query_weight` must be
            None.
        qid : array-like of shape (n_rows,), any hashable type, or None
            Query ids; the rows may come in any order. Without `qid`, all rows are one query. A
            `MissingQueryWarning` warns of this if there are more than 1,000 rows and pairs are
            formed within queries.
        sample_weight : array-like of shape (n_rows,) or float, finite and ≥ 0, or None
            A weight of 2 is the same as having the row twice. The weight of a pair is the product
            of the weights of its rows. The weights of all pairs must add up to at least 1e-290 and
            at most 1e303.
        query_weight : array-like of shape (n_rows,), finite and ≥ 0, or None
            Weights of queries, given for every row and constant within a query.
        offset : array-like of shape (n_rows,), finite, or None
            Scores of the rows by something else: the ``init_score`` of LightGBM, the
            ``base_margin`` of XGBoost. The model fits what they leave of the targets,
            as if their column had the weight 1 and no ridge. `predict` and `score` know the rows
            alone: rank by ``model.predict(X) + offset``. Labels alone decide which pairs count,
            and how much. Searches of this package judge held-out rows by scores with their
            offsets, whereas tools of scikit-learn judge what `predict` returns.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described; the message names it.

        Warns
        -----
        MissingQueryWarning
            If there are more than 1,000 rows without `qid`.
        UserWarning
            If no query has two rows with different labels, although tied pairs count: the model is
            then zero. Also if columns do not suit the feature map or the kernel.
        """
        return self._fit(X, y, RowInfo(qid, sample_weight, query_weight, offset))

    @abstractmethod
    def _spec(self) -> Spec:
        """Return what is to be fitted, after a check of the parameters."""

    def _fit(
        self, X: RowsLike, y: ArrayLike | None, info: RowInfo, validation: Validation = None
    ) -> Self:
        """Fit what `_spec` says to arrays or to a table."""
        spec = self._spec()
        stream = as_stream(X, y=y, **info._asdict())
        if stream is None:
            rows = GivenArrays(self, X, y, info, spec.rows)
            fitted = rows.with_told(rows.spec_of(spec).fit_arrays(rows, validation))
        else:
            fitted = stream.fitted(self, spec, validation)
        if "coef_" in vars(self):
            self._forget()
        self.__dict__.update(fitted)
        return self

    def _forget(self) -> None:
        """Delete what an earlier fit has left."""
        if type(self).fit.__module__.startswith("pairgram."):  # else a subclass has set some first
            for name in tuple(vars(self)):
                if name[-1] == "_" and name not in OF_COLUMNS:
                    del self.__dict__[name]

    @property
    def _is_linear(self) -> bool:
        """Whether scores are ``features @ coef_`` and nothing else."""
        own = type(self).predict is LinearRanker.predict
        return own and self.prior_ is None

    def _check_rows(self, X: RowsLike, y: ArrayLike | None, info: RowInfo) -> RankingData:
        """Check the rows of a fit. The checks of scikit-learn take as long as a small fit."""
        if (
            is_ready(X, 2)
            and is_ready(y, 1)
            and X.flags.carray
            and y.flags.carray
            and y.dtype == np.float64
            and len(X) == len(y)
            and np.isfinite(y).all()
        ):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return delimited(X, y, info)
        return self._read_rows(X, y, info)

    def _read_rows(self, X: RowsLike, y: ArrayLike | None, info: RowInfo) -> RankingData:
        X, y = read_labelled(X, y, estimator=self, reset=True)
        return replace(delimited(X, y, info), names=getattr(self, "feature_names_in_", None))

    @property
    def _kinds_of_pairs(self) -> list[Pairs]:
        listed = _listed(getattr(self, "pairs", "with_ties"))
        return [Pairs.of(one, self._scope) for one in listed]

    @property
    def _needs_queries(self) -> bool:
        """Whether the model is fitted to pairs within queries."""
        return any(pairs.are_within_queries for pairs in self._kinds_of_pairs)

    @property
    def _reads_queries(self) -> bool:
        """Whether a fit depends on queries: on pairs, or on weights of single rows."""
        return any(pairs.reads_queries for pairs in self._kinds_of_pairs)

    @by_keyword
    def predict(self, X: RowsLike) -> Any:
        """Return the scores by which rows are ranked, highest first.

        The scores are ``X @ coef_``, or ``feature_map_.transform(X) @ coef_`` if there is a feature
        map. The scores of `prior_` are added. The offsets of `fit` are not: add those of these
        rows, ``model.predict(X) + offset``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            With ``Kernel("precomputed")``, the kernel values between every row and the training
            rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            float32 for float32 X, otherwise float64. A frame of any package is float32 if a
            float32 holds what each column holds, and one column is float32.

        Raises
        ------
        ValueError
            If X has another number of features than in `fit`, holds infinity, or NaN that the model
            does not fill, or has columns of times, text, lists or other objects.

        Notes
        -----
        The score of a row has the same bits whatever other rows X has, wherever the row stands, and
        for any number of threads. This holds for arrays of one type, and for CSR matrices; the
        scores of an array and of a CSR matrix differ by rounding errors. It may not hold if
        features come from callables or from transformers of other packages.

        The preparations for a map of this package are kept for the next call, if its arrays take at
        most 64 MiB. To change a fitted map, assign a new array: a change within an array may not be
        noticed.
        """
        stream = as_stream(X)
        if stream is not None:
            return stream.scores(self)
        rows = rows_to_score(self, X)
        scores = scores_of(self, rows)
        if self.prior_ is None:
            return scores
        filled = Chain.of(self.feature_map_).fill is not None
        prior, own = (without_names(self.prior_), rows) if filled else (self.prior_, X)
        total = scores.astype(np.float64) + prior.predict(own)
        return np.asarray(total, dtype=scores.dtype)

    def _without_names(self) -> Self:
        """Return a copy that takes arrays in place of frames with names."""
        other = copy.copy(self)
        other.__dict__.pop("feature_names_in_", None)
        if other.prior_ is not None:
            other.prior_ = without_names(other.prior_)
        return other

    @by_keyword
    def score(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean NDCG@10 over queries, or that of "ips_dcg@10" for clicks.

        The gain of a label is ``2^y − 1``, and the discount of place i is ``1 / log2(1 + i)``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
        y : array-like of shape (n_rows,), ≥ 0, Clicks, or Preferences
            A table has labels, query ids and weights itself. For comparisons, the score is
            the accuracy; see `evaluate`.
        qid : array-like of shape (n_rows,) or None
            Query ids. None means that the rows are one query.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of rows. The weight of a query is the mean weight of its rows.

        Raises
        ------
        ValueError
            If a label is negative, or if the model was fitted with query ids and none are given.
            For negative labels use another metric, such as ``scoring=make_scorer("kendall")`` in
            scikit-learn's tools, or ``evaluate("kendall", ...)``.

        Warns
        -----
        MissingQueryWarning
            If query ids are missing within scikit-learn's cross-validation, because that turns the
            error into NaN.
        """
        check_is_fitted(self)
        stream = as_stream(X, y=y, qid=qid, sample_weight=sample_weight)
        if stream is not None:
            name = "ips_dcg@10" if stream.is_of_clicks else "ndcg@10"
            return float(evaluate(name, stream, self)[name])
        judged: Any = y
        judgements = as_judgements(y)
        of_rows = judgements is None or judgements.comparisons is None
        if of_rows and qid is None and self.uses_qid_:
            refuse_score_without_ids(self)
        name = "ndcg@10" if judgements is None else judgements.metric
        scores = self.predict(X)
        with one_query_meant():  # as in the fit
            return float(evaluate(name, judged, scores, qid, sample_weight=sample_weight)[name])

    @property
    def column_names_(self) -> AnyArray:
        """The names of the columns in `column_weights` and `contributions`, (n_columns,).

        They are those of X, or ``x0``, ``x1``, … if X had no names. With "raw+quantile" the columns
        as they are come first. Their distribution functions follow, with names like
        ``quantile of x0``.
        """
        check_is_fitted(self)
        return names_of(self)

    def column_weights(
        self, X: RowsLike | None = None, *, qid: ArrayLike | None = None
    ) -> dict[str, AnyArray]:
        """Return the weights of the columns, the most important first.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or None, default=None
            Rows on which to measure how much the columns vary. None takes what `fit` found.
        qid : array-like of shape (n_rows,) or None, default=None
            Query ids of X.

        Returns
        -------
        dict of str to ndarray of shape (n_features,)
            ``pandas.DataFrame(model.column_weights())`` makes a frame of it. The columns are

            - ``column``: the number of the column of X from 0, or of what scales make of it;
            - ``name``: its name in `column_names_`;
            - ``weight``: the score is the sum of weight × value, up to a constant;
            - ``spread``: the standard deviation of the column within queries;
            - ``importance``: ``|weight| × spread``, which does not depend on the column's unit;
            - ``share``: the share of the variance of the score within queries. It is the
              covariance of weight × value and the score, divided by the variance of the score.
              Shares add up to 1. They can be negative, and are 0 if the score does not vary.

        Raises
        ------
        ValueError
            If the model is not linear in the columns of X; if X is not as described; or if there is
            no X and the fit did not measure the columns.

        Notes
        -----
        The spread is ``sqrt(½ Σ_ij W_ij (x_i − x_j)² / Σ_ij W_ij)``. If `fit` measured it, W are
        the weights of the pairs that were fitted. On given rows, all pairs of rows of a query have
        weight 1, which is also what the default pairs of `RankRLS` have.

        `fit` measures the columns if it sums their Gram matrix over pairs anyway. It does not for
        the dual form, for conjugate gradients, for ``pairs=None``, for nodes, in `fit_many` for
        small problems, in `RankSVM` if the Gram matrix is estimated, and for least squares that
        start from a prior.
        """
        check_is_fitted(self)
        return column_weights_of(self, X, qid)

    def contributions(self, X: RowsLike) -> Any:
        """Return what every column adds to the score of every row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features), float64
            Values × weights, in the order of `column_names_`. The sum of a row is its score, up to
            one constant that is the same for all rows and changes no ranking.
            Only differences between rows of a query say something.

        Raises
        ------
        ValueError
            If the model is not linear in the columns of X, or X is not as in `predict`.
        """
        check_is_fitted(self)
        return contributions_of(self, X)

    def row_scorer(self, dtype: DTypeLike = np.float64) -> Scorer:
        """Return a frozen function that scores rows without checking them, for serving.

        It takes C-contiguous rows of one type, in the thread that calls it. Its scores are float64,
        and for float64 rows they have the bits of `predict`. Threads may share it, and a pickle
        takes it to other processes. For 100 rows of 50 columns and a linear model it takes 1.6 µs.

        Parameters
        ----------
        dtype : float64 or float32, default=float64
            The type of the rows.

        Returns
        -------
        callable
            ``row_scorer(X) -> ndarray of shape (n_rows,), float64``.

        Raises
        ------
        ValueError
            If only Python can score rows, as for callables; or if the model adds the scores of a
            prior.

        See Also
        --------
        pairgram.row_scorer : Takes pipelines too.

        Examples
        --------
        >>> from pairgram import RankRLS, make_ranking
        >>> X, y, qid = make_ranking(random_state=0)
        >>> scorer = RankRLS().fit(X, y, qid=qid).row_scorer()
        >>> scorer(X[:100]).shape
        (100,)
        """
        check_is_fitted(self)
        return Scorer(self, dtype)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a safetensors file, which holds no code.

        The file is written completely or not at all. `load_model` reads it. The file holds the
        results of the last fit and the current parameters, as a pickle does; so fit again after
        ``set_params``. A `random_state` that is not an int is not kept.

        Raises
        ------
        ValueError
            If a parameter is a Python callable, which a file cannot hold, or if a parameter has
            been set to a value that `fit` would refuse.
        OSError
            If the file cannot be written. The message names the file.
        """
        check_is_fitted(self)
        write_file(path, self._file_kind, *self._contents())

    def _known_sums(self) -> ColumnSums | None:
        """Return what the fit found about the columns, unless the weights were changed since."""
        sums = self._column_sums
        return sums if sums is not None and np.array_equal(sums.coef, self.coef_) else None

    def _contents(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return the arrays and settings of a model file.

        Weights of a prior are part of `coef_`. A prior whose scores are added is kept as a model
        within the model.
        """
        chain = Chain.of(self.feature_map_)
        map_arrays, map_settings = describe_map(chain.then)
        arrays = {"coef_": self.coef_, **map_arrays}
        if (sums := self._known_sums()) is not None:
            arrays["variances"] = sums.squares / sums.weight
            arrays["covariances"] = sums.products / sums.weight
        if chain.fill is not None:
            arrays["fill_values"] = chain.fill.fill_
        if chain.inputs is not None:
            arrays |= chain.inputs.arrays
        names = ("uses_qid_", "n_features_in_", "form_")
        settings = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if hasattr(self, "feature_names_in_"):
            settings["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        parameters = self._parameters_to_save()
        parameters |= {"feature_map": map_settings, "fitted": settings}
        parameters["inputs"] = chain.kind
        value = None if chain.fill is None else chain.fill.value
        parameters["missing"] = value if isinstance(value, str) else None
        parameters.pop("prior", None)
        constraint = parameters.pop("constraint", None)
        if constraint is not None:
            parameters["constraint"] = constraint.in_file()
        if self.prior_ is not None:
            if not isinstance(self.prior_, LinearRanker):
                raise ValueError(
                    f"prior is a {type(self.prior_).__name__}, which a file cannot hold without "
                    "running code when it is loaded: rankers of this package can be saved"
                )
            of_prior, settings_of_prior = self.prior_._contents()
            arrays |= {f"prior.{name}": array for name, array in of_prior.items()}
            parameters["prior"] = {"kind": self.prior_._file_kind, "settings": settings_of_prior}
        return arrays, parameters

    def _parameters_to_save(self) -> dict[str, Any]:
        """Return the parameters of the class that a model file names, as JSON has them.

        What a search has chosen takes the place of what it chose from, and the loss of the fit that
        of a parameter that was changed since.
        """
        fitted, parameters = vars(self), {}
        for name in ranker_called(self._file_kind)._get_param_names():
            kept = f"{name}_" if name in CHOSEN else f"_{name}"
            if kept in fitted or hasattr(self, name):
                parameters[name] = fitted.get(kept, getattr(self, name, None))
        if "pairs" in parameters:
            parameters["pairs"] = Pairs.of(parameters["pairs"], self._scope).in_file()
        if not isinstance(parameters.get("random_state"), Integral):
            parameters |= {"random_state": None} if "random_state" in parameters else {}
        return parameters


class LinearSearch(LinearRanker):
    """The base class of searches, which choose settings by held-out scores."""

    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        validation: Validation = None,
    ) -> Self:
        """Score every combination of settings on held-out rows, and fit the best to all rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), or table of `scan`
            As in `RankRLS.fit`. The features of a table are read once more, to score the rows that
            are held out; `cv` says how.
        y, qid, sample_weight, query_weight, offset :
            As in `RankRLS.fit`. For `Clicks`, `scoring` is "ips_dcg@10" if it is None, which counts
            clicks as the fit does: clicks that are held out have the same bias as others.
        groups : array-like of shape (n_rows,), any hashable type, or None
            Ids of what is held out together, if that is larger than a query: days, sellers, judges,
            all impressions of a text. Pairs are formed within queries all the same. No group may
            cut a query. ``cv=None`` then holds every group out in turn where it would hold out
            every query, and folds are folds of groups. `cv` of a search says more. Without query
            ids, if a fit does not depend on them, the metric takes groups for queries. Groups say
            nothing beside a validation set, which is what is held out.
        validation : (X, y), (X, y, qid) or (X, y, qid, offset), table of `scan`, or None
            A validation set, such as a `LetorData` of `load_letor_folds`. Its rows are held out,
            and `cv` must then be None. It needs query ids if `fit` gets `qid`, and offsets if `fit`
            gets `offset`. Its y are `Clicks`, or `Preferences` of its own rows, if those of `fit`
            are. All its rows have weight 1. If X is a table, it is a table with the same features,
            whose weights count in the mean over queries.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter is not as described, if `scoring` cannot take the labels, if
            `cv` makes no splits, or if no query is left to fit to.

        Warns
        -----
        UserWarning
            As in `RankRLS.fit`.
        """
        info = RowInfo(qid, sample_weight, query_weight, offset, groups)
        return self._fit(X, y, info, validation)

    @cached_property
    def cv_results_(self) -> dict[str, Any]:
        """The table of all models, which is made when it is asked for."""
        return self._part("_results", "cv_results_").table()

    @cached_property
    def held_out_(self) -> Vector:
        """The scores of held-out rows by the best model, which are made when they are asked for."""
        return self._part("_held", "held_out_").of_rows()

    @cached_property
    def per_query_(self) -> dict[str, Any]:
        """The metric of every query, which is a table that is made when it is asked for."""
        return self._part("_held", "per_query_").per_query()

    def _part(self, name: str, wanted: str) -> Any:
        """Return what an attribute is made of. It is an AttributeError before a fit."""
        if name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {wanted!r}")
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy or a file, which has the tables and not their parts."""
        made: dict[str, Any] = {}
        state = super().__getstate__()
        if "_results" in state:
            made["cv_results_"] = self.cv_results_
        if "_held" in state:
            made |= {"held_out_": self.held_out_, "per_query_": self.per_query_}
        parts = ("_results", "_held")
        return {name: one for name, one in state.items() if name not in parts} | made

    def to_frame(self) -> Any:
        """Return `cv_results_` as a frame of pandas, which must be installed, the best row first.

        Raises
        ------
        NotFittedError
            If the search was not fitted.
        """
        check_is_fitted(self)
        import pandas

        results = {name: column for name, column in self.cv_results_.items() if name != "params"}
        frame = pandas.DataFrame(results)
        return frame.sort_values("rank_test_score", kind="stable", ignore_index=True)
