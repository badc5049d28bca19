"""`save_model` writes fitted models and pipelines to files, and `load_model` reads them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pairgram._support.files import shown
from pairgram.features.base import restore_map
from pairgram.features.inputs import restore_inputs
from pairgram.files.kinds import MODELS, PIPELINES, arrays_of_prior
from pairgram.files.read_write import check_setting, read_file, write_file
from pairgram.files.transformer import WHOLE, OtherVersionError, Place, parameters_of
from pairgram.files.transformers import by_owner, describe_transformer, restore_transformer
from pairgram.rankers.base import LinearRanker
from pairgram.rankers.known import ranker_called
from pairgram.solvers.posterior import Posterior
from pairgram.solvers.ridge_path import ColumnSums

Contents = dict[str, NDArray[Any]]
Record = dict[str, Any]


def describe_pipeline(pipeline: Pipeline) -> tuple[Contents, Record]:
    """Return the arrays and settings of the file of a fitted pipeline.

    Raises
    ------
    ValueError
        If the last step is no ranker of this package, or if a transformer is none that a file can
        hold. The message names the step.
    """
    name, model = pipeline.steps[-1]
    if not isinstance(model, LinearRanker):
        raise ValueError(
            f"step {name!r} is a {type(model).__name__}, and the last step must be a ranker of "
            "pairgram for the pipeline to be saved"
        )
    check_is_fitted(model)
    arrays: Contents = {}
    before = Pipeline(pipeline.steps[:-1], transform_input=None)
    before.set_params(**parameters_of(pipeline, "steps"))
    record = describe_transformer(before, Place("transformers", WHOLE, arrays))
    of_model, settings = model._contents()
    for key, value in settings.items():
        check_setting(f"step {name!r}: {key}", value)
    arrays |= {f"model.{key}": array for key, array in of_model.items()}
    return arrays, {
        "feature_map": None,
        "scikit-learn": sklearn.__version__,
        "transformers": record,
        "name": name,
        "model": {"kind": model._file_kind, "settings": settings},
    }


def restore_pipeline(arrays: Contents, settings: Record, model: LinearRanker) -> Pipeline:
    """Make the pipeline of a file, given its model. The contents have been checked.

    Raises
    ------
    ValueError
        If the installed version of scikit-learn has other parameters or fitted attributes than the
        version that wrote the file.
    """
    try:
        owned = by_owner(arrays)
        pipeline: Pipeline = restore_transformer(settings["transformers"], "transformers", owned)
    except OtherVersionError as error:
        raise ValueError(
            f"{error} (the file was written with scikit-learn {settings['scikit-learn'][:40]!r}, "
            f"this is {sklearn.__version__})"
        ) from None
    pipeline.steps.append((settings["name"], model))
    return pipeline


def save_model(model: LinearRanker | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker, or a pipeline of transformers and a ranker, to a safetensors file.

    The file holds no code. It is written completely or not at all. `load_model` reads it. The file
    of a ranker is the one that its method `save` writes.

    Parameters
    ----------
    model : ranker or sklearn.pipeline.Pipeline
        The steps of a pipeline before its ranker may be StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler, SimpleImputer, OneHotEncoder, OrdinalEncoder, TargetEncoder,
        KBinsDiscretizer, PolynomialFeatures, FunctionTransformer of NumPy's log1p, log and sqrt, a
        ColumnTransformer or Pipeline of these, and "passthrough". A ColumnTransformer may also have
        "drop". A search as the last step, such as `RankRLSCV`, comes back as the model that it
        chose.
    path : str or path-like

    Raises
    ------
    TypeError
        If `model` is neither a ranker nor a Pipeline.
    ValueError
        If a step is another transformer, or has a parameter that a file cannot hold, such as
        another function or a cache; or if the ranker cannot be saved. The message names the step.
    OSError
        If the file cannot be written. The message names the file.

    Notes
    -----
    The columns of a ColumnTransformer come back as lists of the names or numbers of those that its
    fit selected, whether they were given by a slice, a mask or a function.

    The file may be read with another version of scikit-learn. If that version has other parameters
    or fitted attributes, `load_model` raises a ValueError that names them.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import pairgram
    >>> X, y, _ = pairgram.make_ranking(10, 5, 3, random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), pairgram.RankRLS()).fit(X, y)
    >>> pairgram.save_model(pipeline, "pipeline.safetensors")
    >>> loaded = pairgram.load_model("pipeline.safetensors")
    >>> bool((loaded.predict(X) == pipeline.predict(X)).all())
    True
    """
    if isinstance(model, LinearRanker):
        model.save(path)
        return
    if not isinstance(model, Pipeline):
        searched = hasattr(model, "best_estimator_") or hasattr(model, "estimator")
        hint = ": give its best_estimator_" if searched else ""
        raise TypeError(
            f"model must be a ranker or a Pipeline that ends in one, got {type(model).__name__}"
            f"{hint}"
        )
    if type(model) is not Pipeline:
        raise ValueError(
            f"model is a {type(model).__name__}, a class that a file cannot hold without running "
            "code when it is loaded: want a Pipeline of scikit-learn itself"
        )
    write_file(path, "Pipeline", *describe_pipeline(model))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` or `save_model` wrote. Loading runs no code from the file.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    RankRLS, PointwiseELM, PairwiseELM, ELMRank, RankSVM or sklearn.pipeline.Pipeline
        The fitted model. A search, such as `RankRLSCV`, comes back as the model that it chose.

    Raises
    ------
    ValueError
        If the file is not a pairgram model, is damaged, or has a setting or an array that `save`
        would not write; or if it holds a transformer that the installed version of scikit-learn
        cannot make. The message names the file and what is wrong.
    OSError
        If the file cannot be read.
    """
    kind, arrays, settings = read_file(path, (*MODELS, *PIPELINES))
    if kind in MODELS:
        return restore_model(kind, arrays, settings)
    of_model = settings["model"]
    model = restore_model(of_model["kind"], part_of(arrays, "model"), of_model["settings"])
    try:
        return restore_pipeline(arrays, settings, model)
    except ValueError as error:
        raise ValueError(f"{shown(path)}: {error}") from None


def part_of(arrays: Contents, name: str) -> Contents:
    """Return the arrays of one of the models of a file."""
    start = f"{name}."
    return {key.removeprefix(start): a for key, a in arrays.items() if key.startswith(start)}


def restore_model(
    kind: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
) -> LinearRanker:
    """Make the model that `LinearRanker._contents` described. The contents have been checked."""
    of_prior = settings.pop("prior", None)
    prior = None
    if of_prior is not None:
        prior = restore_model(of_prior["kind"], arrays_of_prior(arrays), of_prior["settings"])
        settings["prior"] = FrozenEstimator(prior)
    fitted = settings.pop("fitted")
    feature_map = restore_map(arrays, settings.pop("feature_map"))
    inputs = settings["inputs"]
    estimator = ranker_called(kind)
    if "feature_map" in estimator._get_param_names() and settings.get("kernel") is None:
        settings["feature_map"] = feature_map
    model: LinearRanker = estimator(**settings)
    model.coef_, model.feature_map_ = arrays["coef_"], feature_map
    if "variances" in arrays:
        sums = arrays["variances"], arrays["covariances"], 1.0
        model._column_sums = ColumnSums(*sums, model.coef_.copy())
    if "loss" in settings:
        model._loss = settings["loss"]  # that of the fit
    model.prior_, model.fill_values_ = prior, arrays.get("fill_values")
    of_posterior = fitted.pop("posterior", None)
    if of_posterior is not None:
        model.posterior_ = Posterior.of_file(arrays, of_posterior)
    names = fitted.pop("feature_names_in_", None)
    if names is not None:
        names = model.feature_names_in_ = np.array(names, dtype=object)
    if inputs is not None:
        model.inputs_ = replace(
            restore_inputs(inputs, arrays, fitted["n_features_in_"]), feature_names_in_=names
        )
    for name, value in fitted.items():
        setattr(model, name, value)
    return model
