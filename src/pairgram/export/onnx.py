"""Models as ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

import pairgram
from pairgram.export.form import Form, OnnxModel, for_float32, form_of, require_gaps_apart
from pairgram.features.formulas import (
    ACTIVATIONS,
    Affine,
    Column,
    Curve,
    Hidden,
    Lookup,
    OfSource,
    Piecewise,
    Product,
    Steps,
    Value,
    leaves,
)
from pairgram.features.kernel_values import KernelFunction

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Vector = NDArray[np.float64]
OPSET, IR_VERSION = 17, 8
TEXT_OPSET = 2  # of the operators ai.onnx.ml


def to_onnx(
    model: BaseEstimator,
    *,
    features: Sequence[str] | None = None,
    input: str = "features",
    output: str = "score",
    texts: str = "texts",
    precision: Literal["float32", "float64"] | None = None,
) -> OnnxModel:
    """Return the bytes of an ONNX file that scores rows. This needs the extra ``onnx``.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
        Any model of this package without Python callables: linear, nodes, Fourier, Nyström, kernel
        and `Cross` models, with `inputs`. Scales and the whitening of a Nyström map become part of
        the weights.
    features : list of str or None, default=None
        The names of the columns of X, which the file holds as ``feature_names``. None takes those
        that the model was fitted with, or x0, x1 and so on if its columns had none.
    input, output : str
        The names of the input, float32 of shape (batch, n_features), and of the output, float32 of
        shape (batch, 1). The input has only the columns that are numbers. If all columns are text,
        there is no such input.
    texts : str
        The name of the input of the columns that are text, strings of shape (batch, n_texts). The
        file holds the names of these columns as ``text_names``. An empty text counts as missing.
    precision : {"float32", "float64"} or None, default=None
        How the runtime computes. None takes float64 for kernels and Nyström maps, whose weights may
        be so large that float32 loses digits, and float32 for all others. Runtimes may lack cosines
        in float64.

    Returns
    -------
    OnnxModel
        Bytes of opset 17, ready to be written to a file.

    Raises
    ------
    ValueError
        If the model cannot be expressed, if float32 does not hold one of its numbers, if two
        categories of an encoder are one number in float32, or if the empty text is a category and
        a missing text is another one. The message names the part.
    ImportError
        If the package onnx is missing.

    Warns
    -----
    UserWarning
        If quantile inputs tell values apart that are equal in float32.

    Notes
    -----
    Input and output are float32 in any case. `verify` measures what rounding changes.

    Examples
    --------
    >>> from pairgram import RankRLS, export, make_ranking
    >>> X, y, qid = make_ranking(n_features=2, random_state=0)
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> graph = export.to_onnx(model, features=["bm25", "price"])
    >>> export.verify(graph, model, X, qid).n_reordered
    0
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: pip install 'pairgram[onnx]'") from error
    form = for_float32(form_of(model, features, unnamed=True), "a runtime of ONNX")
    if precision not in (None, "float32", "float64"):
        raise ValueError(f"precision must be None, 'float32' or 'float64', got {precision!r}")
    require_gaps_apart(form, "ONNX")
    wide = bool(form.kernels) if precision is None else precision == "float64"
    graph = Graph(form, input, np.float64 if wide else np.float32, texts=texts)
    made = graph.finish(input, output)
    made.ir_version = IR_VERSION
    entries = {
        "feature_names": "\n".join(form.names),
        **({"text_names": "\n".join(form.texts)} if form.texts else {}),
        "pairgram_version": pairgram.__version__,
    }
    onnx.helper.set_model_props(made, entries)
    onnx.checker.check_model(made, full_check=True)
    return OnnxModel(made.SerializeToString()).named(form.names, form.texts)


class Graph:
    """A graph that computes a form; values are called by their names.

    Parameters
    ----------
    form : Form
    rows : str
        The name of the rows, of the columns that are numbers.
    dtype : float32 or float64
        The type that is computed in.
    texts : str, default="texts"
        The name of the rows of the columns that are text.

    Attributes
    ----------
    nodes, constants : lists
    scores : str
        The name of the scores, (batch, 1), which are float32, as the rows are.
    """

    def __init__(self, form: Form, rows: str, dtype: DTypeLike, texts: str = "texts") -> None:
        self._dtype = np.dtype(dtype)
        self._form, self._text_input = form, texts
        names = [*form.names]
        self._texts = {names.index(text): k for k, text in enumerate(form.texts)}
        numbers = [source for source in range(len(names)) if source not in self._texts]
        self._numbers = {source: k for k, source in enumerate(numbers)}
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.scores = self._computed(rows)

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its value."""
        import onnx

        name = f"value{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operation, [*inputs], [name], **attributes))
        return name

    def cast(self, name: str, dtype: DTypeLike) -> str:
        """Add a conversion to a type."""
        import onnx

        return self.add("Cast", name, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def constant(self, values: ArrayLike, dtype: DTypeLike | None = None) -> str:
        """Add an array, of the type that is computed in unless another is given."""
        import onnx

        name = f"constant{len(self.constants)}"
        with np.errstate(over="ignore"):
            array = np.asarray(values, dtype or self._dtype)
        if np.isinf(array).any():  # NaN is the score of a row that the model refuses
            largest = np.abs(np.asarray(values)).max()
            raise ValueError(
                f"the model computes with the number {largest:.3g}, which float32 does not hold: "
                "scale the columns before fit, or take precision='float64'"
            )
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def finish(self, input: str, output: str) -> Any:
        """Return a model, whose output has a name of its own."""
        import onnx

        self.nodes.append(onnx.helper.make_node("Identity", [self.scores], [output]))
        float32, text = onnx.TensorProto.FLOAT, onnx.TensorProto.STRING
        kinds = [(input, float32, self._numbers), (self._text_input, text, self._texts)]
        versions = [("", OPSET), ("ai.onnx.ml", TEXT_OPSET)][: 1 + bool(self._texts)]
        graph = onnx.helper.make_graph(
            self.nodes,
            "ranker",
            [
                onnx.helper.make_tensor_value_info(name, kind, ["batch", len(columns)])
                for name, kind, columns in kinds
                if columns
            ],
            [onnx.helper.make_tensor_value_info(output, float32, ["batch", 1])],
            self.constants,
        )
        return onnx.helper.make_model(
            graph,
            producer_name="pairgram",
            producer_version=pairgram.__version__,
            opset_imports=[onnx.helper.make_opsetid(*version) for version in versions],
        )

    def _computed(self, rows: str) -> str:
        """Add all nodes, and return the name of the scores."""
        form, other = self._form, self._dtype != np.float32
        rows = self.cast(rows, self._dtype) if other and self._numbers else rows
        if form.missing is not None:
            rows = self.add("Where", self.add("IsNaN", rows), self.constant(form.missing), rows)
        terms = self._terms(rows)
        constant = np.atleast_1d(form.constant + self._offset)
        if not terms:
            zeros = np.zeros((len(self._numbers), 1))
            terms = [self.add("MatMul", rows, self.constant(zeros))]
        total = reduce(lambda total, term: self.add("Add", total, term), terms)
        total = self.add("Add", total, self.constant(constant))
        return self.cast(total, np.float32) if other else total

    _offset: Any = 0.0

    def _terms(self, rows: str) -> list[str]:
        """Return the names of the terms of the score, and set the constant that goes with them."""
        form = self._form
        if form.is_affine:  # scales are folded into what follows
            matrix, offset = form.matrix()
            return self._parts(form, rows, matrix.T, offset)
        if not form.beside:
            return [self._columns(form.columns, rows, form.weights[:, None])]
        columns = self._columns(form.columns, rows, np.eye(len(form.columns)))
        return self._parts(form, columns, np.eye(len(form.columns)), np.zeros(len(form.columns)))

    def _parts(self, form: Form, rows: str, matrix: Vector, offset: Vector) -> list[str]:
        """Return the terms of columns ``rows @ matrix + offset``."""
        terms = []
        if form.weights.any():
            terms.append(self._weighted(rows, matrix @ form.weights))
            self._offset += offset @ form.weights
        for part in form.hidden:
            if part.activation == "gaussian":
                values = self._gaussian(part, self._columns_of(rows, matrix, offset))
            else:
                # The means of nodes' inputs are in the bias, so large offsets cancel in float64.
                weights = self.constant(matrix @ part.matrix)
                bias = self.constant(offset @ part.matrix + part.bias)
                values = self.add("Add", self.add("MatMul", rows, weights), bias)
                values = self._activated(part.activation, values)
            terms.append(self._weighted(values, part.weights))
        for product in form.products:
            made = self._columns_of(rows, matrix, offset)
            left, right = (
                self.add("Gather", made, self.constant(side, np.int64), axis=1)
                for side in (product.left, product.right)
            )
            weights = self.add("MatMul", left, self.constant(product.matrix))
            terms.append(self._sums(self.add("Mul", weights, right)))
        for kernel in form.kernels:
            columns = self._columns_of(rows, matrix, offset)
            values = self._kernel(kernel.kernel, kernel.rows, columns)
            terms.append(self._weighted(values, kernel.weights))
        return terms

    def _weighted(self, values: str, weights: Vector) -> str:
        """Return the weighted sum of values."""
        return self.add("MatMul", values, self.constant(weights[:, None]))

    def _columns_of(self, rows: str, matrix: Vector, offset: Vector) -> str:
        identity = matrix.shape[0] == matrix.shape[1] and (matrix == np.eye(len(matrix))).all()
        if identity and not offset.any():
            return rows
        if matrix.shape[0] == matrix.shape[1] and (matrix == np.diag(np.diag(matrix))).all():
            factors = np.diag(matrix)  # (x + offset / factor) · factor cancels before it rounds
            safe = np.where(factors == 0, 1.0, factors)
            moved = self.add("Add", rows, self.constant(offset / safe))
            return self.add("Mul", moved, self.constant(factors))
        return self.add(
            "Add", self.add("MatMul", rows, self.constant(matrix)), self.constant(offset)
        )

    def _activated(self, activation: str, values: str) -> str:
        if (operation := ACTIVATIONS[activation].onnx) is not None:
            return self.add(operation, values)
        above = self.add("GreaterOrEqual", values, self.constant(0.0))  # hardlim
        return self.cast(above, self._dtype)

    def _columns(self, columns: Sequence[Column], rows: str, mix: Vector) -> str:
        """Return ``columns @ mix``, for columns that need not be affine.

        Every kind of column is a few operators for all columns of its kind.
        """
        made = [
            part
            for part in (
                self._affine(columns, rows, mix),
                self._ramps(columns, rows, mix),
                self._steps(columns, rows, mix),
                self._gaps(columns, rows, mix),
                *self._lookups(columns, rows, mix),
                *self._curves(columns, rows, mix),
                self._products(columns, rows, mix),
            )
            if part is not None
        ]
        if not made:  # constants alone
            made = [self._sum(self._without_gaps(rows), [(0, 0, 0.0)], len(self._numbers), mix)]
        offset = np.array([_offset_of(column) for column in columns])
        total = reduce(lambda total, part: self.add("Add", total, part), made)
        return self.add("Add", total, self.constant((offset @ mix)[None]))

    def _sum(self, values: str, entries: list[tuple[int, int, float]], n: int, mix: Vector) -> str:
        """Return ``values @ (entries @ mix)``; an entry is a value, a column, and its weight."""
        matrix = np.zeros((n, mix.shape[1]))
        at, columns, weights = (np.array(part) for part in zip(*entries, strict=True))
        np.add.at(matrix, at, weights[:, None] * mix[columns])
        return self.add("MatMul", values, self.constant(matrix))

    def _picked(self, rows: str, sources: list[int]) -> str:
        places = [self._numbers[source] for source in sources]
        return self.add("Gather", rows, self.constant(places, np.int64), axis=1)

    def _without_gaps(self, rows: str) -> str:
        """Return rows with 0 for missing values, but of columns that have no score then."""
        open_ = {
            leaf.source for column in self._form.columns for leaf in leaves(column) if leaf.has_gaps
        }
        closed = np.array([source not in open_ for source in self._numbers])
        if not closed.any():
            return rows
        gaps = self.add("And", self.add("IsNaN", rows), self.constant(closed, np.bool_))
        return self.add("Where", gaps, self.constant(0.0), rows)

    def _affine(self, columns: Sequence[Column], rows: str, mix: Vector) -> str | None:
        entries = [
            (self._numbers[column.source], at, column.factor)
            for at, column in enumerate(columns)
            if isinstance(column, Affine)
        ]
        # A missing value in a column that is left without one is to spread to the score.
        spreads = [
            (self._numbers[leaf.source], 0, 0.0)
            for column in columns
            for leaf in leaves(column)
            if leaf.has_gaps and leaf.source in self._numbers
        ]
        if not entries and not spreads:
            return None
        filled = self._without_gaps(rows)
        return self._sum(filled, [*entries, *spreads], len(self._numbers), mix)

    def _ramps(self, columns: Sequence[Column], rows: str, mix: Vector) -> str | None:
        """Return what is linear between knots: Gather, Clip and MatMul."""
        sources: list[int] = []
        knots: list[float] = []
        inverse: list[float] = []
        entries: list[tuple[int, int, float]] = []
        for at, column in enumerate(columns):
            if isinstance(column, Piecewise):
                for knot, width, step in zip(
                    column.knots.tolist(),
                    np.diff(column.knots).tolist(),
                    np.diff(column.values).tolist(),
                    strict=False,
                ):
                    entries.append((len(sources), at, step))
                    sources.append(column.source)
                    knots.append(knot)
                    inverse.append(1 / width)
        if not sources:
            return None
        picked = self._picked(self._without_gaps(rows), sources)
        moved = self.add("Sub", picked, self.constant(knots))
        share = self.add("Mul", moved, self.constant(inverse))
        ramp = self.add("Clip", share, self.constant(0.0), self.constant(1.0))
        return self._sum(ramp, entries, len(sources), mix)

    def _steps(self, columns: Sequence[Column], rows: str, mix: Vector) -> str | None:
        edges: dict[tuple[int, float], int] = {}
        entries: list[tuple[int, int, float]] = []
        for at, column in enumerate(columns):
            if isinstance(column, Steps):
                steps = np.diff(column.values).tolist()
                for edge, step in zip(column.edges.tolist(), steps, strict=True):
                    entries.append((edges.setdefault((column.source, edge), len(edges)), at, step))
        if not edges:
            return None
        picked = self._picked(rows, [source for source, _ in edges])
        above = self.add("GreaterOrEqual", picked, self.constant([edge for _, edge in edges]))
        return self._sum(self.cast(above, self._dtype), entries, len(edges), mix)

    def _gaps(self, columns: Sequence[Column], rows: str, mix: Vector) -> str | None:
        """Return what is added where numbers are missing."""
        entries: list[tuple[int, int, float]] = []
        for at, column in enumerate(columns):
            if isinstance(column, (Product, Curve)) or column.sources[0] not in self._numbers:
                continue
            assert isinstance(column, OfSource)
            more = column.fill - _at_gap(column)
            if more == more and more != 0:
                entries.append((self._numbers[column.source], at, more))
        if not entries:
            return None
        gaps = self.cast(self.add("IsNaN", rows), self._dtype)
        return self._sum(gaps, entries, len(self._numbers), mix)

    def _lookups(self, columns: Sequence[Column], rows: str, mix: Vector) -> list[str]:
        """Return what categories make, for every source that has some."""
        keys: dict[int, dict[Value, int]] = {}
        entries: dict[int, list[tuple[int, int, float]]] = {}
        for at, column in enumerate(columns):
            if not isinstance(column, Lookup):
                continue
            values = dict(zip(column.keys, column.values.tolist(), strict=True))
            if column.source in self._texts and "" not in values:
                values[""] = column.fill
            places = keys.setdefault(column.source, {})
            for key, value in values.items():
                if value != column.other:
                    place = places.setdefault(key, len(places))
                    entries.setdefault(column.source, []).append((place, at, value - column.other))
        made = []
        for source, places in keys.items():
            if source in self._texts:
                made.append(self._of_text(source, places, entries.get(source, []), mix))
            elif places:
                written = np.array([*places], np.float32)  # as the input has them
                picked = self._picked(rows, [source])
                equal = self.cast(
                    self.add("Equal", picked, self.constant(written[None])), self._dtype
                )
                made.append(self._sum(equal, entries[source], len(places), mix))
        return made

    def _of_text(
        self, source: int, places: dict[Value, int], entries: list[Any], mix: Vector
    ) -> str:
        """Return the row of a table for every text; the last row is of all other texts."""
        table = np.zeros((len(places) + 1, mix.shape[1]))
        for place, at, weight in entries:
            table[place] += weight * mix[at]
        place = self.constant([self._texts[source]], np.int64)
        picked = self.add("Gather", self._text_input, place, axis=1)
        number = self.add(
            "LabelEncoder",
            picked,
            domain="ai.onnx.ml",
            keys_strings=[*places] or [""],
            values_int64s=[*places.values()] or [0],
            default_int64=len(places),
        )
        found = self.add("Gather", self.constant(table), number, axis=0)
        return self.add("Squeeze", found, self.constant([1], np.int64))

    def _curves(self, columns: Sequence[Column], rows: str, mix: Vector) -> list[str]:
        made = []
        for at, column in enumerate(columns):
            if isinstance(column, Curve):
                picked = self._picked(rows, [column.source])
                inner = self.add("Mul", picked, self.constant(column.inner))
                inner = self.add("Add", inner, self.constant(column.shift))
                value = self.add({"log": "Log", "sqrt": "Sqrt"}[column.name], inner)
                if not column.has_gaps:
                    filled = (column.fill - column.offset) / (column.factor or 1.0)
                    gap = self.add("IsNaN", picked)
                    value = self.add("Where", gap, self.constant(filled), value)
                made.append(self._sum(value, [(0, at, column.factor)], 1, mix))
        return made

    def _products(self, columns: Sequence[Column], rows: str, mix: Vector) -> str | None:
        products = [(at, one) for at, one in enumerate(columns) if isinstance(one, Product)]
        if not products:
            return None
        factors = {id(side): side for _, one in products for side in (one.left, one.right)}
        place = {key: k for k, key in enumerate(factors)}
        made = self._columns([*factors.values()], rows, np.eye(len(factors)))
        sides: list[Callable[[Product], Column]] = [lambda one: one.left, lambda one: one.right]
        left, right = (
            self.add(
                "Gather",
                made,
                self.constant([place[id(side(one))] for _, one in products], np.int64),
                axis=1,
            )
            for side in sides
        )
        entries = [(k, at, one.factor) for k, (at, one) in enumerate(products)]
        return self._sum(self.add("Mul", left, right), entries, len(products), mix)

    def _gaussian(self, part: Hidden, columns: str) -> str:
        squares = self._distances(columns, part.matrix.T)
        return self.add("Exp", self.add("Mul", squares, self.constant(-part.bias)))

    def _distances(self, columns: str, rows: Vector) -> str:
        """Return squared distances from rows; both are moved by the mean of the rows before."""
        mean = rows.mean(axis=0)
        moved, own = self.add("Sub", columns, self.constant(mean)), rows - mean
        norms = self._sums(self.add("Mul", moved, moved))
        products = self.add("MatMul", moved, self.constant(-2 * own.T))
        total = self.add("Add", self.add("Add", products, norms), self.constant((own**2).sum(1)))
        return self.add("Max", total, self.constant(0.0))

    def _kernel(self, kernel: KernelFunction, rows: Vector, columns: str) -> str:
        gamma = kernel.gamma
        if kernel.name == "rbf":
            squares = self._distances(columns, rows)
            return self.add("Exp", self.add("Mul", squares, self.constant(-gamma)))
        if kernel.name == "polynomial":
            products = self.add("MatMul", columns, self.constant(gamma * rows.T))
            moved = self.add("Add", products, self.constant(kernel.coef0))
            return self.add("Pow", moved, self.constant(float(kernel.degree)))
        if kernel.name == "laplacian":
            sums = self._apart(columns, rows)
            return self.add("Exp", self.add("Mul", sums, self.constant(-gamma)))
        if kernel.name == "minmax":
            sums = self._sums(self.add("Abs", columns))
            apart = self._apart(columns, rows)
            both = self.add("Add", sums, self.constant(np.abs(rows).sum(axis=1)))
            return self._share(self.add("Sub", both, apart), self.add("Add", both, apart))
        if kernel.name == "tanimoto":
            norms = self._sums(self.add("Mul", columns, columns))
            both = self.add("Add", norms, self.constant((rows**2).sum(axis=1)))
            products = self.add("MatMul", columns, self.constant(rows.T))
            return self._share(products, self.add("Sub", both, products))
        raise ValueError(f"kernel={kernel.name!r} cannot be exported")

    def _apart(self, columns: str, rows: Vector) -> str:
        """Return the sums of absolute differences from rows."""
        wide = self.add("Unsqueeze", columns, self.constant([1], np.int64))
        size = self.add("Abs", self.add("Sub", wide, self.constant(rows[None])))
        return self.add("ReduceSum", size, self.constant([2], np.int64), keepdims=0)

    def _sums(self, columns: str) -> str:
        """Return the sum of the columns of every row."""
        return self.add("ReduceSum", columns, self.constant([1], np.int64), keepdims=1)

    def _share(self, part: str, whole: str) -> str:
        """Return part / whole, and 1 where both are 0."""
        empty = self.add("Equal", whole, self.constant(0.0))
        one = self.constant(1.0)
        share = self.add("Div", part, self.add("Where", empty, one, whole))
        return self.add("Where", empty, one, share)


def _offset_of(column: Column) -> float:
    """Return the constant of a column, to which its operators add."""
    if isinstance(column, (Affine, Curve, Product)):
        return column.offset
    if isinstance(column, Lookup):
        return column.other
    assert isinstance(column, (Piecewise, Steps))
    return float(column.values[0])


def _at_gap(column: OfSource) -> float:
    """Return what the operators of a column make of a missing value, which most take for 0."""
    if isinstance(column, (Affine, Piecewise)):
        return float(column.known(np.zeros(1))[0])
    return _offset_of(column)
