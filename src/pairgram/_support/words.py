"""The words that parameters accept, for the library and for the command line.

This module imports only `typing`, because the help of the command line needs the words and must not
wait for NumPy.
"""

from __future__ import annotations

from typing import Any, Literal

PairsName = Literal["kept", "dropped", "gain", "absdiff"]
Scope = Literal["query", "global"]
Weighting = Literal["pairs", "documents", "queries"]
Target = Literal["label", "gain"]
Form = Literal["auto", "primal", "dual"]
Loss = Literal["squared_hinge", "squared"]
ActivationName = Literal["linear", "sigmoid", "gaussian", "tanh", "relu", "hardlim", "sine"]
KernelName = Literal[
    "rbf", "laplacian", "polynomial", "linear", "tanimoto", "minmax", "precomputed"
]
FourierKernel = Literal["rbf", "laplacian", "cauchy"]
InputsName = Literal["standard", "minmax", "maxabs", "quantile", "raw+quantile"]
Landmarks = Literal["uniform", "kmeans", "rpcholesky"]
PluginName = Literal["ltr_plugin", "elasticsearch", "opensearch"]  # one plugin
EngineName = Literal["solr", PluginName, "vespa", "onnx", "ranklib", "sql", "python"]
Convention = Literal["default", "letor", "trec", "lightgbm", "sklearn"]

# These kernels mix all columns in one number.
OF_DISTANCES = ("rbf", "laplacian", "polynomial", "cauchy")
# The kernels of rows x and z, and the parameters that each uses.
KERNEL_PARAMETERS: dict[str, tuple[str, ...]] = {
    "rbf": ("gamma",),  # exp(−gamma ‖x − z‖²)
    "laplacian": ("gamma",),  # exp(−gamma ‖x − z‖₁)
    "polynomial": ("gamma", "degree", "coef0"),  # (gamma xᵀz + coef0)^degree
    "linear": (),  # xᵀz
    "tanimoto": (),  # xᵀz / (‖x‖² + ‖z‖² − xᵀz), 1 for 0 / 0
    "minmax": (),  # Σ min(x, z) / Σ max(x, z) of both signs, 1 for 0 / 0
}


def words(literal: Any) -> tuple[str, ...]:
    """Return the words of a `Literal` type."""
    found: tuple[str, ...] = literal.__args__  # `get_args` takes several times as long
    return found
