"""Ranking by least squares on pairs: statistics, the ridge path, RankRLS, and `fit_many`.

This folder may import every folder below it: `rankers`, `model_selection`, `model_files`,
`problem`, `feature_maps`, `inputs`, `metrics`, `kernels`, `queries_and_pairs` and `_support`.
"""
