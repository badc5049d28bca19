"""`load_model` reads fitted models from files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

import pairgram
from pairgram.feature_maps.known import restore_map
from pairgram.inputs.fitted import restore_inputs
from pairgram.model_files.kinds import MODELS, arrays_of_prior
from pairgram.model_files.read_write import read_file
from pairgram.rankers.base import LinearRanker
from pairgram.rankers.column_weights import ColumnSums

__all__ = ["load_model", "restore_model"]


def load_model(path: str | os.PathLike[str]) -> LinearRanker:
    """Read a model that `save` wrote. Loading runs no code from the file.

    Returns
    -------
    RankRLS, MPRank, LSSVR, PointwiseELM, PairwiseELM, ELMRank or RankSVM
        The fitted model. A search, such as `RankRLSCV`, comes back as the model that it chose.

    Raises
    ------
    ValueError
        If the file is not a pairgram model, is damaged, or has a setting or an array that `save`
        would not write. The message names the file and what is wrong.
    OSError
        If the file cannot be read.
    """
    return restore_model(*read_file(path, tuple(MODELS)))


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
    inputs = settings.get("inputs")
    estimator = getattr(pairgram, kind)
    if "feature_map" in estimator._get_param_names() and settings.get("kernel") is None:
        settings["feature_map"] = feature_map
    model: LinearRanker = estimator(**settings)
    model.coef_, model.feature_map_ = arrays["coef_"], feature_map
    if "variances" in arrays:
        model._column_sums = ColumnSums(arrays["variances"], arrays["covariances"], 1.0)
    model.prior_ = prior
    model.inputs_ = None if inputs is None else restore_inputs(inputs, arrays)
    names = fitted.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model
