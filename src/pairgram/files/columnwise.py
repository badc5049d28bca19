"""scikit-learn's transformers of single columns: scalers, imputers, encoders, bins, functions.

What a fit finds is a plain value in the record of a transformer, or an array of numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from pairgram._support.checks import Vector
from pairgram._support.parameters import (
    COUNT,
    FLAG,
    NAMES,
    RANGE,
    TEXT,
    Setting,
    choice,
    integer,
    list_of,
    number,
    optional,
)
from pairgram._support.schema import Array, brief, check_arrays, require
from pairgram.features.formulas import (
    Affine,
    Column,
    Curve,
    Lookup,
    Product,
    Steps,
    Value,
    clipped,
    constant,
)
from pairgram.files.encoders import (
    CATEGORY,
    DROP,
    FLOATS,
    FREQUENCY,
    NUMBERS,
    PLACE,
    PLACES,
    Encoder,
    OneHot,
    Target,
    categories,
    check_values,
    is_gap,
    one_hot_codes,
    ordinal_codes,
    restored_values,
    target_codes,
)
from pairgram.files.transformer import (
    IN,
    OtherVersionError,
    Owned,
    Place,
    Settings,
    Transformer,
    Widths,
)

COUNTS = ("int32", "int64", *FLOATS)
LIST = Setting("a list", lambda value: isinstance(value, list))
CODE = Setting(
    "None, a number or NaN",
    lambda value: (
        value is None or number().fits(value) or (isinstance(value, float) and value != value)
    ),
)
SEED = optional(integer(0, 2**32 - 1))
VALUES = Setting("an object of JSON", lambda value: isinstance(value, dict))


@dataclass(frozen=True)
class Scaler(Transformer):
    """A transformer that scales each column.

    Attributes
    ----------
    of : callable
        Given a fitted scaler, it returns (centres, scales, factors, offsets), and the scaler makes
        ``(x − centre) / scale · factor + offset`` of a column x.
    needed : mapping
        The arrays that must be there if a parameter is True.
    """

    of: Callable[[Any], tuple[Vector, Vector, Vector, Vector]] = field(kw_only=True)
    needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        if record["fitted"] is None:
            return None, None
        own = arrays.pop(name, {})
        for parameter, needed in self.needed.items():
            for array in needed if record["settings"][parameter] else ():
                require(array in own, f"{name}.{array} is missing, but {parameter} is True")
        features = int(record["fitted"]["n_features_in_"])
        seen = "n_samples_seen_"
        wanted = {
            key: Array(dtypes, ("seen" if key == seen else "features",))
            for key, dtypes in self.arrays.items()
        }
        try:
            sizes = check_arrays(own, wanted)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        for dimension, also in (("features", features), ("seen", 1)):
            length = sizes.get(dimension, features)
            require(
                length in (features, also),
                f"{name}.fitted.n_features_in_ is {features}, but there are arrays of length "
                f"{length}",
            )
        for array in ("scale_", "var_", seen):
            least = own[array].min() if array in own else 1
            require(
                least > 0 or (least == 0 and array != "scale_"),
                f"{name}.{array} has values too small",
            )
        return features, features

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        made = self.made(**settings)
        if record["fitted"] is None:
            return made
        made.fit(np.array([[0.0], [1.0]]))
        own, known = arrays.get(place, {}), {key.rstrip("?") for key in self.arrays}
        has = set(vars(made)) - {"n_features_in_", *made.get_params()}
        if has != known:
            raise OtherVersionError(f"{place}: {self.name} keeps {sorted(has ^ known)[0]} in one")
        for name in known:
            array = own.get(name)
            if array is not None and name == "n_samples_seen_" and len(array) == 1:
                array = array[0]
            setattr(made, name, array)
        return made

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        changed: list[Column] = []
        for column, parts in zip(columns, zip(*self.of(step), strict=True), strict=True):
            centre, scale, factor, offset = map(float, parts)
            if isinstance(column, (Lookup, Steps)):  # whose values may be categories in their turn
                made = column.mapped(partial(_scaled, centre, scale, factor, offset), place)
            else:
                made = column.scaled(factor / scale, offset - centre * factor / scale)
            changed.append(made)
        if getattr(step, "clip", False):
            low, high = getattr(step, "feature_range", (-1.0, 1.0))
            changed = [clipped(column, low, high) for column in changed]
        return changed


class Imputer(Transformer):
    """The transformer that fills missing values, and may tell where they were."""

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        if found is not None:
            found["statistics_"] = categories(step.statistics_, at.step)
            found["rows"] = getattr(step, "_fit_dtype", step.statistics_.dtype).name
            told = step.indicator_
            found["indicator_"] = None if told is None else told.features_.tolist()

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        fitted, settings = record["fitted"], record["settings"]
        if fitted is None:
            return None, None
        features = fitted["n_features_in_"]
        values, told = fitted["statistics_"]["values"], fitted["indicator_"]
        check_values(fitted["statistics_"], f"{name}.fitted.statistics_")
        require(
            len(values) == features,
            f"{name}.fitted.statistics_ must have a value for each of n_features_in_",
        )
        require(
            (told is None) != settings["add_indicator"],
            f"{name}.fitted.indicator_ must be there if add_indicator is True",
        )
        require(
            not told or told[-1] < features, f"{name}.fitted.indicator_ must be numbers of columns"
        )
        require(
            fitted["rows"] == "object" or not any(isinstance(v, str) for v in values),
            f"{name}.fitted.rows must be 'object', because statistics_ has text",
        )
        kept = features if settings["keep_empty_features"] else sum(v == v for v in values)
        return features, kept + len(told or ())

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        made, fitted = self.made(**settings), record["fitted"]
        if fitted is None:
            return made
        dtype, features = np.dtype(fitted["rows"]), fitted["n_features_in_"]
        gap, told = settings["missing_values"], fitted["indicator_"]
        fill: Any = "a" if dtype.kind == "O" else 1
        rows = np.full((2, features), fill if fill != gap else 2, dtype=dtype)
        if told:
            rows[1, told] = gap
        try:
            made.fit(rows)
        except ValueError as error:
            raise OtherVersionError(f"{place}: {self.name} refuses the settings: {error}") from None
        # Versions differ in the type of constants: that of the rows, or objects.
        values = restored_values(fitted["statistics_"])
        try:
            made.statistics_ = values.astype(made.statistics_.dtype)
        except ValueError as error:
            raise OtherVersionError(
                f"{place}: {self.name} has no such constants: {error}"
            ) from None
        return made

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
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

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        return len(step.get_feature_names_out())


class Bins(Transformer):
    """The transformer of numbers to the numbers of their bins, or a column for each bin."""

    def settings_of(self, transformer: BaseEstimator, step: str) -> Settings:
        settings = super().settings_of(transformer, step)
        if settings["dtype"] is not None:
            settings["dtype"] = np.dtype(settings["dtype"]).name
        settings["n_bins"] = np.asarray(settings["n_bins"]).tolist()
        return settings

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        if found is not None:  # a constant column has one bin, from -inf to inf
            edges = [own if np.isfinite(own).all() else own[:0] for own in step.bin_edges_]
            found["n_edges"] = [*map(len, edges)]
            at.arrays[f"{at.name}.bin_edges_"] = np.concatenate([*edges, np.zeros(1)])

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        fitted = record["fitted"]
        if fitted is None:
            return None, None
        lengths, features = fitted["n_edges"], fitted["n_features_in_"]
        require(len(lengths) == features, f"{name}.fitted.n_edges must have {features} entries")
        require(1 not in lengths, f"{name}.fitted.n_edges must be 0 or at least 2")
        try:
            sizes = check_arrays(
                arrays.pop(name, {}), {"bin_edges_": Array(("float64",), ("edges",))}
            )
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        require(
            sizes["edges"] == 1 + sum(lengths), f"{name}.bin_edges_ must have {sum(lengths)} + 1"
        )
        ordinal = record["settings"]["encode"] == "ordinal"
        return features, features if ordinal else sum(max(1, n - 1) for n in lengths)

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        if settings["dtype"] is not None:
            settings["dtype"] = np.dtype(settings["dtype"]).type
        made, fitted = self.made(**settings), record["fitted"]
        if fitted is None:
            return made
        lengths = fitted["n_edges"]
        own = made.get_params(deep=False)
        bins = [max(1, length - 1) for length in lengths]
        rows = np.zeros((2, len(bins)))
        rows[1] = [n_bins > 1 for n_bins in bins]  # a constant column has one bin
        made.set_params(n_bins=[max(2, n_bins) for n_bins in bins], strategy="uniform")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.fit(rows)
        made.set_params(n_bins=own["n_bins"], strategy=own["strategy"])
        parts = np.split(arrays[place]["bin_edges_"][:-1], np.cumsum(lengths)[:-1])
        infinite = np.array([-np.inf, np.inf])
        for k, part in enumerate(parts):
            made.bin_edges_[k] = part if len(part) else infinite
        return made

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        made: list[Column] = []
        for column, edges in zip(columns, step.bin_edges_, strict=True):
            inner = np.asarray(edges[1:-1], np.float64)
            if step.dtype is not None and np.dtype(step.dtype) == np.float32:
                inner = _least_in_float32(inner)
            codes = np.eye(len(inner) + 1)
            if step.encode == "ordinal":
                codes = np.arange(len(inner) + 1.0)[:, None]
            made += [_binned(column, inner, values, f"{place}: {self.name}") for values in codes.T]
        return made

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        return len(step.get_feature_names_out())


def _least_in_float32(edges: Vector) -> Vector:
    """Return the least numbers of float64 that are at least an edge once they are in float32."""
    above = edges.astype(np.float32)
    above = np.where(above < edges, np.nextafter(above, np.float32(np.inf)), above)
    below = np.nextafter(above, np.float32(-np.inf)).astype(np.float64)
    # Ties go to the number whose last bit is 0.
    middle = (below + above) / 2
    return np.where(middle.astype(np.float32) >= above, middle, np.nextafter(middle, np.inf))


def _binned(column: Column, edges: Vector, values: Vector, place: str) -> Column:
    """Return the value of the bin of a column."""

    def of(value: Value) -> float:
        if value != value:  # for which bins have no place
            return math.nan
        return float(values[np.searchsorted(edges, float(value), side="right")])

    if not (isinstance(column, Affine) and column.is_plain):
        return column.mapped(of, place)
    return Steps(column.source, edges, values, missing=of(column.missing))


# The functions of NumPy that files and engines know: the curve, and what is added before.
FUNCTIONS: Mapping[str, tuple[str, float]] = {
    "log1p": ("log", 1.0),
    "log": ("log", 0.0),
    "sqrt": ("sqrt", 0.0),
}
INVERSES = ("expm1", "exp", "square")


class Function(Transformer):
    """The transformer that applies a function of NumPy to every number."""

    def settings_of(self, transformer: BaseEstimator, step: str) -> Settings:
        settings = super().settings_of(transformer, step)
        for key, names in (("func", FUNCTIONS), ("inverse_func", INVERSES)):
            function = settings[key]
            name = str(getattr(function, "__name__", ""))
            if function is not None and name in names and function is getattr(np, name):
                settings[key] = name
        return settings

    def found_by(self, transformer: BaseEstimator) -> Settings:
        # It is always fitted for scikit-learn.
        return super().found_by(transformer) if hasattr(transformer, "n_features_in_") else {}

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        features = (record["fitted"] or {}).get("n_features_in_")
        return features, features

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        for key in ("func", "inverse_func"):
            settings[key] = None if settings[key] is None else getattr(np, settings[key])
        return self.made(**settings)

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        if step.func is None:
            return columns
        name = next((name for name in FUNCTIONS if step.func is getattr(np, name)), None)
        if name is None or step.kw_args:
            raise ValueError(
                f"{place} is a FunctionTransformer of {step.func!r}, which cannot be exported: the "
                f"known functions are those of NumPy, {', '.join(FUNCTIONS)}, without kw_args"
            )
        return [_curved(column, name, f"{place}: np.{name}") for column in columns]


def _curved(column: Column, name: str, place: str) -> Column:
    """Return a function of NumPy of a column."""
    curve, shift = FUNCTIONS[name]

    def of(value: float) -> float:
        with np.errstate(all="ignore"):
            return float(getattr(np, name)(value))

    if not isinstance(column, Affine):
        return column.mapped(of, place)
    return Curve(
        column.source, curve, column.factor, column.offset + shift, missing=of(column.fill)
    )


class Powers(Transformer):
    """The transformer of columns to their products."""

    def settings_of(self, transformer: BaseEstimator, step: str) -> Settings:
        settings = super().settings_of(transformer, step)
        settings["degree"] = np.asarray(settings["degree"]).tolist()
        return settings

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        if record["fitted"] is None:
            return None, None
        features, settings = record["fitted"]["n_features_in_"], record["settings"]
        degree = settings["degree"]
        low, high = degree if isinstance(degree, list) else (0, degree)
        require(
            low <= high and (high > 0 or settings["include_bias"]),
            f"{name}.degree must make a column, got {brief(degree)}",
        )
        width = 0
        for total in range(max(low, 1), high + 1):
            fewer = settings["interaction_only"]
            width += math.comb(features if fewer else features + total - 1, total)
        return features, width + bool(settings["include_bias"])

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        if isinstance(settings["degree"], list):
            settings["degree"] = tuple(settings["degree"])
        made, fitted = self.made(**settings), record["fitted"]
        return made if fitted is None else made.fit(np.zeros((1, fitted["n_features_in_"])))

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        made: list[Column] = []
        for powers in step.powers_:
            factors = [columns[k] for k in np.flatnonzero(powers) for _ in range(powers[k])]
            if len(factors) > 2:
                raise ValueError(
                    f"{place}: PolynomialFeatures(degree={step.degree}) cannot be exported: "
                    "engines are given products of two columns, so fit with degree=2"
                )
            bias: list[Column] = [constant(1.0)]
            two = len(factors) == 2
            made.append(Product(factors[0], factors[1]) if two else (factors or bias)[0])
        return made

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        return int(step.n_output_features_)


def _scaled(centre: float, scale: float, factor: float, offset: float, value: float) -> float:
    """Return what a scaler makes of a value, to the last bit."""
    return (value - centre) / scale * factor + offset


def _over_scale(
    step: BaseEstimator, centre: Vector | bool, scale: Vector | bool
) -> tuple[Vector, Vector, Vector, Vector]:
    """Return the parts of columns less `centre` over `scale`; False stands for none."""
    zeros, ones = np.zeros(step.n_features_in_), np.ones(step.n_features_in_)
    found = zeros if isinstance(centre, bool) else centre
    return found, ones if isinstance(scale, bool) else scale, ones, zeros


COLUMNWISE: tuple[Transformer, ...] = (
    Scaler(
        "sklearn.preprocessing",
        "StandardScaler",
        {"copy": FLAG, "with_mean": FLAG, "with_std": FLAG},
        {"mean_?": FLOATS, "var_?": FLOATS, "scale_?": FLOATS, "n_samples_seen_": COUNTS},
        of=lambda s: _over_scale(s, s.with_mean and s.mean_, s.with_std and s.scale_),
        needed={"with_mean": ("mean_",), "with_std": ("var_", "scale_")},
    ),
    Scaler(
        "sklearn.preprocessing",
        "MinMaxScaler",
        {"feature_range": RANGE, "copy": FLAG, "clip": FLAG},
        {
            **{f"data_{name}_": FLOATS for name in ("min", "max", "range")},
            "min_": FLOATS,
            "scale_": FLOATS,
            "n_samples_seen_": COUNTS,
        },
        of=lambda step: (0 * step.scale_, 0 * step.scale_ + 1, step.scale_, step.min_),
    ),
    Scaler(
        "sklearn.preprocessing",
        "MaxAbsScaler",
        {"copy": FLAG, "clip?": FLAG},
        {"max_abs_": FLOATS, "scale_": FLOATS, "n_samples_seen_": COUNTS},
        of=lambda s: _over_scale(s, False, s.scale_),
    ),
    Scaler(
        "sklearn.preprocessing",
        "RobustScaler",
        {
            **dict.fromkeys(("with_centering", "with_scaling", "copy", "unit_variance"), FLAG),
            "quantile_range": RANGE,
        },
        {"center_?": FLOATS, "scale_?": FLOATS},
        of=lambda s: _over_scale(s, s.with_centering and s.center_, s.with_scaling and s.scale_),
        needed={"with_centering": ("center_",), "with_scaling": ("scale_",)},
    ),
    Imputer(
        "sklearn.impute",
        "SimpleImputer",
        {
            "missing_values": CATEGORY,
            "strategy": choice("mean", "median", "most_frequent", "constant"),
            "fill_value": CATEGORY,
            "copy": FLAG,
            "add_indicator": FLAG,
            "keep_empty_features": FLAG,
        },
        fitted={
            **IN,
            "statistics_": VALUES,
            "rows": choice("object", *NUMBERS[1:]),
            "indicator_": optional(PLACES),
        },
    ),
    OneHot(
        "sklearn.preprocessing",
        "OneHotEncoder",
        {
            "categories": choice("auto", "given"),
            "drop": DROP,
            "sparse_output": FLAG,
            "dtype": choice(*NUMBERS),
            "handle_unknown": choice("error", "ignore", "infrequent_if_exist", "warn"),
            "min_frequency?": FREQUENCY,
            "max_categories?": optional(COUNT),
        },
        fitted={**IN, "categories_": LIST, "infrequent?": LIST},
        derived=("drop_idx_", "infrequent_categories_"),
        codes=one_hot_codes,
    ),
    Encoder(
        "sklearn.preprocessing",
        "OrdinalEncoder",
        {
            "categories": choice("auto", "given"),
            "dtype": choice(*NUMBERS),
            "handle_unknown": choice("error", "use_encoded_value"),
            "unknown_value": CODE,
            "encoded_missing_value": CODE,
            "min_frequency?": FREQUENCY,
            "max_categories?": optional(COUNT),
        },
        fitted={**IN, "categories_": LIST, "infrequent?": LIST},
        derived=("infrequent_categories_",),
        codes=ordinal_codes,
    ),
    Function(
        "sklearn.preprocessing",
        "FunctionTransformer",
        {
            "func": optional(choice(*FUNCTIONS)),
            "inverse_func": optional(choice(*INVERSES)),
            **dict.fromkeys(("validate", "accept_sparse", "check_inverse"), FLAG),
            "feature_names_out": optional(choice("one-to-one")),
        },
        fitted={"n_features_in_?": COUNT, "feature_names_in_?": NAMES},
    ),
    Bins(
        "sklearn.preprocessing",
        "KBinsDiscretizer",
        {
            "n_bins": Setting(
                "an integer >= 2, or a list of such",
                lambda value: integer(2).fits(value) or list_of(integer(2), "").fits(value),
            ),
            "encode": choice("onehot", "onehot-dense", "ordinal"),
            "strategy": choice("uniform", "quantile", "kmeans"),
            "quantile_method?": TEXT,
            "dtype": optional(choice("float32", "float64")),
            "subsample": optional(COUNT),
            "random_state": SEED,
        },
        {"bin_edges_": ("float64",)},
        fitted={**IN, "n_edges": list_of(PLACE, "a list of numbers of edges")},
        derived=("n_bins_",),
    ),
    Target(
        "sklearn.preprocessing",
        "TargetEncoder",
        {
            "categories": choice("auto", "given"),
            "target_type": choice("auto", "continuous", "binary", "multiclass"),
            "smooth": choice("auto", others="a number >= 0", fits=number(0).fits),
            "cv": integer(2),
            "shuffle?": FLAG,
            "random_state?": SEED,
        },
        fitted={
            **IN,
            "categories_": LIST,
            "target_type_": choice("continuous", "binary", "multiclass"),
            "classes_": optional(VALUES),
        },
        derived=("encodings_", "target_mean_"),
        codes=target_codes,
    ),
    Powers(
        "sklearn.preprocessing",
        "PolynomialFeatures",
        {
            "degree": Setting(
                "an integer from 0 to 20, or two of them",
                lambda value: (
                    integer(0, 20).fits(value) or list_of(integer(0, 20), "", 2).fits(value)
                ),
            ),
            "interaction_only": FLAG,
            "include_bias": FLAG,
            "order": choice("C", "F"),
        },
        derived=("n_output_features_", "powers_"),
    ),
)
