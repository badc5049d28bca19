"""`AutoRanker`: the best of several models by held-out queries. `trials` says what it tries, and
`mean` makes one model of those that cannot be told apart.
"""
