"""`as_regressor`: a ranker for tools of scikit-learn that take regressors alone."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

__all__ = ["RankerRegressor", "as_regressor"]


class RankerRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A ranker that says it is a regressor; `as_regressor` makes it.

    Parameters
    ----------
    ranker : ranker of this package
        It is cloned before it is fitted.

    Attributes
    ----------
    ranker_ : the fitted ranker
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
        # The columns of the fitted ranker, which tools of scikit-learn look for.
        if name in ("n_features_in_", "feature_names_in_", "coef_") and "ranker_" in vars(self):
            return getattr(self.ranker_, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


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

    Of SHAP, ``LinearExplainer((model.coef_, 0.0), X)`` explains a linear model. In ranking, only
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
