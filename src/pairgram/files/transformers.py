"""scikit-learn's transformers: what files hold of each, how it is made again, what it computes.

Each is an entry of `TRANSFORMERS`. A record of a transformer has its class, its parameters, and
what its fit found. Numbers by column are arrays, whose names begin with the place of the record,
such as ``transformers.0.mean_``.

Transformers are made again by their constructors and by a fit to a row or two, which sets what the
installed version of scikit-learn keeps for itself. Then the fitted values of the file take their
places.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from pairgram._support.arrays import object_array
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
from pairgram._support.schema import (
    Array,
    Arrays,
    Record,
    brief,
    check_arrays,
    check_record,
    require,
)
from pairgram.features.formulas import Affine, Column, Indicator, clipped, scaled

Owned = dict[str, dict[str, Any]]  # arrays, by the places of their records
Widths = tuple[int | None, int | None]  # numbers of columns in and out; None is any number
Settings = dict[str, Any]

# Transformers within transformers are nested no deeper than this.
DEEPEST = 20

FLOATS = ("float16", "float32", "float64")
COUNTS = ("int32", "int64", *FLOATS)
ANY = Setting("any value", lambda value: True)
OBJECT = Setting("an object of JSON", lambda value: isinstance(value, dict))
LIST = Setting("a list", lambda value: isinstance(value, list))
# A dtype of categories: "str" is NumPy's text of any length.
NUMBERS = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), *FLOATS)
PLACE = integer(0)
CATEGORY = Setting(
    "text, a number or None",
    lambda value: value is None or isinstance(value, (str, bool, int, float)),
)
WEIGHTS = Setting(
    "None or an object of names and finite numbers",
    lambda value: (
        value is None or (isinstance(value, dict) and all(map(number().fits, value.values())))
    ),
)
DROP = Setting(
    "None, 'first', 'if_binary' or a list of categories",
    lambda value: (
        value in (None, "first", "if_binary")
        or (isinstance(value, list) and all(map(CATEGORY.fits, value)))
    ),
)
IN = {"n_features_in_": COUNT, "feature_names_in_?": NAMES}


class OtherVersionError(ValueError):
    """The installed version of scikit-learn cannot hold a transformer."""


class Place(NamedTuple):
    """Where a transformer is described: its place in the file, and what messages call it."""

    name: str
    step: str
    arrays: dict[str, NDArray[Any]]

    def within(self, number: object, name: str) -> Place:
        """Return the place of a part, given its number and its name."""
        within = "" if self.step.endswith(" ") else ", within it "
        return self._replace(name=f"{self.name}.{number}", step=f"{self.step}{within}{name!r}")


def parameters_of(transformer: BaseEstimator, *without: str) -> Settings:
    """Return the parameters of a transformer, but for some."""
    parameters = transformer.get_params(deep=False)
    return {name: value for name, value in parameters.items() if name not in without}


@dataclass(frozen=True)
class Transformer(ABC):
    """What is known of a class of transformers.

    A key that ends in "?" may be missing. A parameter whose name does is not known to all versions
    of scikit-learn, and only written if it is not the default.

    Attributes
    ----------
    module, name : str
        Where scikit-learn has the class, and its name there and in files.
    settings : mapping
        The parameters that a file holds. Others must be the default.
    arrays : mapping
        The types of the fitted arrays that a file holds, by their names.
    fitted : mapping
        What else a fit finds and a file holds.
    derived : tuple of str
        What a fit finds that is made again of the rest.
    """

    module: str
    name: str
    settings: Record
    arrays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fitted: Record = field(default_factory=lambda: IN)
    derived: tuple[str, ...] = ()
    # Whether there are transformers within. Classes that derive from such a one work alike.
    has_parts = False

    @property
    def made(self) -> Any:
        """The class, which is slow to import."""
        return getattr(import_module(self.module), self.name)

    def default(self) -> Any:
        """Return a transformer with the default parameters."""
        return self.made([]) if self.has_parts else self.made()

    def settings_of(self, transformer: BaseEstimator, step: str) -> Settings:
        """Return the parameters that a file holds; others must be the default."""
        known = {key.rstrip("?"): key for key in self.settings}
        default = parameters_of(self.default())
        settings: Settings = {}
        for name, value in parameters_of(transformer).items():
            is_default = name in default and value is default[name]
            if name in known and not (known[name].endswith("?") and is_default):
                settings[name] = list(value) if isinstance(value, tuple) else value
            elif name not in known and not is_default:
                raise ValueError(
                    f"{step} cannot be saved with {name}={value!r}: a file holds only the default, "
                    f"{default[name]!r}"
                )
        return settings

    def refuse_unknown(self, transformer: BaseEstimator, step: str) -> None:
        """Refuse attributes that would be lost, such as those of a later scikit-learn."""
        known = {key.rstrip("?") for key in (*self.arrays, *self.fitted)} | {*self.derived}
        known |= parameters_of(transformer).keys()
        lost = [name for name in vars(transformer) if name not in known and name[0] != "_"]
        if lost:
            raise ValueError(
                f"{step} has the attribute {lost[0]}, which a file cannot hold (scikit-learn is "
                f"{sklearn.__version__})"
            )

    def found_by(self, transformer: BaseEstimator) -> Settings:
        """Return what the fit found that every transformer has."""
        check_is_fitted(transformer)
        found = {"n_features_in_": transformer.n_features_in_}
        if hasattr(transformer, "feature_names_in_"):
            found["feature_names_in_"] = [str(name) for name in transformer.feature_names_in_]
        return found

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        """Complete the settings and, if it is fitted, what the fit found and its arrays."""
        for name in (key.rstrip("?") for key in (self.arrays if found is not None else ())):
            if (value := getattr(step, name, None)) is not None:
                at.arrays[f"{at.name}.{name}"] = np.atleast_1d(value)

    @abstractmethod
    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        """Check a record further; see `check_transformer`."""

    @abstractmethod
    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        """Make the transformer of a record that has been checked."""

    @abstractmethod
    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        """Return the columns that a fitted transformer makes of columns."""

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        """Return how many columns a fitted transformer makes of some."""
        return n_columns


def by_owner(arrays: Arrays) -> Owned:
    """Return the arrays by the places of the records to which they belong."""
    owned: Owned = {}
    for name, array in arrays.items():
        owner, _, own = name.rpartition(".")
        owned.setdefault(owner, {})[own] = array
    return owned


def describe_transformer(transformer: object, at: Place, fitted: bool = True) -> Any:
    """Return the record of a transformer, and add its arrays to those of the place.

    Raises
    ------
    ValueError
        If a file cannot hold the transformer or a part of it. The message names the step.
    """
    if transformer is None or isinstance(transformer, str):
        return transformer or "passthrough"
    kind = TRANSFORMERS.get(type(transformer).__name__)
    if kind is None or kind.made is not type(transformer):
        raise ValueError(
            f"{at.step} is a {type(transformer).__name__} of {type(transformer).__module__}, which "
            "a file cannot hold without running code when it is loaded: "
            f"{', '.join(TRANSFORMERS)}, 'passthrough' and 'drop' can be saved"
        )
    settings = kind.settings_of(transformer, at.step)
    for name, value in settings.items():
        if callable(value):
            raise ValueError(f"{at.step} cannot be saved: {name} is a Python callable")
    found = kind.found_by(transformer) if fitted else None
    kind.describe(transformer, settings, found, at)
    if fitted:
        kind.refuse_unknown(transformer, at.step)
    record = {"kind": kind.name, "settings": settings, "fitted": found}
    output = getattr(transformer, "_sklearn_output_config", {}).get("transform")
    if output is not None:
        record["output"] = output
    requests = getattr(transformer, "_metadata_request", None)
    if requests is not None and "sample_weight" in requests.fit.requests:
        record["sample_weight"] = requests.fit.requests["sample_weight"]
    return record


def check_transformer(
    record: Any, name: str, arrays: Owned, *, fitted: bool = True, depth: int = 0
) -> Widths:
    """Raise a ValueError unless a record is that of a transformer, and return its widths.

    The arrays of the record are taken out of `arrays`.

    Parameters
    ----------
    record : what JSON can hold
    name : str
        The place of the record in the file.
    arrays : dict
        As `by_owner` returns them.
    fitted : bool
        Whether the transformer has been fitted. One of no columns is not.
    depth : int
        How many transformers are around it.
    """
    if record == "passthrough":
        return None, None
    require(depth <= DEEPEST, f"{name}: transformers are nested more than {DEEPEST} deep")
    of_record = {
        "kind": choice(*TRANSFORMERS),
        "settings": OBJECT,
        "fitted": optional(OBJECT),
        "output?": choice("default", "pandas", "polars"),
        "sample_weight?": optional(FLAG),
    }
    check_record(record, of_record, name)
    kind = TRANSFORMERS[record["kind"]]
    check_record(record["settings"], kind.settings, name)
    require((record["fitted"] is not None) == fitted, f"{name}.fitted must be there: {fitted}")
    if fitted:
        check_record(record["fitted"], kind.fitted, f"{name}.fitted")
        names = record["fitted"].get("feature_names_in_")
        require(
            names is None or len(names) == record["fitted"]["n_features_in_"],
            f"{name}.fitted.feature_names_in_ must have a name for each of n_features_in_",
        )
    return kind.check(record, name, arrays, depth)


def restore_transformer(record: Any, place: str, arrays: Owned) -> Any:
    """Make the transformer of a record that has been checked.

    Raises
    ------
    OtherVersionError
        If the installed version of scikit-learn has other parameters or fitted attributes than the
        version that wrote the file.
    """
    if isinstance(record, str):
        return record
    kind, settings = TRANSFORMERS[record["kind"]], dict(record["settings"])
    parameters = kind.made._get_param_names()
    for name, value in settings.items():
        if name not in parameters:
            raise OtherVersionError(f"{place}: {kind.name} has no parameter {name}")
        if kind.settings.get(name) is RANGE:
            settings[name] = tuple(value)
    made, fitted = kind.restore(record, settings, place, arrays), record["fitted"]
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


def columns_after(step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
    """Return the columns that a fitted transformer makes of columns, as formulas.

    Raises
    ------
    ValueError
        If there are no such formulas. The message names the step by its `place`.
    """
    if step is None or isinstance(step, str) or _is_identity(step):  # "passthrough"
        return columns
    for kind in TRANSFORMERS.values():
        if type(step) is kind.made or (kind.has_parts and isinstance(step, kind.made)):
            return kind.columns(step, columns, place)
    known = ", ".join(name for name in TRANSFORMERS if name != "Pipeline")
    raise ValueError(
        f"{place} is a {type(step).__name__}, which cannot be exported: the known transformers "
        f"are {known} and Pipelines of these"
    )


def _is_identity(step: BaseEstimator) -> bool:
    """Tell whether a step is what a fitted ColumnTransformer has in place of "passthrough"."""
    return type(step).__name__ == "FunctionTransformer" and step.func is None


def _width(part: object, n_columns: int) -> int:
    """Return how many columns a fitted transformer makes of some."""
    kind = TRANSFORMERS.get(type(part).__name__)
    return n_columns if kind is None else kind.width(part, n_columns)


@dataclass(frozen=True)
class Scaler(Transformer):
    """A transformer that scales each column.

    Attributes
    ----------
    affine : callable
        Given a fitted scaler, it returns the (factors, offsets) of the columns.
    needed : mapping
        The arrays that must be there if a parameter is True.
    """

    affine: Callable[[Any], tuple[Vector, Vector]] = field(kw_only=True)
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
        factors, offsets = self.affine(step)
        changed = [
            scaled(column, float(factor), float(offset))
            for column, factor, offset in zip(columns, factors, offsets, strict=True)
        ]
        if getattr(step, "clip", False) and "feature_range" in self.settings:
            changed = [clipped(column, *step.feature_range) for column in changed]
        return changed


def same_category(a: object, b: object) -> bool:
    """Tell whether two values are one category: NaN is itself."""
    both_nan = a != a and b != b
    return bool(both_nan or a == b)


def _check_categories(record: Mapping[str, Any], name: str) -> list[Any]:
    """Check the categories of one column, and return them."""
    table = {
        "dtype": choice("object", "str", *NUMBERS),
        "values": list_of(CATEGORY, "a list of text, numbers or None"),
    }
    check_record(record, table, name)
    dtype, values = record["dtype"], record["values"]
    known = [v for v in values if v is not None and v == v]
    is_text = {isinstance(value, str) for value in known}
    require(len(is_text) < 2, f"{name}.values must be all text or all numbers")
    wanted = {True} if dtype == "str" else {False}
    require(dtype == "object" or is_text <= wanted, f"{name}.values must be of {dtype}")
    missing = [value for value in values if not (value is not None and value == value)]
    require(len({str(v) for v in missing}) == len(missing), f"{name}.values has one value twice")
    require(len(set(known)) == len(known), f"{name}.values has one value twice")
    require(
        all(value == value for value in values[:-1]) and all(map(_is_bounded, known)),
        f"{name}.values must be finite, and NaN the last",
    )
    if dtype == "str":
        require(not missing, f"{name}.values must be text")
    elif dtype != "object":
        try:
            made = np.array(values, dtype=dtype)
        except (OverflowError, TypeError, ValueError):
            raise ValueError(f"{name}.values must be of {dtype}") from None
        same = all(map(same_category, made.tolist(), values))
        require(same, f"{name}.values must be of {dtype}")
        numbers = made[: len(known)]
        require((numbers[1:] > numbers[:-1]).all(), f"{name}.values must ascend")
    return list(values)


def _is_bounded(value: object) -> bool:
    return isinstance(value, str) or number().fits(value) or isinstance(value, (bool, int))


class Encoder(Transformer):
    """The transformer of columns to a column for each of their categories."""

    def settings_of(self, transformer: BaseEstimator, step: str) -> Settings:
        settings = super().settings_of(transformer, step)
        settings["dtype"] = np.dtype(settings["dtype"]).name
        if not isinstance(settings["categories"], str):
            settings["categories"] = "given"
        if settings["drop"] is not None and not isinstance(settings["drop"], str):
            settings["drop"] = _plain_values(settings["drop"])
        return settings

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        if found is not None:
            found["categories_"] = [_categories(own, at.step) for own in step.categories_]

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        if record["fitted"] is None:
            require(record["settings"]["categories"] == "auto", f"{name}.categories must be 'auto'")
            return None, None
        fitted, drop = record["fitted"], record["settings"]["drop"]
        columns = [
            _check_categories(entry, f"{name}.fitted.categories_.{number}")
            for number, entry in enumerate(fitted["categories_"])
        ]
        features = len(columns)
        require(
            features == fitted["n_features_in_"],
            f"{name}.fitted.n_features_in_ is {fitted['n_features_in_']}, but there are categories "
            f"of {features} features",
        )
        width = sum(map(len, columns))
        if drop == "if_binary":
            return features, width - sum(len(column) == 2 for column in columns)
        if isinstance(drop, list):
            require(len(drop) == features, f"{name}.drop must have {features} values")
            for value, column in zip(drop, columns, strict=True):
                there = any(same_category(value, category) for category in column)
                require(there, f"{name}.drop must be categories, got {brief(value)}")
        return features, width - (features if drop is not None else 0)

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        settings["dtype"] = np.dtype(settings["dtype"]).type
        fitted = record["fitted"]
        if fitted is None:
            return self.made(**settings)
        columns = [object_array(entry["values"]) for entry in fitted["categories_"]]
        if isinstance(settings["drop"], list):
            settings["drop"] = object_array(settings["drop"])
        given = settings.pop("categories") == "given"
        made = self.made(categories=columns, **settings)
        made.fit(np.array([[column[0] for column in columns]], dtype=object))
        made.categories_ = [
            own if entry["dtype"] == "object" else np.array(entry["values"], dtype=entry["dtype"])
            for own, entry in zip(columns, fitted["categories_"], strict=True)
        ]
        made.categories = made.categories_ if given else "auto"
        return made

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        made: list[Column] = []
        drop = getattr(step, "drop_idx_", None)
        limits = (getattr(step, "min_frequency", None), getattr(step, "max_categories", None))
        if limits != (None, None) and any(one is not None for one in step.infrequent_categories_):
            raise ValueError(
                f"{place}: OneHotEncoder has infrequent categories, which share a column and "
                "cannot be exported: fit it without min_frequency and max_categories"
            )
        left_out = [None] * len(columns) if drop is None else drop
        for column, categories, without in zip(columns, step.categories_, left_out, strict=True):
            if not (isinstance(column, Affine) and column.factor == 1 and column.offset == 0):
                raise ValueError(f"{place}: OneHotEncoder after a scaler cannot be exported")
            if categories.dtype.kind not in "biuf":
                raise ValueError(
                    f"{place}: OneHotEncoder has categories that are no numbers, such as "
                    f"{categories[0]!r}, which engines do not take as features: encode them before"
                )
            if np.isnan(categories.astype(np.float64)).any():
                raise ValueError(
                    f"{place}: OneHotEncoder has a category for missing values (NaN), which cannot "
                    "be exported: fill them in before"
                )
            made += [
                Indicator(column.source, float(value))
                for k, value in enumerate(categories)
                if k != without
            ]
        return made

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        return len(step.get_feature_names_out())


def _plain_values(values: Iterable[object]) -> list[Any]:
    return [getattr(value, "item", lambda v=value: v)() for value in values]


def _categories(values: NDArray[Any], step: str) -> Settings:
    """Return the record of the categories of one column."""
    dtype = "str" if values.dtype.kind == "U" else values.dtype.name
    plain = _plain_values(values)
    for value in plain:
        if not CATEGORY.fits(value):
            raise ValueError(
                f"{step} cannot be saved: the category {value!r} is a {type(value).__name__}, and "
                "a file holds text, numbers and None"
            )
    return {"dtype": dtype, "values": plain}


def _check_names(parts: list[Any], name: str) -> None:
    names = [part["name"] for part in parts]
    for text in names:
        require(names.count(text) == 1, f"{name}: the name {brief(text)} is there twice")


def _restored(parts: list[Any], place: str, arrays: Owned) -> list[Any]:
    """Return the (name, transformer) of parts, and their columns if they have some."""
    return [
        (
            part["name"],
            restore_transformer(part["transformer"], f"{place}.{k}", arrays),
            *([part["columns"]] if "columns" in part else []),
        )
        for k, part in enumerate(parts)
    ]


class Chain(Transformer):
    """The transformer that applies others in turn."""

    has_parts = True

    def found_by(self, transformer: BaseEstimator) -> Settings:
        return {}

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        settings["steps"] = [
            {
                "name": name,
                "transformer": describe_transformer(part, at.within(k, name), found is not None),
            }
            for k, (name, part) in enumerate(settings["steps"])
        ]

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        first: int | None = None
        width: int | None = None
        steps, fitted = record["settings"]["steps"], record["fitted"] is not None
        for place_of, step in enumerate(steps):
            place = f"{name}.{place_of}"
            check_record(step, {"name": TEXT, "transformer": ANY}, place)
            found, out = check_transformer(
                step["transformer"], place, arrays, fitted=fitted, depth=depth + 1
            )
            require(
                None in (found, width) or found == width,
                f"{place} takes {found} columns, but gets {width}",
            )
            first = found if width is None else first
            width = width if out is None else out
        _check_names(steps, name)
        return first, width

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        settings["steps"] = _restored(settings["steps"], place, arrays)
        return self.made(**settings)

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        for name, part in step.steps:
            columns = columns_after(part, columns, f"{place}, step {name!r}")
        return columns

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        for _, part in step.steps:
            n_columns = _width(part, n_columns)
        return n_columns


class Columns(Transformer):
    """The transformer that applies others to some columns each."""

    has_parts = True

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        """Describe the parts. Columns become lists of names or of numbers."""
        given, places = settings["transformers"], {}
        parts = {name: (part, columns) for name, part, columns in given}
        if found is not None:
            places = _places_of(step)
            parts = {name: (part, columns) for name, part, columns in step.transformers_}
            if not {name for name, *_ in given} <= parts.keys():
                raise ValueError(f"{at.step} has had its transformers changed since it was fitted")
            found["sparse_output_"] = step.sparse_output_
            found["remainder"] = places["remainder"]
        names = np.asarray((found or {}).get("feature_names_in_", ()), dtype=object)
        if len(set(names)) < len(names):
            names = names[:0]

        def record(name: str, part: object, k: Any) -> Any:
            if isinstance(part, str):
                return part
            selected = bool(places.get(name))
            part = parts[name][0] if selected else part
            return describe_transformer(part, at.within(k, name), selected)

        settings["transformers"] = []
        for k, (name, part, columns) in enumerate(given):
            if found is not None:
                by_name = len(names) and _is_by_name(parts[name][1])
                columns = names[places[name]].tolist() if by_name else places[name]
            elif callable(columns) or isinstance(columns, slice):
                columns = []
            settings["transformers"].append(
                {"name": name, "columns": columns, "transformer": record(name, part, k)}
            )
        settings["remainder"] = record("remainder", settings["remainder"], "remainder")

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        settings, fitted = record["settings"], record["fitted"]
        parts, width = [*settings["transformers"]], 0
        names = None if fitted is None else fitted.get("feature_names_in_")
        taken: list[int] = []
        for place_of, part in enumerate(parts):
            place = f"{name}.{place_of}"
            check_record(part, {"name": TEXT, "columns": ANY, "transformer": ANY}, place)
            width += _check_part(part, place, arrays, fitted is not None, names, taken, depth)
        rest = {"name": "remainder", "columns": [], "transformer": settings["remainder"]}
        if fitted is not None:
            n_features, rest["columns"] = fitted["n_features_in_"], fitted["remainder"]
            wrong = next((at for at in taken if at >= n_features), None)
            require(wrong is None, f"{name}: there is no column {wrong}")
            known = set(taken)  # and all other columns are listed, so that there are not too many
            all_listed = n_features <= len(known) + len(fitted["remainder"])
            require(
                all_listed and sorted(set(range(n_features)) - known) == fitted["remainder"],
                f"{name}.fitted.remainder must be the columns that no transformer has",
            )
        place = f"{name}.remainder"
        width += _check_part(rest, place, arrays, fitted is not None, None, taken, depth)
        _check_names([*parts, rest], name)
        return (None, None) if fitted is None else (fitted["n_features_in_"], width)

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        parts = _restored(settings.pop("transformers"), place, arrays)
        rest = restore_transformer(settings.pop("remainder"), f"{place}.remainder", arrays)
        fitted = record["fitted"]
        if fitted is None:
            return self.made(parts, remainder=rest, **settings)
        names = fitted.get("feature_names_in_")
        at = {name: number for number, name in enumerate(names or ())}
        places = {
            name: [at[column] if isinstance(column, str) else column for column in columns]
            for name, _, columns in parts
        }
        places["remainder"] = fitted["remainder"]
        made = self.made(
            [(name, _plain(part), places[name]) for name, part, _ in parts],
            remainder=_plain(rest),
            **settings,
        )
        made.fit(np.zeros((1, fitted["n_features_in_"])))
        given = {name: (part, columns) for name, part, columns in parts}
        given["remainder"] = (rest, None)
        made.transformers_ = [
            (
                name,
                found if isinstance(given[name][0], str) else given[name][0],
                found_columns if name == "remainder" else given[name][1],
            )
            for name, found, found_columns in made.transformers_
        ]
        made.output_indices_ = _output_indices(made.transformers_, places)
        for name, part, _ in made.transformers_:
            if names is not None and places[name] and given[name][0] == "passthrough":
                part.feature_names_in_ = np.array(names, dtype=object)[places[name]]
        made.sparse_output_ = fitted["sparse_output_"]
        made.transformers = [(name, _unfitted(part), columns) for name, part, columns in parts]
        made.remainder = _unfitted(rest)
        return made

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        places, made = _places_of(step), []
        for name, part, _ in step.transformers_:
            if places[name] and not (isinstance(part, str) and part == "drop"):
                own = [columns[j] for j in places[name]]
                made += columns_after(part, own, f"{place}, {name!r}")
        return made

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        return max((found.stop for found in step.output_indices_.values()), default=0)


def _places_of(step: BaseEstimator) -> dict[str, list[int]]:
    """Return the numbers of the columns that each part of a fitted ColumnTransformer takes."""
    places = step._transformer_to_input_indices
    return {name: list(map(int, columns)) for name, columns in places.items()}


def _is_by_name(columns: Any) -> bool:
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    return isinstance(columns, str) or any(isinstance(column, str) for column in columns)


def _plain(part: object) -> str:
    return part if isinstance(part, str) else "passthrough"


def _unfitted(part: object) -> Any:
    return part if isinstance(part, str) else clone(part)


def _output_indices(parts: list[Any], places: dict[str, list[int]]) -> dict[str, slice]:
    """Return which columns of the output every transformer makes, as a fit finds it."""
    indices: dict[str, slice] = {}
    end = 0
    for name, part, _ in parts:
        if not isinstance(part, str) and places[name]:
            begin, end = end, end + _width(part, len(places[name]))
            indices[name] = slice(begin, end)
    for name, *_ in [*parts, ("remainder",)]:
        indices.setdefault(name, slice(0, 0))
    return indices


def _check_part(
    part: Settings, name: str, arrays: Owned, fitted: bool, names: Any, taken: list[int], depth: int
) -> int:
    """Check a transformer of some columns, add these to `taken`, and return how many it makes."""
    columns, transformer = part["columns"], part["transformer"]
    by_name = isinstance(columns, list) and bool(columns) and NAMES.fits(columns)
    require(
        by_name or (isinstance(columns, list) and all(map(PLACE.fits, columns))),
        f"{name}.columns must be a list of names or of numbers from 0, got {brief(columns)}",
    )
    places = columns
    if by_name and fitted:
        at = {text: number for number, text in enumerate(names or ())}
        wrong = next((text for text in columns if text not in at), None)
        require(wrong is None, f"{name}.columns has {brief(wrong)}, which is no feature name")
        places = [at[text] for text in columns]
    if fitted:
        taken.extend(places)
    if transformer == "drop":
        return 0
    found, out = check_transformer(
        transformer, name, arrays, fitted=fitted and bool(columns), depth=depth + 1
    )
    require(
        not fitted or not columns or found in (None, len(columns)),
        f"{name} takes {found} columns, but gets {len(columns)}",
    )
    return len(columns) if out is None else out


def _scaled_by(step: BaseEstimator, centre: Vector | None = None) -> tuple[Vector, Vector]:
    """Return the (factors, offsets) of columns less `centre` over the scale of a scaler."""
    none = np.zeros(step.n_features_in_)
    scale = none + 1 if step.scale_ is None else step.scale_
    return 1 / scale, -(none if centre is None else centre) / scale


TRANSFORMERS: Mapping[str, Transformer] = {
    kind.name: kind
    for kind in (
        Scaler(
            "sklearn.preprocessing",
            "StandardScaler",
            {"copy": FLAG, "with_mean": FLAG, "with_std": FLAG},
            {"mean_?": FLOATS, "var_?": FLOATS, "scale_?": FLOATS, "n_samples_seen_": COUNTS},
            affine=lambda step: _scaled_by(step, step.mean_ if step.with_mean else None),
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
            affine=lambda step: (step.scale_, step.min_),
        ),
        Scaler(
            "sklearn.preprocessing",
            "MaxAbsScaler",
            {"copy": FLAG, "clip?": FLAG},
            {"max_abs_": FLOATS, "scale_": FLOATS, "n_samples_seen_": COUNTS},
            affine=_scaled_by,
        ),
        Scaler(
            "sklearn.preprocessing",
            "RobustScaler",
            {
                **dict.fromkeys(("with_centering", "with_scaling", "copy", "unit_variance"), FLAG),
                "quantile_range": RANGE,
            },
            {"center_?": FLOATS, "scale_?": FLOATS},
            affine=lambda step: _scaled_by(step, step.center_),
            needed={"with_centering": ("center_",), "with_scaling": ("scale_",)},
        ),
        Encoder(
            "sklearn.preprocessing",
            "OneHotEncoder",
            {
                "categories": choice("auto", "given"),
                "drop": DROP,
                "sparse_output": FLAG,
                "dtype": choice(*NUMBERS),
                "handle_unknown": choice("error", "ignore", "infrequent_if_exist", "warn"),
            },
            fitted={**IN, "categories_": LIST},
            derived=("drop_idx_",),
        ),
        Columns(
            "sklearn.compose",
            "ColumnTransformer",
            {
                "transformers": LIST,
                "remainder": ANY,
                "sparse_threshold": number(0, high=1),
                "n_jobs": optional(integer(-1024, 1024)),
                "transformer_weights": WEIGHTS,
                "verbose": FLAG,
                "verbose_feature_names_out": FLAG,
            },
            fitted={**IN, "sparse_output_": FLAG, "remainder": LIST},
            derived=("transformers_", "output_indices_"),
        ),
        Chain(
            "sklearn.pipeline",
            "Pipeline",
            {"steps": LIST, "transform_input": optional(NAMES), "verbose": FLAG},
            fitted={},
        ),
    )
}
