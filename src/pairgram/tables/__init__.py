"""Tables of rows that are read when they are needed, and engines that work on their parts.

`scan` describes a table. This folder imports `datasets`, `queries_and_pairs` and `_support`, and no
estimator.
"""
