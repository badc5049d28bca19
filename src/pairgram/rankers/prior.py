"""`Prior`: what a fit starts from, weights or a fitted model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import real_array, without_names
from pairgram._support.checks import ArgumentError, Vector, not_finite, verbatim
from pairgram.data.dataset import RankingData
from pairgram.features.feature_map import same_map
from pairgram.features.row_values import Chain
from pairgram.rankers.scores import checked_rows

if TYPE_CHECKING:
    from pairgram._support.types import Estimator, RowsLike, Transformer


def frozen(prior: object) -> Any:
    """Return a fitted model as a FrozenEstimator, and any other prior as it is.

    A clone of a model is not fitted, but a clone of a FrozenEstimator is the same object.
    """
    if not hasattr(prior, "fit") or isinstance(prior, (type, FrozenEstimator)):
        return prior
    try:
        check_is_fitted(prior)
    except NotFittedError:
        return prior
    return FrozenEstimator(prior)


class Prior(NamedTuple):
    """What the parameter `prior` says.

    Attributes
    ----------
    coef : ndarray of shape (n_features,), float64, or None
        Weights of the features of the new model. Its own weights are then a sum with these.
    model : estimator or None
        The fitted model that was frozen. Without `coef`, its scores are added to those of the new
        model.
    """

    coef: Vector | None
    model: Any

    @property
    def kept(self) -> Any:
        """The model that `predict` adds to, or None if its weights are part of the new model."""
        return self.model if self.coef is None else None

    @classmethod
    def of(
        cls, prior: Estimator | ArrayLike | None, feature_map: Transformer | None, no_columns: str
    ) -> Prior:
        """Read the parameter.

        Parameters
        ----------
        prior : array-like of shape (n_features,), fitted model or FrozenEstimator
        feature_map : fitted transformer or None
            The map of the new model, its inputs included.
        no_columns : str
            Why the new model has no columns that weights could belong to; "" if it has.

        Raises
        ------
        ValueError
            If the prior is none of these, or if it is weights and there are no columns.
        TypeError
            If the frozen estimator has no method `predict`.
        """
        prior = frozen(prior)
        if isinstance(prior, FrozenEstimator):
            model = prior.estimator
            if not callable(getattr(model, "predict", None)):
                raise TypeError(f"prior must have predict, got a frozen {type(model).__name__}")
            if "coef_" not in vars(model):  # the check takes as long as a small fit
                try:
                    check_is_fitted(model)
                except NotFittedError as error:
                    raise ArgumentError("prior", f": {verbatim(error)}") from None
            linear = not no_columns and getattr(model, "_is_linear", False)
            own = Chain.of(getattr(model, "feature_map_", None)).after_fill
            if linear and same_map(own, feature_map):
                return cls(model.coef_, model)
            return cls(None, model)
        if hasattr(prior, "fit"):
            raise ArgumentError(
                "prior",
                f": this {type(prior).__name__} is not fitted: fit it before; in a grid of "
                "settings, whose values are cloned, give FrozenEstimator(model), of sklearn.frozen",
            )
        if isinstance(prior, str):
            raise ArgumentError(
                "prior",
                f"must be a fitted model: give load_model({verbatim(repr(prior))})",
            )
        if np.ndim(prior) != 1:
            raise ArgumentError(
                "prior",
                "must be None, weights of shape (n_features,), or a fitted model, got "
                f"{type(prior).__name__}",
            )
        if no_columns:
            raise ArgumentError(
                "prior",
                f"must be a fitted model with {no_columns}, got weights: there are "
                "no fixed columns that they could belong to",
            )
        coef = real_array(prior, "prior")
        if (column := not_finite(coef)) is not None:
            raise ArgumentError(
                "prior",
                f"must not hold NaN or infinity, got {coef[column]} for {{place}}",
                column=column,
            )
        return cls(coef, None)

    def added_to(self, models: dict[str, Any]) -> dict[str, Any]:
        """Return fitted weights by name with those of the prior, if it has some."""
        if self.coef is None:
            return models
        models = {name: model + self.coef for name, model in models.items()}
        return models | {"_column_sums": None}  # they were those of the difference alone

    def of_filled(self, names: Iterable[Any] | None, what: str = "X") -> Prior:
        """Return a prior that scores arrays, whose columns have these names, or none.

        Raises
        ------
        ValueError
            If the prior knows its columns by other names. The message calls the rows `what`.
        """
        own = getattr(self.model, "feature_names_in_", None)
        found = None if names is None else list(names)
        if own is not None and found not in (None, list(own)):
            raise ArgumentError(
                "prior", verbatim(f": {what} must have its features, {list(own)}, got {found}")
            )
        return self._replace(model=without_names(self.model))

    def scores(self, X: RowsLike, data: RankingData) -> Vector:
        """Return the scores of rows, (n_rows,), float64.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_inputs)
            The rows as the caller gave them.
        data : RankingData
            The same rows after the checks, with the feature map of the new model.

        Raises
        ------
        ValueError
            If the prior cannot score the rows, such as because they have other columns.
        """
        try:
            if self.coef is None:
                scores = self.model.predict(X)
            else:
                if self.model is not None:
                    checked_rows(self.model, X)  # the names and the number of columns
                scores = self._of_columns(data)
        except ValueError as error:
            if getattr(error, "parameter", None) == "prior":
                raise
            found = getattr(error, "found", None)
            raise ArgumentError("prior", f": {verbatim(error)}", found=found) from error
        scores = real_array(scores, "the scores of prior")
        if scores.shape != (len(data.y),) or not np.isfinite(scores).all():
            data.require_finite_features()
            raise ArgumentError("prior", "must give every row one finite score, but it does not")
        return scores

    def _of_columns(self, data: RankingData) -> Vector:
        assert self.coef is not None
        if len(self.coef) != data.n_features:
            raise ArgumentError(
                "prior",
                f"must have a weight for each of {data.n_features} features, got {len(self.coef)}",
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(data.scores(slice(None), self.coef[None])[0])
