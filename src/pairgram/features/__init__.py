"""What is made of the columns of rows before a linear model: scales, random nodes, random Fourier
and Nyström features, kernels. `base.FeatureMap` says what a map can do; `known` lists the maps.
"""
