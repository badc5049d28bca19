"""Model files: their format, and what each kind of file must hold.

This folder may import `feature_maps`, `kernels`, `queries_and_pairs` and `_support`.
"""
