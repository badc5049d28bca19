"""`Transformer`: what files and engines know of a class of scikit-learn's transformers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pairgram._support.parameters import COUNT, NAMES
from pairgram._support.schema import Record
from pairgram.features.formulas import Column

Owned = dict[str, dict[str, Any]]  # arrays, by the places of their records
Widths = tuple[int | None, int | None]  # numbers of columns in and out; None is any number
Settings = dict[str, Any]

IN = {"n_features_in_": COUNT, "feature_names_in_?": NAMES}


class OtherVersionError(ValueError):
    """The installed version of scikit-learn cannot hold a transformer."""


WHOLE = "the pipeline"


class Place(NamedTuple):
    """Where a transformer is described: its place in the file, and what messages call it."""

    name: str
    step: str
    arrays: dict[str, NDArray[Any]]

    def within(self, number: object, name: str) -> Place:
        """Return the place of a part, given its number and its name."""
        step = f"{self.step}, within it {name!r}" if self.step != WHOLE else f"step {name!r}"
        return self._replace(name=f"{self.name}.{number}", step=step)


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
    # Whether there are transformers within. Classes that derive from such a one, and have its
    # `transform`, work alike.
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
