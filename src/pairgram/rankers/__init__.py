"""What all rankers share: the base class, the scoring of rows, and `load_model`.

This folder may import `model_files`, `problem`, `feature_maps`, `inputs`, `metrics`, `tables`,
`datasets`, `queries_and_pairs` and `_support`. It imports no estimator: `load_model` finds classes
by their public names.
"""
