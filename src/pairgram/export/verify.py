"""Compare an exported model with the model that it came from, in the engine's own arithmetic."""

from __future__ import annotations

import json
import re
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import sparray, spmatrix
from sklearn.base import BaseEstimator

from pairgram._support.arrays import column_names, select_columns, with_entries
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
    in_vespa,
)
from pairgram.export.formulas import ACTIVATIONS, CURVES, Atom, _same, is_missing
from pairgram.features.row_values import Chain

Vector = NDArray[Any]
Columns = Sequence[Vector]  # of numbers, or of objects if they are text; None is missing
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
        The largest error that float32 may cause, over the rows: three times what it changes in the
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
        share = self.max_error / self.spread if self.spread > 0 else np.nan
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
    exported: Any,
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
    if type(exported) not in ENGINES:
        raise TypeError(
            "exported must be what a function of pairgram.export returned, got "
            f"{type(exported).__name__}"
        )
    given: Any = X
    own: Any = None
    if hasattr(given, "for_model"):
        if qid is not None:
            raise ValueError("qid must be None if X is a table: give scan the column, as qid=")
        model, given, qid, own = _of_table(model, given)
    # Some count a missing value as 0, or as the default value that they are told.
    told = ENGINES[type(exported)] is _of_weights
    form = form_of(model, list(exported.feature_names), told=told)
    rows, given = _rows(exported, model, given, {atom.source for atom in form.tree.atoms})
    queries = Queries.make(len(rows), qid=qid)
    defaults: dict[str, float] = {}
    if form.told is not None:
        gaps = np.isnan(rows)
        filled = zip(form.names, form.told.tolist(), np.any(gaps, axis=0).tolist(), strict=True)
        defaults = {name: value for name, value, has_gaps in filled if has_gaps and value}
        rows = np.where(gaps, form.told, rows)
    with warnings.catch_warnings():  # rows without names are taken in their order
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        own = np.asarray(model.predict(given) if own is None else own, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # engines go on, and it is seen what came
        scores, bound = np.asarray(_scores(exported, rows)), _bound(exported, form, rows)
    finite = np.isfinite(scores)
    if scores.dtype == np.float32:  # scores that are near each other are rounded, too
        largest, single = np.abs(scores[finite]).max(initial=np.float32(0)), np.finfo(np.float32)
        bound += float(largest * single.eps + single.tiny)  # engines may take 0 for the tiniest
    theirs = scores.astype(np.float64)
    difference = theirs - own
    centre = np.median(difference[finite]) if finite.any() else 0.0
    error = float(np.abs(difference - centre).max()) if finite.all() else np.inf
    n_reordered = n_close = 0
    order, squares = np.arange(queries.n_rows), 0.0
    for query in range(queries.n_queries):
        members = order[queries.rows(query)]
        squares += float(((own[members] - own[members].mean()) ** 2).sum())
        members = members[np.argsort(-own[members], kind="stable")]
        mine, others = own[members], theirs[members]
        if not np.isfinite(others).all() or _is_reordered(mine, others, bound):
            n_reordered += 1
        elif (np.diff(others) > 0).any() or _is_reordered(mine, others, 0.0):
            n_close += 1
    spread, lowest = (squares / len(own)) ** 0.5, float(theirs.min())
    return Parity(error, spread, bound, queries.n_queries, n_reordered, n_close, lowest, defaults)


def _of_table(model: Any, given: Any) -> tuple[Any, Any, Any, Any]:
    """Return a model, the rows of a table that it takes, their query ids, and scores if known."""
    table, scorer = given.for_model(model)
    is_ranker = hasattr(scorer, "coef_")  # and no pipeline or search, which take frames
    if is_ranker:
        model = scorer
    if Chain.of(getattr(model, "feature_map_", None)).fill is not None:  # an engine may not know
        table = table.filling(np.full(table.n_features, np.nan))
    rows = table.rows()
    if is_ranker:
        return model, rows.X, rows.query, None
    frame = _frame(rows.X, table.feature_names)
    # Missing text is one category to engines. An encoder tells None from NaN.
    known = frame[list(table.layout.texts or ())].notna().all(axis=1).to_numpy()
    frame, own = frame.reindex(columns=model.feature_names_in_), scorer.predict(rows.X)
    if known.any():
        own[known] = model.predict(frame[known])
    return model, frame, rows.query, own


def _bound(exported: Any, form: Form, rows: Vector) -> float:
    """Return what float32 may change: what it does in the formula, and the order of sums may."""
    forms, dtype = [form], _dtype(exported)
    if dtype == np.float32:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what the export warned of
            forms.append(for_float32(form, ""))
    # Sums of float32 numbers have errors of about this share of the sum of their sizes.
    share, found = max(8.0, len(form.tree.atoms) ** 0.5) * 2.0**-24, 0.0
    for k in range(0, len(rows), BLOCK):
        given, wide = (_columns(exported, rows[k : k + BLOCK], one) for one in (dtype, np.float64))
        exact, size = (form.tree.values(wide, of=of)[:, 0] for of in (_same, abs))
        moved = [one.tree.values(given, dtype)[:, 0] - exact for one in forms]
        found = max(found, float((3 * np.abs(moved) + share * size).max()))
    layers = exported["params"].get("layers", ()) if isinstance(exported, SolrModel) else ()
    if len(layers) > 3:  # the first three bend columns, and the others add the bends
        features, _ = _weighed(exported, _columns(exported, rows))
        *_, sizes = _after_layers(layers[:3], features)
        for layer in layers[3:]:
            sizes = np.abs(sizes) @ np.abs(layer["matrix"]).T
        found += share * float(sizes.max())
    return found


def _rows(exported: Any, model: Any, X: Any, read: set[int]) -> tuple[Vector, Any]:
    """Return (rows in the order of the exported names, rows for the model's `predict`).

    Rows are float64, or objects if some columns are text. A column of a frame that is not read may
    be anything, and becomes 0.

    Raises
    ------
    ValueError
        If a column of a frame is text, and should be numbers. The message names it.
    """
    given: Any = with_entries(X.toarray() if hasattr(X, "toarray") else X)
    names, listed = list(exported.feature_names), column_names(given)
    fitted = [str(name) for name in getattr(model, "feature_names_in_", ())]
    texts = {names.index(name) for name in exported.text_names}
    kind = object if texts else np.float64
    if listed is None:
        rows = np.asarray(given, kind)
    else:
        known = (one for one in (names, fitted) if one and {*one} <= {*listed})
        wanted = next(known, listed)
        rows = np.zeros((len(given), len(wanted)), kind)
        for j in read.intersection(range(len(wanted))):
            try:
                rows[:, j] = np.asarray(given[wanted[j]], object if j in texts else np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {wanted[j]!r} of X must be real numbers: {error}"
                ) from None
    if rows.ndim != 2 or rows.shape[1] != len(names) or not len(rows):
        raise ValueError(
            f"X must have rows of the {len(names)} columns of the exported model, got shape "
            f"{rows.shape}"
        )
    if not fitted:
        return rows, rows
    if listed is None:
        return rows, _frame(rows, fitted) if hasattr(model, "steps") else rows
    if {*fitted} <= {*listed}:
        given = select_columns(given, fitted, "X")
    return rows, given


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
    return ENGINES[type(exported)](exported, _columns(exported, X))


def _dtype(exported: Any) -> Any:
    """Return the type as which an engine reads columns of numbers."""
    return np.float64 if isinstance(exported, (SqlExpression, PythonFunction)) else np.float32


def _columns(exported: Any, X: Vector, dtype: Any = None) -> Columns:
    """Return the columns of rows as an engine reads them, or as numbers of another type."""
    columns = []
    for name, column in zip(exported.feature_names, X.T, strict=True):
        if name in exported.text_names:
            column = column.astype(object)
            column[is_missing(column)] = None
        else:
            column = column.astype(np.float64).astype(dtype or _dtype(exported))
        columns.append(column)
    return columns


def _filled(column: Vector) -> Vector:
    """Return a column with 0 for missing numbers, and the empty text for missing text."""
    gap = "" if column.dtype.kind == "O" else 0.0
    return np.where(is_missing(column), gap, column).astype(column.dtype)


def _of_python(text: str, columns: Columns) -> Vector:
    space: dict[str, Any] = {}
    exec(str(text), space)
    function = space[text[len("def ") : text.index("(")]]
    return np.array([function(row) for row in zip(*map(np.ndarray.tolist, columns), strict=True)])


def _feature(atom: Atom, columns: Columns) -> Vector:
    """Return the values of a feature: 0 where the column has none, unless it tells that."""
    x = columns[atom.source]
    gaps = is_missing(x)
    found = gaps.astype(np.float32)
    if atom.kind != "gap":
        found[~gaps], found[gaps] = atom.of(x[~gaps]), 0
    return found


def _weighed(exported: Any, columns: Columns) -> tuple[Vector, Vector]:
    """Return the values of features, and their weights, as they are sent."""
    if isinstance(exported, RanklibModel):
        weights = dict(entry.split(":") for entry in str(exported).splitlines()[-1].split())
    elif isinstance(exported, SolrModel):
        names = [one["name"] for one in exported["features"]]
        weights = exported["params"].get("weights", dict.fromkeys(names, 0.0))
    else:
        weights = json.loads(exported["model"]["model"]["definition"])
    ones = np.ones(len(columns[0]), np.float32)  # of the feature of a shift
    features = [
        _feature(exported.atoms[name], columns) if name in exported.atoms else ones
        for name in weights
    ]
    return np.column_stack(features), np.array([*weights.values()], np.float32)


def _of_weights(exported: Any, columns: Columns) -> Vector:
    """Return the sum of weighted features, or what a network of layers makes of features."""
    features, weights = _weighed(exported, columns)
    if isinstance(exported, SolrModel) and "layers" in exported["params"]:
        *_, values = _after_layers(exported["params"]["layers"], features)
        return values[:, 0]
    return np.cumsum(features * weights, axis=1)[:, -1]  # as the loops of engines add


def _after_layers(layers: Sequence[Any], values: Vector) -> Iterator[Vector]:
    """Yield the values after every layer of a network."""
    for layer in layers:
        matrix = np.asarray(layer["matrix"], np.float32)
        values = values @ matrix.T + np.asarray(layer["bias"], np.float32)
        name = layer["activation"].replace("identity", "linear")
        values = ACTIVATIONS[name].of(values.astype(np.float64)).astype(np.float32)  # as Java does
        yield values


def _of_onnx(file: bytes, columns: Columns) -> Vector:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "verify of ONNX needs onnxruntime: pip install 'pairgram[onnx]'"
        ) from error
    session = onnxruntime.InferenceSession(bytes(file), providers=["CPUExecutionProvider"])
    numbers = [column for column in columns if column.dtype.kind != "O"]
    texts = [_filled(column) for column in columns if column.dtype.kind == "O"]
    given = {
        one.name: np.column_stack(texts if one.type == "tensor(string)" else numbers)
        for one in session.get_inputs()
    }
    return session.run(None, given)[0][:, 0]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": np.minimum,
    "max": np.maximum,
    "where": np.where,
    **CURVES,
}


def _of_vespa(profile: VespaProfile, columns: Columns) -> Vector:
    """Evaluate the ONNX file, or the expression, whose sums are in double precision."""
    filled = [_filled(column) for column in columns]
    if profile.onnx is not None:
        return _of_onnx(profile.onnx, columns)
    (text,) = re.findall(r"^        expression: (.*)$", str(profile), re.MULTILINE)
    if in_vespa(profile.template, profile.feature_names, profile.text_names) != text:
        raise ValueError("exported is a profile whose expression was changed after the export")
    space = {"x": [x if x.dtype.kind == "O" else x.astype(np.float64) for x in filled], **FUNCTIONS}
    space["gap"] = [is_missing(column) for column in columns]
    return eval(profile.template, {"__builtins__": {}, **space}) + np.zeros(len(columns[0]))


def _of_sql(exported: SqlExpression, columns: Columns) -> Vector:
    """Evaluate with columns c0, c1 …, as names of SQL ignore case; a score of NULL is NaN."""
    numbers = {name: f"c{j}" for j, name in enumerate(exported.feature_names)}

    def column(quoted: re.Match[str]) -> str:
        text = quoted[0]
        return text if text[0] == "'" else numbers[text[1:-1].replace('""', '"')]

    text = re.sub(r"'(?:[^']|'')*'|" r'"(?:[^"]|"")*"', column, exported)
    if exported.dialect == "standard":
        try:
            import duckdb
        except ImportError as error:
            raise ImportError(
                "verify of SQL of the dialect 'standard' needs DuckDB: pip install duckdb, or "
                "verify the model by to_sql(..., dialect='sqlite')"
            ) from error
        rows = {f"c{j}": np.ascontiguousarray(column) for j, column in enumerate(columns)}
        with duckdb.connect(config={"enable_external_access": False}) as base:
            base.register("rows", {"place": np.arange(len(columns[0])), **rows})
            found = base.execute(f"SELECT {text} AS score FROM rows ORDER BY place").fetchnumpy()
        return np.ma.filled(found["score"].astype(np.float64), np.nan)
    kinds = ["TEXT" if column.dtype.kind == "O" else "REAL" for column in columns]
    with closing(sqlite3.connect(":memory:")) as lite:
        lite.execute(f"CREATE TABLE rows ({', '.join(f'c{j} {k}' for j, k in enumerate(kinds))})")
        values = zip(*(column.tolist() for column in columns), strict=True)
        lite.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(kinds))})", values)
        scores = lite.execute(f"SELECT {text} FROM rows ORDER BY rowid").fetchall()
        return np.array(scores, np.float64)[:, 0]


# What computes the scores of an exported model as its engine does.
ENGINES: dict[type, Callable[[Any, Columns], Vector]] = {
    SolrModel: _of_weights,
    LtrPluginModel: _of_weights,
    RanklibModel: _of_weights,
    VespaProfile: _of_vespa,
    OnnxModel: _of_onnx,
    SqlExpression: _of_sql,
    PythonFunction: _of_python,
}
