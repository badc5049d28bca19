"""What all rankers share: the base class, scores of rows, files.

Imports `model_files`, `problem`, `feature_maps`, `metrics`, `preferences` and `_support`. It
imports no estimator: `load_model` looks classes up by their public names.
"""
