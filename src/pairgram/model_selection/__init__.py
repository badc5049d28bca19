"""How settings are chosen: folds of whole queries, scores of held-out rows, tables of results.

This folder may import `problem`, `feature_maps`, `metrics`, `tables`, `datasets`,
`queries_and_pairs` and `_support`.
"""
