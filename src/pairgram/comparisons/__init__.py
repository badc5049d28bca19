"""Comparisons of rows in place of labels: `Preferences`, with their rows, metrics and hold-outs.
Least squares and RankSVM take them.
"""
