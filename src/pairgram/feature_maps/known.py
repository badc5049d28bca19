"""The feature maps that kernels and files know, and what the package asks of any map."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairgram.feature_maps.kernel_map import KernelMap
from pairgram.feature_maps.nystroem import Nystroem
from pairgram.feature_maps.random_fourier import RandomFourier
from pairgram.feature_maps.random_nodes import RandomNodes

__all__ = [
    "describe_map",
    "is_known",
    "is_native",
    "native_map",
    "restore_map",
    "same_map",
    "set_threads",
]

# A map of this package is one entry: a class with `node_map`, `_describe`, `_restore` and `_same`,
# see `pairgram.feature_maps.base.FeatureMap`. A subclass has code of its own, so types are
# compared exactly.
MAPS: dict[str, Any] = {
    known.__name__: known for known in (KernelMap, Nystroem, RandomFourier, RandomNodes)
}


def is_known(feature_map: Any) -> bool:
    """Tell whether a feature map is of this package, and so does not see labels."""
    return type(feature_map) in MAPS.values()


def describe_map(feature_map: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any] | None]:
    """Return the arrays and settings from which `restore_map` makes a fitted map, for a file.

    Raises
    ------
    ValueError
        If the map is not of this package, or has a Python callable.
    """
    if feature_map is None:
        return {}, None
    kind = type(feature_map).__name__
    if not is_known(feature_map):
        raise ValueError(
            f"feature_map is a {kind}, which a file cannot hold without running code when it is "
            f"loaded; {', '.join(MAPS)} can be saved, pickle holds the others"
        )
    arrays, settings = feature_map._describe()
    return arrays, {"kind": kind, **settings}


def restore_map(arrays: dict[str, NDArray[Any]], settings: dict[str, Any] | None) -> Any:
    """Make the fitted map that `describe_map` described, of contents that have been checked."""
    if settings is None:
        return None
    settings = dict(settings)
    return MAPS[settings.pop("kind")]._restore(arrays, settings)


def same_map(a: Any, b: Any) -> bool:
    """Tell whether two fitted feature maps make the same features."""
    if a is b:
        return True
    if is_known(a) and type(a) is type(b):
        return bool(a._same(b))
    try:
        return pickle.dumps(a) == pickle.dumps(b)
    except (AttributeError, TypeError, pickle.PicklingError):  # a lambda
        return False


def is_native(feature_map: Any) -> bool:
    """Tell whether there is a `native_map` for a fitted feature map."""
    if type(feature_map) is RandomNodes:  # without making it
        return not any(callable(kind) for _, _, kind in feature_map._segments)
    return native_map(feature_map, np.float64) is not None


def native_map(feature_map: Any, dtype: Any) -> Any:
    """Return the kernels' map for a fitted feature map, or None where rows must be transformed."""
    return feature_map.node_map(np.dtype(dtype)) if is_known(feature_map) else None


def set_threads(feature_map: Any, n_threads: int | None) -> None:
    """Give a map of this package the number of threads to use, unless it has one of its own."""
    if is_known(feature_map) and getattr(feature_map, "n_threads", 0) is None:
        feature_map.n_threads = n_threads
