"""Model files: their format, and what each kind of file must hold.

Imports `feature_maps`, `kernels`, `preferences` and `_support`.
"""
