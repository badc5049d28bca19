"""How settings are chosen: folds of whole queries, scores of held-out rows, tables of results.

This folder may import `problem`, `feature_maps`, `metrics`, `preferences` and `_support`.
"""
