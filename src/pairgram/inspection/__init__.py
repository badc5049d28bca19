"""What a ranker has learnt, and from how much: learning curves, importances, regressor adapters.

This package uses rankers by their public names only.
"""
