"""Scores of held-out queries, folds, rows and pairs, computed from one decomposition.
`scoring` judges them by a metric.
"""
