"""Tables of rows that are read when they are needed, and engines that work on their parts.

`scan` describes a table. No estimator is known here.
"""
