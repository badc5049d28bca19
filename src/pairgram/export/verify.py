"""Compare an exported model with the model that it came from, in the engine's own arithmetic."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from pairgram._support.arrays import with_entries
from pairgram.data.queries import Queries
from pairgram.export.form import (
    Form,
    LtrPluginModel,
    OnnxModel,
    PythonFunction,
    RanklibModel,
    SolrModel,
    SqlExpression,
    VespaProfile,
    for_float32,
    form_of,
)
from pairgram.features.formulas import _same, is_missing

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix
    from sklearn.base import BaseEstimator

Vector = NDArray[Any]
Columns = Sequence[Vector]  # of numbers, or of objects if they are text; None is missing
# Engines that count a missing value as 0, or as the default value that they are told.
WITHOUT_GAPS = (SolrModel, LtrPluginModel, RanklibModel, VespaProfile)
BLOCK = 256  # rows whose hidden nodes and kernel values are in memory at once


@dataclass(frozen=True)
class Parity:
    """How an exported model differs from the model that it came from.

    Attributes
    ----------
    max_error : float
        The largest difference of scores, after the median difference has been subtracted: a
        constant changes no ranking. Infinity if a score of the exported model is missing or not
        finite.
    spread : float
        The standard deviation of the model's scores, within queries if there are ids.
    bound : float
        The largest error that float32 may cause, over the rows: twice what it changes in the
        formula of the model, plus ``max(8, √n) · 2⁻²⁴`` times the sum of the absolute values of the
        n terms of a score; plus 2⁻²³ times the largest score, if the engine's scores are float32.
    n_queries : int
        The number of queries.
    n_reordered : int
        The number of queries in which two rows change their order, or become equal, although their
        scores differ by more than the bound, or in which a score of the exported model is missing
        or not finite.
    n_close : int
        The number of other queries in which rows change their order, or become equal: the scores of
        these rows differ by no more than the bound.
    lowest : float
        The lowest score of the exported model, without a constant that its format cannot hold. NaN
        if a score is missing.
    defaults : dict
        The values that the engine must be told to put in the place of missing ones, and that were
        put there: those of the columns that have missing values.
    """

    max_error: float
    spread: float
    bound: float
    n_queries: int
    n_reordered: int
    n_close: int
    lowest: float
    defaults: dict[str, float]

    @property
    def passes(self) -> bool:
        """Whether no order changes but between close scores, and not all scores are close."""
        return self.n_reordered == 0 and (self.bound < self.spread or self.n_close == 0)

    def __str__(self) -> str:
        share = self.max_error / self.spread if self.spread > 0 else float("nan")
        more = ""
        if not self.bound < self.spread:
            more = (
                "; the bound of float32 is not below the spread, so that this shows nothing about "
                "the order: subtract the offset of columns before fit, which scaling alone leaves"
            )
        if self.defaults:
            listed = ", ".join(f"{name!r}: {value!r}" for name, value in self.defaults.items())
            more += f"; with these default values, which the engine must have: {listed}"
        return (
            f"largest error {self.max_error:.2g}, {share:.1g} of the scores' spread "
            f"{self.spread:.3g} (float32 may make {self.bound:.2g}); order changed in "
            f"{self.n_reordered} of {self.n_queries} queries, and in {self.n_close} more between "
            f"scores that are closer than that{more}"
        )


def verify(
    exported: object,
    model: BaseEstimator,
    X: ArrayLike | sparray | spmatrix,
    qid: ArrayLike | None = None,
) -> Parity:
    """Score rows by an exported model, as its engine would, and compare with the model.

    Parameters
    ----------
    exported : what a function of `pairgram.export` returned
        The exported form itself is evaluated: JSON in float32, in the order of the engine's sums;
        ONNX by onnxruntime; SQL of the dialect "standard" by DuckDB, which must be installed, and
        other SQL by SQLite; Python by Python.
    model : the model that it came from
    X : array-like of shape (n_rows, n_features), data frame, sparse matrix, or table of `scan`
        A frame's columns are taken by the exported model's names if it has them all, else by the
        names that the model was fitted with, else by their position. A table is read into memory.
        Sparse rows are made dense. Frames and arrays of objects may hold text for a model that
        reads text. Missing numbers count for Solr, the plugin, RankLib and Vespa as the default
        values that the export lists, else as 0, as in the engine, unless the exported model tests
        for them; they are in no category. A missing text is
        the empty text for Vespa and ONNX.
    qid : array-like of shape (n_rows,) or None
        Query ids. None means that all rows are one query. A table has ids itself.

    Returns
    -------
    Parity
        ``print(parity)`` says it in words.

    Raises
    ------
    TypeError
        If `exported` is none of the exported models.
    ValueError
        If X has no rows, or not the columns of the exported model.
    ImportError
        If the package that evaluates the exported model is missing.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> source = export.to_python(model, features=["bm25", "price"])
    >>> export.verify(source, model, X, qid).n_reordered
    0
    """
    if not isinstance(exported, tuple(ENGINES)):
        raise TypeError(
            "exported must be what a function of pairgram.export returned, got "
            f"{type(exported).__name__}"
        )
    given: Any = X
    if not hasattr(given, "for_model"):
        return _parity(*_both(exported, model, X, qid))
    if qid is not None:
        raise ValueError("qid must be None if X is a table: give scan the column, as qid=")
    table, scorer = given.for_model(model)
    takes_frames = not hasattr(scorer, "coef_")  # a pipeline, or a search
    if not takes_frames:
        model = scorer
    if getattr(model, "fill_values_", None) is not None:  # which the engine may not know
        table = table.filling(np.full(table.n_features, np.nan))
    rows, own = table.rows(), None
    given = rows.X
    if takes_frames:
        given = _frame(rows.X, table.feature_names)
        # Missing text is one category to engines. An encoder tells None from NaN.
        gaps = given[list(table.layout.texts or ())].isna().any(axis=1).to_numpy()
        own = np.empty(len(gaps))
        given = given.reindex(columns=model.feature_names_in_)
        for part, score, own_rows in (
            (gaps, scorer.predict, rows.X),
            (~gaps, model.predict, given),
        ):
            if part.any():
                own[part] = score(own_rows[part])
    return _parity(*_both(exported, model, given, rows.query, own))


def _both(
    exported: Any,
    model: BaseEstimator,
    X: ArrayLike,
    qid: ArrayLike | None = None,
    own: Vector | None = None,
) -> tuple[Vector, Vector, float, dict[str, float], Queries]:
    """Return both scores, the bound of float32, the defaults that an engine needs, the lists.

    The scores of the model are computed if they are not given, as `own`.
    """
    form = form_of(model, list(exported.feature_names))
    rows, given = _rows(exported, model, X, {atom.source for atom in form.tree.atoms})
    queries = Queries.make(len(rows), qid=qid)
    defaults: dict[str, float] = {}
    if form.missing is not None and isinstance(exported, WITHOUT_GAPS):
        gaps = np.isnan(rows)
        had = np.any(gaps, axis=0).tolist()
        filled = zip(form.names, form.missing.tolist(), had, strict=True)
        defaults = {name: value for name, value, has_gaps in filled if has_gaps and value}
        rows = np.where(gaps, form.missing, rows)
    with np.errstate(over="ignore", invalid="ignore"):  # engines go on, and _parity says what came
        theirs = np.asarray(_scores(exported, rows))
    with warnings.catch_warnings():  # rows without names are taken in their order
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        own = np.asarray(model.predict(given) if own is None else own, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return theirs, own, _bound(exported, form, rows), defaults, queries


def _bound(exported: Any, form: Form, rows: Vector) -> float:
    """Return what float32 may change: what it does in the formula, and the order of sums may."""
    forms, dtype = [form], "float64"
    if not isinstance(exported, (SqlExpression, PythonFunction)):
        dtype = "float32"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what the export warned of
            forms.append(for_float32(form, ""))
    # Sums of float32 numbers have errors of about this share of the sum of their sizes.
    share, found = max(8.0, len(form.tree.atoms) ** 0.5) * 2.0**-24, 0.0
    for k in range(0, len(rows), BLOCK):
        part = slice(k, k + BLOCK)
        given = form.rows(rows[part], dtype)
        exact, size = (form.tree.values(form.rows(rows[part]), of=of)[:, 0] for of in (_same, abs))
        moved = [one.tree.values(given, dtype)[:, 0] - exact for one in forms]
        found = max(found, float((2 * np.abs(moved) + share * size).max()))
    if isinstance(exported, SolrModel):
        sizes = _sizes_in_solr(exported, _columns(exported, rows))
        found += share * float(sizes.max())
    return found


def _parity(
    theirs: Vector, own: Vector, bound: float, defaults: dict[str, float], queries: Queries
) -> Parity:
    """Compare the scores of all rows."""
    finite = np.isfinite(theirs)
    if theirs.dtype == np.float32:  # scores that are near each other are rounded, too
        largest = np.abs(theirs[finite]).max(initial=np.float32(0))
        bound += float(largest * np.finfo(np.float32).eps)
    theirs = theirs.astype(np.float64)
    difference = theirs - own
    centre = np.median(difference[finite]) if finite.any() else 0.0
    error = float(np.abs(difference - centre).max()) if finite.all() else float("inf")
    n_queries, n_reordered, n_close = queries.n_queries, 0, 0
    order = np.arange(queries.n_rows)
    squares = 0.0
    for query in range(n_queries):
        members = order[queries.rows(query)]
        squares += float(((own[members] - own[members].mean()) ** 2).sum())
        place = members[np.argsort(-own[members], kind="stable")]
        if not finite[members].all() or _is_reordered(own[place], theirs[place], bound):
            n_reordered += 1
        elif (np.diff(theirs[place]) > 0).any() or _is_reordered(own[place], theirs[place], 0.0):
            n_close += 1
    spread, lowest = (squares / len(own)) ** 0.5, float(theirs.min())
    return Parity(error, spread, bound, n_queries, n_reordered, n_close, lowest, defaults)


def _rows(exported: Any, model: BaseEstimator, X: Any, read: set[int]) -> tuple[Vector, Any]:
    """Return (rows in the order of the exported names, rows for the model's `predict`)."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    X = with_entries(X)
    names = list(exported.feature_names)
    fitted = [str(name) for name in getattr(model, "feature_names_in_", ())]
    given = X
    listed = getattr(X, "column_names", None)  # of pyarrow, whose `columns` are no names
    listed = [*(getattr(X, "columns", ()) if listed is None else listed)]
    for wanted in (names, fitted):
        if wanted and set(wanted) <= set(listed):
            X = X.select(wanted) if hasattr(X, "select") else X[wanted]
            break
    texts = {names.index(name) for name in exported.text_names}
    rows = _values(X, texts, read)
    if rows.ndim != 2 or rows.shape[1] != len(names) or not len(rows):
        raise ValueError(
            f"X must have rows of the {len(names)} columns of the exported model, got shape "
            f"{rows.shape}"
        )
    if not fitted or not listed:
        return rows, _frame(rows, fitted) if hasattr(model, "steps") and fitted else rows
    if set(fitted) <= set(listed):
        given = given.select(fitted) if hasattr(given, "select") else given[fitted]
    return rows, given


def _values(X: Any, texts: set[int], read: set[int]) -> Vector:
    """Return rows as float64, or as objects if some columns are text.

    A column of a frame that the model does not read may be anything, and becomes 0.

    Raises
    ------
    ValueError
        If a column of a frame is text, and should be numbers. The message names it.
    """
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None:
        return np.asarray(X, object if texts else np.float64)
    columns = X.columns if hasattr(X, "column_names") else None  # of pyarrow
    found = []
    for j, name in enumerate(names):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[name] if columns is None else columns[j]
        try:
            found.append(np.asarray(column, object if j in texts else np.float64))
        except (TypeError, ValueError) as error:
            if j not in read:
                found.append(np.zeros(len(column)))
                continue
            raise ValueError(f"column {name!r} of X must be real numbers: {error}") from None
    if not found:
        return np.empty((len(X), 0))
    rows = np.empty((len(found[0]), len(found)), object if texts else np.float64)
    for j, column in enumerate(found):
        rows[:, j] = column
    return rows


def _frame(rows: Vector, names: list[str]) -> Any:
    """Return rows for a pipeline, whose steps may choose the columns of frames by their names."""
    import pandas

    return pandas.DataFrame(rows, columns=names).infer_objects()


def _is_reordered(own: Vector, theirs: Vector, bound: float) -> bool:
    """Tell whether rows change places, or become equal, whose scores are further apart.

    Their own scores descend.
    """
    n_above = np.searchsorted(-own, -(own + bound))  # the rows that are further up than the bound
    lowest = np.r_[np.inf, np.minimum.accumulate(theirs)]
    return bool((theirs >= lowest[n_above]).any())


def _scores(exported: Any, X: Vector) -> Vector:
    """Return the scores of rows by an exported model, as its engine computes them."""
    score, _ = _engine(exported)
    return score(exported, _columns(exported, X))


def _engine(exported: Any) -> tuple[Callable[[Any, Columns], Vector], type]:
    return next(engine for kind, engine in ENGINES.items() if isinstance(exported, kind))


def _columns(exported: Any, X: Vector) -> Columns:
    """Return the columns of rows as an engine reads them."""
    _, dtype = _engine(exported)
    columns = []
    for name, column in zip(exported.feature_names, X.T, strict=True):
        if name in exported.text_names:
            column = column.astype(object)
            column[is_missing(column)] = None
            columns.append(column)
        else:
            columns.append(column.astype(np.float64).astype(dtype))
    return columns


def _filled(column: Vector) -> Vector:
    """Return a column with 0 for missing numbers, and the empty text for missing text."""
    gap = "" if column.dtype.kind == "O" else 0.0
    return np.where(is_missing(column), gap, column).astype(column.dtype)


def _of_python(text: str, columns: Columns) -> Vector:
    space: dict[str, Any] = {}
    exec(str(text), space)
    function = next(value for key, value in space.items() if key != "__builtins__")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([function(row) for row in rows])


def _added(terms: Any) -> Vector:
    """Add float32 terms one after the other, as the loops of engines do."""
    total = np.float32(0.0)
    for term in terms:
        total = total + term
    return np.asarray(total)


def _features(exported: Any, columns: Columns) -> dict[str, Vector]:
    """Return the features of a model: the caller's, and those that it computes of fields."""
    names = exported.feature_names
    found = {name: _filled(column) for name, column in zip(names, columns, strict=True)}
    fields = {exported.fields.get(name, name): k for k, name in enumerate(names)}

    def field(name: str) -> Vector:
        return columns[fields[name]]

    for definition in json.loads(json.dumps(exported.definitions)):  # as they are sent
        of_engine = _in_plugin if "template" in definition else _in_solr
        found[definition["name"]] = np.asarray(of_engine(definition, field), np.float32)
    return found


def _in_solr(definition: Mapping[str, Any], field: Callable[[str], Vector]) -> Vector:
    """Return a feature of Solr, as far as `SOLR` of `stores` writes them."""
    params = definition["params"]
    if "field" in params:
        return _filled(field(params["field"]))
    if "q" in params:
        name, of, rest = _matched(r"\{!func\}if\(exists\((.*?)\),(ln\(sum|sqrt)\((.*)", params["q"])
        function = {"ln(sum": np.log1p, "sqrt": np.sqrt}[of]
        assert rest == (f"{name},1)),0)" if of == "ln(sum" else f"{name}),0)")
        return function(_filled(field(name)))
    (query,) = params["fq"]
    if query.startswith("{!term"):
        name, text = _matched(r"\{!term f=([^}]*)\}(.*)", query)
        return field(name) == text
    if query.startswith("*:*"):
        (name,) = _matched(r"\*:\* -(.*):\[\* TO \*\]", query)
        return is_missing(field(name))
    name, low, high = _matched(r"(.*):\[(.*) TO (.*)\]", query)
    x = field(name)
    return (x >= np.float32(low)) & ((high == "*") | (x <= np.float32(high.replace("*", "0"))))


def _matched(pattern: str, text: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text, re.DOTALL)
    if found is None:
        raise ValueError(f"exported has a feature with {text!r}, which is unknown")
    return found.groups()


def _in_plugin(definition: Mapping[str, Any], field: Callable[[str], Vector]) -> Vector:
    """Return a feature of the plugin, as far as `PLUGIN` of `stores` writes them."""
    ((kind, query),) = definition["template"].items()
    if kind == "function_score":
        factor = query["field_value_factor"]
        functions: dict[str, Callable[..., Any]] = {
            "none": np.asarray,
            "ln1p": np.log1p,
            "sqrt": np.sqrt,
        }
        x = field(factor["field"])
        x = np.where(is_missing(x), np.float32(factor["missing"]), x)
        return functions[factor["modifier"]](x)
    ((kind, found),) = query["filter"].items()
    if kind == "bool":
        return is_missing(field(found["must_not"]["exists"]["field"]))
    ((name, value),) = found.items()
    x = field(name)
    if kind == "range":
        return x >= np.float32(value["gte"])
    return x == (value if isinstance(value, str) else np.float32(value))


def _of_solr(body: SolrModel, columns: Columns) -> Vector:
    features, params = _features_of_solr(body, columns), body["params"]
    if "layers" in params:
        *_, values = _after_layers(params["layers"], np.column_stack([*features.values()]))
        return values[:, 0]
    weights = json.loads(json.dumps(params["weights"]))
    return _added(x * np.float32(weights[name]) for name, x in features.items())


def _features_of_solr(body: SolrModel, columns: Columns) -> dict[str, Vector]:
    """Return what a model of Solr weighs: its features after their normalizers."""
    found, features = _features(body, columns), {}
    for feature in json.loads(json.dumps(body["features"])):
        values = found[feature["name"]]
        if "norm" in feature:
            params = feature["norm"]["params"]
            values = (values - np.float32(params["avg"])) / np.float32(params["std"])
        features[feature["name"]] = values
    return features


def _sizes_in_solr(body: SolrModel, columns: Columns) -> Vector:
    """Return the sizes of what a network adds after the three layers that bend columns."""
    layers = body["params"].get("layers", ())
    if len(layers) < 4:
        return np.zeros(1)
    features = np.column_stack([*_features_of_solr(body, columns).values()])
    *_, sizes = _after_layers(layers[:3], features)
    for layer in layers[3:]:
        sizes = np.abs(sizes) @ np.abs(layer["matrix"]).T
    return sizes


def _after_layers(layers: list[Any], values: Vector) -> Iterator[Vector]:
    """Yield the values after every layer of a network."""
    for layer in layers:
        matrix = np.asarray(layer["matrix"], np.float32)
        bias = np.asarray(layer["bias"], np.float32)
        values = _activated(layer["activation"], values @ matrix.T + bias)
        yield values


def _activated(name: str, values: Vector) -> Vector:
    if name == "relu":
        return np.maximum(values, np.float32(0))
    if name == "sigmoid":  # Solr computes it in double precision
        return np.asarray(expit(values.astype(np.float64)), np.float32)
    return np.tanh(values) if name == "tanh" else values


def _of_plugin(body: LtrPluginModel, columns: Columns) -> Vector:
    model = json.loads(json.dumps(body))["model"]["model"]
    weights = json.loads(model["definition"])
    norms = model.get("feature_normalizers", {})
    found, terms = _features(body, columns), []
    one = np.ones(len(columns[0]), np.float32)  # the feature of a shift
    for name, weight in weights.items():
        values = found.get(name, one)
        if name in norms:
            norm = norms[name]["standard"]
            values = (values - np.float32(norm["mean"])) / np.float32(norm["standard_deviation"])
        terms.append(values * np.float32(weight))
    return _added(terms)


def _of_ranklib(text: str, columns: Columns) -> Vector:
    pairs = [entry.split(":") for entry in str(text).splitlines()[-1].split()]
    return _added(_filled(columns[int(j) - 1]) * np.float32(weight) for j, weight in pairs)


def _session(file: bytes) -> Any:
    """Return onnxruntime's session of a model."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "verify of ONNX needs onnxruntime: pip install 'pairgram[onnx]'"
        ) from error
    return onnxruntime.InferenceSession(bytes(file), providers=["CPUExecutionProvider"])


def _of_onnx(file: bytes, columns: Columns) -> Vector:
    session = _session(file)
    numbers = [column for column in columns if column.dtype.kind != "O"]
    texts = [_filled(column) for column in columns if column.dtype.kind == "O"]
    given = {
        one.name: np.column_stack(texts if one.type == "tensor(string)" else numbers)
        for one in session.get_inputs()
    }
    return session.run(None, given)[0][:, 0]


# Text of Vespa's, or the place of a column.
TEXT_OR_PLACE = re.compile(r"""("(?:[^"\\]|\\.)*")|x\[([0-9]+)\]""")


def _of_vespa(profile: VespaProfile, columns: Columns) -> Vector:
    """Evaluate the ONNX file, or the expression, whose sums are in double precision."""
    if profile.onnx is not None:
        return _of_onnx(profile.onnx, [_filled(column) for column in columns])
    (text,) = re.findall(r"^        expression: (.*)$", str(profile), re.MULTILINE)
    names = profile.feature_names
    if TEXT_OR_PLACE.sub(lambda one: one[1] or names[int(one[2])], profile.template) != text:
        raise ValueError("exported is a profile whose expression was changed after the export")
    # Python does not parse a function named "if".
    template = re.sub(
        r""""(?:[^"\\]|\\.)*"|\bif\(""",
        lambda m: "where(" if m[0] == "if(" else m[0],
        profile.template,
    )
    tree = ast.parse(template, mode="eval").body
    asked = {
        int(str(node.args[0].slice.value))  # type: ignore[attr-defined]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isNan"
    }
    given = [column if j in asked else _filled(column) for j, column in enumerate(columns)]
    given = [x if x.dtype.kind == "O" else x.astype(np.float64) for x in given]
    return _evaluated(tree, given) + np.zeros(len(given[0]))


OPERATIONS = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}
COMPARISONS = {ast.Eq: np.equal, ast.Gt: np.greater, ast.GtE: np.greater_equal}


def _normalized(x: Vector) -> Vector:
    """Return what Vespa's normalize_linear makes of the documents of a list."""
    found = x[np.isfinite(x)]
    low, high = (found.min(), found.max()) if len(found) else (0.0, 0.0)
    scale, middle = (1 / (high - low), (low + high) * 0.5) if high > low else (0.0, 0.0)
    return 0.5 + scale * (x - middle)


def _reciprocal_ranks(x: Vector, offset: float) -> Vector:
    """Return what reciprocal_rank makes of them, whose ties have ranks in the order of the hits."""
    order = np.argsort(-np.where(np.isnan(x), -np.inf, x), kind="stable")
    made = np.empty(len(x))
    made[order] = 1 / (offset + 1 + np.arange(len(x)))
    return made


FUNCTIONS: dict[str, tuple[Callable[..., Vector], int]] = {
    "min": (np.minimum, 2),
    "max": (np.maximum, 2),
    "where": (np.where, 3),
    "isNan": (np.isnan, 1),
    "log": (np.log, 1),
    "sqrt": (np.sqrt, 1),
    "normalize_linear": (_normalized, 1),
    "reciprocal_rank": (_reciprocal_ranks, 2),
}


def _evaluated(node: ast.expr, X: Columns) -> Any:
    """Return the value of arithmetic on ``x[j]``, which are columns. Nothing else is evaluated."""
    above = []
    while isinstance(node, ast.BinOp):  # a loop, because sums have thousands of terms
        above.append(node)
        node = node.left
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
        value: Any = node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = -_evaluated(node.operand, X)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        value = X[int(str(node.slice.value))]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        compare = COMPARISONS[type(node.ops[0])]
        value = compare(_evaluated(node.left, X), _evaluated(node.comparators[0], X))
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in FUNCTIONS
        and len(node.args) == FUNCTIONS[node.func.id][1]
    ):
        value = FUNCTIONS[node.func.id][0](*(_evaluated(one, X) for one in node.args))
    else:
        raise ValueError(f"exported has an expression with {ast.unparse(node)!r}, which is unknown")
    for one in reversed(above):
        value = OPERATIONS[type(one.op)](value, _evaluated(one.right, X))
    return value


def _of_sql(exported: SqlExpression, columns: Columns) -> Vector:
    """Evaluate with columns c0, c1 …, as names of SQL ignore case."""
    numbers = {name: f"c{j}" for j, name in enumerate(exported.feature_names)}

    def column(quoted: re.Match[str]) -> str:
        text = quoted[0]
        return text if text[0] == "'" else numbers[text[1:-1].replace('""', '"')]

    text = re.sub(r"'(?:[^']|'')*'|" r'"(?:[^"]|"")*"', column, exported)
    if exported.dialect == "standard":
        return _in_duckdb(text, columns)
    kinds = ["TEXT" if column.dtype.kind == "O" else "REAL" for column in columns]
    listed = ", ".join(f"c{j} {kind}" for j, kind in enumerate(kinds))
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE rows ({listed})")
        marks = ", ".join("?" * len(columns))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        connection.executemany(f"INSERT INTO rows VALUES ({marks})", rows)
        found = connection.execute(f"SELECT {text} FROM rows ORDER BY rowid").fetchall()
    finally:
        connection.close()
    return np.array([value for (value,) in found], np.float64)


def _in_duckdb(text: str, columns: Columns) -> Vector:
    """Return what DuckDB makes of an expression. Its columns keep NaN, and a NULL score is NaN."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(
            "verify of SQL of the dialect 'standard' needs DuckDB: pip install duckdb, or verify "
            "the model by to_sql(..., dialect='sqlite')"
        ) from error
    rows = {f"c{j}": np.ascontiguousarray(column) for j, column in enumerate(columns)}
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        connection.register("rows", {"place": np.arange(len(columns[0])), **rows})
        found = connection.execute(f"SELECT {text} AS score FROM rows ORDER BY place").fetchnumpy()
    return np.ma.filled(found["score"].astype(np.float64), np.nan)


# What computes the scores of an exported model as its engine does, and the type as which it reads
# columns of numbers.
ENGINES: dict[type, tuple[Callable[[Any, Columns], Vector], type]] = {
    SolrModel: (_of_solr, np.float32),
    LtrPluginModel: (_of_plugin, np.float32),
    RanklibModel: (_of_ranklib, np.float32),
    VespaProfile: (_of_vespa, np.float32),
    OnnxModel: (_of_onnx, np.float32),
    SqlExpression: (_of_sql, np.float64),
    PythonFunction: (_of_python, np.float64),
}
