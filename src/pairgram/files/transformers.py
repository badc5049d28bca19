"""The table of scikit-learn's transformers that files may hold, and the check of their records.

A record of a transformer has its class, its parameters, and what its fit found. Numbers by column
are arrays, whose names begin with the place of the record, such as ``transformers.0.mean_``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

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
from pairgram.files.schema import (
    Array,
    Arrays,
    Record,
    brief,
    check_arrays,
    check_record,
    require,
)

Owned = dict[str, dict[str, Any]]  # arrays, by the places of their records
Widths = tuple[int | None, int | None]  # numbers of columns in and out; None is any number
Check = Callable[[Any, str, Owned, int], Widths]

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


class Transformer(NamedTuple):
    """What a file holds of a transformer: parameters, arrays, and what else its fit found.

    A key that ends in "?" may be missing. A parameter whose name does is not known to all versions
    of scikit-learn, and only written if it is not the default. `needed` are the arrays that must be
    there if a parameter is True.
    """

    settings: Record
    check: Check
    arrays: Mapping[str, tuple[str, ...]]
    fitted: Record = MappingProxyType({})
    needed: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def by_owner(arrays: Arrays) -> Owned:
    """Return the arrays by the places of the records to which they belong."""
    owned: Owned = {}
    for name, array in arrays.items():
        owner, _, own = name.rpartition(".")
        owned.setdefault(owner, {})[own] = array
    return owned


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


def _check_scaler(record: Any, name: str, arrays: Owned, depth: int) -> Widths:
    if record["fitted"] is None:
        return None, None
    kind, own = TRANSFORMERS[record["kind"]], arrays.pop(name, {})
    for parameter, needed in kind.needed.items():
        for array in needed if record["settings"][parameter] else ():
            require(array in own, f"{name}.{array} is missing, but {parameter} is True")
    features = int(record["fitted"]["n_features_in_"])
    seen = "n_samples_seen_"
    wanted = {
        key: Array(dtypes, ("seen" if key == seen else "features",))
        for key, dtypes in kind.arrays.items()
    }
    try:
        sizes = check_arrays(own, wanted)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    for dimension, also in (("features", features), ("seen", 1)):
        length = sizes.get(dimension, features)
        require(
            length in (features, also),
            f"{name}.fitted.n_features_in_ is {features}, but there are arrays of length {length}",
        )
    for array in ("scale_", "var_", seen):
        least = own[array].min() if array in own else 1
        require(
            least > 0 or (least == 0 and array != "scale_"), f"{name}.{array} has values too small"
        )
    return features, features


def same_category(a: Any, b: Any) -> bool:
    """Tell whether two values are one category: NaN is itself."""
    both_nan = a != a and b != b
    return bool(both_nan or a == b)


def _check_categories(record: Any, name: str) -> list[Any]:
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


def _is_bounded(value: Any) -> bool:
    return isinstance(value, str) or number().fits(value) or isinstance(value, (bool, int))


def _check_encoder(record: Any, name: str, arrays: Owned, depth: int) -> Widths:
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
        f"{name}.fitted.n_features_in_ is {fitted['n_features_in_']}, but there are categories of "
        f"{features} features",
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


def _check_names(parts: list[Any], name: str) -> None:
    names = [part["name"] for part in parts]
    for text in names:
        require(names.count(text) == 1, f"{name}: the name {brief(text)} is there twice")


def _check_chain(record: Any, name: str, arrays: Owned, depth: int) -> Widths:
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


def _check_columns(record: Any, name: str, arrays: Owned, depth: int) -> Widths:
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


def _check_part(
    part: Any, name: str, arrays: Owned, fitted: bool, names: Any, taken: list[int], depth: int
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


IN = {"n_features_in_": COUNT, "feature_names_in_?": NAMES}
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

TRANSFORMERS: Mapping[str, Transformer] = {
    "StandardScaler": Transformer(
        {"copy": FLAG, "with_mean": FLAG, "with_std": FLAG},
        _check_scaler,
        {"mean_?": FLOATS, "var_?": FLOATS, "scale_?": FLOATS, "n_samples_seen_": COUNTS},
        IN,
        {"with_mean": ("mean_",), "with_std": ("var_", "scale_")},
    ),
    "MinMaxScaler": Transformer(
        {"feature_range": RANGE, "copy": FLAG, "clip": FLAG},
        _check_scaler,
        {
            **{f"data_{name}_": FLOATS for name in ("min", "max", "range")},
            "min_": FLOATS,
            "scale_": FLOATS,
            "n_samples_seen_": COUNTS,
        },
        IN,
    ),
    "MaxAbsScaler": Transformer(
        {"copy": FLAG, "clip?": FLAG},
        _check_scaler,
        {"max_abs_": FLOATS, "scale_": FLOATS, "n_samples_seen_": COUNTS},
        IN,
    ),
    "RobustScaler": Transformer(
        {
            **dict.fromkeys(("with_centering", "with_scaling", "copy", "unit_variance"), FLAG),
            "quantile_range": RANGE,
        },
        _check_scaler,
        {"center_?": FLOATS, "scale_?": FLOATS},
        IN,
        {"with_centering": ("center_",), "with_scaling": ("scale_",)},
    ),
    "OneHotEncoder": Transformer(
        {
            "categories": choice("auto", "given"),
            "drop": DROP,
            "sparse_output": FLAG,
            "dtype": choice(*NUMBERS),
            "handle_unknown": choice("error", "ignore", "infrequent_if_exist", "warn"),
        },
        _check_encoder,
        {},
        {**IN, "categories_": LIST},
    ),
    "ColumnTransformer": Transformer(
        {
            "transformers": LIST,
            "remainder": ANY,
            "sparse_threshold": number(0, high=1),
            "n_jobs": optional(integer(-1024, 1024)),
            "transformer_weights": WEIGHTS,
            "verbose": FLAG,
            "verbose_feature_names_out": FLAG,
        },
        _check_columns,
        {},
        {**IN, "sparse_output_": FLAG, "remainder": LIST},
    ),
    "Pipeline": Transformer(
        {"steps": LIST, "transform_input": optional(NAMES), "verbose": FLAG},
        _check_chain,
        {},
    ),
}
