"""Scores of held-out rows from one decomposition: queries, folds, rows and pairs left out.

A part of `least_squares`, with the same rooms below it.
"""
