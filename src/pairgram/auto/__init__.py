"""The ranker that needs no settings: it tries models, cheapest first, and keeps the best.

This folder may import `elm`, `svm`, `least_squares` and every folder below it.
"""
