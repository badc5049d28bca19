"""Ranking by least squares on pairs: the statistics, the ridge path, RankRLS, batches of fits.

Imports every room below: `rankers`, `model_selection`, `model_files`, `problem`, `feature_maps`,
`metrics`, `kernels`, `preferences` and `_support`.
"""
