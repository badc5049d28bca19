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
import scipy.sparse

from pairgram.export.form import Form
from pairgram.features.formulas import Apply, Atom, Sum, Value

Definition = dict[str, Any]
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
# The functions that are never below 0, as scores of queries may not be: their names, for features,
# by the curve and what is added before.
FUNCTIONS = {("log", 1.0): "log1p", ("sqrt", 0.0): "sqrt"}
PLAIN = {"value", "ramp"}  # of the values of features


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


class Features:
    """The features of a form: those of the caller, and those that are computed of fields.

    Attributes
    ----------
    names : list of str
    places : dict of int to int
        The numbers of the features that are columns, by the numbers of the columns.
    atoms : dict of str to Atom
        What the features are, by their names.
    definitions : list of dict
        Those of the features that the engine computes of fields.
    """

    def __init__(self, form: Form, store: Store, fields: Mapping[str, str] | None) -> None:
        self._form, self._store = form, store
        self._fields = dict(fields or {})
        unknown = next((name for name in self._fields if name not in form.names), None)
        if unknown is not None:
            raise ValueError(f"fields must have names of columns, got {unknown!r}")
        self.names: list[str] = []
        self.definitions: list[Definition] = []
        self.places: dict[int, int] = {}
        self.atoms: dict[str, Atom] = {}
        self._numbers: dict[Atom, int] = {}

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
        if source not in self.places:
            self.places[source] = len(self.names)
            name = self._form.names[source]
            self.names.append(name)
            self.atoms[name] = Atom("value", source)
            if name in self._fields:
                definition = self._store.value(self._field(source))
                self.definitions.append({"name": name, **definition})
        return self.places[source]

    def _made(self, atom: Atom, word: str, definition: Callable[[str], Definition]) -> int:
        """Return the number of a feature of a field, which is added if it is new."""
        if atom not in self._numbers:
            name = "_".join([self._form.names[atom.source], word])
            name = re.sub(r"[^\w.-]+", "_", name)
            taken, number = {*self._form.names, *self.names}, 2
            unique = name
            while unique in taken:
                unique, number = f"{name}_{number}", number + 1
            self._numbers[atom] = len(self.names)
            self.names.append(unique)
            self.atoms[unique] = atom
            self.definitions.append({"name": unique, **definition(self._field(atom.source))})
        return self._numbers[atom]

    def of(self, atom: Atom) -> Atom:
        """Return an atom as one of features."""
        source, store, key = atom.source, self._store, atom.low
        name = self._form.names[source]
        if atom.kind in ("value", "ramp"):
            return atom._replace(source=self.plain(source))
        if atom.kind == "curve":
            function = FUNCTIONS.get((atom.name, atom.high))
            if function is None or atom.low != 1:
                raise ValueError(
                    f"a function of column {name!r} cannot be a feature of "
                    f"{store.engine}, whose queries have no scores below 0: take np.log1p or "
                    "np.sqrt of numbers from 0 on, before any scaler"
                )
            number = self._made(atom, function, lambda field: store.curve(field, function))
        elif atom.kind == "gap":
            number = self._made(atom, "is_missing", store.gap)
        elif atom.kind == "step":
            number = self._made(atom, f"from_{key}", lambda field: store.at_least(field, key))
        else:
            if isinstance(key, str) and store.macro in key:
                raise ValueError(
                    f"column {name!r} has the category {key!r}, in which "
                    f"{store.engine} takes {store.macro!r} for the beginning of a parameter"
                )
            number = self._made(atom, f"is_{key}", lambda field: store.equal(field, key))
        return Atom("value", number)


def of_features(form: Form, store: Store, fields: Mapping[str, str] | None) -> tuple[Features, Sum]:
    """Return the formula of a form as one of features, and these.

    Every feature counts 0 where a document has no value, and the atoms are values and ramps.
    """
    features, tree = Features(form, store, fields), form.tree
    atoms = {atom: k for k, atom in enumerate(tree.atoms)}
    if (
        atoms
        and {atom.source for atom in atoms} <= tree.open
        and {one.kind for one in atoms} <= PLAIN
    ):
        for source in range(len(form.names)):
            features.plain(source)
    changes: list[tuple[int, int, float]] = []  # new atom, atom, weight
    made: dict[Atom, int] = {}
    for atom, k in atoms.items():
        changes.append((made.setdefault(features.of(atom), len(made)), k, 1.0))
        if atom.kind == "ramp" and atom.source not in tree.open and atom.of(0.0) != 0:
            gap = features.of(Atom("gap", atom.source))
            changes.append((made.setdefault(gap, len(made)), k, -float(atom.of(0.0))))
    if not features.names:
        raise ValueError(
            "the model has the same score for every row, and the engine takes no model without "
            "features: fit a model whose columns tell rows apart"
        )
    to, at, weights = np.array(changes or np.empty((0, 3))).T
    places = to.astype(np.int64), at.astype(np.int64)
    change = scipy.sparse.coo_array((weights, places), (len(made), len(atoms))).tocsr()

    def changed(node: Any) -> Any:
        if isinstance(node, Apply):
            return replace(node, x=changed(node.x))
        terms = tuple((changed(below), matrix) for below, matrix in node.terms)
        return replace(node, atoms=tuple(made), weights=change @ node.weights, terms=terms)

    return features, changed(tree)
