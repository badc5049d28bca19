"""Pipelines of scikit-learn's transformers and a ranker, as contents of a model file."""

from __future__ import annotations

from typing import Any

import sklearn
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pairgram.files.read_write import check_setting
from pairgram.files.transformers import (
    OtherVersionError,
    Place,
    by_owner,
    describe_transformer,
    parameters_of,
    restore_transformer,
)
from pairgram.rankers.base import LinearRanker

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
    record = describe_transformer(before, Place("transformers", "step ", arrays))
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
