"""`save_model` writes fitted models and pipelines to files, and `load_model` reads them."""

from __future__ import annotations

import copy
import importlib
import os
from typing import Any
from zipfile import ZIP_DEFLATED

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pairgram._rooms import room_with
from pairgram._support.files import shown
from pairgram.data.pairs import Pairs
from pairgram.features.feature_map import restore_map
from pairgram.features.inputs import FittedInputs
from pairgram.features.row_values import Chain, Fill
from pairgram.files.kinds import MODELS
from pairgram.files.read_write import check_setting, read_file, write_file
from pairgram.rankers.known import ranker_called
from pairgram.rankers.linear_ranker import LinearRanker
from pairgram.solvers.ridge_path import ColumnSums

Contents = dict[str, NDArray[Any]]
Record = dict[str, Any]

# Besides what skops trusts: the types of scikit-learn, NumPy and SciPy that run no code.
TRUSTED = [
    "builtins.object",
    "numpy.dtype",
    "numpy.number",
    "sklearn.compose._column_transformer._RemainderColsList",  # of older versions
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
]


def describe_pipeline(pipeline: Pipeline) -> tuple[Contents, Record]:
    """Return the arrays and settings of the file of a fitted pipeline.

    Raises
    ------
    ValueError
        If the last step is no ranker of this package, or if a step is of a type that skops does
        not trust. The message names the step.
    """
    name, model = pipeline.steps[-1]
    if not isinstance(model, LinearRanker):
        raise ValueError(
            f"step {name!r} is a {type(model).__name__}, and the last step must be a ranker of "
            "pairgram for the pipeline to be saved"
        )
    check_is_fitted(model)
    before = Pipeline(pipeline.steps[:-1], transform_input=None)
    parameters = pipeline.get_params(deep=False)
    before.set_params(**{key: parameters[key] for key in parameters if key != "steps"})
    for inner, step in before.steps:
        if step is not None and not isinstance(step, str):
            check_is_fitted(step)
        _as_skops(step, f"step {inner!r}")
    kept = np.frombuffer(_as_skops(before, "the pipeline"), np.uint8)
    of_model, record = describe_part("model", model)
    for key, value in record["settings"].items():
        check_setting(f"step {name!r}: {key}", value)
    return {"transformers": kept, **of_model}, {
        "feature_map": None,
        "scikit-learn": sklearn.__version__,
        "name": name,
        "model": record,
    }


def _skops() -> Any:
    try:
        return importlib.import_module("skops.io")
    except ImportError as error:
        message = "files of pipelines need skops: pip install 'pairgram[skops]'"
        raise ImportError(message) from error


def _as_skops(part: object, what: str) -> bytes:
    """Return the bytes that skops writes of a pipeline or of a step; `what` is for messages."""
    skops = _skops()
    try:
        data = skops.dumps(part, compression=ZIP_DEFLATED)
    except RecursionError:  # a step that has metadata requests, which have the step
        part = copy.deepcopy(part)
        _name_owners(part)
        data = skops.dumps(part, compression=ZIP_DEFLATED)
    strange = sorted({*skops.get_untrusted_types(data=data)} - {*TRUSTED})
    if strange:
        raise ValueError(
            f"{what} cannot be saved: it has {', '.join(strange)}, which a file cannot hold "
            "without running code when it is loaded; skops.io.dump writes such a pipeline, for "
            "those who trust these types"
        )
    return data


def _name_owners(value: Any) -> None:
    """Have metadata requests within a value name their steps in the place of holding them."""
    if isinstance(value, BaseEstimator):
        requests = getattr(value, "_metadata_request", None)
        for own in (requests, *vars(requests).values()) if requests is not None else ():
            own.owner = type(value).__name__
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    for part in value if isinstance(value, (list, tuple)) else ():
        _name_owners(part)


def restore_pipeline(arrays: Contents, settings: Record, model: LinearRanker) -> Pipeline:
    """Make the pipeline of a file, given its model. The contents have been checked.

    Raises
    ------
    ValueError
        If skops, or the installed version of scikit-learn, cannot make the transformers.
    """
    skops = _skops()
    try:
        pipeline = skops.loads(arrays["transformers"].tobytes(), trusted=TRUSTED)
        if type(pipeline) is not Pipeline:
            raise TypeError(f"want a Pipeline, got {type(pipeline).__name__}")
        pipeline.steps.append((settings["name"], model))
    except MemoryError:
        raise
    except Exception as error:  # skops may raise anything for bytes that it did not write
        raise ValueError(
            f"its transformers cannot be made: {type(error).__name__}: {error} (the file was "
            f"written with scikit-learn {settings['scikit-learn'][:40]!r}, this is "
            f"{sklearn.__version__})"
        ) from None
    return pipeline


def save_model(model: LinearRanker | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker, or a pipeline of transformers and a ranker, to a safetensors file.

    The file holds no code. It is written completely or not at all. `load_model` reads it. The file
    of a ranker is the one that its method `save` writes.

    Parameters
    ----------
    model : ranker or sklearn.pipeline.Pipeline
        The steps of a pipeline before its ranker may be scikit-learn's own transformers, whose
        functions are NumPy's or SciPy's, such as ``FunctionTransformer(np.log1p)``. They are kept
        by skops, the extra ``pairgram[skops]``. A search as the last step, such as `RankRLSCV`,
        comes back as the model that it chose.
    path : str or path-like

    Raises
    ------
    TypeError
        If `model` is neither a ranker nor a Pipeline.
    ValueError
        If a step has a part of another type, such as a function or a class of your own; or if the
        ranker cannot be saved. The message names the step.
    ImportError
        If the model is a pipeline, and skops is missing.
    OSError
        If the file cannot be written. The message names the file.

    Notes
    -----
    The steps of a pipeline are objects of scikit-learn, which does not promise that another version
    of it reads them: `load_model` then warns. Rankers are read by later versions of this package.

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
        would not write; or if it holds a transformer of another type than `save_model` writes, or
        that the installed version of scikit-learn cannot make. The message names the file and what
        is wrong.
    ImportError
        If the file is that of a pipeline, and skops is missing.
    OSError
        If the file cannot be read.
    """
    kind, arrays, settings = read_file(path, (*MODELS, "Pipeline"))
    if kind in MODELS:
        return restore_model(kind, arrays, settings)
    model = restore_part(arrays, "model", settings["model"])
    try:
        return restore_pipeline(arrays, settings, model)
    except ValueError as error:
        raise ValueError(f"{shown(path)}: {error}") from None


def describe_part(name: str, model: LinearRanker) -> tuple[Contents, Record]:
    """Return the arrays of a model in a larger file, by this name, and its record."""
    contents, settings = model._contents()
    arrays = {f"{name}.{key}": array for key, array in contents.items()}
    return arrays, {"kind": model._file_kind, "settings": settings}


def restore_part(arrays: Contents, name: str, record: Record) -> LinearRanker:
    """Make the model that `describe_part` described."""
    start = f"{name}."
    own = {key.removeprefix(start): a for key, a in arrays.items() if key.startswith(start)}
    return restore_model(record["kind"], own, record["settings"])


def restore_model(
    kind: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
) -> LinearRanker:
    """Make the model that `LinearRanker._contents` described. The contents have been checked."""
    of_prior = settings.pop("prior", None)
    prior = None
    if of_prior is not None:
        prior = restore_part(arrays, "prior", of_prior)
        settings["prior"] = FrozenEstimator(prior)
    fitted = settings.pop("fitted")
    names = fitted.pop("feature_names_in_", None)
    chain = _restored(arrays, settings, names)
    if "pairs" in settings:
        settings["pairs"] = Pairs(**settings["pairs"]).short
    for name, named in settings.pop("constraint", {}).items():
        settings["constraint"] = room_with("constraint", name)(**named)
    estimator = ranker_called(kind)
    if "feature_map" in estimator._get_param_names():
        own = chain
        if "n_estimators" in settings:  # the file has the nodes of all draws
            n_nodes = chain.then.n_nodes // settings["n_estimators"]
            own = chain._replace(then=clone(chain.then).set_params(n_nodes=n_nodes))
        settings["feature_map"] = own.short
    model = estimator(**settings)
    model.coef_, model.feature_map_ = arrays["coef_"], chain.value
    if "variances" in arrays:
        sums = arrays["variances"], arrays["covariances"], 1.0
        model._column_sums = ColumnSums(*sums, model.coef_.copy())
    if "loss" in settings:
        model._loss = settings["loss"]  # that of the fit
    model.prior_ = prior
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model


def _restored(
    arrays: dict[str, NDArray[Any]], settings: dict[str, Any], names: list[Any] | None
) -> Chain:
    """Return what a row is to the model of a file, whose settings are taken out."""
    then = restore_map(arrays, settings.pop("feature_map"))
    kind, value = settings.pop("inputs"), settings.pop("missing")
    chain = Chain(then=then)
    if kind is not None:
        own = {name: array for name, array in arrays.items() if name.startswith("inputs_")}
        chain = chain.scaled(FittedInputs(kind, own, names))
    if (fill := arrays.get("fill_values")) is not None:
        chain = chain._replace(fill=Fill(fill if value is None else value)._of(fill, names))
    return chain
