"""`probability_preferred`: how likely each of two rows is to be preferred to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from pairgram._support.checks import ArgumentError, Vector

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike


def probability_preferred(model: BaseEstimator, Xa: RowsLike, Xb: RowsLike) -> Vector:
    """Return the probability that each row of Xa is preferred to the same row of Xb.

    Parameters
    ----------
    model : RankSVM or RankSVMCV
        Fitted with ``loss="logistic"``, so that differences of scores are log-odds.
    Xa, Xb : array-like or CSR matrix of shape (n_rows, n_features)

    Returns
    -------
    ndarray of shape (n_rows,), float64
        ``1 / (1 + exp(−(f_a − f_b)))`` with the scores f. They are probabilities if C suits the
        data: choose it by ``RankSVMCV(loss="logistic", scoring="log_loss")``.

    Raises
    ------
    ValueError
        If the loss is not "logistic", or if Xa and Xb have different numbers of rows.

    Examples
    --------
    >>> from pairgram import Preferences, RankSVM, probability_preferred
    >>> X = [[0.0], [1.0], [2.0]]
    >>> y = Preferences([1, 2, 2, 0], [0, 1, 0, 1])
    >>> model = RankSVM(loss="logistic").fit(X, y)
    >>> probability_preferred(model, [[2.0], [0.0]], [[0.0], [2.0]]).round(2)
    array([0.76, 0.24])
    """
    check_is_fitted(model)
    loss = getattr(model, "_loss", getattr(model, "loss", None))  # of the fit, or of a file
    if loss != "logistic":
        raise ArgumentError(
            "model",
            f"must be a RankSVM with loss='logistic', got loss={loss!r}, whose scores are no "
            "log-odds",
        )
    a = model.predict(Xa).astype(np.float64)
    b = model.predict(Xb)
    if len(a) != len(b):
        raise ArgumentError("Xb", f"must have the {len(a)} rows of Xa, got {len(b)}")
    return np.asarray(expit(a - b))
