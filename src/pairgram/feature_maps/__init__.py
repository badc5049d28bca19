"""Maps of rows to features: random nodes, random Fourier features, Nyström features, kernel values.

`base.FeatureMap` says what a map can do, and `known` lists the maps of this package. This folder
may import `inputs`, `kernels` and `_support`.
"""
