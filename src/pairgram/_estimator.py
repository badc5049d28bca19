"""What estimators and feature maps share: checks of rows, and fits that are whole or not at all."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from pairgram._arrays import naming_columns, readable
from pairgram._checks import require_finite

__all__ = ["Transformer", "WholeFit", "finite_rows"]


class WholeFit:
    """Makes a `fit` that fails leave the estimator as it was, its view of X's columns included."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = _whole(cls.fit)  # type: ignore[attr-defined]


class Transformer(WholeFit, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn knows a feature map as."""


def _whole(fit: Any) -> Any:
    @functools.wraps(fit)
    def fit_or_restore(self: Any, *args: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit_or_restore


def finite_rows(estimator: Any, X: Any, *, reset: bool, sparse: Any = "csr") -> Any:
    """Return X as C-contiguous rows, or CSR, of float64 or float32, without NaN and infinity.

    Parameters
    ----------
    estimator : estimator
    X : array-like or sparse matrix of shape (n_rows, n_features)
    reset : bool
        Whether these rows tell the estimator its features, or must have those that it knows.
    sparse : "csr" or False
        Whether CSR is taken.

    Raises
    ------
    ValueError
        If X is not as described; names the column of NaN and infinity, and the row in a fit:
        rows that know the estimator may come in blocks.
    """
    X = readable(X, "X")
    with naming_columns(X, "X"):
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=sparse,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
    require_finite(X, "X", with_row=reset)
    return X
