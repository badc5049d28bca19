"""The ranking problem: checked rows, labels, queries and weights, and the Laplacian of its pairs.

Imports `feature_maps.base`, `preferences` and `_support`.
"""
