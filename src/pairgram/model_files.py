"""Fitted models from files."""

from __future__ import annotations

import importlib
import os

import numpy as np

from pairgram.feature_maps import restore_map
from pairgram.linear import LinearRanker
from pairgram.persistence import read_file, written_by

__all__ = ["load_model"]

# The classes whose models files hold, and their modules.
MODELS = {
    "RankRLS": "least_squares",
    "ELMRank": "elm_rank",
    "PairwiseELM": "elm",
    "PointwiseELM": "elm",
    "RankSVM": "rank_svm",
    "MPRank": "presets",
    "LSSVR": "presets",
}


def load_model(path: str | os.PathLike[str]) -> LinearRanker:
    """Read a model that `save` wrote; loading runs no code.

    Returns
    -------
    RankRLS, MPRank, LSSVR, PointwiseELM, PairwiseELM, ELMRank or RankSVM
        Fitted; a search, such as `RankRLSCV`, comes back as the model that it chose, a
        `RankNystroem` as the RankSVM that it is.

    Raises
    ------
    ValueError
        If the file is not a pairgram model, or is damaged.
    """
    kind, arrays, settings = read_file(path, tuple(MODELS))
    fitted = settings.pop("fitted")
    estimator = getattr(importlib.import_module(f"pairgram.{MODELS[kind]}"), kind)
    try:
        feature_map = restore_map(arrays, settings.pop("feature_map"))
        if "feature_map" in estimator._get_param_names() and settings.get("kernel") is None:
            settings["feature_map"] = feature_map
        model: LinearRanker = estimator(**settings)
        model.coef_, model.feature_map_ = arrays["coef_"], feature_map
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: written by pairgram {written_by(path)}, with settings that this version does "
            f"not know: {error}"
        ) from None
    width = fitted["n_features_in_"] if feature_map is None else feature_map._n_features_out
    if model.coef_.shape != (width,):
        raise ValueError(f"{path}: coef_ must have shape ({width},), got {model.coef_.shape}")
    names = fitted.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model
