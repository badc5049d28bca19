"""scikit-learn's transformers as formulas: the columns that a fitted one makes of columns.

Files keep the transformers themselves, and scores in Python are theirs; formulas are for scorers
and for what other systems read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from pairgram.export.encoders import encoded, is_gap
from pairgram.export.formulas import Column, computed_before, constant, product, through

Formulas = Callable[[Any, list[Column], str], list[Column]]
# Of scalers that subtract: the attribute, and the parameters by which they subtract and divide.
CENTRES = {
    "StandardScaler": ("mean_", "with_mean", "with_std"),
    "RobustScaler": ("center_", "with_centering", "with_scaling"),
}


def _scaler(step: Any, columns: list[Column], place: str) -> list[Column]:
    """Scale each column x, which becomes ``(x − centre) / scale · factor + offset``."""
    mean, subtracts, divides = CENTRES.get(type(step).__name__, ("", "", ""))
    parts = {}
    if hasattr(step, "min_"):  # MinMaxScaler multiplies
        parts = {"factor": step.scale_, "offset": step.min_}
    elif getattr(step, divides, True):
        parts["scale"] = step.scale_
    if getattr(step, subtracts, False):
        parts["centre"] = getattr(step, mean)
    own = {name: values.tolist() for name, values in parts.items()}
    changed = [
        column.scaled(**{name: values[k] for name, values in own.items()})
        for k, column in enumerate(columns)
    ]
    if getattr(step, "clip", False):
        low, high = getattr(step, "feature_range", (-1.0, 1.0))
        changed = [through(column, (low, high), (low, high)) for column in changed]
    return changed


def _imputer(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Fill missing values, and tell where they were if the imputer does."""
    if not is_gap(step.missing_values):
        raise ValueError(
            f"{place}: SimpleImputer(missing_values={step.missing_values!r}) cannot be "
            "exported: engines know NaN and None as missing, so write one of these in its place"
        )
    values = step.statistics_
    filled = values.astype(getattr(step, "_fill_dtype", values.dtype)).tolist()
    made = [
        column.filled(fill)
        for column, fill, found in zip(columns, filled, values, strict=True)
        if step.keep_empty_features or found == found
    ]
    told = [] if step.indicator_ is None else step.indicator_.features_.tolist()
    return made + [columns[k].gap() for k in told]


def _bins(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Return the numbers of the bins of numbers, or a column for each bin."""
    what = f"{place}: KBinsDiscretizer"
    if step.dtype is not None and np.dtype(step.dtype) == np.float32:
        raise ValueError(
            f"{what}(dtype=float32) cannot be exported, because it rounds numbers before it "
            "compares them: fit it with dtype=None"
        )
    made: list[Column] = []
    for column, edges in zip(columns, step.bin_edges_, strict=True):
        if not column.is_plain:
            raise computed_before(what)
        inner = np.asarray(edges[1:-1], np.float64)
        codes = np.eye(len(inner) + 1)
        if step.encode == "ordinal":
            codes = np.arange(len(inner) + 1.0)[:, None]
        for values in codes.T:
            missing = math.nan  # for which bins have no place
            if not column.has_gaps:
                missing = float(values[np.searchsorted(inner, column.fill, side="right")])
            made.append(Column(column.source, "steps", inner, values, missing))
    return made


# The functions of NumPy that engines know: the curve, and what is added before.
FUNCTIONS: Mapping[Any, tuple[str, float]] = {
    np.log1p: ("log", 1.0),
    np.log: ("log", 0.0),
    np.sqrt: ("sqrt", 0.0),
}


def _function(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Apply a function of NumPy to every number."""
    if step.func is None:
        return columns
    if step.func not in FUNCTIONS or step.kw_args:
        known = ", ".join(one.__name__ for one in FUNCTIONS)
        raise ValueError(
            f"{place} is a FunctionTransformer of {step.func!r}, which cannot be exported: the "
            f"known functions are those of NumPy, {known}, without kw_args"
        )
    curve, shift = FUNCTIONS[step.func]

    def of(value: float) -> float:
        with np.errstate(all="ignore"):
            return float(step.func(value))

    made: list[Column] = []
    for column in columns:
        if column.kind != "affine":
            made.append(column.mapped(of, f"{place}: np.{step.func.__name__}"))
            continue
        inner, moved = column.values.tolist()
        at, same = (curve, inner, moved + shift), np.array([1.0, 0.0])
        made.append(Column(column.source, "curve", at, same, of(column.fill)))
    return made


def _powers(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Return products of columns."""
    made: list[Column] = []
    for powers in step.powers_:
        factors = [columns[k] for k in np.flatnonzero(powers) for _ in range(powers[k])]
        if len(factors) > 2:
            raise ValueError(
                f"{place}: PolynomialFeatures(degree={step.degree}) cannot be exported: "
                "engines are given products of two columns, so fit with degree=2"
            )
        one = factors or [constant(1.0, 1.0)]
        made.append(product(*factors) if len(factors) == 2 else one[0])
    return made


def _chain(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Apply transformers in turn."""
    for name, part in step.steps:
        columns = columns_after(part, columns, f"{place}, step {name!r}")
    return columns


def _of_columns(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Apply transformers to some columns each."""
    places = step._transformer_to_input_indices
    made: list[Column] = []
    weights = step.transformer_weights or {}
    for name, part, _ in step.transformers_:
        if places[name] and not (isinstance(part, str) and part == "drop"):
            own = columns_after(part, [columns[j] for j in places[name]], f"{place}, {name!r}")
            weight = weights.get(name)
            made += own if weight is None else [one.scaled(float(weight)) for one in own]
    return made


FORMULAS: Mapping[str, Formulas] = {
    "StandardScaler": _scaler,
    "MinMaxScaler": _scaler,
    "MaxAbsScaler": _scaler,
    "RobustScaler": _scaler,
    "OneHotEncoder": encoded,
    "OrdinalEncoder": encoded,
    "FunctionTransformer": _function,
    "KBinsDiscretizer": _bins,
    "TargetEncoder": encoded,
    "PolynomialFeatures": _powers,
    "SimpleImputer": _imputer,
    "ColumnTransformer": _of_columns,
    "Pipeline": _chain,
}


def columns_after(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Return the columns that a fitted transformer makes of columns, as formulas.

    Raises
    ------
    ValueError
        If there are no such formulas. The message names the step by its `place`.
    """
    if step is None or isinstance(step, str):  # "passthrough"
        return columns
    kind = type(step)
    if kind.__module__.startswith("sklearn.") and kind.__name__ in FORMULAS:
        return FORMULAS[kind.__name__](step, columns, place)
    known = ", ".join(name for name in FORMULAS if name != "Pipeline")
    raise ValueError(
        f"{place} is a {kind.__name__}, which cannot be exported: the known transformers "
        f"are {known} and Pipelines of these"
    )


def columns_before(
    steps: list[tuple[str, Any]],
) -> tuple[int, tuple[str, ...] | None, list[Column]]:
    """Return what a fitted pipeline takes, and the columns that its steps make for the last one.

    Parameters
    ----------
    steps : list of (str, fitted estimator or "passthrough")

    Returns
    -------
    n_features : int
    names : tuple of str, or None
        The names of the columns, if the pipeline was fitted to a frame.
    columns : list of Column

    Raises
    ------
    ValueError
        As of `columns_after`.
    """
    first = next(step for _, step in steps if step is not None and not isinstance(step, str))
    names = getattr(first, "feature_names_in_", None)
    n_features = int(getattr(first, "n_features_in_", 0))
    columns: list[Column] = [Column(j) for j in range(n_features)]
    for name, step in steps[:-1]:
        columns = columns_after(step, columns, f"step {name!r}")
    return n_features, None if names is None else tuple(map(str, names)), columns
