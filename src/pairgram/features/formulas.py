"""What maps compute: nodes for compiled code, and formulas that other systems can compute."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

import pairgram._core as _core
from pairgram._support.checks import AnyArray

Vector = NDArray[np.float64]
Places = NDArray[np.intp]
Value = float | str
# The columns of rows: numbers of float64, or an array of objects, which are text or missing.
Rows = Sequence[AnyArray]
# Sums of float32 numbers have errors of at most about this share of the sum of their sizes.
FLOAT32_SHARE = 8 * 2.0**-24


def is_missing(x: AnyArray) -> NDArray[np.bool_]:
    """Tell which values are missing: NaN and, among objects, None and what has no equality."""
    if x.dtype.kind != "O":
        return np.isnan(x)
    # NA of pandas is equal to nothing, and has no truth either.
    return np.array([v is None or not isinstance(v == v, (bool, np.bool_)) or v != v for v in x])


class Column(ABC):
    """A column that is computed of the caller's columns."""

    @property
    @abstractmethod
    def sources(self) -> tuple[int, ...]:
        """The numbers of the caller's columns that it reads."""

    @abstractmethod
    def of(self, rows: Rows) -> Vector:
        """Return the values for the columns of rows."""

    @abstractmethod
    def size(self, rows: Rows) -> Vector:
        """Return the size of what is rounded on the way to the values."""

    @abstractmethod
    def scaled(self, factor: float, offset: float) -> Column:
        """Return ``factor · column + offset``."""

    @abstractmethod
    def filled(self, value: Value) -> Column:
        """Return a column that has a value where this one has none."""

    @abstractmethod
    def gap(self) -> Column:
        """Return a column that is 1 where this one has no value, else 0."""

    def mapped(self, function: Callable[[float], float], what: str) -> Column:
        """Return a function of a column that has a few values.

        Raises
        ------
        ValueError
            If the column may have more than a few values. The message begins with `what`.
        """
        raise ValueError(f"{what} of a column that was computed before cannot be exported")


@dataclass(frozen=True, eq=False)
class OfSource(Column):
    """A column that is computed of one of the caller's columns.

    Attributes
    ----------
    source : int
    missing : float, or text
        The value where the source has none; NaN if there is none either. It is text only of an
        `Affine` that passes text on.
    """

    source: int
    missing: Value = field(default=math.nan, kw_only=True)

    @property
    def sources(self) -> tuple[int, ...]:
        """The numbers of the caller's columns that it reads."""
        return (self.source,)

    @property
    def has_gaps(self) -> bool:
        """Whether there is no value where the source has none."""
        return self.missing != self.missing

    @property
    def fill(self) -> float:
        """The value where the source has none, a number."""
        return float(self.missing)

    def of(self, rows: Rows) -> Vector:
        """Return the values for the columns of rows."""
        x = rows[self.source]
        gaps = is_missing(x)
        found = np.full(len(x), self.missing, np.float64)
        found[~gaps] = self.known(x[~gaps])
        return found

    def size(self, rows: Rows) -> Vector:
        """Return the size of what is rounded on the way to the values."""
        x = rows[self.source]
        gaps = is_missing(x)
        # What is missing counts 0 in most engines, and what 0 makes is taken away again.
        x = np.where(gaps, 0.0, x)
        found = self.known_size(x)
        return np.where(gaps, found + abs(np.nan_to_num(self.fill)), found)

    @abstractmethod
    def known(self, x: AnyArray) -> Vector:
        """Return the values for values of the source, none of which is missing."""

    @abstractmethod
    def known_size(self, x: AnyArray) -> Vector:
        """Return the size of what is rounded for values of the source."""

    def scaled(self, factor: float, offset: float) -> Column:
        """Return ``factor · column + offset``."""
        return self.mapped(lambda value: factor * value + offset, "")

    def filled(self, value: Value) -> Column:
        """Return a column that has a value where this one has none."""
        return replace(self, missing=value) if self.has_gaps else self

    def gap(self) -> Column:
        """Return a column that is 1 where this one has no value, else 0."""
        return constant(0.0, self.source, missing=float(self.has_gaps))


@dataclass(frozen=True, eq=False)
class Affine(OfSource):
    """``factor · x + offset`` of the source column x."""

    factor: float = 1.0
    offset: float = 0.0

    def known(self, x: AnyArray) -> Vector:
        """Return the values for values of the source."""
        return self.factor * x + self.offset

    def known_size(self, x: AnyArray) -> Vector:
        """Return the size of what is rounded for values of the source."""
        return np.abs(self.factor * x) + abs(self.offset)

    @property
    def is_plain(self) -> bool:
        """Whether the column is the source."""
        return self.factor == 1 and self.offset == 0

    def scaled(self, factor: float, offset: float) -> Column:
        """Return ``factor · column + offset``."""
        offset_of, missing = factor * self.offset + offset, factor * self.fill + offset
        return Affine(self.source, factor * self.factor, offset_of, missing=missing)


@dataclass(frozen=True, eq=False)
class Piecewise(OfSource):
    """A function of the source column that is linear between knots and constant outside.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,), ascending
    values : ndarray of shape (n_knots,)
    """

    knots: Vector
    values: Vector

    def known(self, x: AnyArray) -> Vector:
        """Return the values for values of the source."""
        return np.interp(x, self.knots, self.values)

    def known_size(self, x: AnyArray) -> Vector:
        """Return the size of what is rounded for values of the source."""
        # Knots that are close in float32 make the function jump: by no more than it rises nearby.
        reach = FLOAT32_SHARE * np.abs(x)
        change = np.abs(self.known(x + reach) - self.known(x - reach))
        return np.abs(self.known(x)) + change / FLOAT32_SHARE

    def scaled(self, factor: float, offset: float) -> Column:
        """Return ``factor · column + offset``."""
        values, missing = factor * self.values + offset, factor * self.fill + offset
        return Piecewise(self.source, self.knots, values, missing=missing)


@dataclass(frozen=True, eq=False)
class Lookup(OfSource):
    """A number for every category of the source column, and `other` where it has none of them.

    Attributes
    ----------
    keys : tuple of numbers, or of text
    values : ndarray of shape (n_keys,)
    other : float
    accepted : frozenset, or None
        The values that `predict` takes, with None if one may be missing. None stands for all.
    is_filled : bool
        Whether a step before has put a category in the place of missing values.
    """

    keys: tuple[Value, ...]
    values: Vector
    other: float = 0.0
    accepted: frozenset[Value | None] | None = None
    is_filled: bool = False

    def known(self, x: AnyArray) -> Vector:
        """Return the values for values of the source."""
        table = dict(zip(self.keys, self.values.tolist(), strict=True))
        return np.array([table.get(value, self.other) for value in x.tolist()], np.float64)

    def known_size(self, x: AnyArray) -> Vector:
        """Return the size of what is rounded for values of the source."""
        return np.abs(self.known(x) - self.other) + abs(self.other)

    def mapped(self, function: Callable[[float], float], what: str) -> Column:
        """Return a function of the column."""
        values = np.array([*map(function, self.values.tolist())], np.float64)
        other, missing = function(self.other), function(self.fill)
        return replace(self, values=values, other=other, missing=missing)

    def filled(self, value: Value) -> Column:
        """Return a column that has a value where this one has none."""
        return self.mapped(lambda own: float(value) if own != own else own, "")

    def gap(self) -> Column:
        """Return a column that is 1 where this one has no value, else 0."""
        return self.mapped(lambda own: float(own != own), "")


def constant(value: float, source: int = 0, *, missing: float | None = None) -> Lookup:
    """Return a column of one value, but where the source has none."""
    missing = value if missing is None else missing
    return Lookup(source, (), np.empty(0), value, missing=missing)


@dataclass(frozen=True, eq=False)
class Steps(OfSource):
    """A function of the source column that jumps at edges, and has the value after the jump there.

    Attributes
    ----------
    edges : ndarray of shape (n_edges,), ascending
    values : ndarray of shape (n_edges + 1,)
        Below the first edge, from each edge to the next one, and from the last one on.
    """

    edges: Vector
    values: Vector

    def known(self, x: AnyArray) -> Vector:
        """Return the values for values of the source."""
        return self.values[np.searchsorted(self.edges, x, side="right")]

    def known_size(self, x: AnyArray) -> Vector:
        """Return the size of what is rounded for values of the source."""
        # A value at an edge is rounded as the edge is, and others may be rounded beyond one.
        reach = np.where(np.isin(x, self.edges), 0.0, FLOAT32_SHARE * np.abs(x))
        change = np.abs(self.known(x + reach) - self.known(x - reach))
        return np.abs(self.values).max() + change / FLOAT32_SHARE

    def mapped(self, function: Callable[[float], float], what: str) -> Column:
        """Return a function of the column."""
        values = np.array([*map(function, self.values.tolist())], np.float64)
        return Steps(self.source, self.edges, values, missing=function(self.fill))


class CurveKind(NamedTuple):
    """A function of numbers that engines have: of arrays, and its slope."""

    of: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]


CURVES = {
    "log": CurveKind(np.log, lambda v: 1 / v),
    "sqrt": CurveKind(np.sqrt, lambda v: 0.5 / np.sqrt(v)),
}


@dataclass(frozen=True, eq=False)
class Curve(OfSource):
    """``factor · curve(inner · x + shift) + offset`` of the source column x.

    Attributes
    ----------
    name : str
        A name in `CURVES`.
    inner, shift, factor, offset : float
    """

    name: str
    inner: float = 1.0
    shift: float = 0.0
    factor: float = 1.0
    offset: float = 0.0

    def known(self, x: AnyArray) -> Vector:
        """Return the values for values of the source."""
        with np.errstate(all="ignore"):
            return self.factor * CURVES[self.name].of(self.inner * x + self.shift) + self.offset

    def known_size(self, x: AnyArray) -> Vector:
        """Return the size of what is rounded for values of the source."""
        kind, inner = CURVES[self.name], self.inner * x + self.shift
        with np.errstate(all="ignore"):
            entering = np.abs(self.inner * x) + abs(self.shift)
            found = np.abs(kind.of(inner)) + kind.slope(inner) * entering
        # A value for which there is none has no size: that of 0 where a value is missing.
        found = np.where(np.isfinite(found), found, 0.0)
        return abs(self.factor) * found + abs(self.offset)

    def scaled(self, factor: float, offset: float) -> Column:
        """Return ``factor · column + offset``."""
        own = factor * self.factor, factor * self.offset + offset
        missing = factor * self.fill + offset
        return replace(self, factor=own[0], offset=own[1], missing=missing)

    def filled(self, value: Value) -> Column:
        """Refuse: there is no value where the function has none either."""
        if not self.has_gaps:
            return self
        raise ValueError(
            f"missing values that are filled, or marked by an indicator, after the function "
            f"{self.name} cannot be exported, because {self.name} has no value for some numbers "
            "either: put the imputer before the function"
        )

    def gap(self) -> Column:
        """Refuse, as `filled` does."""
        return self.filled(0.0) if self.has_gaps else super().gap()


@dataclass(frozen=True, eq=False)
class Product(Column):
    """``factor · left · right + offset`` of two columns."""

    left: Column
    right: Column
    factor: float = 1.0
    offset: float = 0.0

    @property
    def sources(self) -> tuple[int, ...]:
        """The numbers of the caller's columns that it reads."""
        return (*self.left.sources, *self.right.sources)

    def of(self, rows: Rows) -> Vector:
        """Return the values for the columns of rows."""
        return self.factor * self.left.of(rows) * self.right.of(rows) + self.offset

    def size(self, rows: Rows) -> Vector:
        """Return the size of what is rounded on the way to the values."""
        sizes = self.left.size(rows) * self.right.size(rows)
        return 2 * abs(self.factor) * sizes + abs(self.offset)

    def scaled(self, factor: float, offset: float) -> Column:
        """Return ``factor · column + offset``."""
        return replace(self, factor=factor * self.factor, offset=factor * self.offset + offset)

    def filled(self, value: Value) -> Column:
        """Return the column; refuse if a factor may have no value, as the product then has none."""
        if any(leaf.has_gaps for leaf in leaves(self)):
            raise ValueError(
                "an imputer, or missing= of a ranker, after PolynomialFeatures cannot be exported: "
                "put an imputer before"
            )
        return self

    def gap(self) -> Column:
        """Return a column of 0, as there is no gap; refuse as `filled` does."""
        self.filled(0.0)
        return constant(0.0)


def leaves(column: Column) -> list[OfSource]:
    """Return the columns of one source each that a column is made of."""
    if isinstance(column, Product):
        return [*leaves(column.left), *leaves(column.right)]
    assert isinstance(column, OfSource)
    return [column]


def combined(columns: Sequence[Column], weights: Sequence[float]) -> list[tuple[Column, float]]:
    """Return the columns and weights of the same sum, with one `Lookup` and `Steps` of a source."""
    found: dict[Any, list[tuple[Any, float]]] = {}
    for k, (column, weight) in enumerate(zip(columns, weights, strict=True)):
        if weight != 0:
            joins = isinstance(column, (Lookup, Steps))
            key = (type(column), column.sources) if joins else k
            found.setdefault(key, []).append((column, weight))
    sums: list[tuple[Column, float]] = []
    for group in found.values():
        first, _ = group[0]
        if len(group) == 1:
            sums += group
            continue
        missing = sum(weight * one.fill for one, weight in group)
        if isinstance(first, Steps):
            edges = np.unique(np.concatenate([one.edges for one, _ in group]))
            below = np.array([sum(weight * one.values[0] for one, weight in group)])
            values = sum(weight * one.known(edges) for one, weight in group)
            values = np.concatenate([below, values])
            sums.append((Steps(first.source, edges, values, missing=missing), 1.0))
        else:
            keys = tuple(dict.fromkeys(key for one, _ in group for key in one.keys))
            at, place = np.empty(len(keys), dtype=object), {key: k for k, key in enumerate(keys)}
            at[:] = keys
            values, rest = np.zeros(len(keys)), 0.0
            for one, weight in group:
                if len(one.keys) < 3 and math.isfinite(one.other):  # of thousands of categories
                    rest += weight * one.other
                    values[[place[key] for key in one.keys]] += weight * (one.values - one.other)
                else:
                    values += weight * one.known(at)
            other = sum(weight * one.other for one, weight in group)
            sums.append((Lookup(first.source, keys, values + rest, other, missing=missing), 1.0))
    return sums


def clipped(column: Column, low: float, high: float) -> Column:
    """Return a column that is held within two bounds."""
    return through(column, np.array([low, high]), np.array([low, high]))


def stepped(column: Piecewise, knots: Vector) -> Column:
    """Return a function with ascending knots of float32, some of which may be equal.

    Equal knots make a step: the function has its first value at the knot, and its last at the next
    number of float32, unless that is a knot itself.
    """
    values = column.values
    first = np.flatnonzero(np.diff(knots, prepend=-np.inf))
    last = np.append(first[1:], len(knots)) - 1
    above = np.nextafter(knots.astype(np.float32), np.float32(np.inf)).astype(np.float64)[first]
    steps = (last > first) & (above < np.append(knots[first][1:], np.inf))
    at = np.concatenate([knots[first], above[steps]])
    order = np.argsort(at, kind="stable")
    found = np.concatenate([values[first], values[last[steps]]])
    return replace(column, knots=at[order], values=found[order])


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

    if not isinstance(column, Affine):
        return column.mapped(at, "quantile inputs, or a clip,")
    if column.factor == 0 or len(knots) == 1:
        return Affine(column.source, 0.0, at(column.offset), missing=at(column.fill))
    own = (knots - column.offset) / column.factor
    if np.abs(np.diff(own)).min() * np.finfo(np.float32).max < 2:  # 2, as knots may be rounded
        raise ValueError(
            f"column {column.source} of X has knots so close that engines, which compute in "
            "float32, cannot divide by their distance: multiply the column by a large number"
        )
    order = slice(None) if column.factor > 0 else slice(None, None, -1)
    found = values[order].copy()
    return Piecewise(column.source, own[order].copy(), found, missing=at(column.fill))


class Activation(NamedTuple):
    """What nodes make of their inputs z.

    Attributes
    ----------
    compiled : str
        The name in compiled code.
    of : callable
        The function of arrays. The one of Gaussian nodes needs more than z.
    slope : float
        The steepest slope, or 1 for a step.
    onnx : str or None
        The operator of ONNX, if one operator computes it.
    """

    compiled: str
    of: Callable[[Vector], Vector]
    slope: float = 1.0
    onnx: str | None = None


ACTIVATIONS = {
    "linear": Activation("linear", lambda z: z),
    "sigmoid": Activation("sigmoid", lambda z: 0.5 * (1 + np.tanh(z / 2)), 0.25, "Sigmoid"),
    "gaussian": Activation("gaussian", lambda z: np.exp(-z)),
    "tanh": Activation("tanh", np.tanh, onnx="Tanh"),
    "relu": Activation("relu", lambda z: np.maximum(z, 0.0), onnx="Relu"),
    "hardlim": Activation("hardlim", lambda z: (z >= 0).astype(np.float64)),
    "sine": Activation("sin", np.sin, onnx="Sin"),
    "cos": Activation("cos", np.cos, onnx="Cos"),  # of Fourier features
}


@dataclass(frozen=True, eq=False)
class Hidden:
    """Hidden nodes ``weights · act(columns @ matrix + bias)``.

    Attributes
    ----------
    activation : str
        A name in `ACTIVATIONS`, but not "linear". Gaussian nodes are
        ``exp(−bias ‖columns − matrix column‖²)``.
    matrix : ndarray of shape (n_columns, n_nodes)
    bias, weights : ndarray of shape (n_nodes,)
    """

    activation: str
    matrix: Vector
    bias: Vector
    weights: Vector

    def values(self, C: Vector) -> Vector:
        """Return the nodes of columns (n_rows, n_columns)."""
        if self.activation == "gaussian":
            squares = ((C[:, :, None] - self.matrix) ** 2).sum(axis=1)
            return ACTIVATIONS["gaussian"].of(self.bias * squares)
        Z = C @ self.matrix + self.bias
        return ACTIVATIONS[self.activation].of(Z)

    def change(self, C: Vector, sizes: Vector) -> Vector:
        """Return how much the nodes change at most if columns C change by these sizes."""
        if self.activation == "gaussian":
            fastest = np.sqrt(2 * self.bias / math.e)
            return fastest * np.linalg.norm(sizes, axis=1)[:, None]
        steepest = ACTIVATIONS[self.activation].slope
        return steepest * (sizes @ np.abs(self.matrix) + np.abs(self.bias))


@dataclass(frozen=True, eq=False)
class Products:
    """Products of columns, ``Σ_ab matrix_ab left_a right_b``.

    Attributes
    ----------
    left, right : ndarray of int64
        The numbers of the columns.
    matrix : ndarray of shape (n_left, n_right)
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    matrix: Vector

    @property
    def weights(self) -> Vector:
        """The weights of `values`, which are 1."""
        return np.ones(len(self.right))

    def values(self, C: Vector) -> Vector:
        """Return a term for every right column, (n_rows, n_right), of columns C."""
        return C[:, self.right] * (C[:, self.left] @ self.matrix)

    def change(self, C: Vector, sizes: Vector) -> Vector:
        """Return how much the terms change at most if columns C change by these sizes."""
        of_left = sizes[:, self.left] @ np.abs(self.matrix)
        return 2 * sizes[:, self.right] * of_left


@dataclass(frozen=True, eq=False)
class Terms:
    """``Σ constants + weights · columns + Σ hidden nodes + Σ kernels + Σ products``, a model.

    Attributes
    ----------
    weights : ndarray of shape (n_columns,), or None for zeros
    constants : tuple of float
    hidden : tuple of Hidden
    kernels : tuple of `pairgram.features.kernels.KernelTerm`
    products : tuple of Products
    """

    weights: Vector | None = None
    constants: tuple[float, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    kernels: tuple[Any, ...] = ()
    products: tuple[Products, ...] = ()


def native_nodes(
    dtype: DTypeLike,
    weights: AnyArray,
    bias: AnyArray,
    square: AnyArray | None,
    segments: list[tuple[int, int, str]],
    *,
    origin: AnyArray | None = None,
    tail: AnyArray | None = None,
    in_double: bool = False,
    **options: Any,
) -> Any:
    """Return the compiled map for rows of a dtype. The arrays that describe it are converted.

    csrc/features/node_map.hpp gives its formula. With `in_double`, rows of float32 are mapped
    in float64, and the outputs are rounded.
    """
    single = np.dtype(dtype) == np.float32
    narrow = single and not in_double
    make: Any = _core.NodeMap32 if narrow else _core.NodeMap64
    arrays = [
        None if a is None else np.ascontiguousarray(a, np.float32 if narrow else np.float64)
        for a in (weights, bias, square, origin, tail)
    ]
    node_map = make(*arrays[:3], segments, origin=arrays[3], tail=arrays[4], **options)
    return _core.NodeMap32.in_double(node_map) if single and in_double else node_map


class _Numbers:
    """Affine columns, side by side."""

    def __init__(self, columns: Sequence[Affine], factors: Places) -> None:
        self.sources = [column.source for column in columns]
        self.factors = np.array([column.factor for column in columns])
        self.offsets = np.array([column.offset for column in columns])
        fills = np.array([column.fill for column in columns])
        self.fills = None if np.isnan(fills).all() else fills
        self.plain = self.fills is None and all(column.is_plain for column in columns)

    def of(self, rows: Rows, values: Vector) -> Vector:
        if not isinstance(rows, np.ndarray):
            found = np.column_stack([rows[source] for source in self.sources])
        elif self.sources == list(range(len(rows))):
            found = rows.T
        else:
            found = rows[self.sources].T
        if self.plain:
            return found
        made = found * self.factors + self.offsets
        return made if self.fills is None else np.where(np.isnan(found), self.fills, made)


class _Categories:
    """Columns that look up the categories of one source, side by side."""

    def __init__(self, columns: Sequence[Lookup], factors: Places) -> None:
        keys = dict.fromkeys(key for one in columns for key in one.keys)
        self.source = columns[0].source
        self.number = {key: number for number, key in enumerate(keys)}
        # The last two rows are those of unknown categories and of missing ones.
        self.values = np.tile([float(one.other) for one in columns], (len(keys) + 2, 1))
        for column, one in enumerate(columns):
            self.values[[self.number[key] for key in one.keys], column] = one.values
            self.values[-1, column] = one.fill

    def of(self, rows: Rows, values: Vector) -> Vector:
        x, number = rows[self.source], self.number
        codes = np.array([number.get(value, -2) for value in x.tolist()], np.intp)
        (unknown,) = np.nonzero(codes == -2)
        if len(unknown):
            codes[unknown[is_missing(x[unknown])]] = -1
        return self.values[codes]


class _Products:
    """Products of columns that have been computed, side by side."""

    def __init__(self, columns: Sequence[Product], factors: Places) -> None:
        self.left, self.right = factors.T
        self.factors = np.array([column.factor for column in columns])
        self.offsets = np.array([column.offset for column in columns])

    def of(self, rows: Rows, values: Vector) -> Vector:
        found = values[:, self.left] * values[:, self.right]
        return self.factors * found + self.offsets


class _Alone:
    """A column that is computed alone."""

    def __init__(self, columns: Sequence[Column], factors: Places) -> None:
        (self.column,) = columns

    def of(self, rows: Rows, values: Vector) -> Vector:
        return self.column.of(rows)[:, None]


def _factors(column: Column) -> tuple[Column, ...]:
    return (column.left, column.right) if isinstance(column, Product) else ()


def _group(column: Column, place: int) -> tuple[int, int, Any]:
    """Return what is the same for columns that are computed at once; lower ones come first."""
    depth = 0
    inner = _factors(column)
    while inner:
        depth, inner = depth + 1, tuple(one for part in inner for one in _factors(part))
    if depth:
        return depth, 0, _Products
    if isinstance(column, Lookup):
        return 0, column.source, _Categories
    return (0, 0, _Numbers) if isinstance(column, Affine) else (0, place, _Alone)


class ColumnsAtOnce:
    """Columns that are computed of a caller's columns, as many at a time as possible."""

    def __init__(self, columns: Sequence[Column]) -> None:
        order, self.width = [*columns], len(columns)
        place = {id(column): k for k, column in enumerate(order)}
        groups: dict[Any, list[int]] = {}
        for k, column in enumerate(order):
            for factor in _factors(column):  # behind the columns, if it is none of them
                if place.setdefault(id(factor), len(order)) == len(order):
                    order.append(factor)
            groups.setdefault(_group(column, k), []).append(k)
        self.n_all, self.parts = len(order), []  # [(places, what computes them)]
        for depth, _, kind in sorted(groups, key=lambda group: group[0]):
            at = groups[depth, _, kind]
            own = [order[k] for k in at]
            factors = np.array([[place[id(one)] for one in _factors(column)] for column in own])
            self.parts.append((np.array(at), kind(own, factors)))

    def of(self, rows: Rows, n_rows: int) -> Vector:
        """Return the values of the columns, (n_rows, n_columns), C-contiguous."""
        if len(self.parts) == 1:
            ((_, part),) = self.parts
            return np.ascontiguousarray(part.of(rows, np.empty((0, 0))))
        values = np.empty((n_rows, self.n_all))
        for at, part in self.parts:
            values[:, at] = part.of(rows, values)
        return np.ascontiguousarray(values[:, : self.width])
