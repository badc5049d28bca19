"""Compare rankings query by query: means, intervals, tests, and the queries that changed.

This folder may import `trec`, `metrics` and `queries_and_pairs`.
"""
