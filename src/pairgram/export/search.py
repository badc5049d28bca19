"""Models for search engines: Solr, Elasticsearch, OpenSearch, Vespa, and linear ones of RankLib."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from pairgram._support.parameters import check_text
from pairgram.export.form import (
    Form,
    LtrPluginModel,
    RanklibModel,
    SolrModel,
    VespaProfile,
    for_float32,
    form_of,
    in_vespa,
    require_gaps_apart,
)
from pairgram.export.formulas import Atom, Sum, leaves
from pairgram.export.onnx import to_onnx
from pairgram.export.stores import PLUGIN, SOLR, of_features
from pairgram.export.text import Case, Dialect, bracketed, expression, number

Vector = NDArray[np.float64]
Phase = Literal["first", "second", "global"]

# ZooKeeper, which keeps Solr's models, refuses more bytes than this by default.
SOLR_LIMIT = 1 << 20
# Knots of a group are at least this share of its range apart.
GROUP_RANGE = 1e3
IN_SOLR = ("sigmoid", "tanh", "relu")
# Vespa's grammar of a rank feature: a name, arguments, outputs, and a cell of a tensor.
WORD = r"[A-Za-z0-9_@][A-Za-z0-9_@$]*"
NUMBER = r"-?(?:0[xX][0-9A-Fa-f]+[lL]?|[0-9]+[lL]|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?[fFdD]?)"
QUOTED = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' """, re.VERBOSE)
CELL = (
    rf"(?:\{{ *{WORD} *(?:: *(?:{WORD}|“) *)?(?:, *{WORD} *: *(?:{WORD}|“) *)*\}}|\[ *[0-9]+ *\])"
)
PATH = rf"(?:{WORD}|‹)(?:\.{WORD})*(?:{CELL})?"
# A number is no path as well: each argument is read in one way, so time does not double with each.
ARGUMENT = rf"(?>{NUMBER}(?= *[,)])|{PATH}|“)"
CALL = re.compile(rf"{WORD}\( *(?:{ARGUMENT} *(?:, *{ARGUMENT} *)*)?\)")
ELASTIC = (
    "Elastic's own learning to rank, without the plugin, takes trees of XGBoost, LightGBM and "
    "scikit-learn alone"
)


def to_solr(
    model: BaseEstimator,
    name: str = "model",
    *,
    store: str | None = None,
    features: Sequence[str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> SolrModel:
    """Return a model for Solr's learning-to-rank module, as the body of a request.

    Linear models become a ``LinearModel``. Models with sigmoid, tanh or relu nodes, or with
    quantiles, become a ``NeuralNetworkModel``. Send the body by
    ``PUT /solr/COLLECTION/schema/model-store``.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
    name : str, default="model"
        The name of the model in the store.
    store : str or None, default=None
        The name of the feature store. None leaves it out, and Solr takes its default store.
    features : list of str or None, default=None
        The names of Solr's features, in the order of the columns of X. None takes the column names
        that the model was fitted with. It is needed if the model was fitted without names.
    fields : mapping of str to str, or None, default=None
        For names of columns, the fields of the index that hold their values. Categories, missing
        values, bins and functions of a column become features that Solr computes from its field; a
        column without an entry is read from the field of the same name. A column with an entry also
        gets the definition of a feature with the value of its field.

    Returns
    -------
    SolrModel
        A dict, ready for ``json.dump``. Its attribute `definitions` is the body of a ``PUT`` to
        ``/solr/COLLECTION/schema/feature-store``: the features that Solr computes from fields.

    Raises
    ------
    ValueError
        If columns have no names, or if Solr cannot express the model: it has no Fourier features,
        kernels and products. The message names an alternative.

    Warns
    -----
    UserWarning
        If the body is larger than 1 MiB, which ZooKeeper refuses.
    UserWarning
        If the model fills missing values by others than 0: the message lists the default values
        that features must get in the engine.
    UserWarning
        If quantiles tell values apart that are equal in float32.

    Notes
    -----
    Solr computes in float32. Its linear models have no constant, so the constant is left out, which
    changes no ranking. A missing feature counts as its default value, which is 0 if none is set.
    Leave it at 0 for a model with features that Solr computes from fields. Fields of text must have
    the type string. Functions such as log1p need numbers ≥ 0.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> export.to_solr(model, "m1", features=["bm25", "price"])["class"]
    'org.apache.solr.ltr.model.LinearModel'
    """
    form = form_of(model, features, told=True)
    _require_layers(form)
    _warn_of_told(form, "Solr")
    made, definitions, tree = of_features(for_float32(form, "Solr"), SOLR, fields)
    names = [*made]
    if not tree.terms and all(atom.kind == "value" for atom in tree.atoms):
        weights = _by_column(tree, len(names))
        params: dict[str, Any] = {"weights": dict(zip(names, weights.tolist(), strict=True))}
        kind = "LinearModel"
    else:
        kind, params = "NeuralNetworkModel", {"layers": _layers(tree, len(names))}
    own = {} if store is None else {"store": store}
    body = own | {
        "class": f"org.apache.solr.ltr.model.{kind}",
        "name": name,
        "features": [{"name": one} for one in names],
        "params": params,
    }
    size = len(json.dumps(body, separators=(",", ":")))
    if size > SOLR_LIMIT:
        warnings.warn(
            f"the model takes {size / 2**20:.1f} MiB of JSON, and ZooKeeper refuses more than 1 "
            "MiB unless jute.maxbuffer is raised: put it in a file that Solr's "
            "DefaultWrapperModel reads, or fit fewer nodes",
            UserWarning,
            stacklevel=2,
        )
    definitions = [own | one for one in definitions]
    return SolrModel(body).named(form.names, form.texts, definitions=definitions, atoms=made)


def _warn_of_told(form: Form, engine: str) -> None:
    """Warn if the engine must be told other values than 0 for missing ones."""
    told = [] if form.told is None else zip(form.names, form.told.tolist(), strict=True)
    if found := [f"{name!r}: {value!r}" for name, value in told if value != 0]:
        more = ", and so on: see fill_ of the model's Fill" if len(found) > 20 else ""
        warnings.warn(
            f"{engine} counts a missing value as 0, and the model was fitted with other values in "
            f"the place of missing ones for {len(found)} features: give these features these "
            f"default values in the engine: {', '.join(found[:20])}{more}",
            UserWarning,
            stacklevel=3,
        )


def _by_column(tree: Sum, n_columns: int) -> Vector:
    """Return the weights of columns, of which a formula is the sum but for a constant."""
    weights = np.zeros(n_columns)
    for weight, atom in tree.entries(0):
        weights[atom.source] += weight
    return weights


def _require_layers(form: Form) -> None:
    """Refuse what Solr's neural networks have not. Linear models are always possible."""
    if form.has_products:
        raise ValueError(
            "Solr's models multiply no features: fit a linear ranker to the columns that the "
            "transform of Cross, or of PolynomialFeatures, makes, and let Solr compute each "
            "product as a feature"
        )
    below = [node for node, _ in form.tree.terms]
    for node in below:
        name = getattr(node, "name", "gaussian")
        if name not in IN_SOLR:
            kernel = getattr(node, "kernel", None)
            what = f"{name} nodes" if kernel is None else f"{kernel.name} kernel"
            raise ValueError(
                f"Solr's NeuralNetworkModel has no {what}: take to_onnx, for an engine such as "
                "Vespa that reads ONNX, or sigmoid, tanh or relu nodes"
            )
    if len(below) > 1 or (below and any(form.tree.entries(0))):
        raise ValueError(
            "Solr's NeuralNetworkModel has one activation in a layer: fit nodes of one activation"
        )


def _layers(tree: Sum, n_names: int) -> list[dict[str, Any]]:
    """Return the layers of a neural network with the same scores, up to a constant."""
    node: Any
    inner, name, last = tree, "identity", []
    for node, weights in tree.terms:  # one at most
        inner, name = node.x, node.name
        last = [_layer(weights.T, np.zeros(1), "identity")]
    layers, matrix, offset = _atoms_as_layers(inner, n_names)
    return [*layers, _layer(matrix, offset if last else np.zeros(1), name), *last]


def _atoms_as_layers(node: Sum, n_names: int) -> tuple[list[dict[str, Any]], Vector, Vector]:
    """Return (layers, matrix, offset): the sum is ``matrix @ last layer + offset``.

    Ramps one after the other are cut in groups of a similar width. Of each group, two layers make
    ``r = 1 − min(max((x − first knot) / range, 0), 1)``, and a third layer bends it at the knots.
    Values far away from a group therefore cost no digits of float32.
    """
    weights, offset = scipy.sparse.csr_array(node.weights).toarray(), node.offset.copy()
    values = [
        (atom.source, w)
        for atom, w in zip(node.atoms, weights, strict=True)
        if atom.kind == "value"
    ]
    if len(values) == len(node.atoms):
        matrix = np.zeros((len(offset), n_names))
        for source, own in values:
            matrix[:, source] += own
        return [], matrix, offset
    # Of every node of the first two layers, a column, two factors and two biases; of nodes of the
    # third, the nodes before, biases, and weights in the sum.
    first: list[tuple[int, float, float, float, float]] = []
    third: list[tuple[Any, Vector, Vector]] = []
    for source, own in values:  # x = max(x, 0) − max(−x, 0), handed through
        third.append(([len(first), len(first) + 1], np.zeros(2), np.array([own, -own])))
        first += [(source, sign, 0.0, 1.0, 0.0) for sign in (1.0, -1.0)]
    ramps = [k for k, atom in enumerate(node.atoms) if atom.kind == "ramp"]
    ramps.sort(key=lambda k: (node.atoms[k].source, node.atoms[k].low))
    for group in _groups(ramps, node.atoms):
        steps, atoms = weights[group], [node.atoms[k] for k in group]
        offset += steps.sum(axis=0)
        knots = np.array([atoms[0].low, *(atom.high for atom in atoms)])
        width = float(knots[-1] - knots[0])
        # The first layer never makes a value larger: infinity times a weight 0 is NaN.
        reach = max(width, 1.0)
        slopes = steps[::-1] / np.diff(knots)[::-1, None] * width
        bends = np.diff(slopes, prepend=0.0, axis=0)
        third.append(([len(first)] * len(steps), (knots[:0:-1] - knots[-1]) / width, -bends))
        first.append((atoms[0].source, 1 / reach, -float(knots[0]) / reach, -reach / width, 1.0))
    at, factor, bias, second, more = np.array(first).T
    before, of_third, bent = map(np.concatenate, zip(*third, strict=True))
    layers = [
        _layer(np.eye(n_names)[at.astype(int)] * factor[:, None], bias, "relu"),
        _layer(np.diag(second), more, "relu"),
        _layer(np.eye(len(first))[before], of_third, "relu"),
    ]
    return layers, bent.T, offset


def _groups(ramps: list[int], atoms: Sequence[Atom]) -> list[list[int]]:
    """Return groups of ramps that follow each other, whose widths are not too different."""
    groups: list[list[int]] = []
    for k in ramps:
        atom, own = atoms[k], [atoms[j] for j in groups[-1]] if groups else []
        least = min(one.high - one.low for one in (*own, atom))
        follows = own and own[-1].source == atom.source and own[-1].high == atom.low
        if follows and atom.high - own[0].low <= GROUP_RANGE * least:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def _layer(matrix: Vector, bias: Vector, activation: str) -> dict[str, Any]:
    return {"matrix": matrix.tolist(), "bias": bias.tolist(), "activation": activation}


def to_ltr_plugin(
    model: BaseEstimator,
    name: str = "model",
    *,
    features: Sequence[str] | None = None,
    fields: Mapping[str, str] | None = None,
    shift: str | None = None,
    lowest: float | None = None,
) -> LtrPluginModel:
    """Return a linear model for the learning-to-rank plugin of Elasticsearch and OpenSearch.

    Send it by ``POST _ltr/_featureset/FEATURESET/_createmodel``.

    Parameters
    ----------
    model, name, features, fields :
        As in `to_solr`. A field of text must be of the type ``keyword``.
    shift : str or None, default=None
        The name of a feature that is always 1. Its weight makes scores positive, because the engine
        refuses scores below 0, and the format has no constant.
    lowest : float or None, default=None
        The lowest score that the model gives, such as ``model.predict(X).min()`` on the training
        rows. It must be given with `shift`, whose weight raises this score to 0. A small margin,
        one millionth of the numbers involved, allows for the plugin's rounding to float32. Rows
        with a score below `lowest` may still get a negative score, so take the minimum over many
        rows, or a lower number.

    Returns
    -------
    LtrPluginModel
        A dict, ready for ``json.dump``. Its definition is a text that holds JSON, as the plugin
        expects. Its attribute `definitions` has the entries of a feature set for the features that
        the engine computes from fields.

    Raises
    ------
    ValueError
        If the model is not a weighted sum of columns.

    Warns
    -----
    UserWarning
        If the model fills missing values by others than 0: the message lists the default values
        that features must get in the engine.

    Notes
    -----
    The plugin computes in float32. A feature that is missing in a document counts as 0. Elastic's
    own learning to rank, without the plugin, takes only tree models.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> body = export.to_ltr_plugin(model, "m1", features=["bm25", "price"])
    >>> body["model"]["model"]["definition"]
    '{"bm25": -3.07..., "price": 0.0500...}'
    """
    form = form_of(model, features, told=True)
    _require_linear("the plugin's model/linear", True, form)
    _warn_of_told(form, "the plugin")
    made, definitions, tree = of_features(form, PLUGIN, fields)
    weights = _by_column(tree, len(made))
    own = dict(zip(made, weights.tolist(), strict=True))
    if shift is not None:
        if lowest is None:
            raise ValueError(
                "shift needs lowest, the lowest score that the model gives: "
                "lowest=model.predict(X).min(), of the training rows X"
            )
        if shift in own:
            raise ValueError(f"shift must be no feature of the model, got {shift!r}")
        constant = float(tree.offset[0])
        # Rounding in float32 must not make the lowest score negative.
        sizes = abs(lowest) + abs(constant)
        for leaf in leaves(form.columns):
            if leaf.kind == "affine":
                factor, offset = leaf.values.tolist()
                sizes += abs(own.get(form.names[leaf.source], 0.0) * offset / (factor or 1.0))
        own[shift] = max(0.0, constant - lowest + 1e-6 * sizes)
    definition = {"type": "model/linear", "definition": json.dumps(own, ensure_ascii=False)}
    body = {"model": {"name": name, "model": definition}}
    return LtrPluginModel(body).named(form.names, form.texts, definitions=definitions, atoms=made)


def _require_linear(what: str, has_store: bool, form: Form) -> None:
    """Refuse what is no weighted sum of features, some of which a store computes of fields."""
    kinds = {atom.kind for atom in form.tree.atoms}
    if "ramp" in kinds:
        raise ValueError(
            f"{what} takes linear models, and the quantile or clipped inputs of this one are "
            "linear only between knots: fit with feature_map='standard', or take another engine. "
            f"{ELASTIC}"
        )
    if beside := form.curved or "products of columns" * form.has_products:
        raise ValueError(
            f"{what} takes linear models, and this has {beside}: take a model of columns, "
            "such as RankRLSCV(feature_map='standard'), or an engine that reads ONNX (to_onnx). "
            f"{ELASTIC}"
        )
    is_open = {atom.source for atom in form.tree.atoms} <= form.tree.open
    if not has_store and not (kinds <= {"value"} and is_open):
        raise ValueError(
            f"{what} takes linear models of features, and this has categories, gaps, bins or "
            "functions of columns: "
            "take an engine that computes them, by to_sql or to_onnx, or features that are "
            "computed before"
        )


# Both engines have the plugin.
to_elasticsearch = to_opensearch = to_ltr_plugin


def to_ranklib(model: BaseEstimator, *, features: Sequence[str] | None = None) -> RanklibModel:
    """Return a linear model in RankLib's text format, for RankLib and for ``model/ranklib``.

    Columns are numbered from 1, in the order of X. `model` and `features`, errors and warnings are
    as in `to_ltr_plugin`. The result is a str.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> print(export.to_ranklib(model, features=["bm25", "price"]), end="")
    ## Coordinate Ascent
    1:-3.07... 2:0.0500...
    """
    form = form_of(model, features, told=True)
    _require_linear("RankLib's format", False, form)
    _warn_of_told(form, "RankLib")
    weights = _by_column(form.tree, len(form.names))
    terms = " ".join(f"{number}:{weight!r}" for number, weight in enumerate(weights.tolist(), 1))
    atoms = {str(k + 1): Atom("value", k) for k in range(len(form.names))}
    return RanklibModel(f"## Coordinate Ascent\n{terms}\n").named(form.names, atoms=atoms)


def to_vespa(
    model: BaseEstimator,
    name: str = "model",
    *,
    features: Sequence[str] | None = None,
    inherits: str = "default",
    phase: Phase = "second",
) -> VespaProfile:
    """Return a rank profile of Vespa.

    Linear models, also with quantiles, become an expression. Other models are read from an
    ONNX file, which is the attribute `onnx` of the profile; write it to ``files/name.onnx`` of
    the application. The parameter ``ranking.rerankCount`` of a query tells how many documents the
    second phase ranks.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
    name : str, default="model"
        The name of the profile.
    features : list of str or None, default=None
        Vespa's rank features, in the order of the columns of X, such as ``bm25(title)``,
        ``attribute(price)``, or the name of a function of the profile. The expression contains them
        as they are. None takes the column names that the model was fitted with.
    inherits : str, default="default"
        The profile that this one inherits, or several with commas between them.
    phase : {"first", "second", "global"}, default="second"
        The phase of ranking in which the model is computed.

    Returns
    -------
    VespaProfile
        A str.

    Raises
    ------
    ValueError
        If the model cannot be expressed; if two categories of a OneHotEncoder are one number in
        float32; if a name in `features` is not a rank feature (arithmetic, text with spaces and
        numbers are none); or if another name has characters that Vespa does not take.

    Warns
    -----
    UserWarning
        If quantiles tell values apart that are equal in float32.

    Notes
    -----
    A column of text must be an attribute of the type string; a missing text is the empty text.
    Where the model or a step of a pipeline fills missing numbers, the expression tests for them
    with ``isNan``, which is true for attributes of the types float and double without a value.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> profile = export.to_vespa(model, "m1", features=["bm25(title)", "attribute(price)"])
    >>> print(profile.splitlines()[2])
            expression: (-3.07...) * bm25(title) + 0.0500... * attribute(price)
    """
    form = form_of(model, features)
    check_text("phase", phase, get_args(Phase))
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"name must be letters, digits and underscores, got {name!r}")
    if not re.fullmatch(r"[A-Za-z0-9_-]+( *, *[A-Za-z0-9_-]+)*", inherits):
        raise ValueError(f"inherits must be names of profiles, with commas, got {inherits!r}")
    refused = next((one for one in form.names if not _is_rank_feature(one)), None)
    if refused is not None:
        raise ValueError(
            f"the column {refused!r} is no rank feature of Vespa, such as bm25(title) and "
            "attribute(price): give rank features by features=, in the order of the columns; for "
            "arithmetic, write a function in the profile, and give its name"
        )
    file, template = None, ""
    if form.curved:
        if form.texts:
            raise ValueError(
                f"column {form.texts[0]!r} is text, which models of Vespa that need an ONNX file "
                "do not read: fit a model without hidden nodes and kernels, which is an expression"
            )
        file = to_onnx(model, features=features)
        listed = ", ".join(form.names)
        lines = [
            f"    function {name}_in() {{",
            f"        expression: tensor<float>(d0[1],d1[{len(form.names)}]):[[{listed}]]",
            "    }",
            f"    onnx-model {name} {{",
            f"        file: files/{name}.onnx",
            f'        input "features": {name}_in',
            '        output "score": score',
            "    }",
        ]
        rank = f"onnx({name}).score{{d0:0,d1:0}}"
    else:
        require_gaps_apart(form, "Vespa")
        for_float32(form, "Vespa")  # warns; its knots are not taken, as attributes may be double
        places = range(len(form.names))
        gaps = [f"gap[{place}]" for place in places]
        template = expression(form, [f"x[{place}]" for place in places], _VESPA, gaps)
        rank = in_vespa(template, form.names, form.texts)
        lines = []
    text = "\n".join(
        [
            f"rank-profile {name} inherits {inherits} {{",
            *lines,
            f"    {phase}-phase {{",
            f"        expression: {rank}",
            "    }",
            "}",
            "",
        ]
    )
    return VespaProfile(text).named(form.names, form.texts, onnx=file, template=template)


def _tests(name: str, cases: list[Case]) -> str:
    """Return tests of equality, 1 or 0. An attribute may be double or float: a value has both."""
    terms = []
    for written, value in cases:
        tests = " + ".join(f"({name} == {one})" for one in written)
        terms.append(f"{number(value)} * {tests if len(written) == 1 else f'({tests})'}")
    return bracketed(terms)


# What begins with a backslash in text of Vespa.
ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def _text_of_vespa(text: str) -> str:
    written = (
        ESCAPED.get(c, c if ord(c) >= 32 and c != "\x7f" else f"\\x{ord(c):02x}") for c in text
    )
    return f'"{"".join(written)}"'


_VESPA = Dialect(
    has_low_edges=True,  # attributes are often float
    least="min",
    greatest="max",
    choose="where({gap}, {other}, {known})",
    nan="(0.0 / 0.0)",
    at_least="({0} >= {1})",
    lookup=_tests,
    text=_text_of_vespa,
    curves={"log": "log{0}", "sqrt": "sqrt{0}"},
    is_strict=False,
)


def _is_rank_feature(name: str) -> bool:
    """Tell whether a name is one rank feature, and not arithmetic, a number, or several words."""
    if not QUOTED.sub("", name).isascii():
        return False
    text = QUOTED.sub("“", name)
    while (shorter := CALL.sub("‹", text)) != text:  # from the inside out
        text = shorter
    return bool(re.fullmatch(rf"\$?{PATH}", text)) and not re.fullmatch(NUMBER, text)
