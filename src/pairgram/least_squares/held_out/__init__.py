"""Scores of held-out queries, folds, rows and pairs, computed from one decomposition.

This is a part of `least_squares` and may import the same folders.
"""
