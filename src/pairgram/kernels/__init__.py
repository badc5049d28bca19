"""Kernels k(x, z) of two rows: their settings, their matrices, and kernel values as hidden nodes.

Imports `_support`.
"""
