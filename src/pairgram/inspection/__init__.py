"""What a ranker has learnt, and from how much: learning curves, importances, a regressor's face.

This folder may import the package's public names, `queries_and_pairs` and `_support`.
"""
