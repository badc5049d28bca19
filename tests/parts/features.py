"""The parts of features that have tests of their own."""

from pairgram.features import base, kernels, nystroem, random_nodes
from pairgram.features.base import node_map_of
from pairgram.features.inputs import fit_inputs
from pairgram.features.kernels import KernelSettings, kernel_nodes
from pairgram.features.known import MAPS, describe_map, same_map

__all__ = [
    "MAPS",
    "KernelSettings",
    "base",
    "describe_map",
    "fit_inputs",
    "kernel_nodes",
    "kernels",
    "node_map_of",
    "nystroem",
    "random_nodes",
    "same_map",
]
