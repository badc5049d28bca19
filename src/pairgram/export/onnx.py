"""Models as ONNX files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike, NDArray

import pairgram
from pairgram.export.form import Form, OnnxModel, for_float32, form_of, require_gaps_apart
from pairgram.features.formulas import ACTIVATIONS, Apply, Atom, Node, Radial, Sum, Times, nodes_of
from pairgram.features.kernels import KernelValues

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
    has_kernel = any(isinstance(node, KernelValues) for node in nodes_of(form.tree))
    wide = has_kernel if precision is None else precision == "float64"
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
        self._made: dict[int, str] = {}
        wide = self._dtype != np.float32
        self._rows = self.cast(rows, self._dtype) if wide and self._numbers else rows
        if form.missing is not None:
            self._rows = self._where_missing(self._rows, form.missing)
        self._places, self._atoms = self._numeric_atoms()
        scores = self._of(form.tree)
        self.scores = self.cast(scores, np.float32) if wide else scores

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

    def _of(self, node: Node) -> str:
        """Return the name of the values of a node, which are computed once."""
        if id(node) in self._made:
            return self._made[id(node)]
        match node:
            case Sum():
                made = self._sum(node)
            case Apply():
                made = self._activated(node.name, self._of(node.x))
            case Times():
                x, n = self._of(node.x), node.width
                sides = (self._gather(x, range(k * n, k * n + n)) for k in (0, 1))
                made = self.add("Mul", *sides)
            case Radial():
                squares = self._distances(self._of(node.x), node.centres)
                made = self.add("Exp", self.add("Mul", squares, self.constant(-node.bias)))
            case KernelValues():
                made = self._kernel(node, self._of(node.x))
            case _:
                raise TypeError(node)
        self._made[id(node)] = made
        return made

    def _numeric_atoms(self) -> tuple[list[int], str]:
        """Return the numbers of the atoms of numbers, and all their values side by side.

        There are a few operators for all atoms of a kind.
        """
        tree, kinds = self._form.tree, {}
        for k, atom in enumerate(tree.atoms):
            if atom.source in self._numbers:
                kinds.setdefault((atom.kind, atom.name), []).append(k)
        order, made = [], []
        for (kind, name), own in kinds.items():
            atoms = [tree.atoms[k] for k in own]
            given = self._gather(self._rows, [self._numbers[atom.source] for atom in atoms])
            low, high = (np.array(at) for at in zip(*((a.low, a.high) for a in atoms), strict=True))
            x = given
            if kind == "ramp":
                x = self.add("Sub", x, self.constant(low))
                x = self.add("Mul", x, self.constant(1 / (high - low)))
                x = self.add("Clip", x, self.constant(0.0), self.constant(1.0))
            elif kind == "curve":
                x = self.add("Add", self.add("Mul", x, self.constant(low)), self.constant(high))
                x = self.add(name.title(), x)
            elif kind == "gap":
                x = self.cast(self.add("IsNaN", x), self._dtype)
            elif kind != "value":
                keys = low if kind == "step" else low.astype(np.float32)  # as the input has them
                test = "GreaterOrEqual" if kind == "step" else "Equal"
                x = self.cast(self.add(test, x, self.constant(keys)), self._dtype)
            closed = [atom.source not in tree.open for atom in atoms]
            if kind in ("value", "ramp", "curve") and any(closed):
                gaps = self.add("And", self.add("IsNaN", given), self.constant(closed, np.bool_))
                x = self.add("Where", gaps, self.constant(0.0), x)
            order, made = [*order, *own], [*made, x]
        # A missing value in a column that must have one is to spread to the score.
        values = {tree.atoms[k].source for k in kinds.get(("value", ""), ())}
        spread = sorted(tree.open.intersection(self._numbers) - values)
        if spread:
            made.append(self._gather(self._rows, [self._numbers[source] for source in spread]))
            order += [-1] * len(spread)
        return order, self.add("Concat", *made, axis=1) if len(made) > 1 else "".join(made)

    def _sum(self, node: Sum) -> str:
        """Return a sum: products of all atoms of numbers, and rows of tables for texts."""
        weights, offset = scipy.sparse.csr_array(node.weights), node.offset
        if not node.terms and (made := self._scaled(node, weights)):
            return made
        parts = [self._times(self._of(below), matrix) for below, matrix in node.terms]
        own = np.vstack([weights.toarray(), 0 * offset])[self._places]
        if own.any() or (self._places and not parts):
            parts.append(self._times(self._atoms, own))
        for source in self._texts:
            parts += self._of_text(node, source, weights)
        if not parts:  # constants alone
            parts = [self._times(self._rows, np.zeros((len(self._numbers), len(offset))))]
        total = reduce(lambda total, part: self.add("Add", total, part), parts)
        return self.add("Add", total, self.constant(offset))

    def _scaled(self, node: Sum, weights: Any) -> str | None:
        """Return columns that are one of the atoms each; None for others."""
        columns = weights.tocsc()
        places = {k: place for place, k in enumerate(self._places)}
        if (np.diff(columns.indptr) != 1).any() or not places.keys() >= {*columns.indices.tolist()}:
            return None
        x = self._gather(self._atoms, [places[k] for k in columns.indices.tolist()])
        if node.offset.any():  # (x + offset / factor) · factor cancels before it rounds
            x = self.add("Add", x, self.constant(node.offset / columns.data))
        return x if (columns.data == 1).all() else self.add("Mul", x, self.constant(columns.data))

    def _times(self, values: str, matrix: Any) -> str:
        dense = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
        return self.add("MatMul", values, self.constant(dense))

    def _gather(self, values: str, places: Sequence[int]) -> str:
        return self.add("Gather", values, self.constant([*places], np.int64), axis=1)

    def _where_missing(self, values: str, fill: Any) -> str:
        return self.add("Where", self.add("IsNaN", values), self.constant(fill), values)

    def _of_text(self, node: Sum, source: int, weights: Any) -> list[str]:
        """Return the row of a table for every text; the last row is of all other texts."""
        own = {atom: k for k, atom in enumerate(node.atoms) if atom.source == source}
        known = {
            str(atom.low): weights[[k]].toarray()[0] for atom, k in own.items() if atom.kind == "is"
        }
        none = 0 * node.offset
        # An empty text is missing; it may be a category itself.
        gap = own.get(Atom("gap", source))
        lacking = none if gap is None else weights[[gap]].toarray()[0]
        known.setdefault("", none + np.nan if source in node.open else lacking)
        if not np.any([*known.values()]):
            return []
        number = self.add(
            "LabelEncoder",
            self._gather(self._text_input, [self._texts[source]]),
            domain="ai.onnx.ml",
            keys_strings=[*known],
            values_int64s=[*range(len(known))],
            default_int64=len(known),
        )
        found = self.add("Gather", self.constant([*known.values(), none]), number, axis=0)
        return [self.add("Squeeze", found, self.constant([1], np.int64))]

    def _activated(self, activation: str, values: str) -> str:
        if (operation := ACTIVATIONS[activation].onnx) is not None:
            return self.add(operation, values)
        above = self.add("GreaterOrEqual", values, self.constant(0.0))  # hardlim
        return self.cast(above, self._dtype)

    def _distances(self, columns: str, rows: Vector) -> str:
        """Return squared distances from rows; both are moved by the mean of the rows before."""
        mean = rows.mean(axis=0)
        moved, own = self.add("Sub", columns, self.constant(mean)), rows - mean
        norms = self._sums(self.add("Mul", moved, moved))
        products = self.add("MatMul", moved, self.constant(-2 * own.T))
        total = self.add("Add", self.add("Add", products, norms), self.constant((own**2).sum(1)))
        return self.add("Max", total, self.constant(0.0))

    def _kernel(self, node: KernelValues, columns: str) -> str:
        kernel, rows = node.kernel, node.support
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
