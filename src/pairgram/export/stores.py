"""What a model reads that is no feature yet: features of fields, in the stores of search engines.

A category, a missing value and a bin are filters, which are 1 for the documents that they find; a
function of a number is a function query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import scipy.sparse

from pairgram.export.form import Form
from pairgram.export.formulas import Apply, Atom, Sum

Definition = dict[str, Any]
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
# The functions that are never below 0, as scores of queries may not be: their names, for features,
# by the curve and what is added before.
FUNCTIONS = {("log", 1.0): "log1p", ("sqrt", 0.0): "sqrt"}
PLAIN = {"value", "ramp"}  # of the values of features


class Store(NamedTuple):
    """How an engine computes features of fields.

    Attributes
    ----------
    engine : str
        What messages call it.
    definition : callable
        Given an atom and a field, it returns the definition of a feature.
    macro : str
        What text may not have, because the engine would put a parameter in its place.
    """

    engine: str
    definition: Callable[[Atom, str], Definition]
    macro: str


def _in_solr(atom: Atom, field: str) -> Definition:
    made = "org.apache.solr.ltr.feature."
    if atom.kind == "value":
        return {"class": f"{made}FieldValueFeature", "params": {"field": field}}
    if atom.kind == "curve":
        of = f"ln(sum({field},1))" if atom.name == "log" else f"sqrt({field})"
        params: Definition = {"q": f"{{!func}}if(exists({field}),{of},0)"}
        return {"class": f"{made}SolrFeature", "params": params}
    low = atom.low
    if atom.kind == "gap":
        query = f"*:* -{field}:[* TO *]"
    elif isinstance(low, str):  # this parser takes the rest as it is
        query = f"{{!term f={field}}}{low}"
    else:  # a field of integers takes no decimals
        written = str(int(low)) if low == int(low) and abs(low) < 2**53 else repr(low)
        query = f"{field}:[{written} TO {written if atom.kind == 'is' else '*'}]"
    return {"class": f"{made}SolrFeature", "params": {"fq": [query]}}


def _in_plugin(atom: Atom, field: str) -> Definition:
    if atom.kind in ("value", "curve"):
        modifier = {"log": "ln1p", "sqrt": "sqrt"}.get(atom.name, "none")
        factor = {"field": field, "modifier": modifier, "missing": 0}
        query: Definition = {"query": {"match_all": {}}, "field_value_factor": factor}
        query = {"function_score": query}
    else:
        filters: Definition = {
            "gap": {"bool": {"must_not": {"exists": {"field": field}}}},
            "step": {"range": {field: {"gte": atom.low}}},
            "is": {"term": {field: atom.low}},
        }
        query = {"constant_score": {"filter": filters[atom.kind]}}
    return {"params": [], "template_language": "mustache", "template": query}


SOLR, PLUGIN = Store("Solr", _in_solr, "${"), Store("the plugin", _in_plugin, "{{")


def _word(atom: Atom, name: str, store: Store) -> str:
    """Return how the name of a feature ends, that is no column."""
    if atom.kind == "curve":
        function = FUNCTIONS.get((atom.name, atom.high))
        if function is None or atom.low != 1:
            raise ValueError(
                f"a function of column {name!r} cannot be a feature of {store.engine}, whose "
                "queries have no scores below 0: take np.log1p or np.sqrt of numbers from 0 on, "
                "before any scaler"
            )
        return function
    if isinstance(atom.low, str) and store.macro in atom.low:
        raise ValueError(
            f"column {name!r} has the category {atom.low!r}, in which {store.engine} takes "
            f"{store.macro!r} for the beginning of a parameter"
        )
    words = {"gap": "is_missing", "step": f"from_{atom.low}", "is": f"is_{atom.low}"}
    return words[atom.kind]


def _feature_of(atom: Atom) -> Atom:
    """Return the feature that an atom is computed of."""
    return Atom("value", atom.source) if atom.kind in PLAIN else atom


def of_features(
    form: Form, store: Store, fields: Mapping[str, str] | None
) -> tuple[dict[str, Atom], list[Definition], Sum]:
    """Return the features of a form, and its formula as one of these.

    Every feature counts 0 where a document has no value, and the atoms are values and ramps.

    Returns
    -------
    features : dict of str to Atom
        What the features are, by their names: the caller's columns, and what is computed of fields.
    definitions : list of dict
        Those of the features that the engine computes of fields.
    tree : Sum
    """
    fields, tree = dict(fields or {}), form.tree
    unknown = next((name for name in fields if name not in form.names), None)
    if unknown is not None:
        raise ValueError(f"fields must have names of columns, got {unknown!r}")
    parts = [(atom, k, 1.0) for k, atom in enumerate(tree.atoms)]
    parts += [  # what a ramp counts where there is no value, and the feature is 0
        (Atom("gap", atom.source), k, -float(atom.of(0.0)))
        for k, atom in enumerate(tree.atoms)
        if atom.kind == "ramp" and atom.source not in tree.open and atom.of(0.0) != 0
    ]
    if not parts:
        raise ValueError(
            "the model has the same score for every row, and the engine takes no model without "
            "features: fit a model whose columns tell rows apart"
        )
    needed = [_feature_of(atom) for atom, *_ in parts]
    if all(atom.source in tree.open and atom.kind in PLAIN for atom in tree.atoms):
        needed = [Atom("value", source) for source in range(len(form.names))]
    numbers = {atom: k for k, atom in enumerate(dict.fromkeys(needed))}
    features: dict[str, Atom] = {}
    definitions: list[Definition] = []
    for atom in numbers:
        name = column = form.names[atom.source]
        if atom.kind != "value":
            name = begin = re.sub(r"[^\w.-]+", "_", f"{column}_{_word(atom, column, store)}")
            taken, k = {*form.names, *features}, 2
            while name in taken:
                name, k = f"{begin}_{k}", k + 1
        if atom.kind != "value" or column in fields:
            field = fields.get(column, column)
            if not FIELD.fullmatch(field):
                raise ValueError(
                    f"column {column!r} needs a field of {store.engine}, whose name is "
                    f"letters, digits, '_' and '.', got {field!r}: give it by fields="
                )
            definitions.append({"name": name, **store.definition(atom, field)})
        features[name] = atom
    made: dict[Atom, int] = {}
    change = scipy.sparse.lil_array((len(parts), len(tree.atoms)))
    for atom, k, weight in parts:
        kind = atom if atom.kind in PLAIN else Atom("value", 0)
        one = kind._replace(source=numbers[_feature_of(atom)])
        change[made.setdefault(one, len(made)), k] = weight
    change = change.tocsr()[: len(made)]

    def changed(node: Any) -> Any:
        if isinstance(node, Apply):
            return replace(node, x=changed(node.x))
        terms = tuple((changed(below), matrix) for below, matrix in node.terms)
        return replace(node, atoms=tuple(made), weights=change @ node.weights, terms=terms)

    return features, definitions, changed(tree)
