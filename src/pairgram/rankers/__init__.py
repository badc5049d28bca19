"""What all rankers share: the base class, the scoring of rows, and `load_model`.

This folder may import `model_files`, `problem`, `feature_maps`, `inputs`, `kernels`, `metrics`,
`tables`, `datasets`, `queries_and_pairs` and `_support`. It imports no estimator: `known` finds
classes by their names.
"""
