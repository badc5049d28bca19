"""What a ranker has learnt, and from how much: learning curves, importances, a regressor's face.

Rankers are taken by the package's public names.
"""
