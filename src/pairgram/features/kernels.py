"""Kernels k(x, z) of two rows, their matrices, and kernel values as nodes of compiled code."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from numbers import Integral
from reprlib import Repr
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.arrays import column_names, read_rows
from pairgram._support.checks import (
    ArgumentError,
    Rows,
    Vector,
    require_finite,
    verbatim,
)
from pairgram._support.parameters import (
    KERNEL_PARAMETERS,
    POSITIVE,
    KernelName,
    check_parameters,
    words,
)
from pairgram._support.row_warnings import warn_of_rows
from pairgram._support.schema import require
from pairgram.features.columns import Columns, column_numbers
from pairgram.features.formulas import Terms
from pairgram.features.kernel_values import (
    AT_MOST_ONE,
    NYSTROEM,
    BaseKernel,
    NamedKernel,
    TileValues,
    check_symmetric,
    matrix_of,
)

if TYPE_CHECKING:
    from pairgram._support.types import Matrix, RowsLike

KernelLike = KernelName | BaseKernel | Callable[[Any, Any], Any]
_BRIEF = Repr()
_BRIEF.maxlist = _BRIEF.maxtuple = 6
_BRIEF.maxstring = _BRIEF.maxother = 60


@dataclass(repr=False)
class Kernel(BaseKernel):
    """A kernel of some columns, which `Product` and `Sum` join with others.

    Wherever a kernel's name is taken as `kernel`, so is a `Kernel`.

    Parameters
    ----------
    name : {"rbf", "laplacian", "polynomial", "linear", "tanimoto", "minmax"}
        As in `kernel_matrix`.
    columns : str, int, slice, list of str and int, or None, default=None
        The columns that it sees, by their names if X is a frame or table, or by their numbers. None
        takes all. If a ranker has `inputs`, these are the columns that the inputs make.
    gamma, degree, coef0 : float > 0, int from 1 to 1,000, float ≥ 0, or None, default=None
        Parameters of the kernel. None takes the value that the ranker or the feature map has. If
        gamma is None there too, it is ``1 / n_columns``.

    See Also
    --------
    Product, Sum : Kernels of kernels.

    Examples
    --------
    >>> from pairgram import Kernel, kernel_matrix
    >>> kernel_matrix([[0, 1, 5], [1, 1, 7]], kernel=Kernel("tanimoto", columns=[0, 1]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    name: KernelLike
    columns: Columns | None = None
    _: KW_ONLY
    gamma: float | None = None
    degree: int | None = None
    coef0: float | None = None

    def __repr__(self) -> str:
        known = isinstance(self.name, str) and self.name in KERNEL_PARAMETERS
        unused = set(_OF_KERNEL[2:]).difference(KERNEL_PARAMETERS[str(self.name)]) if known else ()
        own = {k: v for k, v in self.get_params().items() if v is not None and k not in unused}
        name = own.pop("name", None)
        return (
            f"Kernel({', '.join([repr(name), *(f'{k}={_BRIEF.repr(v)}' for k, v in own.items())])})"
        )

    _of_columns = ("columns",)  # the parameters that may have names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by their names."""
        return {name: getattr(self, name) for name in _OF_KERNEL}

    def _set(self, name: str, value: object) -> None:
        setattr(self, name, value)

    @property
    def function(self) -> Callable[[Any, Any], Any] | None:  # type: ignore[override]
        """The callable that alone can compute the kernel."""
        return self.name if callable(self.name) else None

    @property
    def is_precomputed(self) -> bool:  # type: ignore[override]
        """Whether rows are given as their kernel values."""
        return isinstance(self.name, str) and self.name == "precomputed"

    @property
    def is_linear(self) -> bool:  # type: ignore[override]
        """Whether it is the kernel of the rows themselves."""
        return isinstance(self.name, str) and self.name == "linear" and self.columns is None

    @property
    def takes_gamma(self) -> bool:
        """Whether a gamma that is given beside the kernel counts."""
        has = isinstance(self.name, str) and "gamma" in KERNEL_PARAMETERS.get(self.name, ())
        return has and self.gamma is None

    @property
    def called(self) -> str:
        """What messages call it."""
        return f"{self.name} kernel"

    @property
    def at_most_one(self) -> bool:
        """Whether k(x, x) = 1 for every row, so that no value is larger."""
        return self.name in AT_MOST_ONE

    def filled(self, gamma: float | None, degree: int, coef0: float) -> Self:
        """Return the kernel with parameters where it has none; they are checked."""
        known = words(KernelName)
        if not (callable(self.name) or (isinstance(self.name, str) and self.name in known)):
            names = ", ".join(map(repr, known))
            size = isinstance(self.name, Integral)
            hint = f"; give a number of landmarks as n_components={self.name}" if size else ""
            raise ValueError(
                f"kernel must be one of {names}, a Kernel, Product or Sum, or a callable; got "
                f"{self.name!r}{hint}"
            )
        found = replace(
            self,
            gamma=gamma if self.gamma is None else self.gamma,
            degree=degree if self.degree is None else self.degree,
            coef0=coef0 if self.coef0 is None else self.coef0,
        )
        check_parameters(found, "gamma", "degree", "coef0")
        return found

    def require_name(self) -> None:
        """Raise a ValueError unless the kernel has the name of one that can be a part."""
        if not isinstance(self.name, str) or self.name not in KERNEL_PARAMETERS:
            names = ", ".join(map(repr, KERNEL_PARAMETERS))
            raise ArgumentError(
                "name", f"of a Kernel must be one of {names}, got {verbatim(repr(self.name))}"
            )

    def located(self, n_features: int, names: Sequence[Hashable] | None) -> Self:
        """Return the kernel with the numbers of its columns."""
        if self.columns is None:
            return replace(self)
        parameter = f"columns of the {self.called}"
        found = column_numbers(self.columns, parameter, n_features, names)
        if not len(found):
            raise ArgumentError(parameter, "must name a column or more, got none")
        return replace(self, columns=found.tolist())

    def complete(self, n_features: int) -> Self:
        """Return the filled kernel with a number for gamma; the default is 1 / columns."""
        own = self.index
        width = n_features if own is None else len(own)
        return replace(self, gamma=1.0 / width if self.gamma is None else float(self.gamma))

    def leaves(self) -> list[Kernel]:
        """Return the kernel itself."""
        return [self]

    @property
    def index(self) -> Rows | None:
        """The numbers of the columns of a located kernel, or None for all."""
        return None if self.columns is None else np.array(self.columns, np.int64)

    def of(self, X: Matrix) -> Matrix:
        """Return the columns of rows that the located kernel sees."""
        return X if self.columns is None else X[:, self.index]

    def names(self, names: Sequence[Any] | None) -> Sequence[Any] | None:
        """Return the names of the columns that the located kernel sees, or their numbers."""
        own = self.index
        if own is None:
            return names
        return own.tolist() if names is None else [names[column] for column in own.tolist()]

    def named(self, n_features: int) -> NamedKernel:
        """Return the kernel of the columns that it sees."""
        own = self.complete(n_features)
        assert isinstance(own.name, str)
        assert own.gamma is not None and own.degree is not None and own.coef0 is not None
        return NamedKernel(own.name, own.gamma, own.degree, own.coef0)

    def tiles(self, Z: Matrix, *, steady: bool) -> TileValues:
        """Return what computes the values of tiles, for columns that are rows of Z."""
        values = self.named(Z.shape[1]).tiles(self.of(Z), steady=steady)
        if self.columns is None:
            return values
        return lambda x, z, diagonal: values(self.of(x), self.of(z), diagonal)

    def wide_nodes(self, landmarks: Vector, tail: Vector | None) -> Any:
        """Return the compiled map of rows x of float64 to ``k(x, landmarks) @ tail``."""
        if self.columns is None:
            return self.named(landmarks.shape[1]).nodes(landmarks, tail)
        return _joined([(*self.part_nodes(landmarks), 1.0)], True, landmarks, tail)

    def part_nodes(self, landmarks: Vector) -> tuple[Rows | None, Any]:
        """Return (columns, compiled map of these to kernel values); None for all columns."""
        named = self.named(landmarks.shape[1])
        return self.index, named.nodes(np.asarray(self.of(landmarks)), None)

    def diagonal(self, block: Vector) -> Vector:
        """Return k(x, x) for every row x of a dense block."""
        return self.named(block.shape[1]).diagonal(np.asarray(self.of(block)))

    def terms(self, rows: Vector, weights: Vector) -> Terms:
        """Return a model of the kernel values with rows as terms of a formula."""
        if self.name == "linear":
            found = np.zeros((rows.shape[1], *weights.shape[1:]))
            seen = slice(None) if self.columns is None else self.index
            found[seen] = self.of(rows).T @ weights
            return Terms(found)
        return Terms(kernels=(KernelTerm(self.complete(rows.shape[1]), rows, weights),))

    def change(self, C: Vector, rows: Vector, sizes: Vector) -> Vector:
        """Return how much the values of C with rows change, about, if C changes by these sizes."""
        found = self.named(sizes.shape[1]).change(np.asarray(self.of(sizes)))
        return np.repeat(found[:, None], len(rows), axis=1)

    def in_file(self) -> dict[str, Any]:
        """Return what a file holds of it; see `kernel_from_file`."""
        own = self.get_params()
        columns = own.pop("columns")
        if isinstance(columns, slice):
            own["columns"] = {"slice": [columns.start, columns.stop, columns.step]}
        elif columns is not None:
            single = isinstance(columns, str) or not np.iterable(columns)
            listed: Any = [columns] if single else columns
            own["columns"] = [one if isinstance(one, str) else int(one) for one in listed]
        return own


_OF_KERNEL = ("name", "columns", "gamma", "degree", "coef0")


class Joined(BaseKernel):
    """Several kernels, joined to one."""

    multiplies: ClassVar[bool]  # or adds
    kernels: tuple[BaseKernel, ...]

    @property
    def factors(self) -> list[float]:
        """The factors of the kernels."""
        return [1.0] * len(self.kernels)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        own = [f"{k}={v!r}" for k, v in self._others().items() if v is not None]
        return f"{type(self).__name__}({', '.join([*map(repr, self.kernels), *own])})"

    def _others(self) -> dict[str, Any]:
        """Return the parameters besides the kernels."""
        return {}

    def _of(self, kernels: Iterable[BaseKernel]) -> Self:
        """Return the same of other kernels."""
        return type(self)(*kernels, **self._others())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the kernels by their numbers; if `deep`, also their parameters."""
        found: dict[str, Any] = self._others()
        for number, kernel in enumerate(self.kernels):
            found[str(number)] = kernel
            if deep and isinstance(kernel, BaseKernel):
                found |= {f"{number}__{key}": value for key, value in kernel.get_params().items()}
        return found

    def _set(self, name: str, value: object) -> None:
        if name in self._others():
            setattr(self, name, value)
            return
        own: list[Any] = list(self.kernels)
        own[int(name)] = value
        self.kernels = tuple(own)

    def _check(self) -> None:
        """Raise a ValueError unless these kernels can be joined."""
        name = type(self).__name__
        if not self.kernels:
            raise ArgumentError("kernels", f"of a {name} must be one or more, got none")
        for kernel in self.kernels:
            if not isinstance(kernel, BaseKernel):
                hint = f": give Kernel({kernel!r})" if isinstance(kernel, str) else ""
                raise ArgumentError(
                    "kernels",
                    f"of a {name} must each be a Kernel, Product or Sum, got "
                    f"{verbatim(repr(kernel))}{verbatim(hint)}",
                )
            if isinstance(kernel, Kernel):
                kernel.require_name()

    @property
    def takes_gamma(self) -> bool:
        """Whether a gamma that is given beside the kernel counts."""
        kernels = (one for one in self.kernels if isinstance(one, BaseKernel))
        return any(kernel.takes_gamma for kernel in kernels)

    @property
    def called(self) -> str:
        """What messages call it."""
        return f"{type(self).__name__} kernel"

    def filled(self, gamma: float | None, degree: int, coef0: float) -> Self:
        """Return the kernel with parameters where its parts have none; they are checked."""
        self._check()
        return self._of(kernel.filled(gamma, degree, coef0) for kernel in self.kernels)

    def located(self, n_features: int, names: Sequence[Hashable] | None) -> Self:
        """Return the kernel with the numbers of the columns of its parts."""
        self._check()
        return self._of(kernel.located(n_features, names) for kernel in self.kernels)

    def complete(self, n_features: int) -> Self:
        """Return the filled kernel with a number for every gamma; the default is 1 / columns."""
        return self._of(kernel.complete(n_features) for kernel in self.kernels)

    def leaves(self) -> list[Kernel]:
        """Return the named kernels that it is made of, in their order."""
        return [leaf for kernel in self.kernels for leaf in kernel.leaves()]

    def part_nodes(self, landmarks: Vector) -> tuple[Rows | None, Any]:
        """Return (None, compiled map of all columns to kernel values)."""
        return None, self.wide_nodes(landmarks, None)

    def tiles(self, Z: Matrix, *, steady: bool) -> TileValues:
        """Return what computes the values of tiles, for columns that are rows of Z."""
        parts = [kernel.tiles(Z, steady=steady) for kernel in self.kernels]
        return lambda *tile: self._values(values(*tile) for values in parts)

    def wide_nodes(self, landmarks: Vector, tail: Vector | None) -> Any:
        """Return the compiled map of rows x of float64 to ``k(x, landmarks) @ tail``."""
        own = zip(self.kernels, self.factors, strict=True)
        parts = [(*kernel.part_nodes(landmarks), factor) for kernel, factor in own]
        return _joined(parts, self.multiplies, landmarks, tail)

    def diagonal(self, block: Vector) -> Vector:
        """Return k(x, x) for every row x of a dense block."""
        return self._values(kernel.diagonal(block) for kernel in self.kernels)

    def _values(self, parts: Iterable[Vector]) -> Vector:
        """Return the values of the kernel of those of its parts, which are overwritten."""
        total: Any = None
        for factor, part in zip(self.factors, parts, strict=True):
            if factor != 1:
                part *= factor
            join = np.multiply if self.multiplies else np.add
            total = part if total is None else join(total, part, out=total)
        return np.asarray(total)


class Product(Joined):
    """The product of kernels: rows are alike if they are alike in every part.

    Parameters
    ----------
    *kernels : Kernel, Product or Sum
        A column may be in several parts, or in none: it counts in all that have it.

    Attributes
    ----------
    kernels : tuple
        The parts. Their parameters have numbers: ``set_params(kernel__0__gamma=0.1)`` of a ranker
        sets that of the first.

    See Also
    --------
    Sum : Rows are alike if they are alike in some part.

    Notes
    -----
    A product of positive semidefinite kernels is positive semidefinite, by Schur's theorem. Its
    matrix is computed in tiles, which take the memory of the tiles of two parts.

    Examples
    --------
    >>> from pairgram import Kernel, Product, RankRLS, make_ranking
    >>> X, y, qid = make_ranking(20, 20, 10, random_state=0)
    >>> kernel = Product(Kernel("linear", columns=[0, 1]), Kernel("rbf", columns=slice(2, 10)))
    >>> RankRLS(kernel=kernel, gamma=0.1).fit(X, y, qid=qid).predict(X).shape
    (400,)
    """

    multiplies = True

    def __init__(self, *kernels: BaseKernel) -> None:
        self.kernels = kernels

    @property
    def at_most_one(self) -> bool:
        """Whether k(x, x) = 1 for every row, so that no value is larger."""
        return all(kernel.at_most_one for kernel in self.kernels)

    def terms(self, rows: Vector, weights: Vector) -> Terms:
        """Return a model of the kernel values with rows as terms of a formula."""
        if len(self.kernels) == 1:
            return self.kernels[0].terms(rows, weights)
        return Terms(kernels=(KernelTerm(self.complete(rows.shape[1]), rows, weights),))

    def change(self, C: Vector, rows: Vector, sizes: Vector) -> Vector:
        """Return how much the values of C with rows change, about, if C changes by these sizes."""
        values = [np.abs(matrix_of(kernel, C, rows, 1)) for kernel in self.kernels]
        total = np.zeros((len(C), len(rows)))
        for number, kernel in enumerate(self.kernels):
            others = values[:number] + values[number + 1 :]
            total += self._values([kernel.change(C, rows, sizes), *others])
        return total

    def in_file(self) -> dict[str, Any]:
        """Return what a file holds of it; see `kernel_from_file`."""
        return {"product": [kernel.in_file() for kernel in self.kernels]}


class Sum(Joined):
    """The sum of kernels: a score is a sum of what each part says.

    Parameters
    ----------
    *kernels : Kernel, Product or Sum
        A column may be in several parts, or in none.
    weights : list of float > 0, or None, default=None
        Factors of the kernels; None stands for ones. The ridge penalises a part with a larger
        factor less, so that it may contribute more to the score.

    Attributes
    ----------
    kernels : tuple
        The parts. Their parameters have numbers: ``set_params(kernel__0__gamma=0.1)`` of a ranker
        sets that of the first.

    See Also
    --------
    Product : Rows are alike if they are alike in every part.

    Examples
    --------
    >>> from pairgram import Kernel, Sum, kernel_matrix
    >>> both = Sum(Kernel("tanimoto", [0, 1]), Kernel("linear", [2]), weights=[1.0, 0.1])
    >>> kernel_matrix([[0, 1, 5], [1, 1, 7]], kernel=both)
    array([[3.5, 4. ],
           [4. , 5.9]])
    """

    multiplies = False

    def __init__(self, *kernels: BaseKernel, weights: Sequence[float] | None = None) -> None:
        self.kernels = kernels
        self.weights = weights

    def _others(self) -> dict[str, Any]:
        return {"weights": self.weights}

    def _of(self, kernels: Iterable[BaseKernel]) -> Self:
        return type(self)(*kernels, weights=None if self.weights is None else self.factors)

    def _check(self) -> None:
        super()._check()
        if self.weights is None:
            return
        given: Any = self.weights
        own = list(getattr(given, "tolist", lambda: given)()) if np.iterable(given) else [None]
        if len(own) != len(self.kernels) or not all(map(POSITIVE.fits, own)):
            raise ArgumentError(
                "weights",
                f"of a Sum must be a finite number > 0 for each of its {len(self.kernels)} "
                f"kernels, or None, got {verbatim(repr(self.weights))}",
            )

    @property
    def factors(self) -> list[float]:
        """The factors of the kernels."""
        return super().factors if self.weights is None else [*map(float, self.weights)]

    @property
    def at_most_one(self) -> bool:
        """Whether k(x, x) = 1 for every row, so that no value is larger."""
        return False

    def terms(self, rows: Vector, weights: Vector) -> Terms:
        """Return a model of the kernel values with rows as terms of a formula: those of parts."""
        linear, total = np.zeros((rows.shape[1], *weights.shape[1:])), ()
        for kernel, factor in zip(self.kernels, self.factors, strict=True):
            part = kernel.terms(rows, factor * weights)
            if part.weights is not None:
                linear += part.weights
            total += part.kernels
        return Terms(linear, kernels=total)

    def change(self, C: Vector, rows: Vector, sizes: Vector) -> Vector:
        """Return how much the values of C with rows change, about, if C changes by these sizes."""
        return self._values(kernel.change(C, rows, sizes) for kernel in self.kernels)

    def in_file(self) -> dict[str, Any]:
        """Return what a file holds of it; see `kernel_from_file`."""
        own = {"sum": [kernel.in_file() for kernel in self.kernels]}
        return own if self.weights is None else {**own, "weights": self.factors}


def _joined(parts: list[Any], product: bool, landmarks: Vector, tail: Vector | None) -> Any:
    """Return the compiled product or weighted sum of (columns, map, weight)."""
    own = None if tail is None else np.ascontiguousarray(tail, np.float64)
    return _core.NodeMap64.join(landmarks.shape[1], parts, product, own)


def kernel_in_file(kernel: object) -> Any:
    """Return what a file holds of the parameter `kernel`."""
    return kernel.in_file() if isinstance(kernel, BaseKernel) else kernel


def kernel_from_file(record: object) -> Any:
    """Return the kernel that a file holds; what is no record stays as it is."""
    if not isinstance(record, dict):
        return record
    if "product" in record:
        return Product(*map(kernel_from_file, record["product"]))
    if "sum" in record:
        return Sum(*map(kernel_from_file, record["sum"]), weights=record.get("weights"))
    own = dict(record)
    columns = own.get("columns")
    if isinstance(columns, dict):
        own["columns"] = slice(*columns["slice"])
    return Kernel(**own)


def require_columns(kernel: BaseKernel | None, n_features: int) -> None:
    """Raise a ValueError unless a located kernel has columns of rows, each once in a part."""
    for leaf in [] if kernel is None else kernel.leaves():
        if (own := leaf.index) is not None:
            inside = len(own) and own.min() >= 0 and own.max() < n_features
            require(
                inside and len(np.unique(own)) == len(own),
                f"columns of a kernel must be those of the {n_features} of X, each once",
            )


def as_kernel(kernel: KernelLike) -> BaseKernel:
    """Return a kernel that may be given by its name or as a callable; nothing is checked."""
    return kernel if isinstance(kernel, BaseKernel) else Kernel(kernel)


@lru_cache(maxsize=64, typed=True)
def _named(kernel: KernelName, gamma: float | None, degree: int, coef0: float) -> Kernel:
    return Kernel(kernel).filled(gamma, degree, coef0)


def kernel_of(
    kernel: KernelLike, gamma: float | None = None, degree: int = 3, coef0: float = 1.0
) -> BaseKernel:
    """Return a kernel with the parameters that are given beside it; they are checked.

    What was right once is not checked again. That is remembered of names alone: a callable, and
    what it holds, would stay in memory.
    """
    if isinstance(kernel, str):
        try:
            return _named(kernel, gamma, degree, coef0)
        except TypeError:  # a list or an array has no hash
            pass
    if isinstance(kernel, Kernel):
        kernel.require_name()
    return as_kernel(kernel).filled(gamma, degree, coef0)


def alternatives(kernel: KernelLike | None) -> str:
    """Return advice on what takes less memory than the matrix of this kernel."""
    other = "" if kernel is not None and as_kernel(kernel).is_precomputed else NYSTROEM
    return f"take fewer rows{other}"


def kernel_matrix(
    X: RowsLike,
    Z: RowsLike | None = None,
    kernel: KernelLike = "rbf",
    *,
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Return the kernel values ``k(x, z)`` for every row x of X and every row z of Z.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_rows, n_features), float64 or float32
    Z : array-like or CSR matrix of shape (n_columns, n_features), or None
        None stands for the rows of X.
    kernel : str, Kernel, Product, Sum or callable, default="rbf"
        - "linear": ``xᵀz``;
        - "rbf": ``exp(−gamma ‖x − z‖²)``;
        - "polynomial": ``(gamma xᵀz + coef0)^degree``;
        - "laplacian": ``exp(−gamma ‖x − z‖₁)``;
        - "tanimoto": ``xᵀz / (‖x‖² + ‖z‖² − xᵀz)``. For binary rows, such as fingerprints, this is
          the Jaccard coefficient. It is 1 for two rows of zeros, or of entries whose squares
          underflow;
        - "minmax": ``Σ_k min(x_k, z_k) / Σ_k max(x_k, z_k)`` for entries ≥ 0. For count
          fingerprints, this is the Tanimoto similarity of RDKit; for binary rows it equals
          "tanimoto". A column with entries below 0 counts as two, its positive part ``max(x, 0)``
          and its negative part ``max(−x, 0)``: this is Li's generalised min-max kernel. It is 1 for
          two rows of zeros;
        - a `Kernel` of some columns, or a `Product` or `Sum` of such;
        - "precomputed": X is the kernel matrix itself, and Z must be None;
        - a callable: ``kernel(X, Z)`` returns the matrix for all rows of X and all rows of Z. It
          gets them as they are given: arrays or csr_array, of float64 or float32. For objects that
          are not rows of numbers, such as strings or graphs, give ``X = np.arange(n)[:, None]``
          and let the callable look the objects up by number; or give their kernel matrix as
          "precomputed".
    gamma : float > 0 or None, default=None
        None stands for ``1 / n_features``.
    degree : int from 1 to 1,000, default=3
    coef0 : float ≥ 0, default=1.0
    n_threads : int or None, default=None
        Number of threads. The result has the same bits for any number. If Z is given, the values
        of a row also have the same bits whatever other rows X has.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        float64 for rows of either type. It is exactly symmetric if Z is None and the kernel has a
        name. A precomputed matrix is not copied; it and the matrix of a callable may be float32.

    Raises
    ------
    ValueError
        If a parameter or an array is not as described; if the matrix is not finite; or if Z is None
        and the matrix is not symmetric to half of its digits. The message names the entry.
    MemoryError
        If the matrix does not fit into free memory.

    Warns
    -----
    UserWarning
        With "rbf", "laplacian" and "polynomial", if at least a third of the columns of X that vary
        have a standard deviation below a hundredth of the largest: such columns hardly change the
        kernel. With "tanimoto" and "minmax", if X looks like packed bits (`numpy.packbits`), since
        the bytes are not features: all entries are whole numbers up to 255, and more than a
        quarter of those above 0 are 16 or more. With these two also if X looks like standardised
        bits: every column has two values, one below 0 and one above. All are checked in up to
        1,024 evenly spaced rows.

    Notes
    -----
    The cost is n_rows · n_columns · n_features flops (twice that if Z is given), and a few MiB of
    memory besides the result. If a kernel matrix is rounded to float32, scores err by about
    ``6e-8 λ_max / alpha``, which leaves them few digits. Dense rows are measured from the mean of Z
    before distances are computed, so a large common offset does no harm. So are the columns of CSR
    rows in which every row of Z has an entry. Other columns of CSR rows are not centred, so squared
    distances err by about 1e-16 times the squared entries: make rows with large entries dense.

    All named kernels are positive semidefinite. For "tanimoto" this holds for entries of either
    sign, because 1 / (a + b − c) is the integral of exp(−ta) exp(−tb) exp(tc) over t > 0. For a
    callable or a precomputed matrix, the `fit` of a model checks this, as far as it can see it.

    References
    ----------
    Li. Linearized GMM kernels and normalized random Fourier features. KDD 2017 ("minmax").

    Examples
    --------
    >>> from pairgram import kernel_matrix
    >>> kernel_matrix([[0, 1, 1], [1, 1, 0]], kernel="tanimoto").round(2)
    array([[1.  , 0.33],
           [0.33, 1.  ]])
    """
    own = kernel_of(kernel, gamma, degree, coef0)
    if own.is_precomputed:
        if Z is not None:
            raise ValueError("Z must be None with kernel='precomputed': X is the matrix itself")
        K = read_rows(X, sparse=False)
        require_finite(K, "X")
        check_symmetric(K, "X, with kernel='precomputed',")
        return np.asarray(K)
    names = column_names(X)
    X = _rows(X, "X")
    own = own.located(X.shape[1], names)
    if Z is not None:
        others = column_names(Z, "Z")
        if names is not None and others is not None and names != others:
            raise ArgumentError("Z", verbatim(f"must have the columns of X, {names}, got {others}"))
        Z = _rows(Z, "Z")
        if Z.shape[1] != X.shape[1]:
            raise ValueError(f"Z must have the {X.shape[1]} features of X, got {Z.shape[1]}")
    warn_of_rows(own, X, names)
    return matrix_of(own, X, Z, n_threads)


def _rows(X: RowsLike, name: str) -> Matrix:
    X = read_rows(X, name)
    require_finite(X, name)
    return scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X


@dataclass(frozen=True, eq=False)
class KernelTerm:
    """Kernel values with rows, times weights, as a term of a formula.

    Attributes
    ----------
    kernel : BaseKernel
        With a number for every gamma.
    rows : ndarray of shape (n_kernel_rows, n_columns)
    weights : ndarray of shape (n_kernel_rows,)
    """

    kernel: BaseKernel
    rows: Vector
    weights: Vector

    def values(self, C: Vector) -> Vector:
        """Return the kernel values of columns (n_rows, n_columns) with the rows."""
        return matrix_of(self.kernel, C, self.rows, None)

    def change(self, C: Vector, sizes: Vector) -> Vector:
        """Return how much the kernel values change, about, if columns C change by these sizes."""
        return self.kernel.change(C, self.rows, sizes)


def kernel_terms(kernel: BaseKernel, rows: Vector, weights: Vector) -> Terms:
    """Return a kernel model with these rows as terms of a formula."""
    if kernel.is_callable:
        raise ValueError("kernel is a Python callable, which cannot be exported")
    return kernel.terms(rows, weights)
