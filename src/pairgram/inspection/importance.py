"""How much a metric falls when a column is shuffled, and models as regressors for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

import pairgram
from pairgram._support.arrays import judged, reads_lists
from pairgram._support.parameters import check_size
from pairgram.data.queries import Queries

if TYPE_CHECKING:
    from pairgram import Metric
    from pairgram._support.types import Estimator, RandomState, RowsLike


class RankerRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A ranker that presents itself to scikit-learn as a regressor; `as_regressor` makes it.

    Parameters
    ----------
    ranker : ranker of this package
        It is cloned before it is fitted.

    Attributes
    ----------
    ranker_ : the fitted ranker
    coef_ : ndarray of shape (n_features,), float64
        The weights of the columns of X: up to rounding, ``predict(X)`` is ``X @ coef_ +
        intercept_``. The weights of the ranker itself belong to the columns after `inputs`. Models
        with quantile inputs, a feature map, a kernel or a model as prior have no such weights: the
        AttributeError names the reason.
    intercept_ : float
        The constant of the scores.
    """

    __metadata_request__fit = {"qid": True, "sample_weight": True}  # noqa: RUF012

    def __init__(self, ranker: BaseEstimator) -> None:
        self.ranker = ranker

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit a clone of the ranker; the arguments are those of `RankRLS.fit`."""
        self.ranker_ = clone(self.ranker).fit(X, y, qid=qid, sample_weight=sample_weight)
        return self

    def predict(self, X: RowsLike) -> NDArray[Any]:
        """Return the scores of rows, (n_rows,); a model with inputs within lists has none."""
        check_is_fitted(self)
        if reads_lists(self.ranker_):
            raise ValueError(
                f"the {type(self.ranker_).__name__} has inputs within lists, and cannot score rows "
                "without their lists, as tools for regressors pass them"
            )
        scores: NDArray[Any] = self.ranker_.predict(X)
        return scores

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ranker_")

    def __getattr__(self, name: str) -> Any:
        # What tools of scikit-learn look for. They may ask before the fit.
        if "ranker_" in vars(self):
            if name in ("n_features_in_", "feature_names_in_"):
                return getattr(self.ranker_, name)
            if name in ("coef_", "intercept_"):
                return _affine(self.ranker_)[name == "intercept_"]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def _affine(ranker: BaseEstimator) -> tuple[NDArray[np.float64], float]:
    """Return the weights of the columns of X, and the constant; or raise an AttributeError."""
    inputs, found = getattr(ranker, "inputs_", None), None
    if not hasattr(ranker, "feature_map_"):
        found = f"is a {type(ranker).__name__}, which is no ranker of this package"
    elif ranker.feature_map_ is not None:
        found = f"has {type(ranker.feature_map_).__name__}"
    elif ranker.prior_ is not None:
        found = f"adds the scores of its prior, a {type(ranker.prior_).__name__}"
    elif inputs is not None and inputs.factors is None:
        found = f"has inputs={inputs.kind!r}"
    if found is not None:
        raise AttributeError(
            "coef_ and intercept_ need a ranker that is linear in the columns of X, and this one "
            f"{found}: contributions(X) of the ranker, if it has it, says what columns contribute"
        )
    coef = np.array(ranker.coef_, np.float64)
    constant = 0.0
    if inputs is None:
        return coef, constant
    coef = coef * inputs.factors
    return coef, constant - float(inputs.centre @ coef)


def as_regressor(model: Estimator) -> RankerRegressor:
    """Return a ranker as a regressor, for tools of scikit-learn that take only regressors.

    Such tools are `PartialDependenceDisplay`, `VotingRegressor` and `StackingRegressor`. A score is
    not an estimate of a label: it only says which rows of a query come first. R², which
    `RegressorMixin.score` returns, therefore means little.

    Parameters
    ----------
    model : ranker of this package
        Fitted or not. A fitted ranker can predict at once; `fit` of the regressor fits a clone.

    Returns
    -------
    RankerRegressor

    Notes
    -----
    Voting and stacking fit clones to all rows at once. To hand over query ids, call
    ``sklearn.set_config(enable_metadata_routing=True)``, and then ``fit(X, y, qid=qid)``. The ids
    reach the final estimator of a stack too, which must therefore be a ranker. Give a stack folds
    of whole queries, ``cv=list(QueryKFold(5).split(X, y, qid))``: the default folds cut queries.

    A ranker that is linear in X gets `coef_` and `intercept_` in units of X, whatever its `inputs`
    scale. SHAP's ``LinearExplainer(as_regressor(model), X)`` is therefore exact. In ranking, only
    the differences of its values between rows of a query matter.

    Examples
    --------
    >>> from sklearn.inspection import partial_dependence
    >>> from pairgram import RankRLS, as_regressor, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> model = as_regressor(RankRLS().fit(X, y, qid=qid))
    >>> partial_dependence(model, X, [0], grid_resolution=5)["average"].shape
    (1, 5)
    """
    regressor = RankerRegressor(model)
    try:
        check_is_fitted(model)
    except NotFittedError:
        return regressor
    regressor.ranker_ = model
    return regressor


def query_permutation_importance(
    model: Estimator,
    X: Any,
    y: ArrayLike,
    *,
    qid: ArrayLike,
    scoring: str | Metric = "ndcg@10",
    n_repeats: int = 5,
    across: bool = False,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Bunch:
    """Measure how much a metric falls when the values of one column are shuffled.

    Values are shuffled within every query. A column that only tells queries apart cannot change a
    ranking, and so has the importance 0. scikit-learn's `permutation_importance` shuffles over all
    rows, and cannot pass query ids to a metric.

    Parameters
    ----------
    model : fitted model with `predict`
        A ranker of this package, or any other model. It predicts once for each column and repeat; a
        linear ranker predicts once in all.
    X : array-like of shape (n_rows, n_features), frame of pandas or polars, or pyarrow table
        Rows that the model was not fitted to. The model gets frames as frames, with their names.
    y : array-like of shape (n_rows,)
        Relevance labels.
    qid : array-like of shape (n_rows,)
        Query ids, of any hashable type.
    scoring : str or Metric, default="ndcg@10"
        As in `evaluate`.
    n_repeats : int ≥ 1, default=5
        How often each column is shuffled.
    across : bool, default=False
        Whether values are shuffled over all rows, instead of within queries.
    random_state : int, RandomState or None, default=None
        Seed or source of the shuffles.
    n_threads : int ≥ 1 or None, default=None
        As in `evaluate`.

    Returns
    -------
    Bunch
        As in scikit-learn: ``importances`` of shape (n_features, n_repeats), by how much the metric
        fell (or rose, if lower is better); ``importances_mean`` and ``importances_std`` of shape
        (n_features,). Also ``score``, the metric without shuffling, and ``feature_names``, a list
        of str, or None for arrays.

    Raises
    ------
    ValueError
        If an argument is not as described, if the metric does not take the labels, or if the model
        does not take X, as when columns stand in another order than in `fit`.

    References
    ----------
    Breiman. Random forests. Machine Learning 45, 2001. §10.

    Examples
    --------
    >>> from pairgram import RankRLS, make_ranking, query_permutation_importance
    >>> X, y, qid = make_ranking(n_features=5, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> found = query_permutation_importance(model, X, y, qid=qid, random_state=0)
    >>> found.importances.shape
    (5, 5)
    """
    check_size("n_repeats", n_repeats)
    if qid is None:
        raise ValueError("qid must be the query ids of the rows, got None")
    metric = pairgram.get_metric(scoring) if isinstance(scoring, str) else scoring
    sign = 1.0 if metric.greater_is_better else -1.0
    rng = check_random_state(random_state)
    # `columns` of pyarrow are no names.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    X = np.asarray(X) if names is None else X
    shape = getattr(X, "shape", "none")  # as of a lazy frame
    if len(shape) != 2:
        raise ValueError(f"X must have shape (n_rows, n_features), got {shape}")
    n_rows, n_features = X.shape
    queries = Queries.make(n_rows, qid=qid)
    query = np.zeros(n_rows, np.int64) if across else queries.index()
    if np.shape(y) != (n_rows,):
        found = np.shape(y)
        raise ValueError(f"y must have a label for each of the {n_rows} rows of X, got {found}")
    together = np.argsort(query, kind="stable")

    def mean(scores: NDArray[Any]) -> float:
        found = pairgram.evaluate(metric, y, scores, qid, n_threads=n_threads)
        return float(next(iter(found.values())))

    own = np.asarray(judged(model, X, qid), np.float64)
    baseline, weights = mean(own), _weights(model, n_features)
    importances = np.empty((n_features, n_repeats))
    order = np.empty(n_rows, np.int64)
    for j in range(n_features):
        values = None if weights is None else np.asarray(_column(X, j), np.float64)
        for repeat in range(n_repeats):
            order[together] = np.lexsort((rng.random_sample(n_rows), query))
            if weights is not None and values is not None:
                scores = own + weights[j] * (values[order] - values)
            else:
                scores = judged(model, _with_shuffled(X, j, order), qid)
            importances[j, repeat] = sign * (baseline - mean(scores))
    return Bunch(
        importances=importances,
        importances_mean=importances.mean(axis=1),
        importances_std=importances.std(axis=1),
        score=baseline,
        feature_names=None if names is None else [str(name) for name in names],
    )


def _weights(model: BaseEstimator, n_features: int) -> NDArray[np.float64] | None:
    """Return the weights of the columns of a linear ranker; None if predictions are needed."""
    plain = (
        hasattr(model, "_file_kind")
        and model.feature_map_ is None
        and model.inputs_ is None
        and model.fill_values_ is None
        and getattr(model, "prior_", None) is None
    )
    weights = np.asarray(model.coef_, np.float64) if plain else None
    return weights if weights is not None and weights.shape == (n_features,) else None


def _column(X: Any, j: int) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    return X.column(j) if hasattr(X, "set_column") else X[:, j]


def _with_shuffled(X: Any, j: int, order: NDArray[np.int64]) -> Any:
    """Return rows with column j in another order. A column of a frame keeps its type."""
    column = _column(X, j)
    if hasattr(X, "isetitem"):  # pandas
        rows = X.copy(deep=False)
        rows.isetitem(j, column.array.take(order))
        return rows
    if hasattr(X, "set_column"):  # pyarrow
        return X.set_column(j, X.field(j), column.take(order))
    if hasattr(X, "replace_column"):  # polars
        return X.clone().replace_column(j, column[order])
    rows = X.copy(order="K")
    rows[:, j] = column[order]
    return rows
