"""`fit_many` fits one model to each of many data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning

from pairgram._support.checks import ArgumentError, require_finite, warn_caller
from pairgram._support.row_warnings import (
    Heard,
    warn_of_empty_columns,
    without_row_warnings,
)
from pairgram.data.queries import one_query_meant
from pairgram.model_selection.judge import one_row_error
from pairgram.rankers.batch_fit import BatchFit, Models, check_fallback
from pairgram.rankers.data_sets import DataSets, sets_of_list, sets_of_rows
from pairgram.rankers.prior import frozen
from pairgram.rankers.rank_svm import SvmSpec
from pairgram.rankers.ridge import RidgeSpec
from pairgram.solvers.group_fits import NO_PAIRS, SOLVED, UNSOLVED, RowSets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairgram._support.types import Estimator, RowsLike

# A loop over more data sets than this is told.
MANY_ALONE = 100
_NOT_COMPILED = (
    "compiled code takes RankRLS, RankSVM, extreme learning machines and their searches, without "
    "kernel, scale, constraints or a map that is fitted to rows"
)


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
    values, 4,096 rows and 256 features. Sparse rows of several targets have at most 2^19 values
    together. It also fits the searches of these, with every query or group held out, or in folds:
    ``cv`` is None, a number, or a `QueryKFold` that is not shuffled or has a number as
    `random_state`. For `RankRLSCV`, `PointwiseELMCV` and `PairwiseELMCV` the spreads of columns
    must then differ less than some 60,000 times, of more than 48 columns no query may have nearly
    all of one, and data sets that are one query need pairs None, or "with_ties" without a prior.
    Nodes and other drawn maps are drawn once for all. A model has the bits of a fit of its rows
    alone, but for several targets, where it differs by rounding, or by its `tol` for RankSVM; rows
    of a list are all float64 if one is. A search has its best value and `best_score_`; `scores_`,
    `cv_results_` and the rest of its table are those of a fit of these rows alone. Other models are
    fitted one by one.

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
    model: Any = clone(estimator)
    if prior is not None:
        fallback = _started(model, prior, fallback)
    own = type(model).fit.__module__.startswith("pairgram.")  # and so not that of a subclass
    spec = model._spec() if own and hasattr(model, "_spec") else None
    if spec is not None and not spec.takes_sets:
        spec = None
    weights = {"sample_weight": sample_weight, "query_weight": query_weight}
    given = {"qid": qid, "groups": groups, **weights}
    told = {name: value for name, value in given.items() if value is not None}
    if isinstance(X, (list, tuple)) and y is None:
        sets = sets_of_list(X, by, told)
    else:
        sets = sets_of_rows(X, y, by, told, spec)
    if fallback is not None:
        check_fallback(fallback, sets.names)
    found, why = None, ""
    if spec is not None and sets.blocks:
        found, why = _compiled(model, spec, sets)
    if found is None or (found["state"] != SOLVED).any():
        return _completed(model, sets, spec, found, fallback, why)
    n_models = len(found.pop("state"))
    errors = np.full(n_models, None, dtype=object)
    return BatchFit(sets.keys, Models(n_models, model, found, {}), errors, fallback)


def _started(model: BaseEstimator, prior: Any, fallback: Any) -> Any:
    """Give a model its prior, and return the fallback: by default a prior that is a model."""
    if "prior" not in model.get_params(deep=False):
        kind = type(model).__name__
        raise ValueError(f"prior must be None: {kind} has no such parameter")
    model.set_params(prior=frozen(prior))
    is_model = hasattr(prior, "predict") and not isinstance(prior, type)
    return prior if fallback is None and is_model else fallback


def _compiled(
    model: BaseEstimator, spec: RidgeSpec | SvmSpec, sets: DataSets
) -> tuple[dict[str, NDArray[Any]] | None, str]:
    """Return the "state" and the attributes of the models of all keys, or None and why, or "".

    What all models share becomes attributes of `model`.
    """
    given: RowSets | None
    given, rows = sets.row_sets(spec.joins_all_rows), spec.rows
    origin, shared = None, {"feature_map_": None, "prior_": None}
    if rows.ways[0].then is not None or rows.prior is not None:
        given, origin, shared = rows.of_sets(given, sets.names)
    if given is None:
        return None, ""
    try:
        if spec.n_searched or given.copies_rows:
            found = given.by_parts(spec.n_searched, spec.models_of_sets)
        else:
            found = spec.models_of_sets(given)
    except ValueError as error:  # fits alone tell whose labels are wrong
        return None, str(error)
    if found is None:
        return None, ""
    if origin is not None:
        found["coef_"] = found["coef_"] + origin
    has_ids, n_features = "qid" in sets.told, sets.blocks[0].shape[1]
    vars(model).update(shared, _column_sums=None, uses_qid_=has_ids, n_features_in_=n_features)
    if sets.names is not None:
        model.feature_names_in_ = sets.names
    return {name: values[sets.places[name == "coef_"]] for name, values in found.items()}, ""


def _completed(
    model: BaseEstimator,
    sets: DataSets,
    spec: RidgeSpec | SvmSpec | None,
    found: dict[str, NDArray[Any]] | None,
    fallback: BaseEstimator | float | None,
    why: str,
) -> BatchFit:
    """Fit what compiled code has left by a loop, and tell of sets without a model."""
    n_models, kind = len(sets.keys), type(model).__name__
    errors = np.full(n_models, None, dtype=object)
    if found is None and n_models > MANY_ALONE:
        warn_caller(
            f"fit_many fits {kind} by a loop over {n_models} data sets: {why or _NOT_COMPILED}",
            UserWarning,
        )
    states = np.full(n_models, UNSOLVED) if found is None else found.pop("state")
    alone = sets if sets.alone is None else sets.alone()
    fitted: dict[int, Any] = {}
    heard: Heard = {}
    for number in np.flatnonzero(states != SOLVED).tolist():
        y = alone.labels_of(number)
        try:
            if found and spec and spec.n_searched and len(y) == 1:
                raise one_row_error()
            given = alone.arguments(number)
            if found and spec and np.isfinite(y).all():  # a fit takes longer to tell
                if states[number] == NO_PAIRS:
                    raise spec.no_pairs(len(y))
                if type(given["X"]) is np.ndarray:
                    require_finite(given["X"], "X")
            with one_query_meant(), without_row_warnings(heard):
                fitted[number] = clone(model).fit(**given)
        except TimeoutError:
            raise  # the time is over for all that follow
        except Exception as error:
            name = ValueError if type(error) is ArgumentError else type(error)
            errors[number] = f"{name.__name__}: {error}"
    empty = sorted(one for one in heard if isinstance(one, tuple))
    if empty:
        warn_of_empty_columns([name for name, _ in empty], empty[0][1], " of some data sets")
    for one, message in heard.items():
        if one not in empty:
            warn_caller(f"of some data sets: {message}", UserWarning)
    if found is not None and len(fitted) > MANY_ALONE:
        warn_caller(
            f"fit_many has fitted {len(fitted)} of {n_models} models by a loop: its notes say what "
            "compiled code takes",
            UserWarning,
        )
    failed = np.flatnonzero(errors.astype(bool)).tolist()
    if failed:
        message = (
            f"{len(failed)} of {n_models} data sets have no model, the first is that of key "
            f"{sets.keys[failed[:1]].tolist()[0]!r}: {errors[failed[0]]}"
        )
        if len(failed) == n_models and fallback is None:
            raise ValueError(message)
        warn_caller(message, FitFailedWarning)
    if found is None:
        return BatchFit(sets.keys, Models.of_fits(n_models, fitted), errors, fallback)
    for number, one in fitted.items():
        for attribute, values in found.items():
            values[number] = getattr(one, attribute, np.nan)
    return BatchFit(sets.keys, Models(n_models, model, found, fitted), errors, fallback)
