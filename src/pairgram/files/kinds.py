"""The tables of what files hold: settings and arrays of models, feature maps and statistics.

Files are checked against these tables when they are written and when they are read. What `save`
writes, `load` therefore accepts, and what `load` accepts needs no further check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pairgram._rooms import room_with, words_of
from pairgram._support.parameters import (
    AT_LEAST_0,
    COUNT,
    FLAG,
    NAMES,
    TEXT,
    Setting,
    choice,
    integer,
    list_of,
    number,
    optional,
    stored,
)
from pairgram._support.schema import (
    FLOAT64,
    INT64,
    Array,
    Arrays,
    Kind,
    Record,
    Sizes,
    brief,
    check_arrays,
    check_record,
    require,
)
from pairgram.features.feature_map import check_map

# Settings

ANY = Setting("any value", lambda value: True)
OF_PAIRS = {"pairs": stored("Pairs", "kind", "scope", "weighting", "target")}

# Arrays

# A column of inputs has at most this many knots; compiled code counts them in a byte.
MOST_KNOTS = 256


# Inputs, by their kinds. The dimension "inputs" is that of the rows as they are given.

OF_SCALES = {name: Array(FLOAT64, ("inputs",)) for name in ("inputs_centre", "inputs_scale")}
OF_QUANTILES = {
    "inputs_knots": Array(FLOAT64, ("n_knots",)),
    "inputs_values": Array(FLOAT64, ("n_knots",)),
    "inputs_ends": Array(INT64, ("inputs",)),
}


def _inputs(kind: str, settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    """Check the inputs, and set the dimension "features" to that of the rows as given."""
    times = 2 if kind == "raw+quantile" else 1
    n_inputs = sizes.get("inputs", sizes["features"] // times)
    n_columns = times * n_inputs
    require(
        sizes["features"] == n_columns,
        f"inputs of {n_inputs} columns make {n_columns}, but the features are {sizes['features']}",
    )
    of_map = settings.get("feature_map") or {}
    require(of_map.get("kernel") != "precomputed", "a precomputed kernel must have no inputs")
    sizes["features"] = n_inputs
    if "inputs_scale" in arrays:
        scale = arrays["inputs_scale"]
        require((scale > 0).all() and np.isfinite(1 / scale).all(), "inputs_scale must be > 0")
        require(kind != "maxabs" or not arrays["inputs_centre"].any(), "inputs_centre must be 0")
        return
    counts = np.diff(arrays["inputs_ends"], prepend=0)
    require(
        ((counts >= 1) & (counts <= MOST_KNOTS)).all() and counts.sum() == sizes["n_knots"],
        f"inputs_ends must give every column 1 to {MOST_KNOTS} of the knots",
    )
    knots, begins = arrays["inputs_knots"], arrays["inputs_ends"][:-1]
    within = np.ones(len(knots) - 1, bool)
    within[begins - 1] = False
    require((np.diff(knots)[within] > 0).all(), "inputs_knots must ascend within a column")
    ranges = knots[arrays["inputs_ends"] - 1] - knots[np.concatenate(([0], begins))]
    require(np.isfinite(ranges).all(), "inputs_knots of a column must have a finite range")


# Models. The dimension "outputs" is that of the feature map, or of the features if there is none.

FITTED = {
    "uses_qid_": FLAG,
    "n_features_in_": COUNT,
    "feature_names_in_?": NAMES,
}
# A model within a file, whose arrays have its name before theirs.
PART = Setting(
    "an object with the kind and the settings of a model", lambda value: isinstance(value, dict)
)
PARTS = ("model", "fallback", "prior")
OF_RIDGE = {"prior?": PART, "fitted": {**FITTED, "form_": choice("primal", "dual")}}
OF_MACHINE = {**OF_RIDGE, **stored("PairwiseELM", "n_nodes", "activation", "random_state", "C")}


def _columns(names: Any, sizes: Sizes) -> None:
    """Check that names and fills are of all columns of the rows as they are given."""
    features, filled = sizes["features"], sizes.get("filled", sizes["features"])
    require(names is None or len(names) == features, f"want {features} names of features")
    require(filled == features, f"fill_values is of {filled} features, but there are {features}")


def _model(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    fitted, features = settings["fitted"], sizes["features"]
    known = fitted["n_features_in_"]
    require(known == features, f"fitted.n_features_in_ is {known}, but the features are {features}")
    if (prior := settings.get("prior")) is not None:
        known = prior["settings"]["fitted"]["n_features_in_"]
        require(known == features, f"prior is of {known} features, but the model of {features}")
    _columns(fitted.get("feature_names_in_"), sizes)
    if (n_draws := settings.get("n_estimators")) is not None:
        nodes = (settings["feature_map"] or {}).get("kind") == "RandomNodes"
        what = "must be RandomNodes, as many for each of n_estimators"
        require(nodes and sizes["outputs"] % n_draws == 0, f"feature_map {what}")
    both = ("variances" in arrays) == ("covariances" in arrays)
    require(both, "variances and covariances must be there together")
    variances = arrays.get("variances", np.zeros(1))
    require(variances.min() >= 0, "variances must be >= 0")


def _kind(settings: Record) -> Kind:
    of_columns = Array(FLOAT64, ("outputs",))
    arrays = {
        "coef_": of_columns,
        "variances?": of_columns,
        "covariances?": of_columns,
        "fill_values?": Array(FLOAT64, ("filled",)),
    }
    return Kind({**settings, **stored("", "inputs", "missing")}, arrays, _model)


MODELS: Mapping[str, Kind] = {
    "RankRLS": _kind(
        {
            **OF_RIDGE,
            **OF_PAIRS,
            **stored("RankRLS", "alpha", "scale"),
            "constraint?": ANY,
        },
    ),
    "PointwiseELM": _kind(OF_MACHINE),
    "PairwiseELM": _kind({**OF_MACHINE, **OF_PAIRS}),
    "ELMRank": _kind(
        {
            **OF_PAIRS,
            **stored(
                "ELMRank", "n_nodes", "activation", "random_state", "alpha", "C", "n_estimators"
            ),
            "fitted": FITTED,
        }
    ),
    "RankSVM": _kind(
        {
            **OF_PAIRS,
            **stored("RankSVM", "C", "loss", "tol"),
            "prior?": PART,
            "fitted": FITTED,
        }
    ),
}


# Statistics


def _statistics(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    outputs, state = sizes["columns"] - 1, settings["state"]
    require(outputs >= 1, "sums must have two rows and columns, or more")
    found = sizes.setdefault("outputs", outputs)
    require(found == outputs, f"sums are of {outputs} features, but the feature map makes {found}")
    sizes.setdefault("features", outputs)
    _columns(state["names"], sizes)
    scatter = settings["pairs"]["scope"] == "global" and settings["pairs"]["kind"] == "with_ties"
    require(arrays["varying"].min(initial=0) >= 0, "varying must be >= 0")
    if "ids" in arrays:
        require(state["ids"] is not None, "ids must not be there if they are not checked")
        require((arrays["ids"][1:] > arrays["ids"][:-1]).all(), "ids must ascend")
    for name in ("mean", "origin"):
        require((name in arrays) == scatter, f"{name} must be there with scope 'global' alone")


STATISTICS = Kind(
    {
        **OF_PAIRS,
        "state": {
            "n_rows": integer(0),
            "n_queries": integer(0),
            "sums_weight": number(),
            "weight": AT_LEAST_0,
            "degrees": AT_LEAST_0,
            "query_weight": optional(AT_LEAST_0),
            "least_left": AT_LEAST_0,
            "ids": optional(choice("check")),
            "names": optional(NAMES),
        },
    },
    {
        "sums": Array(FLOAT64, ("columns", "columns")),
        "mean?": Array(FLOAT64, ("columns",)),
        "origin?": Array(FLOAT64, ("columns",)),
        "fill?": Array(FLOAT64, ("filled",)),
        "before?": Array(FLOAT64, ("columns",)),
        "varying": Array(INT64, ("outputs",)),
        "ids?": Array(("uint64",), ("ids",)),
    },
    _statistics,
)


# Batches of models

NUMBER_AS_TEXT = Setting(
    "a number as text, such as '0.5' or 'nan'",
    lambda value: isinstance(value, str) and value == _number(value),
)


def _number(text: str) -> str | None:
    """Return the text that Python writes for the number in a text; None if it holds none."""
    try:
        return repr(float(text))
    except ValueError:
        return None


def _batch(settings: Mapping[str, Any], arrays: Arrays, sizes: Sizes) -> None:
    models = sizes["models"]
    for name in ("errors", "keys"):
        found = settings[name]
        require(found is None or len(found) == models, f"want {models} {name}, as there are coefs")
    require((settings["keys"] is None) == ("keys" in arrays), "keys must be text or an array")
    require(None in settings["errors"], "errors must leave a model")
    same = arrays["model.coef_"].shape == (sizes["coefficients"],)
    require(same, "coefs must have a column for every coefficient of the model")


BATCHES = Kind(
    {
        "model": PART,
        "fallback": optional(PART),
        "fallback_score?": NUMBER_AS_TEXT,
        "keys": optional(NAMES),
        "errors": list_of(optional(TEXT), "a list of texts and None"),
    },
    {
        "coefs": Array(FLOAT64, ("models", "coefficients")),
        "is_dual": Array(INT64, ("models",)),
        "alpha_?": Array(FLOAT64, ("models",)),
        "C_?": Array(FLOAT64, ("models",)),
        "best_score_?": Array(FLOAT64, ("models",)),
        "keys?": Array(INT64, ("models",)),
    },
    _batch,
)


# Pipelines of scikit-learn: the bytes that skops writes of the transformers, then a model

PIPELINES = Kind(
    {"scikit-learn": TEXT, "model": PART, "name": TEXT},
    {"transformers": Array(("uint8",), ("bytes",))},
)

KINDS: Mapping[str, Kind] = {
    **MODELS,
    "Pairgram": STATISTICS,
    "BatchFit": BATCHES,
    "Pipeline": PIPELINES,
}


def _without_parts(settings: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Check the models within a file, and return the arrays that belong to none of them."""
    rest = dict(arrays)
    for name in PARTS:
        begin = f"{name}."
        names = [key for key in arrays if key.startswith(begin)]
        if (part := settings.get(name)) is None:
            missing = f"there are arrays of {name}, but {name} is None"
            require(name not in settings or not names, missing)
            continue
        check_record(part, {"kind": choice(*MODELS), "settings": ANY}, name)
        try:
            own = {key.removeprefix(begin): rest.pop(key) for key in names}
            check_contents(part["kind"], own, part["settings"])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return rest


def check_contents(kind: str, arrays: Arrays, settings: Any) -> None:
    """Raise a ValueError unless the contents of a file are those of its kind.

    Parameters
    ----------
    kind : str
    arrays : mapping of str to ndarray
    settings : what JSON can hold
        Settings with the key "feature_map", which is None or the record of a map.
    """
    table = KINDS.get(kind)
    if kind in words_of("file"):
        table = room_with("file", kind)._in_file
    if table is None:
        raise ValueError(f"holds {brief(kind)}, which this version does not know")
    require(
        isinstance(settings, dict) and "feature_map" in settings,
        f"the settings must be an object of JSON with a feature_map, got {brief(settings)}",
    )
    own, wanted, of_map = dict(settings), dict(table.arrays), None
    feature_map = own.pop("feature_map")
    check_record(own, table.settings)
    if "constraint" in own:
        known = words_of("constraint")
        check_record(own["constraint"], {f"{name}?": ANY for name in known}, "constraint")
        for name, record in own["constraint"].items():
            of_name = room_with("constraint", name).settings
            check_record(record, of_name, f"constraint.{name}")
    if feature_map is not None:
        require("model" not in own, f"feature_map must be None for a {kind}")
        of_map = check_map(feature_map)
        wanted |= of_map.arrays
    if (inputs := own.get("inputs")) is not None:
        wanted |= OF_QUANTILES if "quantile" in inputs else OF_SCALES
    sizes = check_arrays(_without_parts(own, arrays), wanted)
    if of_map is not None:
        of_map.relations(feature_map, arrays, sizes)
    elif "outputs" in sizes:
        sizes.setdefault("features", sizes["outputs"])
    if inputs is not None:
        _inputs(inputs, settings, arrays, sizes)
    table.relations(settings, arrays, sizes)
