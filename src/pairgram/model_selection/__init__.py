"""How settings are chosen: folds of whole queries, metrics of held-out rows, tables of results.

Imports `problem`, `feature_maps`, `metrics`, `preferences` and `_support`.
"""
