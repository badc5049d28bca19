"""What the features mean that Solr and the plugin compute of fields: their definitions, read."""

import re

from parts.export import Atom

CURVES = {"ln(sum": ("log", 1.0), "sqrt": ("sqrt", 0.0), "ln1p": ("log", 1.0)}


def atoms_of(names, definitions, fields=()):
    """Return the atoms of the columns with these names, and of features with these definitions."""
    found = {name: Atom("value", source) for source, name in enumerate(names)}
    sources = {dict(fields).get(name, name): source for source, name in enumerate(names)}
    for one in definitions:
        of = _in_plugin if "template" in one else _in_solr
        found[one["name"]] = of(one, sources.__getitem__)
    return found


def _in_solr(definition, source):
    params = definition["params"]
    if "field" in params:
        return Atom("value", source(params["field"]))
    if "q" in params:
        name, of, rest = _matched(r"\{!func\}if\(exists\((.*?)\),(ln\(sum|sqrt)\((.*)", params["q"])
        assert rest == (f"{name},1)),0)" if of == "ln(sum" else f"{name}),0)")
        curve, shift = CURVES[of]
        return Atom("curve", source(name), 1.0, shift, curve)
    (query,) = params["fq"]
    if query.startswith("{!term"):
        name, text = _matched(r"\{!term f=([^}]*)\}(.*)", query)
        return Atom("is", source(name), text)
    if query.startswith("*:*"):
        (name,) = _matched(r"\*:\* -(.*):\[\* TO \*\]", query)
        return Atom("gap", source(name))
    name, low, high = _matched(r"(.*):\[(.*) TO (.*)\]", query)
    assert high in ("*", low)
    return Atom("step" if high == "*" else "is", source(name), float(low))


def _matched(pattern, text):
    return re.fullmatch(pattern, text, re.DOTALL).groups()


def _in_plugin(definition, source):
    ((kind, query),) = definition["template"].items()
    if kind == "function_score":
        factor = query["field_value_factor"]
        at = source(factor["field"])
        assert factor["missing"] == 0
        if factor["modifier"] == "none":
            return Atom("value", at)
        curve, shift = CURVES[factor["modifier"]]
        return Atom("curve", at, 1.0, shift, curve)
    ((kind, found),) = query["filter"].items()
    if kind == "bool":
        return Atom("gap", source(found["must_not"]["exists"]["field"]))
    ((name, value),) = found.items()
    return (
        Atom("step", source(name), value["gte"])
        if kind == "range"
        else Atom("is", source(name), value)
    )
