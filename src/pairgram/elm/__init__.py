"""Extreme learning machines: pointwise and pairwise, and ELMRank, which averages draws of nodes.

Imports `least_squares` and every room below it, not `svm`.
"""
