"""What models compute: formulas that other systems can compute.

The formula of a model is a small tree. Its leaves are `Atom`, functions of one of the caller's
columns; `Sum` weighs atoms and other nodes; `Apply`, `Times`, `Radial` and `KernelValues` make
values of sums. Scorers and exports visit it. While a pipeline is read, its columns are `Column`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.spatial.distance import cdist

import pairgram._core as _core
from pairgram._support.checks import AnyArray
from pairgram.features.kernel_values import KernelFunction, matrix_of

Vector = NDArray[np.float64]
Value = float | str
# The columns of rows: numbers, or an array of objects, which are text or missing. None is a column
# that is not read.
Rows = Sequence[Any]
SMALL_MATRIX = 1 << 16  # numbers


def is_missing(x: AnyArray) -> NDArray[np.bool_]:
    """Tell which values are missing: NaN and, among objects, None and what has no equality."""
    if x.dtype.kind != "O":
        return np.isnan(x)
    # NA of pandas is equal to nothing, and has no truth either.
    return np.array(
        [v is None or not isinstance(v == v, (bool, np.bool_)) or v != v for v in x], bool
    )


class Atom(NamedTuple):
    """A function of one of the caller's columns x, which is 0 where x is missing.

    Attributes
    ----------
    kind : str
        "value": x; "ramp": x from `low` to `high`, as a share of the way; "step": 1 where x is at
        least `low`; "is": 1 where x is `low`; "curve": ``name(low · x + high)``; "gap": 1 where x
        is missing.
    source : int
        The number of the column.
    low, high, name :
        See `kind`.
    """

    kind: str
    source: Any
    low: Any = None
    high: Any = None
    name: str = ""

    def of(self, x: Any) -> Any:
        """Return the values for values x that are not missing; `low` and `high` may be arrays."""
        match self.kind:
            case "value":
                return x
            case "ramp":
                return np.clip((x - self.low) / (self.high - self.low), 0, 1)
            case "step":
                return x >= self.low
            case "curve":
                with np.errstate(all="ignore"):
                    return CURVES[self.name](self.low * x + self.high)
        return x == self.low


def grouped(atoms: Sequence[Atom], places: Sequence[int]) -> Iterator[tuple[Atom, list[int]]]:
    """Yield atoms of a kind as one, whose source, low and high have an entry for each; and places.

    Those of kind "is" are of one column, and their `low` is a list.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k in places:
        kind, source, *_, name = atoms[k]
        groups.setdefault((kind, name, source if kind == "is" else None), []).append(k)
    for (kind, name, _), own in groups.items():
        sources, low, high = zip(*(atoms[k][1:4] for k in own), strict=True)
        at = low if kind == "is" else np.array(low)
        yield Atom(kind, [*sources], at, np.array(high), name), own


CURVES: dict[str, Callable[..., Any]] = {"log": np.log, "sqrt": np.sqrt}


@dataclass(frozen=True, eq=False)
class Column:
    """A column that is computed of one of the caller's columns x.

    Attributes
    ----------
    source : int
        The number of the caller's column.
    kind : str
        "affine": ``factor · x + offset``; "curve": ``factor · curve(inner · x + shift) + offset``;
        "ramps": linear between knots, and constant outside; "steps": with jumps at edges, and the
        value after the jump there; "lookup": a number for every category, and another for others;
        "product": ``factor · left · right + offset``, with the source of the left.
    at : tuple, or ndarray
        (name, inner, shift) of a curve; or knots or edges, ascending; or categories; or (left,
        right) of a product.
    values : ndarray
        The factor and the offset; or the values at knots; or below the first edge and from each
        edge on; or of the categories, and of others at the end.
    missing : float, or text
        The value where the source has none; NaN if there is none either. It is text only of an
        affine column that passes text on.
    accepted : frozenset, or None
        The categories that `predict` takes, with None if one may be missing. None stands for all.
    is_filled : bool
        Whether a step before has put a category in the place of missing values.
    """

    source: int
    kind: str = "affine"
    at: Any = ()
    values: Vector = field(default_factory=lambda: np.array([1.0, 0.0]))
    missing: Value = math.nan
    accepted: frozenset[Value | None] | None = None
    is_filled: bool = False

    @property
    def texts(self) -> set[str]:
        """The categories that are text."""
        keys = [*self.at, *(self.accepted or ())] if self.kind == "lookup" else []
        return {key for key in keys if isinstance(key, str)}

    @property
    def has_gaps(self) -> bool:
        """Whether there is no value where the source has none."""
        return self.missing != self.missing

    @property
    def fill(self) -> float:
        """The value where the source has none, a number."""
        return float(self.missing)

    @property
    def is_plain(self) -> bool:
        """Whether the column is the source."""
        return self.kind == "affine" and self.values.tolist() == [1.0, 0.0]

    def scaled(
        self,
        factor: float = 1.0,
        offset: float = 0.0,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> Column:
        """Return ``(column − centre) / scale · factor + offset``, to the last bit of categories."""
        values = (self.values - centre) / scale * factor + offset
        missing = (self.fill - centre) / scale * factor + offset
        if self.kind in ("affine", "curve", "product"):
            values[0] = self.values[0] * factor / scale
        return replace(self, values=values, missing=missing)

    def mapped(self, function: Callable[[float], float], what: str) -> Column:
        """Return a function of a column that has a few values.

        Raises
        ------
        ValueError
            If the column may have more than a few values. The message begins with `what`.
        """
        if self.kind not in ("lookup", "steps"):
            raise computed_before(what)
        values = np.array([*map(function, self.values.tolist())], np.float64)
        return replace(self, values=values, missing=function(self.fill))

    def filled(self, value: Value) -> Column:
        """Return a column that has a value where this one has none.

        Raises
        ------
        ValueError
            If the column is a curve, which has no value for some numbers either, or a product.
        """
        if self.kind == "lookup":
            return self.mapped(lambda own: float(value) if own != own else own, "")
        if not self.has_gaps:
            return self
        if self.kind == "product":
            raise ValueError(
                "an imputer, or Fill of a ranker, after PolynomialFeatures cannot be exported: "
                "put an imputer before"
            )
        if self.kind == "curve":
            name = self.at[0]
            raise ValueError(
                f"missing values that are filled, or marked by an indicator, after the function "
                f"{name} cannot be exported, because {name} has no value for some numbers "
                "either: put the imputer before the function"
            )
        return replace(self, missing=value)

    def gap(self) -> Column:
        """Return a column that is 1 where this one has no value, else 0; refuse as `filled`."""
        if self.kind == "lookup":
            return self.mapped(lambda own: float(own != own), "")
        self.filled(0.0)
        return constant(0.0, float(self.has_gaps), self.source)

    def parts(self) -> tuple[float, list[tuple[float, Atom]]]:
        """Return the column as a constant and weighted atoms."""
        source, values = self.source, self.values.tolist()
        first = values[-1] if self.kind in ("affine", "curve", "lookup") else values[0]
        if self.kind == "affine":
            pairs = [(values[0], Atom("value", source))]
        elif self.kind == "curve":
            name, inner, shift = self.at
            pairs = [(values[0], Atom("curve", source, inner, shift, name))]
        elif self.kind == "lookup":
            first = 0.0 if math.isnan(first) else first  # of which there are no others
            known = zip(self.at, values, strict=False)
            pairs = [(value - first, Atom("is", source, key)) for key, value in known]
        else:
            at = np.asarray(self.at).tolist()
            atoms = [Atom("step", source, edge) for edge in at]
            if self.kind == "ramps":
                atoms = [Atom("ramp", source, *pair) for pair in pairwise(at)]
            pairs = [*zip(np.diff(self.values).tolist(), atoms, strict=True)]
        if not self.has_gaps:
            pairs.append((self.fill - first, Atom("gap", source)))
        return first, [pair for pair in pairs if pair[0] != 0]


def constant(value: float, missing: float, source: int = 0) -> Column:
    """Return a column of one value, and of another where the source has none."""
    return Column(source, "lookup", (), np.array([value]), missing)


def product(left: Column, right: Column) -> Column:
    """Return the product of two columns."""
    missing = math.nan if left.has_gaps or right.has_gaps else 0.0
    return Column(left.source, "product", (left, right), missing=missing)


def computed_before(what: str) -> ValueError:
    """Return the error of a step that takes the caller's columns alone."""
    return ValueError(f"{what} of a column that was computed before cannot be exported")


def leaves(columns: Sequence[Column]) -> Iterator[Column]:
    """Yield the columns of one source each that columns are made of."""
    for column in columns:
        if column.kind == "product":
            yield from leaves(column.at)
        else:
            yield column


def stepped(column: Column, knots: Vector) -> Column:
    """Return a function with ascending knots of float32, some of which may be equal.

    Equal knots make a step: the function has its first value at the knot, and its last at the next
    number of float32, unless that is a knot itself.
    """
    at, first = np.unique(knots, return_index=True)
    last = np.append(first[1:], len(knots)) - 1
    above = np.nextafter(at.astype(np.float32), np.float32(np.inf)).astype(np.float64)
    steps = (last > first) & (above < np.append(at[1:], np.inf))
    at = np.concatenate([at, above[steps]])
    values = column.values[np.concatenate([first, last[steps]])]
    order = np.argsort(at)
    return replace(column, at=at[order], values=values[order])


def through(column: Column, knots: ArrayLike, values: ArrayLike) -> Column:
    """Return a function of a column, linear between knots and constant outside.

    Raises
    ------
    ValueError
        If the column is not affine, and has more than a few values.
    """
    knots, values = np.asarray(knots, np.float64), np.asarray(values, np.float64)

    def at(value: float) -> float:
        return float(np.interp(value, knots, values))

    if column.kind != "affine":
        return column.mapped(at, "quantiles, or a clip,")
    factor, offset = column.values.tolist()
    missing = at(column.fill)
    if factor == 0 or len(knots) == 1:
        return replace(column, values=np.array([0.0, at(offset)]), missing=missing)
    own = (knots - offset) / factor
    if np.abs(np.diff(own)).min() * np.finfo(np.float32).max < 2:  # 2, as knots may be rounded
        raise ValueError(
            f"column {column.source} of X has knots so close that engines, which compute in "
            "float32, cannot divide by their distance: multiply the column by a large number"
        )
    order = slice(None) if factor > 0 else slice(None, None, -1)
    found = values[order].copy()
    return Column(column.source, "ramps", own[order].copy(), found, missing=missing)


Change = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


class Node:
    """A part of a formula, which has values for rows."""

    x: Node
    of: Any  # returns the values, given those of x, of their type

    def values(self, rows: Rows, dtype: DTypeLike = np.float64, of: Change = _same) -> AnyArray:
        """Return the values for columns of rows of a type, computed in it, (n_rows, width).

        `of` is made of all that a sum adds, and of what is multiplied for it: with `abs`, the
        values are sizes.
        """
        return self.of(self.x.values(rows, dtype))

    @property
    def inner(self) -> tuple[Node, ...]:
        """The nodes of which the values are computed."""
        return (self.x,)


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """``offset + Σ weights · atoms + Σ node @ matrix``.

    Attributes
    ----------
    atoms : tuple of Atom
        They are those of the whole formula.
    open : frozenset of int
        The columns without which the values are NaN.
    weights : ndarray or sparse array of shape (n_atoms, width)
    offset : ndarray of shape (width,)
    terms : tuple of (Node, ndarray or sparse array)
    """

    atoms: tuple[Atom, ...]
    open: frozenset[int]
    weights: Any
    offset: Vector
    terms: tuple[tuple[Node, Any], ...] = ()

    @property
    def inner(self) -> tuple[Node, ...]:
        """The nodes of which the values are computed."""
        return tuple(node for node, _ in self.terms)

    def times(self, matrix: Any, offset: Any = 0.0) -> Sum:
        """Return ``sum @ matrix + offset``, with the matrix multiplied into the weights."""
        terms = tuple((node, own @ matrix) for node, own in self.terms)
        moved = self.offset @ matrix + offset
        return replace(self, weights=self.weights @ matrix, offset=moved, terms=terms)

    def over(self, node: Node, matrix: Vector) -> Sum:
        """Return ``node @ matrix`` of a node of the same formula."""
        weights = scipy.sparse.csr_array((len(self.atoms), matrix.shape[1]))
        return Sum(self.atoms, self.open, weights, np.zeros(matrix.shape[1]), ((node, matrix),))

    def plus(self, other: Sum) -> Sum:
        """Return the sum of both."""
        return replace(
            self,
            weights=self.weights + other.weights,
            offset=self.offset + other.offset,
            terms=self.terms + other.terms,
        )

    def nodes(self, name: str, weights: Vector, bias: Vector, coef: Vector) -> Sum:
        """Return ``Σ coef_k g(weights_kᵀ x + bias_k)``; `ACTIVATIONS` has the function g."""
        return self.over(Apply(self.times(weights, bias), name), coef[:, None])

    def radial(self, centres: Vector, bias: Vector, coef: Vector) -> Sum:
        """Return ``Σ coef_k exp(−bias_k ‖x − centres_k‖²)``."""
        return self.over(Radial(self, centres, bias), coef[:, None])

    def products(self, left: Vector, right: Vector) -> Sum:
        """Return ``Σ (left_kᵀ x) (right_kᵀ x)``."""
        sides = self.times(np.hstack([left, right]))
        return self.over(Times(sides), np.ones((left.shape[1], 1)))

    def of_kernel(self, kernel: KernelFunction, rows: Vector, coef: Vector) -> Sum:
        """Return a kernel model with these support rows."""
        if kernel.name == "linear":
            return self.times((rows.T @ coef)[:, None])
        return self.over(KernelValues(self, kernel, rows), coef[:, None])

    def entries(self, j: int) -> Iterator[tuple[float, Atom]]:
        """Yield the weights that are not 0, and the atoms, of column j."""
        for weight, k in entries_of(self.weights, j):
            yield weight, self.atoms[k]

    @cached_property
    def _plan(self) -> tuple[Any, ...]:
        """What computes the atoms that have a weight: blocks of numbers, and tables of codes."""
        used = np.flatnonzero(abs(self.weights).sum(axis=1)).tolist()
        blocks, tables = [], []
        for atom, own in grouped(self.atoms, used):
            if atom.kind == "is":
                matrix = scipy.sparse.csr_array(self.weights[own])
                columns: Any = np.unique(matrix.indices)
                columns = columns if len(columns) < len(self.offset) else slice(None)
                table = np.pad(matrix[:, columns].toarray(), ((0, 1), (0, 0)))  # 0 for others
                number = {key: k for k, key in enumerate(atom.low)}
                tables.append((atom.source[0], number, columns, table))
            else:
                blocks.append((atom, _prepared(self.weights[own])))
        terms = [(node, _prepared(matrix)) for node, matrix in self.terms]
        return blocks, tables, terms

    def values(self, rows: Rows, dtype: DTypeLike = np.float64, of: Change = _same) -> AnyArray:
        """Return the values for columns of rows."""
        blocks, tables, terms = self._plan
        asked = self.open
        n_rows = next(len(x) for x in rows if x is not None)
        total = np.zeros((n_rows, len(self.offset)), dtype) + of(self.offset).astype(dtype)
        for atom, matrix in blocks:
            if atom.kind == "gap":
                made = np.column_stack([is_missing(rows[source]) for source in atom.source])
            else:
                x = np.column_stack([rows[source] for source in atom.source])
                made, gaps = atom.of(x), np.isnan(x)
                if gaps.any():
                    made = np.where(gaps, 0, made)
                elif atom.kind == "value":
                    asked = asked.difference(atom.source)
            total += _product(of(made.astype(dtype, copy=False)), matrix, of)
        for source, number, columns, table in tables:
            x = rows[source]
            if x.dtype.kind != "O" and dtype != np.float64:
                number = {float(x.dtype.type(key)): k for key, k in number.items()}
            codes = [number.get(value, -1) for value in x.tolist()]
            total[:, columns] += of(table).astype(dtype)[codes]
        for node, matrix in terms:
            total += _product(of(node.values(rows, dtype, of)), matrix, of)
        for source in asked:
            if rows[source] is not None:
                total[is_missing(rows[source])] = np.nan
        return total


def _prepared(matrix: Any) -> Any:
    """Return a matrix as `_product` takes it: a sparse one that is small becomes dense."""
    is_small = np.prod(matrix.shape) <= SMALL_MATRIX
    return matrix.toarray() if scipy.sparse.issparse(matrix) and is_small else matrix


def _product(H: AnyArray, matrix: Any, of: Change) -> Any:
    """Return ``H @ matrix``.

    In float64, a row has the same bits whatever stands beside it, but for large dense matrices.
    """
    matrix = of(matrix).astype(H.dtype, copy=False)
    if scipy.sparse.issparse(matrix):
        return (matrix.T @ H.T).T
    if matrix.size <= SMALL_MATRIX and H.dtype == np.float64:
        return _core.score_rows(np.ascontiguousarray(H), np.ascontiguousarray(matrix.T)).T
    return H @ matrix


def entries_of(weights: Any, j: int) -> Iterator[tuple[float, int]]:
    """Yield the numbers of column j of a matrix that are not 0, and their rows."""
    column = scipy.sparse.coo_array(weights[:, [j]])
    for weight, k in zip(column.data.tolist(), column.row.tolist(), strict=True):
        if weight != 0:
            yield weight, k


class Activation(NamedTuple):
    """What nodes make of their inputs z.

    Attributes
    ----------
    of : callable
        The function of arrays. The one of Gaussian nodes needs more than z.
    onnx : str or None
        The operator of ONNX, if one operator computes it.
    """

    of: Callable[[Any], Any]
    onnx: str | None = None


ACTIVATIONS = {
    "linear": Activation(lambda z: z),
    "sigmoid": Activation(lambda z: 0.5 * (1 + np.tanh(z / 2)), "Sigmoid"),
    "gaussian": Activation(lambda z: np.exp(-z)),
    "tanh": Activation(np.tanh, "Tanh"),
    "relu": Activation(lambda z: np.maximum(z, 0), "Relu"),
    "hardlim": Activation(lambda z: (z >= 0).astype(z.dtype)),
    "sine": Activation(np.sin, "Sin"),
    "cos": Activation(np.cos, "Cos"),  # of Fourier features
}


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """A function of `ACTIVATIONS` of the values of a sum."""

    x: Sum
    name: str

    def of(self, x: AnyArray) -> AnyArray:
        """Return the function of x."""
        return ACTIVATIONS[self.name].of(x)


@dataclass(frozen=True, eq=False)
class Radial(Node):
    """``exp(−bias_k ‖x − centre_k‖²)`` for every k: Gaussian nodes."""

    x: Sum
    centres: Vector
    bias: Vector

    def of(self, x: AnyArray) -> AnyArray:
        """Return the values of the nodes."""
        squares = cdist(x, self.centres, "sqeuclidean").astype(x.dtype)
        return np.exp(-self.bias.astype(x.dtype) * squares)


@dataclass(frozen=True, eq=False)
class KernelValues(Node):
    """The values of a kernel with some rows, as a part of a formula.

    Attributes
    ----------
    x : Sum
    kernel : KernelFunction
        With a number for gamma.
    support : ndarray of shape (n_kernel_rows, n_columns)
    """

    x: Sum
    kernel: KernelFunction
    support: Vector

    def of(self, x: AnyArray) -> AnyArray:
        """Return the kernel values, which are computed in float64."""
        return np.asarray(matrix_of(self.kernel, x, self.support), x.dtype)


@dataclass(frozen=True, eq=False)
class Times(Node):
    """The products of the first half of the values of a sum with the second half."""

    x: Sum

    @property
    def width(self) -> int:
        """The number of products."""
        return len(self.x.offset) // 2

    def values(self, rows: Rows, dtype: DTypeLike = np.float64, of: Change = _same) -> AnyArray:
        """Return the values for columns of rows."""
        sides = self.x.values(rows, dtype, of)
        return sides[:, : self.width] * sides[:, self.width :]


def sum_of(columns: Sequence[Column]) -> Sum:
    """Return columns as a sum, of which the values are those of the columns."""
    found = [*leaves(columns)]
    listed = (atom for leaf in found for _, atom in leaf.parts()[1])
    atoms = {atom: k for k, atom in enumerate(dict.fromkeys(listed))}
    open_ = frozenset(leaf.source for leaf in found if leaf.has_gaps)

    def made(columns: Sequence[Column]) -> Sum:
        offset, weights = np.zeros(len(columns)), scipy.sparse.lil_array((len(atoms), len(columns)))
        products = [k for k, column in enumerate(columns) if column.kind == "product"]
        for k, column in enumerate(columns):
            offset[k] = column.values[-1]
            if column.kind != "product":
                offset[k], own = column.parts()
                for weight, atom in own:
                    weights[atoms[atom], k] = weight
        found = Sum(tuple(atoms), open_, weights.tocsr(), offset)
        if not products:
            return found
        left, right = zip(*(columns[k].at for k in products), strict=True)
        picks = scipy.sparse.lil_array((len(products), len(columns)))
        for row, k in enumerate(products):
            picks[row, k] = columns[k].values[0]
        return replace(found, terms=((Times(made([*left, *right])), picks.tocsr()),))

    return made(columns)


def nodes_of(root: Node) -> Iterator[Node]:
    """Yield a node and all below it."""
    yield root
    for node in root.inner:
        yield from nodes_of(node)
