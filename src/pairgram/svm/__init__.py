"""Ranking by the squared hinge loss on pairs: RankSVM and its Newton solver.

Imports `least_squares` and every room below it, not `elm`.
"""
