"""Fitted inputs: what becomes of the columns of X before a feature map or a kernel sees them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import pairgram._core as _core
from pairgram._support.arrays import column_names, read_rows
from pairgram._support.blocks import block_rows, blocks
from pairgram._support.checks import require_finite
from pairgram._support.threads import resolve_n_threads
from pairgram._support.types import Vector

__all__ = ["FittedInputs", "QuantileInputs", "ScaledInputs", "restore_inputs"]


@dataclass(frozen=True, eq=False)
class FittedInputs(ABC):
    """A function of rows that was fitted to the training rows of a ranker.

    Attributes
    ----------
    kind : {"standard", "minmax", "maxabs", "quantile", "raw+quantile"}
        The word that `inputs` of the ranker had, or that a search chose.
    feature_names_in_ : ndarray of shape (n_features,), or None
        The names of the columns of the training rows, if they had names.
    """

    kind: str
    feature_names_in_: Any = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def n_features_in_(self) -> int:
        """The number of columns of X."""

    @property
    def n_outputs(self) -> int:
        """The number of columns that are made of them."""
        return self.n_features_in_

    @property
    def factors(self) -> Vector | None:
        """The factors, if every column is ``(x − centre) · factor``; otherwise None."""
        return None

    @property
    def keeps_zeros(self) -> bool:
        """Whether 0 stays 0, so that CSR rows stay sparse."""
        return False

    @abstractmethod
    def columns(self) -> _core.InputColumns:
        """Return the compiled form."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that describe the function in a model file; see `restore_inputs`."""

    @abstractmethod
    def rounding(self, X: Any) -> Vector:
        """Return a bound on the rounding error of each column for rows X, (n_outputs,)."""

    def node_map(self, dtype: Any, then: Any = None) -> Any:
        """Return the compiled map of rows of a dtype to the columns, and by `then` to features."""
        make: Any = _core.NodeMap32 if np.dtype(dtype) == np.float32 else _core.NodeMap64
        return make.after_columns(self.columns(), then)

    def transform(self, X: Any) -> Any:
        """Return the columns of rows, (n_rows, n_outputs), float32 for float32 X, else float64.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Kind "maxabs" takes CSR matrices too, and returns them as such.

        Raises
        ------
        ValueError
            If X has another number of columns than the training rows, or other names of columns
            if both have names; or if X holds NaN or infinity.
        """
        own, names = self.feature_names_in_, column_names(X)
        named = own is not None and names is not None and all(isinstance(n, str) for n in names)
        if named and names != list(own):
            raise ValueError(
                f"X must have the columns of fit, in their order, {list(own)}, got {names}"
            )
        X = read_rows(X, sparse="csr" if self.keeps_zeros else False)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} features, got {X.shape[1]}")
        require_finite(X, "X")
        return self.values(X)

    def values(self, X: Any, n_threads: int | None = None) -> Any:
        """Return the columns of rows that have been checked, or may be: NaN stays NaN.

        CSR rows stay sparse if 0 stays 0, and become dense otherwise.
        """
        if scipy.sparse.issparse(X):
            return self._of_sparse(X)
        rows = np.require(X, None, ["C", "A"])
        return self.node_map(X.dtype).map(rows, resolve_n_threads(n_threads))

    def for_fit(self, X: Any, few: bool) -> Any:
        """Return the columns of all rows, or with `few` of the first, for a map to be fitted to."""
        return self.values(X[:1] if few else X)

    def _of_sparse(self, X: Any) -> Any:
        out = np.empty((X.shape[0], self.n_outputs), X.dtype)
        for rows in blocks(X.shape[0], block_rows(self.n_outputs, X.dtype)):
            out[rows] = self.values(X[rows].toarray())
        return out

    def names(self, names: Any) -> Any:
        """Return names of the columns that are made, given those of X, or None for None."""
        return names

    def __repr__(self) -> str:
        return f"<inputs {self.kind!r} of {self.n_features_in_} columns>"


@dataclass(frozen=True, eq=False, repr=False)
class ScaledInputs(FittedInputs):
    """Columns ``(x − centre) / scale``: kinds "standard", "minmax" and "maxabs".

    Attributes
    ----------
    centre, scale : ndarray of shape (n_features,), float64
    """

    centre: Vector
    scale: Vector

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return len(self.scale)

    @property
    def factors(self) -> Vector:
        """The inverse of the scale."""
        return 1 / self.scale

    @property
    def keeps_zeros(self) -> bool:
        """Whether 0 stays 0, so that CSR rows stay sparse."""
        return self.kind == "maxabs"

    def columns(self) -> _core.InputColumns:
        """Return the compiled form."""
        return _core.InputColumns.scaled(
            np.ascontiguousarray(self.centre), np.ascontiguousarray(self.factors)
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that describe the function in a model file."""
        return {"inputs_centre": self.centre, "inputs_scale": self.scale}

    def rounding(self, X: Any) -> Vector:
        """Return a bound on the rounding error of each column for rows X, (n_outputs,)."""
        return _rounding_of(self.values(X), 4)

    def _of_sparse(self, X: Any) -> Any:
        if not self.keeps_zeros:
            return super()._of_sparse(X)
        factors = self.factors[X.indices]
        data = np.asarray(X.data * factors, X.dtype)
        return type(X)((data, X.indices, X.indptr), shape=X.shape)


@dataclass(frozen=True, eq=False, repr=False)
class QuantileInputs(FittedInputs):
    """The distribution function of every column, linear between knots: the "quantile" kinds.

    With "raw+quantile" the columns of X come first, and their functions after them.

    Attributes
    ----------
    knots, values : ndarray of shape (n_knots,), float64
        The knots of all columns, one column after the other, and the values there. Knots of a
        column ascend.
    ends : ndarray of shape (n_features,), int64
        Where the knots of each column end.
    """

    knots: Vector
    values_at_knots: Vector
    ends: NDArray[np.int64]

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return len(self.ends)

    @property
    def _keeps_inputs(self) -> bool:
        return self.kind == "raw+quantile"

    @property
    def n_outputs(self) -> int:
        """The number of columns that are made of them."""
        return self.n_features_in_ * (2 if self._keeps_inputs else 1)

    def columns(self) -> _core.InputColumns:
        """Return the compiled form."""
        return _core.InputColumns.functions(
            self.knots, self.values_at_knots, self.ends, self._keeps_inputs
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that describe the function in a model file."""
        return {
            "inputs_knots": self.knots,
            "inputs_values": self.values_at_knots,
            "inputs_ends": self.ends,
        }

    def rounding(self, X: Any) -> Vector:
        """Return a bound on the rounding error of each column for rows X, (n_outputs,)."""
        found = _rounding_of(self.values(X), 64)
        if self._keeps_inputs:
            found[: self.n_features_in_] = 0.0
        return found

    def names(self, names: Any) -> Any:
        """Return names of the columns that are made, given those of X, or None for None."""
        if names is None or not self._keeps_inputs:
            return names
        return [*names, *(f"quantile of {name}" for name in names)]


def _rounding_of(H: NDArray[Any], n_errors: int) -> Vector:
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt((H.astype(np.float64) ** 2).mean(axis=0))
    return np.asarray(n_errors * np.finfo(H.dtype).eps * size)


def restore_inputs(kind: str, arrays: dict[str, NDArray[Any]]) -> FittedInputs:
    """Make the inputs that `FittedInputs.arrays` described. The arrays must have been checked."""
    if "inputs_scale" in arrays:
        return ScaledInputs(kind, arrays["inputs_centre"], arrays["inputs_scale"])
    return QuantileInputs(kind, *(arrays[f"inputs_{name}"] for name in ("knots", "values", "ends")))
