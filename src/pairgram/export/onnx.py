"""Models as ONNX files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator

import pairgram
from pairgram.export.form import Form, OnnxModel, for_float32, form_of, require_gaps_apart
from pairgram.export.formulas import (
    ACTIVATIONS,
    Apply,
    Atom,
    KernelValues,
    Node,
    Radial,
    Sum,
    Times,
    grouped,
    nodes_of,
)
from pairgram.features.kernel_values import KernelFunction

Vector = NDArray[np.float64]
OPSET, IR_VERSION = 17, 8
TEXT_OPSET = 2  # of the operators ai.onnx.ml


def to_onnx(
    model: BaseEstimator,
    *,
    features: Sequence[str] | None = None,
    precision: Literal["float32", "float64"] | None = None,
) -> OnnxModel:
    """Return the bytes of an ONNX file that scores rows. This needs the extra ``onnx``.

    Parameters
    ----------
    model : fitted ranker, or Pipeline that ends in one
        Any model of this package: linear, nodes, Fourier, Nyström, kernel and `Cross` models, after
        scales, quantiles and fills. Scales and the whitening of a Nyström map become part of the
        weights.
    features : list of str or None, default=None
        The names of the columns of X, which the file holds as ``feature_names``. None takes those
        that the model was fitted with, or x0, x1 and so on if its columns had none.
    precision : {"float32", "float64"} or None, default=None
        How the runtime computes. None takes float64 for kernels and Nyström maps, whose weights may
        be so large that float32 loses digits, and float32 for all others. Runtimes may lack cosines
        in float64.

    Returns
    -------
    OnnxModel
        Bytes of opset 17, ready to be written to a file. The input ``features``, float32 of shape
        (batch, n_features), has only the columns that are numbers; if all columns are text, there
        is no such input. The input ``texts``, strings of shape (batch, n_texts), has those that are
        text, and the file holds their names as ``text_names``. An empty text counts as missing. The
        output ``score`` is float32 of shape (batch, 1).

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
        If quantiles tell values apart that are equal in float32.

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
    has_kernel = any(isinstance(node, KernelValues) for node in nodes_of(form.tree))
    wide = has_kernel if precision is None else precision == "float64"
    made = Graph(form, np.float64 if wide else np.float32).finish()
    made.ir_version = IR_VERSION
    entries = {
        "feature_names": "\n".join(form.names),
        **({"text_names": "\n".join(form.texts)} if form.texts else {}),
        "pairgram_version": pairgram.__version__,
    }
    onnx.helper.set_model_props(made, entries)
    onnx.checker.check_model(made, full_check=True)
    return OnnxModel(made.SerializeToString()).named(form.names, form.texts)


def _operator(operation: str) -> Any:
    return lambda value, other: value.graph.add(operation, value, other)


@dataclass(frozen=True, eq=False)
class Named:
    """A value of a graph, with the operators of NumPy."""

    graph: Graph
    name: str
    __add__, __sub__, __mul__ = _operator("Add"), _operator("Sub"), _operator("Mul")
    __truediv__, __matmul__ = _operator("Div"), _operator("MatMul")

    def sum(self) -> Any:
        """Return the sum of the columns of every row, (batch, 1)."""
        return self.graph.add("ReduceSum", self, [1], keepdims=1)


class Graph:
    """A graph that computes a form.

    Parameters
    ----------
    form : Form
    dtype : float32 or float64
        The type that is computed in.
    """

    def __init__(self, form: Form, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._form = form
        self._texts = {form.names.index(text): k for k, text in enumerate(form.texts)}
        numbers = [source for source in range(len(form.names)) if source not in self._texts]
        self._numbers = {source: k for k, source in enumerate(numbers)}
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._made: dict[int, Any] = {}
        self._rows: Any = Named(self, "features")
        if self._dtype != np.float32 and numbers:
            self._rows = self.cast(self._rows, dtype)
        self._blocks = [*self._numeric_atoms()]

    def add(self, operation: str, *inputs: Any, **attributes: Any) -> Any:
        """Add a node, and return its value. Inputs may be numbers and arrays."""
        import onnx

        names = [one.name if isinstance(one, Named) else self._constant(one) for one in inputs]
        name = f"value{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operation, names, [name], **attributes))
        return Named(self, name)

    def cast(self, value: Any, dtype: DTypeLike) -> Any:
        """Add a conversion to a type."""
        import onnx

        return self.add("Cast", value, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def _constant(self, values: Any) -> str:
        """Add an array, and return its name; floating-point numbers get the type of the graph."""
        import onnx

        name, array = f"constant{len(self.constants)}", np.asarray(values)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array = array.astype(self._dtype)
            if np.isinf(array).any():  # NaN is the score of a row that the model refuses
                raise ValueError(
                    f"the model computes with the number {np.abs(values).max():.3g}, which "
                    "float32 does not hold: "
                    "scale the columns before fit, or take precision='float64'"
                )
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def finish(self) -> Any:
        """Return a model with the scores, (batch, 1), which are float32, as the rows are."""
        import onnx

        scores = self.cast(self._of(self._form.tree), np.float32)
        self.nodes.append(onnx.helper.make_node("Identity", [scores.name], ["score"]))
        float32, text = onnx.TensorProto.FLOAT, onnx.TensorProto.STRING
        inputs = ("features", float32, self._numbers), ("texts", text, self._texts)
        versions = [("", OPSET), ("ai.onnx.ml", TEXT_OPSET)][: 1 + bool(self._texts)]
        graph = onnx.helper.make_graph(
            self.nodes,
            "ranker",
            [
                onnx.helper.make_tensor_value_info(name, kind, ["batch", len(columns)])
                for name, kind, columns in inputs
                if columns
            ],
            [onnx.helper.make_tensor_value_info("score", float32, ["batch", 1])],
            self.constants,
        )
        return onnx.helper.make_model(
            graph,
            producer_name="pairgram",
            producer_version=pairgram.__version__,
            opset_imports=[onnx.helper.make_opsetid(*version) for version in versions],
        )

    def _of(self, node: Node) -> Any:
        """Return the values of a node, which are computed once."""
        if id(node) not in self._made:
            self._made[id(node)] = self._computed(node)
        return self._made[id(node)]

    def _computed(self, node: Node) -> Any:
        if isinstance(node, Sum):
            return self._sum(node)
        x: Any = self._of(node.x)
        match node:
            case Apply():
                operation = ACTIVATIONS[node.name].onnx
                if operation is not None:
                    return self.add(operation, x)
                return self.cast(self.add("GreaterOrEqual", x, 0.0), self._dtype)  # hardlim
            case Times():
                first = np.arange(node.width)
                return self._gather(x, first) * self._gather(x, first + node.width)
            case Radial():
                return self.add("Exp", self._distances(x, node.centres) * -node.bias)
            case KernelValues():
                return self._kernel(node.kernel, node.support, x)
        raise TypeError(node)

    def _numeric_atoms(self) -> Iterator[tuple[str, list[int], Any]]:
        """Yield a kind of atoms of numbers, their numbers, and the values, (batch, n_atoms).

        There are a few operators for all atoms of a kind, and sums of large values are apart.
        """
        tree = self._form.tree
        own = [k for k, atom in enumerate(tree.atoms) if atom.source in self._numbers]
        valued: set[int] = set()
        for (kind, sources, low, high, name), places in grouped(tree.atoms, own):
            x = given = self._of_sources(sources)
            match kind:
                case "ramp":
                    x = self.add("Clip", (x - low) * (1 / (high - low)), 0.0, 1.0)
                case "curve":
                    x = self.add(name.title(), x * low + high)
                case "gap":
                    x = self.cast(self.add("IsNaN", x), self._dtype)
                case "step":
                    x = self.cast(self.add("GreaterOrEqual", x, low), self._dtype)
                case "is":  # as the input has them
                    x = self.cast(self.add("Equal", x, np.array(low, np.float32)), self._dtype)
                case "value":
                    valued.update(sources)
            closed = [source not in tree.open for source in sources]
            if kind in ("value", "ramp", "curve") and any(closed):
                gaps = self.add("And", self.add("IsNaN", given), closed)
                x = self.add("Where", gaps, 0.0, x)
            yield kind, places, x
        # A missing value in a column that must have one is to spread to the score.
        if spread := sorted(tree.open.intersection(self._numbers) - valued):
            yield "value", [-1] * len(spread), self._of_sources(spread)

    def _sum(self, node: Sum) -> Any:
        """Return a sum: products of all atoms of numbers, and rows of tables for texts."""
        weights, offset = scipy.sparse.csr_array(node.weights), node.offset
        parts = [self._of(below) @ _dense(matrix) for below, matrix in node.terms]
        rows = np.vstack([weights.toarray(), 0 * offset])
        for kind, places, values in self._blocks:
            if rows[places].any() or (kind == "value" and not node.terms):
                parts.append(values @ rows[places])
        for source in self._texts:
            parts += self._of_text(node, source, weights)
        if not parts:  # constants alone
            parts = [self._rows @ np.zeros((len(self._numbers), len(offset)))]
        return reduce(lambda total, part: total + part, parts) + offset

    def _of_sources(self, sources: Sequence[int]) -> Any:
        return self._gather(self._rows, [self._numbers[source] for source in sources])

    def _gather(self, values: Any, places: Any) -> Any:
        return self.add("Gather", values, np.array(places, np.int64), axis=1)

    def _of_text(self, node: Sum, source: int, weights: Any) -> list[Any]:
        """Return the row of a table for every text; the last row is of all other texts."""
        own = {
            atom: weights[[k]].toarray()[0]
            for k, atom in enumerate(node.atoms)
            if atom.source == source
        }
        known = {str(atom.low): row for atom, row in own.items() if atom.kind == "is"}
        none = 0 * node.offset
        # An empty text is missing; it may be a category itself.
        lacking = none + np.nan if source in node.open else own.get(Atom("gap", source), none)
        known.setdefault("", lacking)
        if not np.any([*known.values()]):
            return []
        number = self.add(
            "LabelEncoder",
            self._gather(Named(self, "texts"), [self._texts[source]]),
            domain="ai.onnx.ml",
            keys_strings=[*known],
            values_int64s=[*range(len(known))],
            default_int64=len(known),
        )
        found = self.add("Gather", np.array([*known.values(), none]), number, axis=0)
        return [self.add("Squeeze", found, [1])]

    def _distances(self, x: Any, rows: Vector) -> Any:
        """Return squared distances from rows; both are moved by the mean of the rows before."""
        mean = rows.mean(axis=0)
        moved, own = x - mean, rows - mean
        total = moved @ (-2 * own.T) + (moved * moved).sum() + (own**2).sum(axis=1)
        return self.add("Max", total, 0.0)

    def _kernel(self, kernel: KernelFunction, rows: Vector, x: Any) -> Any:
        gamma: Any = kernel.gamma
        match kernel.name:
            case "rbf":
                return self.add("Exp", self._distances(x, rows) * -gamma)
            case "polynomial":
                return self.add("Pow", x @ (gamma * rows.T) + kernel.coef0, float(kernel.degree))
            case "laplacian":
                return self.add("Exp", self._apart(x, rows) * -gamma)
            case "minmax":
                both = self.add("Abs", x).sum() + np.abs(rows).sum(axis=1)
                apart = self._apart(x, rows)
                return self._share(both - apart, both + apart)
            case "tanimoto":
                both, products = (x * x).sum() + (rows**2).sum(axis=1), x @ rows.T
                return self._share(products, both - products)
        raise ValueError(f"kernel={kernel.name!r} cannot be exported")

    def _apart(self, x: Any, rows: Vector) -> Any:
        """Return the sums of absolute differences from rows."""
        size = self.add("Abs", self.add("Unsqueeze", x, [1]) - rows[None])
        return self.add("ReduceSum", size, [2], keepdims=0)

    def _share(self, part: Any, whole: Any) -> Any:
        """Return part / whole, and 1 where both are 0."""
        empty = self.add("Equal", whole, 0.0)
        return self.add("Where", empty, 1.0, part / self.add("Where", empty, 1.0, whole))


def _dense(matrix: Any) -> Vector:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, np.float64)
