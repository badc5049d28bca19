"""The ranking problem: checked rows, labels, queries and weights, and the Laplacian of its pairs.

This folder may import `feature_maps.base`, `queries_and_pairs` and `_support`.
"""
