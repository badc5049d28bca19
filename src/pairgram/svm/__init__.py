"""Ranking by the squared hinge loss on pairs: RankSVM and its Newton solver.

This folder may import `least_squares` and every folder below it, but not `elm`.
"""
