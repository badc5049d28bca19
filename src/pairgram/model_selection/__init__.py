"""How settings are chosen: folds of whole queries, scores of held-out rows, tables of results.

This package knows no estimator.
"""
