"""Maps of rows to features: random nodes, random Fourier features, Nyström features, kernel values.

`base.FeatureMap` says what a map can do; `known` lists the maps of this package. Imports `kernels`
and `_support`.
"""
