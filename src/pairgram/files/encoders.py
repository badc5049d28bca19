"""Encoders of categories: one column for each of them, their numbers, means of the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from pairgram._support.arrays import object_array
from pairgram._support.parameters import COUNT, Setting, choice, integer, list_of, number
from pairgram._support.schema import Array, brief, check_arrays, check_record, require
from pairgram.features.formulas import Affine, Column, Lookup, Value
from pairgram.files.transformer import Owned, Place, Settings, Transformer, Widths

FLOATS = ("float16", "float32", "float64")
# A dtype of categories: "str" is NumPy's text of any length.
NUMBERS = ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), *FLOATS)
PLACE = integer(0)
CATEGORY = Setting(
    "text, a number or None",
    lambda value: value is None or isinstance(value, (str, bool, int, float)),
)
TYPED_VALUES = {
    "dtype": choice("object", "str", *NUMBERS),
    "values": list_of(CATEGORY, "a list of text, numbers or None"),
}
DROP = Setting(
    "None, 'first', 'if_binary' or a list of categories",
    lambda value: (
        value in (None, "first", "if_binary")
        or (isinstance(value, list) and all(map(CATEGORY.fits, value)))
    ),
)
PLACES = Setting(
    "a list of ascending numbers from 0",
    lambda value: (
        isinstance(value, list)
        and all(map(PLACE.fits, value))
        and all(a < b for a, b in pairwise(value))
    ),
)
FREQUENCY = Setting(
    "None, an integer >= 1 or a number from 0 to 1",
    lambda value: (
        value is None or COUNT.fits(value) or (number(0, high=1).fits(value) and value < 1)
    ),
)


def same_category(a: object, b: object) -> bool:
    """Tell whether two values are one category: NaN is itself."""
    return bool((a != a and b != b) or a == b)


def _check_categories(record: Mapping[str, Any], name: str) -> list[Any]:
    """Check the categories of one column, and return them."""
    check_record(record, TYPED_VALUES, name)
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


def check_values(record: Mapping[str, Any], name: str) -> None:
    """Check values of columns, of which any may be the same."""
    check_record(record, TYPED_VALUES, name)
    known = [v for v in record["values"] if v is not None and v == v]
    require(all(map(_is_bounded, known)), f"{name}.values must be finite")
    require(
        record["dtype"] in ("object", "str") or not any(isinstance(v, str) for v in known),
        f"{name}.values must be of {record['dtype']}",
    )
    try:
        made = restored_values(record).tolist()
    except (OverflowError, TypeError, ValueError):
        made = []
    same = len(made) == len(record["values"]) and all(map(same_category, made, record["values"]))
    require(same, f"{name}.values must be of {record['dtype']}")


def restored_values(record: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array of a record of values."""
    values, dtype = record["values"], record["dtype"]
    return object_array(values) if dtype == "object" else np.array(values, dtype=dtype)


def _is_bounded(value: object) -> bool:
    return isinstance(value, str) or number().fits(value) or isinstance(value, (bool, int))


@dataclass(frozen=True)
class Encoder(Transformer):
    """A transformer of columns to numbers that follow from their categories.

    Attributes
    ----------
    codes : callable
        Given a fitted encoder and the number k of a column, it returns the numbers that are made of
        each of its categories, (n_categories, n_made), and of any other value, (n_made,).
    """

    codes: Callable[[Any, int], tuple[NDArray[Any], NDArray[Any]]] = field(kw_only=True)

    def settings_of(self, transformer: BaseEstimator, step: str) -> Settings:
        settings = super().settings_of(transformer, step)
        if "dtype" in settings:
            settings["dtype"] = np.dtype(settings["dtype"]).name
        if not isinstance(settings["categories"], str):
            settings["categories"] = "given"
        if not isinstance(settings.get("drop"), (str, type(None))):
            settings["drop"] = _plain_values(settings["drop"])
        return settings

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        if found is None:
            return
        found["categories_"] = [categories(own, at.step) for own in step.categories_]
        if self._groups(settings):
            found["infrequent"] = [
                None if rare is None else rare.tolist() for rare in _infrequent(step)
            ]

    def _groups(self, settings: Settings) -> bool:
        """Tell whether rare categories are one."""
        return any(settings.get(key) is not None for key in ("min_frequency", "max_categories"))

    def check(self, record: Settings, name: str, arrays: Owned, depth: int) -> Widths:
        settings, fitted = record["settings"], record["fitted"]
        if fitted is None:
            require(settings["categories"] == "auto", f"{name}.categories must be 'auto'")
            return None, None
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
        require(
            ("infrequent" in fitted) == self._groups(settings),
            f"{name}.fitted.infrequent must be there if min_frequency or max_categories is",
        )
        rare = fitted.get("infrequent", [None] * features)
        require(len(rare) == features, f"{name}.fitted.infrequent must have {features} entries")
        for k, (own, column) in enumerate(zip(rare, columns, strict=True)):
            known = len(column) - (self.name == "OrdinalEncoder" and column[-1] != column[-1])
            require(
                own is None or (PLACES.fits(own) and own and own[-1] < known),
                f"{name}.fitted.infrequent.{k} must be None or numbers of categories",
            )
        return features, self._check_more(record, name, arrays.pop(name, {}), columns, rare)

    def _check_more(
        self, record: Settings, name: str, own: Any, columns: list[list[Any]], rare: list[Any]
    ) -> int:
        """Check what the class alone has, and return how many columns it makes."""
        require(not own, f"{name} must have no arrays")
        return len(columns)

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        if "dtype" in settings:
            settings["dtype"] = np.dtype(settings["dtype"]).type
        fitted = record["fitted"]
        if fitted is None:
            return self.made(**settings)
        columns = [object_array(entry["values"]) for entry in fitted["categories_"]]
        if isinstance(settings.get("drop"), list):
            settings["drop"] = object_array(settings["drop"])
        given = settings.pop("categories") == "given"
        made = self.made(categories=columns, **settings)
        self._refit(made, columns, fitted.get("infrequent"))
        made.categories_ = [
            own if entry["dtype"] == "object" else np.array(entry["values"], dtype=entry["dtype"])
            for own, entry in zip(columns, fitted["categories_"], strict=True)
        ]
        made.categories = made.categories_ if given else "auto"
        return made

    def _refit(self, made: Any, columns: list[NDArray[Any]], rare: list[Any] | None) -> None:
        """Fit to rows of which the same categories are rare."""
        if rare is None:
            made.fit(object_array_of_rows([[column[0]] for column in columns]))
            return
        rows = []
        for column, own in zip(columns, rare, strict=True):
            is_rare = set(own or ())
            rows.append([v for k, v in enumerate(column) for _ in range(1 if k in is_rare else 2)])
        length = max(map(len, rows))
        for column, values in zip(columns, rows, strict=True):  # what is unknown is not counted
            values += [_unknown(column)] * (length - len(values))
        own = made.get_params(deep=False)
        for_fit = {"min_frequency": 2, "max_categories": None, "handle_unknown": "ignore"}
        if "unknown_value" in own:
            for_fit |= {"handle_unknown": "use_encoded_value", "unknown_value": -1}
        made.set_params(**for_fit).fit(object_array_of_rows(rows))
        made.set_params(**{key: own[key] for key in for_fit})

    def columns(self, step: BaseEstimator, columns: list[Column], place: str) -> list[Column]:
        made: list[Column] = []
        for k, column in enumerate(columns):
            categories = _plain_values(step.categories_[k])
            gaps = [j for j, value in enumerate(categories) if is_gap(value) or value == ""]
            accepted: frozenset[Any] | None = None
            if getattr(step, "handle_unknown", "") == "error":
                accepted = frozenset(None if is_gap(value) else value for value in categories)
            values, others = self.codes(step, k)
            for own, other in zip(values.T, others.tolist(), strict=True):
                # Most columns of a OneHotEncoder have one category of thousands.
                at = [*np.flatnonzero(own != other), *gaps]  # and where engines know no text
                found = {categories[j]: float(own[j]) for j in at}
                found_at = f"{place}: {self.name}"
                made.append(_looked_up(column, found, other, found_at, accepted))
        return made

    def width(self, step: BaseEstimator, n_columns: int) -> int:
        return len(step.get_feature_names_out())


def object_array_of_rows(columns: list[list[Any]]) -> NDArray[Any]:
    """Return an array of objects (n_rows, n_columns)."""
    rows = np.empty((len(columns[0]), len(columns)), dtype=object)
    for k, column in enumerate(columns):
        rows[:, k] = object_array(column)
    return rows


def _unknown(categories: Iterable[Any]) -> object:
    """Return a value that is none of the categories."""
    known = [value for value in categories if value is not None and value == value]
    if known and isinstance(known[0], str):
        return "x" * (1 + max(map(len, known)))
    return 1.0 + max(map(float, known), default=0.0)


def _infrequent(step: BaseEstimator) -> list[Any]:
    """Return the numbers of the rare categories of every column, or None for none."""
    found = []
    for categories, rare in zip(step.categories_, step.infrequent_categories_, strict=True):
        known = set() if rare is None else {repr(value) for value in _plain_values(rare)}
        numbers = [k for k, c in enumerate(_plain_values(categories)) if repr(c) in known]
        found.append(None if rare is None else np.array(numbers))
    return found


def is_gap(value: object) -> bool:
    return value is None or value != value


def _looked_up(
    column: Column,
    found: dict[Any, float],
    other: float,
    place: str,
    accepted: frozenset[Any] | None,
) -> Column:
    """Return a number for every category of a column, and another one for other values."""
    gaps = [value for key, value in found.items() if is_gap(key)]
    if len(gaps) > 1:
        raise ValueError(
            f"{place} tells None from NaN, which engines do not: replace one by the other before"
        )
    keys_there = [key for key in found if not is_gap(key)]
    strange = next((key for key in keys_there if not isinstance(key, (str, Number))), None)
    if strange is not None:
        raise ValueError(
            f"{place} has the category {strange!r}, which is neither text nor a number"
        )
    lost = next((k for k in keys_there if not isinstance(k, str) and float(k) != k), None)
    if lost is not None:
        raise ValueError(
            f"{place} has the category {lost!r}, which float64 does not hold: make it text before "
            "fit"
        )
    known = {key if isinstance(key, str) else float(key): found[key] for key in keys_there}
    missing = gaps[0] if gaps else other

    def of(value: Value) -> float:
        return missing if value != value else known.get(value, other)

    if not (isinstance(column, Affine) and column.is_plain):
        return column.mapped(of, place)
    keys, values = tuple(known), np.array([*known.values()])
    at_gap, is_filled = of(column.missing), not column.has_gaps  # by an imputer
    if accepted is not None and is_filled:
        accepted |= {None}
    return Lookup(column.source, keys, values, other, accepted, is_filled, missing=at_gap)


def _groups_of(step: BaseEstimator, k: int) -> tuple[NDArray[Any], int | None]:
    """Return the group of each category of column k, and that of rare ones, the last, if any are.

    An OrdinalEncoder gives NaN no group: that of NaN is after all others.
    """
    groups = np.arange(len(step.categories_[k]))
    limits = (getattr(step, "min_frequency", None), getattr(step, "max_categories", None))
    rare = None if limits == (None, None) else _infrequent(step)[k]
    if rare is None:
        return groups, None
    frequent = np.setdiff1d(groups, rare)
    groups[frequent] = np.arange(len(frequent))
    groups[rare] = len(frequent)
    return groups, len(frequent)


def one_hot_codes(step: BaseEstimator, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    groups, rare = _groups_of(step, k)
    n_groups = int(groups.max()) + 1
    made, other = np.eye(n_groups, dtype=bool)[groups], np.zeros(n_groups)
    if rare is not None and step.handle_unknown in ("infrequent_if_exist", "warn"):
        other[rare] = 1.0
    without = None if step.drop_idx_ is None else step.drop_idx_[k]
    kept = np.arange(n_groups) != (-1 if without is None else groups[without])
    return made[:, kept], other[kept]


class OneHot(Encoder):
    """The encoder that makes a column for each category."""

    def _check_more(
        self, record: Settings, name: str, own: Any, columns: list[list[Any]], rare: list[Any]
    ) -> int:
        require(not own, f"{name} must have no arrays")
        features, drop = len(columns), record["settings"]["drop"]
        widths = [
            len(column) - (0 if own is None else len(own) - 1)
            for column, own in zip(columns, rare, strict=True)
        ]
        if drop == "if_binary":
            return sum(widths) - sum(width == 2 for width in widths)
        if isinstance(drop, list):
            require(len(drop) == features, f"{name}.drop must have {features} values")
            for value, column, own in zip(drop, columns, rare, strict=True):
                at = [k for k, category in enumerate(column) if same_category(value, category)]
                require(at, f"{name}.drop must be categories, got {brief(value)}")
                require(own is None or at[0] not in own, f"{name}.drop must be no rare categories")
        return sum(widths) - (features if drop is not None else 0)


def ordinal_codes(step: BaseEstimator, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    groups, rare = _groups_of(step, k)
    codes = groups.astype(np.float64)
    if is_gap(step.categories_[k][-1]) and step.categories_[k][-1] is not None:
        if rare is not None:  # NaN is not counted among the frequent ones
            codes[groups == rare] = rare - 1
        codes[-1] = step.encoded_missing_value
    other = np.nan if step.unknown_value is None else float(step.unknown_value)
    return codes[:, None], np.array([other])


def target_codes(step: BaseEstimator, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    n_made = np.size(step.target_mean_)
    encodings = step.encodings_[n_made * k : n_made * (k + 1)]
    return np.column_stack(encodings), np.atleast_1d(step.target_mean_)


class Target(Encoder):
    """The encoder that makes means of the target."""

    def describe(
        self, step: BaseEstimator, settings: Settings, found: Settings | None, at: Place
    ) -> None:
        super().describe(step, settings, found, at)
        if found is not None:
            found["target_type_"] = step.target_type_
            classes = step.classes_
            found["classes_"] = None if classes is None else categories(classes, at.step)
            at.arrays[f"{at.name}.encodings_"] = np.concatenate(step.encodings_)
            at.arrays[f"{at.name}.target_mean_"] = np.atleast_1d(step.target_mean_)

    def _check_more(
        self, record: Settings, name: str, own: Any, columns: list[list[Any]], rare: list[Any]
    ) -> int:
        fitted = record["fitted"]
        kind, n_made = fitted["target_type_"], 1
        require((fitted["classes_"] is None) == (kind == "continuous"), f"{name}.classes_: {kind}")
        if fitted["classes_"] is not None:
            n_classes = len(_check_categories(fitted["classes_"], f"{name}.fitted.classes_"))
            n_made = n_classes if kind == "multiclass" else 1
        wanted = {
            "encodings_": Array(FLOATS, ("values",)),
            "target_mean_": Array(FLOATS, ("made",)),
        }
        try:
            sizes = check_arrays(own, wanted)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        require(
            sizes == {"values": n_made * sum(map(len, columns)), "made": n_made},
            f"{name}.encodings_ must have {n_made} values for every category",
        )
        return n_made * len(columns)

    def _refit(self, made: Any, columns: list[NDArray[Any]], rare: list[Any] | None) -> None:
        own, made.target_type = made.target_type, "continuous"
        made.fit(object_array_of_rows([[column[0]] for column in columns]), [0.0])
        made.target_type = own

    def restore(self, record: Settings, settings: Settings, place: str, arrays: Owned) -> Any:
        made, fitted = super().restore(record, settings, place, arrays), record["fitted"]
        if fitted is None:
            return made
        own, classes = arrays[place], fitted["classes_"]
        made.target_type_ = fitted["target_type_"]
        made.classes_ = None if classes is None else restored_values(classes)
        mean = own["target_mean_"]
        made.target_mean_ = mean if made.target_type_ == "multiclass" else mean[0]
        lengths = [len(one) for one in made.categories_ for _ in mean]
        made.encodings_ = np.split(own["encodings_"], np.cumsum(lengths)[:-1])
        return made


def _plain_values(values: Iterable[object]) -> list[Any]:
    return [getattr(value, "item", lambda v=value: v)() for value in values]


def categories(values: NDArray[Any], step: str) -> Settings:
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
