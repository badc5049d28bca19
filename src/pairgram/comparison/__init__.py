"""Compare rankings query by query: means, intervals, tests, and the queries that changed.

This folder may import the package's public names, `metrics` and `queries_and_pairs`.
"""
