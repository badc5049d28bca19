"""Kernels k(x, z) of two rows: their settings, their matrices, and kernel values as hidden nodes.

This folder may import `_support`.
"""
