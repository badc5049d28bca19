"""`fit_many` fits one model to each of many data sets."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning

from pairgram._support.checks import ArgumentError, warn_caller
from pairgram._support.row_warnings import (
    Heard,
    warn_of_empty_columns,
    without_row_warnings,
)
from pairgram.data.queries import one_query_meant
from pairgram.rankers.batch_fit import BatchFit, check_fallback, collected
from pairgram.rankers.data_sets import DataSets
from pairgram.rankers.prior import frozen
from pairgram.solvers.group_fits import SOLVED, UNSOLVED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairgram._support.types import Estimator, RowsLike

# A loop over more data sets than this is told.
MANY_ALONE = 100


def fit_many(
    estimator: Estimator,
    X: RowsLike | Sequence[Any],
    y: ArrayLike | str | None = None,
    *,
    by: ArrayLike | str | None = None,
    qid: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    sample_weight: ArrayLike | str | None = None,
    query_weight: ArrayLike | str | None = None,
    prior: Estimator | ArrayLike | None = None,
    fallback: BaseEstimator | float | None = None,
) -> BatchFit:
    """Fit a model to each of many data sets: users, shops, assays, targets.

    Small data sets are fitted by one call of compiled code, so that Python does no work for each.

    Parameters
    ----------
    estimator : estimator
        It is cloned and not changed.
    X : array-like, frame or CSR matrix of shape (n_rows, n_features); or list of (X, y[, qid])
        The rows of all data sets, in any order, or a list of data sets, whose arrays are not
        copied.
    y : array-like of shape (n_rows,) or (n_rows, n_targets), or the name of a column of X
        Labels. With several targets, each has a model of its own, and NaN means that a row was not
        measured for it. A list of data sets has labels of its own, so y is then None.
    by : array-like of shape (n_rows,), any hashable type, or the name of a column of X
        The key of every row, such as a user. Rows with equal keys are one data set. For a list it
        has the keys of the data sets, by default their numbers; for several targets it is None.
    qid, groups, sample_weight, query_weight : array-like of shape (n_rows,), or names of columns
        As in `RankRLS.fit` and `RankRLSCV.fit`. Equal ids of different keys are different queries.
        Without `qid`, all rows of a key are one query. Columns of a frame that are not named are
        features.
    prior : fitted ranker, array-like of shape (n_features,), or None
        What every fit starts from, such as a model of all rows; the parameter `prior` of the
        estimator.
    fallback : fitted estimator, float or None, default=None
        What scores rows whose key has no model in `BatchFit.predict`. None takes a `prior` that is
        a model.

    Returns
    -------
    BatchFit
        Its `errors_` say why some keys have no model.

    Raises
    ------
    ValueError
        If an argument is not as described, or if no data set could be fitted and there is no
        `fallback`.
    TypeError
        If the estimator, the prior or the fallback is of another kind.

    Warns
    -----
    FitFailedWarning
        If some data sets could not be fitted. The message has the first reason.

    Notes
    -----
    Compiled code fits `RankRLS`, `RankSVM`, `PointwiseELM` and `PairwiseELM` without a kernel,
    ``scale``, constraints or a map that is fitted to rows, to rows of which a data set has at most
    2^19 feature values, zeros counted, and at most 256 rows or 256 features; for `RankSVM` 2^17
    values, 4,096 rows and 256 features. It also fits the searches of these, with every query or
    group held out, or in folds: ``cv`` is None, a number, or a `QueryKFold` that is not shuffled or
    has a number as `random_state`. For `RankRLSCV`, `PointwiseELMCV` and `PairwiseELMCV` the
    spreads of columns must then differ less than some 60,000 times, and data sets that are one
    query need pairs None, or "with_ties" without a prior. Nodes and other drawn maps are drawn once
    for all. A model has the bits of a fit of its rows alone, but for several targets, where it
    differs by rounding; rows of a list are all float64 if one is. Other models are fitted one by
    one.

    Examples
    --------
    A model for every user, whose rows may come in any order:

    >>> from pairgram import RankRLS, fit_many, make_ranking
    >>> X, y, user = make_ranking(100, 30, random_state=0)
    >>> batch = fit_many(RankRLS(), X, y, by=user)
    >>> batch
    <BatchFit of 100 models, 0 failed>
    >>> batch.coef_.shape, batch.predict(X, user).shape
    ((100, 20), (3000,))
    >>> model = batch[7]

    The same of a frame, by the names of its columns:

    >>> import pandas
    >>> frame = pandas.DataFrame(X).rename(columns=str).assign(user=user, rating=y)
    >>> fit_many(RankRLS(), frame, "rating", by="user").keys[:3].tolist()
    [0, 1, 2]
    """
    for method in ("fit", "get_params"):
        if isinstance(estimator, type) or not hasattr(estimator, method):
            raise TypeError(f"estimator must be an estimator, such as RankRLS(), got {estimator!r}")
    told: dict[str, Any] = {
        "qid": qid,
        "groups": groups,
        "sample_weight": sample_weight,
        "query_weight": query_weight,
    }
    sets = DataSets.of(X, y, by, told)
    model: Any = clone(estimator)
    if prior is not None:
        if "prior" not in model.get_params(deep=False):
            kind = type(model).__name__
            raise ValueError(f"prior must be None: {kind} has no such parameter")
        if hasattr(prior, "predict") and not isinstance(prior, type):
            fallback = prior if fallback is None else fallback
        model.set_params(prior=frozen(prior))
    if fallback is not None:
        check_fallback(fallback, sets.names)
    batch = _fitted(model, sets, fallback)
    failed = np.flatnonzero(batch.errors_.astype(bool))
    if len(failed):
        first = int(failed[0])
        message = (
            f"{len(failed)} of {len(batch)} data sets have no model, the first is that of key "
            f"{batch.keys[first : first + 1].tolist()[0]!r}: {batch.errors_[first]}"
        )
        if len(failed) == len(batch) and fallback is None:
            raise ValueError(message)
        warnings.warn(message, FitFailedWarning, stacklevel=2)
    return batch


def _fitted(estimator: Any, sets: DataSets, fallback: BaseEstimator | float | None) -> BatchFit:
    """Fit a clone of the estimator to every set and target."""
    own = type(estimator).fit.__module__.startswith("pairgram.")  # and so not that of a subclass
    found = estimator._spec().fit_sets(sets) if own and hasattr(estimator, "_spec") else None
    n_models = len(sets.keys)
    errors = np.full(n_models, None, dtype=object)
    fitted: dict[int, Any] = {}
    states = np.full(n_models, UNSOLVED) if found is None else found.states
    if found is None and n_models > MANY_ALONE:
        kind = type(estimator).__name__
        warn_caller(
            f"fit_many fits {kind} by a loop over {n_models} data sets: compiled code takes "
            "RankRLS, RankSVM, extreme learning machines and their searches, without kernel, "
            "scale, constraints or a map that is fitted to rows",
            UserWarning,
        )
    left = states != SOLVED
    alone = sets.each_target() if left.any() else sets
    sizes = alone.n_rows_of_models
    for state, reason in (found.reasons if found else {}).items():
        known = states == state
        left &= ~known
        for size in np.unique(sizes[known]).tolist():
            errors[known & (sizes == size)] = _said(reason(size))
    heard: Heard = {}
    for number in np.flatnonzero(left).tolist():
        arguments = alone.arguments(number)
        with one_query_meant(), without_row_warnings(heard):
            try:
                fitted[number] = clone(estimator).fit(**arguments)
            except Exception as error:
                errors[number] = _said(error)
    _tell(heard)
    if found is not None and len(fitted) > MANY_ALONE:
        warn_caller(
            f"fit_many has fitted {len(fitted)} of {n_models} models by a loop: its notes say what "
            "compiled code takes",
            UserWarning,
        )
    if found is None:
        models = collected(None, None, {}, fitted, n_models)
    else:
        first = copy.copy(estimator)
        vars(first).update(found.shared)
        models = collected(first, found.coefs, found.own, fitted, n_models)
    return BatchFit(sets.keys, models, errors, fallback)


def _tell(heard: Heard) -> None:
    """Warn once of each kind of what fits would have said of rows."""
    empty = sorted(kind for kind in heard if isinstance(kind, tuple))
    if empty:
        warn_of_empty_columns([name for name, _ in empty], empty[0][1], " of some data sets")
    for kind, message in heard.items():
        if kind not in empty:
            warn_caller(f"of some data sets: {message}", UserWarning)


def _said(error: Exception) -> str:
    """Return the text of an error with its class, as in a traceback."""
    kind = ValueError if type(error) is ArgumentError else type(error)
    return f"{kind.__name__}: {error}"
