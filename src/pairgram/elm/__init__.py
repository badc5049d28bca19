"""Extreme learning machines: pointwise, pairwise, and ELMRank, which averages draws of nodes.

This folder may import `least_squares` and every folder below it, but not `svm`.
"""
