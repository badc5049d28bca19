"""Which rows are compared: the queries that rows belong to, and the pairs of a query that count.

This folder may import `_support`.
"""
