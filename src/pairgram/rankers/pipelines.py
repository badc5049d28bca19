"""Pipelines of scikit-learn's transformers and a ranker, as contents of a model file.

Transformers are made again by their constructors and by a fit to a row or two, which sets what the
installed version of scikit-learn keeps for itself. Then the fitted values of the file take their
places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from pairgram.files.read_write import check_setting
from pairgram.files.transformers import TRANSFORMERS, by_owner
from pairgram.rankers.base import LinearRanker

Contents = dict[str, NDArray[Any]]
Record = dict[str, Any]

CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        StandardScaler,
        MinMaxScaler,
        MaxAbsScaler,
        RobustScaler,
        OneHotEncoder,
        ColumnTransformer,
        Pipeline,
    )
}


# Writing


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
    before.set_params(**_parameters(pipeline, "steps"))
    record = _describe(before, "transformers", arrays, "step ")
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


def _parameters(transformer: Any, *without: str) -> Record:
    parameters = transformer.get_params(deep=False)
    return {name: value for name, value in parameters.items() if name not in without}


def _describe(
    transformer: Any, place: str, arrays: Contents, step: str, fitted: bool = True
) -> Any:
    """Return the record of a transformer, and add its arrays. `step` is its name in messages."""
    if transformer is None or isinstance(transformer, str):
        return transformer or "passthrough"
    kind = type(transformer).__name__
    if CLASSES.get(kind) is not type(transformer):
        raise ValueError(
            f"{step} is a {kind} of {type(transformer).__module__}, which a file cannot hold "
            "without running code when it is loaded: "
            f"{', '.join(CLASSES)}, 'passthrough' and 'drop' can be saved"
        )
    settings = _settings_of(transformer, kind, step, fitted)
    found: Record | None = None
    if kind == "Pipeline":
        settings["steps"] = [
            {
                "name": name,
                "transformer": _describe(
                    part, f"{place}.{number}", arrays, _within(step, name), fitted
                ),
            }
            for number, (name, part) in enumerate(settings["steps"])
        ]
        found = {} if fitted else None
    elif fitted:
        check_is_fitted(transformer)
        found = {"n_features_in_": transformer.n_features_in_}
        if hasattr(transformer, "feature_names_in_"):
            found["feature_names_in_"] = [str(name) for name in transformer.feature_names_in_]
    if kind == "ColumnTransformer":
        _describe_columns(transformer, settings, found, place, arrays, step)
    elif kind == "OneHotEncoder" and found is not None:
        found["categories_"] = [_categories(column, step) for column in transformer.categories_]
    elif found is not None:
        _describe_arrays(transformer, kind, place, arrays)
    if fitted:
        _refuse_unknown(transformer, kind, step)
    record = {"kind": kind, "settings": settings, "fitted": found}
    output = getattr(transformer, "_sklearn_output_config", {}).get("transform")
    if output is not None:
        record["output"] = output
    requests = getattr(transformer, "_metadata_request", None)
    if requests is not None and "sample_weight" in requests.fit.requests:
        record["sample_weight"] = requests.fit.requests["sample_weight"]
    return record


def _within(step: str, name: str) -> str:
    return f"{step}{name!r}" if step.endswith(" ") else f"{step}, within it {name!r}"


def _settings_of(transformer: Any, kind: str, step: str, fitted: bool) -> Record:
    """Return the parameters that a file holds; others must be the default."""
    known = {key.rstrip("?"): key for key in TRANSFORMERS[kind].settings}
    default = _defaults(kind)
    settings: Record = {}
    for name, value in _parameters(transformer).items():
        is_default = name in default and value is default[name]
        if name in known and not (known[name].endswith("?") and is_default):
            settings[name] = value
        elif name not in known and not is_default:
            raise ValueError(
                f"{step} cannot be saved with {name}={value!r}: a file holds only the default, "
                f"{default[name]!r}"
            )
    for name in ("feature_range", "quantile_range"):
        if name in settings:
            settings[name] = list(settings[name])
    if kind == "OneHotEncoder":
        settings["dtype"] = np.dtype(settings["dtype"]).name
        if not isinstance(settings["categories"], str):
            settings["categories"] = "given"
        if settings["drop"] is not None and not isinstance(settings["drop"], str):
            settings["drop"] = _plain_values(settings["drop"])
    for name, value in settings.items():
        if callable(value):
            raise ValueError(f"{step} cannot be saved: {name} is a Python callable")
    return settings


def _defaults(kind: str) -> Record:
    made = CLASSES[kind]([]) if kind in ("ColumnTransformer", "Pipeline") else CLASSES[kind]()
    return _parameters(made)


def _plain_values(values: Any) -> list[Any]:
    return [getattr(value, "item", lambda v=value: v)() for value in values]


def _categories(values: NDArray[Any], step: str) -> Record:
    dtype = "str" if values.dtype.kind == "U" else values.dtype.name
    plain = _plain_values(values)
    for value in plain:
        if value is not None and not isinstance(value, (str, bool, int, float)):
            raise ValueError(
                f"{step} cannot be saved: the category {value!r} is a {type(value).__name__}, and "
                "a file holds text, numbers and None"
            )
    return {"dtype": dtype, "values": plain}


def _describe_arrays(transformer: Any, kind: str, place: str, arrays: Contents) -> None:
    for key in TRANSFORMERS[kind].arrays:
        name = key.rstrip("?")
        value = getattr(transformer, name, None)
        if value is not None:
            arrays[f"{place}.{name}"] = np.atleast_1d(value)


def _describe_columns(
    transformer: Any,
    settings: Record,
    found: Record | None,
    place: str,
    arrays: Contents,
    step: str,
) -> None:
    """Describe the parts of a ColumnTransformer. Columns become lists of names or of numbers."""
    given = settings["transformers"]
    at: dict[str, list[int]] = {}
    parts: dict[str, tuple[Any, Any]] = {name: (part, columns) for name, part, columns in given}
    if found is not None:
        at = {k: list(map(int, v)) for k, v in transformer._transformer_to_input_indices.items()}
        parts = {name: (part, columns) for name, part, columns in transformer.transformers_}
        if not {name for name, *_ in given} <= parts.keys():
            raise ValueError(f"{step} has had its transformers changed since it was fitted")
        found["sparse_output_"], found["remainder"] = transformer.sparse_output_, at["remainder"]
    names = np.asarray((found or {}).get("feature_names_in_", ()), dtype=object)
    if len(set(names)) < len(names):
        names = names[:0]

    def describe(name: str, part: Any, number: Any) -> Any:
        if isinstance(part, str):
            return part
        selected = found is not None and bool(at[name])
        fitted_part = parts[name][0] if selected else part
        return _describe(
            fitted_part, f"{place}.{number}", arrays, _within(step, name), fitted=selected
        )

    settings["transformers"] = []
    for number, (name, part, columns) in enumerate(given):
        if found is not None:
            columns = parts[name][1]
            by_name = len(names) and _is_by_name(columns)
            columns = names[at[name]].tolist() if by_name else at[name]
        elif callable(columns) or isinstance(columns, slice):
            columns = []
        record = {"name": name, "columns": columns, "transformer": describe(name, part, number)}
        settings["transformers"].append(record)
    settings["remainder"] = describe("remainder", settings["remainder"], "remainder")


def _is_by_name(columns: Any) -> bool:
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    return isinstance(columns, str) or any(isinstance(column, str) for column in columns)


# What a fit of a class finds besides the arrays and `IN`, which the fit to a row makes again.
DERIVED = {
    "OneHotEncoder": {"categories_", "drop_idx_"},
    "ColumnTransformer": {"transformers_", "sparse_output_", "output_indices_"},
}


def _refuse_unknown(transformer: Any, kind: str, step: str) -> None:
    """Refuse attributes that would be lost, such as those of a later version of scikit-learn."""
    known = {key.rstrip("?") for key in TRANSFORMERS[kind].arrays} | DERIVED.get(kind, set())
    known |= {"n_features_in_", "feature_names_in_", *_parameters(transformer)}
    lost = [name for name in vars(transformer) if name not in known and not name.startswith("_")]
    if lost:
        raise ValueError(
            f"{step} has the attribute {lost[0]}, which a file cannot hold (scikit-learn is "
            f"{sklearn.__version__})"
        )


# Reading


def restore_pipeline(arrays: Contents, settings: Record, model: LinearRanker) -> Pipeline:
    """Make the pipeline of a file, given its model. The contents have been checked.

    Raises
    ------
    ValueError
        If the installed version of scikit-learn has other parameters or fitted attributes than the
        version that wrote the file.
    """
    try:
        pipeline = _restore(settings["transformers"], "transformers", by_owner(arrays))
    except _OtherVersionError as error:
        raise ValueError(
            f"{error} (the file was written with scikit-learn {settings['scikit-learn'][:40]!r}, "
            f"this is {sklearn.__version__})"
        ) from None
    pipeline.steps.append((settings["name"], model))
    return pipeline


class _OtherVersionError(ValueError):
    """The installed version of scikit-learn cannot hold a transformer."""


def _restore(record: Any, place: str, arrays: dict[str, Contents]) -> Any:
    if isinstance(record, str):
        return record
    kind, settings = record["kind"], dict(record["settings"])
    parameters = CLASSES[kind]._get_param_names()
    for name in settings:
        if name not in parameters:
            raise _OtherVersionError(f"{place}: {kind} has no parameter {name}")
    if kind == "Pipeline":
        settings["steps"] = [
            (step["name"], _restore(step["transformer"], f"{place}.{number}", arrays))
            for number, step in enumerate(settings["steps"])
        ]
        made = Pipeline(**settings)
    elif kind == "ColumnTransformer":
        made = _restore_columns(record, settings, place, arrays)
    elif kind == "OneHotEncoder":
        made = _restore_encoder(record, settings)
    else:
        made = _restore_scaler(record, settings, place, arrays.get(place, {}))
    fitted = record["fitted"]
    if fitted is not None and "n_features_in_" in fitted:
        made.n_features_in_ = fitted["n_features_in_"]
        if "feature_names_in_" in fitted:
            made.feature_names_in_ = np.array(fitted["feature_names_in_"], dtype=object)
    if "output" in record:
        made.set_output(transform=record["output"])
    if "sample_weight" in record:
        with sklearn.config_context(enable_metadata_routing=True):
            made.set_fit_request(sample_weight=record["sample_weight"])
    return made


def _restore_scaler(record: Record, settings: Record, place: str, arrays: Contents) -> Any:
    for name in ("feature_range", "quantile_range"):
        if name in settings:
            settings[name] = tuple(settings[name])
    made = CLASSES[record["kind"]](**settings)
    if record["fitted"] is None:
        return made
    made.fit(np.array([[0.0], [1.0]]))
    known = {key.rstrip("?") for key in TRANSFORMERS[record["kind"]].arrays}
    has = set(vars(made)) - {"n_features_in_", *made.get_params()}
    if has != known:
        raise _OtherVersionError(f"{place}: {record['kind']} keeps {sorted(has ^ known)[0]} in one")
    for name in known:
        array = arrays.get(name)
        value = (
            array[0]
            if array is not None and name == "n_samples_seen_" and len(array) == 1
            else array
        )
        setattr(made, name, value)
    return made


def _restore_encoder(record: Record, settings: Record) -> OneHotEncoder:
    settings["dtype"] = np.dtype(settings["dtype"]).type
    fitted = record["fitted"]
    if fitted is None:
        return OneHotEncoder(**settings)
    columns = []
    for entry in fitted["categories_"]:
        column = np.empty(len(entry["values"]), dtype=object)
        column[:] = entry["values"]
        columns.append(column)
    if isinstance(settings["drop"], list):
        drop = np.empty(len(settings["drop"]), dtype=object)
        drop[:] = settings["drop"]
        settings["drop"] = drop
    given = settings.pop("categories") == "given"
    made = OneHotEncoder(categories=columns, **settings)
    made.fit(np.array([[column[0] for column in columns]], dtype=object))
    made.categories_ = [
        column if entry["dtype"] == "object" else np.array(entry["values"], dtype=entry["dtype"])
        for column, entry in zip(columns, fitted["categories_"], strict=True)
    ]
    made.categories = made.categories_ if given else "auto"
    return made


def _restore_columns(
    record: Record, settings: Record, place: str, arrays: dict[str, Contents]
) -> ColumnTransformer:
    parts = [
        (part["name"], _restore(part["transformer"], f"{place}.{number}", arrays), part["columns"])
        for number, part in enumerate(settings.pop("transformers"))
    ]
    rest = _restore(settings.pop("remainder"), f"{place}.remainder", arrays)
    fitted = record["fitted"]
    if fitted is None:
        return ColumnTransformer(parts, remainder=rest, **settings)
    names = fitted.get("feature_names_in_")
    at = {name: number for number, name in enumerate(names or ())}
    places = {
        name: [at[column] if isinstance(column, str) else column for column in columns]
        for name, _, columns in parts
    }
    places["remainder"] = fitted["remainder"]
    made = ColumnTransformer(
        [(name, _plain(part), places[name]) for name, part, _ in parts],
        remainder=_plain(rest),
        **settings,
    )
    made.fit(np.zeros((1, fitted["n_features_in_"])))
    by_name = {name: (part, columns) for name, part, columns in [*parts, ("remainder", rest, None)]}
    made.transformers_ = [
        (
            name,
            found if isinstance(by_name[name][0], str) else by_name[name][0],
            found_columns if name == "remainder" else by_name[name][1],
        )
        for name, found, found_columns in made.transformers_
    ]
    made.output_indices_ = _output_indices(made.transformers_, places)
    for name, part, _ in made.transformers_:
        if names is not None and places[name] and by_name[name][0] == "passthrough":
            part.feature_names_in_ = np.array(names, dtype=object)[places[name]]
    made.sparse_output_ = fitted["sparse_output_"]
    made.transformers = [(name, _unfitted(part), columns) for name, part, columns in parts]
    made.remainder = _unfitted(rest)
    return made


def _plain(part: Any) -> str:
    return part if isinstance(part, str) else "passthrough"


def _unfitted(part: Any) -> Any:
    return part if isinstance(part, str) else clone(part)


def _output_indices(parts: list[Any], places: dict[str, list[int]]) -> dict[str, slice]:
    """Return which columns of the output every transformer makes, as a fit finds it."""
    indices: dict[str, slice] = {}
    end = 0
    for name, part, _ in parts:
        if isinstance(part, str) or not places[name]:
            continue
        begin, end = end, end + _width(part, len(places[name]))
        indices[name] = slice(begin, end)
    for name, *_ in [*parts, ("remainder",)]:
        indices.setdefault(name, slice(0, 0))
    return indices


def _width(part: Any, n_columns: int) -> int:
    """Return how many columns a fitted transformer makes of some."""
    if isinstance(part, OneHotEncoder):
        return len(part.get_feature_names_out())
    if isinstance(part, ColumnTransformer):
        return max((found.stop for found in part.output_indices_.values()), default=0)
    for _, step in part.steps if isinstance(part, Pipeline) else ():
        n_columns = n_columns if isinstance(step, str) else _width(step, n_columns)
    return n_columns
