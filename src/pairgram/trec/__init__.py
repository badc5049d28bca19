"""Measure TREC runs against relevance judgements; their files are read and written by `datasets`.

This folder may import the package's public names, `datasets`, `metrics`, `queries_and_pairs` and
`_support`.
"""
