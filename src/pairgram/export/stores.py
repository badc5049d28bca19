"""What a model reads that is no feature yet: features of fields, in the stores of search engines.

A category, a missing value and a bin are filters, which are 1 for the documents that they find; a
function of a number is a function query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairgram.export.form import Form
from pairgram.features.formulas import Affine, Column, Curve, Lookup, Piecewise, Steps, Value

Definition = dict[str, Any]
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
# The functions that are never below 0, as scores of queries may not be: their names, for features,
# by the curve and what is added before.
FUNCTIONS = {("log", 1.0): "log1p", ("sqrt", 0.0): "sqrt"}
# The columns that become features of fields, beside the values of fields.
COMPUTED = (Affine, Lookup, Steps, Curve)


@dataclass(frozen=True)
class Store:
    """How an engine computes features of a field; each function returns a definition.

    Attributes
    ----------
    engine : str
        What messages call it.
    value : callable
        The number of a field, 0 where it has none.
    equal : callable
        1 where a field has a text or a number.
    gap : callable
        1 where it has none.
    at_least : callable
        1 where it is a number or more.
    curve : callable
        A function by its name in `FUNCTIONS`, 0 where the field has no value.
    macro : str
        What text may not have, because the engine would put a parameter in its place.
    """

    engine: str
    value: Callable[[str], Definition]
    equal: Callable[[str, Value], Definition]
    gap: Callable[[str], Definition]
    at_least: Callable[[str, float], Definition]
    curve: Callable[[str, str], Definition]
    macro: str


def _short(value: float) -> str:
    """Write a number; a field of integers takes no decimals."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _filter_of_solr(query: str) -> Definition:
    return {"class": "org.apache.solr.ltr.feature.SolrFeature", "params": {"fq": [query]}}


def _equal_in_solr(field: str, value: Value) -> Definition:
    if isinstance(value, str):  # this parser takes the rest as it is
        return _filter_of_solr(f"{{!term f={field}}}{value}")
    return _filter_of_solr(f"{field}:[{_short(value)} TO {_short(value)}]")


def _curve_in_solr(field: str, name: str) -> Definition:
    of = f"ln(sum({field},1))" if name == "log1p" else f"sqrt({field})"
    query = f"{{!func}}if(exists({field}),{of},0)"
    return {"class": "org.apache.solr.ltr.feature.SolrFeature", "params": {"q": query}}


SOLR = Store(
    engine="Solr",
    value=lambda field: {
        "class": "org.apache.solr.ltr.feature.FieldValueFeature",
        "params": {"field": field},
    },
    equal=_equal_in_solr,
    gap=lambda field: _filter_of_solr(f"*:* -{field}:[* TO *]"),
    at_least=lambda field, edge: _filter_of_solr(f"{field}:[{_short(edge)} TO *]"),
    curve=_curve_in_solr,
    macro="${",
)


def _template(query: Definition) -> Definition:
    return {"params": [], "template_language": "mustache", "template": query}


def _filter_of_plugin(query: Definition) -> Definition:
    return _template({"constant_score": {"filter": query}})


def _value_in_plugin(field: str, modifier: str) -> Definition:
    factor = {"field": field, "modifier": modifier, "missing": 0}
    whole: Definition = {"match_all": {}}
    return _template({"function_score": {"query": whole, "field_value_factor": factor}})


PLUGIN = Store(
    engine="the plugin",
    value=lambda field: _value_in_plugin(field, "none"),
    equal=lambda field, value: _filter_of_plugin({"term": {field: value}}),
    gap=lambda field: _filter_of_plugin({"bool": {"must_not": {"exists": {"field": field}}}}),
    at_least=lambda field, edge: _filter_of_plugin({"range": {field: {"gte": edge}}}),
    curve=lambda field, name: _value_in_plugin(field, {"log1p": "ln1p"}.get(name, name)),
    macro="{{",
)


class _Features:
    """The features of a form: those of the caller, and those that are computed of fields."""

    def __init__(self, form: Form, store: Store, fields: Mapping[str, str] | None) -> None:
        self._form, self._store = form, store
        self._fields = dict(fields or {})
        unknown = next((name for name in self._fields if name not in form.names), None)
        if unknown is not None:
            raise ValueError(f"fields must have names of columns, got {unknown!r}")
        self.names: list[str] = []
        self.definitions: list[Definition] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def _field(self, source: int) -> str:
        name = self._form.names[source]
        field = self._fields.get(name, name)
        if not FIELD.fullmatch(field):
            raise ValueError(
                f"column {name!r} needs a field of {self._store.engine}, whose name is letters, "
                f"digits, '_' and '.', got {field!r}: give it by fields="
            )
        return field

    def plain(self, source: int) -> int:
        """Return the number of the caller's feature of a column."""
        key = ("plain", source)
        if key not in self._numbers:
            self._numbers[key] = len(self.names)
            name = self._form.names[source]
            self.names.append(name)
            if name in self._fields:
                definition = self._store.value(self._field(source))
                self.definitions.append({"name": name, **definition})
        return self._numbers[key]

    def _made(self, source: int, word: str, make: Callable[..., Definition], *given: Any) -> int:
        """Return the number of a feature of a field, which is added if it is new."""
        key = (source, word, *given)
        if key not in self._numbers:
            name = "_".join([self._form.names[source], word, *map(str, given)])
            name = re.sub(r"[^\w.-]+", "_", name)
            taken, number = {*self._form.names, *self.names}, 2
            unique = name
            while unique in taken:
                unique, number = f"{name}_{number}", number + 1
            self._numbers[key] = len(self.names)
            self.names.append(unique)
            definition = make(self._field(source), *given)
            self.definitions.append({"name": unique, **definition})
        return self._numbers[key]

    def parts(self, column: Column) -> tuple[float, list[tuple[float, Column | int]]]:
        """Return a column as a constant and a weighted sum of columns and numbers of features."""
        assert isinstance(column, (Affine, Piecewise, Lookup, Steps, Curve))
        source, store = column.source, self._store
        parts: list[tuple[float, Column | int]] = []
        constant = 0.0  # what there is besides where a field has no value
        if isinstance(column, (Affine, Piecewise)):
            of = replace(column, source=self.plain(source), missing=np.nan)
            parts = [(1.0, of)]
            at_gap = float(column.known(np.zeros(1))[0])
        elif isinstance(column, Curve):
            name = FUNCTIONS.get((column.name, column.shift))
            if name is None or column.inner != 1:
                raise ValueError(
                    f"a function of column {self._form.names[source]!r} cannot be a feature of "
                    f"{store.engine}, whose queries have no scores below 0: take np.log1p or "
                    "np.sqrt of numbers from 0 on, before any scaler"
                )
            number = self._made(source, name, lambda field: store.curve(field, name))
            parts = [(column.factor, number)]
            constant = at_gap = column.offset
        elif isinstance(column, Lookup):
            constant = at_gap = column.other
            for key, value in zip(column.keys, column.values.tolist(), strict=True):
                if isinstance(key, str) and store.macro in key:
                    raise ValueError(
                        f"column {self._form.names[source]!r} has the category {key!r}, in which "
                        f"{store.engine} takes {store.macro!r} for the beginning of a parameter"
                    )
                if value != column.other:
                    number = self._made(source, "is", store.equal, key)
                    parts.append((value - column.other, number))
        else:
            constant = at_gap = float(column.values[0])
            steps = np.diff(column.values).tolist()
            for edge, step in zip(column.edges.tolist(), steps, strict=True):
                if step != 0:
                    number = self._made(source, "from", store.at_least, edge)
                    parts.append((step, number))
        if column.missing == column.missing and column.fill != at_gap:
            number = self._made(source, "is_missing", store.gap)
            parts.append((column.fill - at_gap, number))
        return constant, parts


def of_features(
    form: Form, store: Store, fields: Mapping[str, str] | None
) -> tuple[Form, list[Definition]]:
    """Return the form as one of features, and the definitions of those that it computes of fields.

    Every feature of a form of this kind counts 0 where a document has no value, and its columns
    are affine or linear between knots.
    """
    features = _Features(form, store, fields)
    simple = all(isinstance(one, (Affine, Piecewise)) and one.has_gaps for one in form.columns)
    if simple:
        for source in range(len(form.names)):
            features.plain(source)
        return form, features.definitions
    columns: list[Column] = []
    places: dict[int, int] = {}  # of the columns that are features as they are
    entries: list[tuple[int, int, float]] = []  # the caller's column, the new one, and a weight
    constants = np.zeros(len(form.columns))
    for at, column in enumerate(form.columns):
        constants[at], parts = features.parts(column)
        for weight, part in parts:
            if isinstance(part, int):
                k = places.setdefault(part, len(columns))
                part = Affine(part)
            else:
                k = len(columns)
            columns += [part] * (k == len(columns))
            entries.append((at, k, weight))
    if not columns:
        raise ValueError(
            "the model has the same score for every row, and the engine takes no model without "
            "features: fit a model whose columns tell rows apart"
        )
    mix = np.zeros((len(form.columns), len(columns)))
    for at, k, weight in entries:
        mix[at, k] += weight
    hidden = tuple(
        replace(part, matrix=mix.T @ part.matrix, bias=part.bias + constants @ part.matrix)
        for part in form.hidden
    )
    weights = form.weights @ mix
    made = replace(
        form,
        names=tuple(features.names),
        columns=tuple(columns),
        weights=weights,
        hidden=hidden,
        constant=form.constant + float(constants @ form.weights),
    )
    return made, features.definitions
