"""Which rows are compared: queries that rows belong to, and the pairs of a query that count.

Imports `_support`.
"""
