"""`as_regressor`: a ranker for tools of scikit-learn that take regressors alone."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted


class RankerRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A ranker that says it is a regressor; `as_regressor` makes it.

    Parameters
    ----------
    ranker : ranker of this package
        It is cloned before it is fitted.

    Attributes
    ----------
    ranker_ : the fitted ranker
    coef_ : ndarray of shape (n_features,), float64
        The weights of the columns of X, so that ``predict(X)`` is ``X @ coef_ + intercept_`` but
        for rounding. The weights of the ranker itself belong to the columns after `inputs`. Models
        with quantile inputs, a feature map, a kernel or a prior have no such weights: the
        AttributeError says which of them it is.
    intercept_ : float
    """

    __metadata_request__fit = {"qid": True, "sample_weight": True}  # noqa: RUF012

    def __init__(self, ranker: Any) -> None:
        self.ranker = ranker

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit a clone of the ranker; the arguments are those of `RankRLS.fit`."""
        self.ranker_ = clone(self.ranker).fit(X, y, qid=qid, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the scores of rows, shape (n_rows,)."""
        check_is_fitted(self)
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


def _affine(ranker: Any) -> tuple[NDArray[np.float64], float]:
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
    constant = float(getattr(ranker, "intercept_", 0.0))
    if inputs is None:
        return coef, constant
    coef = coef * inputs.factors
    return coef, constant - float(inputs.centre @ coef)


def as_regressor(model: Any) -> RankerRegressor:
    """Return a ranker as a regressor, for tools of scikit-learn that take these alone.

    Such are `PartialDependenceDisplay`, `VotingRegressor` and `StackingRegressor`. A score is no
    estimate of a label: it says only which rows of a query come first. `RegressorMixin.score`, R²,
    therefore says little.

    Parameters
    ----------
    model : ranker of this package
        Fitted or not. What is fitted stays fitted; `fit` of the regressor fits a clone.

    Returns
    -------
    RankerRegressor

    Notes
    -----
    Voting and stacking fit clones to all rows at once. Query ids reach them by scikit-learn's
    metadata routing, ``sklearn.set_config(enable_metadata_routing=True)``, as ``fit(X, y,
    qid=qid)``. They reach the last estimator of a stack too, which must therefore be a ranker. The
    folds of a stack must be of whole queries, ``cv=list(QueryKFold(5).split(X, y, qid))``, because
    the default folds cut queries.

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
