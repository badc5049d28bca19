"""What maps compute: nodes for compiled code, and formulas that other systems can compute."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

import pairgram._core as _core

Vector = NDArray[np.float64]
# Sums of float32 numbers have errors of at most about this share of the sum of their sizes.
FLOAT32_SHARE = 8 * 2.0**-24


@dataclass(frozen=True)
class Affine:
    """``factor · x + offset`` of the source column x."""

    source: int
    factor: float = 1.0
    offset: float = 0.0

    def of(self, x: Vector) -> Vector:
        """Return the values for values of the source column."""
        return self.factor * x + self.offset

    def size(self, x: Vector) -> Vector:
        """Return the size of what is rounded on the way to the values."""
        return np.asarray(np.abs(self.factor * x) + abs(self.offset))


@dataclass(frozen=True, eq=False)
class Piecewise:
    """A function of the source column that is linear between knots and constant outside.

    Attributes
    ----------
    source : int
    knots : ndarray of shape (n_knots,), ascending
    values : ndarray of shape (n_knots,)
    """

    source: int
    knots: Vector
    values: Vector

    def of(self, x: Vector) -> Vector:
        """Return the values for values of the source column."""
        return np.asarray(np.interp(x, self.knots, self.values))

    def size(self, x: Vector) -> Vector:
        """Return the size of what is rounded on the way to the values."""
        # Knots that are close in float32 make the function jump: by no more than it rises nearby.
        reach = FLOAT32_SHARE * np.abs(x)
        change = np.abs(self.of(x + reach) - self.of(x - reach))
        return np.asarray(np.abs(self.of(x)) + change / FLOAT32_SHARE)


@dataclass(frozen=True)
class Indicator:
    """1 where the source column has a value, else 0."""

    source: int
    value: float

    def of(self, x: Vector) -> Vector:
        """Return the values for values of the source column."""
        return np.asarray(x == self.value, np.float64)

    def size(self, x: Vector) -> Vector:
        """Return the size of what is rounded on the way to the values."""
        return self.of(x)


Column = Affine | Piecewise | Indicator


def scaled(column: Column, factor: float, offset: float) -> Column:
    """Return ``factor · column + offset``."""
    if isinstance(column, Affine):
        return Affine(column.source, factor * column.factor, factor * column.offset + offset)
    if isinstance(column, Piecewise):
        return Piecewise(column.source, column.knots, factor * column.values + offset)
    raise ValueError(
        "a scaler after OneHotEncoder cannot be exported: put the encoder after the scalers"
    )


def clipped(column: Column, low: float, high: float) -> Column:
    """Return a column that is held within two bounds."""
    return through(column, np.array([low, high]), np.array([low, high]))


def stepped(source: int, knots: Vector, values: Vector) -> Column:
    """Return a function of ascending knots of float32, some of which may be equal.

    Equal knots make a step: the function has its first value at the knot, and its last at the next
    number of float32, unless that is a knot itself.
    """
    first = np.flatnonzero(np.diff(knots, prepend=-np.inf))
    last = np.append(first[1:], len(knots)) - 1
    above = np.nextafter(knots.astype(np.float32), np.float32(np.inf)).astype(np.float64)[first]
    steps = (last > first) & (above < np.append(knots[first][1:], np.inf))
    at = np.concatenate([knots[first], above[steps]])
    order = np.argsort(at, kind="stable")
    found = np.concatenate([values[first], values[last[steps]]])
    return Piecewise(source, at[order], found[order])


def through(column: Column, knots: ArrayLike, values: ArrayLike) -> Column:
    """Return a function, linear between knots and constant outside, of an affine column."""
    if not isinstance(column, Affine):
        raise ValueError(
            "quantile inputs, or a clip, of a column that is not a scaled column of X cannot be "
            "exported"
        )
    knots, values = np.asarray(knots, np.float64), np.asarray(values, np.float64)
    if column.factor == 0 or len(knots) == 1:
        constant = float(np.interp(column.offset, knots, values))
        return Affine(column.source, 0.0, constant)
    own = (knots - column.offset) / column.factor
    if np.abs(np.diff(own)).min() * np.finfo(np.float32).max < 2:  # 2, as knots may be rounded
        raise ValueError(
            f"column {column.source} of X has knots so close that engines, which compute in "
            "float32, cannot divide by their distance: multiply the column by a large number"
        )
    order = slice(None) if column.factor > 0 else slice(None, None, -1)
    return Piecewise(column.source, own[order].copy(), values[order].copy())


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
            return np.asarray(ACTIVATIONS["gaussian"].of(self.bias * squares))
        Z = C @ self.matrix + self.bias
        return np.asarray(ACTIVATIONS[self.activation].of(Z))

    def change(self, C: Vector, sizes: Vector) -> Vector:
        """Return how much the nodes change at most if columns C change by these sizes."""
        if self.activation == "gaussian":
            fastest = np.sqrt(2 * self.bias / math.e)
            return np.asarray(fastest * np.linalg.norm(sizes, axis=1)[:, None])
        steepest = ACTIVATIONS[self.activation].slope
        return np.asarray(steepest * (sizes @ np.abs(self.matrix) + np.abs(self.bias)))


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
        return np.asarray(C[:, self.right] * (C[:, self.left] @ self.matrix))

    def change(self, C: Vector, sizes: Vector) -> Vector:
        """Return how much the terms change at most if columns C change by these sizes."""
        of_left = sizes[:, self.left] @ np.abs(self.matrix)
        return np.asarray(2 * sizes[:, self.right] * of_left)


@dataclass(frozen=True, eq=False)
class Terms:
    """``Σ constants + weights · columns + Σ hidden nodes + Σ kernels + Σ products``, a model.

    All weights, constants and matrices of products have one dimension more, the last, if they are
    those of several models.

    Attributes
    ----------
    weights : ndarray of shape (n_columns,), or None for zeros
    constants : tuple of float
    hidden : tuple of Hidden
    kernels : tuple of `pairgram.features.kernels.KernelTerm`
    products : tuple of Products
    """

    weights: Vector | None = None
    constants: tuple[Any, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    kernels: tuple[Any, ...] = ()
    products: tuple[Products, ...] = ()


def native_nodes(
    dtype: DTypeLike,
    weights: NDArray[Any],
    bias: NDArray[Any],
    square: NDArray[Any] | None,
    segments: list[tuple[int, int, str]],
    *,
    origin: NDArray[Any] | None = None,
    tail: NDArray[Any] | None = None,
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
