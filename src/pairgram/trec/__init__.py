"""Measure TREC runs against relevance judgements; their files are read and written by `datasets`.

This folder may import `datasets`, `metrics`, `queries_and_pairs` and `_support`.
"""
