"""Systems held against each other, query by query: means, intervals and tests. The same queries may
be ranked by all systems, or each query by one.
"""
