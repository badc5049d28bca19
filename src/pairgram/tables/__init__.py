"""Tables of rows that are read when they are needed, and engines that work on their parts.

`scan` describes a table. This package knows no estimator.
"""
