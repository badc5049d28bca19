"""scikit-learn's transformers as formulas: the columns that a fitted one makes of columns.

Files keep the transformers themselves, and scores in Python are theirs; formulas are for scorers
and for what other systems read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from inspect import getattr_static
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from pairgram._support.checks import Vector
from pairgram.export.encoders import encoded, is_gap, one_hot_codes, ordinal_codes, target_codes
from pairgram.export.formulas import (
    AnyColumn,
    Column,
    Product,
    Value,
    constant,
    through,
)

Formulas = Callable[[Any, list[AnyColumn], str], list[AnyColumn]]
# What a scaler makes of a column x is ``(x − centre) / scale · factor + offset``, with these parts.
Parts = tuple[Vector, Vector, Vector, Vector]


def _scaler(
    parts: Callable[[Any], Parts], step: BaseEstimator, columns: list[AnyColumn], place: str
) -> list[AnyColumn]:
    """Scale each column; `parts` returns those of a fitted scaler."""
    changed: list[AnyColumn] = []
    for column, own in zip(columns, zip(*parts(step), strict=True), strict=True):
        centre, scale, factor, offset = map(float, own)
        if column.kind in ("lookup", "steps"):  # whose values may be categories in their turn
            made = column.mapped(partial(_scaled, centre, scale, factor, offset), place)
        else:
            made = column.scaled(factor / scale, offset - centre * factor / scale)
        changed.append(made)
    if getattr(step, "clip", False):
        low, high = getattr(step, "feature_range", (-1.0, 1.0))
        changed = [through(column, (low, high), (low, high)) for column in changed]
    return changed


def _scaled(centre: float, scale: float, factor: float, offset: float, value: float) -> float:
    """Return what a scaler makes of a value, to the last bit."""
    return (value - centre) / scale * factor + offset


def _over_scale(step: BaseEstimator, centre: Vector | bool, scale: Vector | bool) -> Parts:
    """Return the parts of columns less `centre` over `scale`; False stands for none."""
    zeros, ones = np.zeros(step.n_features_in_), np.ones(step.n_features_in_)
    found = zeros if isinstance(centre, bool) else centre
    return found, ones if isinstance(scale, bool) else scale, ones, zeros


def _imputer(step: BaseEstimator, columns: list[AnyColumn], place: str) -> list[AnyColumn]:
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


def _bins(step: BaseEstimator, columns: list[AnyColumn], place: str) -> list[AnyColumn]:
    """Return the numbers of the bins of numbers, or a column for each bin."""
    made: list[AnyColumn] = []
    for column, edges in zip(columns, step.bin_edges_, strict=True):
        inner = np.asarray(edges[1:-1], np.float64)
        if step.dtype is not None and np.dtype(step.dtype) == np.float32:
            inner = _least_in_float32(inner)
        codes = np.eye(len(inner) + 1)
        if step.encode == "ordinal":
            codes = np.arange(len(inner) + 1.0)[:, None]
        made += [_binned(column, inner, values, f"{place}: KBinsDiscretizer") for values in codes.T]
    return made


def _least_in_float32(edges: Vector) -> Vector:
    """Return the least numbers of float64 that are at least an edge once they are in float32."""
    above = edges.astype(np.float32)
    above = np.where(above < edges, np.nextafter(above, np.float32(np.inf)), above)
    below = np.nextafter(above, np.float32(-np.inf)).astype(np.float64)
    # Ties go to the number whose last bit is 0.
    middle = (below + above) / 2
    return np.where(middle.astype(np.float32) >= above, middle, np.nextafter(middle, np.inf))


def _binned(column: AnyColumn, edges: Vector, values: Vector, place: str) -> AnyColumn:
    """Return the value of the bin of a column."""

    def of(value: Value) -> float:
        if value != value:  # for which bins have no place
            return math.nan
        return float(values[np.searchsorted(edges, float(value), side="right")])

    if not (isinstance(column, Column) and column.is_plain):
        return column.mapped(of, place)
    return Column(column.source, "steps", edges, values, of(column.missing))


# The functions of NumPy that engines know: the curve, and what is added before.
FUNCTIONS: Mapping[str, tuple[str, float]] = {
    "log1p": ("log", 1.0),
    "log": ("log", 0.0),
    "sqrt": ("sqrt", 0.0),
}


def _function(step: BaseEstimator, columns: list[AnyColumn], place: str) -> list[AnyColumn]:
    """Apply a function of NumPy to every number."""
    if step.func is None:
        return columns
    name = next((name for name in FUNCTIONS if step.func is getattr(np, name)), None)
    if name is None or step.kw_args:
        raise ValueError(
            f"{place} is a FunctionTransformer of {step.func!r}, which cannot be exported: the "
            f"known functions are those of NumPy, {', '.join(FUNCTIONS)}, without kw_args"
        )
    return [_curved(column, name, f"{place}: np.{name}") for column in columns]


def _curved(column: AnyColumn, name: str, place: str) -> AnyColumn:
    """Return a function of NumPy of a column."""
    curve, shift = FUNCTIONS[name]

    def of(value: float) -> float:
        with np.errstate(all="ignore"):
            return float(getattr(np, name)(value))

    if not isinstance(column, Column) or column.kind != "affine":
        return column.mapped(of, place)
    inner, moved = column.values.tolist()
    at, plain = (curve, inner, moved + shift), np.array([1.0, 0.0])
    return Column(column.source, "curve", at, plain, of(column.fill))


def _powers(step: BaseEstimator, columns: list[AnyColumn], place: str) -> list[AnyColumn]:
    """Return products of columns."""
    made: list[AnyColumn] = []
    for powers in step.powers_:
        factors = [columns[k] for k in np.flatnonzero(powers) for _ in range(powers[k])]
        if len(factors) > 2:
            raise ValueError(
                f"{place}: PolynomialFeatures(degree={step.degree}) cannot be exported: "
                "engines are given products of two columns, so fit with degree=2"
            )
        bias = [constant(1.0)]
        two = len(factors) == 2
        made.append(Product(factors[0], factors[1]) if two else (factors or bias)[0])
    return made


def _chain(step: BaseEstimator, columns: list[AnyColumn], place: str) -> list[AnyColumn]:
    """Apply transformers in turn."""
    for name, part in step.steps:
        columns = columns_after(part, columns, f"{place}, step {name!r}")
    return columns


def _of_columns(step: BaseEstimator, columns: list[AnyColumn], place: str) -> list[AnyColumn]:
    """Apply transformers to some columns each."""
    places = step._transformer_to_input_indices
    made: list[AnyColumn] = []
    weights = step.transformer_weights or {}
    for name, part, _ in step.transformers_:
        if places[name] and not (isinstance(part, str) and part == "drop"):
            own = columns_after(part, [columns[j] for j in places[name]], f"{place}, {name!r}")
            weight = weights.get(name)
            made += own if weight is None else [one.scaled(float(weight), 0.0) for one in own]
    return made


FORMULAS: Mapping[str, dict[str, Formulas]] = {
    "sklearn.preprocessing": {
        "StandardScaler": partial(
            _scaler,
            lambda s: _over_scale(s, s.with_mean and s.mean_, s.with_std and s.scale_),
        ),
        "MinMaxScaler": partial(
            _scaler, lambda s: (0 * s.scale_, 0 * s.scale_ + 1, s.scale_, s.min_)
        ),
        "MaxAbsScaler": partial(_scaler, lambda s: _over_scale(s, False, s.scale_)),
        "RobustScaler": partial(
            _scaler,
            lambda s: _over_scale(s, s.with_centering and s.center_, s.with_scaling and s.scale_),
        ),
        "OneHotEncoder": partial(encoded, one_hot_codes),
        "OrdinalEncoder": partial(encoded, ordinal_codes),
        "FunctionTransformer": _function,
        "KBinsDiscretizer": _bins,
        "TargetEncoder": partial(encoded, target_codes),
        "PolynomialFeatures": _powers,
    },
    "sklearn.impute": {"SimpleImputer": _imputer},
    "sklearn.compose": {"ColumnTransformer": _of_columns},
    "sklearn.pipeline": {"Pipeline": _chain},
}


def columns_after(step: BaseEstimator, columns: list[AnyColumn], place: str) -> list[AnyColumn]:
    """Return the columns that a fitted transformer makes of columns, as formulas.

    Raises
    ------
    ValueError
        If there are no such formulas. The message names the step by its `place`.
    """
    if step is None or isinstance(step, str):  # "passthrough"
        return columns
    for module, kinds in FORMULAS.items():
        for name, formulas in kinds.items():
            kind = getattr(import_module(module), name)  # which is slow to import
            # Classes that derive from one with parts, and have its `transform`, work alike.
            derives = kinds.keys() <= {"ColumnTransformer", "Pipeline"} and isinstance(step, kind)
            own = getattr_static(step, "transform", None)
            if type(step) is kind or (derives and own is getattr_static(kind, "transform")):
                return formulas(step, columns, place)
    known = ", ".join(name for kinds in FORMULAS.values() for name in kinds if name != "Pipeline")
    raise ValueError(
        f"{place} is a {type(step).__name__}, which cannot be exported: the known transformers "
        f"are {known} and Pipelines of these"
    )


def columns_before(
    steps: list[tuple[str, Any]],
) -> tuple[int, tuple[str, ...] | None, list[AnyColumn]]:
    """Return what a fitted pipeline takes, and the columns that its steps make for the last one.

    Parameters
    ----------
    steps : list of (str, fitted estimator or "passthrough")

    Returns
    -------
    n_features : int
    names : tuple of str, or None
        The names of the columns, if the pipeline was fitted to a frame.
    columns : list of Column and Product

    Raises
    ------
    ValueError
        As of `columns_after`.
    """
    first = next(step for _, step in steps if step is not None and not isinstance(step, str))
    names = getattr(first, "feature_names_in_", None)
    n_features = int(getattr(first, "n_features_in_", 0))
    columns: list[AnyColumn] = [Column(j) for j in range(n_features)]
    for name, step in steps[:-1]:
        columns = columns_after(step, columns, f"step {name!r}")
    return n_features, None if names is None else tuple(map(str, names)), columns
