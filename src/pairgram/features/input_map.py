"""`InputMap`: fitted inputs, and a feature map of what they make, as one map of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pairgram._support.arrays import block_rows, blocks
from pairgram._support.checks import Vector
from pairgram.features.base import (
    FeatureMap,
    LinearNodes,
    RowScorer,
    ValueMap,
    checked,
    features_of,
    is_compiled,
    linear_nodes,
    n_outputs,
    node_map_of,
    output_dtype,
    require_finite_row,
    rounding_of,
    scorer_of,
    scores_of_rows,
    scores_sparse,
    unwhitened,
)
from pairgram.features.inputs import FittedInputs, restore_inputs


class InputMap(FeatureMap):
    """The map of rows by fitted inputs, and by a fitted feature map of their columns.

    Rankers hold the two parts as `inputs_` and `feature_map_`. They are joined where rows are
    mapped, so that nothing else needs to know of inputs.

    Parameters
    ----------
    inputs : FittedInputs
    feature_map : fitted transformer or None
    n_threads : int or None
    """

    def __init__(
        self, inputs: FittedInputs, feature_map: Any = None, n_threads: int | None = None
    ) -> None:
        self.inputs = inputs
        self.feature_map = feature_map
        self.n_threads = n_threads

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        """The number of columns of the rows as they are given."""
        return self.inputs.n_features_in_

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the map, which is fitted already."""
        return self

    @property
    def _n_features_out(self) -> int:  # type: ignore[override]
        if self.feature_map is None:
            return self.inputs.n_outputs
        return n_outputs(self.feature_map, np.zeros((1, self.inputs.n_outputs)))

    @property
    def _scores_sparse(self) -> bool:  # type: ignore[override]
        return scores_sparse(self.feature_map)

    def _output_dtype(self, dtype: Any) -> np.dtype[Any]:
        return output_dtype(self.feature_map, dtype)

    @property
    def _is_compiled(self) -> bool:
        return self.feature_map is None or is_compiled(self.feature_map)

    def _node_map(self, dtype: Any) -> Any:
        if self.feature_map is None:
            return self.inputs.node_map(dtype)
        then = node_map_of(self.feature_map, dtype)
        return None if then is None else self.inputs.node_map(dtype, then)

    def _as_linear(self) -> LinearNodes | None:
        nodes = linear_nodes(self.feature_map)
        return None if nodes is None else replace(nodes, before=InputMap(self.inputs))

    def _unwhitened(self) -> tuple[ValueMap, Vector] | None:
        parts = unwhitened(self.feature_map)
        return None if parts is None else (_ValuesOfInputs(self, parts[0]), parts[1])

    def _scorer(self, coef: Vector, dtype: Any) -> RowScorer | None:
        found = scorer_of(self.feature_map, coef, dtype)
        return None if found is None else replace(found, parts=self._parts(found.parts, dtype))

    def _parts(self, parts: Iterable[tuple[Any, Vector]], dtype: Any) -> Iterable[Any]:
        factors = self.inputs.factors if self.inputs.keeps_zeros else None
        for node_map, coef in parts:
            if node_map is None and factors is not None:  # wide CSR rows need not become dense
                yield None, coef * factors
            else:
                yield self.inputs.node_map(dtype, node_map), coef

    def _scores(self, X: Any, coefs: Vector, n_threads: int | None = None) -> Vector:
        size = block_rows(max(self.inputs.n_outputs, coefs.shape[-1]), X.dtype)
        parts = [
            scores_of_rows(self.feature_map, self.inputs.values(X[rows]), coefs, n_threads)
            for rows in blocks(X.shape[0], size)
        ]
        return np.concatenate(parts, axis=-1)

    def _features(self, X: Any) -> NDArray[Any]:
        if self._is_compiled:
            return super()._features(X)
        return features_of(self.feature_map, self.inputs.values(X))

    def _require_finite_row(self, X: Any, row: int) -> None:
        require_finite_row(self.feature_map, self.inputs.values(X), row)

    def _rounding(self, X: Any) -> NDArray[np.float64]:
        if scipy.sparse.issparse(X):
            X = X.toarray()
        if self.feature_map is None:
            return self.inputs.rounding(X)
        return rounding_of(self.feature_map, self.inputs.values(X))

    def _describe(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Describe the inputs. The map after them is described on its own."""
        return self.inputs.arrays(), {"kind": self.inputs.kind}

    @classmethod
    def _restore(cls, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Self:
        return cls(restore_inputs(settings["kind"], arrays))

    def _same(self, other: Self) -> bool:
        mine, theirs = self.inputs.arrays(), other.inputs.arrays()
        one, another = self.feature_map, other.feature_map
        return (
            self.inputs.kind == other.inputs.kind
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
            and (one is another or (type(one) is type(another) and bool(one._same(another))))
        )


@dataclass(frozen=True, eq=False)
class _ValuesOfInputs(ValueMap):
    """The values that a map makes of what inputs make of rows."""

    feature_map: InputMap
    after: ValueMap

    @property
    def shift(self) -> Vector | None:  # type: ignore[override]
        """What is taken from the values."""
        return self.after.shift

    @property
    def n_threads(self) -> int | None:
        """The number of threads of the map."""
        return self.after.n_threads

    def checked(self, X: Any) -> Any:
        """Check the rows and return them."""
        return checked(self.feature_map, X)

    def node_map(self, dtype: Any) -> Any:
        """Return the compiled map to values without the shift, or None if there is none."""
        nodes = self.after.node_map(dtype)
        return None if nodes is None else self.feature_map.inputs.node_map(dtype, nodes)

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of rows that have been checked."""
        return self.after.values(self.feature_map.inputs.values(X))


def after_inputs(inputs: FittedInputs | None, feature_map: Any) -> Any:
    """Return the map of rows as they are given, from the parts that a ranker keeps."""
    if inputs is None:
        return feature_map
    return InputMap(inputs, feature_map, getattr(feature_map, "n_threads", None))


def fit_after(inputs: FittedInputs | None, feature_map: FeatureMap, X: Any) -> FeatureMap:
    """Fit a map of this package to what inputs make of checked rows; return the map of the rows."""
    if inputs is not None:  # a map that only draws needs no more than one row
        X = inputs.values(X[:1] if feature_map._draws_only else X)
    fitted: FeatureMap = after_inputs(inputs, feature_map._fit_checked(X))
    return fitted


def shows_not_finite(feature_map: Any) -> bool:
    """Tell whether NaN or infinity in a row surely gives a feature that is not finite."""
    return isinstance(feature_map, InputMap) and feature_map.feature_map is None


def whole_map(data: Any) -> Any:
    """Return the map of rows as they were given to a ranker, from its `RankingData`; or None."""
    return after_inputs(data.applied, data.feature_map)


def parts_of(feature_map: Any) -> tuple[FittedInputs | None, Any]:
    """Return the (inputs, feature map) that `after_inputs` joined."""
    if isinstance(feature_map, InputMap):
        return feature_map.inputs, feature_map.feature_map
    return None, feature_map


def factors_of(feature_map: Any) -> Vector | None:
    """Return the factors of columns if the map does no more than scale and shift them, or None.

    Shifts cancel in differences within pairs. None is returned for factors so far from 1 that
    squares of the columns as given might leave the range of numbers.
    """
    if not isinstance(feature_map, InputMap) or feature_map.feature_map is not None:
        return None
    factors = feature_map.inputs.factors
    if factors is None or not ((factors > 1e-12) & (factors < 1e12)).all():
        return None
    return factors
