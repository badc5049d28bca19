"""The feature maps that model files can hold, and the comparison of two maps."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from pairgram.features.base import FeatureMap, is_known

# The maps that model files can hold, by the names there.
MAPS = {
    "KernelMap": "pairgram.features.kernel_map",
    "Nystroem": "pairgram.features.nystroem",
    "RandomFourier": "pairgram.features.random_fourier",
    "RandomNodes": "pairgram.features.random_nodes",
}


def describe_map(
    feature_map: FeatureMap | None,
) -> tuple[dict[str, NDArray[Any]], dict[str, Any] | None]:
    """Return the arrays and settings of a fitted map for a model file; see `restore_map`.

    Raises
    ------
    ValueError
        If the map is not of this package, or has a Python callable.
    """
    if feature_map is None:
        return {}, None
    kind = type(feature_map).__name__
    # Types are compared exactly, since a subclass may have its own code.
    if MAPS.get(kind) != type(feature_map).__module__:
        raise ValueError(
            f"feature_map is a {kind}, which a file cannot hold without running code when it is "
            f"loaded; {', '.join(MAPS)} can be saved, pickle holds the others"
        )
    arrays, settings = feature_map._describe()
    return arrays, {"kind": kind, **settings}


def restore_map(arrays: dict[str, NDArray[Any]], settings: dict[str, Any] | None) -> Any:
    """Make the fitted map that `describe_map` described. The contents must have been checked."""
    if settings is None:
        return None
    settings = dict(settings)
    kind = settings.pop("kind")
    return getattr(import_module(MAPS[kind]), kind)._restore(arrays, settings)


def same_map(a: object, b: object) -> bool:
    """Tell whether two fitted feature maps make the same features."""
    if a is b:
        return True
    if is_known(a) and type(a) is type(b):
        return bool(a._same(b))
    try:
        return pickle.dumps(a) == pickle.dumps(b)
    except (AttributeError, TypeError, pickle.PicklingError):  # a lambda cannot be pickled
        return False
